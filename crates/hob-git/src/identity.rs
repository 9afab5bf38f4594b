//! By which it shows that a repository or a file is still the same.

use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, StatxFlags, statx};

/// Which repository it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    pub(crate) born: (i64, u32),
}

/// By which it shows whether a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: (i64, u32),
    changed: (i64, u32),
}

/// The stamp of a file that is there.
pub(crate) fn stamp(dir: BorrowedFd<'_>, name: &str) -> Option<Stamp> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let seen = statx(dir, name, flags, StatxFlags::BASIC_STATS).ok()?;
    Some(Stamp {
        inode: seen.stx_ino,
        size: seen.stx_size,
        modified: (seen.stx_mtime.tv_sec, seen.stx_mtime.tv_nsec),
        changed: (seen.stx_ctime.tv_sec, seen.stx_ctime.tv_nsec),
    })
}
