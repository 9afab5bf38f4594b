//! Workers: asked for, ready, given, done, lent, told to end, gone.
//!
//! Order that the daemon keeps: a `GiveFailed` or `ForkFailed` comes before any other event of that
//! request about the same worker (an unread give just before the worker's `Gone`), and a zygote's
//! `Gone` before those of its copies (which end with it). `ForkFailed` is the last event about its
//! worker, as `Gone` is.
//!
//! A worker ends in one way. With nothing to do: its channel is closed, and what is still there
//! after `retire_us` has SIGKILL. With something to do: SIGTERM, and SIGKILL after `kill_grace_us`.

use crate::event::{Cause, Effect, Pages};
use crate::ids::{CallId, LaneId, PoolId, WorkerId};
use crate::isolation::Uses;
use crate::pool::State as PoolState;
use crate::pool::deaths::Deaths;
use crate::pool::engine::{Engine, Freed, Stage};
use crate::pool::recycle::{self, Memory};
use crate::pool::timers::Timer;
use crate::pool::worker::{Illegal, Input, Role, State, Worker};
use crate::terms::After;

pub(crate) const SIGTERM: u8 = 15;
pub(crate) const SIGKILL: u8 = 9;

impl Engine {
    /// A worker that is about to be asked for.
    pub(super) fn new_worker(&mut self, id: PoolId, role: Role, pages: Pages) -> Option<WorkerId> {
        let worker = self.new_worker_id();
        let pool = self.pools.get_mut(&id)?;
        let kib = match (role, pages) {
            (Role::Copy { .. }, Pages::Paid | Pages::Plain) => pool.copy_kib,
            (Role::Copy { .. }, Pages::Unpaid) | (Role::Zygote { .. } | Role::Standby, _) => 0,
        };
        let entry = Worker {
            serves: pool.serves,
            pool: id,
            generation: pool.generation,
            recipe: pool.terms.recipe,
            role,
            state: State::Starting,
            work: Vec::new(),
            key: None,
            pages,
            asked_at: self.now,
            used: 0,
            kib,
            unreached: false,
        };
        if !entry.is_zygote() {
            pool.count(worker, None, State::Starting);
        }
        self.paying += u32::from(entry.is_paying());
        self.starting += u32::from(entry.is_starting());
        let patience_us = match (role, pages) {
            (Role::Copy { .. }, Pages::Paid | Pages::Plain) => self.limits.pay_us,
            (Role::Copy { .. } | Role::Zygote { .. } | Role::Standby, _) => self.limits.start_us,
        };
        self.workers.insert(worker, entry);
        self.timers.set(Timer::Worker(worker), Some(self.now.after_us(patience_us)));
        Some(worker)
    }

    /// Forks a copy off a ready zygote.
    pub(crate) fn fork(
        &mut self,
        pool: PoolId,
        zygote: WorkerId,
        pages: Pages,
    ) -> Option<WorkerId> {
        match &mut self.workers.get_mut(&zygote)?.role {
            Role::Zygote { copies } => *copies += 1,
            Role::Copy { .. } | Role::Standby => return None,
        }
        let worker = self.new_worker(pool, Role::Copy { zygote }, pages)?;
        self.out.push(Effect::Fork { zygote, worker, pages });
        Some(worker)
    }

    /// Moves a worker to its next state, and counts. What cannot happen to it is ignored and
    /// counted.
    fn step(&mut self, id: WorkerId, input: Input) -> Result<(), Illegal> {
        let Some(entry) = self.workers.get_mut(&id) else {
            self.ignored += 1;
            return Err(Illegal);
        };
        let slots = self.pools.get(&entry.pool).map_or(1, |pool| pool.terms.slots);
        let before = entry.state;
        let Ok(after) = before.after(input, slots) else {
            self.ignored += 1;
            return Err(Illegal);
        };
        self.paying -= u32::from(entry.is_paying());
        self.starting -= u32::from(entry.is_starting());
        entry.state = after;
        if after == State::Retiring {
            entry.work.clear();
        }
        if !entry.is_zygote()
            && let Some(pool) = self.pools.get_mut(&entry.pool)
        {
            pool.count(id, Some(before), after);
        }
        self.freed = Freed::Yes;
        self.timers.set(Timer::Worker(id), None);
        if after == State::Gone {
            self.workers.remove(&id);
        }
        Ok(())
    }

