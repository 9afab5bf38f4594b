//! What stopping means for calls: those that run have a while, those that wait run cold.

use crate::event::Effect;
use crate::ids::{CallId, PoolId, WorkerId};
use crate::outcome::{CancelledBy, ColdReason, Outcome};
use crate::phase::Phase;
use crate::pool::engine::Engine;
use crate::pool::processes::SIGTERM;

use super::Calls;
use super::tables::CallState;

impl Calls {
    /// Nothing new is performed.
    pub(crate) fn drain(&mut self, engine: &mut Engine) {
        let mine = engine.pools.values().filter(|pool| pool.serves.program().is_some());
        let pools: Vec<PoolId> = mine.map(|pool| pool.id).collect();
        for pool in pools {
            self.drop_pool(engine, pool, ColdReason::Stopping);
        }
    }

    /// What runs has SIGTERM.
    pub(crate) fn terminate(&mut self, engine: &mut Engine) {
        for (_, worker) in self.given_calls() {
            engine.out.push(Effect::Signal { worker, signal: SIGTERM });
        }
        self.give_up_cold(engine);
    }

    /// What runs has SIGKILL, and is settled.
    pub(crate) fn kill(&mut self, engine: &mut Engine) {
        for (call, worker) in self.given_calls() {
            engine.kill(worker);
            self.settle(engine, call, Outcome::Cancelled(CancelledBy::Stop));
        }
        self.give_up_cold(engine);
    }

    /// Ends the waiting for calls that clients run: their ends will not be known.
    pub(crate) fn give_up_cold(&mut self, engine: &mut Engine) {
        let is_cold = |state| matches!(state, CallState::Cold { .. });
        let cold = self.calls.iter().filter(|(_, call)| is_cold(call.state));
        let cold: Vec<CallId> = cold.map(|(id, _)| *id).collect();
        for call in cold {
            self.settle(engine, call, Outcome::Lost(Phase::Main));
        }
    }

    fn given_calls(&self) -> Vec<(CallId, WorkerId)> {
        let worker_of = |state| match state {
            CallState::Given { worker, .. } => Some(worker),
            CallState::Cold { .. } | CallState::Queued { .. } => None,
        };
        self.calls.iter().filter_map(|(id, call)| Some((*id, worker_of(call.state)?))).collect()
    }
}
