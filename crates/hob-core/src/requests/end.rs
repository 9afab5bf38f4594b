//! How requests end: answered, lost with their worker, out of time, taken back, stopped.

use crate::event::{Cause, Effect as Asked, ForkFailure, Loaded};
use crate::ids::{CallId, PoolId, WorkerId};
use crate::pool::State;
use crate::pool::engine::Engine;
use crate::pool::processes::SIGTERM;
use crate::pool::timers::Timer;
use crate::pool::worker::{Role, State as WorkerState};
use hob_wire::exit::Exit;

use super::{Effect, Found, Given, Refusal, Requests, Settled};

impl Requests {
    /// Takes a request out of all tables and tells its outcome.
    pub(super) fn settle(&mut self, engine: &mut Engine, call: CallId, outcome: Settled) {
        let Some(request) = self.requests.remove(&call) else { return };
        engine.timers.set(Timer::Call(call), None);
        if request.worker.is_none()
            && let Some(pool) = engine.pools.get_mut(&request.pool)
        {
            pool.queue.retain(|each| *each != call);
        }
        self.touch(request.pool);
        engine.out.push(Asked::Request(Effect::Settle { call, outcome }));
    }

    /// A request ends before its handler has: its worker goes too, or where it has slots for others
    /// is told to let go of it.
    pub(super) fn end_request(&mut self, engine: &mut Engine, call: CallId, outcome: Settled) {
        let Some(request) = self.requests.get(&call) else { return };
        let (worker, pool) = (request.worker, request.pool);
        self.settle(engine, call, outcome);
        let Some(worker) = worker else { return };
        if engine.pools.get(&pool).is_some_and(|pool| pool.terms.slots > 1) {
            engine.out.push(Asked::Request(Effect::Cancel { call, worker }));
            self.leaving.insert(call, worker);
            let patience = engine.now.after_us(engine.limits.retire_us);
            engine.timers.set(Timer::Call(call), Some(patience));
        } else {
            self.end_worker(engine, worker);
        }
    }

    /// Ends a worker, and what it has with it.
    fn end_worker(&mut self, engine: &mut Engine, worker: WorkerId) {
        let work = engine.workers.get(&worker).map_or_else(Vec::new, |entry| entry.work.clone());
        engine.terminate(worker);
        for other in work {
            self.let_go(engine, other);
            self.settle(engine, other, Settled::Lost);
        }
    }

    /// A settled request is its worker's no more.
    fn let_go(&mut self, engine: &mut Engine, call: CallId) {
        if self.leaving.remove(&call).is_some() {
            engine.timers.set(Timer::Call(call), None);
        }
    }

    pub(super) fn begun(&mut self, engine: &mut Engine, id: WorkerId, call: CallId) {
        let Some(request) = self.requests.get_mut(&call) else { return };
        if request.worker == Some(id) {
            request.deadline = None;
            engine.timers.set(Timer::Call(call), None);
        }
    }

    pub(super) fn answered(&mut self, engine: &mut Engine, id: WorkerId, call: CallId) {
        let has = engine.workers.get(&id).is_some_and(|entry| entry.work.contains(&call));
        if !has {
            return;
        }
        self.let_go(engine, call);
        self.settle(engine, call, Settled::Answered);
        engine.done(id, call);
        if let Some(pool) = engine.workers.get(&id).map(|entry| entry.pool) {
            Requests::is_used(engine, pool);
            // It may have been settled before.
            self.touch(pool);
        }
    }

    /// What was sent to a worker did not reach it: it is ending. A request that it has not read goes
    /// to another one.
    pub(super) fn unreached(&mut self, engine: &mut Engine, id: WorkerId, unread: Option<CallId>) {
        let work = engine.workers.get(&id).map_or_else(Vec::new, |entry| entry.work.clone());
        engine.kill(id);
        for call in work {
            self.let_go(engine, call);
            if unread == Some(call) && self.goes_on(engine, call) {
                continue;
            }
            self.settle(engine, call, Settled::Lost);
        }
    }

