//! Requests in the world: handlers' pools, their senders, sessions and lanes, beside the calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hob_core::event::{Cause, Event, Loaded};
use hob_core::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use hob_core::isolation::{Name, Uses};
use hob_core::key::{KeyBuilder, Part};
use hob_core::requests::{Effect, Over, Refusal, Settled};
use hob_core::terms::{Affinity, After, Refill, Stale, Terms};
use hob_wire::exit::Exit;

use crate::perform::hold;
use crate::rng::Rng;
use crate::world::{Happening, Kind, Process, World};

/// Numbers of requests begin here: those of calls are given in order from 1.
const FROM: u64 = 1 << 32;
/// Keys of sessions.
const SESSIONS: u64 = 3;

/// What a process of a handler does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Duty {
    pub(crate) pool: Option<PoolId>,
    generation: u64,
    pub(crate) work: Vec<CallId>,
    used: u32,
    session: Option<u64>,
    lane: Option<(LaneId, Shut)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shut {
    No,
    Yes,
}

/// A handler.
#[derive(Debug, Clone)]
struct Served {
    terms: Terms,
    /// Which of its contents the supervisor was told of.
    generation: u64,
    /// Which of them was loaded last, and which could not be while an older one goes on.
    loaded: Option<u64>,
    kept: Option<u64>,
    /// The newest content that was given a request.
    newest_given: u64,
    /// What waits of each session, in the order of coming.
    order: BTreeMap<u64, VecDeque<CallId>>,
    /// Processes that something else ended before they were ready, with none ready between.
    unready: u32,
    /// One ended by itself, or was not ready in time, and nothing was answered since.
    broken: bool,
}

#[derive(Debug, Clone)]
struct Sent {
    pool: PoolId,
    session: u64,
    deadline: Option<Time>,
    taken_back: bool,
    given: Option<WorkerId>,
    /// The worker that it was given to last has not read it.
    unread: bool,
    settled: bool,
}

/// All that the world knows of requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handlers {
    known: BTreeMap<PoolId, Served>,
    sent: BTreeMap<CallId, Sent>,
    open: BTreeSet<CallId>,
    wanted: BTreeSet<LaneId>,
    next: u64,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
}

impl Handlers {
    /// Whether a pool is a handler's.
    pub(crate) fn has(&self, pool: PoolId) -> bool {
        self.known.contains_key(&pool)
    }

    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    fn count(&mut self, what: &'static str) {
        *self.outcomes.entry(what).or_default() += 1;
    }
}

impl Served {
    /// Whether its newest content could not be loaded.
    fn is_refused(&self) -> bool {
        self.kept == Some(self.generation)
    }
}

impl Duty {
    /// Whether its process has something to do.
    pub(crate) fn is_at_work(&self) -> bool {
        !self.work.is_empty() || self.lane.is_some()
    }
}

fn terms(rng: &mut Rng) -> Terms {
    let name = rng.pick(&[Name::Fork, Name::Prefork, Name::Prefork, Name::Session, Name::Standby]);
    let mut recipe = name.lower(if name == Name::Session { 0 } else { 1 });
    if name == Name::Prefork {
        recipe.uses = rng.pick(&[Uses::Times(5), Uses::Unlimited]);
    }
    let reused = recipe.uses != Uses::Once;
    Terms {
        recipe,
        slots: if reused { rng.pick(&[1, 1, 3]) } else { 1 },
        affinity: if name == Name::Session { Affinity::Session } else { Affinity::Any },
        after: After::Ready,
        refill: Refill::AtOnce,
        workers_max: rng.pick(&[1, 2, 4]),
        queue_max: 8,
        worker_kib: rng.pick(&[2_000, 500_000]),
        idle_us: 2_000_000,
        backoff_max_us: 10_000_000,
        stale: match name {
            Name::Session => Stale::Ends,
            Name::Spawn | Name::Standby | Name::Fork | Name::Prefork => {
                rng.pick(&[Stale::Ends, Stale::Waits, Stale::Serves])
            }
        },
    }
}

