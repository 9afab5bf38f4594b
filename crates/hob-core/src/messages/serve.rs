//! What a pool does next: give what waits, make the workers that are missing, lend, rest.

use std::collections::BTreeSet;

use crate::ids::{CallId, LaneId, PoolId, WorkerId};
use crate::isolation::Uses;

use super::{Affinity, Effect, Found, Messages, Refusal, Role, Settled, State, Worker};

/// Workers of a pool by what they do.
struct Crew {
    idle: Vec<WorkerId>,
    starting: usize,
    live: usize,
    lent: Vec<WorkerId>,
    recalled: usize,
}

impl Messages {
    /// Gives what waits in a pool, and has the workers made that are missing.
    pub(super) fn serve(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        if self.draining.is_some() || !self.pools.contains_key(&id) {
            return;
        }
        let wanting = match self.pools.get(&id).map(|pool| pool.terms.affinity) {
            Some(Affinity::Session) => self.serve_sessions(id, out),
            Some(Affinity::Any) | None => self.serve_any(id, out),
        };
        self.rest(id, out);
        self.make_workers(id, wanting, out);
    }

    fn crew(&self, id: PoolId) -> Crew {
        let generation = self.pools.get(&id).map_or(0, |pool| pool.generation);
        let mut crew =
            Crew { idle: Vec::new(), starting: 0, live: 0, lent: Vec::new(), recalled: 0 };
        for (worker, known) in self.workers.iter().filter(|(_, worker)| worker.pool == id) {
            if known.role == Role::Zygote {
                continue;
            }
            // What ends still has its process: it counts against the bound.
            crew.live += 1;
            if known.generation != generation {
                continue;
            }
            match known.state {
                State::Starting => crew.starting += 1,
                State::Idle => crew.idle.push(*worker),
                State::Lent(_) => crew.lent.push(*worker),
                State::Recalled(_) => crew.recalled += 1,
                State::Busy(_) | State::Retiring => {}
            }
        }
        crew
    }

    /// Gives in the order of coming; returns how many messages have no worker.
    fn serve_any(&mut self, id: PoolId, out: &mut Vec<Effect>) -> usize {
        let mut idle = self.crew(id).idle;
        loop {
            let Some(pool) = self.pools.get_mut(&id) else { return 0 };
            let (Some(call), Some(worker)) = (pool.queue.front().copied(), idle.last().copied())
            else {
                self.mark_queued(id);
                return self.pools.get(&id).map_or(0, |pool| pool.queue.len());
            };
            pool.queue.pop_front();
            idle.pop();
            self.give(call, worker, out);
        }
    }

    /// The same where each key has a worker of its own: what waits for a busy one is passed over,
    /// and so is all that comes after it with the same key.
    fn serve_sessions(&mut self, id: PoolId, out: &mut Vec<Effect>) -> usize {
        let queue: Vec<CallId> =
            self.pools.get(&id).map_or_else(Vec::new, |pool| pool.queue.iter().copied().collect());
        let mut waiting: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut wanting = 0;
        for call in queue {
            let Some(key) = self.messages.get(&call).map(|message| message.key.clone()) else {
                continue;
            };
            if waiting.contains(&key) {
                continue;
            }
            match self.worker_of(id, &key) {
                Some((worker, State::Idle)) => {
                    if let Some(pool) = self.pools.get_mut(&id) {
                        pool.queue.retain(|each| *each != call);
                    }
                    self.bind(worker, &key);
                    self.give(call, worker, out);
                    waiting.insert(key);
                }
                Some(_) => _ = waiting.insert(key),
                None if self.crew(id).live >= self.workers_max(id) && self.all_are_bound(id) => {
                    self.settle(call, Settled::Refused(Refusal::SessionsFull), out);
                }
                None => {
                    wanting += 1;
                    waiting.insert(key);
                }
            }
        }
        self.mark_queued(id);
        wanting
    }

    fn workers_max(&self, id: PoolId) -> usize {
        self.pools.get(&id).map_or(0, |pool| pool.terms.workers_max as usize)
    }

    /// Whether no worker of the pool could become a new session's.
    fn all_are_bound(&self, id: PoolId) -> bool {
        let generation = self.pools.get(&id).map_or(0, |pool| pool.generation);
        let may = |worker: &Worker| {
            worker.role != Role::Zygote
                && (worker.key.is_none()
                    || worker.state == State::Retiring
                    || worker.generation != generation)
        };
        !self.workers.values().any(|worker| worker.pool == id && may(worker))
    }

    /// The worker of a key; or one that has none yet.
    fn worker_of(&self, id: PoolId, key: &[u8]) -> Option<(WorkerId, State)> {
        let generation = self.pools.get(&id)?.generation;
        let mine = || {
            self.workers.iter().filter(move |(_, worker)| {
                worker.pool == id && worker.role != Role::Zygote && worker.state != State::Retiring
            })
        };
        let found =
            mine().find(|(_, worker)| worker.key.as_deref() == Some(key)).or_else(|| {
                mine().find(|(_, worker)| {
                    worker.key.is_none()
                        && worker.state == State::Idle
                        && worker.generation == generation
                })
            })?;
        Some((*found.0, found.1.state))
    }

