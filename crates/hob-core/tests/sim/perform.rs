//! The daemon's hands: effects change the world. Whatever must not be asked for is a violation.

use hob_core::event::{
    Effect, Event, ForkFailure, Found, GiveFailure, Layer, Learning, Pages, Performed, Prepared,
    Told, Took,
};
use hob_core::ids::{CallId, PoolId, ProgramId, WorkerId};
use hob_core::isolation::Uses;
use hob_core::key::Key;
use hob_core::outcome::{CancelledBy, ColdReason, Outcome};
use hob_wire::exit::Exit;

use crate::requests::Duty;
use crate::world::{Happening, Kind, Process, World};

/// Says what was violated.
macro_rules! hold {
    ($holds:expr, $($text:tt)*) => {
        if !$holds {
            return Err(format!($($text)*));
        }
    };
}
pub(crate) use hold;

impl World {
    pub(crate) fn perform(&mut self, effect: Effect) -> Result<(), String> {
        hold!(!self.exited, "{effect:?} after Exit");
        match effect {
            Effect::RunCold { call, reason, learning } => {
                *self.totals.cold.entry(reason.code()).or_default() += 1;
                self.run_cold(call, learning)?;
                self.check_slower(call, reason)?;
                self.check_differs(call, reason)?;
                // A caller that was seen to have left was sent nothing.
                let seen = |event: &Event| matches!(event, Event::TakenBack { call: back } if *back == call);
                if !self.at_once.back().is_some_and(seen) {
                    self.callers.get_mut(&call).expect("it was just run").cold = Some(reason);
                }
                Ok(())
            }
            Effect::Refuse { call, .. } => {
                *self.totals.outcomes.entry("refused").or_default() += 1;
                self.end_call(call)
            }
            Effect::Prepared { call, prepared } => self.prepared(call, prepared),
            Effect::Queue { call } => {
                let caller = self.caller(call)?;
                hold!(!caller.prepares, "{call:?} is queued and not to be performed");
                hold!(!caller.queued && caller.cold.is_none(), "{call:?} is queued twice");
                caller.queued = true;
                Ok(())
            }
            Effect::StartZygote { pool, zygote, key, .. } => {
                self.start(zygote, Kind::Zygote, pool, key)
            }
            Effect::StartStandby { pool, worker, key, .. } => {
                self.start(worker, Kind::Standby, pool, key)
            }
            Effect::Fork { zygote, worker, pages } => self.fork(zygote, worker, pages),
            Effect::Give { call, worker, told } => self.give(call, worker, told),
            Effect::Signal { worker, signal } => self.signal(worker, signal),
            Effect::Retire { worker } => self.retire(worker),
            Effect::Overstays { .. } => Ok(()),
            Effect::Recall { worker } => self.recall(worker),
            Effect::Forget { pool } => self.forget(pool),
            Effect::Loaded { pool, loaded } => self.loaded(pool, loaded),
            Effect::Settle { call, outcome, how } => self.settle(call, outcome, how),
            Effect::Request(effect) => self.perform_request(effect),
            Effect::Exit => {
                self.exited = true;
                Ok(())
            }
        }
    }

    /// A call that is not to be performed knows what the next one of its kind will find.
    fn prepared(&mut self, call: CallId, prepared: Prepared) -> Result<(), String> {
        let caller = self.caller(call)?;
        hold!(caller.prepares, "{call:?} was to be performed");
        let (key, left) = (caller.key, caller.left);
        match prepared {
            Prepared::Ready => {
                *self.totals.outcomes.entry("prepared").or_default() += 1;
                let is_there = |process: &Process| {
                    let waits = process.was_ready && !process.told_to_end && !process.killed;
                    Some(process.key) == key && waits && process.call.is_none()
                };
                hold!(self.processes.values().any(is_there), "{call:?} has nothing ready");
            }
            Prepared::Cold(_) => *self.totals.outcomes.entry("not prepared").or_default() += 1,
            Prepared::Left => hold!(left, "{call:?} has not left"),
        }
        self.end_call(call)
    }

    /// A call that is known and not settled.
    fn caller(&mut self, call: CallId) -> Result<&mut crate::world::Caller, String> {
        match self.callers.get_mut(&call) {
            Some(caller) if !caller.settled => Ok(caller),
            Some(_) => Err(format!("{call:?} was settled before")),
            None => Err(format!("{call:?} never arrived")),
        }
    }

