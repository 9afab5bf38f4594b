//! A call arrives: planned, then given, queued or sent cold.

use std::collections::BTreeSet;

use crate::event::{Arrival, Effect, Found, Learning, Pages};
use crate::ids::{CallId, PoolId, ProgramId, Time, WorkerId};
use crate::isolation::{Name, Origin, Recipe};
use crate::key::Key;
use crate::outcome::ColdReason;
use crate::plan::{Plan, Standing, plan};
use crate::pool::worker::{Input, Role, State as WorkerState, Worker};
use crate::pool::{Pool, Shelf, State};

use super::drain::Stage;
use super::tables::{Call, CallState, Ending, LearningRun, LessonState, Program, Source, Wish};
use super::{Freed, Supervisor, Timer};

impl Supervisor {
    pub(super) fn arrived(&mut self, arrival: &Arrival, out: &mut Vec<Effect>) {
        if self.calls.contains_key(&arrival.call) {
            self.ignore();
            return;
        }
        self.last_activity = self.now;
        self.timers.set(Timer::Idle, None);
        self.remember_program(arrival.program);
        let key = arrival.key.filter(|_| !self.must_learn(arrival.program));
        match plan(&arrival.facts, self.standing(arrival.program), key) {
            Plan::Refuse(reason) => {
                self.settled += 1;
                out.push(Effect::Refuse { call: arrival.call, reason });
            }
            Plan::Cold(reason) => self.open_cold(arrival, reason, out),
            Plan::Warm(key) => self.open_warm(arrival, key, out),
        }
    }

    /// Whether a learning run that left nothing is to be repeated. The daemon can make a key from
    /// nothing too, so the key alone does not tell.
    fn must_learn(&self, program: ProgramId) -> bool {
        self.programs
            .get(&program)
            .is_some_and(|program| program.lesson == LessonState::None && program.nothings > 0)
    }

    /// How the program stands, for the plan.
    fn standing(&self, program: ProgramId) -> Standing {
        if self.stage != Stage::Open {
            return Standing::Stopping;
        }
        let Some(program) = self.programs.get(&program) else {
            return Standing::Unlearned;
        };
        let passed = |until: Option<Time>| until.is_none_or(|until| until <= self.now);
        match program.lesson {
            LessonState::None => Standing::Unlearned,
            LessonState::Stale => Standing::Stale,
            LessonState::Learning(run) => {
                let patience = run.since.after_us(self.limits.learn_patience_us);
                if self.now < patience { Standing::BeingLearned } else { Standing::Unlearned }
            }
            LessonState::Learned(_) if !passed(program.failed_until) => Standing::WarmFailed,
            LessonState::Learned(_) if !passed(program.memory_until) => Standing::OverBudget,
            LessonState::Learned(_) if program.pace.is_cold(self.now) => Standing::SlowerWarm,
            LessonState::Learned(_) => Standing::Learned,
        }
    }

    /// Opens a call that the plan sends cold; some of them learn.
    fn open_cold(&mut self, arrival: &Arrival, reason: ColdReason, out: &mut Vec<Effect>) {
        let learns = match reason {
            ColdReason::Learning | ColdReason::Stale => Learning::Yes,
            ColdReason::Asked
            | ColdReason::SpawnAsked
            | ColdReason::NotHosted
            | ColdReason::NotAProgram
            | ColdReason::InterpreterVersion
            | ColdReason::BeingLearned
            | ColdReason::Warming
            | ColdReason::Context
            | ColdReason::Cgroup
            | ColdReason::Priority
            | ColdReason::Limits
            | ColdReason::Descriptors
            | ColdReason::Traced
            | ColdReason::Terminal
            | ColdReason::WarmFailed
            | ColdReason::Busy
            | ColdReason::Memory
            | ColdReason::SlowerWarm
            | ColdReason::WorkerClosed
            | ColdReason::Stopping => Learning::No,
        };
        if learns == Learning::Yes
            && let Some(program) = self.programs.get_mut(&arrival.program)
        {
            let wish = Wish::of(arrival);
            let run = LearningRun { call: arrival.call, since: self.now, wish };
            program.lesson = LessonState::Learning(run);
            self.timers.set(Timer::Program(arrival.program), None);
        }
        self.open(arrival, Source::Waiting);
        self.begin_cold(arrival.call, reason, learns, out);
    }

