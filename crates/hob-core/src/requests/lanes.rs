//! Workers that are lent to one sender.

use crate::event::Effect as Asked;
use crate::ids::{LaneId, PoolId, WorkerId};
use crate::pool::deaths::Deaths;
use crate::pool::engine::{Engine, Stage};
use crate::pool::worker::State;

use super::{Effect, Over, Requests};

/// How long a worker whose sender has left its lane may take to say that it is back.
const LANE_PATIENCE_US: u64 = 100_000;

impl Requests {
    /// A lane is lent only of what is idle while nothing waits: a sender that gets none loses nothing
    /// but time.
    pub(super) fn want_lane(&mut self, engine: &mut Engine, lane: LaneId, id: PoolId) {
        let free = engine.pools.get(&id).and_then(|pool| {
            let lendable = pool.queue.is_empty()
                && pool.terms.may_be_lent()
                && !pool.is_behind()
                && engine.stage == Stage::Open;
            pool.idle.last().copied().filter(|_| lendable)
        });
        let uses = free.map_or(0, |worker| engine.uses_left(worker));
        match free {
            Some(worker) if uses > 0 && engine.lend(worker, lane) => {
                Requests::is_used(engine, id);
                self.touch(id);
                engine.out.push(Asked::Request(Effect::Lend { lane, worker, uses }));
            }
            Some(_) | None => engine.out.push(Asked::Request(Effect::NoLane { lane })),
        }
    }

    pub(super) fn lane_left(&mut self, engine: &mut Engine, lane: LaneId) {
        let holds =
            |state: State| matches!(state, State::Lent(on) | State::Recalled(on) if on == lane);
        let holder = engine.workers.iter().find(|(_, entry)| holds(entry.state));
        let Some(worker) = holder.map(|(worker, _)| *worker) else { return };
        engine.recall(worker);
        engine.wait_for(worker, LANE_PATIENCE_US);
    }

    pub(super) fn handled(
        &mut self,
        engine: &mut Engine,
        id: WorkerId,
        lane: LaneId,
        count: u32,
        lane_over: Over,
    ) {
        let Some(entry) = engine.workers.get_mut(&id) else { return };
        if !matches!(entry.state, State::Lent(on) | State::Recalled(on) if on == lane) {
            return;
        }
        entry.used = entry.used.saturating_add(count);
        let pool = entry.pool;
        Requests::is_used(engine, pool);
        if let Some(pool) = engine.pools.get_mut(&pool) {
            pool.requests += u64::from(count);
            if count > 0 {
                pool.deaths = Deaths::default();
            }
        }
        if lane_over == Over::Yes {
            engine.is_back(id);
            self.touch(pool);
        }
    }

    /// The worker that has been away for longest comes back for what waits.
    pub(super) fn recall_one(engine: &mut Engine, id: PoolId) {
        let lent = engine.workers.iter().find(|(_, entry)| {
            entry.pool == id && matches!(entry.state, State::Lent(_)) && engine.is_current(entry)
        });
        if let Some(worker) = lent.map(|(worker, _)| *worker) {
            engine.recall(worker);
        }
    }
}