    fn bind(&mut self, id: WorkerId, key: &[u8]) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.key.get_or_insert_with(|| key.to_vec());
        }
    }

    fn mark_queued(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get(&id) else { return };
        for call in &pool.queue {
            if let Some(message) = self.messages.get_mut(call) {
                message.found = Found::Queued;
            }
        }
    }

    fn give(&mut self, call: CallId, worker: WorkerId, out: &mut Vec<Effect>) {
        let Some(message) = self.messages.get_mut(&call) else { return };
        message.worker = Some(worker);
        let found = message.found;
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.state = State::Busy(call);
        }
        out.push(Effect::Give { call, worker, found });
    }

    /// Has workers made for what waits, and ahead of what may come.
    fn make_workers(&mut self, id: PoolId, wanting: usize, out: &mut Vec<Effect>) {
        let crew = self.crew(id);
        let Some(pool) = self.pools.get(&id) else { return };
        let (terms, generation) = (pool.terms, pool.generation);
        let rests = pool.last_used.after_us(terms.idle_us) <= self.now;
        let dies = pool.died_waiting >= self.limits.deaths_max;
        let ahead = match terms.affinity {
            Affinity::Any if !rests && !pool.fails && !dies && !pool.gave_way => {
                terms.recipe.ahead as usize
            }
            Affinity::Any | Affinity::Session => 0,
        };
        // Lent workers wait for nobody but their own sender: one more is kept for the others.
        let wanted = wanting.max(ahead.saturating_sub(crew.idle.len()));
        let missing = wanted.saturating_sub(crew.starting);
        if missing == 0 {
            return;
        }
        let room = (terms.workers_max as usize).saturating_sub(crew.live);
        if room == 0 {
            // The one that has been away for longest comes back for what waits.
            if wanting > crew.recalled + crew.starting
                && let Some(worker) = crew.lent.first()
            {
                self.give_up(*worker, out);
            }
            return;
        }
        if pool.threads {
            for _ in 0..missing.min(room) {
                let worker = self.new_worker(id, Role::Worker { zygote: None });
                out.push(Effect::StartWorker { pool: id, worker });
            }
            return;
        }
        let zygote = self.workers.iter().find(|(_, worker)| {
            worker.pool == id
                && worker.role == Role::Zygote
                && worker.generation == generation
                && worker.state != State::Retiring
        });
        match zygote.map(|(zygote, worker)| (*zygote, worker.state)) {
            Some((zygote, State::Idle)) => {
                for _ in 0..missing.min(room) {
                    let worker = self.new_worker(id, Role::Worker { zygote: Some(zygote) });
                    out.push(Effect::Fork { zygote, worker });
                }
            }
            Some(_) => {}
            None => {
                let worker = self.new_worker(id, Role::Zygote);
                out.push(Effect::StartZygote { pool: id, worker });
            }
        }
    }

    fn new_worker(&mut self, pool: PoolId, role: Role) -> WorkerId {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        let generation = self.pools.get(&pool).map_or(0, |pool| pool.generation);
        let worker = Worker {
            pool,
            generation,
            role,
            state: State::Starting,
            key: None,
            used: 0,
            kib: 0,
            since: self.now,
        };
        self.workers.insert(id, worker);
        self.wait_for(id, self.limits.start_us);
        id
    }

    /// A lane is lent only of what is idle while nobody waits, and only where a worker has many
    /// uses and no session: whoever gets none loses nothing but time.
    pub(super) fn want_lane(&mut self, lane: LaneId, id: PoolId, out: &mut Vec<Effect>) {
        let lendable = self.pools.get(&id).is_some_and(|pool| {
            pool.queue.is_empty()
                && pool.terms.affinity == Affinity::Any
                && pool.terms.recipe.uses != Uses::Once
        });
        let idle = self.crew(id).idle;
        match idle.last().copied() {
            Some(worker) if lendable && self.draining.is_none() => {
                let uses = self.uses_left(worker);
                if let Some(known) = self.workers.get_mut(&worker) {
                    known.state = State::Lent(lane);
                }
                if let Some(pool) = self.pools.get_mut(&id) {
                    pool.last_used = self.now;
                }
                out.push(Effect::Lend { lane, worker, uses });
                self.make_workers(id, 0, out);
            }
            Some(_) | None => out.push(Effect::NoLane { lane }),
        }
    }

    /// Gives up what has had nothing to do for long.
    fn rest(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        let Some(pool) = self.pools.get(&id) else { return };
        let idle_us = pool.terms.idle_us;
        if pool.last_used.after_us(idle_us) <= self.now && pool.queue.is_empty() {
            let mine = self.workers.iter().filter(|(_, worker)| worker.pool == id);
            let mine: Vec<WorkerId> = mine.map(|(worker, _)| *worker).collect();
            // Zygotes last: their copies end with them.
            for worker in mine.into_iter().rev() {
                self.give_up(worker, out);
            }
            return;
        }
        if pool.terms.affinity == Affinity::Session {
            let over = |worker: &Worker| {
                worker.pool == id
                    && worker.state == State::Idle
                    && worker.key.is_some()
                    && worker.since.after_us(idle_us) <= self.now
            };
            let over: Vec<WorkerId> = self
                .workers
                .iter()
                .filter(|(_, worker)| over(worker))
                .map(|(worker, _)| *worker)
                .collect();
            over.into_iter().for_each(|worker| self.retire(worker, out));
        }
    }
}
