//! Copies and standbys: ready, finished, gone; gives and forks that came to nothing.
//!
//! Order that the daemon keeps: a `GiveFailed` or `ForkFailed` comes before any other event of
//! that call about the same worker (an unread give just before the worker's `Gone`), and a zygote's `Gone` before those of its copies (which end with it).
//! `ForkFailed` is the last event about its worker, as `Gone` is.

use crate::event::{Effect, ForkFailure, GiveFailure, Learning, Pages};
use crate::ids::{CallId, PoolId, WorkerId};
use crate::isolation::Uses;
use crate::outcome::{CancelledBy, ColdReason, Outcome};
use crate::pool::recycle::{self, After, Memory};
use crate::pool::worker::{Illegal, Input, Role, State, Worker};
use hob_wire::exit::Exit;

use super::tables::Demotion;
use super::{Freed, SIGKILL, Supervisor, Timer};

impl Supervisor {
    /// A worker that is about to be asked for.
    pub(super) fn new_worker(&mut self, id: PoolId, role: Role, pages: Pages) -> Option<WorkerId> {
        let worker = self.new_worker_id();
        let pool = self.pools.get_mut(&id)?;
        let kib = match (role, pages) {
            (Role::Copy { .. }, Pages::Paid | Pages::Plain) => pool.copy_kib,
            (Role::Copy { .. }, Pages::Unpaid) | (Role::Zygote { .. } | Role::Standby, _) => 0,
        };
        let entry = Worker {
            program: pool.program,
            pool: id,
            recipe: pool.recipe,
            role,
            state: State::Starting,
            pages,
            asked_at: self.now,
            used: 0,
            kib,
        };
        if !matches!(role, Role::Zygote { .. }) {
            pool.count(worker, None, State::Starting);
        }
        self.paying += u32::from(entry.is_paying());
        self.starting += u32::from(entry.is_starting());
        let patience_us = match role {
            Role::Zygote { .. } | Role::Standby => self.limits.start_us,
            Role::Copy { .. } => self.limits.pay_us,
        };
        self.workers.insert(worker, entry);
        self.timers.set(Timer::Worker(worker), Some(self.now.after_us(patience_us)));
        Some(worker)
    }

    /// Moves a worker to its next state, and counts; returns the state that it was in. What
    /// cannot happen to it is ignored and counted.
    pub(super) fn step_worker(&mut self, id: WorkerId, input: Input) -> Result<State, Illegal> {
        let Some(entry) = self.workers.get_mut(&id) else {
            self.ignored += 1;
            return Err(Illegal);
        };
        let before = entry.state;
        let after = match before.after(input) {
            Ok(after) => after,
            Err(Illegal) => {
                self.ignored += 1;
                return Err(Illegal);
            }
        };
        self.paying -= u32::from(entry.is_paying());
        self.starting -= u32::from(entry.is_starting());
        entry.state = after;
        if !matches!(entry.role, Role::Zygote { .. })
            && let Some(pool) = self.pools.get_mut(&entry.pool)
        {
            pool.count(id, Some(before), after);
        }
        self.freed = Freed::Yes;
        self.timers.set(Timer::Worker(id), None);
        if after == State::Gone {
            self.workers.remove(&id);
        }
        Ok(before)
    }

    pub(super) fn worker_ready(&mut self, id: WorkerId) {
        if self.workers.get(&id).is_some_and(|entry| matches!(entry.role, Role::Zygote { .. })) {
            self.ignore();
            return;
        }
        if self.step_worker(id, Input::Ready).is_err() {
            return;
        }
        if let Some(entry) = self.workers.get(&id)
            && matches!(entry.role, Role::Copy { .. })
            && entry.used == 0
            && entry.pages == Pages::Paid
            && let Some(pool) = self.pools.get_mut(&entry.pool)
        {
            pool.pay_us.add(self.now.us_since(entry.asked_at));
        }
    }

