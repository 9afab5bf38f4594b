//! Reading a hooks directory: its names, what they lead to, and the identity of each file.

mod limits;

use std::ffi::{CStr, CString};

use hob_core::hooks::{Entry, Kind, Listed, Suffix, select};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, accessat, openat, statat,
};
use rustix::io;
use rustix::time::{ClockId, clock_gettime};

pub use limits::limits_of;

/// Where relative names begin.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// In this process's working directory.
    Own,
    /// In this directory.
    At(BorrowedFd<'a>),
}

impl Place<'_> {
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Place::Own => CWD,
            Place::At(fd) => *fd,
        }
    }
}

/// What makes a file this file with this content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    dev: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Identity {
        let nanos = |nanos| i64::try_from(nanos).unwrap_or(0);
        Identity {
            dev: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, nanos(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanos(stat.st_ctime_nsec)),
        }
    }

    /// Whether it was changed so lately that a further change might get the same stamp: within two
    /// ticks of the slowest kernel's clock.
    pub(crate) fn is_too_new(&self) -> bool {
        const TICKS_NS: i64 = 20_000_000;
        let now = clock_gettime(ClockId::Realtime);
        let seconds = now.tv_sec.saturating_sub(self.changed.0);
        let nanos = now.tv_nsec.saturating_sub(self.changed.1);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos) < TICKS_NS
    }

    /// Of what a name leads to.
    pub(crate) fn at(place: Place<'_>, path: &CStr) -> io::Result<Identity> {
        statat(place.fd(), path, AtFlags::empty()).map(|stat| Identity::of(&stat))
    }
}

/// A directory as it was listed.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The names of the hooks in order, and those of the others with why they do not run.
    pub listed: Listed,
    identities: Vec<Identity>,
}

impl Listing {
    /// Reads a directory. One that is not there is empty.
    pub fn read(place: Place<'_>, dir: &[u8], ignored: &[Suffix]) -> io::Result<Listing> {
        let name = CString::new(dir).map_err(|_| io::Errno::INVAL)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match openat(place.fd(), &name, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(io::Errno::NOENT) => return Ok(Listing::default()),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        let mut found = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let (kind, identity) = look(&folder, name);
            entries.push(Entry { name: name.to_bytes().to_vec(), kind });
            found.extend(identity.map(|identity| (name.to_bytes().to_vec(), identity)));
        }
        let listed = select(entries, ignored);
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let identity = |name: &Vec<u8>| {
            let at = found.binary_search_by(|(known, _)| known.cmp(name)).ok()?;
            Some(found[at].1)
        };
        let identities = listed.hooks.iter().filter_map(identity).collect();
        Ok(Listing { listed, identities })
    }

    /// How many hooks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.listed.hooks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.hooks.is_empty()
    }

    /// A hook's identity when it was listed.
    pub(crate) fn identity(&self, index: usize) -> Option<Identity> {
        self.identities.get(index).copied()
    }
}

/// What a name leads to, and if it is a hook, its identity.
fn look(folder: &OwnedFd, name: &CStr) -> (Kind, Option<Identity>) {
    let Ok(stat) = statat(folder, name, AtFlags::empty()) else { return (Kind::Nothing, None) };
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return (Kind::Other, None);
    }
    // By the rights that an execution would have; a mount without execution refuses too.
    match accessat(folder.as_fd(), name, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => (Kind::Executable, Some(Identity::of(&stat))),
        Err(_) => (Kind::Plain, None),
    }
}
