//! The one engine of pools: it makes, gives, lends and ends workers, whoever they are for.
//!
//! It decides nothing about what is served. A policy (`calls`, `requests`) asks it for a worker and
//! hears what became of those that it had; what a pool that is given up had queued comes back as a
//! list, for the policy to settle.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Aim, Cause, Effect, Loaded, Serves};
use crate::ids::{CallId, PoolId, ProgramId, Time, WorkerId};
use crate::key::Key;
use crate::limits::Limits;
use crate::pool::deaths::{Deaths, Verdict};
use crate::pool::timers::{Timer, Timers};
use crate::pool::worker::{State as WorkerState, Worker};
use crate::pool::{Pool, Shelf, State};
use crate::terms::Terms;

/// Whether a queued request may find a worker now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    No,
    Yes,
}

/// How far stopping has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not at all.
    Open,
    /// What runs may end.
    Grace,
    /// It has SIGTERM.
    Terminated,
    /// It has SIGKILL, and is settled.
    Killed,
    /// The daemon was told to exit.
    Exited,
}

/// All pools and workers.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) limits: Limits,
    /// The latest time that an event came with. It never goes back.
    pub(crate) now: Time,
    pub(crate) stage: Stage,
    pub(crate) pools: BTreeMap<PoolId, Pool>,
    /// The pools of calls, by what a call looks for.
    pub(crate) shelves: BTreeMap<Shelf, PoolId>,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
    pub(crate) timers: Timers,
    /// Calls that are given or run cold, by when that began.
    pub(crate) in_flight: BTreeSet<(Time, CallId)>,
    /// When a call was last begun or settled.
    pub(crate) last_activity: Time,
    /// Copies that pay for their pages, and interpreters that start.
    pub(crate) paying: u32,
    pub(crate) starting: u32,
    /// The newest memory readings of what waits.
    pub(crate) held_kib: u64,
    /// Whether a worker was freed since the queues were last looked at.
    pub(crate) freed: Freed,
    /// Events that came too late to mean anything.
    pub(crate) ignored: u64,
    /// What is to be done, in order.
    pub(crate) out: Vec<Effect>,
    next_pool: u64,
    next_worker: u64,
}

impl Engine {
    pub(crate) fn new(limits: Limits) -> Engine {
        Engine {
            limits,
            now: Time::default(),
            stage: Stage::Open,
            pools: BTreeMap::new(),
            shelves: BTreeMap::new(),
            workers: BTreeMap::new(),
            timers: Timers::default(),
            in_flight: BTreeSet::new(),
            last_activity: Time::default(),
            paying: 0,
            starting: 0,
            held_kib: 0,
            freed: Freed::No,
            ignored: 0,
            out: Vec::new(),
            next_pool: 1,
            next_worker: 1,
        }
    }

    pub(super) fn new_worker_id(&mut self) -> WorkerId {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        id
    }

    /// A number that no other pool has, or will have.
    pub(crate) fn new_pool_id(&mut self) -> PoolId {
        let id = PoolId(self.next_pool);
        self.next_pool += 1;
        id
    }

    /// Counts an event about something that is not there, or that cannot happen to it now.
    pub(crate) fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// Whom a process is for, if it lives.
    pub(crate) fn serves(&self, worker: WorkerId) -> Option<Serves> {
        self.workers.get(&worker).map(|entry| entry.serves)
    }

    /// Whether a worker has what would be loaded now.
    pub(crate) fn is_current(&self, worker: &Worker) -> bool {
        self.pools.get(&worker.pool).is_some_and(|pool| pool.generation == worker.generation)
    }

    /// The pool of a program's calls for this key; a new one if there is none and room.
    pub(crate) fn pool_for(
        &mut self,
        program: ProgramId,
        key: Key,
        terms: Terms,
    ) -> Option<PoolId> {
        if let Some(pool) = self.known_pool(key, &terms) {
            return Some(pool);
        }
        if !self.make_room_of(program) || !self.make_room_for_a_pool(None) {
            return None;
        }
        let id = self.new_pool_id();
        self.shelves.insert(Shelf::new(key, terms.recipe), id);
        self.add_pool(Pool::new(id, Serves::Program(program), key, terms));
        Some(id)
    }

    /// The pool of this key and these terms, if there is one.
    pub(crate) fn known_pool(&self, key: Key, terms: &Terms) -> Option<PoolId> {
        self.shelves.get(&Shelf::new(key, terms.recipe)).copied()
    }

