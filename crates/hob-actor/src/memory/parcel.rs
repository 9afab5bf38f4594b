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
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::ptr::NonNull;

use crate::api::actor::{Actor, AnyActor, Message};
use crate::api::error::AskError;
use crate::link::run;
use crate::memory::when::When;
use crate::shard::Shard;

const WORDS: usize = 4;

/// What to do with a parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// For an actor; counts against its mailbox.
    Message,
    /// The same, several tells at once: a `Run` of a link.
    Messages,
    /// For an open ask.
    Answer,
    /// For an open ask: an `AskError`.
    Failure,
    /// For a shard, exempt from every mailbox's bound: a `Control`.
    Control,
    /// For nobody: it was opened.
    Taken,
}

/// What runs a message: it gets the actor's state, and says which continuation it has parked.
pub(crate) type Run = fn(&mut dyn AnyActor, &mut Parcel, &Shard) -> Option<u32>;

/// What is known of a payload's type.
#[derive(Debug)]
pub(crate) struct What {
    pub(crate) kind: Kind,
    pub(crate) run: Run,
    /// Whether it is this one: compared where both are constants, for a type's number that was just
    /// written to the stack is slow to read back.
    is: fn(&TypeId) -> bool,
    type_id: fn() -> TypeId,
    drop: unsafe fn(&mut Body),
}

/// The same, for the payload's own type: what makes a parcel right from the start.
#[derive(Debug)]
pub(crate) struct Typed<T> {
    what: What,
    of: PhantomData<fn(T)>,
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

/// For whom a parcel is, who waits for what comes of it, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label {
    pub(crate) to: Slot,
    pub(crate) asker: Slot,
    pub(crate) when: When,
}

struct Body([MaybeUninit<u64>; WORDS]);

/// The cell.
#[repr(C, align(64))]
pub(crate) struct Parcel {
    what: &'static What,
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

/// What is left of a parcel whose payload was taken.
static TAKEN: What = What {
    kind: Kind::Taken,
    run: runs_nothing,
    is: is::<Taken>,
    type_id: TypeId::of::<Taken>,
    drop: drop_nothing,
};
struct Taken;

unsafe fn drop_nothing(_: &mut Body) {}

fn is<T: 'static>(other: &TypeId) -> bool {
    *other == TypeId::of::<T>()
}

/// An actor by its type. None: it is another one.
#[inline]
pub(crate) fn actor_of<A: Actor>(actor: &mut dyn AnyActor) -> Option<&mut A> {
    // SAFETY: `is` is implemented once, for all actors, and compares the type itself.
    actor.is(&TypeId::of::<A>()).then(|| unsafe { &mut *(&raw mut *actor).cast::<A>() })
}

/// Messages of one type.
pub(crate) trait Many: Any {
    /// Whether this is their type.
    fn are(&self, other: &TypeId) -> bool;
    fn count(&self) -> usize;
    fn clear(&mut self);
}

