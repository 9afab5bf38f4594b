//! Where an actor is, as everybody else holds it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::actor::{Message, Receives};
use crate::asked::Asked;
use crate::error::{NotSent, TellError};
use crate::mailbox::Policy;
use crate::parcel::{Parcel, Slot};
use crate::places::ShardInbox;
use crate::when::{NEVER, OUTSIDE, Place, When, deadline_after};
use crate::{clock, current, outside};

/// The part of a mailbox that all threads see.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) inbox: Arc<ShardInbox>,
    /// Messages from other threads and shards that have not been handled yet.
    pub(crate) outside: AtomicU32,
    pub(crate) bound: u32,
    pub(crate) policy: Policy,
    /// How many messages it did not take.
    pub(crate) refused: AtomicU32,
}

impl Mailbox {
    /// A place in the mailbox for one from outside.
    pub(crate) fn reserve(&self) -> Result<(), NotSent> {
        let taken = self.outside.fetch_add(1, Ordering::Relaxed);
        if taken < self.bound {
            return Ok(());
        }
        self.outside.fetch_sub(1, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(NotSent::Full)
    }

    /// One from outside was handled, or will never be.
    pub(crate) fn release(&self) {
        self.outside.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The address of an actor: from any thread, in any number, of an actor here or in a peer.
///
/// **Order**: what one sender sends to one receiver arrives in the order in which it was sent,
/// whether told or asked. A sender is an actor, or a thread that is no shard. Nothing is promised
/// between two senders.
pub struct Address<A> {
    pub(crate) place: Place,
    pub(crate) slot: Slot,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) actor: PhantomData<fn(A)>,
}

impl<A> Clone for Address<A> {
    fn clone(&self) -> Address<A> {
        let mailbox = Arc::clone(&self.mailbox);
        Address { place: self.place, slot: self.slot, mailbox, actor: PhantomData }
    }
}

impl<A> PartialEq for Address<A> {
    fn eq(&self, other: &Address<A>) -> bool {
        (self.place, self.slot) == (other.place, other.slot)
    }
}

impl<A> Eq for Address<A> {}

impl<A> std::fmt::Debug for Address<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({}.{}.{})", self.place, self.slot.index, self.slot.generation)
    }
}

impl<A> Address<A> {
    /// Sends and goes on. It does not wait: a full mailbox gives the message back (unless it drops
    /// its oldest), see [`Address::tell_waiting`].
    pub fn tell<M, How>(&self, message: M) -> Result<(), TellError<M>>
    where
        M: Message,
        A: Receives<M, How>,
    {
        current::with(|shard| match shard {
            Some(shard) => shard.send(self, message, Slot::NONE, When::TELL),
            None => self.put(message, Slot::NONE, When::TELL),
        })
    }

    /// Sends, and the answer can be awaited in any executor, or by [`Asked::wait`].
    pub fn ask<M, How>(&self, message: M) -> Asked<M::Answer>
    where
        M: Message,
        A: Receives<M, How>,
    {
        self.ask_until(message, NEVER)
    }

    /// The same with a deadline, which travels along: whatever is asked on the way has what is
    /// left of it.
    pub fn ask_within<M, How>(&self, message: M, within: Duration) -> Asked<M::Answer>
    where
        M: Message,
        A: Receives<M, How>,
    {
        self.ask_until(message, deadline_after(clock::now(), within))
    }

    fn ask_until<M, How>(&self, message: M, deadline: u64) -> Asked<M::Answer>
    where
        M: Message,
        A: Receives<M, How>,
    {
        let slot = outside::open();
        let when = When::new(OUTSIDE, deadline);
        let sent = current::with(|shard| match shard {
            Some(shard) => shard.send(self, message, slot, when),
            None => self.put(message, slot, when),
        });
        let failed = sent.err().map(|failed| failed.why.into());
        Asked::new(slot, deadline, Arc::clone(&self.mailbox.inbox), failed)
    }

    /// From a thread that is no shard.
    fn put<M, How>(&self, message: M, asker: Slot, when: When) -> Result<(), TellError<M>>
    where
        M: Message,
        A: Receives<M, How>,
    {
        if let Err(why) = self.mailbox.reserve() {
            return Err(TellError { why, message });
        }
        let what = &A::dispatch().0;
        let parcel = Parcel::new(what, self.slot, asker, when.counted_outside(), message);
        self.mailbox.inbox.put(parcel).map_err(|parcel| {
            self.mailbox.release();
            let message = parcel.open::<M>().unwrap_or_else(|_| unreachable!("just packed"));
            TellError { why: NotSent::Stopped, message }
        })
    }
}
