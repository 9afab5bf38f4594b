//! The sums of `gain` on disk: `gain/YYYY-MM-DD.ndjson`, one row a line.
//!
//! Invariants: a file is replaced whole, by renaming, so a reader never sees half of one and a
//! death at any moment leaves the old or the new one; what a writer adds is added to what the file
//! holds, under a lock, so two daemons that share the place lose nothing of each other; at most
//! [`DAYS_MAX`] files stay. Nothing is synced, as with receipts. Only the writer thread writes.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::gain::{Day, PROGRAMS_PER_DAY_MAX, Row};
use super::place::{GAIN_NAME, Missing, PlaceError, open_place};
use super::store::is_our_file;

/// How many days are kept: a quarter of a year.
pub const DAYS_MAX: usize = 92;

/// Days whose sums wait for the disk. More than two only if it has been full for days.
const WAITING_DAYS_MAX: usize = 3;

/// How many days are looked back for how long programs took cold.
const COLD_DAYS: usize = 8;

/// A larger file is none of ours.
const FILE_BYTES_MAX: u64 = PROGRAMS_PER_DAY_MAX as u64 * 16 * 1024;

/// How often, and how far apart, the lock is tried for.
const LOCK_TRIES_MAX: u32 = 50;
/// See there.
const LOCK_TRY: Duration = Duration::from_millis(2);

const SUFFIX: &str = ".ndjson";

/// The name of what becomes a day's file.
const NEW_NAME: &str = "new";

/// The sums that are not on disk yet.
#[derive(Debug)]
pub(super) struct Sums {
    state_dir: PathBuf,
    waiting: BTreeMap<String, Day>,
}

impl Sums {
    /// Nothing yet.
    pub(super) fn new(state_dir: &Path) -> Sums {
        Sums { state_dir: state_dir.to_owned(), waiting: BTreeMap::new() }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, day: String, row: Row) {
        self.waiting.entry(day).or_default().add(row);
        while self.waiting.len() > WAITING_DAYS_MAX {
            self.waiting.pop_first();
        }
    }

    /// Puts all on disk. What does not get there stays, for the next time.
    pub(super) fn save(&mut self) -> Result<(), PlaceError> {
        while let Some((name, day)) = self.waiting.first_key_value() {
            let unusable = |errno| PlaceError::Unusable { path: self.state_dir.clone(), errno };
            let dir = open_place(&self.state_dir, GAIN_NAME, Missing::Create)?
                .ok_or(unusable(Errno::NOENT))?;
            save_day(&dir, name, day).map_err(unusable)?;
            self.waiting.pop_first();
        }
        Ok(())
    }
}

/// Adds a day's sums to its file.
fn save_day(dir: &OwnedFd, name: &str, day: &Day) -> Result<(), Errno> {
    lock(dir)?;
    let file_name = format!("{name}{SUFFIX}");
    let known = read_day(dir.as_fd(), &file_name)?;
    let is_new = known.is_none();
    let mut sum = known.unwrap_or_default();
    for row in day.rows() {
        sum.add(row.clone());
    }
    let mut lines = Vec::new();
    for row in sum.rows() {
        // As with receipts: a row has only string keys, and a vector takes every write.
        if serde_json::to_writer(&mut lines, row).is_ok() {
            lines.push(b'\n');
        }
    }
    replace(dir.as_fd(), &file_name, &lines)?;
    if is_new {
        remove_oldest(dir)?;
    }
    Ok(())
}

/// Locks the place until the directory is closed. Another daemon holds it for a millisecond; who
/// holds it for longer is no daemon, and the sums wait for their next time.
fn lock(dir: &OwnedFd) -> Result<(), Errno> {
    for _ in 0..LOCK_TRIES_MAX {
        match rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_TRY),
            locked => return locked,
        }
    }
    Err(Errno::WOULDBLOCK)
}

/// Puts a file with this content in the place of the one of that name.
fn replace(dir: BorrowedFd<'_>, name: &str, content: &[u8]) -> Result<(), Errno> {
    match rustix::fs::unlinkat(dir, NEW_NAME, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, NEW_NAME, flags, Mode::RUSR | Mode::WUSR)?;
    let mut rest = content;
    while !rest.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))? {
            0 => return Err(Errno::NOSPC),
            count => rest = &rest[count..],
        }
    }
    rustix::fs::renameat(dir, NEW_NAME, dir, name)
}

/// The sums of a file; `None` if there is none. A line of a newer build, or a damaged one, is
/// left out.
fn read_day(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Day>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let stat = rustix::fs::fstat(&file)?;
    if !is_our_file(&stat) || stat.st_size.unsigned_abs() > FILE_BYTES_MAX {
        return Err(Errno::PERM);
    }
    let mut text = Vec::new();
    let mut file = std::io::Read::take(std::fs::File::from(file), FILE_BYTES_MAX);
    std::io::Read::read_to_end(&mut file, &mut text)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let mut day = Day::default();
    for row in text.split(|byte| *byte == b'\n').filter_map(Row::read) {
        day.add(row);
    }
    Ok(Some(day))
}