    /// A process whose end was not told.
    fn process(&mut self, worker: WorkerId) -> Result<&mut Process, String> {
        self.processes.get_mut(&worker).ok_or(format!("{worker:?} does not live"))
    }

    fn run_cold(&mut self, call: CallId, learning: Learning) -> Result<(), String> {
        let run = self.rng.magnitude(self.scenario.run_max_us);
        let now = self.now;
        let caller = self.caller(call)?;
        hold!(!caller.prepares, "{call:?} is sent cold and not to be performed");
        hold!(caller.cold.is_none(), "{call:?} is sent cold twice");
        hold!(caller.given.is_none(), "{call:?} is given and sent cold");
        hold!(caller.claim || caller.left, "{call:?} is sent cold although it was taken");
        if caller.left {
            // Seen, or not: it may have left right after the look.
            if self.rng.chance(500) {
                self.at_once.push_back(Event::TakenBack { call });
            }
            return Ok(());
        }
        // From here on the caller is a process of its own.
        caller.claim = false;
        let run = match caller.deadline {
            Some(deadline) => run.min(deadline.us_since(now)),
            None => run,
        };
        let (program, generation) = (caller.program, caller.generation);
        self.later(run, Happening::ColdRunEnds(call));
        if learning == Learning::Yes && !self.rng.chance(50) {
            let wait = self.rng.magnitude(2_000_000);
            self.later(run + wait, Happening::NotesArrive(program, generation));
        }
        Ok(())
    }

    /// No program runs cold for the sake of speed before enough of its warm calls were measured.
    fn check_slower(&mut self, call: CallId, reason: ColdReason) -> Result<(), String> {
        let least = self.limits.pace_calls;
        let program = self.caller(call)?.program;
        let measured = self.programs.get(&program).map_or(0, |program| program.warm_measured);
        hold!(
            reason != ColdReason::SlowerWarm || measured >= least,
            "{program:?} is slower warm after {measured} calls"
        );
        Ok(())
    }

    /// No call is compared, and no program differs, before a warm call has failed; and none differs
    /// before a cold one of the same work has succeeded.
    fn check_differs(&mut self, call: CallId, reason: ColdReason) -> Result<(), String> {
        let (program, work) = (self.caller(call)?.program, self.caller(call)?.work);
        let ends = &self.programs.entry(program).or_default().ends;
        let failed = |work| ends.contains(&(work, true, false));
        let found =
            || ends.iter().any(|(work, ..)| failed(*work) && ends.contains(&(*work, false, true)));
        hold!(reason != ColdReason::Compared || failed(work), "{call:?} is compared with nothing");
        hold!(reason != ColdReason::Differs || found(), "{program:?} does not differ");
        Ok(())
    }

    /// What the calls of a program came to.
    fn note_end(&mut self, call: CallId, outcome: Outcome, how: Performed) -> Result<(), String> {
        let (program, work) = (self.caller(call)?.program, self.caller(call)?.work);
        let warm = match how {
            Performed::Not => return Ok(()),
            Performed::Cold(_)
            | Performed::InPlace(_)
            | Performed::Warm { found: Found::Bare | Found::Installed, .. } => false,
            Performed::Warm { .. } => true,
        };
        let entry = self.programs.entry(program).or_default();
        if let Outcome::Exited(exit) = outcome
            && self.scenario.works > 0
            && work.edition == entry.told_edition
        {
            entry.ends.insert((work, warm, exit == Exit::Code(0)));
        }
        Ok(())
    }

    /// The daemon measures what has ended by itself.
    fn measure(&mut self, program: ProgramId, outcome: Outcome, how: Performed) {
        let slower = (program.0 + 1) * 389 % 1000 < self.scenario.slower;
        let (low, high) = if slower { (900, 2_000) } else { (100, 1_100) };
        let us = self.rng.between(low, high);
        let took = match (outcome, how) {
            (Outcome::Exited(Exit::Code(_)), Performed::Warm { .. }) => {
                Took::Warm { us, cold_us: 1_000 }
            }
            (
                Outcome::Exited(Exit::Code(_)),
                Performed::Cold(ColdReason::Asked | ColdReason::SlowerWarm),
            ) => Took::Cold { us: self.rng.between(950, 1_050) },
            (
                _,
                Performed::Warm { .. }
                | Performed::Cold(_)
                | Performed::InPlace(_)
                | Performed::Not,
            ) => {
                return;
            }
        };
        self.at_once.push_back(Event::Measured { program, took });
    }

