//! Tells to an actor in a peer. Of one type to one actor, one after the other, they are gathered as
//! they are, and encoded together, in one place that knows their type: what a tell costs its sender
//! is then a comparison or two and a push.
//!
//! Invariants:
//! - the first of them goes by itself, so who tells now and then loses nothing;
//! - what was gathered is handed over before anything else is, and at each turn's end, so nothing
//!   overtakes it: an actor to whom something waits in the ring gets no more this way;
//! - only values without memory of their own and of a known size are gathered, and few: so the
//!   bound of what waits to be written to a peer holds but for [`GATHERED_BYTES`].

use std::any::{Any, TypeId};

use crate::memory::parcel::{Label, Many, Parcel, Slot, Typed, What, messages_of};
use crate::memory::when::When;
use crate::remote::{Edge, Far};
use crate::runtime::mailbox::Mailbox;
use crate::shard::Shard;
use crate::{Message, NotSent, TellError};

/// How many are gathered at most.
const GATHERED: usize = 512;
/// And how large they are together.
const GATHERED_BYTES: usize = 16 * 1024;

/// What was told to one actor.
pub(crate) struct Gathered {
    to: Slot,
    far: Far,
    what: &'static What,
    /// How many messages there may be; none, once something else was sent to that actor.
    room: usize,
    /// At least one.
    messages: Box<dyn Many>,
}

/// What was told and not yet handed over.
#[derive(Default)]
pub(crate) struct Told {
    /// To whom the last tell went, and its type.
    last: Option<(Slot, TypeId)>,
    gathered: Option<Gathered>,
    /// The memory of one that was handed over.
    spare: Option<Box<dyn Many>>,
}

impl Gathered {
    pub(crate) fn what(&self) -> &'static What {
        self.what
    }

    /// All of them; none if they are of another type.
    pub(crate) fn messages<M: Message>(&self) -> &[M] {
        let messages: &dyn Any = &*self.messages;
        messages.downcast_ref::<Vec<M>>().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.messages.count()).unwrap_or(u32::MAX)
    }
}

impl Told {
    /// The first of several.
    fn begin<M: Message>(&mut self, to: Slot, far: Far, what: &'static What, message: M) {
        let room = (GATHERED_BYTES / size_of::<M>().max(1)).min(GATHERED);
        let spare = self.spare.take().filter(|spare| spare.are(&TypeId::of::<M>()));
        let mut messages = spare.unwrap_or_else(|| Box::new(Vec::<M>::new()));
        if let Some(messages) = messages_of(&mut *messages) {
            messages.push(message);
        }
        self.gathered = Some(Gathered { to, far, what, room, messages });
    }
}

/// Whether messages of this type are gathered.
const fn may_be_gathered<M>() -> bool {
    !std::mem::needs_drop::<M>() && size_of::<M>() <= GATHERED_BYTES / 64
}

impl Shard {
    /// To an actor in a peer: at once, unless something of this shard waits to be sent before. Never
    /// inlined: a send to a neighbour would be slower for it.
    #[inline(never)]
    pub(super) fn send_over<M: Message>(
        &self,
        mailbox: &Mailbox,
        what: &'static Typed<M>,
        label: Label,
        message: M,
    ) -> Result<(), TellError<M>> {
        if may_be_gathered::<M>() && label.when == When::TELL {
            let told = &mut *self.told.borrow_mut();
            if let Some(Gathered { to, room, messages, .. }) = &mut told.gathered
                && *to == label.to
                && let Some(messages) = messages_of::<M>(&mut **messages)
                && messages.len() < *room
            {
                messages.push(message);
                return Ok(());
            }
        }
        self.send_over_first(mailbox, what, label, message)
    }

    /// Of one type to one actor the first, or one that does not fit any more.
    #[inline(never)]
    fn send_over_first<M: Message>(
        &self,
        mailbox: &Mailbox,
        what: &'static Typed<M>,
        label: Label,
        message: M,
    ) -> Result<(), TellError<M>> {
        let (far, waits) = self.state.borrow_mut().records.far(label.to);
        if waits == 0
            && let Some(far) = far
            && let Ok(mut edge) = self.edge.try_borrow_mut()
            && let Some(edge) = edge.as_mut()
        {
            let edge = &mut **edge;
            self.hand_over_told(edge);
            if may_be_gathered::<M>() && label.when == When::TELL {
                let this = Some((label.to, TypeId::of::<M>()));
                let last = std::mem::replace(&mut self.told.borrow_mut().last, this);
                if last == this && edge.takes_many(far, what.what()) {
                    self.told.borrow_mut().begin(label.to, far, what.what(), message);
                    return Ok(());
                }
            }
            return Parcel::with(what, label, message, |parcel| {
                self.hand_over(edge, far, parcel).map_err(|why| {
                    mailbox.note(why);
                    TellError { why, ..crate::runtime::mailbox::unpacked(parcel.take_whole()) }
                })
            });
        }
        if waits >= mailbox.bound {
            mailbox.note(NotSent::Full);
            return Err(TellError { why: NotSent::Full, message });
        }
        // What is told from here on must not overtake it.
        if let Some(gathered) = &mut self.told.borrow_mut().gathered {
            gathered.room = 0;
        }
        self.accept(Parcel::new(what, label.to, label.asker, label.when, message));
        Ok(())
    }

    /// Hands over what was gathered: before anything else is, and at the end of each turn.
    #[inline]
    pub(super) fn hand_over_told(&self, edge: &mut dyn Edge) {
        if self.told.borrow().gathered.is_some() {
            self.hand_over_gathered(edge);
        }
    }

    #[inline(never)]
    fn hand_over_gathered(&self, edge: &mut dyn Edge) {
        let gathered = self.told.borrow_mut().gathered.take();
        let Some(mut gathered) = gathered else { return };
        edge.send_many(gathered.far, &gathered, self);
        gathered.messages.clear();
        self.told.borrow_mut().spare = Some(gathered.messages);
    }
}
