//! A ring, copied by who did not write it.

use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{HEAD_BYTES, MAGIC, PAIRS, Pair, RECORD_BYTES, RECORDS, at, boot};

/// What a ring had when it was copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    /// The process that wrote it.
    pub process: u32,
    /// When it was begun.
    pub first: Pair,
    /// The newest pairs, in order; at least one.
    pub pairs: Vec<Pair>,
    /// The records, the oldest first: a stamp and three words.
    pub records: Vec<[u64; 4]>,
    /// How many were written in all.
    pub written: u64,
    /// How many of those that were there were overwritten while it was copied.
    pub lost: u64,
}

/// Why a ring was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It cannot be opened, or is not a file of ours.
    Unreadable,
    /// It was written by a build with another layout, or is no ring.
    OtherBuild,
    /// It is shorter than a ring is.
    Truncated,
    /// It is of before the machine was started: its clock means nothing any more.
    OtherBoot,
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unread::Unreadable => "it cannot be read, or is not a file of this user",
            Unread::OtherBuild => "it was written by another build of hob",
            Unread::Truncated => "it was cut short",
            Unread::OtherBoot => "it is of before the machine was started",
        })
    }
}

/// Copies a ring, which may be written to meanwhile, or be of a process that has ended.
///
/// # Errors
/// If it is not what it is to be.
pub fn read(path: &Path) -> Result<Copied, Unread> {
    Follower::open(path)?.copy()
}

/// A ring that is copied again and again: each time what is new. It goes on when the file was
/// removed.
#[derive(Debug)]
pub struct Follower {
    file: OwnedFd,
    /// How many records were given out or passed over.
    seen: u64,
}

impl Follower {
    /// Opens a ring; what it has now is new.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a file of this user.
    pub fn open(path: &Path) -> Result<Follower, Unread> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|_| Unread::Unreadable)?;
        let stat = rustix::fs::fstat(&file).map_err(|_| Unread::Unreadable)?;
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        if !is_file || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Unread::Unreadable);
        }
        Ok(Follower { file, seen: 0 })
    }

    /// Which file it is, by its number.
    #[must_use]
    pub fn inode(&self) -> u64 {
        rustix::fs::fstat(&self.file).map_or(0, |stat| stat.st_ino)
    }

    /// Passes over what is there.
    ///
    /// # Errors
    /// If it is not what it is to be.
    pub fn skip(&mut self) -> Result<(), Unread> {
        self.seen = self.head()?[at::COUNT];
        Ok(())
    }

    /// What was written since the last time; `lost`: how many of that were overwritten before.
    ///
    /// # Errors
    /// If it is not what it is to be.
    pub fn news(&mut self) -> Result<Copied, Unread> {
        let mut copied =
            if self.head()?[at::COUNT] == self.seen { Copied::default() } else { self.copy()? };
        if copied.records.is_empty() {
            return Ok(copied);
        }
        let first = copied.written.saturating_sub(copied.records.len() as u64);
        let known = usize::try_from(self.seen.saturating_sub(first)).unwrap_or(usize::MAX);
        copied.records.drain(..known.min(copied.records.len()));
        copied.lost = first.saturating_sub(self.seen);
        self.seen = copied.written;
        Ok(copied)
    }

    fn head(&self) -> Result<Vec<u64>, Unread> {
        let head = words(&self.file, 0, HEAD_BYTES)?;
        if head[at::MAGIC] != MAGIC || head[at::RECORDS] != RECORDS as u64 {
            return Err(Unread::OtherBuild);
        }
        if head[at::BOOT..at::BOOT + 2] != boot() {
            return Err(Unread::OtherBoot);
        }
        Ok(head)
    }

    fn copy(&self) -> Result<Copied, Unread> {
        let before = self.head()?;
        let records = words(&self.file, HEAD_BYTES, RECORDS * RECORD_BYTES)?;
        let after = words(&self.file, 0, HEAD_BYTES)?;
        Ok(copied(&before, &records, &after))
    }
}

fn words(file: impl AsFd, from: usize, bytes: usize) -> Result<Vec<u64>, Unread> {
    let mut buffer = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        match rustix::io::pread(&file, &mut buffer[filled..], (from + filled) as u64) {
            Ok(0) => return Err(Unread::Truncated),
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(_) => return Err(Unread::Unreadable),
        }
    }
    Ok(buffer.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}

/// What of a copy is whole, by the head before and after it was made.
pub(super) fn copied(before: &[u64], records: &[u64], after: &[u64]) -> Copied {
    let (begun, ended) = (before[at::COUNT], after[at::COUNT]);
    // The one that comes next may have been half over the oldest.
    let oldest = |count: u64| count.saturating_add(1).saturating_sub(RECORDS as u64);
    let (whole, lost) = (oldest(ended), oldest(ended) - oldest(begun).min(oldest(ended)));
    let record = |number: u64| {
        let place = usize::try_from(number).unwrap_or_default() % RECORDS * 4;
        [records[place], records[place + 1], records[place + 2], records[place + 3]]
    };
    let pair = |place: usize| Pair {
        stamp: before[place],
        monotonic_ns: before[place + 1],
        real_ns: before[place + 2],
    };
    let pairs = before[at::PAIRS];
    let kept = pairs.saturating_sub(PAIRS as u64 - 1)..pairs;
    let place = |number: u64| at::PAIR + usize::try_from(number).unwrap_or_default() % PAIRS * 3;
    Copied {
        process: u32::try_from(before[at::PROCESS]).unwrap_or_default(),
        first: pair(at::FIRST_PAIR),
        pairs: kept.map(|number| pair(place(number))).collect(),
        // Whatever the counts say, there are no more.
        records: (whole.max(begun.saturating_sub(RECORDS as u64))..begun).map(record).collect(),
        written: begun,
        lost: lost.min(begun.saturating_sub(oldest(begun))),
    }
}