    /// A zygote has loaded, and can be forked.
    pub(crate) fn zygote_ready(&mut self, id: WorkerId) -> Option<PoolId> {
        let entry = self.workers.get(&id)?;
        if !entry.is_zygote() {
            self.ignore();
            return None;
        }
        let pool = entry.pool;
        self.step(id, Input::Ready).ok()?;
        Some(pool)
    }

    /// A copy or standby says that it can be given something.
    pub(crate) fn worker_ready(&mut self, id: WorkerId) -> Option<PoolId> {
        let entry = self.workers.get(&id)?;
        if entry.is_zygote() {
            self.ignore();
            return None;
        }
        self.step(id, Input::Ready).ok()?;
        let entry = self.workers.get(&id)?;
        let has_paid = matches!(entry.role, Role::Copy { .. })
            && entry.used == 0
            && entry.pages == Pages::Paid;
        if let Some(pool) = self.pools.get_mut(&entry.pool) {
            pool.deaths.one_is_ready();
            if has_paid {
                pool.pay_us.add(self.now.us_since(entry.asked_at));
            }
        }
        Some(entry.pool)
    }

    /// Gives a worker something to do. The policy tells the daemon.
    pub(crate) fn give(&mut self, worker: WorkerId, call: CallId) {
        let gave = self.step(worker, Input::Give);
        debug_assert!(gave.is_ok(), "only a worker with a free slot, or a new one, is given");
        if let Some(entry) = self.workers.get_mut(&worker) {
            entry.used += 1;
            entry.work.push(call);
        }
    }

    /// A worker has performed what it had: it goes on, or that was its last one.
    pub(crate) fn done(&mut self, id: WorkerId, call: CallId) {
        let Some(entry) = self.workers.get_mut(&id) else {
            return;
        };
        entry.work.retain(|each| *each != call);
        let idle = entry.work.is_empty();
        let (pool, recipe) = (entry.pool, entry.recipe);
        let terms = self.pools.get(&pool).map(|pool| pool.terms);
        let spent = self.is_spent(id);
        let ends = spent || !self.workers.get(&id).is_some_and(|w| self.is_current(w));
        let after = terms.map_or(After::Announce, |terms| terms.after);
        let (input, patience_us) = match after {
            _ if idle && ends => (Input::DoneLast, Some(self.limits.retire_us)),
            After::Announce if idle => (Input::DoneRenew, Some(self.limits.pay_us)),
            After::Announce | After::Ready => (Input::Done, None),
        };
        if self.step(id, input).is_err() {
            return;
        }
        if input == Input::DoneLast && (recipe.uses != Uses::Once || after == After::Ready) {
            // It does not know that this was its last one.
            self.out.push(Effect::Retire { worker: id });
        }
        match patience_us {
            Some(patience_us) => self.wait_for(id, patience_us),
            None => self.is_idle(id),
        }
        if let Some(pool) = self.pools.get_mut(&pool) {
            (pool.failures, pool.deaths) = (0, Deaths::default());
        }
        if input == Input::DoneLast && spent {
            self.count_recycled(id);
        }
    }

    /// Counts a worker that would have gone on, had it not done enough or grown too large.
    pub(super) fn count_recycled(&mut self, id: WorkerId) {
        if let Some(entry) = self.workers.get(&id)
            && entry.recipe.uses != Uses::Once
            && let Some(pool) = self.pools.get_mut(&entry.pool)
        {
            pool.recycled += 1;
        }
    }

