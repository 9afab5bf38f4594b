//! What `hob status` shows: pools and counts as they are now. Reads only.

use std::collections::BTreeMap;

use crate::ids::{CallId, PoolId, ProgramId, Time, WorkerId};
use crate::isolation::Recipe;
use crate::key::Key;
use crate::pool::engine::Stage;
use crate::pool::worker::{State, Worker};
use crate::pool::{Mode, Pool};
use crate::span::Holder;
use crate::status::WorkersPart;
use crate::terms::Affinity;

use super::{Demotion, Supervisor};

/// One pool, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// Its number.
    pub id: PoolId,
    /// Its program; `None` for a pool of requests.
    pub program: Option<ProgramId>,
    /// Its key.
    pub key: Key,
    /// `waiting`, `warming`, `ready`, `standby` or `failed`.
    pub state: &'static str,
    /// How its workers are made.
    pub recipe: Recipe,
    /// Whether copies are made ahead of calls now.
    pub mode: Mode,
    /// Its zygote, ready or not.
    pub zygote: Option<WorkerId>,
    /// Workers that wait for something to do.
    pub idle: u32,
    /// Workers that are not ready yet.
    pub starting: u32,
    /// Workers that perform something, or are lent.
    pub busy: u32,
    /// What waits for a worker.
    pub queued: u32,
    /// How many workers are to wait.
    pub ahead: u32,
    /// What came for it so far: calls, or requests.
    pub requests: u64,
    /// Its workers, by what they have loaded, the newest first.
    pub workers: Vec<WorkersPart>,
    /// Workers that were to go on and have done enough, or have grown too large.
    pub recycled: u64,
    /// When it was last used.
    pub last_used: Time,
    /// Its zygote and waiting workers, by the newest readings.
    pub kib: u64,
    /// What answers is not what would be loaded now: that is being loaded, or could not be.
    pub behind: bool,
    /// Why its program is not forked, if it is not.
    pub demoted: Option<Demotion>,
}

/// How much there is of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that are not settled.
    pub calls: u32,
    /// Of them: with a worker.
    pub given: u32,
    /// Of them: waiting for one.
    pub queued: u32,
    /// Of them: run by their clients.
    pub cold: u32,
    /// Of them: waiting until a worker is ready, not to be performed.
    pub preparing: u32,
    /// Calls that were settled or refused since the start.
    pub settled: u64,
    /// Requests that are not settled.
    pub requests: u32,
    /// Living processes: zygotes, copies, standbys.
    pub workers: u32,
    /// Copies that pay for their pages.
    pub paying: u32,
    /// Interpreters that start.
    pub starting: u32,
    /// Pools.
    pub pools: u32,
    /// Programs that are remembered.
    pub programs: u32,
    /// What all that waits occupied at the newest reading.
    pub held_kib: u64,
    /// Events that came too late to mean anything.
    pub ignored: u64,
}

impl Supervisor {
    /// Every pool, in order of their numbers.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolView> {
        self.engine.pools.values().map(|pool| self.view(pool)).collect()
    }

    fn view(&self, pool: &Pool) -> PoolView {
        let engine = &self.engine;
        let program = pool.serves.program();
        PoolView {
            id: pool.id,
            program,
            key: pool.key,
            state: pool.state.code(),
            recipe: pool.terms.recipe,
            mode: pool.mode(&engine.limits, engine.now),
            zygote: pool.zygote(),
            idle: pool.idle_count(),
            starting: pool.starting,
            busy: pool.busy,
            queued: count(pool.queue.len()),
            ahead: pool.target(&engine.limits, engine.now),
            requests: pool.requests,
            workers: self.workers_of(pool.id),
            recycled: pool.recycled,
            last_used: pool.last_used,
            kib: engine.kib_of(pool.id),
            behind: pool.is_behind(),
            demoted: program.and_then(|program| self.demotion(program)),
        }
    }

    fn workers_of(&self, pool: PoolId) -> Vec<WorkersPart> {
        let mut generations: BTreeMap<u64, WorkersPart> = BTreeMap::new();
        for entry in self.engine.workers.values() {
            if entry.pool != pool || entry.is_zygote() {
                continue;
            }
            let part = generations.entry(entry.generation).or_default();
            part.generation = entry.generation;
            match entry.state {
                State::Starting => part.starting += 1,
                State::Ready => part.ready += 1,
                State::Busy(_) | State::Lent(_) | State::Recalled(_) => part.busy += 1,
                State::Retiring | State::Gone => part.retiring += 1,
            }
        }
        generations.into_values().rev().collect()
    }

    /// Who has what a call waits for now, in the order of their numbers; nobody, if it does not
    /// wait. A call that waits because of the bound on all of them waits for any.
    #[must_use]
    pub fn holders(&self, call: CallId) -> Vec<Holder> {
        let engine = &self.engine;
        let (pool, key) = match (self.calls.waits_in(call), self.requests.waits_in(call)) {
            (Some(_), _) if self.calls.given >= engine.limits.calls_max => (None, None),
            (Some(pool), _) => (Some(pool), None),
            (None, Some((pool, key))) => (Some(pool), Some(key)),
            (None, None) => return Vec::new(),
        };
        let terms = pool.and_then(|pool| engine.pools.get(&pool)).map(|pool| pool.terms);
        let has_own = terms.is_some_and(|terms| terms.affinity == Affinity::Session);
        let own = key.filter(|_| has_own);
        let concerns = |entry: &Worker| match pool {
            Some(pool) => entry.pool == pool && (own.is_none() || entry.key.as_deref() == own),
            None => entry.serves.program().is_some(),
        };
        let mut holders = Vec::new();
        for (id, entry) in engine.workers.iter().filter(|(_, entry)| concerns(entry)) {
            match entry.state {
                State::Busy(_) => holders.extend(entry.work.iter().copied().map(Holder::Call)),
                State::Lent(lane) | State::Recalled(lane) => holders.push(Holder::Lane(lane.0)),
                State::Starting => holders.push(Holder::Starting(id.0)),
                State::Ready | State::Retiring | State::Gone => {}
            }
        }
        holders
    }

    /// Whether it stops, or has been told to exit: every new call runs cold.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.engine.stage != Stage::Open
    }

    /// How much there is of everything.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let engine = &self.engine;
        let (calls, cold, preparing) = self.calls.counts();
        Counts {
            calls: count(calls),
            given: self.calls.given,
            queued: self.calls.queued,
            cold: count(cold),
            preparing: count(preparing),
            settled: self.calls.settled,
            requests: count(self.requests.len()),
            workers: count(engine.workers.len()),
            paying: engine.paying,
            starting: engine.starting,
            pools: count(engine.pools.len()),
            programs: count(self.calls.programs()),
            held_kib: engine.held_kib,
            ignored: engine.ignored,
        }
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
