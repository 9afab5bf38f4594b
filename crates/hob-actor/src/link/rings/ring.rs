//! A ring of bytes between one writer and one reader that may be in two processes, and the word by
//! which a process says that it sleeps. Pure but for the atomic words that it is lent; tested under
//! loom, which compiles this file with its own.
//!
//! ```text
//!   writer's line           reader's line        data
//!   published | waits       taken                words, a power of two of them
//!   (start, end)
//! ```
//! Positions are bytes since the link began, modulo 2³². Bytes between `taken` and `end` are the
//! reader's, the others the writer's. `published` is one word, so that both its halves are of one
//! moment. When all has been taken, the writer begins anew at the front: `start` is then ahead of
//! `taken`, and the reader goes there. So a link uses as much memory as was ever in it at once, and
//! what little is in it mostly stays in the processors' caches.
//!
//! **Nobody is trusted**: each position that is read is compared with one's own before it is used,
//! and the data are indexed modulo their length. One that cannot be is [`Impossible`].

use std::sync::atomic::Ordering;

use crate::sync::{AtomicU64, fence};

const WORD: usize = 8;

/// A position that no correct peer would have stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Impossible;

/// The words of one ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring<'a> {
    /// The writer's.
    pub(crate) published: &'a AtomicU64,
    /// The writer's: not 0 if it waits for room.
    pub(crate) waits: &'a AtomicU64,
    /// The reader's.
    pub(crate) taken: &'a AtomicU64,
    /// The bytes; of a length that is a power of two, at most 2²⁸.
    pub(crate) data: &'a [AtomicU64],
}

impl Ring<'_> {
    #[inline]
    fn len(&self) -> u32 {
        low(self.data.len() as u64 * WORD as u64)
    }
}

/// The half of a word that is a position.
#[inline]
fn low(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[inline]
fn high(word: u64) -> u32 {
    low(word >> 32)
}

/// Who writes.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    end: u32,
    /// What was certainly taken.
    taken: u32,
    /// Where it was when it went to the front the last time: the reader may still say so.
    left: u32,
    /// The word that `end` is in the middle of.
    partial: u64,
}

impl Writer {
    /// One that has come so far.
    #[cfg(test)]
    pub(crate) fn at(end: u32) -> Writer {
        Writer { end, taken: end, left: end, partial: 0 }
    }

    /// Writes as much as there is room for, and publishes it.
    pub(crate) fn write(&mut self, ring: Ring<'_>, bytes: &[u8]) -> Result<usize, Impossible> {
        let room = self.room(ring)?;
        let count = bytes.len().min(room as usize);
        if count == 0 {
            return Ok(0);
        }
        if self.taken == self.end && !self.end.is_multiple_of(ring.len()) {
            self.left = self.end;
            self.end = (self.end | (ring.len() - 1)).wrapping_add(1);
            self.taken = self.end;
        }
        self.copy(ring.data, &bytes[..count]);
        // At most the ring's length, which is far from its end.
        self.end = self.end.wrapping_add(low(count as u64));
        let both = u64::from(self.taken) << 32 | u64::from(self.end);
        ring.published.store(both, Ordering::Release);
        Ok(count)
    }

    /// Whether somebody waits until there is room: then the reader rings when there is.
    pub(crate) fn waits(ring: Ring<'_>, waits: bool) {
        ring.waits.store(u64::from(waits), Ordering::Relaxed);
    }

    /// How many bytes there is room for.
    pub(crate) fn room(&mut self, ring: Ring<'_>) -> Result<u32, Impossible> {
        let taken = low(ring.taken.load(Ordering::Acquire));
        let (open, left) = (self.end.wrapping_sub(self.taken), self.end.wrapping_sub(taken));
        if left <= open {
            self.taken = taken;
        } else if taken != self.left {
            return Err(Impossible);
        }
        // Stores are whole words: one of which a byte is still to be read is the reader's.
        Ok(ring.len() - self.end.wrapping_sub(self.taken & !7))
    }

