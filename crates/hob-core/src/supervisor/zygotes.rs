//! Zygotes and their pools: ready, gone, demoted, failed, dropped.

use crate::event::{Effect, Learning, Preload};
use crate::ids::{CallId, PoolId, ProgramId, WorkerId};
use crate::isolation::Origin;
use crate::outcome::{ColdReason, Outcome};
use crate::phase::Phase;
use crate::pool::State;
use crate::pool::worker::{Input, Role, State as WorkerState};

use super::tables::{Demotion, Wish};
use super::{Supervisor, Timer};

impl Supervisor {
    pub(super) fn zygote_ready(
        &mut self,
        id: WorkerId,
        threads: u32,
        preload: Preload,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.workers.get(&id) else {
            self.ignore();
            return;
        };
        let (pool, program) = (entry.pool, entry.program);
        if !matches!(entry.role, Role::Zygote { .. }) || self.step_worker(id, Input::Ready).is_err()
        {
            self.ignore();
            return;
        }
        match preload {
            Preload::Amended => self.amended(pool, program, out),
            Preload::AsLearned if threads > 1 => {
                self.demote(program, Demotion::Threads(threads), out);
            }
            Preload::AsLearned => {
                if let Some(pool) = self.pools.get_mut(&pool) {
                    pool.state = State::Ready(id);
                }
                if let Some(program) = self.programs.get_mut(&program) {
                    program.amended = 0;
                    program.failures = 0;
                }
            }
        }
    }

    /// The lesson was not complete. The key may have changed with it, so the pool goes; the next
    /// call brings the new key. A lesson that never settles sends the program cold for a while.
    fn amended(&mut self, pool: PoolId, id: ProgramId, out: &mut Vec<Effect>) {
        self.drop_pool(pool, ColdReason::Warming, out);
        let Some(program) = self.programs.get_mut(&id) else {
            return;
        };
        program.amended += 1;
        if program.amended > self.limits.amend_tries {
            program.amended = 0;
            program.failures = program.failures.saturating_add(1);
            let wait_us = self.limits.backoff_us(program.failures);
            program.failed_until = Some(self.now.after_us(wait_us));
        }
    }

    /// A zygote has ended, and with it all its copies: their ends will not be reported.
    pub(super) fn zygote_gone(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        let pool = self.workers.get(&id).map(|entry| entry.pool);
        let copies: Vec<WorkerId> = self
            .workers
            .iter()
            .filter(|(_, entry)| matches!(entry.role, Role::Copy { zygote } if zygote == id))
            .map(|(copy, _)| *copy)
            .collect();
        for copy in copies {
            if let Some(call) = self.call_of(copy) {
                let outcome = self.outcome_of(call, Outcome::Lost(Phase::Main));
                self.settle(call, outcome, out);
            }
            if self.workers.get(&copy).is_some_and(|entry| entry.state != WorkerState::Retiring) {
                self.retire(copy, out);
            }
        }
        if self.step_worker(id, Input::Gone).is_err() {
            return;
        }
        let current =
            pool.filter(|pool| self.pools.get(pool).is_some_and(|pool| pool.zygote() == Some(id)));
        if let Some(pool) = current {
            self.fail_pool(pool, out);
        }
    }

    /// One copy of this zygote has ended.
    pub(super) fn release_zygote(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        let Some(entry) = self.workers.get_mut(&id) else {
            return;
        };
        let Role::Zygote { copies } = &mut entry.role else {
            return;
        };
        *copies -= 1;
        if *copies == 0 && entry.state == WorkerState::Retiring {
            self.tell_to_end(id, out);
        }
    }

