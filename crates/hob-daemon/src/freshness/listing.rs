//! What a directory holds of what matters: the entries that an import could find.
//!
//! Relevant are entries whose name up to the first dot is one of the names that were looked up
//! (found or not), path configuration (`.pth`, `.egg-link`), and the names of installed packages
//! (`*.dist-info`, `*.egg-info`), which programs list. All else may come and go: output files
//! beside a script, `__pycache__`, editors' swap files.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::identity::{Identity, Nanoseconds};

/// What became of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Its content, or what its name leads to.
    Edited,
    /// It is gone.
    Removed,
    /// It was not there before.
    Appeared,
    /// Nothing is known of it: the fingerprint was given up.
    Forgotten,
    /// Something was mounted or unmounted, so that its name may have led elsewhere for a while.
    Mounted,
}

/// How much of a directory one system call reads.
const READ_BYTES: usize = 32 * 1024;

/// Modules that every interpreter looks for when it starts, before anyone can note it, and what
/// makes a package of a directory that would be one portion of a namespace.
const ALWAYS: [&[u8]; 3] = [b"sitecustomize", b"usercustomize", b"__init__"];

/// The names that were looked up.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(BTreeSet<Vec<u8>>);

impl Names {
    /// From module names; of dotted ones every part counts.
    pub(super) fn new<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Names {
        let parts = names.into_iter().flat_map(|name| name.split(|byte| *byte == b'.'));
        let mut all: BTreeSet<Vec<u8>> = parts.map(<[u8]>::to_vec).collect();
        all.extend(ALWAYS.iter().map(|name| name.to_vec()));
        all.remove(&b""[..]);
        Names(all)
    }

    /// Whether an entry of this name could change what is loaded.
    pub(super) fn cover(&self, entry: &[u8]) -> bool {
        let stem = entry.split(|byte| *byte == b'.').next().unwrap_or(entry);
        self.0.contains(stem) || is_configuration(entry) || is_installation(entry)
    }
}

fn is_configuration(entry: &[u8]) -> bool {
    entry.ends_with(b".pth") || entry.ends_with(b".egg-link")
}

fn is_installation(entry: &[u8]) -> bool {
    let ends: [&[u8]; 3] = [b".dist-info", b".egg-info", b".gemspec"];
    ends.iter().any(|end| entry.ends_with(end))
}

/// One relevant entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    name: Vec<u8>,
    kind: Kind,
}

/// What an entry is, as far as an import could tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Directory,
    /// A link may be made anew under the same name: the inode tells.
    Link(u64),
    Other,
}

/// The relevant entries of a directory, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listing {
    entries: Vec<Entry>,
}

impl Listing {
    /// Reads the directory.
    pub(super) fn read(directory: &CStr, names: &Names) -> Result<Listing, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
        let mut room = Vec::with_capacity(READ_BYTES);
        let mut found = RawDir::new(&fd, room.spare_capacity_mut());
        let mut entries = Vec::new();
        while let Some(entry) = found.next() {
            let entry = entry?;
            let name = entry.file_name();
            if !names.cover(name.to_bytes()) {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                let stat = rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW);
                kind = stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode));
            }
            let kind = if kind == FileType::RegularFile {
                Kind::File
            } else if kind == FileType::Directory {
                Kind::Directory
            } else if kind == FileType::Symlink {
                Kind::Link(entry.ino())
            } else {
                Kind::Other
            };
            entries.push(Entry { name: name.to_bytes().to_vec(), kind });
        }
        entries.sort();
        Ok(Listing { entries })
    }

    /// The first relevant entry that changed at `since` or later.
    pub(super) fn newer(&self, directory: &CStr, since: Nanoseconds) -> Option<CString> {
        let mut paths = self.entries.iter().filter_map(|entry| inside(directory, &entry.name));
        paths.find(|path| {
            let stat = rustix::fs::lstat(path.as_c_str());
            stat.is_ok_and(|stat| Identity::from(&stat).changed() >= since)
        })
    }

    /// The first entry in which a newer listing differs, and how.
    pub(super) fn difference(&self, newer: &Listing) -> Option<(Vec<u8>, What)> {
        let lacks = |list: &Listing, entry: &Entry| {
            list.entries.binary_search_by(|other| other.name.cmp(&entry.name)).is_err()
        };
        let named = |entry: &Entry, what| (entry.name.clone(), what);
        if let Some(entry) = newer.entries.iter().find(|entry| lacks(self, entry)) {
            return Some(named(entry, What::Appeared));
        }
        if let Some(entry) = self.entries.iter().find(|entry| lacks(newer, entry)) {
            return Some(named(entry, What::Removed));
        }
        let mut pairs = self.entries.iter().zip(&newer.entries);
        let changed = pairs.find(|(old, new)| old != new);
        changed.map(|(_, entry)| named(entry, What::Edited))
    }

    /// The path configuration: every interpreter reads it when it starts, so its content counts.
    pub(super) fn configuration(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| entry.name.as_slice()).filter(|name| is_configuration(name))
    }
}

/// A path inside a directory.
pub(super) fn inside(directory: &CStr, name: &[u8]) -> Option<CString> {
    let mut path = directory.to_bytes().to_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    CString::new(path).ok()
}
