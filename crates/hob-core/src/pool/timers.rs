//! What is to be looked at when. One entry per thing, replaced when its time changes; what is due
//! comes out in order of time.
//!
//! A timer says only *look at this*: whoever looks decides by its own state. None is ever early,
//! and one whose thing is gone does no harm.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{CallId, PoolId, ProgramId, Time, WorkerId};

/// What is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Its deadline, its wait in the queue, the next step of its killing.
    Call(CallId),
    /// It starts, pays, ends or comes back for too long; or its session rests.
    Worker(WorkerId),
    /// It has been idle for long enough for the next step.
    Pool(PoolId),
    /// Its learning run has left no notes.
    Program(ProgramId),
    /// It may be quiet now.
    Refill,
    /// Nothing was called for long.
    Idle,
    /// The next step of stopping.
    Drain,
}

impl Timer {
    /// Whether someone else is judged when it is due: then it matters that the daemon itself was
    /// not held up.
    fn judges(self) -> bool {
        match self {
            Timer::Worker(_) | Timer::Program(_) | Timer::Drain => true,
            Timer::Call(_) | Timer::Pool(_) | Timer::Refill | Timer::Idle => false,
        }
    }
}

/// All timers.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    of: BTreeMap<Timer, Time>,
    order: BTreeSet<(Time, Timer)>,
}

impl Timers {
    /// Sets, moves or (with `None`) removes a timer.
    pub(crate) fn set(&mut self, timer: Timer, at: Option<Time>) {
        let before = match at {
            Some(at) => self.of.insert(timer, at),
            None => self.of.remove(&timer),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, timer));
        }
        if let Some(at) = at {
            self.order.insert((at, timer));
        }
    }

    /// Whether a timer is set.
    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.of.contains_key(&timer)
    }

    /// The earliest.
    pub(crate) fn next(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes the earliest that is due.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        let (at, timer) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.set(timer, None);
        Some(timer)
    }

    /// Moves what is due and judges others to `later`.
    pub(crate) fn postpone_judging(&mut self, now: Time, later: Time) {
        let late: Vec<Timer> = self
            .order
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, timer)| *timer)
            .filter(|timer| timer.judges())
            .collect();
        for timer in late {
            self.set(timer, Some(later));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let mut timers = Timers::default();
        timers.set(Timer::Idle, Some(Time(30)));
        timers.set(Timer::Refill, Some(Time(10)));
        timers.set(Timer::Drain, Some(Time(20)));
        timers.set(Timer::Refill, Some(Time(25)));
        timers.set(Timer::Idle, None);
        assert_eq!(timers.next(), Some(Time(20)));
        assert_eq!(timers.pop_due(Time(19)), None);
        assert_eq!(timers.pop_due(Time(40)), Some(Timer::Drain));
        assert_eq!(timers.pop_due(Time(40)), Some(Timer::Refill));
        assert_eq!(timers.pop_due(Time(40)), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn only_what_judges_others_is_postponed() {
        let mut timers = Timers::default();
        let worker = Timer::Worker(WorkerId(1));
        let program = Timer::Program(ProgramId(1));
        let call = Timer::Call(CallId(1));
        for timer in [worker, program, call, Timer::Drain, Timer::Idle, Timer::Refill] {
            timers.set(timer, Some(Time(10)));
        }
        timers.set(Timer::Worker(WorkerId(2)), Some(Time(60)));
        timers.postpone_judging(Time(50), Time(90));
        let mut due = Vec::new();
        while let Some(timer) = timers.pop_due(Time(60)) {
            due.push(timer);
        }
        assert_eq!(due, [call, Timer::Refill, Timer::Idle, Timer::Worker(WorkerId(2))]);
        assert_eq!(timers.next(), Some(Time(90)));
    }
}