impl World {
    /// Some handlers, and what happens to them from time to time. In a world without programs'
    /// calls it is as it was when messages had an engine of their own.
    pub(crate) fn begin_requests(&mut self) {
        if self.scenario.handlers == 0 {
            return;
        }
        self.later(0, Happening::RequestArrives);
        self.later(1_000, Happening::LaneIsWanted);
        self.later(1_000_000, Happening::HandlerChanges);
    }

    pub(crate) fn request_arrives(&mut self) -> Option<Event> {
        if !self.more_calls() {
            return None;
        }
        let gap = self.rng.magnitude(self.scenario.gap_max_us / 2);
        self.later(gap, Happening::RequestArrives);
        let pool = self.handler();
        self.handlers.next += 1;
        let call = CallId(FROM + self.handlers.next);
        let handler = self.handlers.known.get_mut(&pool)?;
        let keyed = handler.terms.affinity == Affinity::Session;
        let session = if keyed { self.rng.next() % SESSIONS } else { 0 };
        handler.order.entry(session).or_default().push_back(call);
        let deadline = self.rng.chance(200).then(|| self.now.after_us(300_000));
        let (given, unread) = (None, false);
        let sent =
            Sent { pool, session, deadline, taken_back: false, given, unread, settled: false };
        self.handlers.sent.insert(call, sent);
        self.handlers.open.insert(call);
        if self.rng.chance(self.scenario.caller_leaves) {
            let wait = self.rng.magnitude(self.scenario.run_max_us);
            self.later(wait, Happening::RequestIsTakenBack(call));
        }
        if self.handlers.known[&pool].is_refused() {
            let again = hob_core::requests::Event::Again { pool };
            self.at_once.push_back(Event::Request(again));
        }
        let key = if keyed { vec![u8::try_from(session).expect("small")] } else { Vec::new() };
        Some(Event::Request(hob_core::requests::Event::Arrived { call, pool, key, deadline }))
    }

    /// A handler that is known, or one that is opened now.
    fn handler(&mut self) -> PoolId {
        let number = self.rng.next() % self.scenario.handlers;
        let known: Vec<PoolId> = self.handlers.known.keys().copied().collect();
        if let Some(pool) = usize::try_from(number).ok().and_then(|number| known.get(number)) {
            return *pool;
        }
        let pool = self.core.new_pool();
        let terms = terms(&mut self.rng);
        let handler = Served {
            terms,
            generation: 0,
            loaded: None,
            kept: None,
            newest_given: 0,
            order: BTreeMap::new(),
            unready: 0,
            broken: false,
        };
        self.handlers.known.insert(pool, handler);
        let mut builder = KeyBuilder::new();
        let key = builder.absorb(Part::Program, &pool.0.to_le_bytes()).finish();
        let opened = hob_core::requests::Event::Opened { pool, key, terms };
        self.at_once.push_front(Event::Request(opened));
        pool
    }

    pub(crate) fn request_taken_back(&mut self, call: CallId) -> Option<Event> {
        let sent = self.handlers.sent.get_mut(&call)?;
        if sent.settled {
            return None;
        }
        sent.taken_back = true;
        Some(Event::Request(hob_core::requests::Event::SenderGone { call }))
    }

    pub(crate) fn handler_changes(&mut self) -> Option<Event> {
        if self.more_calls() {
            self.later(3_000_000, Happening::HandlerChanges);
        }
        let pools: Vec<PoolId> = self.handlers.known.keys().copied().collect();
        let pool = self.rng.pick(if pools.is_empty() { return None } else { &pools });
        if self.rng.chance(300) {
            return Some(Event::Request(hob_core::requests::Event::Reload { pool }));
        }
        self.handlers.known.get_mut(&pool)?.generation += 1;
        Some(Event::Request(hob_core::requests::Event::Stale { pool }))
    }

