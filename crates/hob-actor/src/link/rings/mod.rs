//! Links whose bytes go by rings in shared memory, with the socket for descriptors and the end.
//!
//! ```text
//!   maker                              the other
//!     ── Hello, Offer [ring, status, bell] ──▶     on the socket
//!     ◀── Hello, Ring [status, bell] ─────────     on the socket; from here on its ring
//!     ── Ring ───────────────────────────────▶     on the socket; from here on its ring
//! ```
//! The frames are the same, byte for byte. A frame with a descriptor is in the ring like all others;
//! its descriptor goes first, with a byte on the socket that means nothing.
//!
//! **The doorbell.** Each process has one eventfd and one **status** page, which all who have rings
//! with it can read: whether it sleeps. Who has published looks there, and rings only then
//! (`ring::Waker`); who is about to sleep says so, and looks at its rings once more
//! (`ring::Sleeper`). The bell is watched for edges and never read.
//!
//! Invariants: what is read in shared memory is checked or copied before it is used; only the
//! shard's thread touches any of this; when a link ends, so does its mapping.

mod memory;
pub(crate) mod ring;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;

use rustix::io::{self, Errno};

use memory::Memory;
use ring::{Impossible, Reader, Ring, Sleeper, Waker, Writer};

use super::buffers::Outgoing;
use crate::runtime::bell::Doorbell;
use crate::runtime::inbox::Bell as _;

/// Bytes of each ring. What is not used of it is never touched.
const RING_LEN: usize = 64 * 1024;
const RING_WORDS: usize = RING_LEN / 8;
/// A writer's line and a reader's line each; two lines, since processors fetch them in pairs.
const LINE: usize = 16;
/// Where the data begin.
const HEAD: usize = 4 * LINE;
const WORDS: usize = HEAD + 2 * RING_WORDS;
/// A page.
const STATUS_WORDS: usize = 512;

/// What this process shows to others.
#[derive(Debug)]
struct Own {
    status: Memory,
    file: OwnedFd,
    bell: Doorbell,
    sleeper: Sleeper,
}

/// The other end's status and bell.
#[derive(Debug)]
struct Theirs {
    status: Memory,
    bell: Doorbell,
    waker: Waker,
}

impl Theirs {
    fn of(status: OwnedFd, bell: OwnedFd) -> io::Result<Theirs> {
        // To ring must never be to wait.
        if !rustix::fs::fcntl_getfl(&bell)?.contains(rustix::fs::OFlags::NONBLOCK) {
            return Err(Errno::INVAL);
        }
        let status = Memory::to_read(status, STATUS_WORDS)?;
        Ok(Theirs { status, bell: Doorbell::of(bell), waker: Waker::default() })
    }

    #[inline]
    fn tell(&mut self) {
        if self.waker.claim_ring(&self.status[0]) {
            self.bell.ring();
        }
    }
}

/// One link's rings.
#[derive(Debug)]
pub(crate) struct Pair {
    memory: Memory,
    reader: Reader,
    writer: Writer,
    /// Which ring is ours to write: the maker's is the first.
    is_maker: bool,
    /// What comes is in the ring.
    pub(crate) comes_here: bool,
    /// What goes does, when so much has gone by the socket.
    goes_after: Option<usize>,
    theirs: Option<Theirs>,
    /// There is more to write than there was room for.
    is_full: bool,
}

impl Pair {
    fn new(memory: Memory, is_maker: bool) -> Pair {
        Pair {
            memory,
            reader: Reader::default(),
            writer: Writer::default(),
            is_maker,
            comes_here: false,
            goes_after: None,
            theirs: None,
            is_full: false,
        }
    }

    #[inline]
    fn ring(memory: &Memory, first: bool) -> Ring<'_> {
        let at = usize::from(!first);
        let head = &memory[2 * LINE * at..][..2 * LINE];
        let data = &memory[HEAD + RING_WORDS * at..][..RING_WORDS];
        Ring { published: &head[0], waits: &head[1], taken: &head[LINE], data }
    }

    #[inline]
    fn incoming(&self) -> Ring<'_> {
        Pair::ring(&self.memory, !self.is_maker)
    }

    /// We have made it, and the other end has not taken it yet.
    pub(crate) fn is_offer_open(&self) -> bool {
        self.theirs.is_none()
    }

    #[inline]
    fn is_waiting(&self) -> bool {
        self.comes_here && self.reader.is_waiting(self.incoming())
    }

    fn finds_room(&mut self) -> bool {
        let ring = Pair::ring(&self.memory, self.is_maker);
        // What is impossible is found by who writes.
        self.is_full && self.writer.room(ring) != Ok(0)
    }

    /// How much of what waits goes by the socket still. None: the ring is not for this yet.
    pub(crate) fn by_socket(&self) -> Option<usize> {
        self.goes_after
    }

    pub(crate) fn went_by_socket(&mut self, count: usize) {
        if let Some(left) = &mut self.goes_after {
            *left -= count;
        }
    }

    /// From where the outgoing bytes end now, they go by the ring.
    pub(crate) fn goes_here_after(&mut self, outgoing: &Outgoing<Vec<OwnedFd>>) {
        self.goes_after = Some(outgoing.len());
    }

    /// Writes what there is room for. The other end says when there is more.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        let ring = Pair::ring(&self.memory, self.is_maker);
        let count = self.writer.write(ring, bytes).map_err(impossible)?;
        self.waits_for_room(count < bytes.len());
        if count > 0
            && let Some(theirs) = &mut self.theirs
        {
            theirs.tell();
        }
        Ok(count)
    }

    /// Whether it is to be said when the ring has room.
    pub(crate) fn waits_for_room(&mut self, waits: bool) {
        if waits != self.is_full {
            self.is_full = waits;
            Writer::waits(Pair::ring(&self.memory, self.is_maker), waits);
        }
    }

    /// Copies out what has come.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        let ring = Pair::ring(&self.memory, !self.is_maker);
        let count = self.reader.read(ring, into).map_err(impossible)?;
        if count > 0
            && Reader::is_waited_for(ring)
            && let Some(theirs) = &mut self.theirs
        {
            theirs.tell();
        }
        Ok(count)
    }
}

