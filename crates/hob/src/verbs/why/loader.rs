//! What a program is by its executable, and which of the files that it opens are its script and
//! its modules.
//!
//! Known by names alone, as the program's own command line and opens have them: nothing is asked
//! of the runtime.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// CPython.
    Python,
    /// A shell.
    Shell,
    /// Ruby.
    Ruby,
    /// Node.
    Node,
    /// A Java virtual machine.
    Jvm,
    /// Perl.
    Perl,
    /// Machine code with nothing to load, as far as can be seen.
    #[default]
    Native,
}

impl Kind {
    /// By an executable's path.
    pub(super) fn of(executable: &[u8]) -> Kind {
        let name = executable.rsplit(|byte| *byte == b'/').next().unwrap_or(executable);
        let stem_end = name.iter().position(|byte| !byte.is_ascii_alphabetic());
        match &name[..stem_end.unwrap_or(name.len())] {
            b"python" => Kind::Python,
            b"sh" | b"dash" | b"bash" | b"zsh" | b"ksh" | b"fish" | b"busybox" => Kind::Shell,
            b"ruby" => Kind::Ruby,
            b"node" | b"nodejs" => Kind::Node,
            b"java" => Kind::Jvm,
            b"perl" => Kind::Perl,
            _ => Kind::Native,
        }
    }

    /// The word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Python => "python",
            Kind::Shell => "shell",
            Kind::Ruby => "ruby",
            Kind::Node => "node",
            Kind::Jvm => "jvm",
            Kind::Perl => "perl",
            Kind::Native => "native",
        }
    }

    /// Whether its modules are seen as opened files. Python's are stamped inside; a shell has
    /// none.
    pub(super) fn is_watched_while_loading(self) -> bool {
        match self {
            Kind::Ruby | Kind::Node | Kind::Jvm | Kind::Perl => true,
            Kind::Python | Kind::Shell | Kind::Native => false,
        }
    }

    /// Whether a file that it opened is a module.
    pub(super) fn is_module(self, path: &[u8]) -> bool {
        let endings: &[&str] = match self {
            Kind::Python | Kind::Shell | Kind::Native => &[],
            Kind::Ruby => &["rb", "so"],
            Kind::Node => &["js", "mjs", "cjs", "node", "json", "wasm"],
            Kind::Jvm => &["class", "jar", "jmod", "so"],
            Kind::Perl => &["pm", "pl", "so"],
        };
        let ending = Path::new(std::ffi::OsStr::from_bytes(path)).extension();
        ending.is_some_and(|ending| endings.iter().any(|one| ending == *one))
    }
}

/// Which opened file is the script.
#[derive(Debug, Clone, Default)]
pub(super) struct Loader {
    /// The stamping file, if this run has one.
    pub(super) hook: Option<PathBuf>,
    /// The first part of a Python module's name (`-m NAME`).
    pub(super) module: Option<Vec<u8>>,
    /// Names under which the arguments that are files may be opened.
    files: Vec<Vec<u8>>,
    /// A class's file as it ends.
    classes: Vec<Vec<u8>>,
}

impl Loader {
    /// For a process that has just executed a file: what it is, and what its arguments name.
    pub(super) fn executed(&mut self, pid: u32) -> Kind {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let kind = Kind::of(executable.as_os_str().as_bytes());
        let here = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let line = read("cmdline");
        self.name(kind, &here, line.split(|byte| *byte == 0).skip(1));
        kind
    }

    /// What such a process runs: the first of its arguments that is a file, or its executable.
    pub(super) fn named(&self, pid: u32) -> Vec<u8> {
        let executable = || std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let file = self.files.first().cloned();
        file.unwrap_or_else(|| executable().into_os_string().into_vec())
    }

