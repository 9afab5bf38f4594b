//! What the ends of workers and zygotes mean for the calls that they had, and for the programs that
//! they were made from.

use crate::event::{Cause, ForkFailure, GiveFailure, Learning, Preload, Serves};
use crate::ids::{CallId, PoolId, ProgramId, WorkerId};
use crate::outcome::{CancelledBy, ColdReason, Outcome};
use crate::phase::Phase;
use crate::pool::State;
use crate::pool::engine::Engine;
use crate::pool::worker::{Role, State as WorkerState};
use hob_wire::exit::Exit;

use super::Calls;
use super::differs::Uncaught;
use super::tables::Demotion;

impl Calls {
    pub(super) fn finished(&mut self, engine: &mut Engine, id: WorkerId, exit: Exit) {
        let Some(call) = call_of(engine, id) else {
            engine.ignore();
            return;
        };
        let outcome = self.outcome_of(call, Outcome::Exited(exit));
        engine.done(id, call);
        self.settle(engine, call, outcome);
    }

    /// A worker could not take a call on, and executes the program cold in its own place: its end is
    /// the call's.
    pub(super) fn executes(&mut self, engine: &mut Engine, id: WorkerId, reason: ColdReason) {
        let Some(entry) = call_of(engine, id).and_then(|call| self.calls.get_mut(&call)) else {
            engine.ignore();
            return;
        };
        entry.executes = Some(reason);
        // No later call would find there what it begins with.
        if reason == ColdReason::Edited
            && let Some(pool) = engine.workers.get(&id).map(|worker| worker.pool)
        {
            engine.renew_pool(pool);
            // Another zygote takes as long as a cold start: waiting for it gains nothing.
            let waiting = engine
                .pools
                .get(&pool)
                .map_or_else(Vec::new, |pool| pool.queue.iter().copied().collect());
            self.send_cold(engine, pool, waiting, ColdReason::Warming);
        }
    }

    /// An error that nobody caught ends what a worker performs.
    pub(super) fn uncaught(&mut self, engine: &mut Engine, id: WorkerId) {
        match call_of(engine, id).and_then(|call| self.calls.get_mut(&call)) {
            Some(entry) => entry.uncaught = Uncaught::Yes,
            None => engine.ignore(),
        }
    }