fn impossible(_: Impossible) -> Errno {
    Errno::BADMSG
}

/// All rings of a system, by their links' numbers.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    pairs: Vec<Option<Pair>>,
    count: usize,
    own: Option<Own>,
    /// Which is looked at first.
    first: usize,
}

impl Rings {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether all of so many links have rings, if there are any.
    #[inline]
    pub(crate) fn are_all(&self, links: usize) -> bool {
        self.count > 0 && self.count == links
    }

    #[inline]
    pub(crate) fn get(&mut self, link: u32) -> Option<&mut Pair> {
        self.pairs.get_mut(link as usize)?.as_mut()
    }

    fn put(&mut self, link: u32, pair: Pair) {
        let at = link as usize;
        if at >= self.pairs.len() {
            self.pairs.resize_with(at + 1, || None);
        }
        self.count += usize::from(self.pairs[at].is_none());
        self.pairs[at] = Some(pair);
    }

    /// The link has ended.
    pub(crate) fn end(&mut self, link: u32) {
        if let Some(pair) = self.pairs.get_mut(link as usize).and_then(Option::take) {
            drop(pair);
            self.count -= 1;
        }
    }

    /// What this process shows; made when it is wanted first. `watch` makes the bell heard.
    fn own(&mut self, watch: impl FnOnce(&Doorbell) -> io::Result<()>) -> io::Result<Vec<OwnedFd>> {
        if self.own.is_none() {
            let (status, file) = Memory::create(STATUS_WORDS, false)?;
            let bell = Doorbell::new()
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
            watch(&bell)?;
            self.own = Some(Own { status, file, bell, sleeper: Sleeper::default() });
        }
        let own = self.own.as_ref().ok_or(Errno::MFILE)?;
        let bell = io::fcntl_dupfd_cloexec(own.bell.descriptor(), 3)?;
        Ok(vec![io::fcntl_dupfd_cloexec(&own.file, 3)?, bell])
    }

    /// Makes a link's rings. Returns what goes with the offer.
    pub(crate) fn offer(
        &mut self,
        link: u32,
        watch: impl FnOnce(&Doorbell) -> io::Result<()>,
    ) -> io::Result<Vec<OwnedFd>> {
        let mut shown = self.own(watch)?;
        let (memory, file) = Memory::create(WORDS, true)?;
        shown.insert(0, file);
        self.put(link, Pair::new(memory, true));
        Ok(shown)
    }

    /// Takes the offer. Returns what goes with the answer.
    pub(crate) fn take(
        &mut self,
        link: u32,
        [memory, status, bell]: [OwnedFd; 3],
        watch: impl FnOnce(&Doorbell) -> io::Result<()>,
    ) -> io::Result<Vec<OwnedFd>> {
        let shown = self.own(watch)?;
        let mut pair = Pair::new(Memory::shared(memory, WORDS)?, false);
        pair.theirs = Some(Theirs::of(status, bell)?);
        self.put(link, pair);
        Ok(shown)
    }

    /// The other end has taken the offer.
    pub(crate) fn taken(&mut self, link: u32, [status, bell]: [OwnedFd; 2]) -> io::Result<()> {
        let pair = self.get(link).ok_or(Errno::BADMSG)?;
        pair.theirs = Some(Theirs::of(status, bell)?);
        Ok(())
    }

    /// One look at all of them, from where the last one ended.
    pub(crate) fn looks(&self) -> Look {
        Look { left: self.pairs.len() }
    }

    /// The next link that has something in its ring, or room that was waited for.
    #[inline]
    pub(crate) fn next(&mut self, look: &mut Look) -> Option<(u32, Ready)> {
        while look.left > 0 {
            look.left -= 1;
            self.first = if self.first + 1 < self.pairs.len() { self.first + 1 } else { 0 };
            let Some(Some(pair)) = self.pairs.get_mut(self.first) else { continue };
            let ready = Ready { waits: pair.is_waiting(), room: pair.is_full && pair.finds_room() };
            if ready.waits || ready.room {
                return Some((u32::try_from(self.first).ok()?, ready));
            }
        }
        None
    }

    /// Says that this process sleeps, from here on others ring.
    pub(crate) fn fall_asleep(&mut self) {
        if let Some(own) = &mut self.own {
            own.sleeper.falls_asleep(&own.status[0]);
        }
    }

    /// It does not any more.
    pub(crate) fn wake(&mut self) {
        if let Some(own) = &mut self.own {
            own.sleeper.wakes(&own.status[0]);
        }
    }
}

/// A look at all rings.
#[derive(Debug)]
pub(crate) struct Look {
    left: usize,
}

/// What a ring has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) waits: bool,
    pub(crate) room: bool,
}
