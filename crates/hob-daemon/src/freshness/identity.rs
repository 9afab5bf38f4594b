//! What a file or directory is, from one `stat`: enough to notice every way in which its content
//! can come to differ.
//!
//! The change time counts beside the modification time, since no program can set it back: a tool
//! that restores times (rsync, tar, touch) is noticed too.

use std::ffi::CStr;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// How far behind the clock the kernel's time stamps may lie: they are taken from a tick, and
/// ticks are at most 10 ms apart. A stamp older than this cannot be given out again.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Nanoseconds since the epoch, before it negative.
pub(super) type Nanoseconds = i128;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: i64,
    mode: u32,
    modified: Nanoseconds,
    changed: Nanoseconds,
}

impl Identity {
    /// What the path leads to, links followed. `None`: nothing is there.
    pub(super) fn of(path: &CStr) -> Option<Identity> {
        look(path).map(|stat| Identity::from(&stat))
    }

    /// The change time.
    pub(super) fn changed(&self) -> Nanoseconds {
        self.changed
    }

    /// The modification time.
    pub(super) fn modified(&self) -> Nanoseconds {
        self.modified
    }
}

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Identity {
        let join = |seconds: Nanoseconds, rest: Nanoseconds| seconds * 1_000_000_000 + rest;
        Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            mode: stat.st_mode,
            modified: join(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed: join(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        }
    }
}

/// One `stat`. What cannot be looked at cannot be loaded either, so every error is an absence.
pub(super) fn look(path: &CStr) -> Option<Stat> {
    loop {
        match rustix::fs::stat(path) {
            Ok(stat) => return Some(stat),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Whether it is a directory.
pub(super) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// A time of the clock as the kernel stamps files.
pub(super) fn nanoseconds(time: SystemTime) -> Nanoseconds {
    let signed =
        |span: Duration| Nanoseconds::try_from(span.as_nanos()).unwrap_or(Nanoseconds::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => signed(after),
        Err(before) => -signed(before.duration()),
    }
}

/// The stamp from which on a change may have gone unseen by someone who looked at `time`.
pub(super) fn doubtful_from(time: SystemTime) -> Nanoseconds {
    nanoseconds(time.checked_sub(TICK).unwrap_or(time))
}
