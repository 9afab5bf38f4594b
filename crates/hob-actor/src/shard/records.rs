//! The actors of a shard: their states, and how many messages wait for each.
//!
//! Invariant: an actor's state is absent exactly while one of its handlers runs, while it waits to
//! be restarted, or if it lives in a peer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::api::actor::AnyActor;
use crate::api::error::NotSent;
use crate::memory::parcel::{Parcel, Slot};
use crate::remote::Far;
use crate::runtime::mailbox::Mailbox;
use crate::shard::{Make, Watcher};

/// What few actors have.
#[derive(Default)]
pub(crate) struct Ties {
    pub(crate) group: Option<u32>,
    pub(crate) make: Option<Make>,
    pub(crate) watchers: Vec<Watcher>,
    /// What came while it waited to be restarted.
    pub(crate) backlog: VecDeque<Parcel>,
    pub(crate) waiting: bool,
}

/// One actor.
/// One line of the cache: a send and the message's turn touch nothing else of it.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Record {
    pub(crate) generation: u32,
    /// Messages that wait in the ring or in the backlog.
    pub(crate) queued: u32,
    pub(crate) bound: u32,
    /// Continuations that are parked.
    pub(crate) parked: u32,
    pub(crate) state: Option<Box<dyn AnyActor>>,
    pub(crate) mailbox: Option<Arc<Mailbox>>,
    pub(crate) far: Option<Box<Far>>,
    pub(crate) ties: Option<Box<Ties>>,
    /// Somebody of this shard waits for a place in the mailbox.
    pub(crate) waited: bool,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Records {
    all: Vec<Record>,
    free: Vec<u32>,
}

impl Records {
    /// A place for an actor, without its state. `next` is shared with those who spawn from other
    /// threads.
    pub(crate) fn insert(&mut self, next: &AtomicU32, mailbox: Arc<Mailbox>) -> Slot {
        let index = self.free.pop().unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
        let before = self.all.get(index as usize).map_or(0, |record| record.generation);
        let slot = Slot { index, generation: before.wrapping_add(1) };
        self.insert_at(slot, mailbox);
        slot
    }

    /// A place at an index that was reserved.
    pub(crate) fn insert_at(&mut self, slot: Slot, mailbox: Arc<Mailbox>) {
        let index = slot.index as usize;
        if self.all.len() <= index {
            self.all.resize_with(index + 1, Record::default);
        }
        let record = &mut self.all[index];
        *record = Record {
            generation: slot.generation,
            bound: mailbox.bound_in_ring(),
            ..Record::default()
        };
        record.mailbox = Some(mailbox);
    }

    #[inline]
    pub(crate) fn get(&mut self, at: Slot) -> Option<&mut Record> {
        let record = self.all.get_mut(at.index as usize)?;
        (record.generation == at.generation).then_some(record)
    }

    /// By its index alone: who asks knows that it is the same actor still.
    pub(crate) fn at(&mut self, index: u32) -> Option<(Slot, &mut Record)> {
        let record = self.all.get_mut(index as usize)?;
        Some((Slot { index, generation: record.generation }, record))
    }

    /// Counts one message in, if it may wait.
    #[inline]
    pub(crate) fn admit(&mut self, at: Slot) -> Result<(), NotSent> {
        let Some(record) = self.get(at) else { return Err(NotSent::Stopped) };
        if record.queued >= record.bound {
            return Err(NotSent::Full);
        }
        record.queued += 1;
        Ok(())
    }

    pub(crate) fn is_far(&self, at: Slot) -> bool {
        self.all.get(at.index as usize).is_some_and(|record| record.far.is_some())
    }

    /// Where an actor is that lives in a peer, and how many messages wait to go there.
    pub(crate) fn far(&mut self, at: Slot) -> (Option<Far>, u32) {
        self.get(at).map_or((None, 0), |record| (record.far.as_deref().copied(), record.queued))
    }

    /// Counts in as many of `count` messages as may wait: all, or at least half of a mailbox, so
    /// that a run is not taken apart message by message.
    pub(crate) fn admit_some(&mut self, at: Slot, count: u32) -> Result<u32, NotSent> {
        let Some(record) = self.get(at) else { return Err(NotSent::Stopped) };
        let room = record.bound.saturating_sub(record.queued);
        if room == 0 || (room < count && room < record.bound / 2) {
            return Err(NotSent::Full);
        }
        let some = room.min(count);
        record.queued += some;
        Ok(some)
    }

    /// Ends an actor: its address is nobody's from now on. Its index is free for the next one only
    /// after [`Records::reuse`], for its continuations still carry it.
    pub(crate) fn remove(&mut self, at: Slot) -> Option<Box<dyn AnyActor>> {
        let record = self.get(at)?;
        record.generation = record.generation.wrapping_add(1);
        record.queued = 0;
        record.mailbox = None;
        record.far = None;
        record.ties = None;
        record.state.take()
    }

    /// The index may be given out again.
    pub(crate) fn reuse(&mut self, index: u32) {
        self.free.push(index);
    }

    /// All that are there.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let there = self.all.iter().enumerate().filter(|(_, record)| record.mailbox.is_some());
        there
            .map(|(index, record)| Slot {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                generation: record.generation,
            })
            .collect()
    }
}
