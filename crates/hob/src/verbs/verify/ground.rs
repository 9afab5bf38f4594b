//! The place where worlds are made: homes, directories, links and inputs in one private directory
//! below the temporary one. It goes with the verification.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use super::files;

/// What the stand-in for a program says.
const STAND_IN: &str =
    "print('this is not the program: a link has led here before it was moved')\n";

/// The place.
#[derive(Debug)]
pub(super) struct Ground {
    base: PathBuf,
}

impl Ground {
    pub(super) fn new() -> io::Result<Ground> {
        // As the kernel names it, so that nothing in it is called through a link by chance.
        let base = files::private_directory()?;
        Ok(Ground { base: base.canonicalize()? })
    }

    /// A directory in it.
    pub(super) fn directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.base.join(name);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(path)
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str, text: &[u8]) -> io::Result<PathBuf> {
        let path = self.base.join(name);
        if let Some(parent) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        fs::write(&path, text)?;
        Ok(path)
    }

    /// A home with a site directory of the user's own: for each Python that it may be.
    pub(super) fn home_with_site(&self) -> io::Result<PathBuf> {
        let home = self.directory("home-site")?;
        for minor in PYTHON_MINORS {
            let below = format!("home-site/.local/lib/python3.{minor}/site-packages");
            self.file(&format!("{below}/hob_verify_site.py"), b"\"\"\"Of no use.\"\"\"\n")?;
        }
        Ok(home)
    }

    /// A link to a file, by which a program is called.
    pub(super) fn link(&self, below: &str, target: &Path) -> io::Result<PathBuf> {
        let link = self.directory(below)?.join(file_name(target)?);
        self.lead(&link, target)?;
        Ok(link)
    }

    /// Lets a link lead elsewhere, at once.
    pub(super) fn lead(&self, link: &Path, target: &Path) -> io::Result<()> {
        let new = link.with_extension("new");
        symlink(target, &new)?;
        fs::rename(&new, link)
    }

    /// A script that stands where a program's link leads before it is moved: run by the same
    /// interpreter.
    pub(super) fn stand_in(&self, program: &Path) -> io::Result<PathBuf> {
        let text = fs::read(program)?;
        let first = text.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let first = if first.starts_with(b"#!") { first } else { b"" };
        let name = Path::new("stand-in").join(file_name(program)?);
        let path = self.file(&name.to_string_lossy(), &[first, STAND_IN.as_bytes()].concat())?;
        fs::set_permissions(&path, fs::metadata(program)?.permissions())?;
        Ok(path)
    }

    /// Whether a directory lies in it.
    pub(super) fn holds(&self, directory: &Path) -> bool {
        directory.starts_with(&self.base)
    }

    /// Empties a directory in it.
    pub(super) fn empty(&self, directory: &Path) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Versions of Python, 3.N, that have a site directory of the user's.
const PYTHON_MINORS: std::ops::Range<u32> = 9..30;

fn file_name(path: &Path) -> io::Result<&std::ffi::OsStr> {
    path.file_name().ok_or_else(|| io::Error::other("it has no name"))
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What cannot be removed lies in the directory for temporary files, and is private.
        let _ = fs::remove_dir_all(&self.base);
    }
}