impl<M: Message> Many for Vec<M> {
    fn are(&self, other: &TypeId) -> bool {
        *other == TypeId::of::<M>()
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// Messages by their type, compared as everything here is. None: they are of another one.
#[inline]
pub(crate) fn messages_of<M: Message>(many: &mut dyn Many) -> Option<&mut Vec<M>> {
    // SAFETY: `are` is implemented once, for all vectors of messages, and compares the type itself.
    many.are(&TypeId::of::<M>()).then(|| unsafe { &mut *(&raw mut *many).cast::<Vec<M>>() })
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

fn runs_nothing(_: &mut dyn AnyActor, _: &mut Parcel, _: &Shard) -> Option<u32> {
    None
}

impl What {
    /// What stands for the payload's type: another address may stand for the same type.
    #[inline]
    pub(crate) fn at(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The payload's type.
    pub(crate) fn type_id(&self) -> TypeId {
        (self.type_id)()
    }
}

impl<T> Typed<T> {
    /// Without the type itself.
    #[inline]
    pub(crate) fn what(&'static self) -> &'static What {
        &self.what
    }
}

impl<T: Send + 'static> Typed<T> {
    /// Of a payload that a shard opens itself.
    pub(crate) const fn of(kind: Kind) -> Typed<T> {
        Typed::running(kind, runs_nothing)
    }

    /// Of an answer.
    #[inline]
    pub(crate) fn answer() -> &'static Typed<T> {
        &const { Typed::of(Kind::Answer) }
    }

    /// Of a message: `run` opens it.
    pub(crate) const fn running(kind: Kind, run: Run) -> Typed<T> {
        let what = What { kind, run, is: is::<T>, type_id: TypeId::of::<T>, drop: drop_body::<T> };
        Typed { what, of: PhantomData }
    }
}

impl Body {
    #[inline]
    fn write<T>(&mut self, payload: T) {
        let at = self.0.as_mut_ptr();
        if inline::<T>() {
            // SAFETY: size and alignment fit; what was there before is not dropped, for nothing is.
            unsafe { at.cast::<T>().write(payload) };
        } else {
            // SAFETY: a thin pointer fits; the same.
            unsafe { at.cast::<Box<T>>().write(Box::new(payload)) };
        }
    }

    /// The caller says that a `T` was written here, and that nobody reads or drops it again.
    #[inline]
    unsafe fn read<T>(&self) -> T {
        let at = self.0.as_ptr();
        if inline::<T>() {
            // SAFETY: as the caller says.
            unsafe { at.cast::<T>().read() }
        } else {
            // SAFETY: the same, for the box that was written instead.
            *unsafe { at.cast::<Box<T>>().read() }
        }
    }
}

impl Parcel {
    #[inline]
    pub(crate) fn new<T: Send + 'static>(
        what: &'static Typed<T>,
        to: Slot,
        asker: Slot,
        when: When,
        payload: T,
    ) -> Parcel {
        let mut body = Body([MaybeUninit::uninit(); WORDS]);
        body.write(payload);
        Parcel { what: &what.what, to, asker, when, body }
    }

    /// One that is used where it is made. It is written there: a copy of what was just written, in
    /// other pieces, has to wait for it.
    #[inline]
    pub(crate) fn with<T: Send + 'static, R>(
        what: &'static Typed<T>,
        Label { to, asker, when }: Label,
        payload: T,
        used: impl FnOnce(&mut Parcel) -> R,
    ) -> R {
        let body = Body([MaybeUninit::uninit(); WORDS]);
        let mut parcel = Parcel { what: &TAKEN, to, asker, when, body };
        parcel.body.write(payload);
        parcel.what = &what.what;
        used(&mut parcel)
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.what.kind
    }

    #[inline]
    pub(crate) fn run(&self) -> Run {
        self.what.run
    }

    /// The payload, taken out where it lies. None: it is of another type, and stays.
    #[inline]
    pub(crate) fn take<T: Send + 'static>(&mut self) -> Option<T> {
        if !(self.what.is)(&TypeId::of::<T>()) {
            return None;
        }
        self.what = &TAKEN;
        // SAFETY: the types agree, so a `T` was written here; nobody takes it again or drops it,
        // for the parcel says that it was taken.
        Some(unsafe { self.body.read() })
    }

    /// The same, of a payload that was most likely made with `what`: comparing where the two lie
    /// spares a call. They lie at one place only if they are alike in everything, and what
    /// compares the types is not.
    #[inline]
    pub(crate) fn take_as<T: Send + 'static>(&mut self, what: &'static Typed<T>) -> Option<T> {
        if !std::ptr::eq(self.what, &raw const what.what) {
            return self.take();
        }
        self.what = &TAKEN;
        // SAFETY: the parcel's `what` is one of a `T`; and as in `take`.
        Some(unsafe { self.body.read() })
    }

    /// The whole parcel; what is left is taken.
    #[inline]
    pub(crate) fn take_whole(&mut self) -> Parcel {
        let body = Body(self.body.0);
        let what = std::mem::replace(&mut self.what, &TAKEN);
        Parcel { what, to: self.to, asker: self.asker, when: self.when, body }
    }

    /// The payload, or the parcel back if it holds another type.
    #[inline]
    pub(crate) fn open<T: Send + 'static>(mut self) -> Result<T, Parcel> {
        self.take().ok_or(self)
    }

    /// The answer in it, or why there is none, taken out where it lies.
    #[inline]
    pub(crate) fn take_answer<T: Send + 'static>(&mut self) -> Result<T, AskError> {
        if std::ptr::eq(self.what, Typed::<T>::answer().what())
            && let Some(answer) = self.take_as(Typed::<T>::answer())
        {
            return Ok(answer);
        }
        self.take_rare_answer()
    }

    #[cold]
    fn take_rare_answer<T: Send + 'static>(&mut self) -> Result<T, AskError> {
        match self.kind() {
            Kind::Answer => self.take::<T>().ok_or(AskError::Unanswered),
            Kind::Failure | Kind::Message | Kind::Messages | Kind::Control | Kind::Taken => {
                Err(self.take::<AskError>().unwrap_or(AskError::Unanswered))
            }
        }
    }

    /// Looks at the payload.
    pub(crate) fn peek<T: Send + 'static>(&self) -> Option<&T> {
        if !(self.what.is)(&TypeId::of::<T>()) {
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

    /// For how many messages it counts.
    pub(crate) fn weight(&self) -> u32 {
        match self.kind() {
            Kind::Messages => self.peek::<run::Run>().map_or(0, run::Run::left),
            Kind::Message => 1,
            Kind::Answer | Kind::Failure | Kind::Control | Kind::Taken => 0,
        }
    }

    /// What is known of the payload's type.
    #[inline]
    pub(crate) fn what(&self) -> &'static What {
        self.what
    }
}

