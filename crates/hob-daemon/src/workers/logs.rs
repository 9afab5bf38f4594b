//! What handlers print: a file for each handler, in a folder of the daemon's directory.
//!
//! Invariants: a file is ours and no link; it begins anew with each daemon, and when it has grown over
//! its bound; a daemon that ends leaves none.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};

/// Where handlers print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// To a file for each, which `hob log --output` shows.
    Files,
    /// To this process's standard error, which whoever runs it reads.
    Stderr,
}

/// The folder's name.
const FOLDER: &str = "logs";
/// The end of a file's name.
const ENDING: &str = ".log";

/// Where a handler's prints are, by what its workers are told to load.
#[must_use]
pub(crate) fn path(directory: &Path, target: &[u8]) -> PathBuf {
    let digest = Sha256::digest(target);
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    directory.join(FOLDER).join(name + ENDING)
}

/// Opens it for a worker to print into.
pub(crate) fn open(directory: &Path, target: &[u8]) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::mkdir(directory.join(FOLDER), Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path(directory, target), flags, Mode::from_raw_mode(0o600))
}

/// All files of the folder.
fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory.join(FOLDER)).into_iter().flatten().flatten();
    let ours = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
    entries.map(|entry| entry.path()).filter(ours)
}

/// Empties those that have grown over so many bytes.
pub(crate) fn bound(directory: &Path, most: u64) {
    for path in files(directory) {
        if path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() > most)
            && let Ok(file) = std::fs::OpenOptions::new().write(true).open(path)
        {
            // A log that cannot be emptied is a large one, and no more.
            let _ = file.set_len(0);
        }
    }
}

/// Takes all of them away.
pub(crate) fn remove(directory: &Path) {
    for path in files(directory) {
        let _ = std::fs::remove_file(path);
    }
    // What a user has put there is the user's: only an empty folder goes.
    let _ = std::fs::remove_dir(directory.join(FOLDER));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn each_handler_has_a_file_which_is_bounded_and_taken_away() {
        let home = tempfile::tempdir().unwrap();
        let mut first = std::fs::File::from(open(home.path(), b"/a.py:f").unwrap());
        let mut other = std::fs::File::from(open(home.path(), b"/a.py:g").unwrap());
        first.write_all(b"much of it").unwrap();
        other.write_all(b"little").unwrap();
        bound(home.path(), 6);
        first.write_all(b"more").unwrap();
        let read = |target: &[u8]| std::fs::read_to_string(path(home.path(), target)).unwrap();
        assert_eq!((read(b"/a.py:f").as_str(), read(b"/a.py:g").as_str()), ("more", "little"));
        remove(home.path());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
