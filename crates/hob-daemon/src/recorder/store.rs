//! The ring on disk: segments `NNNNNNNN.ndjson`, the oldest removed when there are too many.
//!
//! Invariants:
//! - a segment is only appended to, each time with whole lines in one write, so two daemons (an
//!   old one that is being replaced, or one per socket directory) can share the place;
//! - no segment is begun beyond [`SEGMENT_BYTES_MAX`], and at most [`SEGMENTS_MAX`] stay;
//! - what a crash or a full disk cut short is ended with a line end before anything follows it,
//!   so it costs one line;
//! - the directory may vanish at any time: the next append makes it anew.
//!
//! Nothing is synced: a receipt survives the death of every process, and not that of the machine.
//! It waits for the disk, so only the writer thread calls it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::place::{Missing, PlaceError, open_receipts, our_uid};

/// A segment that has reached this is not appended to.
pub const SEGMENT_BYTES_MAX: u64 = 1024 * 1024;

/// How many segments stay.
pub const SEGMENTS_MAX: usize = 8;

/// How many names are tried for a new segment while other writers begin theirs.
const NAME_TRIES_MAX: u64 = 16;

const SUFFIX: &str = ".ndjson";

/// The writing end of the ring.
#[derive(Debug)]
pub(super) struct Store {
    state_dir: PathBuf,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    dir: OwnedFd,
    segment: Segment,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    file: OwnedFd,
}

/// What became of the lines of one append.
#[derive(Debug)]
pub(super) struct Appended {
    /// How many reached the file whole.
    pub(super) lines: u64,
    /// Why the others did not.
    pub(super) trouble: Option<StoreError>,
}

/// Why lines were not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StoreError {
    /// The place cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A segment cannot be opened or written.
    #[error("write-failed: {0}")]
    Write(Errno),
}

impl From<Errno> for StoreError {
    fn from(errno: Errno) -> StoreError {
        StoreError::Write(errno)
    }
}

impl Store {
    /// The ring under `state_dir`. Nothing is touched yet.
    pub(super) fn new(state_dir: &Path) -> Store {
        Store { state_dir: state_dir.to_owned(), open: None }
    }

    /// Checks, and makes if needed, the place and a segment to append to.
    pub(super) fn prepare(&mut self) -> Result<(), StoreError> {
        self.writable(0).map(|_| ())
    }

    /// Appends whole lines, each with its line end.
    pub(super) fn append(&mut self, lines: &[u8]) -> Appended {
        let mut rest = lines;
        while !rest.is_empty() {
            let first = line_end(rest);
            let appended = self.writable(first as u64).and_then(|(open, room)| {
                let chunk = &rest[..whole_lines_within(rest, room).max(first)];
                append_once(&open.segment.file, chunk).map_err(StoreError::Write)
            });
            match appended {
                Ok(count) => rest = &rest[count..],
                Err(trouble) => {
                    // The next append opens anew, and ends what may have been cut short here.
                    self.open = None;
                    let done = &lines[..lines.len() - rest.len()];
                    return Appended { lines: count_lines(done), trouble: Some(trouble) };
                }
            }
        }
        Appended { lines: count_lines(lines), trouble: None }
    }

    /// A segment with room for `bytes`, and its room. A line longer than a segment gets one of
    /// its own.
    fn writable(&mut self, bytes: u64) -> Result<(&Open, u64), StoreError> {
        let mut size = 0;
        if let Some(open) = &self.open {
            let stat = rustix::fs::fstat(&open.segment.file)?;
            size = stat.st_size.unsigned_abs();
            if stat.st_nlink == 0 {
                self.open = None;
            }
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let dir = open_receipts(&self.state_dir, Missing::Create)?
                    .ok_or(StoreError::Write(Errno::NOENT))?;
                let segment = newest_segment(&dir)?;
                size = rustix::fs::fstat(&segment.file)?.st_size.unsigned_abs();
                Open { dir, segment }
            }
        };
        let open = if size > 0 && size.saturating_add(bytes) > SEGMENT_BYTES_MAX {
            size = 0;
            let segment = begin_segment(&open.dir, open.segment.number + 1)?;
            remove_oldest(&open.dir)?;
            Open { dir: open.dir, segment }
        } else {
            open
        };
        Ok((self.open.insert(open), SEGMENT_BYTES_MAX.saturating_sub(size)))
    }
}

