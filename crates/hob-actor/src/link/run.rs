//! Tells of one type to one actor, as they came: one parcel, whose messages are decoded when their
//! turn comes, straight into the handler.
//!
//! Invariant: a message is taken off before its handler runs, so one that panics is not run again,
//! and those behind it are.

use std::cell::Cell;

use super::frame;
use super::names::Along;
use super::wire::{Decoder, Wire};
use crate::api::actor::{AnyActor, Message, Receives};
use crate::api::context::Context;
use crate::memory::parcel::{Kind, Parcel, Slot, Typed, actor_of};
use crate::memory::when::When;
use crate::shard::{Shard, count};

/// How many messages of a run are handled before its shard looks at the clock again.
pub(crate) const AT_ONCE: u32 = 256;

/// What a parcel of several tells holds.
#[derive(Debug)]
pub(crate) struct Run {
    bytes: Box<[u8]>,
    /// Where the next one begins.
    at: Cell<u32>,
    /// How many there are from there on.
    left: Cell<u32>,
    /// The link over which it came.
    link: u32,
}

impl Run {
    /// `count` is how many messages the bytes hold.
    pub(crate) fn new(bytes: &[u8], count: u32, link: u32) -> Run {
        Run { bytes: bytes.into(), at: Cell::new(0), left: Cell::new(count), link }
    }

    pub(crate) fn left(&self) -> u32 {
        self.left.get()
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at.get() as usize..).unwrap_or_default()
    }

    /// Leaves this, and so many messages are in it.
    #[inline]
    fn leave(&self, rest: &[u8], left: u32) {
        // A frame's length has 32 bits.
        self.at.set(u32::try_from(self.bytes.len() - rest.len()).unwrap_or(u32::MAX));
        self.left.set(left);
    }

    /// Takes the next one off.
    #[inline]
    pub(crate) fn next(&self) -> Option<&[u8]> {
        let Some((message, after)) = frame::piece(self.rest()) else {
            self.left.set(0);
            return None;
        };
        self.leave(after, self.left.get().saturating_sub(1));
        Some(message)
    }

    /// The next `count` as a run of their own.
    pub(crate) fn split(&self, count: u32) -> Run {
        let from = self.at.get() as usize;
        let count = count.min(self.left());
        for _ in 0..count {
            self.next();
        }
        Run::new(&self.bytes[from..self.at.get() as usize], count, self.link)
    }
}

/// A run for an actor.
pub(crate) fn parcel<A, M, How>(run: Run, to: Slot) -> Parcel
where
    A: Receives<M, How>,
    M: Message + Wire,
{
    let what = &const { Typed::<Run>::running(Kind::Messages, handle::<A, M, How>) };
    Parcel::new(what, to, Slot::NONE, When::TELL, run)
}

/// Runs messages until one has parked its continuation, or it is somebody else's turn.
fn handle<A, M, How>(state: &mut dyn AnyActor, parcel: &mut Parcel, shard: &Shard) -> Option<u32>
where
    A: Receives<M, How>,
    M: Message + Wire,
{
    let (run, names, to) = (parcel.peek::<Run>()?, shard.names()?, parcel.to);
    let actor = actor_of::<A>(state)?;
    let (mut rest, mut left) = (run.rest(), run.left());
    for _ in 0..AT_ONCE {
        let Some((bytes, after)) = frame::piece(rest) else {
            run.left.set(0);
            break;
        };
        // Taken off before it is handled; what is known of the next one is not read back.
        (rest, left) = (after, left.saturating_sub(1));
        run.leave(rest, left);
        let along = Along { names: &names, shard, link: run.link };
        let Ok(message) = Decoder::whole::<M>(bytes, Some(along)) else {
            count(&shard.shared.counts.dead_letters);
            continue;
        };
        let task = actor.told(message, &mut Context::new(shard, to, When::TELL));
        if task.is_some() {
            return task;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_split_between_two_messages_and_none_is_lost() {
        let mut bytes = Vec::new();
        for value in 0..10 {
            frame::append_piece(&mut bytes, |out| out.extend([value; 3]));
        }
        let run = Run::new(&bytes, 10, 0);
        assert_eq!(run.next(), Some(&[0; 3][..]));
        let first = run.split(4);
        assert_eq!((first.left(), run.left()), (4, 5));
        let values = |run: &Run| -> Vec<u8> {
            std::iter::from_fn(|| run.next().map(|message| message[0])).collect()
        };
        assert_eq!((values(&first), values(&run)), (vec![1, 2, 3, 4], vec![5, 6, 7, 8, 9]));
        assert_eq!((first.left(), run.left(), run.split(3).left()), (0, 0, 0));
    }
}
