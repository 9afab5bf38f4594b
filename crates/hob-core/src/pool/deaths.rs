//! Deaths that nobody here asked for: what they say of what a pool loads, and how long it waits
//! before it makes another process.
//!
//! A process that ends by itself before it is ready has said something about what it loads. One
//! that a signal ended has not: a person may have sent it, or a system that has no memory left. So
//! another one is made, after a wait that doubles. Only many in a row, with no worker ready between
//! them, mean that it dies of what it loads.

use crate::event::Cause;
use crate::ids::Time;
use crate::limits::Limits;

/// Whether a pool goes on after a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    GoesOn,
    Fails,
}

/// The deaths of a pool's processes in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Deaths {
    /// Those that ended by themselves, with nothing performed between.
    by_themselves: u32,
    /// Those that something else ended before they were ready, with no worker ready between.
    unready: u32,
    /// Those that died while they waited, with nothing performed between.
    waiting: u32,
    /// No other process is made ahead or loaded before.
    again_at: Time,
}

impl Deaths {
    /// When the next process may be made.
    pub(super) fn again_at(self) -> Time {
        self.again_at
    }

    /// A worker is ready: what is loaded can be.
    pub(super) fn one_is_ready(&mut self) {
        self.unready = 0;
    }

    /// A process has died before it was ready.
    pub(super) fn one_was_unready(&mut self, cause: Cause, now: Time, limits: &Limits) -> Verdict {
        let is_once_too_often = match cause {
            Cause::Itself => {
                self.by_themselves = self.by_themselves.saturating_add(1);
                self.by_themselves >= limits.deaths_max
            }
            Cause::Signal(_) | Cause::System => {
                self.unready = self.unready.saturating_add(1);
                self.again_at = now.after_us(limits.death_wait_us(self.unready));
                self.unready >= limits.kills_max
            }
        };
        if is_once_too_often { Verdict::Fails } else { Verdict::GoesOn }
    }

    /// A worker that something else ended while it waited is made anew, ever more slowly.
    pub(super) fn one_waits_again(&mut self, now: Time, limits: &Limits) {
        let deaths = self.one_waited();
        self.again_at = now.after_us(limits.death_wait_us(deaths));
    }

    /// A worker has died while it waited: how many have.
    pub(super) fn one_waited(&mut self) -> u32 {
        self.waiting = self.waiting.saturating_add(1);
        self.waiting
    }

    /// Those that waited are counted anew.
    pub(super) fn none_waits(&mut self) {
        self.waiting = 0;
    }
}
