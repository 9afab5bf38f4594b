//! The slots of open asks: who is to be continued when an answer comes, and whom to tell when the
//! asker no longer wants one. Pure: no clock, no threads.
//!
//! ```text
//!          open                    answer, failure, deadline
//!   free ────────▶ open, unpolled ───────────────────────────▶ kept ──poll──▶ free
//!                     │ poll                                    ▲
//!                     ▼                                         │ not taken in that poll
//!                  open, awaited ──answer: the task is polled───┴──taken──▶ free
//!                     │ dropped
//!                     └──▶ free, and a cancel goes to whoever answers
//! ```
//! Invariants: a slot's generation changes when it is closed, so an answer that comes too late
//! finds nobody. A slot is twelve bytes: an actor that awaits pays for them and for its own future.

use crate::memory::parcel::Slot;

/// Nothing is known of the one who answers: the message is on its way or in a mailbox.
const UNKNOWN: u32 = u32::MAX;
/// The answer comes from elsewhere; the rest of the word says from where.
const ELSEWHERE: u32 = 1 << 31;

const TASK_BITS: u32 = 28;
const NO_TASK: u32 = (1 << TASK_BITS) - 1;
/// A timer waits for this slot.
const TIMED: u32 = 1 << 28;
/// The answer has come and lies in the side table.
const KEPT: u32 = 1 << 29;
/// A waker of some other executor waits for this slot.
const FOREIGN: u32 = 1 << 30;
const FREE: u32 = 1 << 31;

#[derive(Debug, Clone, Copy)]
struct Open {
    generation: u32,
    /// The task that awaits, and flags; of a free slot the next free one.
    task: u32,
    by: u32,
}

/// Who is going to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A message that is on its way or waits in a mailbox of this shard.
    Message,
    /// A parked task of this shard.
    Task(u32),
    /// Somebody elsewhere: the number of a line of the shard's outbox.
    Elsewhere(u32),
}

impl By {
    fn of(word: u32) -> By {
        match word {
            UNKNOWN => By::Message,
            word if word & ELSEWHERE != 0 => By::Elsewhere(word & !ELSEWHERE),
            task => By::Task(task),
        }
    }
}

/// What an answer meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meets {
    /// Nobody: the ask was closed.
    Nobody,
    /// A task of this shard, to be polled now.
    Task(u32),
    /// An ask that is not awaited by a task directly: the answer is to be kept.
    Later,
    /// The same, and its own waker is to be woken.
    Waker,
}

/// All slots of a shard.
#[derive(Debug)]
pub(crate) struct Asks {
    slots: Vec<Open>,
    free: u32,
    open: u32,
    timed: usize,
}

impl Asks {
    pub(crate) fn new() -> Asks {
        Asks { slots: Vec::new(), free: NO_TASK, open: 0, timed: 0 }
    }

    /// `elsewhere` is the outbox's line, if the message leaves the shard. None: 268 million asks
    /// are open.
    pub(crate) fn open(&mut self, elsewhere: Option<u32>, timed: bool) -> Option<Slot> {
        let by = elsewhere.map_or(UNKNOWN, |line| ELSEWHERE | line);
        let task = NO_TASK | if timed { TIMED } else { 0 };
        self.timed += usize::from(timed);
        let index = self.free;
        let generation = if index == NO_TASK {
            let index = u32::try_from(self.slots.len()).ok().filter(|&index| index < NO_TASK)?;
            self.slots.push(Open { generation: 1, task, by });
            self.open += 1;
            return Some(Slot { index, generation: 1 });
        } else {
            let slot = &mut self.slots[index as usize];
            self.free = slot.task & NO_TASK;
            slot.task = task;
            slot.by = by;
            slot.generation
        };
        self.open += 1;
        Some(Slot { index, generation })
    }

    #[inline]
    fn get(&mut self, at: Slot) -> Option<&mut Open> {
        let slot = self.slots.get_mut(at.index as usize)?;
        (slot.generation == at.generation && slot.task & FREE == 0).then_some(slot)
    }

    /// Whether the asker still waits.
    #[inline]
    pub(crate) fn is_open(&self, at: Slot) -> bool {
        self.slots.get(at.index as usize).is_some_and(|slot| slot.generation == at.generation)
    }

    /// Whether it waits and has a timer.
    pub(crate) fn is_timed(&self, at: Slot) -> bool {
        self.is_open(at) && self.slots[at.index as usize].task & TIMED != 0
    }

