//! How a call ends: its caller leaves, its cold run ends, its time is up; and settling, once.

use crate::event::{ColdTiming, Effect, Found, Learning, Performed};
use crate::ids::{CallId, Time, WorkerId};
use crate::outcome::{CancelledBy, ColdReason, Outcome};
use crate::phase::Phase;
use hob_wire::exit::Exit;

use super::tables::{CallState, Ending, LessonState};
use super::{Freed, SIGKILL, SIGTERM, Supervisor, Timer};

impl Supervisor {
    pub(super) fn caller_gone(&mut self, call: CallId, out: &mut Vec<Effect>) {
        // A caller that leaves after its call was settled is how every call ends.
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        match entry.state {
            CallState::Cold { .. } => {}
            CallState::Queued { pool, .. } => self.leave_queue(call, pool),
            CallState::Given { worker, .. } => self.kill(worker, out),
        }
        self.settle(call, Outcome::Cancelled(CancelledBy::Caller), out);
    }

    pub(super) fn taken_back(&mut self, call: CallId, out: &mut Vec<Effect>) {
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        let CallState::Cold { .. } = entry.state else {
            self.ignore();
            return;
        };
        // Nothing was run to learn from, which says nothing about the program.
        if let Some(program) = self.programs.get_mut(&entry.program)
            && let LessonState::Learning(run) = program.lesson
            && run.call == call
        {
            program.lesson = LessonState::None;
        }
        self.settle_unperformed(call, Outcome::Cancelled(CancelledBy::Caller), out);
    }

    pub(super) fn cold_ended(
        &mut self,
        call: CallId,
        exit: Exit,
        timing: ColdTiming,
        out: &mut Vec<Effect>,
    ) {
        let cold = self.calls.get(&call).map(|entry| entry.state);
        let Some(CallState::Cold { .. }) = cold else {
            self.ignore();
            return;
        };
        let outcome = match timing {
            ColdTiming::InTime => Outcome::Exited(exit),
            ColdTiming::TimedOut => Outcome::TimedOut(Phase::Main),
        };
        self.settle(call, outcome, out);
    }

    /// The time of this call has come: its deadline, the end of its waiting, or the next step of
    /// its killing.
    pub(super) fn call_due(&mut self, call: CallId, out: &mut Vec<Effect>) {
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        let timed_out = entry.deadline.is_some_and(|deadline| deadline <= self.now);
        match entry.state {
            CallState::Cold { .. } => {}
            CallState::Queued { pool, .. } if timed_out => {
                self.leave_queue(call, pool);
                self.settle(call, Outcome::TimedOut(Phase::Queue), out);
            }
            CallState::Queued { pool, .. } => {
                self.leave_queue(call, pool);
                self.begin_cold(call, ColdReason::Busy, Learning::No, out);
            }
            CallState::Given { worker, ending: Ending::Not, .. } => {
                out.push(Effect::Signal { worker, signal: SIGTERM });
                self.set_ending(call, Ending::Terminated);
            }
            CallState::Given { worker, ending: Ending::Terminated, .. } => {
                out.push(Effect::Signal { worker, signal: SIGKILL });
                self.set_ending(call, Ending::Killed);
            }
            // What survives SIGKILL does not hold its caller.
            CallState::Given { worker, ending: Ending::Killed, .. } => {
                self.kill(worker, out);
                self.settle(call, Outcome::TimedOut(Phase::Main), out);
            }
        }
    }

    /// Takes the next step of a given call's killing; the one after it has its time.
    fn set_ending(&mut self, call: CallId, to: Ending) {
        if let Some(entry) = self.calls.get_mut(&call)
            && let CallState::Given { ending, .. } = &mut entry.state
        {
            *ending = to;
        }
        let next = self.now.after_us(self.limits.kill_grace_us);
        self.timers.set(Timer::Call(call), Some(next));
    }

    /// Sets the timer of a call whose state is new.
    pub(super) fn set_call_timer(&mut self, call: CallId) {
        let at = self.calls.get(&call).and_then(|entry| match entry.state {
            // The client times its own runs.
            CallState::Cold { .. } => None,
            CallState::Queued { until, .. } => {
                Some(entry.deadline.map_or(until, |deadline| deadline.min(until)))
            }
            CallState::Given { .. } => entry.deadline,
        });
        self.timers.set(Timer::Call(call), at);
    }

    /// What a given call's end means: its deadline may have brought it about.
    pub(super) fn outcome_of(&self, call: CallId, outcome: Outcome) -> Outcome {
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
    pub(super) fn settle(&mut self, call: CallId, outcome: Outcome, out: &mut Vec<Effect>) {
        let Some(how) = self.calls.get(&call).map(|entry| self.performed(entry.state)) else {
            return;
        };
        self.settle_as(call, outcome, how, out);
    }

    /// Ends a call whose give or fork came to nothing: nobody performed it.
    pub(super) fn settle_unperformed(
        &mut self,
        call: CallId,
        outcome: Outcome,
        out: &mut Vec<Effect>,
    ) {
        self.settle_as(call, outcome, Performed::Not, out);
    }

    fn settle_as(&mut self, call: CallId, outcome: Outcome, how: Performed, out: &mut Vec<Effect>) {
        self.leave_flight(call);
        let Some(entry) = self.calls.remove(&call) else {
            return;
        };
        self.timers.set(Timer::Call(call), None);
        self.last_activity = self.now;
        self.settled += 1;
        if let Some(program) = self.programs.get(&entry.program)
            && let LessonState::Learning(run) = program.lesson
            && run.call == call
        {
            let until = self.now.after_us(self.limits.learn_wait_us);
            self.timers.set(Timer::Program(entry.program), Some(until));
        }
        if let CallState::Given { worker, .. } = entry.state
            && let Some(pool) = self.workers.get(&worker).map(|worker| worker.pool)
            && let Some(pool) = self.pools.get_mut(&pool)
        {
            pool.last_used = self.now;
        }
        out.push(Effect::Settle { call, outcome, how });
    }

    fn performed(&self, state: CallState) -> Performed {
        match state {
            CallState::Cold { reason, .. } => Performed::Cold(reason),
            CallState::Queued { .. } => Performed::Not,
            CallState::Given { worker, found, .. } => self.by(worker, found),
        }
    }

    fn by(&self, worker: WorkerId, found: Found) -> Performed {
        match self.workers.get(&worker) {
            Some(entry) => Performed::Warm { recipe: entry.recipe, worker, found },
            None => Performed::Not,
        }
    }

    /// A given or cold call is that no longer.
    pub(super) fn leave_flight(&mut self, call: CallId) {
        let Some(entry) = self.calls.get(&call) else {
            return;
        };
        let since: Time = match entry.state {
            CallState::Queued { .. } => return,
            CallState::Cold { since, .. } => since,
            CallState::Given { since, .. } => {
                self.given -= 1;
                self.freed = Freed::Yes;
                since
            }
        };
        self.in_flight.remove(&(since, call));
    }
}