    fn new_process(&mut self, worker: WorkerId, process: Process) -> Result<(), String> {
        hold!(worker > self.last_worker, "{worker:?} is not a new number");
        self.last_worker = worker;
        self.processes.insert(worker, process);
        Ok(())
    }

    /// A zygote or standby starts: it becomes ready, dies on the way, or hangs.
    fn start(
        &mut self,
        worker: WorkerId,
        kind: Kind,
        pool: PoolId,
        key: Key,
    ) -> Result<(), String> {
        let (program, generation, duty) = if self.handlers.has(pool) {
            (ProgramId(u64::MAX), 0, self.duty_for(pool))
        } else if let Some(program) = self.keys.get(&key).copied() {
            (program, self.programs[&program].told_generation, Duty::default())
        } else {
            return Err(format!("{worker:?} is started for a key that nobody has"));
        };
        let threads = if self.rng.chance(self.scenario.threads) { 2 } else { 1 };
        let hangs = self.rng.chance(self.scenario.hangs);
        let process =
            Process { threads, hangs, duty, ..Process::new(kind, key, (program, generation)) };
        self.new_process(worker, process)?;
        let wait = self.rng.between(5_000, 200_000);
        if self.rng.chance(self.scenario.process_dies) {
            self.later(wait, Happening::ProcessDies(worker, Exit::Code(1)));
        } else if !hangs {
            self.later(wait, Happening::ProcessReady(worker));
        }
        if self.rng.chance(self.scenario.process_dies / 3) {
            let wait = wait + self.rng.magnitude(60_000_000);
            self.later(wait, Happening::ProcessDies(worker, Exit::Signal(9)));
        }
        Ok(())
    }

    fn fork(&mut self, zygote: WorkerId, worker: WorkerId, pages: Pages) -> Result<(), String> {
        let parent = self.process(zygote)?;
        hold!(parent.kind == Kind::Zygote, "{zygote:?} is forked and is no zygote");
        hold!(parent.said_ready, "{zygote:?} is forked and did not say that it is ready");
        hold!(parent.threads == 1, "{zygote:?} is forked with {} threads", parent.threads);
        hold!(!parent.told_to_end && !parent.killed, "{zygote:?} is forked after its end");
        let (key, program, generation, alive) =
            (parent.key, parent.program, parent.generation, parent.alive);
        let zygote_died = !alive;
        let duty = parent.duty.clone();
        let phantom = zygote_died || self.rng.chance(self.scenario.fork_fails / 4);
        let hangs = self.rng.chance(self.scenario.hangs / 2);
        let copy = Process {
            phantom,
            hangs,
            pages,
            zygote_died,
            duty,
            ..Process::new(Kind::Copy(zygote), key, (program, generation))
        };
        // A handler's copy says that it is ready; a call's waits in its channel.
        let says_so = pages != Pages::Unpaid || copy.duty.pool.is_some();
        self.new_process(worker, copy)?;
        let wait = self.rng.between(500, 12_000);
        if zygote_died {
            // The zygote's end is on its way; its copies' ends follow.
            self.processes.get_mut(&worker).expect("it was just made").alive = false;
            self.later(250_000, Happening::ProcessReported(worker));
        } else if phantom {
            let whys = [ForkFailure::System, ForkFailure::System, ForkFailure::Threads];
            let why = self.rng.pick(&whys);
            self.later(wait / 4, Happening::ForkFails(worker, why));
        } else if says_so && self.rng.chance(self.scenario.process_dies) {
            self.later(wait, Happening::ProcessDies(worker, Exit::Signal(11)));
        } else if says_so && !hangs {
            self.later(wait, Happening::ProcessReady(worker));
        }
        Ok(())
    }

