//! Stopping: on request, or after a long time without a call.
//!
//! ```text
//!  Open ── Drain, idle ──▶ Grace ── drain_grace_us ──▶ Terminated ── kill_grace_us ──▶ Killed
//!                            │                            │                              │
//!                            └────────── nothing lives ───┴── or kill_grace_us later ────┴──▶ Exited
//! ```

use crate::event::Effect;
use crate::ids::{CallId, PoolId, WorkerId};
use crate::outcome::{CancelledBy, ColdReason, Outcome};
use crate::phase::Phase;

use super::tables::CallState;
use super::{SIGKILL, SIGTERM, Supervisor, Timer};

/// How far stopping has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not at all.
    Open,
    /// Running calls may end.
    Grace,
    /// They have SIGTERM.
    Terminated,
    /// They have SIGKILL, and are settled.
    Killed,
    /// The daemon was told to exit.
    Exited,
}

impl Supervisor {
    pub(super) fn drain(&mut self, out: &mut Vec<Effect>) {
        if self.stage != Stage::Open {
            return;
        }
        self.stage = Stage::Grace;
        self.timers.set(Timer::Idle, None);
        self.timers.set(Timer::Refill, None);
        let grace = self.now.after_us(self.limits.drain_grace_us);
        self.timers.set(Timer::Drain, Some(grace));
        let pools: Vec<PoolId> = self.pools.keys().copied().collect();
        for pool in pools {
            self.drop_pool(pool, ColdReason::Stopping, out);
        }
    }

    /// The next step.
    pub(super) fn drain_due(&mut self, out: &mut Vec<Effect>) {
        let next = self.now.after_us(self.limits.kill_grace_us);
        match self.stage {
            Stage::Open | Stage::Exited => return,
            Stage::Grace => {
                self.stage = Stage::Terminated;
                for (_, worker) in self.given_calls() {
                    out.push(Effect::Signal { worker, signal: SIGTERM });
                }
                self.give_up_cold(out);
            }
            Stage::Terminated => {
                self.stage = Stage::Killed;
                for (call, worker) in self.given_calls() {
                    self.kill(worker, out);
                    self.settle(call, Outcome::Cancelled(CancelledBy::Stop), out);
                }
                for worker in self.workers.keys() {
                    out.push(Effect::Signal { worker: *worker, signal: SIGKILL });
                }
                self.give_up_cold(out);
            }
            Stage::Killed => {
                // Whatever has not ended by SIGKILL does not hold the daemon.
                self.give_up_cold(out);
                self.exit(out);
                return;
            }
        }
        self.timers.set(Timer::Drain, Some(next));
    }

    /// Ends the waiting for calls that clients run: their ends will not be known.
    fn give_up_cold(&mut self, out: &mut Vec<Effect>) {
        let cold: Vec<CallId> = self
            .calls
            .iter()
            .filter(|(_, call)| matches!(call.state, CallState::Cold { .. }))
            .map(|(id, _)| *id)
            .collect();
        for call in cold {
            self.settle(call, Outcome::Lost(Phase::Main), out);
        }
    }

    fn given_calls(&self) -> Vec<(CallId, WorkerId)> {
        let worker_of = |state| match state {
            CallState::Given { worker, .. } => Some(worker),
            CallState::Cold { .. } | CallState::Queued { .. } => None,
        };
        self.calls.iter().filter_map(|(id, call)| Some((*id, worker_of(call.state)?))).collect()
    }

    /// Nothing was called for a long time.
    pub(super) fn idle_due(&mut self, out: &mut Vec<Effect>) {
        if self.calls.is_empty() {
            self.drain(out);
        }
    }

    /// After every event: exits when a stopping daemon has nothing left, and sets the clock for
    /// one that has nothing to do.
    pub(super) fn rest(&mut self, out: &mut Vec<Effect>) {
        let nothing_lives = self.calls.is_empty() && self.workers.is_empty();
        match self.stage {
            Stage::Open => {
                if self.calls.is_empty() && !self.timers.is_set(Timer::Idle) {
                    let idle = self.now.after_us(self.limits.idle_exit_us);
                    self.timers.set(Timer::Idle, Some(idle));
                }
            }
            Stage::Grace | Stage::Terminated | Stage::Killed if nothing_lives => self.exit(out),
            Stage::Grace | Stage::Terminated | Stage::Killed | Stage::Exited => {}
        }
    }

    fn exit(&mut self, out: &mut Vec<Effect>) {
        self.stage = Stage::Exited;
        self.timers.set(Timer::Drain, None);
        out.push(Effect::Exit);
    }
}
