//! What travels: a message, an answer or a control word, in one cell of 64 bytes. A payload of up
//! to 32 bytes lies in the cell itself; a larger one is boxed.
//!
//! Invariants: `body` holds exactly one value of the type that `what.type_id` names, until it is
//! taken or dropped. Taking compares the types, so a parcel that reached the wrong place is handed
//! back, never misread.
//!
//! One of the three modules with `unsafe` code: a queue of messages of many types, without an
//! allocation for each, is not to be had from safe Rust. Miri runs over its tests.
#![expect(unsafe_code, reason = "a payload of any type lies in the cell itself")]

use std::any::{Any, TypeId};
use std::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

use crate::shard::Shard;
use crate::when::When;

const WORDS: usize = 4;

/// What to do with a parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// For an actor; counts against its mailbox.
    Message,
    /// For an open ask.
    Answer,
    /// For an open ask: an `AskError`.
    Failure,
    /// For a shard, exempt from every mailbox's bound: a `Control`.
    Control,
}

/// What runs a message: it gets the actor's state, and says which continuation it has parked.
pub(crate) type Run = fn(&mut dyn Any, Parcel, &Shard) -> Option<u32>;

/// What is known of a payload's type.
#[derive(Debug)]
pub(crate) struct What {
    pub(crate) kind: Kind,
    pub(crate) run: Run,
    type_id: fn() -> TypeId,
    drop: unsafe fn(&mut Body),
}

/// Who is meant: an actor of a shard, or an ask slot. The generation tells a later tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl Slot {
    pub(crate) const NONE: Slot = Slot { index: u32::MAX, generation: 0 };
}

struct Body([MaybeUninit<u64>; WORDS]);

/// The cell.
#[repr(C, align(64))]
pub(crate) struct Parcel {
    pub(crate) what: &'static What,
    pub(crate) to: Slot,
    pub(crate) asker: Slot,
    pub(crate) when: When,
    body: Body,
}

const _: () = assert!(size_of::<Parcel>() == 64, "a parcel is one line of the cache");

// SAFETY: a body is only made of a `T: Send` (see `Parcel::new`); the rest is plain numbers.
unsafe impl Send for Parcel {}

const fn inline<T>() -> bool {
    size_of::<T>() <= size_of::<Body>() && align_of::<T>() <= align_of::<Body>()
}

unsafe fn drop_body<T>(body: &mut Body) {
    let at = body.0.as_mut_ptr();
    if inline::<T>() {
        // SAFETY: the caller says that the body holds a `T`, which was written at its start.
        unsafe { at.cast::<T>().drop_in_place() };
    } else {
        // SAFETY: the same, for the box that was written instead.
        unsafe { at.cast::<Box<T>>().drop_in_place() };
    }
}

fn runs_nothing(_: &mut dyn Any, _: Parcel, _: &Shard) -> Option<u32> {
    None
}

impl What {
    /// Of a payload that a shard opens itself.
    pub(crate) const fn of<T: Send + 'static>(kind: Kind) -> What {
        What::running::<T>(kind, runs_nothing)
    }

    /// Of a message: `run` opens it.
    pub(crate) const fn running<T: Send + 'static>(kind: Kind, run: Run) -> What {
        What { kind, run, type_id: TypeId::of::<T>, drop: drop_body::<T> }
    }
}

