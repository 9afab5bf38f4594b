//! Messages at a time: once, at an instant, or every so often; each can be cancelled.

use std::time::{Duration, Instant};

use crate::api::actor::{Actor, Message, Receives};
use crate::api::address::Address;
use crate::api::context::Context;
use crate::memory::parcel::Slot;
use crate::memory::when::{When, deadline_after};
use crate::runtime::mailbox::Route;
use crate::runtime::{clock, current};
use crate::shard::{Again, Control, Shard};

/// A scheduled message. Dropping this leaves it scheduled.
#[derive(Debug)]
pub struct Scheduled {
    slot: Slot,
    place: u32,
    route: Route,
}

impl Scheduled {
    /// It will not be sent; what was sent already is not taken back. From any thread.
    pub fn cancel(self) {
        let slot = self.slot;
        let here = current::with(|shard| match shard {
            Some(shard) if shard.shared.place == self.place => {
                shard.unschedule(slot);
                true
            }
            Some(_) | None => false,
        });
        if let (false, Route::Inbox(inbox)) = (here, &self.route) {
            let job = Control::Job(Box::new(move |shard: &Shard| shard.unschedule(slot)));
            let _ = inbox.put(Shard::control_parcel(Slot::NONE, Slot::NONE, job));
        }
    }
}

impl<A: Actor> Context<'_, A> {
    /// Tells `to` once, after a while.
    pub fn after<B, M, How>(&self, pause: Duration, to: &Address<B>, message: M) -> Scheduled
    where
        B: Receives<M, How> + 'static,
        M: Message,
    {
        let (to, mut message) = (to.clone(), Some(message));
        let tell = Box::new(move |shard: &Shard| {
            if let Some(message) = message.take() {
                let _ = shard.send(&to, message, Slot::NONE, When::TELL);
            }
            Again::No
        });
        self.scheduled(pause, None, tell)
    }

    /// The same at an instant; at once, if that is over.
    pub fn at<B, M, How>(&self, at: Instant, to: &Address<B>, message: M) -> Scheduled
    where
        B: Receives<M, How> + 'static,
        M: Message,
    {
        self.after(at.saturating_duration_since(clock::instant()), to, message)
    }

    /// Tells `to` again and again, each time with a message of `make`, until it is cancelled or
    /// `to` has ended. A time that was missed is not made up for.
    pub fn every<B, M, How>(
        &self,
        period: Duration,
        to: &Address<B>,
        mut make: impl FnMut() -> M + 'static,
    ) -> Scheduled
    where
        B: Receives<M, How> + 'static,
        M: Message,
    {
        let to = to.clone();
        let tell = Box::new(move |shard: &Shard| {
            let sent = shard.send(&to, make(), Slot::NONE, When::TELL);
            match sent.map_err(|failed| failed.why) {
                Err(crate::NotSent::Stopped) => Again::No,
                // One that a full mailbox does not take is missed.
                Ok(()) | Err(crate::NotSent::Full) => Again::Yes,
            }
        });
        // A period of nothing would never let the shard do anything else.
        self.scheduled(period, Some(deadline_after(0, period).max(1)), tell)
    }

    fn scheduled(
        &self,
        pause: Duration,
        every: Option<u64>,
        tell: Box<dyn FnMut(&Shard) -> Again>,
    ) -> Scheduled {
        let shard = self.shard();
        let slot = shard.schedule(deadline_after(clock::now(), pause), every, tell);
        let route = Route::Inbox(std::sync::Arc::clone(&shard.shared.inbox));
        Scheduled { slot, place: shard.shared.place, route }
    }
}
