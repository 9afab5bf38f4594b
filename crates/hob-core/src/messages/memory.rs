//! Memory readings: which workers are replaced, and what goes when the budget is passed.
//!
//! A worker that has a message or a lane is never taken away, nor one that keeps a session's state.
//! A pool that nobody uses goes with its zygote, and comes back with its next message.

use crate::ids::{PoolId, Time, WorkerId};
use crate::pool::budget::{Calls, Waiting};

use super::{Effect, Messages, Role, State, Worker};

/// What a pool holds while it waits.
struct Held {
    pool: PoolId,
    last_used: Time,
    /// What dropping it would free.
    kib: u64,
    /// What stays: state of sessions, and the zygote of a pool in use.
    kept_kib: u64,
    calls: Calls,
}

impl Messages {
    /// What would wait by these readings, for the budget that is shared with others.
    #[must_use]
    pub fn waiting(&mut self, readings: &[(WorkerId, u64)]) -> Vec<Waiting> {
        self.read(readings);
        let of = |held: &Held| {
            let goes = Waiting { last_used: held.last_used, kib: held.kib, calls: held.calls };
            let stays = Waiting { kib: held.kept_kib, calls: Calls::Open, ..goes };
            [goes, stays]
        };
        self.held().iter().flat_map(of).collect()
    }

    fn read(&mut self, readings: &[(WorkerId, u64)]) {
        for (worker, kib) in readings {
            if let Some(worker) = self.workers.get_mut(worker) {
                worker.kib = *kib;
            }
        }
    }

    /// Replaces what has grown over its bound, and gives up what waits while all together are over
    /// what is allowed: the pool that was used least recently first.
    pub(super) fn memory(
        &mut self,
        readings: &[(WorkerId, u64)],
        allowed_kib: u64,
        out: &mut Vec<Effect>,
    ) {
        self.read(readings);
        let idle = self.workers.iter().filter(|(_, worker)| is_idle(worker)).map(|(id, _)| *id);
        let spent: Vec<WorkerId> = idle.filter(|id| self.uses_left(*id) == 0).collect();
        spent.into_iter().for_each(|worker| self.retire(worker, out));
        let mut held = self.held();
        let mut total: u64 = held.iter().map(|pool| pool.kib + pool.kept_kib).sum();
        held.sort_by_key(|pool| (pool.calls == Calls::Open, pool.last_used, pool.pool));
        for pool in held.into_iter().filter(|pool| pool.kib > 0) {
            if total <= allowed_kib {
                return;
            }
            total -= pool.kib;
            let goes = |worker: &Worker| {
                worker.pool == pool.pool
                    && worker.key.is_none()
                    && (is_idle(worker) || pool.calls == Calls::None)
            };
            let found = self.workers.iter().filter(|(_, worker)| goes(worker));
            let found: Vec<WorkerId> = found.map(|(id, _)| *id).collect();
            // Zygotes last: their copies end with them.
            for worker in found.into_iter().rev() {
                self.give_up(worker, out);
            }
            if let Some(known) = self.pools.get_mut(&pool.pool) {
                known.gave_way = true;
            }
        }
    }

    fn held(&self) -> Vec<Held> {
        let of = |(id, pool): (&PoolId, &super::Pool)| {
            let mine = || self.workers.values().filter(|worker| worker.pool == *id);
            let has_state = mine().any(|worker| worker.key.is_some());
            let is_free = self.is_quiet(*id) && !has_state;
            let (mut kib, mut kept_kib) = (0, 0);
            for worker in mine() {
                let waits = matches!(worker.state, State::Idle | State::Starting);
                if waits && (is_free || worker.key.is_none() && is_idle(worker)) {
                    kib += worker.kib;
                } else if waits {
                    kept_kib += worker.kib;
                }
            }
            let calls = if is_free { Calls::None } else { Calls::Open };
            Held { pool: *id, last_used: pool.last_used, kib, kept_kib, calls }
        };
        self.pools.iter().map(of).collect()
    }
}

/// Whether a worker waits for a message.
fn is_idle(worker: &Worker) -> bool {
    worker.state == State::Idle && worker.role != Role::Zygote
}
