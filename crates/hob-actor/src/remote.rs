//! The seam between a shard and the links to peers: what a link layer implements, and what it may
//! ask of its shard. `link/` implements it; a test may too.
//!
//! # How a remote actor is an address
//! An [`Edge`] belongs to one shard and is only touched by that shard's thread, so it needs no
//! lock. When a remote actor has been resolved, the edge calls [`Shard::adopt`] with its [`Far`]
//! name and gets an address like any other: a record of the shard that has no state. Whoever sends
//! to that address, from this shard, another one or a thread, does what it always does; when its
//! shard comes to the message and finds no state but a `Far`, it hands the parcel to
//! [`Edge::send`]. An actor of the shard itself, ahead of whom nothing waits, is served at once; of
//! tells of one type to one actor, one after the other, several are handed over together
//! ([`Edge::send_many`]).
//!
//! # What goes out
//! `Edge::send` has the parcel: the message (its type by `Parcel::type_id`, itself by
//! `Parcel::open`), the asker's slot and `When`: the place of the asker and the deadline, which is
//! to be sent as *remaining* time (`when.deadline() - shard.now()`; `NEVER`: none). A tell
//! (`when.is_tell()`) has no reply. For an ask the edge keeps slot and place under a call number
//! of its own, and when the answer comes it calls [`Shard::answer`], or [`Shard::fail`] (a lost
//! peer: `AskError::Lost`, at once, for all that are open). If the asker gives up, the shard calls
//! [`Edge::cancel`] with the same slot and place; a cancel for a call that has ended is to be
//! ignored.
//!
//! # What comes in
//! The edge has a place number of its own ([`Shard::attach`] gives it). A message from a peer is a
//! parcel made with `A::dispatch()` of its receiver, with the edge's place in its `When`
//! (`When::new(place, shard.now() + remaining)`) and a slot of the edge's own choosing as asker;
//! [`Shard::deliver`] puts it into the mailbox, or says why not; so does [`Shard::deliver_run`] with
//! several tells in one parcel. The answer, or failure, comes back
//! as the parcel of [`Edge::answer`], whose `to` is that slot. A cancel from a peer goes
//! the way of its message ([`Shard::cancel_later`]), so that it comes after it.
//!
//! # When
//! [`Edge::turn`] runs once in each turn of the shard's loop, after its messages: the time to
//! write what was gathered and to read what has come. While the shard has nothing to do it sleeps
//! in [`Edge::sleep`], which waits for its bell too; what that brings is taken ([`Edge::woken`])
//! before the next turn.

use std::time::Duration;

use crate::api::error::NotSent;
use crate::memory::parcel::{Parcel, Slot, What};
use crate::memory::when::Place;
use crate::runtime::bell::Doorbell;
use crate::shard::Shard;
use crate::shard::tells::Gathered;

/// An actor over there, as its edge names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Far {
    /// Which of the edge's peers.
    pub(crate) peer: u32,
    /// Which of the peer's actors.
    pub(crate) actor: u64,
}

/// What happened in an edge's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Something came, or is still to be written: do not sleep yet.
    Busy,
    /// Nothing did.
    Idle,
}

/// The links of one shard.
pub(crate) trait Edge {
    /// A message for an actor over there; a tell or an ask. What cannot be sent at all is an error
    /// to its asker; the parcel is left as it is only if too much waits to be written already.
    fn send(&mut self, to: Far, parcel: &mut Parcel, shard: &Shard) -> Result<(), NotSent>;

    /// Whether messages of this type may be told to this actor without asking for each: there is
    /// a way to it, and room. A bound on how many: `tells.rs`.
    fn takes_many(&mut self, to: Far, what: &'static What) -> bool;

    /// Messages that were told one after the other, of a type of which [`Edge::takes_many`].
    fn send_many(&mut self, to: Far, told: &Gathered, shard: &Shard);

    /// What became of a call that came in: `parcel.to` is the slot that it came with.
    fn answer(&mut self, parcel: &mut Parcel, shard: &Shard);

    /// The asker of `slot` at `place` gave up.
    fn cancel(&mut self, slot: Slot, place: Place, shard: &Shard);

    /// Writes what was gathered, reads what has come.
    fn turn(&mut self, shard: &Shard) -> Turn;

    /// Sleeps until something comes, the bell rings, or the time is over.
    fn sleep(&mut self, bell: &Doorbell, at_most: Option<Duration>);

    /// Takes what the sleep has brought; the turn that follows handles it.
    fn woken(&mut self, shard: &Shard);

    /// The shard ends: write what is left.
    fn drain(&mut self, shard: &Shard);
}
