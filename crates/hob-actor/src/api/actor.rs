//! What a user writes: messages with their answers, actors, and how an actor handles a message.
//!
//! The same message may be handled at once ([`Handler`]), by a future ([`AsyncHandler`]), or by a
//! reply that is passed on or kept ([`ReplyHandler`]); an actor implements one of the three for
//! each message that it takes, and a sender does not see which.

use std::any::TypeId;
use std::future::Future;

use crate::api::context::Context;
use crate::api::reply::Reply;
use crate::memory::parcel::{Kind, Parcel, Slot, Typed, actor_of};
use crate::memory::tasks::Header;
use crate::memory::when::When;
use crate::shard::Shard;

/// What is sent. `#[derive(Message)]` with `#[answer(Type)]` implements it; by hand it is:
///
/// ```
/// use hob_actor::Message;
///
/// struct Greet(String);
/// impl Message for Greet {
///     type Answer = String;
/// }
/// ```
pub trait Message: Send + 'static {
    /// What an ask of it gives back; `()` for what is only told.
    type Answer: Send + 'static;
}

/// State that is only ever touched by its own messages, one at a time.
pub trait Actor: Sized + 'static {
    /// Runs before the first message, also after a restart.
    fn started(&mut self, cx: &mut Context<'_, Self>) {
        let _ = cx;
    }

    /// Runs after the last one. A state that panicked is not asked.
    fn stopped(&mut self) {}
}

/// Answers before it returns.
///
/// ```
/// use hob_actor::{Actor, Context, Handler, Message, System};
///
/// #[derive(Message)]
/// #[answer(u64)]
/// struct Add(u64);
///
/// #[derive(Default)]
/// struct Counter(u64);
/// impl Actor for Counter {}
/// impl Handler<Add> for Counter {
///     fn handle(&mut self, Add(n): Add, _: &mut Context<'_, Self>) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// let system = System::with_shards(1)?;
/// let counter = system.spawn(Counter::default());
/// counter.tell(Add(1))?;
/// assert_eq!(counter.ask(Add(2)).wait()?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Handler<M: Message>: Actor {
    /// Runs to its end; nothing else runs on the actor's shard meanwhile.
    fn handle(&mut self, message: M, cx: &mut Context<'_, Self>) -> M::Answer;
}

/// Answers when its future ends.
///
/// The future is parked beside the actor and does not borrow it: the actor takes further messages
/// while it waits, so that actors may ask each other in rings. What it needs of the actor it takes
/// with it, or reaches for with [`This::with`](crate::This::with).
///
/// ```
/// use hob_actor::{Actor, Address, AsyncHandler, Context, Handler, Message, System};
///
/// #[derive(Message)]
/// #[answer(u64)]
/// struct Double(u64);
///
/// struct Doubles;
/// impl Actor for Doubles {}
/// impl Handler<Double> for Doubles {
///     fn handle(&mut self, Double(n): Double, _: &mut Context<'_, Self>) -> u64 {
///         n * 2
///     }
/// }
///
/// /// Answers four times the number, by asking twice.
/// struct Asks(Address<Doubles>);
/// impl Actor for Asks {}
/// impl AsyncHandler<Double> for Asks {
///     fn handle(
///         &mut self,
///         Double(n): Double,
///         cx: &mut Context<'_, Self>,
///     ) -> impl Future<Output = u64> + 'static {
///         let (this, doubles) = (cx.this(), self.0.clone());
///         async move {
///             let Ok(twice) = this.ask(&doubles, Double(n)).await else { return 0 };
///             this.ask(&doubles, Double(twice)).await.unwrap_or(0)
///         }
///     }
/// }
///
/// let system = System::with_shards(1)?;
/// let asks = system.spawn(Asks(system.spawn(Doubles)));
/// assert_eq!(asks.ask(Double(5)).wait()?, 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AsyncHandler<M: Message>: Actor {
    /// Runs to its end at once; the future that it returns is polled right afterwards.
    fn handle(
        &mut self,
        message: M,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = M::Answer> + 'static;
}

/// Answers by a [`Reply`], now or later, here or elsewhere.
///
/// ```
/// use hob_actor::{Actor, Context, Message, Reply, ReplyHandler, System};
///
/// #[derive(Message)]
/// #[answer(u64)]
/// struct Sum(Vec<u64>);
///
/// struct Sums;
/// impl Actor for Sums {}
/// impl ReplyHandler<Sum> for Sums {
///     fn handle(&mut self, Sum(list): Sum, reply: Reply<u64>, _: &mut Context<'_, Self>) {
///         std::thread::spawn(move || reply.send(list.iter().sum()));
///     }
/// }
///
/// let system = System::with_shards(1)?;
/// assert_eq!(system.spawn(Sums).ask(Sum(vec![1, 2, 3])).wait()?, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ReplyHandler<M: Message>: Actor {
    /// Runs to its end; a reply that is dropped tells the asker so.
    fn handle(&mut self, message: M, reply: Reply<M::Answer>, cx: &mut Context<'_, Self>);
}

