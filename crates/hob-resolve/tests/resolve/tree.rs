//! A temporary tree of scripts and interpreters, and resolutions in it.
//!
//! Interpreters here are files that begin like a binary: nothing of them is executed.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hob_resolve::{Program, ResolveError, WorkingDirectory};

/// The first bytes of a binary, enough to be taken for one.
pub(crate) const BINARY: &str = "\x7fELF";

/// A tree in its own directory, removed with it.
pub(crate) struct Tree {
    root: tempfile::TempDir,
    /// The environment of the resolutions.
    pub(crate) env: Vec<(String, String)>,
}

impl Tree {
    /// An empty tree, `PATH=@/bin` in its environment.
    pub(crate) fn new() -> Tree {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree { root, env: Vec::new() };
        fs::create_dir(tree.path("bin")).unwrap();
        tree.with("PATH", "@/bin")
    }

    /// The same with a variable; `@` in the value is the tree's root.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Tree {
        let value = self.expand(value);
        self.env.retain(|(key, _)| key != name);
        self.env.push((name.to_owned(), value));
        self
    }

    /// The same with a file, its parents made, `@` in its text expanded.
    pub(crate) fn file(self, path: &str, mode: u32, text: &str) -> Tree {
        let text = self.expand(text);
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// The same with a symbolic link.
    pub(crate) fn link(self, path: &str, target: &str) -> Tree {
        let at = self.path(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(self.expand(target), at).unwrap();
        self
    }

    /// A path in the tree.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn expand(&self, text: &str) -> String {
        // With the slash, since `"$@"` is no path.
        text.replace("@/", self.path("").to_str().unwrap())
    }

    /// Resolves a command line (words between single spaces) from a directory of the tree.
    pub(crate) fn resolve(&self, cwd: &str, line: &str) -> Result<Program, ResolveError> {
        let line = self.expand(line);
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        resolve_with(&self.env, &self.path(cwd), &argv)
    }

    /// Checks what a command line resolves to, as one line with the root shown as `@`.
    #[track_caller]
    pub(crate) fn check(&self, cwd: &str, line: &str, want: &str) {
        let shown = match self.resolve(cwd, line) {
            Ok(program) => show(&program),
            Err(error) => format!("{} {error}", error.exit_code()),
        };
        let root = self.path("");
        let root = root.to_str().unwrap().trim_end_matches('/');
        assert_eq!(shown.replace(root, "@"), want, "{line}");
    }
}

/// Resolves with a list as the environment.
pub(crate) fn resolve_with(
    env: &[(String, String)],
    cwd: &Path,
    argv: &[&[u8]],
) -> Result<Program, ResolveError> {
    let dir = fs::File::open(cwd).unwrap();
    let find = |name: &[u8]| {
        let mut all = env.iter();
        all.find(|(key, _)| key.as_bytes() == name).map(|(_, value)| value.as_bytes())
    };
    hob_resolve::resolve(argv, &find, dir.as_fd())
}

fn words(list: &[Vec<u8>]) -> String {
    let words: Vec<String> = list.iter().map(|w| String::from_utf8_lossy(w).into()).collect();
    words.join(" ")
}

fn show(program: &Program) -> String {
    let interpreter = String::from_utf8_lossy(&program.interpreter);
    let (prefix, argv) = (words(&program.prefix), words(&program.argv));
    if !program.is_hosted() {
        let note = program.note.map(|note| format!(" ({note:?})")).unwrap_or_default();
        return format!("exec {interpreter}: {argv}{note}");
    }
    let target = String::from_utf8_lossy(&program.target.name);
    let cwd = if program.directory == WorkingDirectory::Keyed { " (cwd)" } else { "" };
    let kind = program.target.kind;
    format!("{interpreter}: {prefix} | {argv} | {kind:?} {target}{cwd}")
}

/// A value of a list of changes, for tests of shims.
pub(crate) fn text(bytes: &[u8]) -> String {
    std::ffi::OsStr::from_bytes(bytes).to_str().unwrap().to_owned()
}