    #[inline]
    fn copy(&mut self, data: &[AtomicU64], mut bytes: &[u8]) {
        let mut at = self.end as usize;
        let slot = |at: usize| &data[(at / WORD) & (data.len() - 1)];
        let begun = at % WORD;
        if begun > 0 {
            let count = bytes.len().min(WORD - begun);
            let (now, later) = bytes.split_at(count);
            let mut word = self.partial.to_ne_bytes();
            word[begun..begun + count].copy_from_slice(now);
            self.partial = u64::from_ne_bytes(word);
            slot(at).store(self.partial, Ordering::Relaxed);
            (at, bytes) = (at + count, later);
        }
        let (words, rest) = bytes.as_chunks::<WORD>();
        let first = (at / WORD) & (data.len() - 1);
        let (now, wrapped) = words.split_at(words.len().min(data.len() - first));
        for (slot, word) in data[first..].iter().zip(now).chain(data.iter().zip(wrapped)) {
            slot.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut word = [0; WORD];
            word[..rest.len()].copy_from_slice(rest);
            self.partial = u64::from_ne_bytes(word);
            slot(at + words.len() * WORD).store(self.partial, Ordering::Relaxed);
        }
    }
}

/// Who reads.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    taken: u32,
}

impl Reader {
    /// One that has come so far.
    #[cfg(test)]
    pub(crate) fn at(taken: u32) -> Reader {
        Reader { taken }
    }

    /// Whether anything is there.
    #[inline]
    pub(crate) fn is_waiting(&self, ring: Ring<'_>) -> bool {
        low(ring.published.load(Ordering::Relaxed)) != self.taken
    }

    /// Copies out what is there, as much as fits.
    pub(crate) fn read(&mut self, ring: Ring<'_>, into: &mut [u8]) -> Result<usize, Impossible> {
        let published = ring.published.load(Ordering::Acquire);
        let (start, end) = (high(published), low(published));
        if end.wrapping_sub(start) < end.wrapping_sub(self.taken) {
            self.taken = start;
        }
        let there = end.wrapping_sub(self.taken);
        if there > ring.len() {
            return Err(Impossible);
        }
        let count = into.len().min(there as usize);
        self.copy(ring.data, &mut into[..count]);
        self.taken = self.taken.wrapping_add(low(count as u64));
        ring.taken.store(u64::from(self.taken), Ordering::Release);
        Ok(count)
    }

    /// Something was taken: is that waited for?
    #[inline]
    pub(crate) fn is_waited_for(ring: Ring<'_>) -> bool {
        fence(Ordering::SeqCst);
        ring.waits.load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn copy(&self, data: &[AtomicU64], mut into: &mut [u8]) {
        let mut at = self.taken as usize;
        let word =
            |at: usize| data[(at / WORD) & (data.len() - 1)].load(Ordering::Relaxed).to_ne_bytes();
        let begun = at % WORD;
        if begun > 0 {
            let count = into.len().min(WORD - begun);
            let (now, later) = into.split_at_mut(count);
            now.copy_from_slice(&word(at)[begun..begun + count]);
            (at, into) = (at + count, later);
        }
        let (words, rest) = into.as_chunks_mut::<WORD>();
        let first = (at / WORD) & (data.len() - 1);
        let count = words.len();
        let (now, wrapped) = words.split_at_mut(count.min(data.len() - first));
        for (slot, word) in data[first..].iter().zip(now).chain(data.iter().zip(wrapped)) {
            *word = slot.load(Ordering::Relaxed).to_ne_bytes();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&word(at + count * WORD)[..rest.len()]);
        }
    }
}

/// What a process says of itself to all who have rings with it: odd while it sleeps, another
/// number each time.
#[derive(Debug, Default)]
pub(crate) struct Sleeper {
    times: u64,
}

impl Sleeper {
    /// Says so. What is published before somebody sees it, is seen by who looks after this: look
    /// at each ring once more, and only then sleep.
    pub(crate) fn falls_asleep(&mut self, word: &AtomicU64) {
        self.times |= 1;
        word.store(self.times, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// It does not.
    pub(crate) fn wakes(&mut self, word: &AtomicU64) {
        self.times = (self.times | 1).wrapping_add(1);
        word.store(self.times, Ordering::Relaxed);
    }
}

/// What somebody who publishes knows of a sleeper.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    /// For which sleep it was rung the last time.
    rung: u64,
}

impl Waker {
    /// Something was published, or taken: is the bell to be rung? Once for a sleep is enough.
    #[inline]
    pub(crate) fn claim_ring(&mut self, word: &AtomicU64) -> bool {
        fence(Ordering::SeqCst);
        let times = word.load(Ordering::Relaxed);
        let rings = times & 1 == 1 && times != self.rung;
        if rings {
            self.rung = times;
        }
        rings
    }
}
