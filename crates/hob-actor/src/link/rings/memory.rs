//! Memory that two processes share: made, sealed, mapped, given back.
//!
//! `unsafe` is needed to map it and to look at it as words. Nothing else is: every access is an
//! atomic load or store of one word, so whatever the other process does to the memory meanwhile,
//! and however it ends, what is read here is some number, and never more than that.

#![expect(unsafe_code, reason = "mapping, and what is mapped as a slice")]

use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::{self, Errno};
use rustix::mm::{MapFlags, ProtFlags};

const WORD: usize = size_of::<AtomicU64>();

/// A mapping. It lives as long as this does.
#[derive(Debug)]
pub(super) struct Memory {
    at: NonNull<AtomicU64>,
    words: usize,
}

impl Memory {
    /// New memory of so many words, all 0, and the file that others map. Its size is sealed; who
    /// gets the file may write to it only `if_shared`.
    pub(super) fn create(words: usize, if_shared: bool) -> io::Result<(Memory, OwnedFd)> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"hob-link", flags)?;
        rustix::fs::ftruncate(&file, (words * WORD) as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        let memory = Memory::map(&file, words, ProtFlags::READ | ProtFlags::WRITE)?;
        let last = if if_shared { SealFlags::empty() } else { SealFlags::FUTURE_WRITE };
        rustix::fs::fcntl_add_seals(&file, last | SealFlags::SEAL)?;
        Ok((memory, file))
    }

    /// What another process has made to be read and written by both.
    pub(super) fn shared(file: impl AsFd, words: usize) -> io::Result<Memory> {
        Memory::map(file, words, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// What another process has made and only it writes to: the kernel lets nobody store here.
    pub(super) fn to_read(file: impl AsFd, words: usize) -> io::Result<Memory> {
        Memory::map(file, words, ProtFlags::READ)
    }

    fn map(file: impl AsFd, words: usize, access: ProtFlags) -> io::Result<Memory> {
        let bytes = words * WORD;
        let sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
        let has = usize::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        if !sealed || has < bytes {
            return Err(Errno::INVAL);
        }
        // SAFETY: a new mapping, at an address of the kernel's choice. The file has these bytes,
        // and the seal keeps them there, so that no access can fault.
        let at = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0)?
        };
        NonNull::new(at.cast()).map(|at| Memory { at, words }).ok_or(Errno::NOMEM)
    }
}

impl Deref for Memory {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping lives as long as `self`, begins at a page's edge, and has so many
        // words, for which any bits are a value; this process accesses it only so. (Where it may
        // only be read, nobody here stores; loads that are relaxed do not either.)
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and what `deref` lent has ended.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.words * WORD) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn what_one_stores_the_other_reads_and_only_what_is_shared_can_be_written() {
        let (ours, file) = Memory::create(512, true).unwrap();
        let theirs = Memory::shared(&file, 512).unwrap();
        ours[511].store(7, Ordering::Release);
        assert_eq!(theirs[511].load(Ordering::Acquire), 7);
        let (status, file) = Memory::create(512, false).unwrap();
        assert_eq!(Memory::shared(&file, 512).unwrap_err(), Errno::PERM);
        let seen = Memory::to_read(&file, 512).unwrap();
        status[0].store(3, Ordering::Relaxed);
        assert_eq!(seen[0].load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_file_that_is_too_short_or_may_become_so_is_not_mapped() {
        let (_memory, file) = Memory::create(512, true).unwrap();
        assert_eq!(Memory::shared(&file, 513).unwrap_err(), Errno::INVAL);
        assert_eq!(rustix::fs::ftruncate(&file, 0).unwrap_err(), Errno::PERM);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let open = rustix::fs::memfd_create(c"open", flags).unwrap();
        rustix::fs::ftruncate(&open, 1 << 16).unwrap();
        assert_eq!(Memory::shared(&open, 512).unwrap_err(), Errno::INVAL);
    }
}
