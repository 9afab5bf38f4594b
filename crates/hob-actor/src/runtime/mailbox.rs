//! The part of a mailbox that all threads see.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::api::actor::Message;
use crate::api::error::{AskError, NotSent, TellError};
use crate::memory::parcel::{Label, Parcel, Slot, Typed};
use crate::memory::when::Place;
use crate::runtime::current;
use crate::runtime::mail::{Mail, Policy};
use crate::runtime::places::ShardInbox;
use crate::runtime::pool::Pool;
use crate::shard::{Control, Counts, Shard, count};

/// The part of a mailbox that all threads see.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) route: Route,
    /// Messages from other threads and shards that have not been handled yet.
    outside: AtomicU32,
    pub(crate) bound: u32,
    pub(crate) policy: Policy,
    /// How many messages it did not take, or dropped for newer ones.
    pub(crate) refused: AtomicU32,
    /// Where its shard, or pool, counts the same.
    counts: Arc<Counts>,
    /// Somebody waits for a place.
    waited: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
    /// What waits, if the oldest is to be dropped: all senders put it here.
    latest: Option<Mutex<Latest>>,
}

/// Where a mailbox is.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    /// With the actors of a shard.
    Inbox(Arc<ShardInbox>),
    /// With the instances of a pool.
    Pool(Arc<Pool>),
}

/// The newest messages, and whether the shard knows of them.
#[derive(Debug, Default)]
struct Latest {
    waits: VecDeque<Parcel>,
    ticketed: bool,
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic happens under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mailbox {
    pub(crate) fn new(route: Route, mail: Mail, counts: &Arc<Counts>) -> Mailbox {
        let latest = (mail.policy == Policy::DropOldest).then(Mutex::default);
        Mailbox {
            route,
            outside: AtomicU32::new(0),
            bound: mail.bound,
            policy: mail.policy,
            refused: AtomicU32::new(0),
            counts: Arc::clone(counts),
            waited: AtomicBool::new(false),
            waiting: Mutex::default(),
            latest,
        }
    }

    /// What a shard may let wait in its ring: nothing, if the oldest is to be dropped.
    pub(crate) fn bound_in_ring(&self) -> u32 {
        if self.latest.is_some() { 0 } else { self.bound }
    }

    /// A place for one from outside.
    pub(crate) fn reserve(&self) -> Result<(), NotSent> {
        let taken = self.outside.fetch_add(1, Ordering::SeqCst);
        if taken < self.bound {
            return Ok(());
        }
        self.outside.fetch_sub(1, Ordering::SeqCst);
        self.note(NotSent::Full);
        Err(NotSent::Full)
    }

    /// Counts a message that was not sent.
    #[cold]
    pub(crate) fn note(&self, why: NotSent) {
        match why {
            NotSent::Stopped => count(&self.counts.dead_letters),
            NotSent::Full => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                count(&self.counts.refused);
            }
        }
    }

    /// One from outside was handled, or will never be.
    pub(crate) fn release(&self) {
        self.outside.fetch_sub(1, Ordering::SeqCst);
        self.wake_waiting();
    }

    /// There is a place.
    pub(crate) fn wake_waiting(&self) {
        if self.waited.load(Ordering::SeqCst) {
            self.waited.store(false, Ordering::SeqCst);
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Wakes when there is a place; look once more after this.
    pub(crate) fn wait(&self, waker: &Waker) {
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|other| other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        self.waited.store(true, Ordering::SeqCst);
    }

    /// Puts a message from outside of the actor's shard; `carry` brings it to a shard's inbox.
    pub(crate) fn put<M: Message>(
        &self,
        what: &'static Typed<M>,
        label: Label,
        message: M,
        carry: impl FnOnce(&Arc<ShardInbox>, Parcel) -> Result<(), Parcel>,
    ) -> Result<(), TellError<M>> {
        let Label { to, asker, when } = label;
        if self.latest.is_some() {
            let parcel = Parcel::new(what, to, asker, when, message);
            return self.put_latest(to, parcel, carry).map_err(|parcel| {
                self.note(NotSent::Stopped);
                unpacked(parcel)
            });
        }
        if let Err(why) = self.reserve() {
            return Err(TellError { why, message });
        }
        let parcel = Parcel::new(what, to, asker, when.counted_outside(), message);
        let put = match &self.route {
            Route::Inbox(inbox) => carry(inbox, parcel),
            Route::Pool(pool) => pool.put(parcel),
        };
        put.map_err(|parcel| {
            self.release();
            self.note(NotSent::Stopped);
            unpacked(parcel)
        })
    }

    /// Puts it as the newest; the oldest makes room.
    pub(crate) fn put_latest(
        &self,
        to: Slot,
        parcel: Parcel,
        carry: impl FnOnce(&Arc<ShardInbox>, Parcel) -> Result<(), Parcel>,
    ) -> Result<(), Parcel> {
        let Some(latest) = &self.latest else { return Err(parcel) };
        let (displaced, ticket) = {
            let mut latest = lock(latest);
            if latest.closed {
                return Err(parcel);
            }
            latest.waits.push_back(parcel);
            let full = latest.waits.len() > self.bound as usize;
            let displaced = if full { latest.waits.pop_front() } else { None };
            (displaced, !std::mem::replace(&mut latest.ticketed, true))
        };
        if let Some(displaced) = displaced {
            self.refused.fetch_add(1, Ordering::Relaxed);
            count(&self.counts.displaced);
            current::fail(displaced.asker, displaced.when, AskError::Displaced);
        }
        if ticket && let Route::Inbox(inbox) = &self.route {
            let ticket = Shard::control_parcel(to, Slot::NONE, Control::Ticket);
            // A shard that has ended has closed this mailbox, or is about to.
            let _ = carry(inbox, ticket);
        }
        Ok(())
    }

    /// The oldest of what waits, and whether there is more.
    pub(crate) fn take_oldest(&self) -> Option<(Parcel, bool)> {
        let mut latest = lock(self.latest.as_ref()?);
        let parcel = latest.waits.pop_front();
        latest.ticketed = !latest.waits.is_empty();
        parcel.map(|parcel| (parcel, latest.ticketed))
    }

    /// The actor has ended: whoever waits for a place is told, and what waits comes out.
    pub(crate) fn close(&self) -> VecDeque<Parcel> {
        self.wake_waiting();
        self.latest.as_ref().map_or_else(VecDeque::new, |latest| {
            let mut latest = lock(latest);
            latest.closed = true;
            std::mem::take(&mut latest.waits)
        })
    }

    /// A control word, exempt from the bound.
    pub(crate) fn control(&self, parcel: Parcel) {
        match &self.route {
            Route::Inbox(inbox) => drop(inbox.put(parcel)),
            Route::Pool(pool) => pool.control(parcel),
        }
    }

    /// An asker has gone.
    pub(crate) fn cancel(&self, asker: Slot, place: Place) {
        match &self.route {
            Route::Inbox(inbox) => drop(inbox.put(Shard::cancel_parcel(asker, place))),
            Route::Pool(pool) => pool.cancel(asker, place),
        }
    }
}

/// The message again.
pub(crate) fn unpacked<M: Message>(parcel: Parcel) -> TellError<M> {
    let message = parcel.open::<M>().unwrap_or_else(|_| unreachable!("it was packed as one"));
    TellError { why: NotSent::Stopped, message }
}
