//! The decisions about messages: which worker handles which, and when workers are made, lent and
//! given up. It takes events and the time, and appends effects, as the supervisor does for calls.
//!
//! ```text
//!             Ready                Give                   Answered, with uses left
//!  Starting ────────▶ Idle ───────────────────▶ Busy(call) ──────────▶ Idle
//!                      │  Lend               Recall                    ▲
//!                      └────▶ Lent(lane) ───────────▶ Recalled(lane) ──┤
//!                                └── LaneOver ─────────────────────────┘
//!  every state ── Retire ──▶ Retiring ── Gone
//! ```
//! A **lane** lends a worker to one sender: messages then go straight from one to the other, and
//! the daemon hears only reports. It is recalled when others wait, when what is warm becomes
//! stale, when its sender leaves, and when the daemon stops.
//!
//! Invariants (checked by `tests/messages`, a seeded world): a message is given at most once and
//! settled exactly once; messages of a session are given in the order in which they came, one at a
//! time, to one worker; a pool has at most its `workers_max` and queues at most its `queue_max`;
//! nothing of a stale generation is given a message.

pub mod dead;
mod event;
mod memory;
mod serve;
pub mod state;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use crate::isolation::{Origin, Uses};
use crate::limits::Limits;

pub use event::{Affinity, Effect, Event, Found, Given, Over, Refusal, Settled, Terms};

/// Numbers of workers begin here, so that none is also one of the supervisor's.
pub const WORKERS_FROM: u64 = 1 << 48;
/// How long a worker whose sender has left its lane may take to say that it is back.
const LANE_PATIENCE_US: u64 = 100_000;

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Idle,
    Busy(CallId),
    Lent(LaneId),
    Recalled(LaneId),
    Retiring,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Zygote,
    Worker { zygote: Option<WorkerId> },
}

#[derive(Debug)]
struct Worker {
    pool: PoolId,
    generation: u64,
    role: Role,
    state: State,
    /// The session that it belongs to.
    key: Option<Vec<u8>>,
    used: u32,
    kib: u64,
    since: Time,
}

#[derive(Debug)]
struct Pool {
    terms: Terms,
    generation: u64,
    /// The zygote has threads: workers are started, not forked.
    threads: bool,
    queue: VecDeque<CallId>,
    last_used: Time,
    /// Workers that died before they were ready, in a row.
    deaths: u32,
    /// It could not be loaded: nothing is made ahead until a message comes or something changes.
    fails: bool,
    /// Workers that died while they waited, since the last message or change: so too after some.
    died_waiting: u32,
    /// Its memory was needed: so too until a message comes.
    gave_way: bool,
    messages: u64,
}

#[derive(Debug)]
struct Message {
    pool: PoolId,
    key: Vec<u8>,
    deadline: Option<Time>,
    worker: Option<WorkerId>,
    found: Found,
}

/// What one pool is doing, for `hob status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolView {
    /// The pool.
    pub pool: PoolId,
    /// What it works by.
    pub terms: Terms,
    /// Workers that wait.
    pub idle: u32,
    /// Workers that have a message or a lane.
    pub busy: u32,
    /// Messages that wait.
    pub queued: u32,
    /// Messages so far.
    pub messages: u64,
    /// The memory of its processes.
    pub kib: u64,
    /// When it was last used.
    pub last_used: Time,
}

/// The state of all handlers' pools.
#[derive(Debug)]
pub struct Messages {
    limits: Limits,
    now: Time,
    pools: BTreeMap<PoolId, Pool>,
    workers: BTreeMap<WorkerId, Worker>,
    messages: BTreeMap<CallId, Message>,
    deadlines: BTreeSet<(Time, CallId)>,
    /// When a process that starts, ends, or comes back is no longer waited for.
    patience: BTreeSet<(Time, WorkerId)>,
    next_worker: u64,
    draining: Option<Time>,
}

impl Messages {
    /// Without any pool.
    #[must_use]
    pub fn new(limits: Limits) -> Messages {
        Messages {
            limits,
            now: Time::default(),
            pools: BTreeMap::new(),
            workers: BTreeMap::new(),
            messages: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            patience: BTreeSet::new(),
            next_worker: WORKERS_FROM,
            draining: None,
        }
    }

