//! What a pool works by: data, the same for everything that is served.
//!
//! Calls, messages, and whatever front comes next differ in these terms and in their policy
//! (`calls`, `requests`); the engine that makes, gives and ends workers is one.

use crate::isolation::{Origin, Recipe, Uses};
use crate::limits::Limits;

/// What a pool works by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Where workers come from, how many wait, and for how many requests each is good.
    pub recipe: Recipe,
    /// Requests that a worker performs at one time; at least 1.
    pub slots: u32,
    /// Which worker a request may go to.
    pub affinity: Affinity,
    /// What a worker that performs several requests does between two of them.
    pub after: After,
    /// When workers are made ahead.
    pub refill: Refill,
    /// Workers at one time.
    pub workers_max: u32,
    /// Requests that wait at one time.
    pub queue_max: u32,
    /// Memory of a worker in KiB, after which it is replaced.
    pub worker_kib: u64,
    /// After this without a request, a pool (or a session's worker) is retired.
    pub idle_us: u64,
    /// The longest back-off after failures to load.
    pub backoff_max_us: u64,
    /// What becomes of what is loaded when it is not what would be loaded now.
    pub stale: Stale,
}

/// What becomes of what is loaded when it is not what would be loaded now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// It ends: what comes waits for what is loaded anew, or is refused.
    Ends,
    /// It stays, and goes on only if nothing else can be loaded. What comes meanwhile waits.
    Waits,
    /// It goes on until what is loaded anew is ready.
    Serves,
}

/// Which worker a request may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// To any of its pool.
    Any,
    /// To the one of its key.
    Session,
}

/// What a worker that has uses left does after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It puts its world back, and says that it is ready.
    Announce,
    /// It is ready as soon as it has answered.
    Ready,
}

/// When workers are made ahead of what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refill {
    /// In a quiet moment, prefaulted, as many as the rate of arrivals asks for.
    Quiet,
    /// At once, as many as [`Recipe::ahead`] says: what comes waits for them, for it cannot run
    /// anywhere else.
    AtOnce,
}

impl Terms {
    /// The terms of a program's calls: what finds no worker runs cold.
    #[must_use]
    pub fn of_calls(recipe: Recipe, limits: &Limits) -> Terms {
        Terms {
            recipe,
            slots: 1,
            affinity: Affinity::Any,
            after: After::Announce,
            refill: Refill::Quiet,
            workers_max: limits.workers_max,
            queue_max: limits.queue_max,
            worker_kib: limits.worker_kib,
            idle_us: limits.pool_idle_us,
            backoff_max_us: limits.backoff_max_us,
            stale: Stale::Ends,
        }
    }

    /// Whether a worker may be lent to one sender: it has many uses, one slot and no session.
    #[must_use]
    pub fn may_be_lent(&self) -> bool {
        self.affinity == Affinity::Any && self.slots == 1 && !self.is_single_use()
    }

    /// Whether its workers are forks of a zygote.
    pub(crate) fn forks(&self) -> bool {
        self.recipe.origin == Origin::Fork
    }

    /// Whether a worker ends with its first request.
    pub(crate) fn is_single_use(&self) -> bool {
        self.recipe.uses == Uses::Once
    }
}