    /// A zygote has loaded what a program was seen to load.
    pub(crate) fn zygote_ready(
        &mut self,
        engine: &mut Engine,
        id: WorkerId,
        threads: u32,
        preload: Preload,
    ) {
        let program = engine.serves(id).and_then(Serves::program);
        let (Some(program), Some(pool)) = (program, engine.zygote_ready(id)) else {
            return;
        };
        match preload {
            Preload::Amended => self.amended(engine, pool, program),
            Preload::AsLearned if threads > 1 => {
                self.demote(engine, program, Demotion::Threads(threads));
            }
            Preload::AsLearned => {
                if let Some(pool) = engine.pools.get_mut(&pool) {
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
    fn amended(&mut self, engine: &mut Engine, pool: PoolId, id: ProgramId) {
        self.drop_pool(engine, pool, ColdReason::Warming);
        self.forget_layer(id);
        let Some(program) = self.programs.get_mut(&id) else {
            return;
        };
        program.amended += 1;
        if program.amended > engine.limits.amend_tries {
            program.amended = 0;
            program.failures = program.failures.saturating_add(1);
            let wait_us = engine.limits.backoff_us(program.failures);
            program.failed_until = Some(engine.now.after_us(wait_us));
        }
    }

    pub(crate) fn gone(&mut self, engine: &mut Engine, id: WorkerId, exit: Exit) {
        let Some(entry) = engine.workers.get(&id) else {
            engine.ignore();
            return;
        };
        let (role, pool, state) = (entry.role, entry.pool, entry.state);
        let was_unready = state == WorkerState::Starting || entry.unreached && entry.is_new();
        let waited = state == WorkerState::Ready || entry.unreached;
        if matches!(role, Role::Zygote { .. }) {
            self.zygote_gone(engine, id, Cause::from(exit));
            return;
        }
        if let Some(call) = call_of(engine, id) {
            // It ended by a signal or without its exit hooks. Whether its main had begun cannot be
            // known, and what the process did is what the caller would have seen.
            let outcome = self.outcome_of(call, Outcome::Exited(exit));
            self.settle(engine, call, outcome);
        }
        engine.remove_worker(id);
        let queued = if was_unready {
            engine.died_unready(pool, Cause::from(exit))
        } else if waited {
            engine.died_waiting(pool, Cause::from(exit))
        } else {
            Vec::new()
        };
        self.send_cold(engine, pool, queued, ColdReason::WarmFailed);
    }

    /// A zygote has ended, and with it all its copies: their ends will not be reported.
    fn zygote_gone(&mut self, engine: &mut Engine, id: WorkerId, cause: Cause) {
        let state = engine.workers.get(&id).map(|entry| entry.state);
        for (copy, work) in engine.copies_at_work(id) {
            if engine.workers.get(&copy).is_some_and(|entry| entry.state == WorkerState::Retiring) {
                continue;
            }
            for call in work {
                let outcome = self.outcome_of(call, Outcome::Lost(Phase::Main));
                self.settle(engine, call, outcome);
            }
            engine.retire(copy);
        }
        let Some(pool) = engine.remove_zygote(id) else { return };
        // That it was told to end, and is the pool's still, is no fault of the program's either.
        let has_failed = cause == Cause::Itself && state != Some(WorkerState::Retiring);
        let queued = if has_failed {
            engine.fail_pool(pool, cause)
        } else {
            engine.zygote_was_ended(pool, cause)
        };
        self.send_cold(engine, pool, queued, ColdReason::WarmFailed);
        // Another one is made. It takes as long as a cold start: waiting for it gains nothing.
        let waiting = engine
            .pools
            .get(&pool)
            .map_or_else(Vec::new, |pool| pool.queue.iter().copied().collect());
        self.send_cold(engine, pool, waiting, ColdReason::Warming);
    }

    /// A program that cannot be forked: its pools that fork go, and a standby is made ready.
    fn demote(&mut self, engine: &mut Engine, id: ProgramId, why: Demotion) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.demoted = Some(why);
        }
        let forked: Vec<PoolId> = engine
            .pools
            .values()
            .filter(|pool| pool.serves.program() == Some(id) && pool.terms.forks())
            .map(|pool| pool.id)
            .collect();
        for old in forked {
            let Some((key, asked)) = engine.pools.get(&old).map(|pool| (pool.key, pool.asked))
            else {
                continue;
            };
            self.drop_pool(engine, old, ColdReason::WarmFailed);
            self.begin_pool(engine, id, key, asked);
        }
    }

    /// Ends a pool. Its running calls end on their own; its queued ones run cold.
    pub(super) fn drop_pool(&mut self, engine: &mut Engine, id: PoolId, reason: ColdReason) {
        let queued = engine.drop_pool(id);
        self.send_cold(engine, id, queued, reason);
    }

    /// Drops all pools of a program.
    pub(crate) fn drop_pools_of(
        &mut self,
        engine: &mut Engine,
        program: ProgramId,
        reason: ColdReason,
    ) {
        let of = engine.pools.values().filter(|pool| pool.serves.program() == Some(program));
        let pools: Vec<PoolId> = of.map(|pool| pool.id).collect();
        for pool in pools {
            self.drop_pool(engine, pool, reason);
        }
    }

    /// Sends calls cold that were queued in a pool.
    fn send_cold(
        &mut self,
        engine: &mut Engine,
        pool: PoolId,
        queued: Vec<CallId>,
        reason: ColdReason,
    ) {
        for call in queued {
            self.leave_queue(engine, call, pool);
            self.begin_cold(engine, call, reason, Learning::No);
        }
    }

    pub(super) fn give_failed(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        id: WorkerId,
        why: GiveFailure,
    ) {
        if call_of(engine, id) != Some(call) {
            engine.ignore();
            return;
        }
        let Some(pool) = engine.workers.get(&id).map(|entry| entry.pool) else {
            return;
        };
        match why {
            GiveFailure::CallerLeft => {
                engine.undo(id, call);
                let left = Outcome::Cancelled(CancelledBy::Caller);
                self.settle_unperformed(engine, call, left);
            }
            GiveFailure::WorkerClosed => {
                engine.retire_unreached(id);
                self.give_anew(engine, call, pool);
            }
            // Its descriptors are gone with the worker, so that no other one can have it.
            GiveFailure::Unread => {
                engine.retire_unreached(id);
                self.leave_flight(engine, call);
                self.begin_cold_after_all(engine, call, ColdReason::WorkerClosed);
            }
        }
    }

    /// Gives a call whose worker was closed to another one, a bounded number of times.
    fn give_anew(&mut self, engine: &mut Engine, call: CallId, pool: PoolId) {
        self.leave_flight(engine, call);
        let gives = self.calls.get(&call).map_or(u32::MAX, |entry| entry.gives);
        let may = gives < engine.limits.gives_max;
        match if may { self.find_worker(engine, call, pool) } else { None } {
            Some((worker, found)) => self.give(engine, call, worker, found),
            None => self.begin_cold_after_all(engine, call, ColdReason::WorkerClosed),
        }
    }

    /// Sends a call cold that no worker got; it learns as it was to.
    fn begin_cold_after_all(&mut self, engine: &mut Engine, call: CallId, reason: ColdReason) {
        let learning = self.calls.get(&call).map_or(Learning::No, |entry| entry.learning);
        self.begin_cold(engine, call, reason, learning);
    }

    pub(crate) fn fork_failed(&mut self, engine: &mut Engine, id: WorkerId, why: ForkFailure) {
        let Some(entry) = engine.workers.get(&id) else {
            engine.ignore();
            return;
        };
        let (role, pool, serves) = (entry.role, entry.pool, entry.serves);
        let Role::Copy { .. } = role else {
            engine.ignore();
            return;
        };
        if let Some(call) = call_of(engine, id) {
            let reason = match why {
                ForkFailure::Threads => ColdReason::WarmFailed,
                ForkFailure::System => ColdReason::Busy,
            };
            self.leave_flight(engine, call);
            self.begin_cold_after_all(engine, call, reason);
        }
        engine.remove_worker(id);
        match (why, serves.program()) {
            // The zygote did not say how many; more than one.
            (ForkFailure::Threads, Some(program)) => {
                self.demote(engine, program, Demotion::Threads(2));
            }
            (ForkFailure::Threads, None) | (ForkFailure::System, _) => {
                let queued = engine.died_unready(pool, Cause::System);
                self.send_cold(engine, pool, queued, ColdReason::WarmFailed);
            }
        }
    }

    /// A worker has been starting or ending for too long.
    pub(crate) fn worker_due(&mut self, engine: &mut Engine, id: WorkerId) {
        let Some(pool) = engine.workers.get(&id).map(|entry| entry.pool) else {
            return;
        };
        let queued = engine.worker_due(id);
        self.send_cold(engine, pool, queued, ColdReason::WarmFailed);
    }
}

/// The call that a worker has. It is open: whatever settles a call takes it from its worker.
fn call_of(engine: &Engine, id: WorkerId) -> Option<CallId> {
    let entry = engine.workers.get(&id)?;
    entry.work.first().copied().filter(|_| entry.state.is_at_work())
}