    /// Takes an event and appends what is to be done.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        let pool = self.apply(event, out);
        self.fire_due(out);
        match pool {
            Touched::Pool(pool) => self.serve(pool, out),
            Touched::All => {
                let pools: Vec<PoolId> = self.pools.keys().copied().collect();
                pools.into_iter().for_each(|pool| self.serve(pool, out));
            }
            Touched::Nothing => {}
        }
    }

    fn apply(&mut self, event: Event, out: &mut Vec<Effect>) -> Touched {
        match event {
            Event::Opened { pool, terms } => self.opened(pool, terms, out),
            Event::Stale { pool } => return self.stale(pool, out),
            Event::Arrived { call, pool, key, deadline } => {
                self.arrived(call, (pool, key, deadline), out);
                return Touched::Pool(pool);
            }
            Event::SenderGone { call } => return self.end_call(call, Settled::Cancelled, out),
            Event::WantLane { lane, pool } => self.want_lane(lane, pool, out),
            Event::LaneLeft { lane } => return self.lane_left(lane, out),
            Event::Handled { worker, lane, count, lane_over } => {
                return self.handled((worker, lane), count, lane_over, out);
            }
            Event::ZygoteReady { zygote, threads } => {
                return self.zygote_ready(zygote, threads, out);
            }
            Event::Ready { worker } => return self.ready(worker),
            Event::Answered { worker, call } => return self.answered(worker, call, out),
            Event::Unreached { worker } => self.kill(worker, out),
            Event::ForkFailed { worker } | Event::Gone { worker } => {
                return self.gone(worker, out);
            }
            Event::Memory { readings, allowed_kib } => self.memory(&readings, allowed_kib, out),
            Event::Tick => return Touched::All,
            Event::Drain => self.drain(out),
        }
        Touched::Nothing
    }

    /// When the next [`Event::Tick`] is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let idle = self
            .pools
            .iter()
            .filter(|(id, _)| self.lives(**id))
            .map(|(_, pool)| pool.last_used.after_us(pool.terms.idle_us));
        let first = |set: Option<Time>| set.into_iter();
        first(self.deadlines.first().map(|(at, _)| *at))
            .chain(first(self.patience.first().map(|(at, _)| *at)))
            .chain(first(self.draining))
            .chain(idle.filter(|at| *at > self.now))
            .min()
    }

    /// Whether nothing is open and no process lives.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty() && self.messages.is_empty()
    }

    /// The session-less view of each pool.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolView> {
        let view = |(id, pool): (&PoolId, &Pool)| {
            let mine = self.workers.values().filter(|worker| worker.pool == *id);
            let (mut idle, mut busy, mut kib) = (0, 0, 0);
            for worker in mine {
                kib += worker.kib;
                match worker.state {
                    State::Idle if worker.role != Role::Zygote => idle += 1,
                    State::Busy(_) | State::Lent(_) | State::Recalled(_) => busy += 1,
                    State::Starting | State::Idle | State::Retiring => {}
                }
            }
            PoolView {
                pool: *id,
                terms: pool.terms,
                idle,
                busy,
                queued: u32::try_from(pool.queue.len()).unwrap_or(u32::MAX),
                messages: pool.messages,
                kib,
                last_used: pool.last_used,
            }
        };
        self.pools.iter().map(view).collect()
    }

    fn lives(&self, pool: PoolId) -> bool {
        self.workers.values().any(|worker| worker.pool == pool && worker.state != State::Retiring)
    }

    fn opened(&mut self, pool: PoolId, terms: Terms, out: &mut Vec<Effect>) {
        let fresh = Pool {
            terms,
            generation: 0,
            threads: terms.recipe.origin == Origin::Exec,
            queue: VecDeque::new(),
            last_used: self.now,
            deaths: 0,
            fails: false,
            died_waiting: 0,
            gave_way: false,
            messages: 0,
        };
        self.pools.insert(pool, fresh);
        self.forget_pools(pool, out);
    }

    /// Pools beyond the bound go, the least recently used first; none with something to do, nor the
    /// one that a message is just coming for.
    fn forget_pools(&mut self, coming: PoolId, out: &mut Vec<Effect>) {
        while self.pools.len() > self.limits.pools_max as usize {
            let oldest = self.pools.iter().filter(|(id, _)| **id != coming && self.is_quiet(**id));
            let Some(oldest) = oldest.min_by_key(|(_, pool)| pool.last_used).map(|(id, _)| *id)
            else {
                return;
            };
            self.stale(oldest, out);
            self.pools.remove(&oldest);
            out.push(Effect::Forget { pool: oldest });
        }
    }

    /// Whether nobody waits for a pool, nor has one of its workers.
    fn is_quiet(&self, pool: PoolId) -> bool {
        let at_work = |state| matches!(state, State::Busy(_) | State::Lent(_) | State::Recalled(_));
        !self.messages.values().any(|each| each.pool == pool)
            && !self.workers.values().any(|each| each.pool == pool && at_work(each.state))
    }

    fn stale(&mut self, id: PoolId, out: &mut Vec<Effect>) -> Touched {
        let Some(pool) = self.pools.get_mut(&id) else { return Touched::Nothing };
        pool.generation += 1;
        pool.deaths = 0;
        pool.fails = false;
        pool.died_waiting = 0;
        pool.threads = pool.terms.recipe.origin == Origin::Exec;
        let mine = self.workers.iter().filter(|(_, worker)| worker.pool == id);
        let mine: Vec<WorkerId> = mine.map(|(id, _)| *id).collect();
        for worker in mine {
            self.give_up(worker, out);
        }
        Touched::Pool(id)
    }

    /// Ends a process when it has nothing to do; what is lent comes back first.
    fn give_up(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        match worker.state {
            // A zygote's copies end with it: those that are at work first.
            State::Starting | State::Idle if worker.role == Role::Zygote => {
                let mut copies = self.workers.values().filter(|copy| {
                    copy.role == Role::Worker { zygote: Some(id) } && copy.state != State::Retiring
                });
                if copies.all(|copy| matches!(copy.state, State::Starting | State::Idle)) {
                    self.retire(id, out);
                }
            }
            State::Starting | State::Idle => self.retire(id, out),
            State::Lent(lane) => {
                worker.state = State::Recalled(lane);
                out.push(Effect::Recall { worker: id });
            }
            State::Busy(_) | State::Recalled(_) | State::Retiring => {}
        }
    }

    fn retire(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if worker.state != State::Retiring {
            worker.state = State::Retiring;
            self.wait_for(id, self.limits.retire_us);
            out.push(Effect::Retire { worker: id });
        }
    }

    fn kill(&mut self, id: WorkerId, out: &mut Vec<Effect>) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let call = match worker.state {
            State::Busy(call) => Some(call),
            State::Starting
            | State::Idle
            | State::Lent(_)
            | State::Recalled(_)
            | State::Retiring => None,
        };
        worker.state = State::Retiring;
        self.impatient(id);
        out.push(Effect::Kill { worker: id });
        if let Some(call) = call {
            self.settle(call, Settled::Lost, out);
        }
    }

    fn wait_for(&mut self, id: WorkerId, us: u64) {
        self.impatient(id);
        self.patience.insert((self.now.after_us(us), id));
    }

    fn impatient(&mut self, id: WorkerId) {
        self.patience.retain(|(_, each)| *each != id);
    }

    fn arrived(
        &mut self,
        call: CallId,
        (pool, key, deadline): (PoolId, Vec<u8>, Option<Time>),
        out: &mut Vec<Effect>,
    ) {
        let refusal = match self.pools.get(&pool) {
            _ if self.draining.is_some() => Some(Refusal::Stopping),
            None => Some(Refusal::NotLoaded),
            Some(known) if known.queue.len() >= known.terms.queue_max as usize => {
                Some(Refusal::QueueFull)
            }
            Some(_) => None,
        };
        if let Some(refusal) = refusal {
            out.push(Effect::Settle { call, outcome: Settled::Refused(refusal) });
            return;
        }
        if let Some(at) = deadline {
            self.deadlines.insert((at, call));
        }
        self.messages
            .insert(call, Message { pool, key, deadline, worker: None, found: Found::Waiting });
        if let Some(pool) = self.pools.get_mut(&pool) {
            pool.queue.push_back(call);
            pool.last_used = self.now;
            pool.fails = false;
            pool.died_waiting = 0;
            pool.gave_way = false;
            pool.messages += 1;
        }
    }

    /// Takes a message out of all tables and tells its outcome.
    fn settle(&mut self, call: CallId, outcome: Settled, out: &mut Vec<Effect>) {
        let Some(message) = self.messages.remove(&call) else { return };
        if let Some(at) = message.deadline {
            self.deadlines.remove(&(at, call));
        }
        if message.worker.is_none()
            && let Some(pool) = self.pools.get_mut(&message.pool)
        {
            pool.queue.retain(|each| *each != call);
        }
        out.push(Effect::Settle { call, outcome });
    }

    /// A message ends before its handler has: the worker that has it goes too.
    fn end_call(&mut self, call: CallId, outcome: Settled, out: &mut Vec<Effect>) -> Touched {
        let Some(message) = self.messages.get(&call) else { return Touched::Nothing };
        let (pool, worker) = (message.pool, message.worker);
        self.settle(call, outcome, out);
        if let Some(worker) = worker {
            self.kill(worker, out);
        }
        Touched::Pool(pool)
    }

    fn lane_left(&mut self, lane: LaneId, out: &mut Vec<Effect>) -> Touched {
        let holds =
            |state: State| matches!(state, State::Lent(l) | State::Recalled(l) if l == lane);
        let holder = self.workers.iter_mut().find(|(_, worker)| holds(worker.state));
        let Some((id, worker)) = holder else { return Touched::Nothing };
        let id = *id;
        if worker.state == State::Lent(lane) {
            worker.state = State::Recalled(lane);
            out.push(Effect::Recall { worker: id });
        }
        self.wait_for(id, LANE_PATIENCE_US);
        Touched::Nothing
    }

    fn handled(
        &mut self,
        (id, lane): (WorkerId, LaneId),
        count: u32,
        lane_over: Over,
        out: &mut Vec<Effect>,
    ) -> Touched {
        let Some(worker) = self.workers.get_mut(&id) else { return Touched::Nothing };
        if !matches!(worker.state, State::Lent(l) | State::Recalled(l) if l == lane) {
            return Touched::Nothing;
        }
        worker.used = worker.used.saturating_add(count);
        let pool = worker.pool;
        if let Some(pool) = self.pools.get_mut(&pool) {
            pool.messages += u64::from(count);
            pool.last_used = self.now;
            if count > 0 {
                pool.died_waiting = 0;
            }
        }
        if lane_over == Over::No {
            return Touched::Nothing;
        }
        self.impatient(id);
        self.is_back(id, out)
    }

    fn answered(&mut self, id: WorkerId, call: CallId, out: &mut Vec<Effect>) -> Touched {
        match self.workers.get_mut(&id) {
            Some(worker) if worker.state == State::Busy(call) => worker.used += 1,
            Some(_) | None => return Touched::Nothing,
        }
        self.settle(call, Settled::Answered, out);
        self.is_back(id, out)
    }

    /// A worker has nothing to do any more: it waits, or has done enough.
    fn is_back(&mut self, id: WorkerId, out: &mut Vec<Effect>) -> Touched {
        let Some(worker) = self.workers.get_mut(&id) else { return Touched::Nothing };
        worker.state = State::Idle;
        worker.since = self.now;
        let (of, role, generation) = (worker.pool, worker.role, worker.generation);
        let fresh = self.pools.get(&of).is_some_and(|pool| pool.generation == generation);
        let spent = self.uses_left(id) == 0;
        if spent || !fresh || self.draining.is_some() {
            self.retire(id, out);
        }
        // A zygote of an older generation waits for its last copy at work.
        if !fresh && let Role::Worker { zygote: Some(zygote) } = role {
            self.give_up(zygote, out);
        }
        Touched::Pool(of)
    }

    fn zygote_ready(&mut self, id: WorkerId, threads: u32, out: &mut Vec<Effect>) -> Touched {
        let Some(worker) = self.workers.get_mut(&id) else { return Touched::Nothing };
        if worker.state != State::Starting {
            return Touched::Nothing;
        }
        worker.state = State::Idle;
        let pool = worker.pool;
        self.impatient(id);
        if threads > 1 {
            if let Some(pool) = self.pools.get_mut(&pool) {
                pool.threads = true;
            }
            self.retire(id, out);
        }
        Touched::Pool(pool)
    }

    fn ready(&mut self, id: WorkerId) -> Touched {
        let Some(worker) = self.workers.get_mut(&id) else { return Touched::Nothing };
        if worker.state != State::Starting || worker.role == Role::Zygote {
            return Touched::Nothing;
        }
        worker.state = State::Idle;
        worker.since = self.now;
        let of = worker.pool;
        self.impatient(id);
        if let Some(pool) = self.pools.get_mut(&of) {
            pool.deaths = 0;
            pool.fails = false;
        }
        Touched::Pool(of)
    }

    fn gone(&mut self, id: WorkerId, out: &mut Vec<Effect>) -> Touched {
        let Some(worker) = self.workers.remove(&id) else { return Touched::Nothing };
        self.impatient(id);
        let of = worker.pool;
        if let State::Busy(call) = worker.state {
            self.settle(call, Settled::Lost, out);
        }
        let Some(pool) = self.pools.get_mut(&of) else { return Touched::Nothing };
        // Copies end with their zygote: that is one death.
        let by_itself = match worker.role {
            Role::Worker { zygote: Some(zygote) } => self.workers.contains_key(&zygote),
            Role::Worker { zygote: None } | Role::Zygote => true,
        };
        if worker.state == State::Idle && worker.generation == pool.generation && by_itself {
            pool.died_waiting += 1;
        }
        if worker.state == State::Starting && worker.generation == pool.generation {
            pool.deaths += 1;
            // A zygote that does not come up says why once; what was to be forked or started may
            // have had bad luck.
            if worker.role == Role::Zygote || pool.deaths >= self.limits.deaths_max {
                pool.deaths = 0;
                pool.fails = true;
                for call in std::mem::take(&mut pool.queue) {
                    self.settle(call, Settled::Refused(Refusal::NotLoaded), out);
                }
            }
        }
        if let Role::Worker { zygote: Some(zygote) } = worker.role
            && self.workers.get(&zygote).is_some_and(|each| {
                self.pools.get(&of).is_none_or(|pool| pool.generation != each.generation)
            })
        {
            self.give_up(zygote, out);
        }
        Touched::Pool(of)
    }

    fn uses_left(&self, id: WorkerId) -> u32 {
        let Some(worker) = self.workers.get(&id) else { return 0 };
        let Some(pool) = self.pools.get(&worker.pool) else { return 0 };
        if worker.kib > pool.terms.worker_kib {
            return 0;
        }
        let uses = match pool.terms.recipe.uses {
            Uses::Once => 1,
            Uses::Times(times) => crate::pool::recycle::uses_of(id, times),
            Uses::Unlimited => return u32::MAX,
        };
        uses.saturating_sub(worker.used)
    }

    fn drain(&mut self, out: &mut Vec<Effect>) {
        if self.draining.is_some() {
            return;
        }
        self.draining = Some(self.now.after_us(self.limits.drain_grace_us));
        let waiting = self.messages.iter().filter(|(_, message)| message.worker.is_none());
        let waiting: Vec<CallId> = waiting.map(|(id, _)| *id).collect();
        for call in waiting {
            self.settle(call, Settled::Refused(Refusal::Stopping), out);
        }
        let pools: Vec<PoolId> = self.pools.keys().copied().collect();
        for pool in pools {
            self.stale(pool, out);
        }
    }

    fn fire_due(&mut self, out: &mut Vec<Effect>) {
        while let Some((at, call)) =
            self.deadlines.first().copied().filter(|(at, _)| *at <= self.now)
        {
            self.deadlines.remove(&(at, call));
            let worker = self.messages.get(&call).and_then(|message| message.worker);
            let given = if worker.is_some() { Given::Yes } else { Given::No };
            self.end_call(call, Settled::TimedOut { given }, out);
        }
        while let Some((at, id)) = self.patience.first().copied().filter(|(at, _)| *at <= self.now)
        {
            self.patience.remove(&(at, id));
            self.kill(id, out);
        }
        if self.draining.is_some_and(|at| at <= self.now) {
            self.draining = Some(self.now.after_us(self.limits.kill_grace_us));
            let all: Vec<WorkerId> = self.workers.keys().copied().collect();
            all.into_iter().for_each(|worker| self.kill(worker, out));
        }
    }
}

/// Which pools an event may have given something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    Nothing,
    Pool(PoolId),
    All,
}