    pub(super) fn finished(&mut self, id: WorkerId, exit: Exit, out: &mut Vec<Effect>) {
        let Some(entry) = self.workers.get(&id) else {
            self.ignore();
            return;
        };
        let State::Busy(call) = entry.state else {
            self.ignore();
            return;
        };
        let over = entry.kib > self.limits.worker_kib;
        let memory = if over { Memory::Over } else { Memory::Within };
        let orphaned = !self.pools.contains_key(&entry.pool);
        let (input, patience_us) = match recycle::after(entry.recipe, id, entry.used, memory) {
            After::Again if !orphaned => (Input::FinishedUse, self.limits.pay_us),
            After::Again | After::Retire => (Input::FinishedLast, self.limits.retire_us),
        };
        if entry.recipe.uses != Uses::Once && input == Input::FinishedLast {
            // It does not know that this was its last call.
            out.push(Effect::Retire { worker: id });
        }
        if let Some(pool) = self.pools.get_mut(&entry.pool) {
            pool.failures = 0;
            pool.deaths = 0;
        }
        let outcome = self.outcome_of(call, Outcome::Exited(exit));
        if self.step_worker(id, input).is_ok() {
            self.timers.set(Timer::Worker(id), Some(self.now.after_us(patience_us)));
        }
        self.settle(call, outcome, out);
    }

    pub(super) fn gone(&mut self, id: WorkerId, exit: Exit, out: &mut Vec<Effect>) {
        let Some(entry) = self.workers.get(&id) else {
            self.ignore();
            return;
        };
        let (role, pool) = (entry.role, entry.pool);
        match (role, entry.state) {
            (Role::Zygote { .. }, _) => {
                self.zygote_gone(id, out);
            }
            (Role::Copy { .. } | Role::Standby, State::Busy(call)) => {
                // It ended by a signal or without its exit hooks. Whether its main had begun
                // cannot be known, and what the process did is what the caller would have seen.
                let outcome = self.outcome_of(call, Outcome::Exited(exit));
                self.settle(call, outcome, out);
                self.remove_worker(id, role, out);
            }
            (Role::Copy { .. } | Role::Standby, State::Starting | State::Ready) => {
                self.remove_worker(id, role, out);
                self.count_death(pool, out);
            }
            (Role::Copy { .. } | Role::Standby, State::Retiring | State::Gone) => {
                self.remove_worker(id, role, out);
            }
        }
    }

    /// Takes an ended worker out, and lets its zygote go if that only waited for it.
    fn remove_worker(&mut self, id: WorkerId, role: Role, out: &mut Vec<Effect>) {
        if self.step_worker(id, Input::Gone).is_err() {
            return;
        }
        match role {
            Role::Copy { zygote } => self.release_zygote(zygote, out),
            Role::Zygote { .. } | Role::Standby => {}
        }
    }

    /// A worker of this pool died with no call performed. Often enough in a row, and the pool is
    /// what is wrong.
    pub(super) fn count_death(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        pool.deaths += 1;
        if pool.deaths >= self.limits.deaths_max {
            self.fail_pool(id, out);
        }
    }

    pub(super) fn give_failed(
        &mut self,
        call: CallId,
        id: WorkerId,
        why: GiveFailure,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.workers.get_mut(&id) else {
            self.ignore();
            return;
        };
        if entry.state != State::Busy(call) {
            self.ignore();
            return;
        }
        let pool = entry.pool;
        match why {
            GiveFailure::CallerLeft => {
                entry.used -= 1;
                let left = Outcome::Cancelled(CancelledBy::Caller);
                if self.step_worker(id, Input::GiveUndone).is_ok()
                    && !self.pools.contains_key(&pool)
                {
                    self.retire(id, out);
                }
                self.settle_unperformed(call, left, out);
            }
            GiveFailure::WorkerClosed => {
                self.retire(id, out);
                self.count_death(pool, out);
                self.give_anew(call, pool, out);
            }
            // Its descriptors are gone with the worker, so that no other one can have it.
            GiveFailure::Unread => {
                self.retire(id, out);
                self.count_death(pool, out);
                self.leave_flight(call);
                self.begin_cold(call, ColdReason::WorkerClosed, Learning::No, out);
            }
        }
    }