    /// Adds a pool that is used now.
    pub(crate) fn add_pool(&mut self, mut pool: Pool) {
        pool.last_used = self.now;
        self.pools.insert(pool.id, pool);
    }

    /// Makes room for one more pool of a program: a bound on what keys that come once can cost.
    fn make_room_of(&mut self, program: ProgramId) -> bool {
        let of = |pool: &&Pool| pool.serves.program() == Some(program);
        let most = usize::try_from(self.limits.program_pools_max).unwrap_or(usize::MAX);
        if self.pools.values().filter(of).count() < most {
            return true;
        }
        self.drop_oldest(|engine, pool| of(&pool) && engine.has_rested(pool))
    }

    /// Makes room for one more pool, by dropping the one that was not used for longest; `false` if
    /// there is none to drop. Not one that was used a moment ago: with more keys in turn than
    /// pools, each call would end what the next one needs, and none would ever be warm. What a
    /// request opened (`keep`) may be over the bound instead, for it cannot run anywhere else.
    pub(crate) fn make_room_for_a_pool(&mut self, keep: Option<PoolId>) -> bool {
        let most = usize::try_from(self.limits.pools_max).unwrap_or(usize::MAX);
        if self.pools.len() < most {
            return true;
        }
        self.drop_oldest(|engine, pool| {
            let has_state = engine.workers.values().any(|w| w.pool == pool.id && w.key.is_some());
            Some(pool.id) != keep && !has_state && (keep.is_some() || engine.has_rested(pool))
        })
    }

    /// Whether a pool was not used a moment ago.
    fn has_rested(&self, pool: &Pool) -> bool {
        self.now.us_since(pool.last_used) >= self.limits.rate_us
    }

    /// Drops the pool that was not used for longest, of those that are unused and may go; `false`
    /// if there is none.
    fn drop_oldest(&mut self, may_go: impl Fn(&Engine, &Pool) -> bool) -> bool {
        let goes = |pool: &&Pool| pool.is_unused() && may_go(self, pool);
        let oldest = self.pools.values().filter(goes).min_by_key(|pool| (pool.last_used, pool.id));
        let Some((id, serves)) = oldest.map(|pool| (pool.id, pool.serves)) else {
            return false;
        };
        // It is unused: nothing is queued.
        self.drop_pool(id);
        if serves.program().is_none() {
            self.out.push(Effect::Forget { pool: id });
        }
        true
    }