    pub(crate) fn lane_is_wanted(&mut self) -> Option<Event> {
        if self.more_calls() {
            let gap = self.rng.magnitude(500_000);
            self.later(gap, Happening::LaneIsWanted);
        }
        let known: Vec<PoolId> = self.handlers.known.keys().copied().collect();
        if known.is_empty() {
            return None;
        }
        let pool = self.rng.pick(&known);
        self.handlers.next += 1;
        let lane = LaneId(self.handlers.next);
        self.handlers.wanted.insert(lane);
        Some(Event::Request(hob_core::requests::Event::WantLane { lane, pool }))
    }

    pub(crate) fn lane_is_left(&mut self, worker: WorkerId) -> Option<Event> {
        let process = self.processes.get_mut(&worker)?;
        let (lane, shut) = process.duty.lane?;
        process.duty.lane = Some((lane, Shut::Yes));
        if shut == Shut::No {
            let wait = self.rng.magnitude(150_000);
            self.later(wait, Happening::LaneEnds(worker));
        }
        Some(Event::Request(hob_core::requests::Event::LaneLeft { lane }))
    }

    /// A worker reports what it handled on its lane, and whether that is over.
    pub(crate) fn lane_ends(&mut self, worker: WorkerId) -> Option<Event> {
        let process = self.processes.get_mut(&worker)?;
        let (lane, shut) = process.duty.lane?;
        if !process.alive {
            return None;
        }
        let count = u32::from(shut == Shut::No);
        process.duty.used += count;
        let lane_over = if shut == Shut::Yes { Over::Yes } else { Over::No };
        if lane_over == Over::Yes {
            process.duty.lane = None;
        }
        let event = hob_core::requests::Event::Handled { worker, lane, count, lane_over };
        Some(Event::Request(event))
    }

    /// Its answer begins: from now on it has all the time that it takes.
    pub(crate) fn request_begins(&mut self, worker: WorkerId, call: CallId) -> Option<Event> {
        let process = self.processes.get(&worker)?;
        let sent = self.handlers.sent.get_mut(&call)?;
        if !process.alive || sent.settled || !process.duty.work.contains(&call) {
            return None;
        }
        sent.deadline = None;
        self.handlers.count("begun");
        Some(Event::Request(hob_core::requests::Event::Begun { worker, call }))
    }

    pub(crate) fn request_answered(&mut self, worker: WorkerId, call: CallId) -> Option<Event> {
        let process = self.processes.get_mut(&worker)?;
        if !process.alive || !process.duty.work.contains(&call) {
            return None;
        }
        process.duty.work.retain(|each| *each != call);
        process.duty.used += 1;
        Some(Event::Request(hob_core::requests::Event::Answered { worker, call }))
    }

    /// A process that was started for a handler.
    pub(crate) fn duty_for(&self, pool: PoolId) -> Duty {
        let generation = self.handlers.known[&pool].generation;
        Duty { pool: Some(pool), generation, ..Duty::default() }
    }