    /// What was given did not reach the worker, which is as before.
    pub(crate) fn undo(&mut self, id: WorkerId, call: CallId) {
        let Some(entry) = self.workers.get_mut(&id) else {
            return;
        };
        entry.used -= 1;
        entry.work.retain(|each| *each != call);
        let orphaned = !self.pools.contains_key(&entry.pool);
        if self.step(id, Input::Undone).is_ok() && orphaned {
            self.retire(id);
        }
    }

    /// A worker that waits and belongs to a session ends when nobody has used it for long.
    fn is_idle(&mut self, id: WorkerId) {
        if let Some(entry) = self.workers.get(&id)
            && entry.key.is_some()
            && entry.state == State::Ready
            && let Some(pool) = self.pools.get(&entry.pool)
        {
            let until = self.now.after_us(pool.terms.idle_us);
            self.timers.set(Timer::Worker(id), Some(until));
        }
    }

    /// How many requests a worker is still good for.
    pub(crate) fn uses_left(&self, id: WorkerId) -> u32 {
        let Some(entry) = self.workers.get(&id) else { return 0 };
        let most = self.pools.get(&entry.pool).map_or(u64::MAX, |pool| pool.terms.worker_kib);
        let memory = if entry.kib > most { Memory::Over } else { Memory::Within };
        recycle::uses_left(entry.recipe, id, entry.used, memory)
    }

    fn is_spent(&self, id: WorkerId) -> bool {
        self.uses_left(id) == 0
    }

    /// Lends a worker that waits to one sender.
    pub(crate) fn lend(&mut self, id: WorkerId, lane: LaneId) -> bool {
        self.step(id, Input::Lend(lane)).is_ok()
    }

    /// Lets nothing more onto a worker's lane.
    pub(crate) fn recall(&mut self, id: WorkerId) {
        if self.workers.get(&id).is_some_and(|entry| matches!(entry.state, State::Lent(_)))
            && self.step(id, Input::Recall).is_ok()
        {
            self.out.push(Effect::Recall { worker: id });
        }
    }

    /// A worker whose lane is shut has so long to come back.
    pub(crate) fn wait_for(&mut self, id: WorkerId, us: u64) {
        self.timers.set(Timer::Worker(id), Some(self.now.after_us(us)));
    }

    /// A worker's lane is over: it waits, or has done enough.
    pub(crate) fn is_back(&mut self, id: WorkerId) {
        if self.step(id, Input::Back).is_err() {
            return;
        }
        let pool = self.workers.get(&id).filter(|entry| self.is_current(entry));
        let pool = pool.and_then(|entry| self.pools.get(&entry.pool));
        let rests = pool.is_none_or(|pool| pool.rests);
        let spent = self.is_spent(id);
        if spent {
            self.count_recycled(id);
        }
        if spent || rests || self.stage != Stage::Open {
            self.retire(id);
        } else {
            self.is_idle(id);
        }
    }

    /// Closes the channel of a worker that has nothing to do: it ends by that. A zygote with copies
    /// is told only when the last of them has ended, since they end with it.
    pub(crate) fn retire(&mut self, id: WorkerId) {
        if self.step(id, Input::Retire).is_err() {
            return;
        }
        match self.workers.get(&id).map(|entry| entry.role) {
            Some(Role::Zygote { copies: 0 } | Role::Copy { .. } | Role::Standby) => {
                self.tell_to_end(id);
            }
            Some(Role::Zygote { .. }) | None => {}
        }
    }

    /// The same, of a worker that what it was given did not reach: how it dies is counted when that
    /// is known.
    pub(crate) fn retire_unreached(&mut self, id: WorkerId) {
        self.retire(id);
        if let Some(entry) = self.workers.get_mut(&id) {
            entry.unreached = true;
        }
    }

    fn tell_to_end(&mut self, id: WorkerId) {
        let patience = self.now.after_us(self.limits.retire_us);
        self.timers.set(Timer::Worker(id), Some(patience));
        self.out.push(Effect::Retire { worker: id });
    }