    /// Opens a call that the plan wants warm.
    fn open_warm(&mut self, arrival: &Arrival, key: Key, out: &mut Vec<Effect>) {
        let wish = Wish::of(arrival);
        let recipe = self.recipe(arrival.program, wish);
        if recipe.name() == Name::Spawn {
            self.open_cold(arrival, ColdReason::SpawnAsked, out);
            return;
        }
        if let Some(program) = self.programs.get_mut(&arrival.program)
            && !matches!(program.lesson, LessonState::Learned(_))
        {
            // A key of a program that was not learned here comes from an earlier daemon's lesson.
            program.lesson = LessonState::Learned(wish);
        }
        let source = match (recipe.origin, arrival.ahead) {
            (Origin::Fork, Some(0)) => Source::OnDemand,
            (Origin::Fork | Origin::Exec, _) => Source::Waiting,
        };
        self.open(arrival, source);
        let Some(pool) = self.pool_for(arrival.program, key, recipe, out) else {
            self.begin_cold(arrival.call, ColdReason::Busy, Learning::No, out);
            return;
        };
        self.note_arrival(pool, arrival.ahead);
        self.place(arrival.call, pool, out);
    }

    fn open(&mut self, arrival: &Arrival, source: Source) {
        let deadline = arrival.timeout_us.map(|timeout_us| self.now.after_us(timeout_us));
        let call = Call {
            program: arrival.program,
            state: CallState::Cold { reason: ColdReason::Warming, since: self.now },
            deadline,
            source,
            gives: 0,
        };
        self.calls.insert(arrival.call, call);
    }

    /// What a wish means for this program: forks, unless it cannot be forked.
    pub(super) fn recipe(&self, program: ProgramId, wish: Wish) -> Recipe {
        let ahead = wish.ahead.unwrap_or(self.limits.ahead_max).min(self.limits.ahead_asked_max);
        let recipe = wish.isolation.unwrap_or(Name::Fork).lower(ahead);
        match (recipe.origin, self.demotion(program)) {
            (Origin::Fork, Some(_)) => Name::Standby.lower(ahead.max(1)),
            (Origin::Fork | Origin::Exec, _) => recipe,
        }
    }

    /// The pool for this key and recipe; a new one if there is none and room.
    pub(super) fn pool_for(
        &mut self,
        program: ProgramId,
        key: Key,
        recipe: Recipe,
        out: &mut Vec<Effect>,
    ) -> Option<PoolId> {
        let shelf = Shelf::new(key, recipe);
        if let Some(pool) = self.shelves.get(&shelf) {
            return Some(*pool);
        }
        if !self.make_room_for_a_pool(out) {
            return None;
        }
        let id = self.new_pool_id();
        let mut pool = Pool::new(id, program, key, recipe);
        pool.last_used = self.now;
        self.shelves.insert(shelf, id);
        self.pools.insert(id, pool);
        Some(id)
    }

    fn note_arrival(&mut self, id: PoolId, ahead: Option<u32>) {
        let Some(pool) = self.pools.get_mut(&id) else {
            return;
        };
        let waiting = u32::try_from(pool.queue.len()).unwrap_or(u32::MAX);
        pool.arrivals.note(self.now, pool.busy + waiting + 1, self.limits.rate_us);
        // A call that takes no copy has no say in how many wait.
        if ahead != Some(0) {
            pool.asked = ahead;
            pool.recipe.ahead =
                ahead.unwrap_or(self.limits.ahead_max).min(self.limits.ahead_asked_max);
        }
        pool.calls += 1;
        pool.last_used = self.now;
        if let State::Failed { until } = pool.state
            && until <= self.now
        {
            pool.state = pool.fresh();
        }
        self.timers.set(Timer::Pool(id), Some(self.now.after_us(self.limits.rate_us)));
    }