    pub(crate) fn perform_request(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::Give { call, worker, .. } => self.give_request(call, worker),
            Effect::Settle { call, outcome } => self.settle_request(call, outcome),
            Effect::Cancel { call, worker } => self.cancel_request(call, worker),
            Effect::Lend { lane, worker, uses } => {
                hold!(self.handlers.wanted.remove(&lane), "{lane:?} is lent, and not wanted");
                hold!(uses > 0, "{lane:?} is good for nothing");
                let wait = self.rng.magnitude(400_000);
                let generation = self.generation_of(worker)?;
                let Some(process) = self.processes.get_mut(&worker) else {
                    return Err(format!("{worker:?} is lent, and does not live"));
                };
                hold!(!process.duty.is_at_work() && process.said_ready, "{worker:?} is not free");
                hold!(process.duty.generation == generation, "{worker:?} is stale, and lent");
                process.duty.lane = Some((lane, Shut::No));
                self.handlers.count("lent");
                self.later(wait / 2, Happening::LaneEnds(worker));
                self.later(wait, Happening::LaneIsLeft(worker));
                Ok(())
            }
            Effect::NoLane { lane } => {
                hold!(self.handlers.wanted.remove(&lane), "{lane:?} is refused, and not wanted");
                Ok(())
            }
        }
    }

    pub(crate) fn recall(&mut self, worker: WorkerId) -> Result<(), String> {
        let wait = self.rng.magnitude(150_000);
        if let Some(process) = self.processes.get_mut(&worker)
            && let Some((lane, Shut::No)) = process.duty.lane
        {
            process.duty.lane = Some((lane, Shut::Yes));
            self.later(wait, Happening::LaneEnds(worker));
        }
        self.handlers.count("recalled");
        Ok(())
    }

    pub(crate) fn loaded(&mut self, pool: PoolId, loaded: Loaded) -> Result<(), String> {
        let handler = self.handlers.known.get_mut(&pool).ok_or("it is forgotten")?;
        let name = match loaded {
            Loaded::Anew => {
                handler.loaded = Some(handler.generation);
                "anew"
            }
            Loaded::Kept => {
                hold!(handler.terms.stale != Stale::Ends, "{pool:?} keeps the old");
                handler.kept = Some(handler.generation);
                "kept"
            }
            Loaded::Not(Cause::Itself) => "not",
            Loaded::Not(Cause::Signal(_) | Cause::System) => "not-by-itself",
            Loaded::Nothing => "nothing",
        };
        self.handlers.count(name);
        Ok(())
    }

    pub(crate) fn forget(&mut self, pool: PoolId) -> Result<(), String> {
        let open = self.handlers.open.iter().any(|call| self.handlers.sent[call].pool == pool);
        hold!(!open, "{pool:?} is forgotten, and has requests");
        let sessions = self.processes.values().any(|process| {
            let duty = &process.duty;
            duty.pool == Some(pool) && duty.session.is_some() && !process.told_to_end
        });
        hold!(!sessions, "{pool:?} is forgotten, and keeps a session");
        hold!(self.handlers.known.remove(&pool).is_some(), "{pool:?} is not known");
        Ok(())
    }

    /// A process of a handler has ended: it may be that its handler cannot be had, or that nothing
    /// is said of it.
    pub(crate) fn handler_died(&mut self, worker: WorkerId, exit: Exit) {
        let Some(process) = self.processes.get(&worker) else { return };
        let Some(handler) = process.duty.pool.and_then(|pool| self.handlers.known.get_mut(&pool))
        else {
            return;
        };
        match exit {
            Exit::Code(_) => handler.broken |= !process.told_to_end,
            Exit::Signal(_) => {
                let unready = !process.was_ready || process.kind == Kind::Zygote;
                handler.unready += u32::from(unready && !process.killed);
            }
        }
    }

    /// A request is the first again that waits.
    pub(crate) fn request_is_unread(&mut self, call: CallId) {
        let Some(sent) = self.handlers.sent.get(&call).filter(|sent| !sent.settled) else { return };
        if let Some(handler) = self.handlers.known.get_mut(&sent.pool) {
            handler.order.entry(sent.session).or_default().push_front(call);
        }
    }

    /// A process of a handler is killed, since it was not ready in time.
    pub(crate) fn handler_is_late(&mut self, pool: PoolId) {
        if let Some(handler) = self.handlers.known.get_mut(&pool) {
            handler.broken = true;
        }
    }

    /// A worker of a handler is ready: what it loads can be.
    pub(crate) fn handler_is_ready(&mut self, worker: WorkerId) {
        let pool = self.processes.get(&worker).and_then(|process| process.duty.pool);
        if let Some(handler) = pool.and_then(|pool| self.handlers.known.get_mut(&pool)) {
            handler.unready = 0;
        }
    }

    fn cancel_request(&mut self, call: CallId, worker: WorkerId) -> Result<(), String> {
        hold!(self.handlers.sent[&call].settled, "{call:?} is to end, and has no outcome");
        let process = self.processes.get(&worker).ok_or("its worker does not live")?;
        let has = !process.alive || process.duty.work.contains(&call);
        hold!(has, "{worker:?} is to let go of {call:?}, which it has not");
        // Or it goes on until it would have ended, however long that is.
        if self.rng.chance(600) {
            let wait = self.rng.magnitude(100_000);
            self.later(wait, Happening::RequestIsAnswered(worker, call));
        }
        self.handlers.count("let-go");
        Ok(())
    }

    fn generation_of(&self, worker: WorkerId) -> Result<u64, String> {
        let pool = self.processes.get(&worker).and_then(|process| process.duty.pool);
        let handler = pool.and_then(|pool| self.handlers.known.get(&pool));
        handler.map(|handler| handler.generation).ok_or(format!("{worker:?} is no handler's"))
    }

    fn give_request(&mut self, call: CallId, worker: WorkerId) -> Result<(), String> {
        let run = self.rng.magnitude(self.scenario.run_max_us);
        let dies = self.rng.chance(self.scenario.process_dies / 4);
        let closed = self.rng.chance(self.scenario.process_dies / 8);
        let sent = self.handlers.sent.get_mut(&call).ok_or(format!("{call:?} was never sent"))?;
        let may = sent.given.is_none() || sent.unread;
        hold!(may && !sent.settled, "{call:?} is given twice, or too late");
        (sent.given, sent.unread) = (Some(worker), closed);
        let (pool, session) = (sent.pool, sent.session);
        let handler = self.handlers.known.get_mut(&pool).ok_or("its handler is forgotten")?;
        let first = handler.order.entry(session).or_default().pop_front();
        hold!(first == Some(call), "{call:?} is given before {first:?} of its session");
        let (terms, generation) = (handler.terms, handler.generation);
        let others = self.processes.iter().filter(|(id, process)| {
            **id != worker
                && process.duty.session == Some(session)
                && process.duty.pool == Some(pool)
        });
        let others = others.filter(|(_, process)| process.alive && !process.duty.work.is_empty());
        let elsewhere = others.count();
        let process = self.processes.get_mut(&worker).ok_or("its worker does not live")?;
        hold!(process.duty.pool == Some(pool), "{call:?} is given to another handler's worker");
        hold!(process.said_ready, "{call:?} is given to {worker:?}, which is not ready");
        hold!(!process.told_to_end && !process.killed, "{worker:?} is given work at its end");
        hold!(process.duty.lane.is_none(), "{worker:?} is lent, and given {call:?}");
        let open = u32::try_from(process.duty.work.len()).expect("few");
        hold!(open < terms.slots, "{worker:?} has {open} requests already");
        let uses = process.duty.used + open;
        match terms.recipe.uses {
            Uses::Once => hold!(uses == 0, "a worker of one use is used twice"),
            Uses::Times(times) => hold!(uses < times, "{worker:?} is used too often"),
            Uses::Unlimited => {}
        }
        if terms.affinity == Affinity::Session {
            let owner = *process.duty.session.get_or_insert(session);
            hold!(owner == session, "a session's worker is given another's request");
            hold!(elsewhere == 0, "two requests of one session at a time");
        } else {
            let content = process.duty.generation;
            let may = match terms.stale {
                Stale::Ends => false,
                Stale::Waits => handler.is_refused(),
                Stale::Serves => handler.loaded != Some(generation),
            };
            hold!(content == generation || may, "what is stale is given {call:?}");
            hold!(content >= handler.newest_given, "{call:?} is given an older content");
            handler.newest_given = content;
            if content < generation {
                self.handlers.count("old");
            }
        }
        process.duty.work.push(call);
        if closed {
            process.duty.work.clear();
            let unread = Some(call);
            let event = hob_core::requests::Event::Unreached { worker, unread };
            self.at_once.push_back(Event::Request(event));
        } else if dies {
            self.later(run, Happening::ProcessDies(worker, Exit::Signal(11)));
        } else {
            if self.rng.chance(300) {
                self.later(run / 2, Happening::RequestBegins(worker, call));
            }
            self.later(run, Happening::RequestIsAnswered(worker, call));
        }
        Ok(())
    }

    fn settle_request(&mut self, call: CallId, outcome: Settled) -> Result<(), String> {
        let draining = self.draining || self.core.is_stopping();
        let now = self.now;
        let sent = self.handlers.sent.get_mut(&call).ok_or(format!("{call:?} was never sent"))?;
        hold!(!sent.settled, "{call:?} is settled twice");
        sent.settled = true;
        let (pool, session, given) = (sent.pool, sent.session, sent.given.is_some());
        let unread = sent.unread;
        match outcome {
            Settled::Answered => hold!(given, "{call:?} was never given"),
            Settled::Lost => {
                let worker = sent.given.and_then(|worker| self.processes.get(&worker));
                let lives =
                    |process: &Process| process.alive && !process.killed && !process.told_to_end;
                hold!(given && !worker.is_some_and(lives), "{call:?} is lost for no reason");
            }
            Settled::TimedOut { .. } => {
                hold!(sent.deadline.is_some_and(|at| at <= now), "{call:?} timed out too soon");
            }
            Settled::Cancelled => hold!(sent.taken_back, "{call:?} was not taken back"),
            Settled::Refused(refusal) => {
                hold!(!given || unread, "{call:?} was given, and is refused");
                let handler = self.handlers.known.get(&pool);
                let is_broken = handler.is_none_or(|handler| {
                    handler.broken || handler.unready >= self.limits.kills_max
                });
                let is_open = self.core.pools().iter().any(|view| view.id == pool);
                let is_false = refusal == Refusal::NotLoaded && is_open && !is_broken;
                hold!(!is_false, "{call:?} is refused for deaths that say nothing: {handler:?}");
                hold!(refusal != Refusal::Stopping || draining, "{call:?} is stopped by nothing");
            }
        }
        let name = match outcome {
            Settled::Answered => "answered",
            Settled::Lost => "lost",
            Settled::TimedOut { .. } => "timed-out",
            Settled::Cancelled => "taken-back",
            Settled::Refused(Refusal::QueueFull) => "queue-full",
            Settled::Refused(Refusal::SessionsFull) => "sessions-full",
            Settled::Refused(Refusal::NotLoaded) => "not-loaded",
            Settled::Refused(Refusal::Stopping) => "stopping",
        };
        self.handlers.count(name);
        self.handlers.open.remove(&call);
        if let Some(handler) = self.handlers.known.get_mut(&pool) {
            handler.broken &= outcome != Settled::Answered;
            handler.order.entry(session).or_default().retain(|each| *each != call);
        }
        Ok(())
    }

    /// What each handler's pool may have at most.
    pub(crate) fn check_handlers(&self) -> Result<(), String> {
        for pool in self.core.pools() {
            let Some(handler) = self.handlers.known.get(&pool.id) else { continue };
            let live = pool.idle + pool.starting + pool.busy;
            hold!(live <= handler.terms.workers_max, "{live} workers in {pool:?}");
            hold!(pool.queued <= handler.terms.queue_max, "too many wait: {pool:?}");
        }
        Ok(())
    }

    /// After a reading of memory: nothing that could go is left while all together are over the
    /// budget. What waits and occupies nothing may stay.
    pub(crate) fn check_budget(&self, readings: &[(WorkerId, u64)]) -> Result<(), String> {
        let budget_kib = self.limits.budget_kib;
        let pools = self.core.pools();
        let total: u64 = pools.iter().map(|pool| pool.kib).sum();
        if total <= budget_kib {
            return Ok(());
        }
        for pool in pools {
            let keeps = self.processes.values().any(|process| {
                process.duty.pool == Some(pool.id) && process.duty.session.is_some()
            });
            let used = pool.busy > 0 || pool.queued > 0;
            hold!(keeps || used || pool.kib == 0, "{total} of {budget_kib} KiB: {pool:?}");
        }
        for (worker, kib) in readings.iter().filter(|(_, kib)| *kib > 0) {
            let Some(process) = self.processes.get(worker) else { continue };
            let waits = process.said_ready
                && process.kind != Kind::Zygote
                && process.call.is_none()
                && !process.duty.is_at_work()
                && process.duty.session.is_none();
            let stays = waits && process.alive && !process.told_to_end && !process.killed;
            hold!(!stays, "{total} of {budget_kib} KiB, and {worker:?} waits with {kib}");
        }
        Ok(())
    }
}
