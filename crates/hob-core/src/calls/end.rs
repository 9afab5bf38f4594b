//! How a call ends: its caller leaves, its cold run ends, its time is up; and settling, once.

use crate::event::{ColdTiming, Effect, Found, Learning, Performed};
use crate::ids::{CallId, Time, WorkerId};
use crate::outcome::{CancelledBy, ColdReason, Outcome};
use crate::phase::Phase;
use hob_wire::exit::Exit;

use crate::pool::engine::{Engine, Freed};
use crate::pool::processes::{SIGKILL, SIGTERM};
use crate::pool::timers::Timer;

use super::Calls;
use super::differs::{Compared, End, Ran};
use super::tables::{Call, CallState, Ending, LessonState};

impl Calls {
    pub(crate) fn caller_gone(&mut self, engine: &mut Engine, call: CallId) {
        if self.leaves_preparing(engine, call) {
            return;
        }
        // A caller that leaves after its call was settled is how every call ends.
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        match entry.state {
            CallState::Cold { .. } => {}
            CallState::Queued { pool, .. } => self.leave_queue(engine, call, pool),
            CallState::Given { worker, .. } => engine.kill(worker),
        }
        self.settle(engine, call, Outcome::Cancelled(CancelledBy::Caller));
    }

    pub(crate) fn taken_back(&mut self, engine: &mut Engine, call: CallId) {
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        let CallState::Cold { .. } = entry.state else {
            engine.ignore();
            return;
        };
        // Nothing was run to learn from, which says nothing about the program.
        if let Some(program) = self.programs.get_mut(&entry.program)
            && let LessonState::Learning(run) = program.lesson
            && run.call == call
        {
            program.lesson = LessonState::None;
        }
        self.settle_unperformed(engine, call, Outcome::Cancelled(CancelledBy::Caller));
    }

    pub(crate) fn cold_ended(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        exit: Exit,
        timing: ColdTiming,
    ) {
        let cold = self.calls.get(&call).map(|entry| entry.state);
        let Some(CallState::Cold { .. }) = cold else {
            engine.ignore();
            return;
        };
        let outcome = match timing {
            ColdTiming::InTime => Outcome::Exited(exit),
            ColdTiming::TimedOut => Outcome::TimedOut(Phase::Main),
        };
        self.settle(engine, call, outcome);
    }

    /// The time of this call has come: its deadline, the end of its waiting, or the next step of
    /// its killing.
    pub(crate) fn call_due(&mut self, engine: &mut Engine, call: CallId) {
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        let timed_out = entry.deadline.is_some_and(|deadline| deadline <= engine.now);
        match entry.state {
            CallState::Cold { .. } => {}
            CallState::Queued { pool, .. } if timed_out => {
                self.leave_queue(engine, call, pool);
                self.settle(engine, call, Outcome::TimedOut(Phase::Queue));
            }
            CallState::Queued { pool, .. } => {
                self.leave_queue(engine, call, pool);
                self.begin_cold(engine, call, ColdReason::Busy, Learning::No);
            }
            CallState::Given { worker, ending: Ending::Not, .. } => {
                engine.out.push(Effect::Signal { worker, signal: SIGTERM });
                self.set_ending(engine, call, Ending::Terminated);
            }
            CallState::Given { worker, ending: Ending::Terminated, .. } => {
                engine.out.push(Effect::Signal { worker, signal: SIGKILL });
                self.set_ending(engine, call, Ending::Killed);
            }
            // What survives SIGKILL does not hold its caller.
            CallState::Given { worker, ending: Ending::Killed, .. } => {
                engine.kill(worker);
                self.settle(engine, call, Outcome::TimedOut(Phase::Main));
            }
        }
    }

    /// Takes the next step of a given call's killing; the one after it has its time.
    fn set_ending(&mut self, engine: &mut Engine, call: CallId, to: Ending) {
        if let Some(entry) = self.calls.get_mut(&call)
            && let CallState::Given { ending, .. } = &mut entry.state
        {
            *ending = to;
        }
        let next = engine.now.after_us(engine.limits.kill_grace_us);
        engine.timers.set(Timer::Call(call), Some(next));
    }

