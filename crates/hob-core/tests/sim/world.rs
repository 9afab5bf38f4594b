//! The world around the supervisor: what exists, what is to happen when, and the one step.
//!
//! Time is a number. What is to happen waits in `agenda`; at its time it changes the world and
//! may become an event (`happen.rs`). Effects change the world at once and put more on the agenda
//! (`perform.rs`). The world plays by the daemon's rules: a failed give or fork is told before
//! anything else about its worker, a zygote's end before its copies'.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hob_core::event::{Effect, Event, ForkFailure, Layer, Pages};
use hob_core::ids::{CallId, ProgramId, Time, Work, WorkerId};
use hob_core::key::Key;
use hob_core::limits::Limits;
use hob_core::outcome::{ColdReason, Outcome};
use hob_core::supervisor::Supervisor;
use hob_wire::exit::Exit;

use crate::requests::{Duty, Handlers};
use crate::rng::Rng;
use crate::scenario::{Scenario, limits};

/// Whether steps are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    Off,
    On,
}

/// What is to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happening {
    Arrive,
    ProcessReady(WorkerId),
    ForkFails(WorkerId, ForkFailure),
    CallFinishes(WorkerId, CallId),
    ProcessDies(WorkerId, Exit),
    ProcessReported(WorkerId),
    CallerLeaves(CallId),
    ConnectionEnds(CallId),
    ColdRunEnds(CallId),
    NotesArrive(ProgramId, u64),
    RequestArrives,
    RequestBegins(WorkerId, CallId),
    RequestIsAnswered(WorkerId, CallId),
    RequestIsTakenBack(CallId),
    HandlerChanges,
    LaneIsWanted,
    LaneIsLeft(WorkerId),
    LaneEnds(WorkerId),
    MemoryIsRead,
    Drain,
}

/// What a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Zygote,
    Copy(WorkerId),
    Standby,
}

/// A process that the supervisor asked for.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) program: ProgramId,
    /// Which of the program's contents it was made from.
    pub(crate) generation: u64,
    pub(crate) alive: bool,
    /// Its fork fails; until that is told, it looks as if it lived.
    pub(crate) phantom: bool,
    pub(crate) hangs: bool,
    pub(crate) pages: Pages,
    pub(crate) threads: u32,
    pub(crate) said_ready: bool,
    /// It said so at least once.
    pub(crate) was_ready: bool,
    /// It ends after its call.
    pub(crate) used_once: bool,
    pub(crate) told_to_end: bool,
    pub(crate) killed: bool,
    pub(crate) zygote_died: bool,
    pub(crate) call: Option<CallId>,
    /// It ends before it has read the call that it was given.
    pub(crate) reads_nothing: bool,
    pub(crate) performed: u32,
    pub(crate) exit: Exit,
    /// What it does for a handler.
    pub(crate) duty: Duty,
}

impl Process {
    pub(crate) fn new(kind: Kind, key: Key, (program, generation): (ProgramId, u64)) -> Process {
        Process {
            kind,
            key,
            program,
            generation,
            alive: true,
            phantom: false,
            hangs: false,
            pages: Pages::Unpaid,
            threads: 1,
            said_ready: false,
            was_ready: false,
            used_once: true,
            told_to_end: false,
            killed: false,
            zygote_died: false,
            call: None,
            reads_nothing: false,
            performed: 0,
            exit: Exit::Code(0),
            duty: Duty::default(),
        }
    }
}

/// Where a call is, as the world knows it.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) program: ProgramId,
    pub(crate) work: Work,
    pub(crate) key: Option<Key>,
    /// The layers below it, and which content each has by now.
    pub(crate) layers: Vec<(Layer, u64)>,
    pub(crate) generation: u64,
    /// Its worker performs others after it.
    pub(crate) prefork: bool,
    /// It is not to be performed.
    pub(crate) prepares: bool,
    /// 1: nobody took the call. 0: a worker or the caller itself did.
    pub(crate) claim: bool,
    pub(crate) left: bool,
    pub(crate) deadline: Option<Time>,
    pub(crate) queued: bool,
    /// The worker that has it, or had it.
    pub(crate) given: Option<WorkerId>,
    pub(crate) cold: Option<ColdReason>,
    /// Its worker executes the program cold.
    pub(crate) executes: Option<ColdReason>,
    pub(crate) exit: Option<Exit>,
    pub(crate) settled: bool,
}

