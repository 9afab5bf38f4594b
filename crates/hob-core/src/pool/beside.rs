//! What is loaded anew beside what goes on: a second generation of one pool.
//!
//! ```text
//!   Ready(old) ── load_beside ──▶ Ready(old), next ──┬─ its zygote is ready ──▶ Ready(new)
//!                                    ▲               ├─ it cannot be loaded ──▶ Ready(old), outdated
//!                                    └── again ──────┴─ the old one has ended ▶ Warming(new)
//! ```
//! There is one queue for both, so that nothing moves from one to the other. Workers of the replaced
//! generation end what they have, as any that has done enough.
//!
//! Only a pool whose zygote is ready has something that can go on: a worker that is executed loads
//! what is there when it starts.

use crate::event::{Cause, Effect, Loaded};
use crate::ids::{PoolId, Time, WorkerId};
use crate::pool::deaths::{Deaths, Verdict};
use crate::pool::engine::Engine;
use crate::pool::{Pool, State};
use crate::terms::Stale;

/// A generation that is being loaded while another one goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    generation: u64,
    /// Its zygote, once one more interpreter may start.
    zygote: Option<WorkerId>,
    waited_for: WaitedFor,
    /// Of its zygotes. What goes on is ready meanwhile, and says nothing of these.
    deaths: Deaths,
}

/// Since when something goes on that is not what would be loaded now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outdated {
    /// How often in a row the new one could not be loaded.
    failures: u32,
    /// It is not tried again by itself before.
    again_at: Time,
}

/// Whether what comes meanwhile waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitedFor {
    No,
    Yes,
}

impl Pool {
    /// Whether nothing is given now: what is loaded anew decides by what.
    pub(crate) fn is_held(&self) -> bool {
        self.next.is_some_and(|next| next.waited_for == WaitedFor::Yes)
    }

    /// Whether requests wait for an interpreter to start.
    pub(super) fn is_waited_for(&self) -> bool {
        self.wanted > 0 || self.is_held() && !self.queue.is_empty()
    }

    /// From when on it wants a zygote beside its own, if it wants one.
    pub(super) fn wants_a_next(&self) -> Option<Time> {
        self.next.filter(|next| next.zygote.is_none()).map(|next| next.deaths.again_at())
    }

    /// Whether this process loads what is to come.
    pub(crate) fn is_next(&self, worker: WorkerId) -> bool {
        self.next.is_some_and(|next| next.zygote == Some(worker))
    }

    /// Whether what goes on is not what would be loaded now, as far as is known.
    pub(crate) fn is_behind(&self) -> bool {
        self.next.is_some() || self.outdated.is_some()
    }

    /// The number of one more generation.
    pub(super) fn new_generation(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }
}

impl Engine {
    /// Begins to load what a pool has anew, while that goes on; once more, if it was begun before.
    /// `false`: nothing is there that could go on.
    pub(crate) fn load_beside(&mut self, id: PoolId, waited_for: WaitedFor) -> bool {
        let Some(pool) = self.pools.get_mut(&id) else { return false };
        if pool.terms.stale == Stale::Ends || !matches!(pool.state, State::Ready(_)) {
            return false;
        }
        let before = pool.next.and_then(|next| next.zygote);
        let generation = pool.new_generation();
        let deaths = Deaths::default();
        pool.next = Some(Next { generation, zygote: None, waited_for, deaths });
        if let Some(zygote) = before {
            self.retire(zygote);
        }
        if waited_for == WaitedFor::Yes {
            self.recall_all(id);
        }
        true
    }

    /// What could not be loaded is tried again when its time has come. Nobody waits for it.
    pub(crate) fn load_again(&mut self, id: PoolId) {
        let is_due = |pool: &Pool| {
            pool.next.is_none() && pool.outdated.is_some_and(|since| since.again_at <= self.now)
        };
        if self.pools.get(&id).is_some_and(is_due) {
            self.load_beside(id, WaitedFor::No);
        }
    }

    /// The zygote of what is loaded beside a pool's own is about to be started.
    pub(super) fn is_started_beside(&mut self, id: PoolId, zygote: WorkerId) -> bool {
        let Some(next) = self.pools.get_mut(&id).and_then(|pool| pool.next.as_mut()) else {
            return false;
        };
        next.zygote = Some(zygote);
        if let Some(entry) = self.workers.get_mut(&zygote) {
            entry.generation = next.generation;
        }
        true
    }

    /// What was loaded beside is the pool's from now on, ready or not: the rest ends when it has
    /// nothing to do. `false`: there is none.
    pub(crate) fn take_next(&mut self, id: PoolId) -> bool {
        let Some(pool) = self.pools.get_mut(&id) else { return false };
        let Some(next) = pool.next.take() else { return false };
        pool.generation = next.generation;
        pool.state = next.zygote.map_or(State::Waiting, State::Warming);
        (pool.failures, pool.deaths, pool.outdated) = (0, next.deaths, None);
        self.retire_where(|entry| entry.pool == id && entry.generation != next.generation);
        self.recall_all(id);
        true
    }

    /// The zygote of what is loaded beside has died before it was ready. What something else ended
    /// is made anew.
    pub(crate) fn next_died(&mut self, id: PoolId, cause: Cause) {
        let Some(pool) = self.pools.get_mut(&id) else { return };
        let Some(next) = pool.next.as_mut() else { return };
        next.zygote = None;
        let verdict = next.deaths.one_was_unready(cause, self.now, &self.limits);
        if cause == Cause::Itself || verdict == Verdict::Fails {
            self.next_failed(id);
        }
    }

    /// What was loaded beside cannot be: the pool goes on with what it has.
    pub(crate) fn next_failed(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else { return };
        pool.next = None;
        let failures = pool.outdated.map_or(0, |since| since.failures).saturating_add(1);
        // Nobody waits for it, so that it may be long; an edit does not wait for it either.
        let again_at = self.now.after_us(self.limits.backoff_us(failures));
        pool.outdated = Some(Outdated { failures, again_at });
        self.tell_loaded(id, Loaded::Kept);
    }

    /// A pool gives up all that it has: what is loaded beside, too.
    pub(super) fn drop_next(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else { return };
        pool.outdated = None;
        if let Some(next) = pool.next.take() {
            if let Some(zygote) = next.zygote {
                self.retire(zygote);
            }
            self.tell_loaded(id, Loaded::Nothing);
        }
    }

    /// Tells what became of loading a pool.
    pub(crate) fn tell_loaded(&mut self, pool: PoolId, loaded: Loaded) {
        self.out.push(Effect::Loaded { pool, loaded });
    }
}
