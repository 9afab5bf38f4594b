//! What comes in on a link: frame by frame to actors, asks and cancels.
//!
//! Invariant: what a peer sends can end its link, and nothing else. A frame that makes no sense
//! does; a message that does not decode fails its ask.

use std::sync::Arc;

use rustix::io::Errno;

use super::calls::{Answered, Call};
use super::commands::PeerError;
use super::frame::{self, ASK_HEAD, Head, Kind, NO_LIMIT};
use super::links::Links;
use super::names::{Along, Name};
use super::one::{Serving, Stalled, State};
use super::run::Run;
use super::table::{decode_error, encode_error};
use super::wire::{Decoder, WireError};
use crate::api::error::{AskError, NotSent};
use crate::memory::parcel::{Parcel, Slot};
use crate::memory::when::{NEVER, When};
use crate::runtime::mailbox::{Mailbox, Route};
use crate::shard::{Shard, count_many};

/// In one of so many turns it is looked whether full mailboxes have room, while their shard has
/// something else to do.
const RETRY_TURNS: u32 = 8;

/// What came is no link's.
#[derive(Debug)]
pub(super) struct Nonsense;

/// A message as it has come.
#[derive(Debug, Clone, Copy)]
struct Came<'a> {
    actor: u64,
    entry: u16,
    payload: &'a [u8],
}

#[inline]
pub(super) fn token_of(slot: Slot) -> u64 {
    u64::from(slot.generation) << 32 | u64::from(slot.index)
}

#[inline]
pub(super) fn slot_of(token: u64) -> Slot {
    let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
    Slot { index: half(token), generation: half(token >> 32) }
}

fn number(payload: &[u8], at: usize) -> Result<u64, Nonsense> {
    let bytes = payload.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_le_bytes).ok_or(Nonsense)
}

