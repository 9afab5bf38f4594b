//! The files of a package: their paths below a prefix such as `/usr`, their modes and bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Where completions lie below a prefix: what `xtask completions` calls them, and where the shell
/// looks.
const COMPLETIONS: [(&str, &str); 3] = [
    ("hob.bash", "share/bash-completion/completions/hob"),
    ("_hob", "share/zsh/site-functions/_hob"),
    ("hob.fish", "share/fish/vendor_completions.d/hob.fish"),
];

/// One file.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Its rights: 0o755 for a program, 0o644 for everything else.
    pub(crate) mode: u32,
    /// What is in it.
    pub(crate) bytes: Vec<u8>,
}

impl File {
    /// A file that is read.
    pub(crate) fn text(bytes: impl Into<Vec<u8>>) -> File {
        File { mode: 0o644, bytes: bytes.into() }
    }

    /// A file that is executed.
    pub(crate) fn program(bytes: impl Into<Vec<u8>>) -> File {
        File { mode: 0o755, bytes: bytes.into() }
    }
}

/// Files by their paths, always in the order of these.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree(BTreeMap<String, File>);

/// The path of a page of documentation.
pub(crate) fn doc(name: &str) -> String {
    format!("share/doc/hob/{name}")
}

impl Tree {
    /// Adds a file, or takes the place of the one that has this path.
    pub(crate) fn add(&mut self, path: &str, file: File) {
        self.0.insert(path.to_owned(), file);
    }

    /// Man pages and completions, as `make generated` writes them.
    pub(crate) fn add_generated(&mut self, generated: &Path) -> Result<()> {
        let pages = fs::read_dir(generated.join("man")).context("run `make generated`")?;
        let mut count = 0;
        for page in pages {
            let page = page?;
            let name = page.file_name().into_string().ok().context("a page's name is text")?;
            self.add(&format!("share/man/man1/{name}"), File::text(fs::read(page.path())?));
            count += 1;
        }
        ensure!(count > 0, "{}: no man pages", generated.display());
        for (name, path) in COMPLETIONS {
            let from = generated.join("completions").join(name);
            let text = fs::read(&from).with_context(|| from.display().to_string())?;
            self.add(path, File::text(text));
        }
        Ok(())
    }

    /// The pages of `docs` (not those of decisions and recipes), the README and the licences.
    pub(crate) fn add_docs(&mut self, root: &Path) -> Result<()> {
        for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            self.add(&doc(name), File::text(fs::read(root.join(name))?));
        }
        for page in fs::read_dir(root.join("docs"))? {
            let path = page?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let (Some(name), Some("md")) = (name, path.extension().and_then(|end| end.to_str()))
            {
                self.add(&doc(&format!("docs/{name}")), File::text(fs::read(&path)?));
            }
        }
        Ok(())
    }

    /// The unit of systemd that every user may enable, for a hob in `/usr/bin`.
    pub(crate) fn add_unit(&mut self, root: &Path) -> Result<()> {
        let unit = fs::read_to_string(root.join("crates/hob/src/verbs/setup/hob.service"))?;
        let unit = unit
            .replace("@MARK@", "For each user: `systemctl --user enable hob` starts it at login.")
            .replace("@HOB@", "/usr/bin/hob")
            .replace("@ENVIRONMENT@", "")
            .replace("@TASKS@\n", "");
        ensure!(!unit.contains('@'), "hob.service has a word that is not known here");
        self.add("lib/systemd/user/hob.service", File::text(unit));
        Ok(())
    }

    /// Each path with its file, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The same files below another folder.
    pub(crate) fn below(&self, folder: &str) -> Tree {
        Tree(self.0.iter().map(|(path, file)| (format!("{folder}/{path}"), file.clone())).collect())
    }

    /// Every folder that a file lies in, the outer ones first.
    pub(crate) fn folders(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for path in self.0.keys() {
            for (at, _) in path.match_indices('/') {
                found.insert(path[..at].to_owned());
            }
        }
        found
    }

    /// Writes the files into a folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        for (path, file) in self.iter() {
            let to = folder.join(path);
            fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
            fs::write(&to, &file.bytes).with_context(|| to.display().to_string())?;
            fs::set_permissions(&to, fs::Permissions::from_mode(file.mode))?;
        }
        Ok(())
    }
}
