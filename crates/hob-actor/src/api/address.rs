//! Where an actor is, as everybody else holds it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::api::actor::{Message, Receives};
use crate::api::asked::{Asked, block_on};
use crate::api::error::{NotSent, TellError};
use crate::memory::parcel::{Label, Slot};
use crate::memory::when::{NEVER, OUTSIDE, Place, When, deadline_after};
use crate::runtime::mail::Policy;
use crate::runtime::mailbox::Mailbox;
use crate::runtime::{clock, current, outside};
use crate::shard::{Control, End, Shard, Watcher};

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
    /// its oldest), see [`Address::send`] and [`Address::tell_waiting`].
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
        Asked::new(slot, deadline, Arc::clone(&self.mailbox), failed)
    }

    /// From a thread that is no shard.
    fn put<M, How>(&self, message: M, asker: Slot, when: When) -> Result<(), TellError<M>>
    where
        M: Message,
        A: Receives<M, How>,
    {
        let what = &A::dispatch().0;
        let label = Label { to: self.slot, asker, when };
        self.mailbox.put(what, label, message, |inbox, parcel| inbox.put(parcel))
    }

    /// Sends, and waits for a place in a full mailbox if its policy is [`Policy::Wait`]. In a
    /// handler's future it is awaited; the actor takes further messages meanwhile.
    ///
    /// [`Policy::Wait`]: crate::Policy::Wait
    pub fn send<M, How>(&self, message: M) -> impl Future<Output = Result<(), TellError<M>>>
    where
        M: Message,
        A: Receives<M, How>,
    {
        let mut message = Some(message);
        std::future::poll_fn(move |cx| {
            for attempt in [Attempt::First, Attempt::Second] {
                let Some(next) = message.take() else { return Poll::Pending };
                match self.tell(next) {
                    Err(TellError { why: NotSent::Full, message: back })
                        if self.mailbox.policy == Policy::Wait =>
                    {
                        message = Some(back);
                        if attempt == Attempt::First {
                            // Once more afterwards: a place may have become free in between.
                            self.wait_for_room(cx.waker());
                        }
                    }
                    done => return Poll::Ready(done),
                }
            }
            Poll::Pending
        })
    }

    fn wait_for_room(&self, waker: &Waker) {
        self.mailbox.wait(waker);
        current::with(|shard| {
            if let Some(shard) = shard.filter(|shard| shard.shared.place == self.place) {
                shard.wait_for_room(self.slot);
            }
        });
    }

    /// The same for a thread, which blocks. On a shard's thread, which must not, it does not wait.
    pub fn tell_waiting<M, How>(&self, message: M) -> Result<(), TellError<M>>
    where
        M: Message,
        A: Receives<M, How>,
    {
        if current::with(|shard| shard.is_some()) {
            return self.tell(message);
        }
        match self.tell(message) {
            Err(TellError { why: NotSent::Full, message }) => block_on(self.send(message)),
            done => done,
        }
    }

    /// Ends the actor, after what this sender has sent it so far; what others send later becomes
    /// dead letters. Exempt from the mailbox's bound.
    pub fn stop(&self) {
        self.control(Control::Stop);
    }

    /// How many messages its mailbox has not taken for being full.
    #[must_use]
    pub fn refused(&self) -> u32 {
        self.mailbox.refused.load(Ordering::Relaxed)
    }

    /// Resolves when the actor has ended.
    pub fn ended(&self) -> Asked<End> {
        let slot = outside::open();
        let when = When::new(OUTSIDE, NEVER);
        let me = Arc::clone(&self.mailbox);
        self.watch_with(Box::new(move |_, end| current::answer(slot, when, end)));
        Asked::new(slot, NEVER, me, None)
    }

    pub(crate) fn watch_with(&self, tell: Watcher) {
        self.control(Control::Watch(tell));
    }

    fn control(&self, control: Control) {
        let parcel = Shard::control_parcel(self.slot, Slot::NONE, control);
        current::with(|shard| match shard {
            Some(shard) => shard.control_away(self.place, &self.mailbox, parcel),
            None => self.mailbox.control(parcel),
        });
    }

    /// A number that no other actor of this process has or will have.
    #[must_use]
    pub fn id(&self) -> ActorId {
        ActorId { place: self.place, slot: self.slot }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Second,
}

/// Which actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ActorId {
    place: Place,
    slot: Slot,
}