    /// A request was not sent to a worker, whose process has ended. That counts for nothing: with a
    /// zygote many copies end, and each is found out so.
    pub(super) fn unsent(&mut self, engine: &mut Engine, id: WorkerId, call: CallId) {
        if let Some(request) = self.requests.get_mut(&call) {
            request.gives = request.gives.saturating_sub(1);
        }
        self.unreached(engine, id, Some(call));
    }

    /// A request is the first again that waits, a bounded number of times; `false`: it cannot be.
    fn goes_on(&mut self, engine: &mut Engine, call: CallId) -> bool {
        let Some(request) = self.requests.get_mut(&call) else { return false };
        let Some(pool) = engine.pools.get_mut(&request.pool) else { return false };
        let has_room = pool.queue.len() < pool.terms.queue_max as usize;
        if !has_room || request.gives >= engine.limits.gives_max {
            return false;
        }
        (request.worker, request.found) = (None, Found::Queued);
        pool.queue.push_front(call);
        let id = pool.id;
        self.touch(id);
        true
    }

    /// A zygote has loaded its handler.
    pub(crate) fn zygote_ready(&mut self, engine: &mut Engine, id: WorkerId, threads: u32) {
        let Some(pool) = engine.zygote_ready(id) else { return };
        if engine.pools.get(&pool).is_some_and(|pool| pool.is_next(id)) {
            engine.take_next(pool);
        }
        let is_the_pools = engine.pools.get(&pool).is_some_and(|pool| pool.zygote() == Some(id));
        if is_the_pools {
            engine.tell_loaded(pool, Loaded::Anew);
        }
        if threads > 1 {
            engine.starts_instead(pool);
            engine.retire(id);
        } else if let Some(pool) = engine.pools.get_mut(&pool)
            && pool.zygote() == Some(id)
        {
            pool.state = State::Ready(id);
        }
        self.touch(pool);
    }

    pub(crate) fn worker_ready(&mut self, engine: &mut Engine, id: WorkerId) {
        if let Some(pool) = engine.worker_ready(id) {
            self.touch(pool);
        }
    }

    pub(crate) fn fork_failed(&mut self, engine: &mut Engine, id: WorkerId, why: ForkFailure) {
        let Some(pool) = engine.workers.get(&id).map(|entry| entry.pool) else {
            engine.ignore();
            return;
        };
        engine.remove_worker(id);
        match why {
            ForkFailure::Threads => engine.starts_instead(pool),
            ForkFailure::System => self.died_unready(engine, pool, Cause::System),
        }
        self.touch(pool);
    }

    /// A process has ended; what it said before that was heard.
    pub(crate) fn gone(&mut self, engine: &mut Engine, id: WorkerId, exit: Exit) {
        let Some(entry) = engine.workers.get(&id) else {
            engine.ignore();
            return;
        };
        let (role, pool, state) = (entry.role, entry.pool, entry.state);
        let current = engine.is_current(entry);
        for call in entry.work.clone() {
            self.let_go(engine, call);
            self.settle(engine, call, Settled::Lost);
        }
        self.touch(pool);
        let cause = Cause::from(exit);
        if let Role::Zygote { .. } = role {
            self.zygote_gone(engine, id, cause);
            return;
        }
        // Copies end with their zygote: that is one death.
        let by_itself = match role {
            Role::Copy { zygote } => engine.workers.contains_key(&zygote),
            Role::Standby | Role::Zygote { .. } => true,
        };
        engine.remove_worker(id);
        if !current || !by_itself {
            return;
        }
        if state == WorkerState::Starting {
            self.died_unready(engine, pool, cause);
        } else if state == WorkerState::Ready {
            engine.died_ahead(pool);
        }
    }

