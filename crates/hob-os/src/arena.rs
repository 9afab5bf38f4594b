//! The allocator of the binary: the first kilobytes come from a fixed piece of its own image.
//!
//! A client lives for half a millisecond and allocates ten times. The C library's allocator maps
//! and touches a new page for nearly each of these sizes, and a page fault costs more than the
//! rest of the call's work here (`docs/why/client-path.md`). So the first [`ARENA_BYTES`] are
//! handed out one behind the other, and never given back; whatever needs more gets it from
//! dlmalloc. A daemon spends the arena once, in its first moments, and then lives on dlmalloc: the C
//! library's allocator gives pages back to the kernel and maps them anew on each call.
//!
//! A daemon also has what it frees overwritten ([`wipe_what_is_freed`]): callers' environments pass
//! through its memory, and nothing of them is to stay there (`docs/why/canary.md`).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dlmalloc::GlobalDlmalloc;

/// How much is handed out before the general allocator is asked. A client with an ordinary
/// environment needs about 30 KiB; what is not used is never touched, and so costs nothing.
pub const ARENA_BYTES: usize = 128 * 1024;

/// The allocator; one per process, as `#[global_allocator]`.
#[derive(Debug)]
#[repr(C)]
pub struct Arena {
    /// First, so that it lies in the page of the first blocks.
    used: AtomicUsize,
    memory: UnsafeCell<[u8; ARENA_BYTES]>,
}

/// Whether freed blocks are overwritten: in the whole process, as its allocator is.
static WIPES: AtomicBool = AtomicBool::new(false);

/// From now on every block is overwritten before it is freed, in this process. A client does not
/// ask for it: it ends, and the kernel clears its pages.
pub fn wipe_what_is_freed() {
    WIPES.store(true, Ordering::Relaxed);
}

/// Overwrites a block that is about to be freed, if that was asked for.
///
/// # Safety
/// The block has `size` bytes and nobody else uses it.
unsafe fn wipe(block: *mut u8, size: usize) {
    if WIPES.load(Ordering::Relaxed) {
        // SAFETY: as the caller says.
        unsafe { block.write_bytes(0, size) };
        // What is written to memory that is freed next would otherwise not be written at all.
        std::hint::black_box(block);
    }
}

