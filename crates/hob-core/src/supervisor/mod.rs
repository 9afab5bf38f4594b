//! The one place that decides over what is served, pools and workers. It takes events and the time,
//! and appends effects; it never waits, and what comes of an effect returns as an event.
//!
//! | part | decides |
//! |---|---|
//! | `pool` | the engine: workers are made, given, lent, ended; the budget |
//! | `calls` | calls: warm, cold or refused; learning |
//! | `requests` | messages and what else is served here or refused; sessions, lanes |
//! | `stop` (here) | stopping, idle exit |
//! | `view` (here) | what `hob status` shows |

mod stop;
mod view;

use crate::calls::Calls;
use crate::event::{Effect, Event, Serves};
use crate::ids::{PoolId, ProgramId, Time};
use crate::limits::Limits;
use crate::pool::engine::Engine;
use crate::pool::timers::Timer;
use crate::requests::Requests;
use hob_wire::exit::Exit;

pub use crate::calls::Demotion;
pub use view::{Counts, PoolView};

/// The state of a daemon.
///
/// Use: [`Supervisor::handle`] for each event, perform the effects in order; call it with
/// [`Event::Tick`] when [`Supervisor::next_deadline`] has come. The other methods only read, but
/// for [`Supervisor::new_pool`].
#[derive(Debug)]
pub struct Supervisor {
    engine: Engine,
    calls: Calls,
    requests: Requests,
}

impl Supervisor {
    /// A supervisor with nothing to supervise.
    #[must_use]
    pub fn new(limits: Limits) -> Supervisor {
        Supervisor {
            engine: Engine::new(limits),
            calls: Calls::default(),
            requests: Requests::default(),
        }
    }

    /// Takes an event and appends what is to be done. `now` may stand still or jump; if it goes
    /// back, the latest time counts.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        self.engine.now = self.engine.now.max(now);
        self.engine.forgive_lateness();
        self.take(event);
        self.fire_due();
        self.calls.serve_queues(&mut self.engine);
        self.calls.serve_preparing(&mut self.engine);
        self.requests.serve_touched(&mut self.engine);
        self.engine.refill();
        self.rest();
        out.append(&mut self.engine.out);
    }

    fn take(&mut self, event: Event) {
        let engine = &mut self.engine;
        match event {
            Event::ZygoteReady { zygote, threads, preload } => match engine.serves(zygote) {
                Some(Serves::Program(_)) => {
                    self.calls.zygote_ready(engine, zygote, threads, preload);
                }
                Some(Serves::Handler(_)) => self.requests.zygote_ready(engine, zygote, threads),
                None => engine.ignore(),
            },
            Event::Ready { worker, threads: _ } => match engine.serves(worker) {
                Some(Serves::Program(_)) => _ = engine.worker_ready(worker),
                Some(Serves::Handler(_)) => self.requests.worker_ready(engine, worker),
                None => engine.ignore(),
            },
            Event::ForkFailed { worker, why } => match engine.serves(worker) {
                Some(Serves::Program(_)) => self.calls.fork_failed(engine, worker, why),
                Some(Serves::Handler(_)) => self.requests.fork_failed(engine, worker, why),
                None => engine.ignore(),
            },
            Event::Gone { worker, exit } => match engine.serves(worker) {
                Some(Serves::Program(_)) => self.calls.gone(engine, worker, exit),
                Some(Serves::Handler(_)) => self.requests.gone(engine, worker, exit),
                None => engine.ignore(),
            },
            Event::Memory { readings } => {
                engine.read(&readings);
                for program in engine.too_large() {
                    self.calls.too_large(engine, program);
                }
                engine.evict();
            }
            Event::Active => {
                if engine.timers.is_set(Timer::Idle) {
                    let idle = engine.now.after_us(engine.limits.idle_exit_us);
                    engine.timers.set(Timer::Idle, Some(idle));
                }
            }
            Event::Tick => {}
            Event::Drain => self.drain(),
            Event::Request(event) => self.requests.handle(engine, event),
            Event::Arrived(_)
            | Event::Learned { .. }
            | Event::Stale { .. }
            | Event::LoadsAnew { .. }
            | Event::Finished { .. }
            | Event::Executes { .. }
            | Event::Uncaught { .. }
            | Event::GiveFailed { .. }
            | Event::CallerGone { .. }
            | Event::TakenBack { .. }
            | Event::ColdEnded { .. }
            | Event::Measured { .. } => self.calls.handle(engine, event),
        }
    }

    fn fire_due(&mut self) {
        while let Some(timer) = self.engine.timers.pop_due(self.engine.now) {
            let engine = &mut self.engine;
            match timer {
                Timer::Call(call) if self.requests.has(call) => {
                    self.requests.call_due(engine, call);
                }
                Timer::Call(call) => self.calls.call_due(engine, call),
                Timer::Worker(worker) => match engine.serves(worker) {
                    Some(Serves::Program(_)) => self.calls.worker_due(engine, worker),
                    Some(Serves::Handler(_)) => self.requests.worker_due(engine, worker),
                    None => {}
                },
                Timer::Pool(pool) => {
                    engine.pool_due(pool);
                    self.requests.touch(pool);
                }
                Timer::Program(program) => self.calls.learning_due(engine, program),
                // The refill at the end of every event looks by itself.
                Timer::Refill => {}
                Timer::Idle => self.idle_due(),
                Timer::Drain => self.drain_due(),
            }
        }
    }

    /// When the next [`Event::Tick`] is due. It may have come already.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.engine.timers.next()
    }

    /// A number for a pool of requests that is about to be opened.
    pub fn new_pool(&mut self) -> PoolId {
        self.engine.new_pool_id()
    }

    /// Why a program is not forked, if it is not.
    #[must_use]
    pub fn demotion(&self, program: ProgramId) -> Option<Demotion> {
        self.calls.demotion(program)
    }

    /// Whether the program's calls run cold because they were slower warm.
    #[must_use]
    pub fn is_slower_warm(&self, program: ProgramId) -> bool {
        self.calls.is_slower_warm(program, self.engine.now)
    }

    /// How the program's warm calls end whose cold ones succeed, if they do: all run cold then.
    #[must_use]
    pub fn differs(&self, program: ProgramId) -> Option<Exit> {
        self.calls.differs(program)
    }

    /// The programs that could not be warmed and run cold for a while, or that differ, without a
    /// pool.
    #[must_use]
    pub fn resting(&self) -> Vec<ProgramId> {
        self.calls.resting(self.engine.now)
    }
}