    /// Finds a worker for a call that has just arrived, or decides what else becomes of it.
    fn place(&mut self, call: CallId, id: PoolId, out: &mut Vec<Effect>) {
        let Some(pool) = self.pools.get(&id) else {
            return;
        };
        let cold = match pool.state {
            State::Waiting | State::Warming(_) => Some(ColdReason::Warming),
            State::Failed { .. } => Some(ColdReason::WarmFailed),
            // One that starts takes as long as a cold start: waiting for it gains nothing.
            State::Standby if pool.idle.is_empty() => Some(ColdReason::Warming),
            State::Standby | State::Ready(_) => None,
        };
        if let Some(reason) = cold {
            self.begin_cold(call, reason, Learning::No, out);
            return;
        }
        match self.find_worker(call, id, out) {
            Some((worker, found)) => self.give(call, worker, found, out),
            None => self.enqueue(call, id, out),
        }
    }

    /// A worker that this call can be given now: one that waits, or one that is forked for it.
    pub(super) fn find_worker(
        &mut self,
        call: CallId,
        id: PoolId,
        out: &mut Vec<Effect>,
    ) -> Option<(WorkerId, Found)> {
        if self.given >= self.limits.calls_max {
            return None;
        }
        let source = self.calls.get(&call)?.source;
        let pool = self.pools.get(&id)?;
        if source == Source::Waiting
            && let Some(worker) = pool.idle.last()
        {
            let found = match pool.recipe.origin {
                Origin::Fork => Found::CopyReady,
                Origin::Exec => Found::StandbyReady,
            };
            return Some((*worker, found));
        }
        if source == Source::Waiting
            && let Some(worker) = self.plain_to_come(id)
        {
            return Some((worker, Found::ForkedOnDemand));
        }
        let State::Ready(zygote) = pool.state else {
            return None;
        };
        if pool.live() >= self.limits.workers_max {
            return None;
        }
        let worker = self.fork(id, zygote, Pages::Unpaid, out)?;
        Some((worker, Found::ForkedOnDemand))
    }

    /// A plain copy of this pool that is being forked: a call that waits in its channel is there
    /// sooner than one for which another is forked.
    fn plain_to_come(&self, id: PoolId) -> Option<WorkerId> {
        let pool = self.pools.get(&id)?;
        if pool.starting == 0 {
            return None;
        }
        let found = |entry: &Worker| {
            entry.pool == id
                && entry.state == WorkerState::Starting
                && entry.pages == Pages::Plain
                && entry.used == 0
        };
        self.workers.iter().rev().find(|(_, entry)| found(entry)).map(|(worker, _)| *worker)
    }

    /// Lets a call wait for a worker of its pool, or sends it cold if too many wait.
    pub(super) fn enqueue(&mut self, call: CallId, id: PoolId, out: &mut Vec<Effect>) {
        if self.queued >= self.limits.queue_max {
            self.begin_cold(call, ColdReason::Busy, Learning::No, out);
            return;
        }
        let until = self.now.after_us(self.limits.queue_wait_us);
        let (Some(entry), Some(pool)) = (self.calls.get_mut(&call), self.pools.get_mut(&id)) else {
            return;
        };
        entry.state = CallState::Queued { pool: id, until };
        pool.queue.push_back(call);
        self.queued += 1;
        self.set_call_timer(call);
        out.push(Effect::Queue { call });
    }

