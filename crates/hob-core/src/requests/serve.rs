//! What a pool does next: which worker is given what waits, and how many more are wanted.

use std::collections::BTreeSet;

use crate::event::Effect as Asked;
use crate::ids::{CallId, PoolId, WorkerId};
use crate::pool::Pool;
use crate::pool::engine::{Engine, Stage};
use crate::pool::worker::{State, Worker};
use crate::terms::Affinity;

use super::{Effect, Found, Refusal, Requests, Settled};

impl Requests {
    /// Gives what waits in a pool, and notes for how many requests a worker is missing.
    pub(super) fn serve(&mut self, engine: &mut Engine, id: PoolId) {
        if engine.pools.get(&id).is_some_and(Pool::is_held) {
            self.mark_queued(engine, id);
            if let Some(pool) = engine.pools.get_mut(&id) {
                pool.wanted = 0;
            }
            return;
        }
        let affinity = match engine.pools.get(&id) {
            Some(pool) if engine.stage == Stage::Open => pool.terms.affinity,
            Some(_) | None => return,
        };
        let wanted = match affinity {
            Affinity::Session => self.serve_sessions(engine, id),
            Affinity::Any => self.serve_any(engine, id),
        };
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let Some(pool) = engine.pools.get_mut(&id) else { return };
        pool.wanted = wanted;
        let has_room = pool.live() < pool.terms.workers_max;
        let coming = pool.starting + returning(engine, id);
        if !has_room && wanted > coming {
            Requests::recall_one(engine, id);
        }
    }

    /// Gives in the order of coming; returns how many requests have no worker.
    fn serve_any(&mut self, engine: &mut Engine, id: PoolId) -> usize {
        loop {
            let front = engine.pools.get(&id).and_then(|pool| pool.queue.front().copied());
            let (Some(call), Some(worker)) = (front, free_worker(engine, id)) else {
                self.mark_queued(engine, id);
                return engine.pools.get(&id).map_or(0, |pool| pool.queue.len());
            };
            self.give(engine, call, worker);
        }
    }

    /// The same where each key has a worker of its own: what waits for a busy one is passed over,
    /// and so is all that comes after it with the same key.
    fn serve_sessions(&mut self, engine: &mut Engine, id: PoolId) -> usize {
        let queue: Vec<CallId> = engine
            .pools
            .get(&id)
            .map_or_else(Vec::new, |pool| pool.queue.iter().copied().collect());
        let mut waiting: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut wanting = 0;
        for call in queue {
            let Some(key) = self.requests.get(&call).map(|request| request.key.clone()) else {
                continue;
            };
            if waiting.contains(&key) {
                continue;
            }
            match worker_of(engine, id, &key) {
                Some((worker, state)) if has_room(engine, worker, state) => {
                    if let Some(entry) = engine.workers.get_mut(&worker) {
                        entry.key.get_or_insert_with(|| key.clone());
                    }
                    self.give(engine, call, worker);
                }
                Some(_) => _ = waiting.insert(key),
                None if is_full(engine, id) => {
                    self.settle(engine, call, Settled::Refused(Refusal::SessionsFull));
                }
                None => {
                    wanting += 1;
                    waiting.insert(key);
                }
            }
        }
        self.mark_queued(engine, id);
        wanting
    }

    fn mark_queued(&mut self, engine: &Engine, id: PoolId) {
        let Some(pool) = engine.pools.get(&id) else { return };
        // Each came behind those that are marked: what is before a marked one is marked too.
        for call in pool.queue.iter().rev() {
            match self.requests.get_mut(call) {
                Some(request) if request.found == Found::Queued => break,
                Some(request) => request.found = Found::Queued,
                None => {}
            }
        }
    }

    fn give(&mut self, engine: &mut Engine, call: CallId, worker: WorkerId) {
        let Some(request) = self.requests.get_mut(&call) else { return };
        request.worker = Some(worker);
        request.gives += 1;
        let found = request.found;
        if let Some(pool) = engine.pools.get_mut(&request.pool) {
            // Most often the first.
            if let Some(at) = pool.queue.iter().position(|each| *each == call) {
                pool.queue.remove(at);
            }
        }
        engine.give(worker, call);
        engine.out.push(Asked::Request(Effect::Give { call, worker, found }));
    }
}

/// A worker of the pool with a free slot: one that waits, or else the least busy one.
fn free_worker(engine: &Engine, id: PoolId) -> Option<WorkerId> {
    let pool = engine.pools.get(&id)?;
    if let Some(worker) = pool.idle.last() {
        return Some(*worker);
    }
    if pool.terms.slots <= 1 {
        return None;
    }
    let free = |worker: &WorkerId, entry: &Worker| {
        let State::Busy(open) = entry.state else { return None };
        let may = entry.pool == id && open < pool.terms.slots && engine.is_current(entry);
        (may && engine.uses_left(*worker) > 0).then_some((open, *worker))
    };
    engine.workers.iter().filter_map(|(worker, entry)| free(worker, entry)).min().map(|(_, id)| id)
}

/// Whether a session's worker has a free slot.
fn has_room(engine: &Engine, id: WorkerId, state: State) -> bool {
    let State::Busy(open) = state else { return state == State::Ready };
    engine.workers.get(&id).is_some_and(|entry| {
        let slots = engine.pools.get(&entry.pool).map_or(1, |pool| pool.terms.slots);
        open < slots && engine.is_current(entry) && engine.uses_left(id) > 0
    })
}

/// Workers of the pool that are on their way back from their senders.
fn returning(engine: &Engine, id: PoolId) -> u32 {
    let back = |entry: &&Worker| entry.pool == id && matches!(entry.state, State::Recalled(_));
    u32::try_from(engine.workers.values().filter(back).count()).unwrap_or(u32::MAX)
}

/// Whether a new session would find no worker, and none that could become its own.
fn is_full(engine: &Engine, id: PoolId) -> bool {
    let Some(pool) = engine.pools.get(&id) else { return true };
    let may = |entry: &Worker| {
        entry.pool == id
            && !entry.is_zygote()
            && (entry.key.is_none() || entry.state == State::Retiring || !engine.is_current(entry))
    };
    pool.live() >= pool.terms.workers_max && !engine.workers.values().any(may)
}

/// The worker of a key; or one that has none yet.
fn worker_of(engine: &Engine, id: PoolId, key: &[u8]) -> Option<(WorkerId, State)> {
    let mine = || {
        engine.workers.iter().filter(move |(_, entry)| {
            entry.pool == id && !entry.is_zygote() && entry.state != State::Retiring
        })
    };
    let own = mine().find(|(_, entry)| entry.key.as_deref() == Some(key));
    let free = || {
        mine().find(|(_, entry)| {
            entry.key.is_none() && entry.state == State::Ready && engine.is_current(entry)
        })
    };
    own.or_else(free).map(|(worker, entry)| (*worker, entry.state))
}
