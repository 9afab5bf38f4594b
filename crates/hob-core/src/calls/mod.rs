//! Calls: what runs warm in a pool, or cold at its caller. A policy above the engine of pools.
//!
//! One file per kind of event:
//!
//! | file | decides |
//! |---|---|
//! | `arrive` | what becomes of a new call: cold, refused, given, queued |
//! | `arrive/prepare` | what becomes of a call that performs nothing: its pool begins, and is waited for |
//! | `end` | how a call ends: caller gone, cold run ended, timed out, settled |
//! | `workers` | what the ends of workers and zygotes mean for calls |
//! | `layers` | a call to be profiled, in a copy of what is loaded below its program |
//! | `learn` | programs: learned, stale, slower warm, demoted |
//! | `pace` | whether a program is slower warm than cold |
//! | `differs` | whether a program fails warm where it succeeds cold |
//! | `changing` | which variables callers set anew for each call |
//! | `growth` | whether calls import much beyond what is loaded ahead |
//! | `saving` | what a warm call saved of its start-up |
//! | `stop` | what stopping means for calls |
//! | `tables` | what is remembered of a call and of a program |
//!
//! Invariants: a call is in `calls` from its arrival until it is settled, once; a queued call is in
//! its pool's queue and nowhere else; `given` and `queued` count what they say. Events about what
//! is not there any more are late, not wrong: they are ignored and counted.

mod arrive;
pub mod changing;
mod differs;
mod end;
pub mod growth;
mod layers;
mod learn;
mod pace;
pub mod saving;
mod stop;
pub(crate) mod tables;
mod workers;

use std::collections::BTreeMap;

use crate::event::Event;
use crate::ids::{CallId, PoolId, ProgramId, Time};
use crate::pool::engine::Engine;
use hob_wire::exit::Exit;

pub use tables::Demotion;
use tables::{Call, CallState, Program};

/// All calls that are not settled, and the programs that they are of.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: BTreeMap<CallId, Call>,
    programs: BTreeMap<ProgramId, Program>,
    /// Calls that wait until what would perform them is ready, and are not performed.
    preparing: BTreeMap<CallId, PoolId>,
    /// Calls that a worker has.
    pub(crate) given: u32,
    /// Calls that wait for one.
    pub(crate) queued: u32,
    /// Calls that were settled or refused since the start.
    pub(crate) settled: u64,
}

impl Calls {
    /// Takes an event that is about calls alone.
    pub(crate) fn handle(&mut self, engine: &mut Engine, event: Event) {
        match event {
            Event::Arrived(arrival) => self.arrived(engine, &arrival),
            Event::Learned { program, lesson, key } => self.learned(engine, program, lesson, key),
            Event::Stale { program } => self.stale(engine, program),
            Event::LoadsAnew { program } => self.loads_anew(engine, program),
            Event::Finished { worker, exit } => self.finished(engine, worker, exit),
            Event::Executes { worker, reason } => self.executes(engine, worker, reason),
            Event::Uncaught { worker } => self.uncaught(engine, worker),
            Event::GiveFailed { call, worker, why } => self.give_failed(engine, call, worker, why),
            Event::CallerGone { call } => self.caller_gone(engine, call),
            Event::TakenBack { call } => self.taken_back(engine, call),
            Event::ColdEnded { call, exit, timing } => self.cold_ended(engine, call, exit, timing),
            Event::Measured { program, took } => self.measured(engine, program, took),
            Event::Request(_)
            | Event::ZygoteReady { .. }
            | Event::ForkFailed { .. }
            | Event::Ready { .. }
            | Event::Gone { .. }
            | Event::Memory { .. }
            | Event::Active
            | Event::Tick
            | Event::Drain => {}
        }
    }

    /// Whether no call is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.preparing.is_empty()
    }

    /// Open calls: all of them, those that their clients run, and those that are not performed.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let cold = |call: &&Call| matches!(call.state, CallState::Cold { .. });
        let (cold, preparing) = (self.calls.values().filter(cold).count(), self.preparing.len());
        (self.calls.len() + preparing, cold, preparing)
    }

    /// The pool that a call waits in, if it waits.
    pub(crate) fn waits_in(&self, call: CallId) -> Option<PoolId> {
        match self.calls.get(&call)?.state {
            CallState::Queued { pool, .. } => Some(pool),
            CallState::Cold { .. } | CallState::Given { .. } => None,
        }
    }

    /// Programs that are remembered.
    pub(crate) fn programs(&self) -> usize {
        self.programs.len()
    }

    /// Why a program is not forked, if it is not.
    pub(crate) fn demotion(&self, program: ProgramId) -> Option<Demotion> {
        self.programs.get(&program)?.demoted
    }

    /// Whether the program's calls run cold because they were slower warm.
    pub(crate) fn is_slower_warm(&self, program: ProgramId, now: Time) -> bool {
        self.programs.get(&program).is_some_and(|program| program.pace.is_cold(now))
    }

    /// How the program's warm calls end whose cold ones succeed, if they do.
    pub(crate) fn differs(&self, program: ProgramId) -> Option<Exit> {
        self.programs.get(&program)?.ends.differs()
    }

    /// The programs that could not be warmed and run cold for a while, or that differ, without a
    /// pool.
    pub(crate) fn resting(&self, now: Time) -> Vec<ProgramId> {
        let rests = |until: Option<Time>| until.is_some_and(|until| until > now);
        let programs = self
            .programs
            .iter()
            .filter(|(_, program)| rests(program.failed_until) || program.ends.differs().is_some());
        programs.map(|(id, _)| *id).collect()
    }
}