    /// Gives a call whose worker was closed to another one, a bounded number of times.
    fn give_anew(&mut self, call: CallId, pool: PoolId, out: &mut Vec<Effect>) {
        self.leave_flight(call);
        let gives = self.calls.get(&call).map_or(u32::MAX, |entry| entry.gives);
        let next =
            if gives < self.limits.gives_max { self.find_worker(call, pool, out) } else { None };
        match next {
            Some((worker, found)) => self.give(call, worker, found, out),
            None => self.begin_cold(call, ColdReason::WorkerClosed, Learning::No, out),
        }
    }

    pub(super) fn fork_failed(&mut self, id: WorkerId, why: ForkFailure, out: &mut Vec<Effect>) {
        let Some(entry) = self.workers.get(&id) else {
            self.ignore();
            return;
        };
        let (role, pool, program) = (entry.role, entry.pool, entry.program);
        let state = entry.state;
        let Role::Copy { .. } = role else {
            self.ignore();
            return;
        };
        if let State::Busy(call) = state {
            let reason = match why {
                ForkFailure::Threads => ColdReason::WarmFailed,
                ForkFailure::System => ColdReason::Busy,
            };
            self.leave_flight(call);
            self.begin_cold(call, reason, Learning::No, out);
        }
        self.remove_worker(id, role, out);
        match why {
            // The zygote did not say how many; more than one.
            ForkFailure::Threads => self.demote(program, Demotion::Threads(2), out),
            ForkFailure::System => self.count_death(pool, out),
        }
    }

    /// Closes the channel of a worker that has no call: it ends by that. A zygote with copies is
    /// told only when the last of them has ended, since they end with it.
    pub(super) fn retire(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        if self.step_worker(id, Input::Retire).is_err() {
            return;
        }
        match self.workers.get(&id).map(|entry| entry.role) {
            Some(Role::Zygote { copies: 0 } | Role::Copy { .. } | Role::Standby) => {
                self.tell_to_end(id, out);
            }
            Some(Role::Zygote { .. }) | None => {}
        }
    }

    pub(super) fn tell_to_end(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        let patience = self.now.after_us(self.limits.retire_us);
        self.timers.set(Timer::Worker(id), Some(patience));
        out.push(Effect::Retire { worker: id });
    }

    /// Kills a worker, whatever it does. Its call is the caller's to settle.
    pub(super) fn kill(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        out.push(Effect::Signal { worker: id, signal: SIGKILL });
        let retiring = self.workers.get(&id).is_none_or(|entry| entry.state == State::Retiring);
        if !retiring && self.step_worker(id, Input::Retire).is_err() {
            self.ignore();
        }
    }

    /// A worker has been starting or ending for too long.
    pub(super) fn worker_due(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        let Some(entry) = self.workers.get(&id) else {
            return;
        };
        let (role, pool) = (entry.role, entry.pool);
        match entry.state {
            State::Starting => {
                self.kill(id, out);
                match role {
                    Role::Zygote { .. } => self.fail_pool(pool, out),
                    Role::Copy { .. } | Role::Standby => self.count_death(pool, out),
                }
            }
            State::Retiring => self.kill(id, out),
            State::Ready | State::Busy(_) | State::Gone => {}
        }
    }

    /// The call that a worker has. It is open: whatever settles a call takes it from its worker.
    pub(super) fn call_of(&self, id: WorkerId) -> Option<CallId> {
        match self.workers.get(&id)?.state {
            State::Busy(call) => Some(call),
            State::Starting | State::Ready | State::Retiring | State::Gone => None,
        }
    }
}