    fn zygote_gone(&mut self, engine: &mut Engine, id: WorkerId, cause: Cause) {
        let Some(entry) = engine.workers.get(&id) else { return };
        let (pool, state) = (entry.pool, entry.state);
        let was_next = engine.pools.get(&pool).is_some_and(|pool| pool.is_next(id));
        let was_the_pools = engine.remove_zygote(id) == Some(pool);
        if was_next {
            engine.next_died(pool, cause);
            return;
        }
        // What goes on has ended: what is loaded beside it takes its place.
        if !was_the_pools || engine.take_next(pool) {
            return;
        }
        let queued = match (state, cause) {
            // It could not be loaded: it says why, once.
            (WorkerState::Starting, Cause::Itself) => engine.fail_pool(pool, cause),
            (WorkerState::Starting | WorkerState::Ready, _) => engine.zygote_was_ended(pool, cause),
            // It was told to end.
            (
                WorkerState::Retiring
                | WorkerState::Busy(_)
                | WorkerState::Lent(_)
                | WorkerState::Recalled(_)
                | WorkerState::Gone,
                _,
            ) => {
                if let Some(pool) = engine.pools.get_mut(&pool) {
                    pool.state = pool.fresh();
                }
                Vec::new()
            }
        };
        self.refuse(engine, queued);
    }

    /// A worker died before it could be given anything.
    fn died_unready(&mut self, engine: &mut Engine, id: PoolId, cause: Cause) {
        let queued = engine.died_unready(id, cause);
        self.refuse(engine, queued);
    }

    fn refuse(&mut self, engine: &mut Engine, queued: Vec<CallId>) {
        for call in queued {
            self.settle(engine, call, Settled::Refused(Refusal::NotLoaded));
        }
    }

    /// A worker has been starting, ending or coming back for too long, or its session rests.
    pub(crate) fn worker_due(&mut self, engine: &mut Engine, id: WorkerId) {
        if let Some(pool) = engine.workers.get(&id).map(|entry| entry.pool) {
            self.touch(pool);
        }
        let queued = engine.worker_due(id);
        self.refuse(engine, queued);
    }

    /// A request's time has passed; or its worker has not let go of it in time, and can be trusted
    /// with the others no more.
    pub(crate) fn call_due(&mut self, engine: &mut Engine, call: CallId) {
        if let Some(worker) = self.leaving.remove(&call) {
            self.end_worker(engine, worker);
            return;
        }
        let given = match self.requests.get(&call).and_then(|request| request.worker) {
            Some(_) => Given::Yes,
            None => Given::No,
        };
        self.end_request(engine, call, Settled::TimedOut { given });
    }

    /// Nothing new is given; what waits is refused, and what is lent comes back.
    pub(crate) fn drain(&mut self, engine: &mut Engine) {
        let waiting = self.requests.iter().filter(|(_, request)| request.worker.is_none());
        let waiting: Vec<CallId> = waiting.map(|(call, _)| *call).collect();
        for call in waiting {
            self.settle(engine, call, Settled::Refused(Refusal::Stopping));
        }
        let mine = engine.pools.values().filter(|pool| pool.serves.program().is_none());
        let pools: Vec<PoolId> = mine.map(|pool| pool.id).collect();
        for pool in pools {
            engine.renew_pool(pool);
        }
    }

    /// What runs has SIGTERM.
    pub(crate) fn terminate(engine: &mut Engine) {
        for worker in Requests::at_work(engine) {
            engine.out.push(Asked::Signal { worker, signal: SIGTERM });
        }
    }

    /// What runs has SIGKILL, and is lost.
    pub(crate) fn kill(&mut self, engine: &mut Engine) {
        for worker in Requests::at_work(engine) {
            engine.kill(worker);
        }
        let open: Vec<CallId> = self.requests.keys().copied().collect();
        for call in open {
            self.settle(engine, call, Settled::Lost);
        }
    }

    fn at_work(engine: &Engine) -> Vec<WorkerId> {
        let of = engine
            .workers
            .iter()
            .filter(|(_, entry)| entry.serves.program().is_none() && entry.state.is_at_work());
        of.map(|(worker, _)| *worker).collect()
    }
}