    fn name<'a>(&mut self, kind: Kind, here: &Path, words: impl Iterator<Item = &'a [u8]>) {
        (self.files, self.classes) = (Vec::new(), Vec::new());
        for word in words.filter(|word| !word.is_empty() && !word.starts_with(b"-")) {
            let path = here.join(std::ffi::OsStr::from_bytes(word));
            if path.is_file() {
                self.files.push(word.to_vec());
                let real = path.canonicalize().ok();
                let more = [Some(path), real].into_iter().flatten();
                self.files.extend(more.map(|path| path.as_os_str().as_bytes().to_vec()));
            } else if kind == Kind::Jvm {
                let mut class: Vec<u8> =
                    word.iter().map(|byte| if *byte == b'.' { b'/' } else { *byte }).collect();
                class.extend_from_slice(b".class");
                self.classes.push(class);
            }
        }
    }

    /// Whether this is the stamping file.
    pub(super) fn is_hook(&self, path: &[u8]) -> bool {
        self.hook.as_ref().is_some_and(|hook| hook.as_os_str().as_bytes() == path)
    }

    /// Whether this is the script, or the first file of the module.
    pub(super) fn is_script(&self, path: &[u8]) -> bool {
        if let Some(module) = &self.module {
            // `NAME.py`, `NAME/__init__.py`, `NAME/__pycache__/__init__.cpython-311.pyc`.
            let part = |part: &[u8]| part.split(|byte| *byte == b'.').next() == Some(module);
            let is_python = path.ends_with(b".py") || path.ends_with(b".pyc");
            return is_python && path.rsplit(|byte| *byte == b'/').take(3).any(part);
        }
        let class = |class: &Vec<u8>| {
            path.strip_suffix(class.as_slice())
                .is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
        };
        self.files.iter().any(|file| file == path) || self.classes.iter().any(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_the_executables_name() {
        for (path, kind) in [
            ("/usr/bin/python3.11", Kind::Python),
            ("/usr/bin/dash", Kind::Shell),
            ("/opt/ruby/bin/ruby3.2", Kind::Ruby),
            ("node", Kind::Node),
            ("/usr/lib/jvm/x/bin/java", Kind::Jvm),
            ("/usr/bin/perl5.36", Kind::Perl),
            ("/bin/pythonic", Kind::Native),
            ("/bin/true", Kind::Native),
            ("", Kind::Native),
        ] {
            assert_eq!(Kind::of(path.as_bytes()), kind, "{path}");
        }
        assert!(Kind::Ruby.is_module(b"/a/b.rb") && !Kind::Ruby.is_module(b"/a/rb"));
        assert!(!Kind::Shell.is_module(b"/a/b.so"));
    }

    #[test]
    fn a_script_is_known_by_each_name_that_it_may_be_opened_under() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::write(real.join("real.js"), "").unwrap();
        std::os::unix::fs::symlink("real.js", real.join("tool")).unwrap();
        let mut loader = Loader::default();
        let words: [&[u8]; 3] = [b"--flag", b"tool", b"missing"];
        loader.name(Kind::Node, &real, words.into_iter());
        let bytes = |path: PathBuf| path.into_os_string().into_encoded_bytes();
        assert!(loader.is_script(b"tool") && loader.is_script(&bytes(real.join("tool"))));
        assert!(loader.is_script(&bytes(real.join("real.js"))));
        assert!(!loader.is_script(b"missing") && !loader.is_script(b"other"));
    }

    #[test]
    fn a_class_and_a_module_are_known_by_their_files() {
        let mut loader = Loader::default();
        loader.name(Kind::Jvm, Path::new("/"), [b"a.b.Main".as_slice()].into_iter());
        assert!(loader.is_script(b"/x/a/b/Main.class") && loader.is_script(b"a/b/Main.class"));
        assert!(!loader.is_script(b"/x/za/b/Main.class"));
        let loader = Loader { module: Some(b"json".to_vec()), ..Loader::default() };
        assert!(loader.is_script(b"/lib/json/__pycache__/__init__.cpython-311.pyc"));
        assert!(loader.is_script(b"/x/json.py") && !loader.is_script(b"/x/ujson.py"));
    }
}
