//! The one place where threads meet: what others send to a shard, in batches, and the bell that
//! wakes it.
//!
//! Invariants: nothing that was put is lost, and a shard that sleeps is rung for what was put
//! before it could see it: it says that it sleeps *before* it looks for the last time, and whoever
//! puts looks at that word *after*, both under the queue's lock. `tests/inbox.rs` runs this file
//! under loom, with its `sync` in place of std's.

use crate::sync::Mutex;

/// How a sleeping shard is woken.
pub(crate) trait Bell {
    /// Ends the sleep that has begun or is about to begin.
    fn ring(&self);
}

#[derive(Debug)]
struct Waiting<T> {
    items: Vec<T>,
    asleep: bool,
    closed: bool,
}

/// The inbox of one shard.
#[derive(Debug)]
pub(crate) struct Inbox<T, B> {
    waiting: Mutex<Waiting<T>>,
    bell: B,
}

impl<T, B: Bell> Inbox<T, B> {
    pub(crate) fn new(bell: B) -> Inbox<T, B> {
        let waiting = Waiting { items: Vec::new(), asleep: false, closed: false };
        Inbox { waiting: Mutex::new(waiting), bell }
    }

    fn with<R>(&self, change: impl FnOnce(&mut Waiting<T>) -> R) -> R {
        // A lock is held for pushes and swaps only; a panic in one leaves nothing half done.
        match self.waiting.lock() {
            Ok(mut waiting) => change(&mut waiting),
            Err(poisoned) => change(&mut poisoned.into_inner()),
        }
    }

    /// Hands over all of `batch`; it is empty afterwards, unless the shard has ended.
    pub(crate) fn put_all(&self, batch: &mut Vec<T>) -> Result<(), Closed> {
        let ring = self.with(|waiting| {
            if waiting.closed {
                return Err(Closed);
            }
            if waiting.items.is_empty() {
                std::mem::swap(&mut waiting.items, batch);
            } else {
                waiting.items.append(batch);
            }
            Ok(std::mem::take(&mut waiting.asleep))
        })?;
        if ring {
            self.bell.ring();
        }
        Ok(())
    }

    /// Hands over one; it comes back if the shard has ended.
    pub(crate) fn put(&self, item: T) -> Result<(), T> {
        let ring = self.with(|waiting| {
            if waiting.closed {
                return Err(item);
            }
            waiting.items.push(item);
            Ok(std::mem::take(&mut waiting.asleep))
        })?;
        if ring {
            self.bell.ring();
        }
        Ok(())
    }

    /// Takes all that waits into `into`, which must be empty: its memory is used for what comes
    /// next.
    pub(crate) fn take(&self, into: &mut Vec<T>) {
        self.with(|waiting| {
            waiting.asleep = false;
            if !waiting.items.is_empty() {
                std::mem::swap(&mut waiting.items, into);
            }
        });
    }

    /// True: nothing waits, and whoever puts something from now on rings. False: do not sleep.
    pub(crate) fn falls_asleep(&self) -> bool {
        self.with(|waiting| {
            waiting.asleep = waiting.items.is_empty();
            waiting.asleep
        })
    }

    /// Takes nothing any more; what was there comes out.
    pub(crate) fn close(&self) -> Vec<T> {
        self.with(|waiting| {
            waiting.closed = true;
            std::mem::take(&mut waiting.items)
        })
    }

    pub(crate) fn bell(&self) -> &B {
        &self.bell
    }
}

/// The shard has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;