impl Drop for Parcel {
    #[inline]
    fn drop(&mut self) {
        if std::ptr::eq(self.what, &raw const TAKEN) {
            return;
        }
        // SAFETY: `what` is of the type that `new` wrote, and nobody has taken it.
        unsafe { (self.what.drop)(&mut self.body) };
    }
}

/// A parcel that is lent for the time of a call, to whoever looks for it meanwhile: it need not be
/// copied to where they look.
#[derive(Debug, Default)]
pub(crate) struct Lent(Cell<Option<NonNull<Parcel>>>);

impl Lent {
    /// Lends it for the time of `call`; what was lent before is lent again afterwards.
    #[inline]
    pub(crate) fn during<R>(&self, parcel: &mut Parcel, call: impl FnOnce() -> R) -> R {
        let _again = Again(self, self.0.replace(Some(NonNull::from(parcel))));
        call()
    }

    /// Lets `look` have it, if there is one. Nobody else finds it meanwhile.
    #[inline]
    pub(crate) fn with<R>(&self, look: impl FnOnce(Option<&mut Parcel>) -> R) -> R {
        let again = Again(self, self.0.take());
        // SAFETY: put here by `during`, which holds the only reference until its call ends and it
        // is taken back; and taken out above, so that nobody makes a second one of it.
        look(again.1.map(|mut parcel| unsafe { parcel.as_mut() }))
    }
}

/// Restores what was lent, also when a call panics.
struct Again<'a>(&'a Lent, Option<NonNull<Parcel>>);

impl Drop for Again<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.set(self.1);
    }
}

/// Parcels in the order in which they were pushed, to be drained as one batch.
#[derive(Debug, Default)]
pub(crate) struct Ring(Vec<Parcel>);

/// Up to here an empty ring keeps its memory.
const RING_KEPT: usize = 4096;

impl Ring {
    /// Writes a parcel where it is going to lie, and not somewhere else first: a copy of what was
    /// just written costs as much as the rest of a send.
    #[inline]
    pub(crate) fn push<T: Send + 'static>(
        &mut self,
        what: &'static Typed<T>,
        label: Label,
        payload: T,
    ) {
        if self.0.len() == self.0.capacity() {
            self.0.reserve(1);
        }
        let len = self.0.len();
        // SAFETY: there is room for one more; each field is written before the length says so,
        // and nothing between can panic but the box's allocation, which leaves the length.
        unsafe {
            let at = self.0.as_mut_ptr().add(len);
            (&raw mut (*at).what).write(&what.what);
            (&raw mut (*at).to).write(label.to);
            (&raw mut (*at).asker).write(label.asker);
            (&raw mut (*at).when).write(label.when);
            // Made of nothing but words that need not be written: a reference to it is sound.
            let body: &mut Body = &mut (*at).body;
            body.write(payload);
            self.0.set_len(len + 1);
        }
    }

    /// One that was made elsewhere.
    pub(crate) fn push_parcel(&mut self, parcel: Parcel) {
        self.0.push(parcel);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The part of a ring that is being handled.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    parcels: Vec<Parcel>,
    next: usize,
}

impl Batch {
    /// The next parcel, of this batch or of what `ring` has gathered meanwhile.
    #[inline]
    pub(crate) fn next(&mut self, refill: impl FnOnce(&mut Vec<Parcel>)) -> Option<&mut Parcel> {
        if self.next == self.parcels.len() {
            let handled = self.parcels.len();
            self.parcels.clear();
            self.next = 0;
            if self.parcels.capacity() > RING_KEPT && handled < self.parcels.capacity() / 4 {
                self.parcels.shrink_to(self.parcels.capacity() / 2);
            }
            refill(&mut self.parcels);
        }
        self.next += 1;
        match self.parcels.get_mut(self.next - 1) {
            Some(parcel) => Some(parcel),
            None => {
                self.next = 0;
                None
            }
        }
    }

    /// The last one is not done: it is the next one too.
    pub(crate) fn again(&mut self) {
        self.next = self.next.saturating_sub(1);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.parcels.len()
    }
}

impl Ring {
    /// Exchanges what was gathered for an empty batch.
    #[inline]
    pub(crate) fn swap(&mut self, with: &mut Vec<Parcel>) {
        std::mem::swap(&mut self.0, with);
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

    fn parcel<T: Send + 'static>(what: &'static Typed<T>, payload: T) -> Parcel {
        Parcel::new(what, Slot::NONE, Slot::NONE, When::TELL, payload)
    }

