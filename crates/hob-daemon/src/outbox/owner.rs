//! Who has a user's outbox: the process that holds the lock of its file, as the kernel lists it.
//!
//! It opens nothing of the outbox, so that whoever looks is in nobody's way. Where the kernel
//! lists no locks, the owner is not known.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::store::{FILE, PLACE};

/// Where the outbox of this state directory is.
#[must_use]
pub fn place(state_dir: &Path) -> PathBuf {
    state_dir.join(PLACE).join(FILE)
}

/// The process that has the outbox of this state directory open.
#[must_use]
pub fn owner(state_dir: &Path) -> Option<u32> {
    let meant = std::fs::symlink_metadata(place(state_dir)).ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let holders = locks.lines().filter_map(|line| holder(line, meant.ino()));
    // Some file systems have another device number in the list than in the file's status.
    let mut holders = holders.filter(|pid| has_open(*pid, (meant.dev(), meant.ino())));
    holders.next()
}

/// Whose lock a line of the list is, if it is one of a whole file with this number:
/// `1: FLOCK  ADVISORY  WRITE 4711 fe:01:262146 0 EOF`.
fn holder(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    if words.next() != Some("FLOCK") {
        return None;
    }
    let pid = words.nth(2)?.parse().ok()?;
    let locked = words.next()?.rsplit(':').next()?;
    (locked.parse() == Ok(inode)).then_some(pid)
}

fn has_open(pid: u32, file: (u64, u64)) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut open = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    open.any(|each| (each.dev(), each.ino()) == file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_of_the_whole_of_this_file_names_its_holder() {
        let line = "1: FLOCK  ADVISORY  WRITE 4711 fe:01:262146 0 EOF";
        assert_eq!(holder(line, 262_146), Some(4711));
        assert_eq!(holder(line, 62_146), None);
        // One that waits for it stands behind an arrow.
        let waits = "1: -> FLOCK  ADVISORY  WRITE 4712 fe:01:262146 0 EOF";
        let others = "2: OFDLCK ADVISORY  WRITE -1 fe:01:262146 0 EOF";
        assert_eq!((holder(waits, 262_146), holder(others, 262_146)), (None, None));
    }
}