/// The days there are, the oldest first. Other files are left alone.
fn day_names(dir: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let day = entry.file_name().to_str().ok().and_then(|name| name.strip_suffix(SUFFIX));
        names.extend(day.filter(|day| is_day(day)).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether it is written `2026-11-21`.
fn is_day(text: &str) -> bool {
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(shape)
}

fn remove_oldest(dir: &OwnedFd) -> Result<(), Errno> {
    let names = day_names(dir)?;
    for name in &names[..names.len().saturating_sub(DAYS_MAX)] {
        match rustix::fs::unlinkat(dir, format!("{name}{SUFFIX}"), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// The sums of the newest `count` days that have any, the oldest first.
pub fn newest(state_dir: &Path, count: usize) -> Result<Vec<(String, Day)>, PlaceError> {
    let unusable = |errno| PlaceError::Unusable { path: state_dir.to_owned(), errno };
    let Some(dir) = open_place(state_dir, GAIN_NAME, Missing::Tell)? else {
        return Ok(Vec::new());
    };
    let names = day_names(&dir).map_err(unusable)?;
    let mut days = Vec::new();
    for name in names.into_iter().rev().take(count) {
        // One that cannot be read is as good as none.
        if let Ok(Some(day)) = read_day(dir.as_fd(), &format!("{name}{SUFFIX}")) {
            days.push((name, day));
        }
    }
    days.reverse();
    Ok(days)
}

/// How long each program's newest cold run took, by the program's `id`.
pub(super) fn cold_times(state_dir: &Path) -> HashMap<String, u64> {
    let mut times = HashMap::new();
    for (_, day) in newest(state_dir, COLD_DAYS).unwrap_or_default() {
        for row in day.rows() {
            if let Some(cold_us) = row.cold_us {
                times.insert(row.id.clone(), cold_us);
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::receipt;
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn add(sums: &mut Sums, day: &str, calls: u64) {
        for call in 0..calls {
            let mut receipt = receipt(call);
            receipt.at.replace_range(..10, day);
            let (day, row) = Row::of(&receipt).unwrap();
            sums.add(day, row);
        }
    }

    fn warm(state_dir: &Path) -> Vec<(String, u64)> {
        let days = newest(state_dir, usize::MAX).unwrap();
        days.into_iter().map(|(name, day)| (name, day.rows().map(|row| row.warm).sum())).collect()
    }

    #[test]
    fn sums_of_several_writers_add_up() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut sums = Sums::new(home.path());
                    for _ in 0..25 {
                        add(&mut sums, "2026-11-21", 2);
                        add(&mut sums, "2026-11-22", 1);
                        // Who does not get the lock in time keeps what it has.
                        while sums.save().is_err() {}
                    }
                });
            }
        });
        let want = [("2026-11-21".to_owned(), 200), ("2026-11-22".to_owned(), 100)];
        assert_eq!(warm(home.path()), want);
        assert_eq!(cold_times(home.path()), HashMap::from([("c0ffee".to_owned(), 45_000)]));
    }

    #[test]
    fn files_are_private_and_the_oldest_days_go() {
        let home = tempfile::tempdir().unwrap();
        let mut sums = Sums::new(home.path());
        for number in 0..100 {
            add(&mut sums, &format!("2026-{:02}-{:02}", 1 + number / 25, 1 + number % 25), 1);
            sums.save().unwrap();
        }
        let days = warm(home.path());
        assert_eq!((days.len(), days[0].0.as_str()), (DAYS_MAX, "2026-01-09"));
        let gain = home.path().join("gain");
        for entry in std::fs::read_dir(&gain).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(std::fs::metadata(&gain).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(&gain).unwrap().count(), DAYS_MAX);
    }

    #[test]
    fn a_link_in_a_days_place_is_neither_read_nor_written() {
        let home = tempfile::tempdir().unwrap();
        let mut sums = Sums::new(home.path());
        add(&mut sums, "2026-11-20", 1);
        sums.save().unwrap();
        let target = home.path().join("target");
        std::fs::write(&target, "").unwrap();
        symlink(&target, home.path().join("gain/2026-11-21.ndjson")).unwrap();
        add(&mut sums, "2026-11-21", 1);
        sums.save().unwrap_err();
        assert_eq!(std::fs::read(&target).unwrap(), b"");
        assert_eq!(warm(home.path()).len(), 1);
        // It was kept, and gets there when the place is free.
        std::fs::remove_file(home.path().join("gain/2026-11-21.ndjson")).unwrap();
        sums.save().unwrap();
        assert_eq!(warm(home.path()).len(), 2);
    }

    #[test]
    fn a_damaged_line_costs_its_row_and_no_other() {
        let home = tempfile::tempdir().unwrap();
        let mut sums = Sums::new(home.path());
        add(&mut sums, "2026-11-21", 3);
        sums.save().unwrap();
        let path = home.path().join("gain/2026-11-21.ndjson");
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"schema\":\"hob.gain-day/1\",\"id\"\n{}\n");
        std::fs::write(&path, text).unwrap();
        add(&mut sums, "2026-11-21", 1);
        sums.save().unwrap();
        assert_eq!(warm(home.path()), [("2026-11-21".to_owned(), 4)]);
    }

    #[test]
    fn other_files_are_left_alone() {
        for name in ["2026-11-2", "2026/11/21", "new", "2026-11-21x"] {
            assert!(!is_day(name), "{name}");
        }
        assert!(is_day("2026-11-21"));
    }
}