    #[test]
    fn a_small_payload_a_large_one_and_one_of_odd_alignment_come_out_as_they_went_in() {
        #[derive(Debug, PartialEq, Clone, Copy)]
        #[repr(align(32))]
        struct Wide(u8);
        const SMALL: Typed<(u64, u8)> = Typed::of(Kind::Answer);
        const LARGE: Typed<[u64; 40]> = Typed::of(Kind::Answer);
        const WIDE: Typed<Wide> = Typed::of(Kind::Answer);
        assert_eq!(parcel(&SMALL, (7u64, 9u8)).open::<(u64, u8)>().ok(), Some((7, 9)));
        assert_eq!(parcel(&LARGE, [3u64; 40]).open::<[u64; 40]>().ok(), Some([3; 40]));
        assert_eq!(parcel(&WIDE, Wide(5)).peek::<Wide>(), Some(&Wide(5)));
        assert_eq!(parcel(&WIDE, Wide(5)).open::<Wide>().ok(), Some(Wide(5)));
    }

    #[test]
    fn another_type_is_refused_and_the_parcel_is_whole() {
        const TEXT: Typed<String> = Typed::of(Kind::Answer);
        let text = parcel(&TEXT, "a".to_owned());
        assert!(text.peek::<u64>().is_none());
        let back = text.open::<u64>().expect_err("a string is no number");
        assert_eq!(back.open::<String>().ok().as_deref(), Some("a"));
    }

    #[test]
    fn several_messages_are_those_of_their_type_only() {
        #[derive(Debug, PartialEq)]
        struct Note(u64);
        struct Other;
        impl Message for Note {
            type Answer = ();
        }
        impl Message for Other {
            type Answer = ();
        }
        let mut many: Box<dyn Many> = Box::new(vec![Note(1)]);
        messages_of::<Note>(&mut *many).unwrap().push(Note(2));
        assert!(messages_of::<Other>(&mut *many).is_none());
        assert_eq!((many.count(), many.are(&TypeId::of::<Note>())), (2, true));
        assert_eq!(
            messages_of::<Note>(&mut *many).map(|many| &many[..]),
            Some(&[Note(1), Note(2)][..])
        );
        many.clear();
        assert_eq!(many.count(), 0);
    }

    #[test]
    fn what_is_lent_is_found_while_the_call_lasts_and_by_one_at_a_time() {
        static NUMBER: Typed<u64> = Typed::of(Kind::Answer);
        let (lent, mut one, mut other) = (Lent::default(), parcel(&NUMBER, 7), parcel(&NUMBER, 8));
        let kind = || lent.with(|found| found.map(|parcel| parcel.kind()));
        assert_eq!(kind(), None);
        lent.during(&mut one, || {
            let answer = lent.with(|found| {
                assert_eq!(kind(), None, "it is looked at");
                found.map(Parcel::take_answer::<u64>)
            });
            assert_eq!(answer, Some(Ok(7)));
            lent.during(&mut other, || assert_eq!(kind(), Some(Kind::Answer)));
            assert_eq!(kind(), Some(Kind::Taken));
        });
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lent.during(&mut other, || panic!("as a continuation may"));
        }));
        assert!(failed.is_err() && kind().is_none());
        assert_eq!(other.take_answer(), Ok(8u64));
    }

    #[test]
    fn a_failure_or_an_answer_of_another_type_is_an_error() {
        static FAILED: Typed<AskError> = Typed::of(Kind::Failure);
        let mut failure = parcel(&FAILED, AskError::Expired);
        assert_eq!(failure.take_answer::<u64>(), Err(AskError::Expired));
        let mut number = parcel(Typed::answer(), 7u64);
        assert_eq!(number.take_answer::<u32>(), Err(AskError::Unanswered));
        assert_eq!(number.take_answer(), Ok(7u64));
        assert_eq!(number.take_answer::<u64>(), Err(AskError::Unanswered));
    }

    #[test]
    fn a_payload_that_nobody_takes_is_dropped_once() {
        const SMALL: Typed<Arc<()>> = Typed::of(Kind::Answer);
        const LARGE: Typed<(Arc<()>, [u64; 9])> = Typed::of(Kind::Answer);
        let count = Arc::new(());
        drop(parcel(&SMALL, Arc::clone(&count)));
        drop(parcel(&LARGE, (Arc::clone(&count), [0u64; 9])));
        let taken = parcel(&SMALL, Arc::clone(&count)).open::<Arc<()>>();
        assert_eq!(Arc::strong_count(&count), 2);
        drop(taken);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