    fn give(&mut self, call: CallId, worker: WorkerId, told: Told) -> Result<(), String> {
        {
            let of_worker = self.process(worker)?.program;
            let caller = self.caller(call)?;
            hold!(!caller.prepares, "{call:?} is given and not to be performed");
            hold!(caller.cold.is_none(), "{call:?} is given after it was sent cold");
            hold!(caller.given.is_none(), "{call:?} is given twice");
            let (key, program, generation) = if told == Told::Nothing {
                (caller.key, caller.program, caller.generation)
            } else {
                let of = |(layer, _): &&(Layer, u64)| layer.program == of_worker;
                let layer = caller.layers.iter().find(of);
                let (layer, generation) = layer.ok_or(format!("{call:?} has no such layer"))?;
                (Some(layer.key), layer.program, *generation)
            };
            let process = self.process(worker)?;
            hold!(Some(process.key) == key, "{call:?} is given to a worker of another key");
            hold!(process.program == program, "{call:?} is given to another program's worker");
            hold!(process.kind != Kind::Zygote, "{call:?} is given to a zygote");
            let unpaid = process.pages != Pages::Paid && process.kind != Kind::Standby;
            hold!(
                process.said_ready || unpaid && process.performed == 0,
                "{call:?} is given to {worker:?}, which is not ready"
            );
            hold!(process.call.is_none(), "{worker:?} is given a second call");
            hold!(!process.told_to_end && !process.killed, "{worker:?} is given a call at its end");
            hold!(
                told == Told::Nothing || matches!(process.kind, Kind::Copy(_)),
                "{call:?} is given no copy"
            );
            hold!(
                process.generation >= generation,
                "{call:?} is given to a worker of an older content"
            );
        }
        if self.callers[&call].left {
            self.at_once.push_back(Event::GiveFailed {
                call,
                worker,
                why: GiveFailure::CallerLeft,
            });
            return Ok(());
        }
        let process = self.processes.get_mut(&worker).expect("it was just seen");
        if !process.alive && !process.phantom {
            self.at_once.push_back(Event::GiveFailed {
                call,
                worker,
                why: GiveFailure::WorkerClosed,
            });
            return Ok(());
        }
        process.call = Some(call);
        process.performed += 1;
        process.said_ready = false;
        process.used_once = !(self.callers[&call].prefork && process.kind != Kind::Standby);
        let caller = self.callers.get_mut(&call).expect("it was just seen");
        hold!(caller.claim, "{call:?} was taken before");
        caller.claim = false;
        caller.given = Some(worker);
        if told == Told::Profiled && !self.rng.chance(50) {
            let (program, generation) = (caller.program, caller.generation);
            let wait = self.rng.magnitude(self.scenario.run_max_us + 2_000_000);
            self.later(wait, Happening::NotesArrive(program, generation));
        }
        self.run_call(call, worker);
        Ok(())
    }

    /// What a given call will do: finish, die by itself, or run until it is killed.
    fn run_call(&mut self, call: CallId, worker: WorkerId) {
        let run = self.rng.magnitude(self.scenario.run_max_us);
        if self.rng.chance(self.scenario.process_dies / 4) {
            self.processes.get_mut(&worker).expect("it has the call").reads_nothing = true;
            self.later(run, Happening::ProcessDies(worker, Exit::Signal(9)));
        } else if self.rng.chance(self.scenario.process_dies / 2) {
            let exit = self.rng.pick(&[Exit::Signal(11), Exit::Code(7), Exit::Signal(15)]);
            self.later(run, Happening::ProcessDies(worker, exit));
        } else if self.rng.chance(self.scenario.process_dies / 4) {
            let reason = self.rng.pick(&[
                ColdReason::NotAsLoaded,
                ColdReason::Signals,
                ColdReason::Processors,
                ColdReason::Encodings,
                ColdReason::Directory,
                ColdReason::Environment,
                ColdReason::Edited,
            ]);
            self.callers.get_mut(&call).expect("it was given").executes = Some(reason);
            self.at_once.push_back(Event::Executes { worker, reason });
            self.later(run, Happening::ProcessDies(worker, Exit::Code(7)));
        } else {
            self.later(run, Happening::CallFinishes(worker, call));
        }
    }

    fn signal(&mut self, worker: WorkerId, signal: u8) -> Result<(), String> {
        let ignores = self.rng.chance(300);
        let wait = self.rng.between(0, 5_000);
        let process = self.process(worker)?;
        // Who was sent a signal may have died by it: the daemon does not say that it read nothing.
        process.reads_nothing = false;
        match signal {
            9 => {
                process.killed = true;
                let late = process.duty.pool.filter(|_| !process.was_ready);
                process.duty.work.clear();
                process.hangs = false;
                let phantom = process.phantom;
                if let Some(pool) = late {
                    self.handler_is_late(pool);
                }
                if phantom {
                    return Ok(());
                }
                self.later(wait, Happening::ProcessDies(worker, Exit::Signal(9)));
            }
            15 => {
                let at_work = process.call.is_some() || process.duty.pool.is_some();
                hold!(at_work || !process.alive, "{worker:?} has no call to end");
                process.told_to_end |= process.duty.pool.is_some();
                process.duty.work.clear();
                if !ignores {
                    self.later(wait, Happening::ProcessDies(worker, Exit::Signal(15)));
                }
            }
            other => return Err(format!("{worker:?} gets the signal {other}")),
        }
        Ok(())
    }