impl Parcel {
    /// `what` must be of `T`; that is checked.
    #[inline]
    pub(crate) fn new<T: Send + 'static>(
        what: &'static What,
        to: Slot,
        asker: Slot,
        when: When,
        payload: T,
    ) -> Parcel {
        assert!((what.type_id)() == TypeId::of::<T>(), "a parcel's type is its payload's");
        let mut body = Body([MaybeUninit::uninit(); WORDS]);
        let at = body.0.as_mut_ptr();
        if inline::<T>() {
            // SAFETY: size and alignment fit, and nothing is there yet.
            unsafe { at.cast::<T>().write(payload) };
        } else {
            // SAFETY: a thin pointer fits, and nothing is there yet.
            unsafe { at.cast::<Box<T>>().write(Box::new(payload)) };
        }
        Parcel { what, to, asker, when, body }
    }

    /// The payload, or the parcel back if it holds another type.
    #[inline]
    pub(crate) fn open<T: Send + 'static>(self) -> Result<T, Parcel> {
        if (self.what.type_id)() != TypeId::of::<T>() {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        let at = this.body.0.as_ptr();
        Ok(if inline::<T>() {
            // SAFETY: the types agree, so `new` wrote a `T` here; `this` is not dropped, so the
            // value is moved out once.
            unsafe { at.cast::<T>().read() }
        } else {
            // SAFETY: the same, for the box.
            *unsafe { at.cast::<Box<T>>().read() }
        })
    }

    /// Looks at the payload.
    pub(crate) fn peek<T: Send + 'static>(&self) -> Option<&T> {
        if (self.what.type_id)() != TypeId::of::<T>() {
            return None;
        }
        let at = self.body.0.as_ptr();
        Some(if inline::<T>() {
            // SAFETY: the types agree, and the borrow lasts as long as the parcel's.
            unsafe { &*at.cast::<T>() }
        } else {
            // SAFETY: the same, through the box.
            unsafe { &**at.cast::<Box<T>>() }
        })
    }

    /// The payload's type.
    pub(crate) fn type_id(&self) -> TypeId {
        (self.what.type_id)()
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        // SAFETY: `what` is of the type that `new` wrote, and nobody has taken it: `open` forgets
        // the parcel.
        unsafe { (self.what.drop)(&mut self.body) };
    }
}

impl std::fmt::Debug for Parcel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.what.kind;
        f.debug_struct("Parcel").field("kind", &kind).field("to", &self.to).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn parcel<T: Send + 'static>(what: &'static What, payload: T) -> Parcel {
        Parcel::new(what, Slot::NONE, Slot::NONE, When::TELL, payload)
    }

    #[test]
    fn a_small_payload_a_large_one_and_one_of_odd_alignment_come_out_as_they_went_in() {
        #[derive(Debug, PartialEq, Clone, Copy)]
        #[repr(align(32))]
        struct Wide(u8);
        const SMALL: What = What::of::<(u64, u8)>(Kind::Answer);
        const LARGE: What = What::of::<[u64; 40]>(Kind::Answer);
        const WIDE: What = What::of::<Wide>(Kind::Answer);
        assert_eq!(parcel(&SMALL, (7u64, 9u8)).open::<(u64, u8)>().ok(), Some((7, 9)));
        assert_eq!(parcel(&LARGE, [3u64; 40]).open::<[u64; 40]>().ok(), Some([3; 40]));
        assert_eq!(parcel(&WIDE, Wide(5)).peek::<Wide>(), Some(&Wide(5)));
        assert_eq!(parcel(&WIDE, Wide(5)).open::<Wide>().ok(), Some(Wide(5)));
    }

    #[test]
    fn another_type_is_refused_and_the_parcel_is_whole() {
        const TEXT: What = What::of::<String>(Kind::Answer);
        let text = parcel(&TEXT, "a".to_owned());
        assert!(text.peek::<u64>().is_none());
        let back = text.open::<u64>().expect_err("a string is no number");
        assert_eq!(back.open::<String>().ok().as_deref(), Some("a"));
    }

    #[test]
    fn a_payload_that_nobody_takes_is_dropped_once() {
        const SMALL: What = What::of::<Arc<()>>(Kind::Answer);
        const LARGE: What = What::of::<(Arc<()>, [u64; 9])>(Kind::Answer);
        let count = Arc::new(());
        drop(parcel(&SMALL, Arc::clone(&count)));
        drop(parcel(&LARGE, (Arc::clone(&count), [0u64; 9])));
        let taken = parcel(&SMALL, Arc::clone(&count)).open::<Arc<()>>();
        assert_eq!(Arc::strong_count(&count), 2);
        drop(taken);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