/// Marks [`Receives`] for a [`Handler`].
#[derive(Debug)]
pub struct AtOnce;
/// Marks [`Receives`] for an [`AsyncHandler`].
#[derive(Debug)]
pub struct ByFuture;
/// Marks [`Receives`] for a [`ReplyHandler`].
#[derive(Debug)]
pub struct ByReply;

/// That an actor takes a message, in whichever way; `How` is inferred.
pub trait Receives<M: Message, How>: Actor {
    #[doc(hidden)]
    fn dispatch() -> &'static Dispatch<M>;

    /// Handles a message for which nobody waits; the continuation that it has parked, if any.
    #[doc(hidden)]
    fn told(&mut self, message: M, cx: &mut Context<'_, Self>) -> Option<u32>;
}

/// What a parcel needs to know of its actor's way.
#[derive(Debug)]
pub struct Dispatch<M>(pub(crate) Typed<M>);

impl<A: Handler<M>, M: Message> Receives<M, AtOnce> for A {
    #[inline]
    fn dispatch() -> &'static Dispatch<M> {
        &const { Dispatch(Typed::running(Kind::Message, at_once::<A, M>)) }
    }

    #[inline]
    fn told(&mut self, message: M, cx: &mut Context<'_, A>) -> Option<u32> {
        self.handle(message, cx);
        None
    }
}

impl<A: AsyncHandler<M>, M: Message> Receives<M, ByFuture> for A {
    #[inline]
    fn dispatch() -> &'static Dispatch<M> {
        &const { Dispatch(Typed::running(Kind::Message, by_future::<A, M>)) }
    }

    fn told(&mut self, message: M, cx: &mut Context<'_, A>) -> Option<u32> {
        let header = Header::new(cx.slot().index, Slot::NONE, When::TELL);
        cx.shard().park(header, || self.handle(message, cx))
    }
}

impl<A: ReplyHandler<M>, M: Message> Receives<M, ByReply> for A {
    #[inline]
    fn dispatch() -> &'static Dispatch<M> {
        &const { Dispatch(Typed::running(Kind::Message, by_reply::<A, M>)) }
    }

    fn told(&mut self, message: M, cx: &mut Context<'_, A>) -> Option<u32> {
        self.handle(message, Reply::to(Slot::NONE, When::TELL), cx);
        None
    }
}

// What runs a message. Should actor or message be of another type than the parcel says, its reply
// is dropped and its asker told; the order of things in a shard does not let that happen.

fn at_once<A: Handler<M>, M: Message>(
    state: &mut dyn AnyActor,
    parcel: &mut Parcel,
    shard: &Shard,
) -> Option<u32> {
    let what = &<A as Receives<M, AtOnce>>::dispatch().0;
    let reply = Reply::<M::Answer>::to(parcel.asker, parcel.when.uncounted());
    let (actor, message, to) = (actor_of::<A>(state)?, parcel.take_as(what)?, parcel.to);
    let answer = actor.handle(message, &mut Context::new(shard, to, reply.when()));
    reply.send_from(shard, answer);
    None
}

fn by_future<A: AsyncHandler<M>, M: Message>(
    state: &mut dyn AnyActor,
    parcel: &mut Parcel,
    shard: &Shard,
) -> Option<u32> {
    let what = &<A as Receives<M, ByFuture>>::dispatch().0;
    let reply = Reply::<M::Answer>::to(parcel.asker, parcel.when.uncounted());
    let (actor, message, to) = (actor_of::<A>(state)?, parcel.take_as(what)?, parcel.to);
    let header = Header::new(to.index, parcel.asker, reply.when());
    let mut cx = Context::new(shard, to, header.when());
    shard.park(header, || {
        let future = actor.handle(message, &mut cx);
        // From here on it is the continuation that answers.
        reply.into_parts();
        future
    })
}

fn by_reply<A: ReplyHandler<M>, M: Message>(
    state: &mut dyn AnyActor,
    parcel: &mut Parcel,
    shard: &Shard,
) -> Option<u32> {
    let what = &<A as Receives<M, ByReply>>::dispatch().0;
    let reply = Reply::<M::Answer>::to(parcel.asker, parcel.when.uncounted());
    let (actor, message, to) = (actor_of::<A>(state)?, parcel.take_as(what)?, parcel.to);
    let when = reply.when();
    actor.handle(message, reply, &mut Context::new(shard, to, when));
    None
}

/// An actor whose type is not known.
pub(crate) trait AnyActor {
    /// Whether this is its type.
    fn is(&self, other: &TypeId) -> bool;
    fn started(&mut self, shard: &Shard, me: Slot);
    fn stopped(&mut self);
}

impl<A: Actor> AnyActor for A {
    fn is(&self, other: &TypeId) -> bool {
        *other == TypeId::of::<A>()
    }

    fn started(&mut self, shard: &Shard, me: Slot) {
        Actor::started(self, &mut Context::new(shard, me, When::TELL));
    }

    fn stopped(&mut self) {
        Actor::stopped(self);
    }
}
