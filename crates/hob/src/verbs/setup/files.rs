//! The files of a user that `hob setup` writes, and how one is written and taken away.
//!
//! Invariants: a file that does not bear the mark, and a link that leads elsewhere, are left as they
//! are; a file appears whole, by a rename.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A line of every file that is hob's.
pub(super) const MARK: &str = "Written by `hob setup`; `hob setup --remove` takes it away.";
/// The mark is in one of the first lines: some files have to begin with something else.
const MARK_LINES: usize = 3;

/// What a file is.
#[derive(Debug)]
pub(super) enum Content {
    /// This text.
    Text(String),
    /// A link to another of the files.
    Link(PathBuf),
}

/// One file: where it is, and what it is to be.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) content: Content,
    /// The user's folder above it, which is not hob's to remove.
    pub(super) base: PathBuf,
}

/// What is at its path.
#[derive(Debug, PartialEq, Eq)]
enum There {
    Nothing,
    /// hob's, just as it is to be.
    Same,
    /// hob's, of another version or of other settings.
    Older,
    /// Somebody else's.
    Foreign,
}

impl File {
    fn there(&self) -> There {
        let seen = match self.path.symlink_metadata() {
            Ok(seen) => seen,
            Err(error) if error.kind() == ErrorKind::NotFound => return There::Nothing,
            Err(_) => return There::Foreign,
        };
        match &self.content {
            Content::Link(to) => match std::fs::read_link(&self.path) {
                Ok(target) if target == *to => There::Same,
                Ok(_) | Err(_) => There::Foreign,
            },
            Content::Text(wanted) if seen.is_file() => match std::fs::read_to_string(&self.path) {
                Ok(text) if text == *wanted => There::Same,
                Ok(text) if text.lines().take(MARK_LINES).any(|line| line.ends_with(MARK)) => {
                    There::Older
                }
                Ok(_) | Err(_) => There::Foreign,
            },
            Content::Text(_) => There::Foreign,
        }
    }

    fn foreign(&self) -> String {
        format!("{} is not hob's, and is left as it is", self.path.display())
    }

    /// Writes it, if `act`; says what was done, or would be.
    ///
    /// # Errors
    /// When something else lies there, or the system refuses; in words that name the path.
    pub(super) fn write(&self, act: bool) -> Result<String, String> {
        let path = self.path.display();
        let did = match self.there() {
            There::Foreign => return Err(self.foreign()),
            There::Same => return Ok(format!("unchanged   {path}")),
            There::Nothing | There::Older if !act => return Ok(format!("would write {path}")),
            There::Nothing => "written    ",
            There::Older => "replaced   ",
        };
        self.put().map_err(|error| format!("cannot write {path}: {error}"))?;
        Ok(format!("{did} {path}"))
    }

    fn put(&self) -> std::io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder)?;
        let beside = folder.join(format!(".hob-{}", std::process::id()));
        let made = match &self.content {
            Content::Text(text) => std::fs::write(&beside, text),
            Content::Link(to) => std::os::unix::fs::symlink(to, &beside),
        };
        made.and_then(|()| std::fs::rename(&beside, &self.path)).inspect_err(|_| {
            let _ = std::fs::remove_file(&beside);
        })
    }

    /// Takes it away, if `act`, and the folders that are empty then. `None` if it is not there.
    ///
    /// # Errors
    /// As [`File::write`].
    pub(super) fn remove(&self, act: bool) -> Result<Option<String>, String> {
        let path = self.path.display();
        match self.there() {
            There::Nothing => return Ok(None),
            There::Foreign => return Err(self.foreign()),
            There::Same | There::Older if !act => return Ok(Some(format!("would remove {path}"))),
            There::Same | There::Older => {}
        }
        std::fs::remove_file(&self.path).map_err(|why| format!("cannot remove {path}: {why}"))?;
        let above = self.path.ancestors().skip(1).take_while(|folder| **folder != self.base);
        for folder in above {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(Some(format!("removed     {path}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_hobs_is_neither_written_over_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().to_owned();
        let path = base.join("a/b/file");
        let file = |text: &str| File {
            path: path.clone(),
            content: Content::Text(format!("# {MARK}\n{text}")),
            base: base.clone(),
        };
        assert!(file("x").write(false).unwrap().starts_with("would write "));
        assert!(!base.join("a").exists());
        assert!(file("x").write(true).unwrap().starts_with("written "));
        assert!(file("x").write(true).unwrap().starts_with("unchanged "));
        assert!(file("y").write(true).unwrap().starts_with("replaced "));
        assert!(file("z").remove(false).unwrap().unwrap().starts_with("would remove "));
        assert!(file("z").remove(true).unwrap().unwrap().starts_with("removed "));
        assert!(!base.join("a").exists() && base.exists());
        assert_eq!(file("z").remove(true), Ok(None));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "mine\n").unwrap();
        assert!(file("x").write(true).unwrap_err().ends_with("is left as it is"));
        assert!(file("x").remove(true).unwrap_err().ends_with("is left as it is"));
        let link = File { content: Content::Link("b".into()), ..file("") };
        assert!(link.write(true).unwrap_err().ends_with("is left as it is"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
    }
}
