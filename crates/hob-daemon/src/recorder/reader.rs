//! Reads receipts from disk, the newest first, a block at a time from the end.
//!
//! It needs no daemon: `hob last` works after `hob stop`. It makes nothing and locks nothing; a
//! writer may append and remove segments meanwhile, and a line that it has not finished is skipped
//! as a torn one is. Its memory is bounded by one block and one line, whatever the files hold.

use std::os::fd::OwnedFd;
use std::path::Path;

use hob_core::receipt::Receipt;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::format::{self, LINE_BYTES_MAX, Skipped};
use super::place::{Missing, PlaceError, open_receipts};
use super::store::{is_our_file, segment_name, segment_numbers};

/// How much is read at a time: a few hundred receipts.
const BLOCK_BYTES: usize = 64 * 1024;

/// The receipts under `state_dir`, the newest first; none if there is no such directory.
pub fn newest(state_dir: &Path) -> Result<Newest, PlaceError> {
    let dir = open_receipts(state_dir, Missing::Tell)?;
    let segments = match &dir {
        None => Vec::new(),
        Some(dir) => segment_numbers(dir)
            .map_err(|errno| PlaceError::Unusable { path: state_dir.to_owned(), errno })?,
    };
    Ok(Newest { dir, segments, tail: None, newer: 0, torn: 0 })
}

/// The last `count` receipts, the newest first.
pub fn last(state_dir: &Path, count: usize) -> Result<Vec<Receipt>, PlaceError> {
    Ok(newest(state_dir)?.take(count).collect())
}

/// An iterator over receipts, the newest first.
#[derive(Debug)]
pub struct Newest {
    dir: Option<OwnedFd>,
    /// Segments that are not begun, the newest last.
    segments: Vec<u64>,
    tail: Option<Tail>,
    newer: u64,
    torn: u64,
}

impl Newest {
    /// How many lines were skipped because a newer build wrote them.
    #[must_use]
    pub fn newer(&self) -> u64 {
        self.newer
    }

    /// How many lines were skipped because they were cut short or damaged.
    #[must_use]
    pub fn torn(&self) -> u64 {
        self.torn
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.tail.as_mut().and_then(Tail::previous_line) {
                return Some(line);
            }
            let number = self.segments.pop()?;
            // A segment that was removed meanwhile, or cannot be read, is as good as none.
            self.tail = self.dir.as_ref().and_then(|dir| Tail::open(dir, number).ok().flatten());
        }
    }
}

impl Iterator for Newest {
    type Item = Receipt;

    fn next(&mut self) -> Option<Receipt> {
        loop {
            match format::decode(&self.next_line()?) {
                Ok(receipt) => return Some(receipt),
                Err(Skipped::Newer) => self.newer += 1,
                Err(Skipped::Torn) => self.torn += 1,
            }
        }
    }
}

/// One segment, read from its end.
#[derive(Debug)]
struct Tail {
    file: OwnedFd,
    /// Where the unread part ends.
    unread: u64,
    /// What was read and not given out; it begins at `unread`.
    held: Vec<u8>,
}

impl Tail {
    fn open(dir: &OwnedFd, number: u64) -> Result<Option<Tail>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, segment_name(number), flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        let unread = stat.st_size.unsigned_abs();
        Ok(is_our_file(&stat).then_some(Tail { file, unread, held: Vec::new() }))
    }

    /// The line before the ones that were given out. Empty lines are none.
    fn previous_line(&mut self) -> Option<Vec<u8>> {
        loop {
            while self.held.last() == Some(&b'\n') {
                self.held.pop();
            }
            let begin = self.held.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            match begin {
                Some(begin) => return Some(self.held.split_off(begin)),
                None if self.unread == 0 => {
                    let line = std::mem::take(&mut self.held);
                    return Some(line).filter(|line| !line.is_empty());
                }
                None => self.read_block()?,
            }
        }
    }

    /// Puts the block before `unread` in front of what is held. `None` if it cannot be read.
    fn read_block(&mut self) -> Option<()> {
        if self.held.len() > LINE_BYTES_MAX {
            // No line of ours. What is left of it comes out as one torn line.
            self.held.truncate(1);
        }
        let size = BLOCK_BYTES.min(usize::try_from(self.unread).unwrap_or(BLOCK_BYTES));
        let mut block = vec![0; size];
        let offset = self.unread - size as u64;
        let mut filled = 0;
        while filled < size {
            match rustix::io::pread(&self.file, &mut block[filled..], offset + filled as u64) {
                Ok(0) => return None,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        block.append(&mut self.held);
        self.held = block;
        self.unread = offset;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::receipt;
    use super::*;

    /// A state directory whose segments hold these bytes.
    fn state(segments: &[(&str, &[u8])]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let receipts = home.path().join("receipts");
        std::fs::create_dir(&receipts).unwrap();
        for (name, bytes) in segments {
            std::fs::write(receipts.join(name), bytes).unwrap();
        }
        home
    }

    fn lines(calls: std::ops::Range<u64>) -> Vec<u8> {
        let mut lines = Vec::new();
        for call in calls {
            format::encode(receipt(call), &mut lines).unwrap();
        }
        lines
    }

    #[test]
    fn no_directory_is_no_receipts() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(last(&home.path().join("hob"), 5).unwrap(), []);
        assert_eq!(last(home.path(), 5).unwrap(), []);
    }

    #[test]
    fn the_newest_come_first_across_segments_and_blocks() {
        let (old, new) = (lines(0..900), lines(900..1000));
        assert!(old.len() > 3 * BLOCK_BYTES, "the test needs lines across blocks");
        let home = state(&[("00000007.ndjson", &old), ("00000012.ndjson", &new)]);
        let calls: Vec<_> = newest(home.path()).unwrap().map(|receipt| receipt.call).collect();
        assert_eq!(calls, (0..1000).rev().collect::<Vec<_>>());
        let last: Vec<_> =
            last(home.path(), 101).unwrap().iter().map(|receipt| receipt.call).collect();
        assert_eq!(last, (899..1000).rev().collect::<Vec<_>>());
    }

    #[test]
    fn damage_is_skipped_and_counted_and_bounds_memory() {
        let mut bytes = lines(0..2);
        bytes.extend_from_slice(b"\n\nnot a receipt\n{\"schema\":\"hob.receipt/2\"}\n");
        bytes.extend(std::iter::repeat_n(b'x', 10 * LINE_BYTES_MAX));
        bytes.push(b'\n');
        bytes.extend(lines(2..3));
        bytes.extend_from_slice(&lines(3..4)[..40]);
        let home = state(&[("00000001.ndjson", &bytes)]);
        let mut newest = newest(home.path()).unwrap();
        let calls: Vec<_> = newest.by_ref().map(|receipt| receipt.call).collect();
        assert_eq!(calls, [2, 1, 0]);
        assert_eq!((newest.newer(), newest.torn()), (1, 3));
        let held = newest.tail.unwrap().held.capacity();
        assert!(held <= 3 * BLOCK_BYTES, "{held} bytes held");
    }

    #[test]
    fn a_pipe_in_a_segments_place_does_not_block() {
        let home = state(&[("00000001.ndjson", &lines(0..1))]);
        let pipe = home.path().join("receipts/00000002.ndjson");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(last(home.path(), 5).unwrap(), [receipt(0)]);
    }
}