    /// A task of this shard, or the line of its outbox, has taken the message.
    pub(crate) fn answered_by(&mut self, at: Slot, by: By) {
        if let Some(slot) = self.get(at)
            && slot.by == UNKNOWN
        {
            slot.by = match by {
                By::Message => UNKNOWN,
                By::Task(task) => task,
                By::Elsewhere(line) => ELSEWHERE | line,
            };
        }
    }

    /// Who is going to answer.
    pub(crate) fn by(&mut self, at: Slot) -> Option<By> {
        self.get(at).map(|slot| By::of(slot.by))
    }

    /// A poll found no answer: `task` is to be polled when it comes, unless it has a waker.
    #[inline]
    pub(crate) fn awaited(&mut self, at: Slot, task: Option<u32>) {
        if let Some(slot) = self.get(at) {
            let flags = slot.task & (TIMED | KEPT);
            slot.task = flags | task.map_or(NO_TASK | FOREIGN, |task| task & NO_TASK);
        }
    }

    /// What an answer that arrives meets.
    #[inline]
    pub(crate) fn meets(&mut self, at: Slot) -> Meets {
        let Some(slot) = self.get(at) else { return Meets::Nobody };
        if slot.task & KEPT != 0 {
            return Meets::Nobody;
        }
        match slot.task & NO_TASK {
            NO_TASK if slot.task & FOREIGN != 0 => Meets::Waker,
            NO_TASK => Meets::Later,
            task => Meets::Task(task),
        }
    }

    /// The answer lies in the side table from now on.
    pub(crate) fn keep(&mut self, at: Slot) {
        if let Some(slot) = self.get(at) {
            slot.task |= KEPT;
        }
    }

    pub(crate) fn is_kept(&self, at: Slot) -> bool {
        self.is_open(at) && self.slots[at.index as usize].task & KEPT != 0
    }

    /// Ends an ask. What it returns is to be told if the asker has no answer: nobody, if it was
    /// closed already or its answer was there.
    #[inline]
    pub(crate) fn close(&mut self, at: Slot) -> Option<Closed> {
        let free = self.free;
        let slot = self.get(at)?;
        let flags = slot.task;
        let by = slot.by;
        slot.generation = slot.generation.wrapping_add(1);
        slot.task = FREE | free;
        self.free = at.index;
        self.open -= 1;
        self.timed -= usize::from(flags & TIMED != 0);
        Some(Closed { by: By::of(by), kept: flags & KEPT != 0, foreign: flags & FOREIGN != 0 })
    }

    /// How many are open.
    #[cfg(test)]
    pub(crate) fn open_now(&self) -> u32 {
        self.open
    }

    /// How many of them have a timer.
    pub(crate) fn timed_now(&self) -> usize {
        self.timed
    }
}

/// What was known of a slot when it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) by: By,
    /// An answer lies in the side table.
    pub(crate) kept: bool,
    /// A waker does.
    pub(crate) foreign: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_finds_nobody() {
        let mut asks = Asks::new();
        let first = asks.open(None, false).unwrap();
        asks.awaited(first, Some(3));
        assert_eq!(asks.meets(first), Meets::Task(3));
        assert!(asks.close(first).is_some());
        assert_eq!(asks.meets(first), Meets::Nobody);
        let second = asks.open(None, true).unwrap();
        assert_eq!(second.index, first.index);
        assert_eq!(asks.meets(first), Meets::Nobody);
        assert_eq!(asks.meets(second), Meets::Later);
        assert!(asks.is_timed(second) && !asks.is_timed(first));
        assert_eq!((asks.open_now(), asks.timed_now()), (1, 1));
    }

    #[test]
    fn closing_says_whom_to_cancel() {
        let mut asks = Asks::new();
        let here = asks.open(None, false).unwrap();
        let there = asks.open(Some(7), false).unwrap();
        let waits = asks.open(None, false).unwrap();
        asks.answered_by(here, By::Task(9));
        asks.answered_by(there, By::Task(9));
        assert_eq!(asks.close(here).unwrap().by, By::Task(9));
        assert_eq!(asks.close(there).unwrap().by, By::Elsewhere(7));
        assert_eq!(asks.close(waits).unwrap().by, By::Message);
        assert_eq!(asks.close(waits), None);
    }

    #[test]
    fn an_answer_comes_once() {
        let mut asks = Asks::new();
        let ask = asks.open(None, false).unwrap();
        asks.awaited(ask, None);
        assert_eq!(asks.meets(ask), Meets::Waker);
        asks.keep(ask);
        assert_eq!(asks.meets(ask), Meets::Nobody);
        assert!(asks.close(ask).unwrap().kept);
    }
}