    /// A program that cannot be forked: its pools that fork go, and a standby is made ready.
    pub(super) fn demote(&mut self, id: ProgramId, why: Demotion, out: &mut Vec<Effect>) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.demoted = Some(why);
        }
        let forked: Vec<PoolId> = self
            .pools
            .values()
            .filter(|pool| pool.program == id && pool.recipe.origin == Origin::Fork)
            .map(|pool| pool.id)
            .collect();
        for old in forked {
            let Some((key, asked)) = self.pools.get(&old).map(|pool| (pool.key, pool.asked)) else {
                continue;
            };
            self.drop_pool(old, ColdReason::WarmFailed, out);
            let recipe = self.recipe(id, Wish { isolation: None, ahead: asked });
            if let Some(new) = self.pool_for(id, key, recipe, out) {
                self.begin_pool(new, asked);
            }
        }
    }

    /// A pool was made before any call came for it.
    pub(super) fn begin_pool(&mut self, id: PoolId, asked: Option<u32>) {
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.asked = asked;
            pool.last_used = self.now;
            let settles = self.now.after_us(self.limits.rate_us);
            self.timers.set(Timer::Pool(id), Some(settles));
        }
    }

    /// A pool whose zygote or workers die: everything in it ends, and it is not tried again for a
    /// while.
    pub(super) fn fail_pool(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        self.retire_workers_of(id, out);
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        pool.failures = pool.failures.saturating_add(1);
        pool.deaths = 0;
        let until = self.now.after_us(self.limits.backoff_us(pool.failures));
        pool.state = State::Failed { until };
        self.send_queue_cold(id, ColdReason::WarmFailed, out);
    }

    /// Ends a pool. Its running calls end on their own; its queued ones run cold.
    pub(super) fn drop_pool(&mut self, id: PoolId, reason: ColdReason, out: &mut Vec<Effect>) {
        self.retire_workers_of(id, out);
        self.send_queue_cold(id, reason, out);
        if let Some(pool) = self.pools.remove(&id) {
            self.shelves.remove(&pool.shelf());
        }
        self.timers.set(Timer::Pool(id), None);
    }

    /// Drops all pools of a program.
    pub(super) fn drop_pools_of(
        &mut self,
        program: ProgramId,
        reason: ColdReason,
        out: &mut Vec<Effect>,
    ) {
        let pools: Vec<PoolId> = self
            .pools
            .values()
            .filter(|pool| pool.program == program)
            .map(|pool| pool.id)
            .collect();
        for pool in pools {
            self.drop_pool(pool, reason, out);
        }
    }

    fn retire_workers_of(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        let waiting: Vec<WorkerId> = self
            .workers
            .iter()
            .filter(|(_, entry)| {
                entry.pool == id
                    && matches!(entry.state, WorkerState::Starting | WorkerState::Ready)
            })
            .map(|(worker, _)| *worker)
            .collect();
        for worker in waiting {
            self.retire(worker, out);
        }
    }

    fn send_queue_cold(&mut self, id: PoolId, reason: ColdReason, out: &mut Vec<Effect>) {
        let queued: Vec<CallId> = self
            .pools
            .get(&id)
            .map(|pool| pool.queue.iter().copied().collect())
            .unwrap_or_default();
        for call in queued {
            self.leave_queue(call, id);
            self.begin_cold(call, reason, Learning::No, out);
        }
    }

    /// Makes room for one more pool, by dropping the one that was not used for longest. Not one
    /// that was used a moment ago: with more keys in turn than pools, each call would end what the
    /// next one needs, and none would ever be warm.
    pub(super) fn make_room_for_a_pool(&mut self, out: &mut Vec<Effect>) -> bool {
        let most = usize::try_from(self.limits.pools_max).unwrap_or(usize::MAX);
        if self.pools.len() < most {
            return true;
        }
        let oldest = self
            .pools
            .values()
            .filter(|pool| {
                pool.is_unused() && self.now.us_since(pool.last_used) >= self.limits.rate_us
            })
            .min_by_key(|pool| (pool.last_used, pool.id))
            .map(|pool| pool.id);
        let Some(oldest) = oldest else {
            return false;
        };
        self.drop_pool(oldest, ColdReason::Busy, out);
        true
    }
}