    /// Gives queued calls what has become free: within a pool in order, among pools whoever has
    /// waited longest.
    pub(super) fn serve_queues(&mut self, out: &mut Vec<Effect>) {
        if self.freed == Freed::No {
            return;
        }
        self.freed = Freed::No;
        if self.queued == 0 {
            return;
        }
        let mut fronts: Vec<(CallId, PoolId)> =
            self.pools.values().filter_map(|pool| Some((*pool.queue.front()?, pool.id))).collect();
        fronts.sort_unstable();
        for (_, id) in fronts {
            while let Some(call) = self.pools.get(&id).and_then(|pool| pool.queue.front().copied())
            {
                let Some((worker, _)) = self.find_worker(call, id, out) else {
                    break;
                };
                self.leave_queue(call, id);
                self.give(call, worker, Found::Queued, out);
            }
        }
    }

    /// Takes a call out of its pool's queue.
    pub(super) fn leave_queue(&mut self, call: CallId, id: PoolId) {
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.queue.retain(|queued| *queued != call);
        }
        self.queued -= 1;
    }

    pub(super) fn give(
        &mut self,
        call: CallId,
        worker: WorkerId,
        found: Found,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.calls.get_mut(&call) else {
            return;
        };
        entry.gives += 1;
        entry.state = CallState::Given { worker, found, since: self.now, ending: Ending::Not };
        self.given += 1;
        self.in_flight.insert((self.now, call));
        self.last_activity = self.now;
        if let Some(entry) = self.workers.get_mut(&worker) {
            entry.used += 1;
        }
        let gave = self.step_worker(worker, Input::Give(call));
        debug_assert!(
            gave.is_ok(),
            "only a worker that waits, or is forked for the call, is found"
        );
        self.set_call_timer(call);
        out.push(Effect::Give { call, worker });
    }

    /// Sends a call cold. It stays open until the client says how it ended.
    pub(super) fn begin_cold(
        &mut self,
        call: CallId,
        reason: ColdReason,
        learning: Learning,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.calls.get_mut(&call) else {
            return;
        };
        entry.state = CallState::Cold { reason, since: self.now };
        self.in_flight.insert((self.now, call));
        self.last_activity = self.now;
        self.set_call_timer(call);
        out.push(Effect::RunCold { call, reason, learning });
    }

    /// Forks a copy off a ready zygote.
    pub(super) fn fork(
        &mut self,
        pool: PoolId,
        zygote: WorkerId,
        pages: Pages,
        out: &mut Vec<Effect>,
    ) -> Option<WorkerId> {
        match &mut self.workers.get_mut(&zygote)?.role {
            Role::Zygote { copies } => *copies += 1,
            Role::Copy { .. } | Role::Standby => return None,
        }
        let worker = self.new_worker(pool, Role::Copy { zygote }, pages)?;
        out.push(Effect::Fork { zygote, worker, pages });
        Some(worker)
    }

    /// Remembers a program, and forgets those that were not used for longest if there are too
    /// many: they are learned again. What is pooled, or
    /// learned by a running call, stays.
    pub(super) fn remember_program(&mut self, id: ProgramId) {
        let now = self.now;
        self.programs.entry(id).or_insert_with(|| Program::new(now)).last_used = now;
        let most = usize::try_from(self.limits.programs_max).unwrap_or(usize::MAX);
        let surplus = self.programs.len().saturating_sub(most);
        if surplus == 0 {
            return;
        }
        let pooled: BTreeSet<ProgramId> = self.pools.values().map(|pool| pool.program).collect();
        let mut oldest: Vec<(Time, ProgramId)> = self
            .programs
            .iter()
            .filter(|(other, program)| {
                let learning = match program.lesson {
                    LessonState::Learning(run) => self.calls.contains_key(&run.call),
                    LessonState::None | LessonState::Stale | LessonState::Learned(_) => false,
                };
                **other != id && !learning && !pooled.contains(other)
            })
            .map(|(other, program)| (program.last_used, *other))
            .collect();
        oldest.sort_unstable();
        for (_, program) in oldest.into_iter().take(surplus) {
            self.programs.remove(&program);
            self.timers.set(Timer::Program(program), None);
        }
    }
}
