//! Memory readings: what has grown too large is replaced, and what goes when the budget is passed.
//!
//! What has a request or a lane is never taken away, nor what keeps a session's state. A pool that
//! nothing uses goes with its zygote, and comes back with its next request.

pub mod budget;

use std::collections::BTreeMap;

use crate::event::Serves;
use crate::ids::{PoolId, ProgramId, WorkerId};
use crate::pool::engine::Engine;
use crate::pool::memory::budget::{Held, Use, evictions, too_large};
use crate::pool::worker::{State, Worker};

impl Engine {
    /// Takes in readings of processes.
    pub(crate) fn read(&mut self, readings: &[(WorkerId, u64)]) {
        for (worker, kib) in readings {
            if let Some(entry) = self.workers.get_mut(worker) {
                entry.kib = *kib;
                if entry.state == State::Ready
                    && !entry.is_zygote()
                    && let Some(pool) = self.pools.get_mut(&entry.pool)
                {
                    pool.copy_kib = *kib;
                }
            }
        }
        let grown = |worker: &WorkerId| {
            self.workers.get(worker).is_some_and(|entry| {
                entry.state == State::Ready && !entry.is_zygote() && entry.used > 0
            }) && self.uses_left(*worker) == 0
        };
        let grown: Vec<WorkerId> = self.workers.keys().copied().filter(grown).collect();
        for worker in grown {
            self.count_recycled(worker);
            self.retire(worker);
        }
    }

    /// The programs that are over the budget all by themselves.
    pub(crate) fn too_large(&self) -> Vec<ProgramId> {
        too_large(&self.held(), self.limits.budget_kib)
    }

    /// Frees what waits until the rest is within the budget.
    pub(crate) fn evict(&mut self) {
        for pool in evictions(&self.held(), self.limits.budget_kib) {
            self.evict_pool(pool);
        }
        self.held_kib = self.held().iter().map(|pool| pool.kib + pool.kept_kib).sum();
    }

    /// What each pool holds while it waits.
    fn held(&self) -> Vec<Held> {
        let mut of: BTreeMap<PoolId, (u64, u64)> = BTreeMap::new();
        for entry in self.workers.values().filter(|entry| entry.state.waits()) {
            let (free, kept) = of.entry(entry.pool).or_default();
            let is_kept = entry.key.is_some() || self.is_needed(entry);
            *(if is_kept { kept } else { free }) += entry.kib;
        }
        let held = |pool: &crate::pool::Pool| {
            let (kib, kept_kib) = of.get(&pool.id).copied().unwrap_or_default();
            Held {
                pool: pool.id,
                program: pool.serves.program(),
                last_used: pool.last_used,
                kib,
                kept_kib,
                used: if pool.is_unused() { Use::None } else { Use::Open },
            }
        };
        self.pools.values().map(held).collect()
    }

    /// Whether giving up what waits of its pool would not free this one: it is the zygote, or still
    /// starts, and the pool is in use or keeps a session's state.
    fn is_needed(&self, entry: &Worker) -> bool {
        self.pools.get(&entry.pool).is_some_and(|pool| {
            (entry.is_zygote() || entry.state == State::Starting)
                && (!pool.is_unused() || self.has_state(entry.pool))
        })
    }

    /// Whether a worker of a pool keeps a session's state.
    pub(super) fn has_state(&self, id: PoolId) -> bool {
        self.workers
            .values()
            .any(|entry| entry.pool == id && entry.key.is_some() && entry.state != State::Retiring)
    }

    /// What a pool holds while it waits.
    pub(crate) fn kib_of(&self, id: PoolId) -> u64 {
        let of = self.workers.values().filter(|entry| entry.pool == id && entry.state.waits());
        of.map(|entry| entry.kib).sum()
    }

    /// Frees what a pool holds. One that is in use keeps its zygote, which it needs.
    fn evict_pool(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        // Otherwise what was just freed would be made again, ahead of nothing.
        pool.rests = pool.serves.program().is_none();
        let (is_free, serves) = (pool.is_unused(), pool.serves);
        match serves {
            Serves::Program(_) if is_free => _ = self.drop_pool(id),
            Serves::Handler(_) if is_free && !self.has_state(id) => self.rest_pool(id),
            Serves::Program(_) | Serves::Handler(_) => self.retire_where(|entry| {
                entry.pool == id
                    && entry.state == State::Ready
                    && !entry.is_zygote()
                    && entry.key.is_none()
            }),
        }
    }
}
