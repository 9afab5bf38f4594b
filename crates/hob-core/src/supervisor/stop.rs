//! Stopping: on request, or after a long time without a call.
//!
//! ```text
//!  Open ── Drain, idle ──▶ Grace ── drain_grace_us ──▶ Terminated ── kill_grace_us ──▶ Killed
//!                            │                            │                              │
//!                            └────────── nothing lives ───┴── or kill_grace_us later ────┴──▶ Exited
//! ```

use crate::event::Effect;
use crate::pool::engine::Stage;
use crate::pool::processes::SIGKILL;
use crate::pool::timers::Timer;
use crate::requests::Requests;

use super::Supervisor;

impl Supervisor {
    pub(super) fn drain(&mut self) {
        let engine = &mut self.engine;
        if engine.stage != Stage::Open {
            return;
        }
        engine.stage = Stage::Grace;
        engine.timers.set(Timer::Idle, None);
        engine.timers.set(Timer::Refill, None);
        let grace = engine.now.after_us(engine.limits.drain_grace_us);
        engine.timers.set(Timer::Drain, Some(grace));
        self.calls.drain(engine);
        self.requests.drain(engine);
    }

    /// The next step.
    pub(super) fn drain_due(&mut self) {
        let engine = &mut self.engine;
        let next = engine.now.after_us(engine.limits.kill_grace_us);
        match engine.stage {
            Stage::Open | Stage::Exited => return,
            Stage::Grace => {
                engine.stage = Stage::Terminated;
                self.calls.terminate(engine);
                Requests::terminate(engine);
            }
            Stage::Terminated => {
                engine.stage = Stage::Killed;
                self.calls.kill(engine);
                self.requests.kill(engine);
                for worker in engine.workers.keys() {
                    engine.out.push(Effect::Signal { worker: *worker, signal: SIGKILL });
                }
            }
            Stage::Killed => {
                // Whatever has not ended by SIGKILL does not hold the daemon.
                self.calls.give_up_cold(engine);
                self.exit();
                return;
            }
        }
        engine.timers.set(Timer::Drain, Some(next));
    }

    /// Nothing was called for a long time.
    pub(super) fn idle_due(&mut self) {
        if self.is_idle() {
            self.drain();
        }
    }

    fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.requests.is_empty()
    }

    /// After every event: exits when a stopping daemon has nothing left, and sets the clock for
    /// one that has nothing to do.
    pub(super) fn rest(&mut self) {
        match self.engine.stage {
            Stage::Open => {
                if self.calls.is_empty() && !self.engine.timers.is_set(Timer::Idle) {
                    let idle = self.engine.now.after_us(self.engine.limits.idle_exit_us);
                    self.engine.timers.set(Timer::Idle, Some(idle));
                }
            }
            Stage::Grace | Stage::Terminated | Stage::Killed => {
                if self.is_idle() && self.engine.workers.is_empty() {
                    self.exit();
                }
            }
            Stage::Exited => {}
        }
    }

    fn exit(&mut self) {
        self.engine.stage = Stage::Exited;
        self.engine.timers.set(Timer::Drain, None);
        self.engine.out.push(Effect::Exit);
    }
}