    /// Sets the timer of a call whose state is new.
    pub(crate) fn set_call_timer(&mut self, engine: &mut Engine, call: CallId) {
        let at = self.calls.get(&call).and_then(|entry| match entry.state {
            // The client times its own runs.
            CallState::Cold { .. } => None,
            CallState::Queued { until, .. } => {
                Some(entry.deadline.map_or(until, |deadline| deadline.min(until)))
            }
            CallState::Given { .. } => entry.deadline,
        });
        engine.timers.set(Timer::Call(call), at);
    }

    /// What a given call's end means: its deadline may have brought it about.
    pub(crate) fn outcome_of(&self, call: CallId, outcome: Outcome) -> Outcome {
        match self.calls.get(&call).map(|entry| entry.state) {
            Some(CallState::Given { ending: Ending::Terminated | Ending::Killed, .. }) => {
                Outcome::TimedOut(Phase::Main)
            }
            Some(
                CallState::Given { ending: Ending::Not, .. }
                | CallState::Cold { .. }
                | CallState::Queued { .. },
            )
            | None => outcome,
        }
    }

    /// Ends a call with its one outcome.
    pub(crate) fn settle(&mut self, engine: &mut Engine, call: CallId, outcome: Outcome) {
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        let how = match entry.executes {
            Some(reason) => Performed::InPlace(reason),
            None => self.performed(engine, entry.state),
        };
        self.settle_as(engine, call, outcome, how);
    }

    /// Ends a call whose give or fork came to nothing: nobody performed it.
    pub(crate) fn settle_unperformed(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        outcome: Outcome,
    ) {
        self.settle_as(engine, call, outcome, Performed::Not);
    }

    fn settle_as(&mut self, engine: &mut Engine, call: CallId, outcome: Outcome, how: Performed) {
        self.leave_flight(engine, call);
        self.begin_layers(engine, call);
        let Some(entry) = self.calls.remove(&call) else {
            return;
        };
        engine.timers.set(Timer::Call(call), None);
        engine.last_activity = engine.now;
        self.settled += 1;
        if let Some(program) = self.programs.get(&entry.program)
            && let LessonState::Learning(run) = program.lesson
            && run.call == call
        {
            let until = engine.now.after_us(engine.limits.learn_wait_us);
            engine.timers.set(Timer::Program(entry.program), Some(until));
        }
        if let CallState::Given { worker, .. } = entry.state
            && let Some(pool) = engine.workers.get(&worker).map(|worker| worker.pool)
            && let Some(pool) = engine.pools.get_mut(&pool)
        {
            pool.last_used = engine.now;
        }
        engine.out.push(Effect::Settle { call, outcome, how });
        self.compare(engine, &entry, outcome, how);
    }

    /// Compares how a call ended with others of its work. Of a program that fails warm and succeeds
    /// cold nothing warm is of use.
    fn compare(&mut self, engine: &mut Engine, call: &Call, outcome: Outcome, how: Performed) {
        let ended = Ran::of(how).zip(End::of(outcome, call.uncaught));
        let (Some((ran, end)), Some(program)) = (ended, self.programs.get_mut(&call.program))
        else {
            return;
        };
        match program.ends.take(call.work, ran, end) {
            Compared::AsBefore => {}
            Compared::Differs => self.drop_pools_of(engine, call.program, ColdReason::Differs),
        }
    }

    fn performed(&self, engine: &Engine, state: CallState) -> Performed {
        match state {
            CallState::Cold { reason, .. } => Performed::Cold(reason),
            CallState::Queued { .. } => Performed::Not,
            CallState::Given { worker, found, .. } => self.by(engine, worker, found),
        }
    }

    fn by(&self, engine: &Engine, worker: WorkerId, found: Found) -> Performed {
        match engine.workers.get(&worker) {
            Some(entry) => Performed::Warm { recipe: entry.recipe, worker, found },
            None => Performed::Not,
        }
    }

    /// A given or cold call is that no longer.
    pub(crate) fn leave_flight(&mut self, engine: &mut Engine, call: CallId) {
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        let since: Time = match entry.state {
            CallState::Queued { .. } => return,
            CallState::Cold { since, .. } => since,
            CallState::Given { since, .. } => {
                self.given -= 1;
                engine.freed = Freed::Yes;
                since
            }
        };
        engine.in_flight.remove(&(since, call));
    }
}
