//! The descriptors beyond 0 to 2 that whoever started this process left open for what it runs.
//!
//! Invariant: hob's own are close-on-exec, so that what is not is the caller's. Nothing here opens,
//! closes or changes any of these.

use std::path::PathBuf;

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::{self, Errno, FdFlags};

/// They, the lowest number first. `BADF`: one of 0 to 2 is closed.
pub fn beyond_stdio() -> io::Result<Vec<BorrowedFd<'static>>> {
    // First: what is opened to look might take its number.
    for stream in super::stdio() {
        io::fcntl_getfd(stream)?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(c"/proc/self/fd", flags, Mode::empty())?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&dir)? {
        // `.` and `..` are no numbers.
        let Some(number) = super::number(entry?.file_name().to_bytes(), 10) else { continue };
        let raw = i32::try_from(number).map_err(|_| Errno::BADF)?;
        // SAFETY: only asked for its flags, which fails where it is closed meanwhile; and what is
        // handed out is no one's in this process, so that nobody closes it.
        let fd = unsafe { BorrowedFd::borrow_raw(raw) };
        let is_left = io::fcntl_getfd(fd).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
        if raw > 2 && is_left {
            found.push(fd);
        }
    }
    found.sort_unstable_by_key(BorrowedFd::as_raw_fd);
    Ok(found)
}

/// Where a descriptor of this process leads, as the kernel names it.
#[must_use]
pub fn target(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    #[test]
    fn what_a_program_would_inherit_is_listed_and_nothing_else() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let ours = io::fcntl_dupfd_cloexec(&file, 700).unwrap();
        let left = io::fcntl_dupfd_cloexec(&file, 701).unwrap();
        io::fcntl_setfd(&left, FdFlags::empty()).unwrap();
        let found = beyond_stdio().unwrap();
        let numbers: Vec<_> = found.iter().map(BorrowedFd::as_raw_fd).collect();
        assert!(numbers.contains(&left.as_raw_fd()), "{numbers:?}");
        assert!(!numbers.contains(&ours.as_raw_fd()), "{numbers:?}");
        assert!(numbers.is_sorted() && numbers[0] > 2, "{numbers:?}");
        assert_eq!(target(left.as_fd()), Some("/dev/null".into()));
    }
}
