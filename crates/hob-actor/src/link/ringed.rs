//! Links over rings: how they become that, and what comes by them.
//!
//! Invariant: in each direction the bytes of a link are one stream, first on the socket, and from
//! the frame `Ring` on in the ring.

use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::io::Errno;

use super::frame::{Head, Kind};
use super::links::{EVENTS, Links, RINGS};
use super::receive::Nonsense;
use crate::runtime::bell::Doorbell;
use crate::shard::Shard;

/// Makes a bell heard, each time that it is rung: it is never read, so there is always something.
fn watch(epoll: &OwnedFd) -> impl FnOnce(&Doorbell) -> Result<(), Errno> + '_ {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    let data = epoll::EventData::new_u64(RINGS);
    move |bell| epoll::add(epoll, bell.descriptor(), data, flags)
}

impl Links {
    /// Offers rings to the other end. If they cannot be made, the link stays as it is.
    pub(super) fn offer_rings(&mut self, at: u32) {
        if let Ok(shown) = self.rings.offer(at, watch(&self.epoll)) {
            let appended =
                self.links[at as usize].outgoing.append_with(Head::new(Kind::Offer, 0), shown);
            debug_assert!(appended.is_ok(), "a header");
            self.touch(at);
        }
    }

    /// The descriptors of a frame. In a ring it comes after them, so they are on the socket.
    pub(super) fn came_along<const N: usize>(&mut self, at: u32) -> Result<[OwnedFd; N], Nonsense> {
        let by_ring = self.rings.get(at).is_some_and(|pair| pair.comes_here);
        if by_ring && self.links[at as usize].descriptors.len() < N {
            self.read_beside_ring(at).map_err(|_| Nonsense)?;
        }
        let came = &mut self.links[at as usize].descriptors;
        if came.len() < N {
            return Err(Nonsense);
        }
        let came: Vec<_> = came.drain(..N).collect();
        came.try_into().map_err(|_| Nonsense)
    }

    pub(super) fn take_offer(&mut self, at: u32) -> Result<(), Nonsense> {
        if self.rings.get(at).is_some() {
            return Err(Nonsense);
        }
        let offered = self.came_along(at)?;
        let shown = self.rings.take(at, offered, watch(&self.epoll)).map_err(|_| Nonsense)?;
        self.go_by_ring(at, shown)
    }

    pub(super) fn take_ring(&mut self, at: u32) -> Result<(), Nonsense> {
        let pair = self.rings.get(at).filter(|pair| !pair.comes_here).ok_or(Nonsense)?;
        let answers = pair.is_offer_open();
        pair.comes_here = true;
        if answers {
            let shown = self.came_along(at)?;
            self.rings.taken(at, shown).map_err(|_| Nonsense)?;
            self.go_by_ring(at, Vec::new())?;
        }
        Ok(())
    }

    /// All that is sent from now on goes by the ring.
    fn go_by_ring(&mut self, at: u32, shown: Vec<OwnedFd>) -> Result<(), Nonsense> {
        let outgoing = &mut self.links[at as usize].outgoing;
        let head = Head::new(Kind::Ring, 0);
        let appended = match shown.is_empty() {
            true => outgoing.append(head, |_| ()),
            false => outgoing.append_with(head, shown),
        };
        appended.map_err(|_| Nonsense)?;
        self.rings.get(at).ok_or(Nonsense)?.goes_here_after(outgoing);
        self.touch(at);
        Ok(())
    }

    /// Takes what has come by rings.
    pub(super) fn look_at_rings(&mut self, shard: &Shard) -> usize {
        let mut found = 0;
        // Each time it goes on where it stopped, so that each gets its turn.
        let mut look = self.rings.looks();
        while found < EVENTS
            && let Some((link, ready)) = self.rings.next(&mut look)
        {
            if ready.room {
                self.touch(link);
                found += 1;
            }
            if ready.waits && self.links[link as usize].stalled.is_none() {
                self.receive_by_ring(link, shard);
                found += 1;
            }
        }
        found
    }

    /// Whether anything is to be done for a ring now.
    pub(super) fn any_ring_waits(&mut self) -> bool {
        let mut look = self.rings.looks();
        while let Some((link, ready)) = self.rings.next(&mut look) {
            if ready.room || self.links[link as usize].stalled.is_none() {
                return true;
            }
        }
        false
    }

    fn receive_by_ring(&mut self, at: u32, shard: &Shard) {
        let taken = match self.read_ring(at) {
            Some(Ok(1..)) => self.take_frames(at, shard),
            Some(Ok(0)) | None => Ok(()),
            Some(Err(_)) => Err(Nonsense),
        };
        if taken.is_err() {
            self.broken(at, shard);
        }
    }

    /// Reads into the room, which is left to [`Links::take_frames`] if anything came. None: the link
    /// has no ring, or nothing comes by it yet.
    pub(super) fn read_ring(&mut self, at: u32) -> Option<Result<usize, Errno>> {
        let pair = self.rings.get(at).filter(|pair| pair.comes_here)?;
        let tail = &mut self.links[at as usize].tail;
        let read = pair.read(self.room.begin(tail));
        self.room.filled(read.unwrap_or(0));
        if !matches!(read, Ok(1..)) {
            self.room.end(tail);
        }
        Some(read)
    }

    /// What comes on the socket of a link that has a ring: descriptors, and the end.
    #[cold]
    pub(super) fn receive_beside_ring(&mut self, at: u32, shard: &Shard) {
        match self.read_beside_ring(at) {
            Ok(1..) | Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(0) | Err(_) => {
                // What it has published before is taken first.
                while let Some(Ok(1..)) = self.read_ring(at) {
                    if self.take_frames(at, shard).is_err() {
                        break;
                    }
                }
                self.broken(at, shard);
            }
        }
    }

    fn read_beside_ring(&mut self, at: u32) -> Result<usize, Errno> {
        let link = &mut self.links[at as usize];
        let Some(socket) = &link.socket else { return Err(Errno::AGAIN) };
        let mut came = Vec::new();
        // Whatever these bytes are, only what came with them counts.
        let read =
            rustix::io::retry_on_intr(|| hob_os::uds::receive(socket, &mut [0; 64], &mut came));
        link.descriptors.extend(came);
        read
    }
}
