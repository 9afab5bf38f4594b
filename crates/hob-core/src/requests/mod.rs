//! Requests: messages, and whatever else is served here or refused, but never runs cold. A policy
//! above the engine of pools.
//!
//! ```text
//!  Arrived ─▶ queued ─▶ Give ─▶ Answered ─▶ Settle        Refused: queue full, cannot be loaded
//!                └─ TimedOut, Cancelled      Lost, TimedOut, Cancelled
//! ```
//! A **lane** lends a worker to one sender: messages then go straight from one to the other, and
//! the daemon hears only reports. It is recalled when others wait, when what is warm becomes
//! stale, when its sender leaves, and when the daemon stops.
//!
//! | file | decides |
//! |---|---|
//! | `arrive` | pools that are opened, what comes, what is refused |
//! | `serve` | which worker is given what waits; sessions |
//! | `lanes` | workers that are lent |
//! | `end` | answers, ends of workers, times that pass, stopping |
//! | [`crate::event::requests`] | what is told and asked |
//! | `shared_state` | counters and the cache that programs share |
//! | `dead` | what `hob dead` shows |
//!
//! Invariants (checked by `tests/sim`): a request is given at most once, unless its worker died and
//! has not read it, and settled exactly once;
//! requests of a session are given in the order in which they came, one at a time, to one worker; a
//! pool has at most its `workers_max` and queues at most its `queue_max`; nothing of a stale
//! generation is given a request, but by its own session.

mod arrive;
pub mod dead;
mod end;
mod lanes;
mod serve;
pub mod shared_state;

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{CallId, PoolId, Time, WorkerId};
use crate::pool::engine::Engine;

pub use crate::event::requests::{
    Effect, Event, Found, Given, Over, RAN_LATE, Refusal, Settled, WAITED,
};

/// A request that is not settled.
#[derive(Debug)]
struct Request {
    pool: PoolId,
    key: Vec<u8>,
    deadline: Option<Time>,
    worker: Option<WorkerId>,
    found: Found,
    /// How often it was given: once, but for workers that died and had not read it.
    gives: u32,
}

/// All requests that are not settled.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    requests: BTreeMap<CallId, Request>,
    /// Requests that are settled, and that their workers have still to let go.
    leaving: BTreeMap<CallId, WorkerId>,
    /// Pools to look at when the event is done.
    touched: BTreeSet<PoolId>,
}

impl Requests {
    /// Takes an event that is about requests alone.
    pub(crate) fn handle(&mut self, engine: &mut Engine, event: Event) {
        match event {
            Event::Opened { pool, key, terms } => Requests::opened(engine, pool, key, terms),
            Event::Stale { pool } => self.stale(engine, pool),
            Event::Again { pool } => engine.load_again(pool),
            Event::Reload { pool } => self.reload(engine, pool),
            Event::Arrived { call, pool, key, deadline } => {
                let found = Found::Waiting;
                let request = Request { pool, key, deadline, worker: None, found, gives: 0 };
                self.arrived(engine, call, request);
            }
            Event::SenderGone { call } => self.end_request(engine, call, Settled::Cancelled),
            Event::WantLane { lane, pool } => self.want_lane(engine, lane, pool),
            Event::LaneLeft { lane } => self.lane_left(engine, lane),
            Event::Handled { worker, lane, count, lane_over } => {
                self.handled(engine, worker, lane, count, lane_over);
            }
            Event::Begun { worker, call } => self.begun(engine, worker, call),
            Event::Answered { worker, call } => self.answered(engine, worker, call),
            Event::Unreached { worker, unread } => self.unreached(engine, worker, unread),
            Event::Unsent { worker, call } => self.unsent(engine, worker, call),
        }
    }

    /// Whether no request is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Open requests.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether this is a request that is open, or that its worker has not let go.
    pub(crate) fn has(&self, call: CallId) -> bool {
        self.requests.contains_key(&call) || self.leaving.contains_key(&call)
    }

    /// The pool that a request waits in, if it waits, and its session.
    pub(crate) fn waits_in(&self, call: CallId) -> Option<(PoolId, &[u8])> {
        let request = self.requests.get(&call).filter(|request| request.worker.is_none())?;
        Some((request.pool, &request.key))
    }

    /// Something changed that may give this pool something to do.
    pub(crate) fn touch(&mut self, pool: PoolId) {
        self.touched.insert(pool);
    }

    /// Gives what waits in the pools that something happened to.
    pub(crate) fn serve_touched(&mut self, engine: &mut Engine) {
        while let Some(pool) = self.touched.pop_first() {
            self.serve(engine, pool);
        }
    }
}