// SAFETY: `used` hands out each byte of `memory` at most once, so that no two threads ever have
// the same one.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena of which nothing is used.
    #[must_use]
    pub const fn new() -> Arena {
        Arena { used: AtomicUsize::new(0), memory: UnsafeCell::new([0; ARENA_BYTES]) }
    }

    fn base(&self) -> *mut u8 {
        self.memory.get().cast()
    }

    /// The offset of a block in the arena, or `None` for one of dlmalloc's.
    fn offset(&self, block: *mut u8) -> Option<usize> {
        let offset = (block as usize).wrapping_sub(self.base() as usize);
        (offset < ARENA_BYTES).then_some(offset)
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

// SAFETY: a block is either dlmalloc's, and then everything about it is dlmalloc's business,
// or `size` bytes of `memory` at the asked alignment that `used` has passed and nobody else gets.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.base() as usize;
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let start = (base + used).next_multiple_of(layout.align()) - base;
            let Some(end) = start.checked_add(layout.size()).filter(|end| *end <= ARENA_BYTES)
            else {
                // SAFETY: the caller's obligations are the same.
                return unsafe { GlobalDlmalloc.alloc(layout) };
            };
            match self.used.compare_exchange_weak(used, end, Ordering::Relaxed, Ordering::Relaxed) {
                // SAFETY: `start` is inside the arena.
                Ok(_) => return unsafe { self.base().add(start) },
                Err(now) => used = now,
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller frees it, so that nobody else uses it.
        unsafe { wipe(block, layout.size()) };
        match self.offset(block) {
            // The last block goes back, which a buffer that only grew to be freed often is.
            Some(offset) => {
                let end = offset + layout.size();
                let _ =
                    self.used.compare_exchange(end, offset, Ordering::Relaxed, Ordering::Relaxed);
            }
            // SAFETY: not the arena's, so dlmalloc's.
            None => unsafe { GlobalDlmalloc.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(offset) = self.offset(block) else {
            if WIPES.load(Ordering::Relaxed) {
                // SAFETY: the caller's obligations are the same.
                return unsafe { self.move_to_new(block, layout, new_size) };
            }
            // SAFETY: not the arena's, so dlmalloc's.
            return unsafe { GlobalDlmalloc.realloc(block, layout, new_size) };
        };
        let (end, new_end) = (offset + layout.size(), offset.saturating_add(new_size));
        // The last block grows where it is.
        if new_end <= ARENA_BYTES
            && self
                .used
                .compare_exchange(end, new_end, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            if let Some(cut) = layout.size().checked_sub(new_size) {
                // SAFETY: the block's last bytes, which nobody has from now on.
                unsafe { wipe(block.add(new_size), cut) };
            }
            return block;
        }
        // SAFETY: the caller's obligations are the same.
        unsafe { self.move_to_new(block, layout, new_size) }
    }
}

impl Arena {
    /// A new block with the old one's content; the old one is freed, which dlmalloc's own way of
    /// growing would do without overwriting it.
    ///
    /// # Safety
    /// As for `realloc`.
    unsafe fn move_to_new(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the new size fits the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: a new block, and both are valid for the smaller size.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn the_last_block_grows_in_place_and_goes_back() {
        let arena = Arena::new();
        // SAFETY: each block is used within its size and freed once, with its layout.
        unsafe {
            let first = arena.alloc(layout(3, 1));
            let second = arena.alloc(layout(16, 16));
            assert_eq!(second as usize % 16, 0);
            second.write_bytes(7, 16);
            let grown = arena.realloc(second, layout(16, 16), 4096);
            assert_eq!(grown, second);
            arena.dealloc(grown, layout(4096, 16));
            assert_eq!(arena.alloc(layout(1, 16)), second);
            let moved = arena.realloc(first, layout(3, 1), 10);
            assert_ne!(moved, first);
        }
    }

    #[test]
    fn what_does_not_fit_is_the_general_allocators() {
        let arena = Arena::new();
        let large = layout(ARENA_BYTES + 1, 8);
        // SAFETY: as above.
        unsafe {
            let block = arena.alloc(large);
            assert!(arena.offset(block).is_none());
            block.write_bytes(1, large.size());
            let grown = arena.realloc(block, large, 2 * large.size());
            arena.dealloc(grown, layout(2 * large.size(), 8));
            let inside = arena.alloc(layout(8, 8));
            inside.write_bytes(9, 8);
            let _behind = arena.alloc(layout(8, 8));
            let outside = arena.realloc(inside, layout(8, 8), ARENA_BYTES);
            assert_eq!(outside.read(), 9);
            assert!(arena.offset(outside).is_none());
            arena.dealloc(outside, layout(ARENA_BYTES, 8));
        }
    }

    #[test]
    fn what_is_freed_moved_or_cut_off_is_overwritten_when_asked_for() {
        const SECRET: [u8; 64] = [0xca; 64];
        wipe_what_is_freed();
        let arena = Arena::new();
        // SAFETY: each block is used within its size and freed once; the arena's memory stays.
        unsafe {
            let new = || {
                let block = arena.alloc(layout(64, 1));
                block.copy_from(SECRET.as_ptr(), 64);
                block
            };
            let (freed, moved, cut) = (new(), new(), new());
            arena.dealloc(freed, layout(64, 1));
            let elsewhere = arena.realloc(cut, layout(64, 1), 8);
            assert_eq!(elsewhere, cut, "the last block shrinks where it is");
            let grown = arena.realloc(moved, layout(64, 1), 200);
            let own = std::slice::from_raw_parts(grown, 64);
            assert!(grown != moved && own == SECRET);
            let used = std::slice::from_raw_parts(arena.base(), ARENA_BYTES);
            let left = used.iter().filter(|byte| **byte == 0xca).count();
            assert_eq!(left, 64 + 8, "the block that was moved, and what is left of the cut one");
        }
    }

    #[test]
    fn threads_never_share_a_byte() {
        let arena = Arena::new();
        let blocks: Vec<usize> = std::thread::scope(|scope| {
            let take = || {
                // SAFETY: only the address is looked at.
                (0..200).map(|_| unsafe { arena.alloc(layout(24, 8)) } as usize).collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut sorted = blocks.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 24));
    }
}