impl Links {
    /// Reads what has come on a link, once, and takes all whole frames.
    pub(super) fn receive(&mut self, at: u32, shard: &Shard) {
        if self.rings.get(at).is_some_and(|pair| pair.comes_here) {
            return self.receive_beside_ring(at, shard);
        }
        match self.read(at) {
            Ok(0) => self.broken(at, shard),
            Ok(_) => {
                if self.take_frames(at, shard).is_err() {
                    self.broken(at, shard);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.broken(at, shard),
        }
    }

    /// Reads into the room, which is left to [`Links::take_frames`] if anything came.
    fn read(&mut self, at: u32) -> Result<usize, Errno> {
        let link = &mut self.links[at as usize];
        let Some(socket) = &link.socket else { return Err(Errno::AGAIN) };
        let mut descriptors = Vec::new();
        let space = self.room.begin(&mut link.tail);
        let received = hob_os::uds::receive(socket, space, &mut descriptors);
        link.descriptors.extend(descriptors);
        self.room.filled(received.unwrap_or(0));
        if !matches!(received, Ok(1..)) {
            self.room.end(&mut link.tail);
        }
        received
    }

    /// All that there still is, before the link is given up: a peer that ends may have answered.
    pub(super) fn receive_rest(&mut self, at: u32, shard: &Shard) {
        while !matches!(self.links[at as usize].state, State::Ended(_)) {
            let read = match self.read_ring(at) {
                Some(Ok(0)) | None => self.read(at),
                Some(read) => read,
            };
            match read {
                Ok(0) => return,
                Ok(_) if self.take_frames(at, shard).is_ok() => {}
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    pub(super) fn take_frames(&mut self, at: u32, shard: &Shard) -> Result<(), Nonsense> {
        // Taken out, so that its payloads can be looked at while everything else may change.
        let mut room = std::mem::take(&mut self.room);
        let taken = loop {
            if self.links[at as usize].stalled.is_some() {
                break Ok(());
            }
            match room.next() {
                Ok(None) => break Ok(()),
                Ok(Some((head, payload))) => {
                    if let Err(nonsense) = self.take(at, head, payload, shard) {
                        break Err(nonsense);
                    }
                    if head.kind == Kind::Ring {
                        room.skip();
                    }
                }
                Err(_) => break Err(Nonsense),
            }
        };
        room.end(&mut self.links[at as usize].tail);
        self.room = room;
        taken
    }

    #[inline]
    fn take(&mut self, at: u32, head: Head, payload: &[u8], shard: &Shard) -> Result<(), Nonsense> {
        let greeting = self.links[at as usize].state == State::Greeting;
        if greeting != (head.kind == Kind::Hello) {
            return Err(Nonsense);
        }
        match head.kind {
            Kind::Ask => self.take_ask(at, head, payload, shard),
            Kind::Tell => self.take_tells(at, head, payload, shard),
            Kind::Answer => self.take_answer(at, head.to, payload, shard),
            Kind::Failure
            | Kind::Cancel
            | Kind::Hello
            | Kind::Resolve
            | Kind::Resolved
            | Kind::Introduce
            | Kind::Introduced
            | Kind::NoWay
            | Kind::Offer
            | Kind::Ring
            | Kind::Drain => self.take_rare(at, head, payload, shard),
        }
    }

    /// What comes seldom lies elsewhere: who has just slept finds each page of its code in no cache.
    #[cold]
    fn take_rare(
        &mut self,
        at: u32,
        head: Head,
        payload: &[u8],
        shard: &Shard,
    ) -> Result<(), Nonsense> {
        match head.kind {
            Kind::Ask | Kind::Tell | Kind::Answer => Ok(()),
            Kind::Failure => {
                self.take_failure(at, head.to, payload, shard);
                Ok(())
            }
            Kind::Cancel => {
                let serving = self.links[at as usize].serving.remove(head.to);
                if let Some(token) = serving {
                    self.given_up(token, shard);
                }
                Ok(())
            }
            Kind::Hello => self.take_hello(at, payload),
            Kind::Resolve => self.take_resolve(at, head, payload),
            Kind::Resolved => {
                let found = Decoder::whole::<Name>(payload, None).map_err(|_| Nonsense)?;
                self.resolved(head.to, Ok(found), shard);
                Ok(())
            }
            Kind::Introduce => {
                self.introduce(at, head.to);
                Ok(())
            }
            Kind::Introduced => {
                let [socket] = self.came_along(at)?;
                self.introduced(head.to, socket, head.message == 1);
                Ok(())
            }
            Kind::Offer => self.take_offer(at),
            Kind::Ring => self.take_ring(at),
            Kind::NoWay => {
                self.no_way(head.to, shard);
                Ok(())
            }
            Kind::Drain => {
                self.links[at as usize].drains = true;
                Ok(())
            }
        }
    }

    /// Whoever asked this does not wait any more. The word goes the way of the message, so that it
    /// comes after it: to the actor, and from there on to whom that has asked.
    pub(super) fn given_up(&mut self, token: u64, shard: &Shard) {
        let Some(Serving { actor, .. }) = self.serving.close(token) else { return };
        let (slot, place) = (slot_of(token), self.place.get());
        let away = self.names.told(actor).is_some_and(|(at, _)| at != shard.shared.place);
        let mailbox = self.names.mailbox(actor);
        if let Some(mailbox) = mailbox.filter(|mailbox| away || drops_oldest(mailbox)) {
            mailbox.cancel(slot, place);
            if !away {
                return;
            }
        }
        // Also for an actor of another shard: it may have forwarded the message to a peer.
        shard.cancel_later(slot, place);
    }

    fn take_ask(
        &mut self,
        at: u32,
        head: Head,
        payload: &[u8],
        shard: &Shard,
    ) -> Result<(), Nonsense> {
        let (theirs, left) = (number(payload, 0)?, number(payload, 8)?);
        let link = &mut self.links[at as usize];
        let Some(entry) = link.numbers.get(usize::from(head.message)).copied().flatten() else {
            self.fail_theirs(at, theirs, AskError::Unregistered);
            return Ok(());
        };
        let token = self.serving.open(Serving { link: at, token: theirs, entry, actor: head.to });
        link.serving.insert(theirs, token);
        let deadline = if left == NO_LIMIT { NEVER } else { shard.now().saturating_add(left) };
        let asker = (slot_of(token), When::new(self.place.get(), deadline));
        let came = Came { actor: head.to, entry, payload: &payload[ASK_HEAD..] };
        if let Err(why) = self.deliver(at, came, asker, shard) {
            self.serving.close(token);
            self.links[at as usize].serving.remove(theirs);
            self.fail_theirs(at, theirs, why);
        }
        Ok(())
    }

    /// Messages for which nobody waits: what cannot be delivered is a dead letter, and counted.
    fn take_tells(
        &mut self,
        at: u32,
        head: Head,
        payload: &[u8],
        shard: &Shard,
    ) -> Result<(), Nonsense> {
        let (mut message, mut rest) = frame::piece(payload).ok_or(Nonsense)?;
        let some = if rest.is_empty() { 1 } else { frame::pieces(payload).ok_or(Nonsense)? };
        let number = self.links[at as usize].numbers.get(usize::from(head.message));
        let entry = number.copied().flatten();
        let told = self.names.told(head.to);
        let (Some(entry), Some((place, slot))) = (entry, told) else {
            count_many(&shard.shared.counts.dead_letters, some);
            return Ok(());
        };
        if some > 1 && place == shard.shared.place {
            let mailbox = self.names.mailbox(head.to);
            if !mailbox.as_deref().is_some_and(drops_oldest) {
                let run = Run::new(payload, some, at);
                self.deliver_run(at, run, entry, slot, shard);
                return Ok(());
            }
        }
        // One, or into a mailbox that is not in this shard's ring, which takes or refuses each.
        loop {
            let tell = (Slot::NONE, When::TELL);
            let came = Came { actor: head.to, entry, payload: message };
            match self.deliver(at, came, tell, shard) {
                // A full mailbox has counted it.
                Ok(()) | Err(AskError::Full) => {}
                Err(_) => count_many(&shard.shared.counts.dead_letters, 1),
            }
            if rest.is_empty() {
                return Ok(());
            }
            (message, rest) = frame::piece(rest).ok_or(Nonsense)?;
        }
    }

    /// Several tells into the mailbox of an actor of the links' own shard.
    fn deliver_run(&mut self, at: u32, run: Run, entry: u16, slot: Slot, shard: &Shard) {
        let Some(several) = self.messages.get(entry).map(|entry| entry.several) else { return };
        match shard.deliver_run(slot, run, several) {
            Ok(()) => {}
            Err((NotSent::Full, run)) => self.stall(at, Stalled::Run(run, entry, slot)),
            Err((NotSent::Stopped, run)) => {
                count_many(&shard.shared.counts.dead_letters, run.left());
            }
        }
    }

    /// The kernel's buffer fills, then the sender's: it is slowed down.
    fn stall(&mut self, at: u32, what: Stalled) {
        self.any_stalled = true;
        let before = self.links[at as usize].stalled.replace(what);
        debug_assert!(before.is_none(), "nothing is taken off a link that is stalled");
        // Again each time that it stalls is for nothing, but the kernel is asked seldom.
        let _ = self.listen(at);
    }

    /// A message into its actor's mailbox.
    fn deliver(
        &mut self,
        at: u32,
        came: Came<'_>,
        asker: (Slot, When),
        shard: &Shard,
    ) -> Result<(), AskError> {
        let Came { actor, entry, payload } = came;
        let (place, slot) = self.names.told(actor).ok_or(AskError::Stopped)?;
        let entry = self.messages.get(entry).ok_or(AskError::Unregistered)?;
        let along = Along { names: &self.names, shard, link: at };
        if place != shard.shared.place {
            let parcel = (entry.parcel)(payload, along, slot, asker.0, asker.1);
            return deliver_undecoded(self.names.mailbox(actor), parcel);
        }
        match (entry.deliver)(payload, along, slot, asker.0, asker.1) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(back)) => {
                let (why, parcel) = *back;
                self.not_delivered(at, actor, why, parcel)
            }
            Err(_) => Err(AskError::Unregistered),
        }
    }

    #[cold]
    fn not_delivered(
        &mut self,
        at: u32,
        actor: u64,
        why: NotSent,
        parcel: Parcel,
    ) -> Result<(), AskError> {
        if why == NotSent::Stopped {
            return Err(AskError::Stopped);
        }
        let mailbox = self.names.mailbox(actor);
        if mailbox.as_deref().is_some_and(drops_oldest) {
            return deliver_away(mailbox, parcel);
        }
        self.stall(at, Stalled::One(parcel));
        Ok(())
    }

    /// Looks whether mailboxes that were full have room now.
    pub(super) fn retry_stalled(&mut self, shard: &Shard) {
        if !self.any_stalled {
            return;
        }
        if !shard.is_idle() && !self.turns.is_multiple_of(RETRY_TURNS) {
            return;
        }
        self.any_stalled = false;
        // Each time another one is first, so that each gets its room.
        let count = u32::try_from(self.links.len()).unwrap_or(u32::MAX);
        let first = self.retry_first % count.max(1);
        for at in (first..count).chain(0..first) {
            let Some(stalled) = self.links[at as usize].stalled.take() else { continue };
            if let Some(still) = self.retry(at, stalled, shard) {
                self.links[at as usize].stalled = Some(still);
                self.any_stalled = true;
                continue;
            }
            self.retry_first = at + 1;
            self.room.lend(&mut self.links[at as usize].tail);
            let listens = self.listen(at);
            if listens.is_err() || self.take_frames(at, shard).is_err() {
                self.broken(at, shard);
            }
        }
    }

    /// Delivers what was stalled, or gives back what still is.
    fn retry(&mut self, at: u32, stalled: Stalled, shard: &Shard) -> Option<Stalled> {
        match stalled {
            Stalled::One(parcel) => {
                let asker = parcel.asker;
                match shard.deliver(parcel) {
                    Ok(()) => None,
                    Err((NotSent::Full, parcel)) => Some(Stalled::One(parcel)),
                    Err((NotSent::Stopped, _)) => {
                        if let Some(serving) = self.serving.close(token_of(asker)) {
                            self.links[at as usize].serving.remove(serving.token);
                            self.fail_theirs(at, serving.token, AskError::Stopped);
                        } else {
                            count_many(&shard.shared.counts.dead_letters, 1);
                        }
                        None
                    }
                }
            }
            Stalled::Run(run, entry, slot) => {
                let several = self.messages.get(entry)?.several;
                match shard.deliver_run(slot, run, several) {
                    Ok(()) => None,
                    Err((NotSent::Full, run)) => Some(Stalled::Run(run, entry, slot)),
                    Err((NotSent::Stopped, run)) => {
                        count_many(&shard.shared.counts.dead_letters, run.left());
                        None
                    }
                }
            }
        }
    }

    fn take_answer(
        &mut self,
        at: u32,
        token: u64,
        payload: &[u8],
        shard: &Shard,
    ) -> Result<(), Nonsense> {
        match self.calls.answered(token, at) {
            Answered::Ask(asker, entry) => {
                let along = Along { names: &self.names, shard, link: at };
                let answer = self.messages.get(entry).map(|entry| entry.answer);
                let given = answer.map(|answer| answer(payload, along, asker.0, asker.1));
                if !matches!(given, Some(Ok(()))) {
                    shard.fail(asker.0, asker.1, AskError::Unanswered);
                }
                Ok(())
            }
            Answered::Nobody => Ok(()),
            Answered::Nonsense => Err(Nonsense),
        }
    }

    fn take_failure(&mut self, at: u32, token: u64, payload: &[u8], shard: &Shard) {
        let why = decode_error(payload);
        match self.calls.failed(token, at) {
            Some(Call::Ask { asker, .. }) => shard.fail(asker.0, asker.1, why),
            Some(Call::Resolve { link, found }) => {
                let why = if why == AskError::Stopped { PeerError::Tag } else { PeerError::Type };
                found(Err(why), Along { names: &self.names, shard, link });
            }
            None => {}
        }
    }

    pub(super) fn fail_theirs(&mut self, at: u32, token: u64, why: AskError) {
        self.push(at, Head::new(Kind::Failure, token), &encode_error(&why));
    }
}

/// Into a mailbox that is not in the ring of the links' own shard.
fn deliver_away(mailbox: Option<Arc<Mailbox>>, mut parcel: Parcel) -> Result<(), AskError> {
    let mailbox = mailbox.ok_or(AskError::Stopped)?;
    if drops_oldest(&mailbox) {
        let to = parcel.to;
        let put = mailbox.put_latest(to, parcel, |inbox, parcel| inbox.put(parcel));
        return put.map_err(|_| AskError::Stopped);
    }
    mailbox.reserve().map_err(AskError::from)?;
    parcel.when = parcel.when.counted_outside();
    let put = match &mailbox.route {
        Route::Inbox(inbox) => inbox.put(parcel),
        Route::Pool(pool) => pool.put(parcel),
    };
    put.map_err(|_| {
        mailbox.release();
        AskError::Stopped
    })
}

/// The same, if it could be decoded.
#[inline(never)]
fn deliver_undecoded(
    mailbox: Option<Arc<Mailbox>>,
    parcel: Result<Parcel, WireError>,
) -> Result<(), AskError> {
    deliver_away(mailbox, parcel.map_err(|_| AskError::Unregistered)?)
}

/// Such a mailbox is never full, and keeps its messages elsewhere than in a shard's ring.
fn drops_oldest(mailbox: &Mailbox) -> bool {
    mailbox.bound_in_ring() == 0
}
