//! What was where before a process began to load it.
//!
//! A directory, a link or a mount that is switched while a process loads takes old files to a name:
//! nothing of them is young, and half of what was loaded came from elsewhere. So what is known to be
//! loaded is looked at before the process is started, and each step of a name afterwards.

use std::collections::HashSet;
use std::ffi::CString;

use rustix::fs::FileType;

use super::identity::{self, Identity, Nanoseconds};

/// What was known to be loaded, as it was before.
#[derive(Debug, Default)]
pub(crate) struct Before {
    files: Vec<(CString, Option<Identity>)>,
    /// Each with its device and its number; it may get other entries meanwhile.
    directories: Vec<(CString, Option<(u64, u64)>)>,
}

impl Before {
    /// Looks at what is expected to be loaded.
    pub(crate) fn look<'a>(
        files: impl Iterator<Item = &'a Vec<u8>>,
        directories: impl Iterator<Item = &'a Vec<u8>>,
    ) -> Before {
        let name = |path: &Vec<u8>| CString::new(path.as_slice()).ok();
        let files = files.filter_map(name).map(|path| {
            let found = Identity::of(&path);
            (path, found)
        });
        let directories = directories.filter_map(name).map(|path| {
            let found = place(&path);
            (path, found)
        });
        Before { files: files.collect(), directories: directories.collect() }
    }

    /// What is not what it was before, of the files and directories that count.
    pub(super) fn changed(
        &self,
        is_file: impl Fn(&[u8]) -> bool,
        is_searched: impl Fn(&[u8]) -> bool,
    ) -> Option<&[u8]> {
        let files = self.files.iter().filter(|(path, _)| is_file(path.to_bytes()));
        let mut edited = files.filter(|(path, then)| Identity::of(path) != *then);
        let directories = self.directories.iter().filter(|(path, _)| is_searched(path.to_bytes()));
        let mut switched = directories.filter(|(path, then)| place(path) != *then);
        let edited = edited.next().map(|(path, _)| path.to_bytes());
        edited.or_else(|| switched.next().map(|(path, _)| path.to_bytes()))
    }
}

/// A step on the way to one of these that was put there since: a link that is young, or a directory
/// that has changed later than its entries have, as by a rename.
pub(super) fn young_step<'a>(
    paths: impl Iterator<Item = &'a Vec<u8>>,
    since: Nanoseconds,
) -> Option<&'a [u8]> {
    let mut known: HashSet<&[u8]> = HashSet::new();
    for path in paths {
        let slashes = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
        for end in slashes.map(|(at, _)| at).chain([path.len()]) {
            let step = &path[..end];
            if known.insert(step) && is_young(step, since) {
                return Some(step);
            }
        }
    }
    None
}

fn is_young(step: &[u8], since: Nanoseconds) -> bool {
    let Ok(path) = CString::new(step) else { return false };
    let Ok(stat) = rustix::fs::lstat(&path) else { return false };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let identity = Identity::from(&stat);
    let (changed, modified) = (identity.changed(), identity.modified());
    let is_switched = kind == FileType::Directory && changed > modified;
    changed >= since && (kind == FileType::Symlink || is_switched)
}

fn place(path: &CString) -> Option<(u64, u64)> {
    identity::look(path).map(|stat| (stat.st_dev, stat.st_ino))
}
