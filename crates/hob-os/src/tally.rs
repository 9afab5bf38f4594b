//! What a lane's worker counts in: a piece of memory that it shares with the daemon.
//!
//! The daemon does not hear of a lane's messages one by one, and a process that is killed says
//! nothing any more. What it wrote into shared memory stays: so whoever ends, and however, the
//! daemon knows how many messages were begun and how many of them ended (`docs/why/lanes.md`).
//! The worker pays two stores a message and no system call.
//!
//! | word | is |
//! |--:|---|
//! | 0 | messages begun |
//! | 1 | when the newest was begun |
//! | 2 | when its sender no longer waits; 0: it waits |
//! | 3 | messages ended |
//! | 4 | when the newest that ended did |
//! | 5 | how many of those that ended raised |
//!
//! Each is a `u64` of the machine's own order; times are nanoseconds of the monotonic clock. One
//! process writes. A reader may find some words of a message and not the others, until the writer
//! has ended; it has the counts right, and a time may be another message's.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{self, Errno};
use rustix::mm::{MapFlags, ProtFlags};

const WORDS: usize = 6;
/// The size of the file: the smallest that can be mapped.
const BYTES: usize = 4096;

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages begun.
    pub begun: u64,
    /// When the newest was.
    pub begun_ns: u64,
    /// When its sender no longer waits; 0: it waits.
    pub deadline_ns: u64,
    /// Messages ended.
    pub ended: u64,
    /// When the newest that ended did.
    pub ended_ns: u64,
    /// How many of those that ended raised.
    pub raised: u64,
}

/// A new one, as a file to send. It can be neither shortened nor made longer.
pub fn new() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(c"hob-tally", flags)?;
    rustix::fs::ftruncate(&file, BYTES as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// What is counted now. Nothing, where it cannot be read.
#[must_use]
pub fn read(file: impl AsFd) -> Tally {
    let mut bytes = [0; 8 * WORDS];
    if rustix::io::pread(file, &mut bytes, 0) != Ok(bytes.len()) {
        return Tally::default();
    }
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    let mut next = || words.next().unwrap_or(0);
    Tally {
        begun: next(),
        begun_ns: next(),
        deadline_ns: next(),
        ended: next(),
        ended_ns: next(),
        raised: next(),
    }
}

/// The writer's side.
#[derive(Debug)]
pub struct Page {
    words: *mut [AtomicU64; WORDS],
}

impl Page {
    /// Maps what [`new`] made.
    pub fn map(file: impl AsFd) -> io::Result<Page> {
        let kept = rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
        if !kept || rustix::fs::fstat(&file)?.st_size < BYTES as i64 {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice. The file has these bytes,
        // and the seal keeps them there, so that no access can fault.
        let at = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, file, 0)?
        };
        Ok(Page { words: at.cast() })
    }

    fn words(&self) -> &[AtomicU64; WORDS] {
        // SAFETY: the mapping lives as long as `self`, begins at a page's edge, and is larger;
        // other processes' accesses to it are no other thread's of this one.
        unsafe { &*self.words }
    }

    /// A message is there, and about to be read.
    pub fn begin(&self, now_ns: u64) {
        let [begun, begun_ns, deadline, ..] = self.words();
        begun_ns.store(now_ns, Ordering::Relaxed);
        deadline.store(0, Ordering::Relaxed);
        begun.store(begun.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// When its sender no longer waits.
    pub fn until(&self, deadline_ns: u64) {
        self.words()[2].store(deadline_ns, Ordering::Relaxed);
    }

    /// It was none, or is refused.
    pub fn take_back(&self) {
        let begun = &self.words()[0];
        begun.store(begun.load(Ordering::Relaxed).saturating_sub(1), Ordering::Release);
    }

    /// It has ended: its answer is about to be sent.
    pub fn end(&self, now_ns: u64, outcome: Outcome) {
        let [.., ended, ended_ns, raised] = self.words();
        ended_ns.store(now_ns, Ordering::Relaxed);
        if outcome == Outcome::Raised {
            raised.store(raised.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        ended.store(ended.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// How a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Answered,
    /// Its handler raised.
    Raised,
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: what `map` mapped, and nobody has a reference into it any more.
        let _ = unsafe { rustix::mm::munmap(self.words.cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_counts_the_other_reads_even_when_it_has_gone() {
        let file = new().unwrap();
        assert_eq!(read(&file), Tally::default());
        let page = Page::map(&file).unwrap();
        page.begin(10);
        page.end(20, Outcome::Answered);
        page.begin(30);
        page.until(90);
        page.end(40, Outcome::Raised);
        page.begin(45);
        page.take_back();
        page.begin(50);
        drop(page);
        let want =
            Tally { begun: 3, begun_ns: 50, deadline_ns: 0, ended: 2, ended_ns: 40, raised: 1 };
        assert_eq!(read(&file), want);
        // A second writer, as of another process, goes on from there.
        Page::map(&file).unwrap().end(60, Outcome::Answered);
        assert_eq!((read(&file).ended, read(&file).ended_ns), (3, 60));
    }

    #[test]
    fn what_could_be_shortened_is_not_mapped() {
        let file = rustix::fs::memfd_create(c"other", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, BYTES as u64).unwrap();
        assert!(Page::map(&file).is_err());
        assert!(Page::map(std::fs::File::open("/dev/null").unwrap()).is_err());
        assert_eq!(read(std::fs::File::open("/dev/null").unwrap()), Tally::default());
        assert!(rustix::fs::ftruncate(new().unwrap(), 0).is_err());
    }
}
