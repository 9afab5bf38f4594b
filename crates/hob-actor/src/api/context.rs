//! What a handler has at hand: its own address, the time that is left, and the way to others.

use std::marker::PhantomData;
use std::time::Duration;

use crate::api::actor::{Actor, AnyActor, Message, Receives};
use crate::api::address::Address;
use crate::api::asked::Ask;
use crate::api::error::TellError;
use crate::memory::parcel::{Slot, actor_of};
use crate::memory::when::{Millis, NEVER, When, deadline_after};
use crate::runtime::current;
use crate::runtime::mail::Mail;
use crate::shard::{End, Shard};

/// Lent to a handler for the time of one message.
pub struct Context<'a, A> {
    shard: &'a Shard,
    me: Slot,
    deadline: Millis,
    actor: PhantomData<fn(A)>,
}

impl<A> std::fmt::Debug for Context<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("me", &self.me).finish_non_exhaustive()
    }
}

/// The deadline of an ask, given what is left and what is wished; true if it is the ask's own.
fn bounded(shard: &Shard, left: Millis, within: Duration) -> (Millis, bool) {
    let wished = deadline_after(shard.now(), within);
    (wished.min(left), wished < left)
}

impl<'a, A: Actor> Context<'a, A> {
    #[inline]
    pub(crate) fn new(shard: &'a Shard, me: Slot, when: When) -> Context<'a, A> {
        Context { shard, me, deadline: when.deadline(), actor: PhantomData }
    }

    #[inline]
    pub(crate) fn shard(&self) -> &'a Shard {
        self.shard
    }

    pub(crate) fn slot(&self) -> Slot {
        self.me
    }

    /// The actor's own address.
    #[must_use]
    pub fn address(&self) -> Address<A> {
        let mailbox = self.shard.mailbox_of(self.me);
        // An actor that has just stopped itself still has an address, of nobody.
        let mailbox = mailbox.unwrap_or_else(|| self.shard.shared.mailbox(Mail::default()));
        Address { place: self.shard.shared.place, slot: self.me, mailbox, actor: PhantomData }
    }

    /// Sends and goes on.
    #[inline]
    pub fn tell<B, M, How>(&self, to: &Address<B>, message: M) -> Result<(), TellError<M>>
    where
        M: Message,
        B: Receives<M, How>,
    {
        self.shard.send(to, message, Slot::NONE, When::TELL)
    }

    /// Asks: the message leaves now, and the answer is awaited in the future that an
    /// [`AsyncHandler`](crate::AsyncHandler) returns. It has what is left of the time of the
    /// message that is being handled.
    #[inline]
    pub fn ask<B, M, How>(&self, to: &Address<B>, message: M) -> Ask<M::Answer>
    where
        M: Message,
        B: Receives<M, How>,
    {
        self.shard.ask(to, message, self.deadline, false)
    }

    /// The same with a deadline of its own, if that comes sooner.
    pub fn ask_within<B, M, How>(
        &self,
        to: &Address<B>,
        message: M,
        within: Duration,
    ) -> Ask<M::Answer>
    where
        M: Message,
        B: Receives<M, How>,
    {
        let (deadline, timed) = bounded(self.shard, self.deadline, within);
        self.shard.ask(to, message, deadline, timed)
    }

    /// What is left of the asker's time. None: no deadline.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let left = || self.deadline.saturating_sub(self.shard.now());
        (self.deadline < NEVER).then(|| Duration::from_millis(left()))
    }

    /// An actor on this actor's shard.
    pub fn spawn<B: Actor>(&self, actor: B) -> Address<B> {
        self.spawn_with(Mail::default(), actor)
    }

    /// The same with a mailbox as said.
    pub fn spawn_with<B: Actor>(&self, mail: Mail, actor: B) -> Address<B> {
        let (slot, mailbox) = self.shard.spawn(Box::new(actor), mail);
        Address { place: self.shard.shared.place, slot, mailbox, actor: PhantomData }
    }

    /// Ends this actor, after what it has sent to itself so far.
    pub fn stop(&self) {
        self.shard.stop(self.me);
    }

    /// Tells this actor when another has ended, as the message that `tell` makes of it; at once,
    /// if it has.
    pub fn watch<B, M, How>(&self, other: &Address<B>, tell: impl FnOnce(End) -> M + Send + 'static)
    where
        A: Receives<M, How>,
        M: Message,
    {
        let me = self.address();
        other.watch_with(Box::new(move |shard, end| {
            // One that has ended itself need not be told.
            let _ = shard.send(&me, tell(end), Slot::NONE, When::TELL);
        }));
    }

    /// The actor, for a future that is going to outlive this message.
    #[must_use]
    pub fn this(&self) -> This<A> {
        This { me: self.me, actor: PhantomData }
    }
}

/// An actor in the eyes of its own continuations: its state between two messages.
pub struct This<A> {
    me: Slot,
    // A shard's business: it does not leave its thread.
    actor: PhantomData<*const A>,
}

impl<A> Clone for This<A> {
    fn clone(&self) -> This<A> {
        *self
    }
}

impl<A> Copy for This<A> {}

impl<A> std::fmt::Debug for This<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("This").field("me", &self.me).finish_non_exhaustive()
    }
}

/// Where and for how long a continuation runs.
const OUTSIDE_OF_A_TASK: &str = "an actor's continuation is only polled by its own shard";

impl<A: Actor> This<A> {
    /// Runs `with` on the actor's state. The actor takes no message meanwhile; between two calls
    /// it may have.
    ///
    /// # Panics
    /// If it is not called from a continuation of this actor: inside another `with`, say.
    pub fn with<R>(&self, with: impl FnOnce(&mut A, &mut Context<'_, A>) -> R) -> R {
        current::with(|shard| {
            let shard = shard.expect(OUTSIDE_OF_A_TASK);
            let header = shard.polled_header().expect(OUTSIDE_OF_A_TASK);
            let ran = shard.with_state(self.me.index, |state: &mut dyn AnyActor, slot| {
                let state = actor_of::<A>(state).expect("an address names its actor's type");
                with(state, &mut Context::new(shard, slot, header.when()))
            });
            ran.expect("the actor is not in the middle of another call")
        })
    }

    /// Asks, with what is left of the time of the message that the continuation belongs to.
    pub fn ask<B, M, How>(&self, to: &Address<B>, message: M) -> Ask<M::Answer>
    where
        M: Message,
        B: Receives<M, How>,
    {
        current::with(|shard| {
            let shard = shard.expect(OUTSIDE_OF_A_TASK);
            let left = shard.polled_header().map_or(NEVER, |header| header.when().deadline());
            shard.ask(to, message, left, false)
        })
    }

    /// The same with a deadline of its own, if that comes sooner.
    pub fn ask_within<B, M, How>(
        &self,
        to: &Address<B>,
        message: M,
        within: Duration,
    ) -> Ask<M::Answer>
    where
        M: Message,
        B: Receives<M, How>,
    {
        current::with(|shard| {
            let shard = shard.expect(OUTSIDE_OF_A_TASK);
            let left = shard.polled_header().map_or(NEVER, |header| header.when().deadline());
            let (deadline, timed) = bounded(shard, left, within);
            shard.ask(to, message, deadline, timed)
        })
    }

    /// Sends and goes on.
    pub fn tell<B, M, How>(&self, to: &Address<B>, message: M) -> Result<(), TellError<M>>
    where
        M: Message,
        B: Receives<M, How>,
    {
        to.tell(message)
    }
}
