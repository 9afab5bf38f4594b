//! What is due when: deadlines of asks, and scheduled messages. Pure.
//!
//! A heap from which nothing is taken out before its time. An ask is mostly answered long before
//! its deadline, so the heap is swept whenever more than half of it is stale: its size is bounded
//! by what is open, and the sweeps cost each entry a constant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::memory::parcel::Slot;
use crate::memory::when::Millis;
use crate::shard::Shard;

/// What is to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// The ask's deadline.
    Ask(Slot),
    /// A scheduled message.
    Scheduled(Slot),
    /// A failed actor's pause is over.
    Restart(Slot),
}

/// Below this, stale entries are not worth a sweep.
const SWEEP_MIN: usize = 1024;
// What an index names, in its top bits.
const SCHEDULED: u32 = 1 << 31;
const RESTART: u32 = 1 << 30;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    // (when, index, generation): sixteen bytes.
    heap: BinaryHeap<Reverse<(Millis, u32, u32)>>,
}

fn due(index: u32, generation: u32) -> Due {
    let slot = Slot { index: index & !(SCHEDULED | RESTART), generation };
    match index & (SCHEDULED | RESTART) {
        0 => Due::Ask(slot),
        RESTART => Due::Restart(slot),
        _ => Due::Scheduled(slot),
    }
}

impl Timers {
    pub(crate) fn push(&mut self, at: Millis, what: Due) {
        let (index, generation) = match what {
            Due::Ask(slot) => (slot.index, slot.generation),
            Due::Scheduled(slot) => (slot.index | SCHEDULED, slot.generation),
            Due::Restart(slot) => (slot.index | RESTART, slot.generation),
        };
        self.heap.push(Reverse((at, index, generation)));
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<Millis> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// One thing that is due.
    pub(crate) fn pop(&mut self, now: Millis) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, index, generation))| due(index, generation))
    }

    /// Sweeps if more than half is stale; `live` says how many are not, and `is_live` which.
    pub(crate) fn sweep(&mut self, live: usize, is_live: impl Fn(Due) -> bool) {
        if self.heap.len() > SWEEP_MIN && self.heap.len() / 2 > live {
            self.heap.retain(|Reverse((_, index, generation))| is_live(due(*index, *generation)));
            self.heap.shrink_to(SWEEP_MIN.max(2 * live));
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.heap.len()
    }
}

/// Whether a scheduled message is to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Yes,
    No,
}

/// What sends a scheduled message.
pub(crate) type Tell = Box<dyn FnMut(&Shard) -> Again>;

#[derive(Default)]
struct Entry {
    generation: u32,
    every: Option<Millis>,
    tell: Option<Tell>,
}

/// The scheduled messages of a shard.
#[derive(Default)]
pub(crate) struct Schedules {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Schedules {
    pub(crate) fn insert(&mut self, every: Option<Millis>, tell: Tell) -> Slot {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let entry = &mut self.entries[index as usize];
        entry.every = every;
        entry.tell = Some(tell);
        Slot { index, generation: entry.generation }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn is_live(&self, at: Slot) -> bool {
        self.entries.get(at.index as usize).is_some_and(|one| one.generation == at.generation)
    }

    /// What sends it, to be put back if it is to be sent again, and how often that is.
    pub(crate) fn take(&mut self, at: Slot) -> Option<(Tell, Option<Millis>)> {
        let entry = self.entries.get_mut(at.index as usize)?;
        (entry.generation == at.generation).then_some(())?;
        Some((entry.tell.take()?, entry.every))
    }

    pub(crate) fn put_back(&mut self, at: Slot, tell: Tell) -> Option<Tell> {
        match self.entries.get_mut(at.index as usize) {
            Some(entry) if entry.generation == at.generation => entry.tell.replace(tell),
            Some(_) | None => Some(tell),
        }
    }

    pub(crate) fn remove(&mut self, at: Slot) -> Option<Tell> {
        let entry = self.entries.get_mut(at.index as usize)?;
        (entry.generation == at.generation).then_some(())?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(at.index);
        entry.tell.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_order_and_nothing_early() {
        let mut timers = Timers::default();
        let slot = |index| Slot { index, generation: 1 };
        timers.push(30, Due::Ask(slot(3)));
        timers.push(10, Due::Scheduled(slot(1)));
        assert_eq!(timers.pop(9), None);
        assert_eq!(timers.pop(30), Some(Due::Scheduled(slot(1))));
        assert_eq!(timers.pop(30), Some(Due::Ask(slot(3))));
        assert_eq!(timers.pop(30), None);
    }

    #[test]
    fn answered_asks_do_not_pile_up() {
        let mut timers = Timers::default();
        // Under Miri two sweeps are enough.
        for index in 0..if cfg!(miri) { 4_000 } else { 100_000 } {
            timers.push(1_000_000, Due::Ask(Slot { index, generation: 1 }));
            timers.sweep(0, |_| false);
        }
        assert!(timers.len() <= 2 * SWEEP_MIN);
    }
}
