//! The descriptors that whoever started this process left open for what it runs.
//!
//! Invariant: hob's own are close-on-exec, so that what is not is the caller's. Nothing here closes any
//! of these. A process that is to keep none marks them: `inherit_none_from`.

use std::mem::MaybeUninit;
use std::path::PathBuf;

use rustix::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use rustix::fs::{Dir, Mode, OFlags, RawDir};
use rustix::io::{self, FdFlags};

/// Up to here numbers are tried one by one, which is quicker than a listing: the kernel makes a file
/// of each entry of that.
const TRIED_MAX: i32 = 256;

/// What a process was started with. Looked at before anything else is opened, which would take the
/// number of one that is closed.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Which of 0 to 2 are closed: bit by bit from the lowest on.
    pub closed: u8,
    /// Those beyond 0 to 2, the lowest number first.
    pub beyond: Vec<BorrowedFd<'static>>,
}

impl Inherited {
    /// Looks at this process's own, which has one thread. `own` beyond 0 to 2 need not be looked
    /// at, since they are hob's.
    pub fn look(own: u64) -> io::Result<Inherited> {
        let closed = (0..3).filter(|stream| flags(*stream).is_none());
        let closed = closed.fold(0, |closed, stream| closed | 1 << stream);
        let count = super::open_descriptors()? + u64::from(u8::count_ones(closed));
        let beyond = if count == own + 3 { Vec::new() } else { beyond(count - 3)? };
        Ok(Inherited { closed, beyond })
    }

    /// Those beyond 0 to 2, where other threads may open and close descriptors meanwhile, so that
    /// their number tells nothing. Not which of 0 to 2 are closed.
    pub fn look_beside_threads() -> io::Result<Inherited> {
        Ok(Inherited { closed: 0, beyond: beyond(u64::MAX)? })
    }

    /// Opens `/dev/null` for those of 0 to 2 that are closed: whatever this process opens later would
    /// get their numbers. A program executed here finds them closed.
    pub fn fill(&self) -> io::Result<()> {
        for _ in 0..u8::count_ones(self.closed) {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            // The lowest number that is free is the next closed one's. It is never given back.
            let _ = rustix::fs::open(c"/dev/null", flags, Mode::empty())?.into_raw_fd();
        }
        Ok(())
    }
}

/// Those of the `left` descriptors beyond 0 to 2 that a program executed here would have, too.
#[cold]
fn beyond(mut left: u64) -> io::Result<Vec<BorrowedFd<'static>>> {
    let mut found = Vec::new();
    let mut note = |raw| {
        let flags = flags(raw);
        if flags.is_some_and(|flags| !flags.contains(FdFlags::CLOEXEC)) {
            // SAFETY: it is no one's in this process, so that nobody closes it.
            found.push(unsafe { BorrowedFd::borrow_raw(raw) });
        }
        flags.is_some()
    };
    for raw in 3..TRIED_MAX {
        left -= u64::from(note(raw));
        if left == 0 {
            return Ok(found);
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(c"/proc/self/fd", flags, Mode::empty())?;
    let mut higher = Vec::new();
    for entry in Dir::read_from(&directory)? {
        // `.` and `..` are no numbers.
        let raw = super::number(entry?.file_name().to_bytes(), 10).map(i32::try_from);
        higher.extend(raw.and_then(Result::ok).filter(|raw| *raw >= TRIED_MAX));
    }
    drop(directory);
    higher.sort_unstable();
    for raw in higher {
        note(raw);
    }
    Ok(found)
}

/// Where what is open cannot be listed, up to here each number is marked: some milliseconds.
const MARKED_MAX: i32 = 1 << 16;

/// Marks every descriptor from `first` on close-on-exec: the caller's own too, of which a daemon
/// that kept one would hold a lock or a pipe for as long as it lives. Allocates nothing, and closes
/// none under an owner's feet.
pub fn inherit_none_from(first: u32) {
    // SAFETY: only marks descriptors.
    let in_one = unsafe {
        libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) == 0
    };
    // A kernel before 5.11, or a filter.
    if !in_one {
        let first = first.cast_signed();
        if mark_listed(first).is_err() {
            (first..MARKED_MAX).for_each(mark);
        }
    }
}

/// Marks what is listed.
fn mark_listed(first: i32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(c"/proc/self/fd", flags, Mode::empty())?;
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&directory, &mut room);
    while let Some(entry) = entries.next() {
        // `.` and `..` are no numbers.
        let raw = super::number(entry?.file_name().to_bytes(), 10).map(i32::try_from);
        if let Some(Ok(raw)) = raw
            && raw >= first
        {
            mark(raw);
        }
    }
    Ok(())
}

/// One that is closed stays so.
fn mark(raw: i32) {
    // SAFETY: only marks it.
    let _ = io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(raw) }, FdFlags::CLOEXEC);
}

/// The flags of a descriptor; `None`: it is closed.
fn flags(raw: i32) -> Option<FdFlags> {
    // SAFETY: the kernel is only asked about the number.
    io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(raw) }).ok()
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
        let ours = io::fcntl_dupfd_cloexec(&file, 70).unwrap();
        let left = io::fcntl_dupfd_cloexec(&file, 71).unwrap();
        io::fcntl_setfd(&left, FdFlags::empty()).unwrap();
        let high = io::fcntl_dupfd_cloexec(&file, 300).unwrap();
        io::fcntl_setfd(&high, FdFlags::empty()).unwrap();
        // Other tests run beside this one.
        let found = Inherited::look_beside_threads().unwrap();
        let numbers: Vec<_> = found.beyond.iter().map(BorrowedFd::as_raw_fd).collect();
        assert!(numbers.contains(&high.as_raw_fd()), "{numbers:?}");
        assert!(numbers.contains(&left.as_raw_fd()), "{numbers:?}");
        assert!(!numbers.contains(&ours.as_raw_fd()), "{numbers:?}");
        assert!(numbers.is_sorted() && numbers[0] > 2, "{numbers:?}");
        assert_eq!(target(left.as_fd()), Some("/dev/null".into()));
    }

    #[test]
    fn what_is_listed_is_marked_however_high_and_nothing_below() {
        let file = std::fs::File::open("/dev/null").unwrap();
        // Numbers that no other test here has.
        let kept: Vec<_> = [800, 801, 1000]
            .map(|number| io::fcntl_dupfd_cloexec(&file, number).unwrap())
            .into_iter()
            .inspect(|fd| io::fcntl_setfd(fd, FdFlags::empty()).unwrap())
            .collect();
        mark_listed(801).unwrap();
        let marked = kept.iter().map(|fd| flags(fd.as_raw_fd()) == Some(FdFlags::CLOEXEC));
        assert_eq!(marked.collect::<Vec<_>>(), [false, true, true]);
    }
}