    /// Begins a pool before any call came for it.
    pub(crate) fn begin_pool(&mut self, id: PoolId, asked: Option<u32>, aim: Aim) {
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.asked = asked;
            pool.is_used_for(aim, &self.limits);
            pool.last_used = self.now;
            let settles = self.now.after_us(self.limits.rate_us);
            self.timers.set(Timer::Pool(id), Some(settles));
        }
    }

    /// A pool whose zygote or workers die: all that waits in it ends, and it is not tried again for
    /// a while. Returns what was queued.
    pub(crate) fn fail_pool(&mut self, id: PoolId, cause: Cause) -> Vec<CallId> {
        // What is loaded beside may be better.
        if self.take_next(id) {
            return Vec::new();
        }
        self.retire_waiting(id);
        let Some(pool) = self.pools.get_mut(&id) else {
            return Vec::new();
        };
        pool.failures = pool.failures.saturating_add(1);
        (pool.deaths, pool.outdated) = (Deaths::default(), None);
        let wait_us = self.limits.backoff_us(pool.failures).min(pool.terms.backoff_max_us);
        pool.state = State::Failed { until: self.now.after_us(wait_us) };
        let (serves, queued) = (pool.serves, pool.queue.iter().copied().collect());
        if serves.program().is_none() {
            self.tell_loaded(id, Loaded::Not(cause));
        }
        queued
    }

    /// A process of a pool has died before it was ready. Returns what was queued, if the pool has
    /// failed by that.
    pub(crate) fn died_unready(&mut self, id: PoolId, cause: Cause) -> Vec<CallId> {
        let Some(pool) = self.pools.get_mut(&id) else {
            return Vec::new();
        };
        match pool.deaths.one_was_unready(cause, self.now, &self.limits) {
            Verdict::GoesOn => Vec::new(),
            Verdict::Fails => self.fail_pool(id, cause),
        }
    }

    /// The zygote of a pool has died by what says nothing of what it loads: another one is made.
    /// Returns what was queued, if the pool has failed by that.
    pub(crate) fn zygote_was_ended(&mut self, id: PoolId, cause: Cause) -> Vec<CallId> {
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.state = pool.fresh();
        }
        self.died_unready(id, cause)
    }

    /// A worker for requests has died while it waited. Often enough, and none is made ahead until a
    /// request comes: what comes finds a new one all the same.
    pub(crate) fn died_ahead(&mut self, id: PoolId) {
        let most = self.limits.deaths_max;
        let Some(pool) = self.pools.get_mut(&id) else { return };
        if pool.deaths.one_waited() >= most {
            pool.deaths.none_waits();
            pool.rests = true;
        }
    }

    /// A worker for calls has died while it waited. Returns what was queued, if the pool has failed
    /// by that: what ends by itself is not to be had warm. What a signal ended is made anew, ever
    /// more slowly.
    pub(crate) fn died_waiting(&mut self, id: PoolId, cause: Cause) -> Vec<CallId> {
        match cause {
            Cause::Itself => self.died_unready(id, cause),
            Cause::Signal(_) | Cause::System => {
                if let Some(pool) = self.pools.get_mut(&id) {
                    pool.deaths.one_waits_again(self.now, &self.limits);
                }
                Vec::new()
            }
        }
    }

    /// Something came for a pool: its back-off may be over. What waits here, and cannot run
    /// anywhere else, waits for that.
    pub(crate) fn try_again(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        let State::Failed { until } = pool.state else {
            return;
        };
        if until <= self.now {
            pool.state = pool.fresh();
        } else if !pool.queue.is_empty() {
            self.timers.set(Timer::Pool(id), Some(until));
        }
    }

    /// Ends a pool; what runs in it ends on its own. Returns what was queued.
    pub(crate) fn drop_pool(&mut self, id: PoolId) -> Vec<CallId> {
        self.retire_waiting(id);
        self.timers.set(Timer::Pool(id), None);
        let Some(pool) = self.pools.remove(&id) else {
            return Vec::new();
        };
        if self.shelves.get(&pool.shelf()) == Some(&id) {
            self.shelves.remove(&pool.shelf());
        }
        pool.queue.iter().copied().collect()
    }

    /// What a pool has loaded is not to be used any more: its workers end when they have nothing
    /// to do, and others are made. Its queue stays.
    pub(crate) fn renew_pool(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        pool.generation = pool.new_generation();
        (pool.state, pool.next, pool.outdated) = (pool.fresh(), None, None);
        (pool.failures, pool.deaths, pool.rests) = (0, Deaths::default(), false);
        self.retire_waiting(id);
        self.recall_all(id);
    }

    /// A pool that nothing uses gives up all that it has, and what is lent comes back to end; it is
    /// known still.
    pub(crate) fn rest_pool(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        pool.rests = true;
        if pool.zygote().is_some() {
            pool.state = pool.fresh();
        }
        self.drop_next(id);
        self.retire_waiting(id);
        self.recall_all(id);
    }

    /// Tells all workers of a pool to end that have nothing to do.
    pub(super) fn retire_waiting(&mut self, id: PoolId) {
        self.retire_where(|entry| entry.pool == id);
    }

    /// Tells those to end that wait and fit.
    pub(super) fn retire_where(&mut self, fits: impl Fn(&Worker) -> bool) {
        let waiting = self.workers.iter().filter(|(_, entry)| entry.state.waits() && fits(entry));
        let waiting: Vec<WorkerId> = waiting.map(|(worker, _)| *worker).collect();
        waiting.into_iter().for_each(|worker| self.retire(worker));
    }

    pub(super) fn recall_all(&mut self, id: PoolId) {
        let lent = self
            .workers
            .iter()
            .filter(|(_, entry)| entry.pool == id && matches!(entry.state, WorkerState::Lent(_)));
        let lent: Vec<WorkerId> = lent.map(|(worker, _)| *worker).collect();
        lent.into_iter().for_each(|worker| self.recall(worker));
    }

    /// A daemon that was stopped finds every deadline passed at once. Whoever is waited for had
    /// no chance to be heard meanwhile: it gets one.
    pub(crate) fn forgive_lateness(&mut self) {
        let late_us = self.limits.late_us;
        if self.timers.next().is_some_and(|due| self.now > due.after_us(late_us)) {
            self.timers.postpone_judging(self.now, self.now.after_us(late_us));
        }
    }
}
