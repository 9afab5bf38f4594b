//! What is due when: deadlines of asks, and scheduled messages. Pure.
//!
//! A heap from which nothing is taken out before its time. An ask is mostly answered long before
//! its deadline, so the heap is swept whenever more than half of it is stale: its size is bounded
//! by what is open, and the sweeps cost each entry a constant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::parcel::Slot;
use crate::when::Millis;

/// What is to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// The ask's deadline.
    Ask(Slot),
    /// A scheduled message.
    Scheduled(Slot),
}

/// Below this, stale entries are not worth a sweep.
const SWEEP_MIN: usize = 1024;
const SCHEDULED: u32 = 1 << 31;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    // (when, index, generation): sixteen bytes.
    heap: BinaryHeap<Reverse<(Millis, u32, u32)>>,
}

fn due((_, index, generation): (Millis, u32, u32)) -> Due {
    if index & SCHEDULED == 0 {
        Due::Ask(Slot { index, generation })
    } else {
        Due::Scheduled(Slot { index: index & !SCHEDULED, generation })
    }
}

impl Timers {
    pub(crate) fn push(&mut self, at: Millis, what: Due) {
        let (index, generation) = match what {
            Due::Ask(slot) => (slot.index, slot.generation),
            Due::Scheduled(slot) => (slot.index | SCHEDULED, slot.generation),
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
        self.heap.pop().map(|Reverse(entry)| due(entry))
    }

    /// Sweeps if more than half is stale; `live` says how many are not, and `is_live` which.
    pub(crate) fn sweep(&mut self, live: usize, is_live: impl Fn(Due) -> bool) {
        if self.heap.len() > SWEEP_MIN && self.heap.len() / 2 > live {
            self.heap.retain(|Reverse(entry)| is_live(due(*entry)));
            self.heap.shrink_to(SWEEP_MIN.max(2 * live));
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.heap.len()
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
        for index in 0..100_000 {
            timers.push(1_000_000, Due::Ask(Slot { index, generation: 1 }));
            timers.sweep(0, |_| false);
        }
        assert!(timers.len() <= 2 * SWEEP_MIN);
    }
}