    /// Ends a worker that has something to do, which is settled already: SIGTERM, and SIGKILL when
    /// its time is up.
    pub(crate) fn terminate(&mut self, id: WorkerId) {
        if self.step(id, Input::Retire).is_ok() {
            self.out.push(Effect::Signal { worker: id, signal: SIGTERM });
            self.wait_for(id, self.limits.kill_grace_us);
        }
    }

    /// Kills a worker, whatever it does. What it had is its policy's to settle.
    pub(crate) fn kill(&mut self, id: WorkerId) {
        self.out.push(Effect::Signal { worker: id, signal: SIGKILL });
        let retiring = self.workers.get(&id).is_none_or(|entry| entry.state == State::Retiring);
        if !retiring && self.step(id, Input::Retire).is_err() {
            self.ignore();
        }
    }

    /// A worker has been starting, ending or coming back for too long, and is killed; or its session
    /// was unused, and it retires. Returns what was queued, if its pool has failed by that.
    pub(crate) fn worker_due(&mut self, id: WorkerId) -> Vec<CallId> {
        let Some(entry) = self.workers.get(&id) else {
            return Vec::new();
        };
        let (pool, is_zygote) = (entry.pool, entry.is_zygote());
        match entry.state {
            State::Starting => {
                self.kill(id);
                if self.pools.get(&pool).is_some_and(|pool| pool.is_next(id)) {
                    self.next_failed(pool);
                    return Vec::new();
                }
                return if is_zygote {
                    self.fail_pool(pool, Cause::Itself)
                } else {
                    self.died_unready(pool, Cause::Itself)
                };
            }
            State::Retiring => {
                self.out.push(Effect::Overstays { worker: id });
                self.kill(id);
            }
            State::Recalled(_) => self.kill(id),
            State::Ready if entry.key.is_some() => self.retire(id),
            State::Ready | State::Busy(_) | State::Lent(_) | State::Gone => {}
        }
        Vec::new()
    }

    /// Takes an ended copy or standby out, and lets its zygote go if that only waited for it.
    pub(crate) fn remove_worker(&mut self, id: WorkerId) {
        let role = self.workers.get(&id).map(|entry| entry.role);
        if self.step(id, Input::Gone).is_ok()
            && let Some(Role::Copy { zygote }) = role
        {
            self.release_zygote(zygote);
        }
    }

    /// One copy of this zygote has ended.
    fn release_zygote(&mut self, id: WorkerId) {
        let Some(entry) = self.workers.get_mut(&id) else {
            return;
        };
        let Role::Zygote { copies } = &mut entry.role else {
            return;
        };
        *copies -= 1;
        if *copies == 0 && entry.state == State::Retiring {
            self.tell_to_end(id);
        }
    }

    /// Takes an ended zygote out. Its copies end with it: those that wait are told so at once.
    /// Returns its pool, if it was the one that the pool used.
    pub(crate) fn remove_zygote(&mut self, id: WorkerId) -> Option<PoolId> {
        let pool = self.workers.get(&id)?.pool;
        self.retire_where(|entry| entry.role == Role::Copy { zygote: id });
        self.step(id, Input::Gone).ok()?;
        self.pools.get(&pool).filter(|pool| pool.zygote() == Some(id)).map(|pool| pool.id)
    }

    /// The copies of a zygote that have something to do, each with that.
    pub(crate) fn copies_at_work(&self, id: WorkerId) -> Vec<(WorkerId, Vec<CallId>)> {
        let of = |entry: &Worker| entry.role == Role::Copy { zygote: id };
        let copies = self.workers.iter().filter(|(_, entry)| of(entry) && !entry.work.is_empty());
        copies.map(|(copy, entry)| (*copy, entry.work.clone())).collect()
    }

    /// A pool's zygote has threads: its workers are started, not forked.
    pub(crate) fn starts_instead(&mut self, id: PoolId) {
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.state = PoolState::Standby;
        }
    }
}
