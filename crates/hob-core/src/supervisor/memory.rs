//! Memory readings: what goes when the budget is passed.

use std::collections::BTreeMap;

use crate::event::Effect;
use crate::ids::{PoolId, WorkerId};
use crate::outcome::ColdReason;
use crate::pool::budget::{Calls, Held, Waiting, evictions, too_large};
use crate::pool::worker::{Role, State};

use super::Supervisor;

impl Supervisor {
    /// What would wait by these readings, for the budget that is shared with others.
    #[must_use]
    pub fn waiting(&mut self, readings: &[(WorkerId, u64)]) -> Vec<Waiting> {
        self.read(readings);
        let held = self.held();
        held.iter()
            .map(|pool| Waiting { last_used: pool.last_used, kib: pool.kib, calls: pool.calls })
            .collect()
    }

    fn read(&mut self, readings: &[(WorkerId, u64)]) {
        for (worker, kib) in readings {
            if let Some(entry) = self.workers.get_mut(worker) {
                entry.kib = *kib;
            }
        }
    }

    pub(super) fn memory(
        &mut self,
        readings: &[(WorkerId, u64)],
        allowed_kib: u64,
        out: &mut Vec<Effect>,
    ) {
        self.allowed_kib = allowed_kib;
        self.read(readings);
        let held = self.held();
        for program in too_large(&held, self.limits.budget_kib) {
            let until = self.now.after_us(self.limits.memory_wait_us);
            if let Some(program) = self.programs.get_mut(&program) {
                program.memory_until = Some(until);
            }
            self.drop_pools_of(program, ColdReason::Memory, out);
        }
        let held = self.held();
        for pool in evictions(&held, allowed_kib) {
            self.evict(pool, out);
        }
        self.held_kib = self.held().iter().map(|pool| pool.kib).sum();
    }

    /// What each pool holds while it waits. Remembers on the way what a copy of it occupies.
    fn held(&mut self) -> Vec<Held> {
        let mut kib: BTreeMap<PoolId, u64> = BTreeMap::new();
        for entry in self.workers.values() {
            if !matches!(entry.state, State::Starting | State::Ready) {
                continue;
            }
            *kib.entry(entry.pool).or_default() += entry.kib;
            let ahead = matches!(entry.role, Role::Copy { .. } | Role::Standby);
            if let Some(pool) = self.pools.get_mut(&entry.pool)
                && ahead
                && entry.state == State::Ready
            {
                pool.copy_kib = entry.kib;
            }
        }
        self.pools
            .values()
            .map(|pool| Held {
                pool: pool.id,
                program: pool.program,
                last_used: pool.last_used,
                kib: kib.get(&pool.id).copied().unwrap_or(0),
                calls: if pool.is_unused() { Calls::None } else { Calls::Open },
            })
            .collect()
    }

    /// What a pool holds while it waits.
    pub(super) fn kib_of(&self, id: PoolId) -> u64 {
        let waits = |state| matches!(state, State::Starting | State::Ready);
        let of = self.workers.values().filter(|entry| entry.pool == id && waits(entry.state));
        of.map(|entry| entry.kib).sum()
    }

    /// Frees what a pool holds. One that is in use keeps its zygote, which its calls need.
    fn evict(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        let Some(pool) = self.pools.get(&id) else {
            return;
        };
        if pool.is_unused() {
            self.drop_pool(id, ColdReason::Memory, out);
            return;
        }
        let idle = pool.idle.clone();
        for worker in idle {
            self.retire(worker, out);
        }
    }
}
