//! Pools: one queue, N instances of an actor on threads of their own, for work that would keep a
//! shard from its other actors. A message wakes one of them.
//!
//! Each instance's thread drives a shard of its own with that one actor, so that everything an
//! actor can do an instance can do too: ask, spawn, schedule. It takes the next message when it has
//! nothing else to do, which includes waiting for an answer in a future.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::parcel::{Parcel, Slot};
use crate::memory::when::Place;
use crate::runtime::mail::{Mail, Policy};
use crate::runtime::places::ShardInbox;
use crate::shard::{Control, Shard};

/// The slot of the one actor of an instance's shard.
pub(crate) const INSTANCE: Slot = Slot { index: 0, generation: 1 };

#[derive(Debug, Default)]
struct Queue {
    waits: VecDeque<Parcel>,
    /// Those who have nothing to do; the last one is woken first, for it is the warmest.
    idle: Vec<Arc<ShardInbox>>,
    instances: Vec<Arc<ShardInbox>>,
    closed: bool,
}

/// See the module. The bound is the mailbox's.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    queue: Mutex<Queue>,
}

/// A pool's mailbox: the oldest of many instances' work is nobody's to drop.
pub(crate) fn mail(mail: Mail) -> Mail {
    match mail.policy {
        Policy::Wait | Policy::Refuse => mail,
        Policy::DropOldest => mail.when_full(Policy::Refuse),
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing that can panic happens under the lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn join(&self, inbox: &Arc<ShardInbox>) {
        self.lock().instances.push(Arc::clone(inbox));
    }

    /// One more message; it comes back if the pool has ended.
    pub(crate) fn put(&self, parcel: Parcel) -> Result<(), Parcel> {
        let woken = {
            let mut queue = self.lock();
            if queue.closed {
                return Err(parcel);
            }
            queue.waits.push_back(parcel);
            queue.idle.pop()
        };
        if let Some(inbox) = woken {
            // A word that says nothing: it may not sleep yet, and must not fall asleep now.
            let _ = inbox.put(Shard::wake_parcel(u32::MAX));
        }
        Ok(())
    }

    /// The next message for an instance; without one, it is noted as idle.
    pub(crate) fn take(&self, mine: &Arc<ShardInbox>) -> Option<Parcel> {
        let mut queue = self.lock();
        let parcel = queue.waits.pop_front();
        if parcel.is_none() && !queue.idle.iter().any(|idle| Arc::ptr_eq(idle, mine)) {
            queue.idle.push(Arc::clone(mine));
        }
        parcel.map(|mut parcel| {
            parcel.to = INSTANCE;
            parcel
        })
    }

    fn instances(&self) -> Vec<Arc<ShardInbox>> {
        self.lock().instances.clone()
    }

    /// A word to the pool as a whole: a stop is one for each instance, the rest is for the first.
    pub(crate) fn control(&self, parcel: Parcel) {
        let Ok(control) = parcel.open::<Control>() else { return };
        let instances = self.instances();
        if matches!(control, Control::Stop) {
            for inbox in &instances {
                let _ = inbox.put(Shard::control_parcel(INSTANCE, Slot::NONE, Control::Stop));
            }
            drop(self.close());
        } else if let Some(first) = instances.first() {
            let _ = first.put(Shard::control_parcel(INSTANCE, Slot::NONE, control));
        }
    }

    /// The same from a shard, where a cancel is a word among others.
    pub(crate) fn control_or_cancel(&self, parcel: Parcel) {
        let place = match parcel.peek::<Control>() {
            Some(Control::Cancel { place, .. }) => Some(*place),
            Some(_) | None => None,
        };
        match place {
            Some(place) => self.cancel(parcel.asker, place),
            None => self.control(parcel),
        }
    }

    /// An asker has gone; which instance has its message is not known here.
    pub(crate) fn cancel(&self, asker: Slot, place: Place) {
        for inbox in self.instances() {
            let _ = inbox.put(Shard::cancel_parcel(asker, place));
        }
    }

    /// Takes nothing any more; what waited comes out.
    pub(crate) fn close(&self) -> VecDeque<Parcel> {
        let mut queue = self.lock();
        queue.closed = true;
        std::mem::take(&mut queue.waits)
    }
}