/// The numbers of the segments there are, the lowest first. Other files are left alone.
pub(super) fn segment_numbers(dir: &OwnedFd) -> Result<Vec<u64>, Errno> {
    let mut numbers = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        numbers.extend(entry?.file_name().to_str().ok().and_then(segment_number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The file name of a segment.
pub(super) fn segment_name(number: u64) -> String {
    format!("{number:08}{SUFFIX}")
}

fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let number = digits.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}

/// The newest segment, ready to be appended to; a new one if there is none that is ours.
fn newest_segment(dir: &OwnedFd) -> Result<Segment, Errno> {
    let Some(number) = segment_numbers(dir)?.pop() else {
        return begin_segment(dir, 1);
    };
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(dir, segment_name(number), flags, Mode::empty()) else {
        return begin_segment(dir, number + 1);
    };
    let stat = rustix::fs::fstat(&file)?;
    if !is_our_file(&stat) {
        return begin_segment(dir, number + 1);
    }
    end_torn_line(&file, &stat)?;
    Ok(Segment { number, file })
}

/// Whether it is a regular file of ours. A link or a device in a segment's place is not.
pub(crate) fn is_our_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_uid == our_uid()
}

fn end_torn_line(file: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
    let size = stat.st_size.unsigned_abs();
    let mut last = [b'\n'];
    if size > 0 {
        rustix::io::pread(file, &mut last, size - 1)?;
    }
    if last != [b'\n'] {
        rustix::io::write(file, b"\n")?;
    }
    Ok(())
}

fn begin_segment(dir: &OwnedFd, first: u64) -> Result<Segment, Errno> {
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC;
    for number in first..first.saturating_add(NAME_TRIES_MAX) {
        match rustix::fs::openat(dir, segment_name(number), flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return Ok(Segment { number, file }),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Err(Errno::EXIST)
}

fn remove_oldest(dir: &OwnedFd) -> Result<(), Errno> {
    let numbers = segment_numbers(dir)?;
    for number in &numbers[..numbers.len().saturating_sub(SEGMENTS_MAX)] {
        match rustix::fs::unlinkat(dir, segment_name(*number), AtFlags::empty()) {
            // Another daemon that shares the place may have removed it.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Writes what the system takes at once: all, but for a disk that is about to be full.
fn append_once(file: &OwnedFd, chunk: &[u8]) -> Result<usize, Errno> {
    match rustix::io::retry_on_intr(|| rustix::io::write(file, chunk))? {
        0 => Err(Errno::NOSPC),
        count => Ok(count),
    }
}

fn count_lines(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The length of the first line, with its line end.
fn line_end(lines: &[u8]) -> usize {
    lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |at| at + 1)
}

/// The length of the whole lines that fit into `room`.
fn whole_lines_within(lines: &[u8], room: u64) -> usize {
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(lines.len());
    lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::receipt;
    use super::super::{format, reader};
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn line(call: u64) -> Vec<u8> {
        let mut lines = Vec::new();
        format::encode(receipt(call), &mut lines).unwrap();
        lines
    }

    fn append(store: &mut Store, lines: &[u8]) {
        let appended = store.append(lines);
        assert_eq!(appended.trouble, None);
        assert_eq!(appended.lines, count_lines(lines));
    }

    /// The calls on disk, the newest first.
    fn calls(state_dir: &Path) -> Vec<u64> {
        reader::newest(state_dir).unwrap().map(|receipt| receipt.call).collect()
    }

    fn segments(state_dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(state_dir.join("receipts")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    #[test]
    fn segments_are_private_bounded_and_the_oldest_goes() {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::new(home.path());
        // Batches of 100 lines, so that the border of a segment falls inside a batch.
        let mut next = 0;
        let last = home.path().join("receipts").join(segment_name(11));
        while !last.exists() {
            let batch: Vec<u8> = (next..next + 100).flat_map(line).collect();
            append(&mut store, &batch);
            next += 100;
        }
        let kept = segments(home.path());
        assert_eq!(kept.len(), SEGMENTS_MAX);
        for path in &kept {
            let metadata = std::fs::metadata(path).unwrap();
            assert!(metadata.len() <= SEGMENT_BYTES_MAX, "{path:?}: {}", metadata.len());
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        }
        let calls = calls(home.path());
        assert_eq!(calls[0], next - 1);
        assert!(calls.windows(2).all(|pair| pair[0] == pair[1] + 1), "a gap in the ring");
    }

    #[test]
    fn a_line_that_a_crash_cut_short_costs_only_itself() {
        let home = tempfile::tempdir().unwrap();
        append(&mut Store::new(home.path()), &line(1));
        let segment = segments(home.path()).remove(0);
        let mut bytes = std::fs::read(&segment).unwrap();
        let torn = line(2);
        bytes.extend_from_slice(&torn[..torn.len() / 2]);
        std::fs::write(&segment, bytes).unwrap();
        assert_eq!(calls(home.path()), [1]);

        append(&mut Store::new(home.path()), &line(3));
        assert_eq!(calls(home.path()), [3, 1]);
        assert_eq!(segments(home.path()).len(), 1);
    }

    #[test]
    fn a_place_that_was_removed_is_made_anew() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("hob");
        let mut store = Store::new(&state);
        append(&mut store, &line(1));
        std::fs::remove_dir_all(&state).unwrap();
        append(&mut store, &line(2));
        assert_eq!(calls(&state), [2]);
    }

    #[test]
    fn two_writers_share_the_place_and_its_bound() {
        let home = tempfile::tempdir().unwrap();
        let mut stores = [Store::new(home.path()), Store::new(home.path())];
        let per_batch = 200;
        let batches = 60;
        for batch in 0..batches {
            let lines: Vec<u8> =
                (batch * per_batch..(batch + 1) * per_batch).flat_map(line).collect();
            append(&mut stores[usize::try_from(batch % 2).unwrap()], &lines);
        }
        let mut found = calls(home.path());
        found.sort_unstable();
        assert!(found.windows(2).all(|pair| pair[0] + 1 == pair[1]), "a line was lost or doubled");
        assert_eq!(found.last(), Some(&(batches * per_batch - 1)));
        assert!(segments(home.path()).len() <= SEGMENTS_MAX);
    }

    #[test]
    fn a_link_in_a_segments_place_is_neither_written_nor_read() {
        let home = tempfile::tempdir().unwrap();
        append(&mut Store::new(home.path()), &line(1));
        let target = home.path().join("target");
        std::fs::write(&target, line(9)).unwrap();
        symlink(&target, home.path().join("receipts").join(segment_name(2))).unwrap();
        append(&mut Store::new(home.path()), &line(2));
        assert_eq!(calls(home.path()), [2, 1]);
        assert_eq!(std::fs::read(&target).unwrap(), line(9));
    }

    #[test]
    fn other_files_in_the_directory_are_left_alone() {
        for name in ["00000001.ndjson.bak", "1.ndjson", "notes", "+0000001.ndjson"] {
            assert_eq!(segment_number(name), None, "{name}");
        }
        assert_eq!(segment_number("00000012.ndjson"), Some(12));
        assert_eq!(segment_number("123456789.ndjson"), Some(123_456_789));
    }
}
