//! A call arrives: planned, then given, queued or sent cold.

mod prepare;

use std::collections::BTreeSet;

use crate::event::{Aim, Arrival, Effect, Found, Learning, Pages, Prepared, Told};
use crate::ids::{CallId, PoolId, ProgramId, Time, Work, WorkerId};
use crate::isolation::{Name, Origin, Recipe};
use crate::key::Key;
use crate::outcome::ColdReason;
use crate::plan::{Plan, ProgramState, plan};
use crate::pool::State;
use crate::pool::engine::{Engine, Freed, Stage};
use crate::pool::timers::Timer;
use crate::pool::worker::{State as WorkerState, Worker};
use crate::terms::Terms;

use super::Calls;
use super::differs::{Ends, Uncaught};
use super::tables::{Call, CallState, Ending, LearningRun, LessonState, Program, Source, Wish};

impl Calls {
    pub(crate) fn arrived(&mut self, engine: &mut Engine, arrival: &Arrival) {
        if self.calls.contains_key(&arrival.call) || self.preparing.contains_key(&arrival.call) {
            engine.ignore();
            return;
        }
        engine.last_activity = engine.now;
        engine.timers.set(Timer::Idle, None);
        self.remember_program(engine, arrival.program);
        if let Some(program) = self.programs.get_mut(&arrival.program) {
            program.origin = arrival.facts.origin;
            program.aim = arrival.aim;
            match arrival.aim {
                Aim::Perform | Aim::Prove => program.ends.arrived(arrival.work.edition),
                // Whoever asks for it to be made warm wants it tried again.
                Aim::Prepare => program.ends = Ends::of_edition(arrival.work.edition),
            }
        }
        let key = arrival.key.filter(|_| !self.must_learn(arrival.program));
        let plan = plan(&arrival.facts, self.standing(engine, arrival.program, arrival.work), key);
        match (plan, arrival.aim) {
            (Plan::Refuse(reason), _) => {
                self.settled += 1;
                engine.out.push(Effect::Refuse { call: arrival.call, reason });
            }
            (Plan::Cold(reason), Aim::Prepare) => {
                self.prepared(engine, arrival.call, Prepared::Cold(reason));
            }
            (Plan::Warm(key), Aim::Prepare) => self.prepare(engine, arrival, key),
            (Plan::Cold(reason), Aim::Perform | Aim::Prove) => {
                self.open_cold(engine, arrival, reason)
            }
            (Plan::Warm(key), Aim::Perform | Aim::Prove) => self.open_warm(engine, arrival, key),
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
    fn standing(&self, engine: &Engine, program: ProgramId, work: Work) -> ProgramState {
        if engine.stage != Stage::Open {
            return ProgramState::Stopping;
        }
        let Some(program) = self.programs.get(&program) else {
            return ProgramState::Unlearned;
        };
        let passed = |until: Option<Time>| until.is_none_or(|until| until <= engine.now);
        match program.lesson {
            LessonState::None => ProgramState::Unlearned,
            LessonState::Stale => ProgramState::Stale,
            LessonState::Learning(run) => {
                let patience = run.since.after_us(engine.limits.learn_patience_us);
                if engine.now < patience {
                    ProgramState::BeingLearned
                } else {
                    ProgramState::Unlearned
                }
            }
            LessonState::Learned(_) if !passed(program.failed_until) => ProgramState::WarmFailed,
            LessonState::Learned(_) if !passed(program.memory_until) => ProgramState::OverBudget,
            LessonState::Learned(_) if program.ends.differs().is_some() => ProgramState::Differs,
            LessonState::Learned(_) if program.ends.is_compared(work) => ProgramState::Compared,
            LessonState::Learned(_) if program.pace.is_cold(engine.now) => ProgramState::SlowerWarm,
            LessonState::Learned(_) => ProgramState::Learned,
        }
    }

    /// Opens a call that the plan sends cold; some of them learn.
    fn open_cold(&mut self, engine: &mut Engine, arrival: &Arrival, reason: ColdReason) {
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
            | ColdReason::Variables
            | ColdReason::SlowerWarm
            | ColdReason::Compared
            | ColdReason::Differs
            | ColdReason::NotAsLoaded
            | ColdReason::Signals
            | ColdReason::Processors
            | ColdReason::Encodings
            | ColdReason::Directory
            | ColdReason::Environment
            | ColdReason::Edited
            | ColdReason::WorkerClosed
            | ColdReason::Stopping => Learning::No,
        };
        if learns == Learning::Yes
            && let Some(program) = self.programs.get_mut(&arrival.program)
        {
            let wish = Wish::of(arrival);
            let run = LearningRun { call: arrival.call, since: engine.now, wish };
            program.lesson = LessonState::Learning(run);
            engine.timers.set(Timer::Program(arrival.program), None);
        }
        self.open(engine, arrival, Source::Waiting);
        // So is a call for which another one is profiled, or whose program cannot be loaded ahead.
        let others = [ColdReason::BeingLearned, ColdReason::WarmFailed];
        let may = learns == Learning::Yes || others.contains(&reason);
        if may && self.place_in_layer(engine, arrival.call, learns) {
            return;
        }
        self.begin_cold(engine, arrival.call, reason, learns);
    }

    /// Opens a call that the plan wants warm.
    fn open_warm(&mut self, engine: &mut Engine, arrival: &Arrival, key: Key) {
        let wish = Wish::of(arrival);
        let recipe = self.recipe(engine, arrival.program, wish);
        if recipe.name() == Name::Spawn {
            self.open_cold(engine, arrival, ColdReason::SpawnAsked);
            return;
        }
        self.is_learned(arrival.program, wish);
        let source = match (recipe.origin, arrival.ahead) {
            (Origin::Fork, Some(0)) => Source::OnDemand,
            (Origin::Fork | Origin::Exec, _) => Source::Waiting,
        };
        self.open(engine, arrival, source);
        let Some(pool) =
            engine.pool_for(arrival.program, key, Terms::of_calls(recipe, &engine.limits))
        else {
            self.begin_cold(engine, arrival.call, ColdReason::Busy, Learning::No);
            return;
        };
        self.note_arrival(engine, pool, arrival.ahead, arrival.aim);
        self.place(engine, arrival.call, pool);
    }

    /// A key of a program that was not learned here comes from an earlier daemon's lesson, or from
    /// a runtime that has nothing to learn.
    pub(in crate::calls) fn is_learned(&mut self, program: ProgramId, wish: Wish) {
        if let Some(program) = self.programs.get_mut(&program)
            && !matches!(program.lesson, LessonState::Learned(_))
        {
            program.lesson = LessonState::Learned(wish);
        }
    }

    fn open(&mut self, engine: &mut Engine, arrival: &Arrival, source: Source) {
        let deadline = arrival.timeout_us.map(|timeout_us| engine.now.after_us(timeout_us));
        let call = Call {
            program: arrival.program,
            work: arrival.work,
            aim: arrival.aim,
            state: CallState::Cold { reason: ColdReason::Warming, since: engine.now },
            deadline,
            source,
            gives: 0,
            executes: None,
            uncaught: Uncaught::default(),
            learning: Learning::No,
            found: None,
            layers: Self::layers_for(arrival),
            wants_layers: false,
        };
        self.calls.insert(arrival.call, call);
    }

    /// What a wish means for this program: forks, unless it cannot be forked, or its runtime never is.
    pub(in crate::calls) fn recipe(
        &self,
        engine: &Engine,
        program: ProgramId,
        wish: Wish,
    ) -> Recipe {
        let ahead =
            wish.ahead.unwrap_or(engine.limits.ahead_max).min(engine.limits.ahead_asked_max);
        let recipe = wish.isolation.unwrap_or(Name::Fork).lower(ahead);
        let is_forked = self
            .programs
            .get(&program)
            .is_none_or(|program| program.demoted.is_none() && program.origin == Origin::Fork);
        match recipe.origin {
            Origin::Fork if !is_forked => Name::Standby.lower(ahead.max(1)),
            Origin::Fork | Origin::Exec => recipe,
        }
    }

    /// Begins a program's pool before a call asks for it.
    pub(crate) fn begin_pool(
        &self,
        engine: &mut Engine,
        program: ProgramId,
        key: Key,
        asked: Option<u32>,
    ) {
        let recipe = self.recipe(engine, program, Wish { isolation: None, ahead: asked });
        let terms = Terms::of_calls(recipe, &engine.limits);
        if let Some(pool) = engine.pool_for(program, key, terms) {
            let aim = self.programs.get(&program).map_or(Aim::Perform, |program| program.aim);
            engine.begin_pool(pool, asked, aim);
        }
    }

    pub(in crate::calls) fn note_arrival(
        &mut self,
        engine: &mut Engine,
        id: PoolId,
        ahead: Option<u32>,
        aim: Aim,
    ) {
        let Some(pool) = engine.pools.get_mut(&id) else {
            return;
        };
        pool.is_used_for(aim, &engine.limits);
        let waiting = u32::try_from(pool.queue.len()).unwrap_or(u32::MAX);
        pool.arrivals.note(engine.now, pool.busy + waiting + 1, engine.limits.rate_us);
        // A call that takes no copy has no say in how many wait.
        if ahead != Some(0) {
            pool.asked = ahead;
            pool.terms.recipe.ahead =
                ahead.unwrap_or(engine.limits.ahead_max).min(engine.limits.ahead_asked_max);
        }
        pool.requests += 1;
        pool.last_used = engine.now;
        engine.try_again(id);
        engine.timers.set(Timer::Pool(id), Some(engine.now.after_us(engine.limits.rate_us)));
    }

    /// Finds a worker for a call that has just arrived, or decides what else becomes of it.
    fn place(&mut self, engine: &mut Engine, call: CallId, id: PoolId) {
        let Some(pool) = engine.pools.get(&id) else {
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
            if !self.place_in_layer(engine, call, Learning::No) {
                self.begin_cold(engine, call, reason, Learning::No);
            }
            return;
        }
        match self.find_worker(engine, call, id) {
            Some((worker, found)) => self.give(engine, call, worker, found),
            None => self.enqueue(engine, call, id),
        }
    }

    /// A worker that this call can be given now: one that waits, or one that is forked for it.
    pub(crate) fn find_worker(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        id: PoolId,
    ) -> Option<(WorkerId, Found)> {
        if self.given >= engine.limits.calls_max {
            return None;
        }
        let source = self.calls.get(&call)?.source;
        let pool = engine.pools.get(&id)?;
        if source == Source::Waiting
            && let Some(worker) = pool.idle.last()
        {
            let found = match pool.terms.recipe.origin {
                Origin::Fork => Found::CopyReady,
                Origin::Exec => Found::StandbyReady,
            };
            return Some((*worker, found));
        }
        if source == Source::Waiting
            && let Some(worker) = self.plain_to_come(engine, id)
        {
            return Some((worker, Found::ForkedOnDemand));
        }
        let State::Ready(zygote) = pool.state else {
            return None;
        };
        if pool.live() >= engine.limits.workers_max {
            return None;
        }
        let worker = engine.fork(id, zygote, Pages::Unpaid)?;
        Some((worker, Found::ForkedOnDemand))
    }

    /// A plain copy of this pool that is being forked: a call that waits in its channel is there
    /// sooner than one for which another is forked.
    fn plain_to_come(&self, engine: &Engine, id: PoolId) -> Option<WorkerId> {
        let pool = engine.pools.get(&id)?;
        if pool.starting == 0 {
            return None;
        }
        let found = |entry: &Worker| {
            entry.pool == id
                && entry.state == WorkerState::Starting
                && entry.pages == Pages::Plain
                && entry.used == 0
        };
        engine.workers.iter().rev().find(|(_, entry)| found(entry)).map(|(worker, _)| *worker)
    }

    /// Lets a call wait for a worker of its pool, or sends it cold if too many wait.
    pub(crate) fn enqueue(&mut self, engine: &mut Engine, call: CallId, id: PoolId) {
        if self.queued >= engine.limits.queue_max {
            self.begin_cold(engine, call, ColdReason::Busy, Learning::No);
            return;
        }
        let until = engine.now.after_us(engine.limits.queue_wait_us);
        let (Some(entry), Some(pool)) = (self.calls.get_mut(&call), engine.pools.get_mut(&id))
        else {
            return;
        };
        entry.state = CallState::Queued { pool: id, until };
        pool.queue.push_back(call);
        self.queued += 1;
        self.set_call_timer(engine, call);
        engine.out.push(Effect::Queue { call });
    }

    /// Gives queued calls what has become free: within a pool in order, among pools whoever has
    /// waited longest.
    pub(crate) fn serve_queues(&mut self, engine: &mut Engine) {
        if engine.freed == Freed::No {
            return;
        }
        engine.freed = Freed::No;
        if self.queued == 0 {
            return;
        }
        let mut fronts: Vec<(CallId, PoolId)> = engine
            .pools
            .values()
            .filter(|pool| pool.serves.program().is_some())
            .filter_map(|pool| Some((*pool.queue.front()?, pool.id)))
            .collect();
        fronts.sort_unstable();
        for (_, id) in fronts {
            while let Some(call) =
                engine.pools.get(&id).and_then(|pool| pool.queue.front().copied())
            {
                let Some((worker, _)) = self.find_worker(engine, call, id) else {
                    break;
                };
                self.leave_queue(engine, call, id);
                self.give(engine, call, worker, Found::Queued);
            }
        }
    }

    /// Takes a call out of its pool's queue.
    pub(crate) fn leave_queue(&mut self, engine: &mut Engine, call: CallId, id: PoolId) {
        if let Some(pool) = engine.pools.get_mut(&id) {
            pool.queue.retain(|queued| *queued != call);
        }
        self.queued -= 1;
    }

    pub(crate) fn give(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        worker: WorkerId,
        found: Found,
    ) {
        let Some(entry) = self.calls.get_mut(&call) else {
            return;
        };
        entry.gives += 1;
        let told = match (entry.found, entry.learning) {
            (None, _) => Told::Nothing,
            (Some(_), Learning::No) => Told::Program,
            (Some(_), Learning::Yes) => Told::Profiled,
        };
        let found = entry.found.unwrap_or(found);
        entry.state = CallState::Given { worker, found, since: engine.now, ending: Ending::Not };
        self.given += 1;
        engine.in_flight.insert((engine.now, call));
        engine.last_activity = engine.now;
        engine.give(worker, call);
        self.set_call_timer(engine, call);
        engine.out.push(Effect::Give { call, worker, told });
    }

    /// Sends a call cold. It stays open until the client says how it ended.
    pub(crate) fn begin_cold(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        reason: ColdReason,
        learning: Learning,
    ) {
        let Some(entry) = self.calls.get_mut(&call) else {
            return;
        };
        entry.state = CallState::Cold { reason, since: engine.now };
        engine.in_flight.insert((engine.now, call));
        engine.last_activity = engine.now;
        self.set_call_timer(engine, call);
        engine.out.push(Effect::RunCold { call, reason, learning });
    }

    /// Remembers a program, and forgets those that were not used for longest if there are too
    /// many: they are learned again. What is pooled, or
    /// learned by a running call, stays.
    pub(crate) fn remember_program(&mut self, engine: &mut Engine, id: ProgramId) {
        let now = engine.now;
        self.programs.entry(id).or_insert_with(|| Program::new(now)).last_used = now;
        let most = usize::try_from(engine.limits.programs_max).unwrap_or(usize::MAX);
        let surplus = self.programs.len().saturating_sub(most);
        if surplus == 0 {
            return;
        }
        let pooled: BTreeSet<ProgramId> =
            engine.pools.values().filter_map(|pool| pool.serves.program()).collect();
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
            engine.timers.set(Timer::Program(program), None);
        }
    }
}
