//! The one place that decides over calls, pools and workers. It takes events and the time, and
//! appends effects; it never waits, and what comes of an effect returns as an event.
//!
//! One file per kind of event:
//!
//! | file | decides |
//! |---|---|
//! | `arrive` | what becomes of a new call: cold, refused, given, queued |
//! | `calls` | how a call ends: caller gone, cold run ended, timed out, settled |
//! | `workers` | copies and standbys: ready, finished, gone; gives and forks that failed |
//! | `zygotes` | zygotes and pools: ready, gone, demoted, failed, dropped |
//! | `learn` | programs: learned, stale, slower warm |
//! | `refill` | what is started or forked ahead, and when; what is given up when idle |
//! | `memory` | what goes when the budget is passed |
//! | `drain` | stopping, idle exit |
//! | `view` | what `hob status` shows |
//!
//! Invariants: a call is in `calls` from its arrival until it is settled, once; a worker is in
//! `workers` from the effect that asked for it until its `Gone`; a queued call is in its pool's
//! queue and nowhere else; `given` and `queued` count what they say. Events about what is not
//! there any more are late, not wrong: they are ignored and counted.

mod arrive;
mod calls;
mod drain;
mod learn;
mod memory;
mod refill;
mod tables;
mod timers;
mod view;
mod workers;
mod zygotes;

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Effect, Event};
use crate::ids::{CallId, PoolId, ProgramId, Time, WorkerId};
use crate::limits::Limits;
use crate::pool::worker::Worker;
use crate::pool::{Pool, Shelf};

use drain::Stage;
use tables::{Call, Program};
use timers::{Timer, Timers};

pub use tables::Demotion;
pub use view::{Counts, PoolView};

const SIGTERM: u8 = 15;
const SIGKILL: u8 = 9;

/// The state of a daemon.
///
/// Use: [`Supervisor::handle`] for each event, perform the effects in order; call it with
/// [`Event::Tick`] when [`Supervisor::next_deadline`] has come. The other methods only read.
#[derive(Debug)]
pub struct Supervisor {
    limits: Limits,
    /// The latest time that an event came with. It never goes back.
    now: Time,
    stage: Stage,
    calls: BTreeMap<CallId, Call>,
    programs: BTreeMap<ProgramId, Program>,
    pools: BTreeMap<PoolId, Pool>,
    shelves: BTreeMap<Shelf, PoolId>,
    workers: BTreeMap<WorkerId, Worker>,
    timers: Timers,
    /// Calls that are given or run cold, by when that began.
    in_flight: BTreeSet<(Time, CallId)>,
    given: u32,
    queued: u32,
    /// Copies that pay for their pages, and interpreters that start.
    paying: u32,
    starting: u32,
    /// When a call was last begun or settled.
    last_activity: Time,
    /// The newest memory readings of what waits.
    held_kib: u64,
    /// What may wait: the budget, less what others hold of it.
    allowed_kib: u64,
    /// Whether a worker was freed since the queues were last looked at.
    freed: Freed,
    next_pool: u64,
    next_worker: u64,
    settled: u64,
    ignored: u64,
}

/// Whether a queued call may find a worker now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freed {
    No,
    Yes,
}

impl Supervisor {
    /// A supervisor with nothing to supervise.
    #[must_use]
    pub fn new(limits: Limits) -> Supervisor {
        Supervisor {
            allowed_kib: limits.budget_kib,
            limits,
            now: Time::default(),
            stage: Stage::Open,
            calls: BTreeMap::new(),
            programs: BTreeMap::new(),
            pools: BTreeMap::new(),
            shelves: BTreeMap::new(),
            workers: BTreeMap::new(),
            timers: Timers::default(),
            in_flight: BTreeSet::new(),
            given: 0,
            queued: 0,
            paying: 0,
            starting: 0,
            last_activity: Time::default(),
            held_kib: 0,
            freed: Freed::No,
            next_pool: 1,
            next_worker: 1,
            settled: 0,
            ignored: 0,
        }
    }

    /// Takes an event and appends what is to be done. `now` may stand still or jump; if it goes
    /// back, the latest time counts.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        self.forgive_lateness();
        match event {
            Event::Arrived(arrival) => self.arrived(&arrival, out),
            Event::Learned { program, lesson, key } => self.learned(program, lesson, key, out),
            Event::Stale { program } => self.stale(program, out),
            Event::ZygoteReady { zygote, threads, preload } => {
                self.zygote_ready(zygote, threads, preload, out);
            }
            Event::ForkFailed { worker, why } => self.fork_failed(worker, why, out),
            Event::Ready { worker, threads: _ } => self.worker_ready(worker),
            Event::Finished { worker, exit } => self.finished(worker, exit, out),
            Event::Gone { worker, exit } => self.gone(worker, exit, out),
            Event::GiveFailed { call, worker, why } => self.give_failed(call, worker, why, out),
            Event::CallerGone { call } => self.caller_gone(call, out),
            Event::TakenBack { call } => self.taken_back(call, out),
            Event::ColdEnded { call, exit, timing } => self.cold_ended(call, exit, timing, out),
            Event::Measured { program, took } => self.measured(program, took, out),
            Event::Memory { readings, allowed_kib } => self.memory(&readings, allowed_kib, out),
            Event::Active => {
                if self.timers.is_set(Timer::Idle) {
                    let idle = self.now.after_us(self.limits.idle_exit_us);
                    self.timers.set(Timer::Idle, Some(idle));
                }
            }
            Event::Tick => {}
            Event::Drain => self.drain(out),
        }
        self.fire_due(out);
        self.serve_queues(out);
        self.refill(out);
        self.rest(out);
    }

    /// When the next [`Event::Tick`] is due. It may have come already.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Why a program is not forked, if it is not.
    #[must_use]
    pub fn demotion(&self, program: ProgramId) -> Option<Demotion> {
        self.programs.get(&program)?.demoted
    }

    /// The programs that could not be warmed and run cold for a while, without a pool.
    #[must_use]
    pub fn resting(&self) -> Vec<ProgramId> {
        let rests = |until: Option<Time>| until.is_some_and(|until| until > self.now);
        let programs = self.programs.iter().filter(|(_, program)| rests(program.failed_until));
        programs.map(|(id, _)| *id).collect()
    }

    /// A daemon that was stopped finds every deadline passed at once. Whoever is waited for had
    /// no chance to be heard meanwhile: it gets one.
    fn forgive_lateness(&mut self) {
        let late_us = self.limits.late_us;
        let held_up = self.timers.next().is_some_and(|due| self.now > due.after_us(late_us));
        if held_up {
            self.timers.postpone_judging(self.now, self.now.after_us(late_us));
        }
    }

    fn fire_due(&mut self, out: &mut Vec<Effect>) {
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Call(call) => self.call_due(call, out),
                Timer::Worker(worker) => self.worker_due(worker, out),
                Timer::Pool(pool) => self.pool_due(pool, out),
                Timer::Program(program) => self.learning_due(program),
                // The refill at the end of every event looks by itself.
                Timer::Refill => {}
                Timer::Idle => self.idle_due(out),
                Timer::Drain => self.drain_due(out),
            }
        }
    }

    fn new_worker_id(&mut self) -> WorkerId {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        id
    }

    fn new_pool_id(&mut self) -> PoolId {
        let id = PoolId(self.next_pool);
        self.next_pool += 1;
        id
    }

    /// Counts an event about something that is not there, or that cannot happen to it now.
    fn ignore(&mut self) {
        self.ignored += 1;
    }
}