/// A program, as the daemon knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) lesson: bool,
    pub(crate) amended: u64,
    pub(crate) generation: u64,
    /// The newest content that the supervisor knows of.
    pub(crate) told_generation: u64,
    /// Warm calls that were measured since it last changed.
    pub(crate) warm_measured: u32,
    /// How often its file was edited, and of which edition a call was told last.
    pub(crate) edition: u64,
    pub(crate) told_edition: u64,
    /// How its calls have ended by themselves since it last changed: their work, whether they were
    /// warm, and whether they succeeded. Only of worlds where calls have work in common.
    pub(crate) ends: BTreeSet<(Work, bool, bool)>,
}

/// What happened over many worlds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub(crate) calls: u64,
    pub(crate) steps: u64,
    pub(crate) warm: u64,
    pub(crate) cold: BTreeMap<&'static str, u64>,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    pub(crate) found: BTreeMap<&'static str, u64>,
    /// What became of requests, and how often workers were lent.
    pub(crate) requests: BTreeMap<&'static str, u64>,
}

/// One world.
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) scenario: Scenario,
    pub(crate) limits: Limits,
    pub(crate) core: Supervisor,
    pub(crate) now: Time,
    agenda: BTreeMap<(Time, u64), Happening>,
    sequence: u64,
    /// Events that come before any other: failures of what was just performed.
    pub(crate) at_once: VecDeque<Event>,
    pub(crate) processes: BTreeMap<WorkerId, Process>,
    pub(crate) last_worker: WorkerId,
    pub(crate) callers: BTreeMap<CallId, Caller>,
    pub(crate) programs: BTreeMap<ProgramId, Program>,
    /// The program that each key was made for.
    pub(crate) keys: BTreeMap<Key, ProgramId>,
    pub(crate) arrived: u64,
    pub(crate) open: BTreeSet<CallId>,
    pub(crate) most_open: u32,
    pub(crate) handlers: Handlers,
    pub(crate) draining: bool,
    pub(crate) drain_is_set: bool,
    pub(crate) exited: bool,
    pub(crate) totals: Totals,
    trace: Trace,
    lines: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, trace: Trace) -> World {
        let mut rng = Rng::new(seed);
        let scenario = Scenario::new(&mut rng);
        let limits = limits(&mut rng);
        let mut world = World {
            core: Supervisor::new(limits.clone()),
            rng,
            scenario,
            limits,
            now: Time(1_000_000_000),
            agenda: BTreeMap::new(),
            sequence: 0,
            at_once: VecDeque::new(),
            processes: BTreeMap::new(),
            last_worker: WorkerId(0),
            callers: BTreeMap::new(),
            programs: BTreeMap::new(),
            keys: BTreeMap::new(),
            arrived: 0,
            open: BTreeSet::new(),
            most_open: 0,
            handlers: Handlers::default(),
            draining: false,
            drain_is_set: false,
            exited: false,
            totals: Totals::default(),
            trace,
            lines: Vec::new(),
        };
        world.line(|world| format!("{:?}\n{:?}", world.scenario, world.limits));
        world.later(0, Happening::Arrive);
        world.later(500_000, Happening::MemoryIsRead);
        world.begin_requests();
        world
    }

    /// Plays the world to its end.
    pub(crate) fn run(&mut self) -> Result<Totals, String> {
        let budget = self.scenario.calls * 400 + 100_000;
        while !self.exited {
            self.totals.steps += 1;
            if self.totals.steps > budget {
                return Err(format!("no end in sight after {budget} steps"));
            }
            self.step()?;
        }
        self.check_end()?;
        self.totals.calls = self.arrived;
        self.totals.requests = std::mem::take(&mut self.handlers.outcomes);
        Ok(self.totals.clone())
    }

    fn step(&mut self) -> Result<(), String> {
        let deadline = self.core.next_deadline();
        let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let event = match (deadline, next) {
            (Some(deadline), next) if next.is_none_or(|next| deadline <= next) => {
                // The daemon's timer is late by a little, sometimes.
                let late_us = if self.rng.chance(100) { self.rng.between(0, 3000) } else { 0 };
                self.now = self.now.max(deadline.after_us(late_us));
                Some(Event::Tick)
            }
            (_, Some(_)) => {
                let ((at, _), happening) = self.agenda.pop_first().expect("it was just seen");
                self.now = self.now.max(at);
                if self.scenario.clock_jumps > 0
                    && self.rng.next() % 100_000 < self.scenario.clock_jumps
                {
                    let jump_us = self.rng.magnitude(3_600_000_000);
                    self.line(|_| format!("the daemon is stopped for {jump_us} us"));
                    self.now = self.now.after_us(jump_us);
                }
                self.happen(happening)
            }
            (_, None) => return Err("nothing is to happen, and the supervisor waits".to_owned()),
        };
        if let Some(event) = event {
            self.tell(event)?;
        }
        while let Some(event) = self.at_once.pop_front() {
            self.tell(event)?;
        }
        Ok(())
    }

    /// Tells the supervisor, performs what it asks for, and checks.
    pub(crate) fn tell(&mut self, event: Event) -> Result<(), String> {
        self.line(|world| format!("{:>12} {event:?}", world.now.0 / 1000));
        let mut effects: Vec<Effect> = Vec::new();
        self.note(&event);
        let memory =
            if let Event::Memory { readings } = &event { Some(readings.clone()) } else { None };
        self.core.handle(self.now, event, &mut effects);
        for effect in effects {
            self.line(|_| format!("             -> {effect:?}"));
            self.perform(effect)?;
        }
        if let Some(readings) = memory {
            self.check_budget(&readings)?;
        }
        self.check()
    }

    /// Puts something on the agenda.
    pub(crate) fn later(&mut self, after_us: u64, happening: Happening) {
        self.sequence += 1;
        self.agenda.insert((self.now.after_us(after_us), self.sequence), happening);
    }

    pub(crate) fn line(&mut self, text: impl FnOnce(&World) -> String) {
        if self.trace == Trace::On {
            let line = text(self);
            self.lines.push(line);
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines
    }

    /// Whether calls still come.
    pub(crate) fn more_calls(&self) -> bool {
        self.arrived < self.scenario.calls
    }
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Totals) {
        self.calls += other.calls;
        self.steps += other.steps;
        self.warm += other.warm;
        for (mine, others) in [
            (&mut self.cold, &other.cold),
            (&mut self.outcomes, &other.outcomes),
            (&mut self.found, &other.found),
            (&mut self.requests, &other.requests),
        ] {
            for (what, count) in others {
                *mine.entry(what).or_default() += count;
            }
        }
    }

    pub(crate) fn note_outcome(&mut self, outcome: Outcome) {
        let name = match outcome {
            Outcome::Exited(_) => "exited",
            Outcome::TimedOut(_) => "timed-out",
            Outcome::Cancelled(_) => "cancelled",
            Outcome::Refused(_) => "refused",
            Outcome::Lost(_) => "lost",
        };
        *self.outcomes.entry(name).or_default() += 1;
    }

    /// A simulation in which something never happens tests nothing about it.
    pub(crate) fn assert_everything_happened(&self) {
        for reason in ColdReason::ALL {
            assert!(self.cold.contains_key(reason.code()), "no call ran cold for {reason:?}");
        }
        for name in ["exited", "timed-out", "cancelled", "refused", "lost"] {
            assert!(self.outcomes.contains_key(name), "no call {name}");
        }
        for found in ["CopyReady", "StandbyReady", "ForkedOnDemand", "Queued", "Bare", "Installed"]
        {
            assert!(self.found.contains_key(found), "no call found {found}");
        }
        for name in [
            "answered",
            "lost",
            "timed-out",
            "taken-back",
            "queue-full",
            "sessions-full",
            "not-loaded",
            "stopping",
            "lent",
            "recalled",
            "anew",
            "kept",
            "not",
            "nothing",
            "old",
        ] {
            assert!(self.requests.contains_key(name), "no request or lane was {name}");
        }
        // Worlds are harsh: pools of a program are few, and all of them are loaded anew often.
        assert!(self.warm * 6 > self.calls, "only {} of {} were warm", self.warm, self.calls);
    }
}