    fn retire(&mut self, worker: WorkerId) -> Result<(), String> {
        let wait = self.rng.between(0, 5_000);
        let copies =
            self.processes.values().filter(|process| process.kind == Kind::Copy(worker)).count();
        let draining = self.draining || self.core.is_stopping();
        let process = self.process(worker)?;
        hold!(!process.told_to_end, "{worker:?} is told to end twice");
        hold!(
            process.kind != Kind::Zygote || copies == 0,
            "{worker:?} is told to end while {copies} copies live"
        );
        hold!(
            process.call.is_none() || process.zygote_died || !process.alive || draining,
            "{worker:?} is told to end while it has a call"
        );
        hold!(
            !process.duty.is_at_work() || process.zygote_died || !process.alive,
            "{worker:?} is told to end while it handles a request"
        );
        process.told_to_end = true;
        if !process.hangs {
            self.later(wait, Happening::ProcessDies(worker, Exit::Code(0)));
        }
        Ok(())
    }

    fn end_call(&mut self, call: CallId) -> Result<(), String> {
        let caller = self.caller(call)?;
        caller.settled = true;
        self.open.remove(&call);
        Ok(())
    }

    fn settle(&mut self, call: CallId, outcome: Outcome, how: Performed) -> Result<(), String> {
        self.totals.note_outcome(outcome);
        let (now, draining) = (self.now, self.draining || self.core.is_stopping());
        if let Performed::InPlace(reason) = how {
            *self.totals.cold.entry(reason.code()).or_default() += 1;
        }
        let program = self.caller(call)?.program;
        self.measure(program, outcome, how);
        self.note_end(call, outcome, how)?;
        let caller = self.caller(call)?;
        match how {
            Performed::Cold(reason) => {
                hold!(caller.cold == Some(reason), "{call:?} did not run cold for {reason:?}");
            }
            Performed::InPlace(reason) => {
                hold!(caller.executes == Some(reason), "{call:?} was not executed in its place");
            }
            Performed::Not => {
                hold!(caller.cold.is_none(), "{call:?} was sent cold");
                hold!(caller.given.is_none(), "{call:?} was given");
            }
            Performed::Warm { worker, .. } => {
                hold!(caller.given == Some(worker), "{call:?} was not performed by {worker:?}");
            }
        }
        match outcome {
            Outcome::Exited(exit) => {
                hold!(caller.exit == Some(exit), "{call:?} exited otherwise: {:?}", caller.exit);
            }
            Outcome::TimedOut(_) => {
                let passed = caller.deadline.is_some_and(|deadline| deadline <= now);
                hold!(passed, "{call:?} timed out before its time");
            }
            Outcome::Cancelled(CancelledBy::Caller) => {
                hold!(caller.left, "{call:?}'s caller has not left");
            }
            Outcome::Cancelled(CancelledBy::Stop) => {
                hold!(draining, "{call:?} was stopped, and nobody stops");
            }
            Outcome::Lost(_) => {
                let worker = caller.given;
                let cold = caller.cold.is_some();
                let orphan = worker.and_then(|worker| self.processes.get(&worker));
                let orphan = orphan.is_some_and(|process| process.zygote_died);
                hold!(orphan || cold && draining, "{call:?} is lost for no reason");
            }
            Outcome::Refused(reason) => return Err(format!("{call:?} is settled by {reason:?}")),
        }
        if let Performed::Warm { recipe, found, worker } = how {
            self.totals.warm += 1;
            let name = match found {
                Found::CopyReady => "CopyReady",
                Found::StandbyReady => "StandbyReady",
                Found::ForkedOnDemand => "ForkedOnDemand",
                Found::Queued => "Queued",
                Found::Bare => "Bare",
                Found::Installed => "Installed",
            };
            *self.totals.found.entry(name).or_default() += 1;
            let performed = self.processes.get(&worker).map_or(0, |process| process.performed);
            hold!(recipe.uses != Uses::Once || performed <= 1, "{worker:?} was used twice");
        }
        let left = self.callers[&call].left;
        if !left {
            let wait = self.rng.magnitude(2_000);
            self.later(wait, Happening::ConnectionEnds(call));
        }
        self.end_call(call)
    }
}
