//! What happens in the world by itself, and the event that the daemon makes of it.

use hob_core::event::{
    Aim, Arrival, ColdTiming, Event, ForkFailure, Found, GiveFailure, Layer, Lesson, Pages, Preload,
};
use hob_core::ids::{CallId, ProgramId, Work, WorkerId};
use hob_core::isolation::Name;
use hob_core::key::{Key, KeyBuilder, Part};
use hob_core::plan::{
    Cgroup, ColdAsked, Context, Descriptors, Facts, HardLimits, Hosted, Priority, Terminal, Tracer,
    Variables,
};
use hob_wire::exit::Exit;

use crate::scenario::Finale;
use crate::world::{Caller, Happening, Kind, World};

impl World {
    pub(crate) fn happen(&mut self, happening: Happening) -> Option<Event> {
        match happening {
            Happening::Arrive => self.arrive(),
            Happening::ProcessReady(worker) => self.process_ready(worker),
            Happening::ForkFails(worker, why) => self.fork_fails(worker, why),
            Happening::CallFinishes(worker, call) => self.call_finishes(worker, call),
            Happening::ProcessDies(worker, exit) => {
                self.die(worker, exit);
                None
            }
            Happening::ProcessReported(worker) => self.end_reported(worker),
            Happening::CallerLeaves(call) => self.caller_leaves(call),
            Happening::ConnectionEnds(call) => Some(Event::CallerGone { call }),
            Happening::ColdRunEnds(call) => self.cold_run_ends(call),
            Happening::NotesArrive(program, generation) => self.notes_arrive(program, generation),
            Happening::RequestArrives => self.request_arrives(),
            Happening::RequestBegins(worker, call) => self.request_begins(worker, call),
            Happening::RequestIsAnswered(worker, call) => self.request_answered(worker, call),
            Happening::RequestIsTakenBack(call) => self.request_taken_back(call),
            Happening::HandlerChanges => self.handler_changes(),
            Happening::LaneIsWanted => self.lane_is_wanted(),
            Happening::LaneIsLeft(worker) => self.lane_is_left(worker),
            Happening::LaneEnds(worker) => self.lane_ends(worker),
            Happening::MemoryIsRead => self.memory_is_read(),
            Happening::Drain => {
                self.draining = true;
                Some(Event::Drain)
            }
        }
    }

    /// A call comes; the next one is put on the agenda, or the world's end.
    fn arrive(&mut self) -> Option<Event> {
        if !self.more_calls() {
            match self.scenario.ending {
                Finale::Idle => {}
                Finale::Drain | Finale::DrainAmidCalls => {
                    self.drain_is_set = true;
                    let wait = self.rng.magnitude(2_000_000);
                    self.later(wait, Happening::Drain);
                }
            }
            return None;
        }
        let burst = self.rng.between(1, self.scenario.burst_max);
        for _ in 1..burst {
            if self.more_calls() {
                self.one_arrives();
            }
        }
        let gap = self.rng.magnitude(self.scenario.gap_max_us);
        self.later(gap, Happening::Arrive);
        if self.scenario.ending == Finale::DrainAmidCalls
            && !self.drain_is_set
            && self.arrived >= self.scenario.calls * 3 / 4
        {
            self.drain_is_set = true;
            self.later(0, Happening::Drain);
        }
        self.one_arrives();
        None
    }

    /// One call. Its events go before others, in the daemon's order: stale, then arrived.
    fn one_arrives(&mut self) {
        self.arrived += 1;
        let call = CallId(self.arrived);
        let program = ProgramId(self.rng.magnitude(self.scenario.programs));
        let stale = self.rng.chance(self.scenario.stale);
        let entry = self.programs.entry(program).or_default();
        if stale && entry.lesson {
            entry.lesson = false;
            entry.generation += 1;
            self.at_once.push_back(Event::Stale { program });
        }
        if entry.lesson && self.rng.chance(self.scenario.loads_anew) {
            // As with an amended lesson, its keys are others from now on.
            entry.amended += 1;
            self.at_once.push_back(Event::LoadsAnew { program });
        }
        let (lesson, generation) = (entry.lesson, entry.generation);
        let key = lesson.then(|| self.key_of(program));
        // Also of a program whose zygote may still be loading.
        let layers =
            if lesson && self.rng.chance(700) { Vec::new() } else { self.layers_of(program) };
        let timeout_us = if self.rng.chance(self.scenario.timeouts) {
            Some(self.rng.magnitude(1_000_000))
        } else {
            None
        };
        let facts = self.facts();
        let ahead =
            if self.rng.chance(100) { Some(self.rng.pick(&[0, 0, 1, 3, 100])) } else { None };
        let aim = match self.rng.chance(60) {
            true => Aim::Prepare,
            false if self.rng.chance(100) => Aim::Prove,
            false => Aim::Perform,
        };
        let work = self.work_of(program);
        self.callers.insert(
            call,
            Caller {
                prepares: aim == Aim::Prepare,
                program,
                work,
                key,
                layers: layers.clone(),
                generation,
                prefork: facts.isolation == Some(Name::Prefork),
                claim: true,
                left: false,
                deadline: timeout_us.map(|timeout_us| self.now.after_us(timeout_us)),
                queued: false,
                given: None,
                cold: None,
                executes: None,
                exit: None,
                settled: false,
            },
        );
        self.open.insert(call);
        if self.rng.chance(self.scenario.caller_leaves) {
            let wait = self.rng.magnitude(self.scenario.run_max_us * 2);
            self.later(wait, Happening::CallerLeaves(call));
        }
        let layers = layers.into_iter().map(|(layer, _)| layer).collect();
        let arrival = Arrival { call, program, work, key, layers, facts, ahead, timeout_us, aim };
        self.at_once.push_back(Event::Arrived(arrival));
    }

    /// What a call has to do. Its program may have been edited.
    fn work_of(&mut self, program: ProgramId) -> Work {
        if self.scenario.works == 0 {
            return Work { edition: 0, task: self.arrived };
        }
        let task = self.rng.between(1, self.scenario.works);
        let is_edited = self.rng.chance(10);
        let entry = self.programs.entry(program).or_default();
        entry.edition += u64::from(is_edited);
        Work { edition: entry.edition, task }
    }

    /// The layers below a program, of which some have none: few bare interpreters are for many
    /// programs.
    fn layers_of(&mut self, program: ProgramId) -> Vec<(Layer, u64)> {
        if self.rng.chance(200) {
            return Vec::new();
        }
        let mut layers = Vec::new();
        if self.rng.chance(400) {
            layers.push(self.layer(ProgramId((2 << 32) + program.0), Found::Installed));
        }
        layers.push(self.layer(ProgramId((1 << 32) + program.0 % 3), Found::Bare));
        layers
    }

    /// One of them. What it loaded may have changed; that goes before the arrival, too.
    fn layer(&mut self, program: ProgramId, found: Found) -> (Layer, u64) {
        let stale = self.rng.chance(self.scenario.stale);
        let entry = self.programs.entry(program).or_default();
        if stale && entry.lesson {
            entry.generation += 1;
            self.at_once.push_back(Event::Stale { program });
        }
        entry.lesson = true;
        let generation = entry.generation;
        (Layer { program, key: self.key_of(program), found }, generation)
    }

    /// The key of one of the program's environments. It changes with the lesson.
    pub(crate) fn key_of(&mut self, program: ProgramId) -> Key {
        let variant = self.rng.magnitude(self.scenario.variants - 1);
        let entry = self.programs.entry(program).or_default();
        // Not of the content: that no stale worker is given a call is not to be the key's merit.
        let parts = [program.0, variant, entry.amended];
        let mut builder = KeyBuilder::new();
        for part in parts {
            builder.absorb(Part::Program, &part.to_le_bytes());
        }
        let key = builder.finish();
        self.keys.insert(key, program);
        key
    }

    fn facts(&mut self) -> Facts {
        let mut facts = Facts::default();
        if self.rng.chance(250) {
            let names = [Name::Standby, Name::Standby, Name::Fork, Name::Spawn, Name::Prefork];
            facts.isolation = Some(self.rng.pick(&names));
        }
        if self.rng.chance(self.scenario.odd_facts) {
            match self.rng.between(0, 13) {
                0 => facts.cold = ColdAsked::Yes,
                1 => facts.context = Context::Differs,
                2 => facts.limits = HardLimits::Above,
                3 => facts.descriptors = Descriptors::Beyond,
                4 => facts.tracer = Tracer::Attached,
                9 => facts.terminal = Terminal::Unreached,
                5 => facts.hosted = Hosted::NotHosted,
                6 => facts.hosted = Hosted::NotAProgram,
                7 => facts.hosted = Hosted::InterpreterVersion,
                8 => facts.hosted = Hosted::NotFound,
                10 => facts.cgroup = Cgroup::Limited,
                11 => facts.priority = Priority::Above,
                12 => facts.variables = Variables::OfOneCall,
                _ => facts.hosted = Hosted::NotExecutable,
            }
        }
        facts
    }

    fn process_ready(&mut self, worker: WorkerId) -> Option<Event> {
        let amends = self.rng.chance(self.scenario.amends);
        if self.rng.chance(self.scenario.process_dies / 4) {
            let wait = self.rng.magnitude(2_000_000);
            self.later(wait, Happening::ProcessDies(worker, Exit::Signal(9)));
        }
        let process = self.processes.get_mut(&worker)?;
        if !process.alive || process.phantom {
            return None;
        }
        if process.pages == Pages::Plain && process.performed > 0 {
            // It has had a call before it was ready, and has nothing to say.
            return None;
        }
        process.said_ready = true;
        process.was_ready = true;
        let (kind, threads, program) = (process.kind, process.threads, process.program);
        if kind != Kind::Zygote {
            return Some(Event::Ready { worker, threads });
        }
        let amends = amends && process.duty.pool.is_none();
        let preload = if amends { Preload::Amended } else { Preload::AsLearned };
        if amends {
            self.programs.entry(program).or_default().amended += 1;
            // Some daemons tell the new key at once.
            if self.rng.chance(500) {
                self.later(100, Happening::NotesArrive(program, u64::MAX));
            }
        }
        Some(Event::ZygoteReady { zygote: worker, threads, preload })
    }

    /// A fork comes to nothing: the daemon puts a given call's claim back before it tells.
    fn fork_fails(&mut self, worker: WorkerId, why: ForkFailure) -> Option<Event> {
        let process = self.processes.get_mut(&worker)?;
        if process.zygote_died || !process.alive {
            return None;
        }
        process.alive = false;
        if let Some(call) = process.call.take()
            && let Some(caller) = self.callers.get_mut(&call)
        {
            caller.claim = true;
            caller.given = None;
        }
        Some(Event::ForkFailed { worker, why })
    }

    fn call_finishes(&mut self, worker: WorkerId, call: CallId) -> Option<Event> {
        let exit = Exit::Code(u8::try_from(self.rng.between(0, 3)).expect("small"));
        let again = self.rng.between(100, 5_000);
        let uncaught = self.scenario.works > 0 && self.rng.chance(300);
        let process = self.processes.get_mut(&worker)?;
        if !process.alive || process.call != Some(call) {
            return None;
        }
        process.call = None;
        process.exit = Exit::Code(0);
        let once = process.used_once;
        if let Some(caller) = self.callers.get_mut(&call) {
            caller.exit = Some(exit);
        }
        // Those that are used once end by themselves; the others say when they are ready again.
        if once {
            self.later(again, Happening::ProcessDies(worker, Exit::Code(0)));
        } else {
            self.later(again, Happening::ProcessReady(worker));
        }
        let finished = Event::Finished { worker, exit };
        if exit != Exit::Code(0) && uncaught {
            self.at_once.push_back(finished);
            return Some(Event::Uncaught { worker });
        }
        Some(finished)
    }

    /// The daemon hears of an end; and first, that the call was never read, if it can tell.
    fn end_reported(&mut self, worker: WorkerId) -> Option<Event> {
        let process = self.processes.get(&worker)?;
        let gone = Event::Gone { worker, exit: process.exit };
        let Some(call) = process.call.filter(|_| process.reads_nothing && !process.zygote_died)
        else {
            return Some(gone);
        };
        if let Some(caller) = self.callers.get_mut(&call) {
            (caller.claim, caller.given, caller.exit) = (true, None, None);
        }
        self.at_once.push_back(gone);
        Some(Event::GiveFailed { call, worker, why: GiveFailure::Unread })
    }

    /// A process ends, now. A zygote takes its copies with it. The daemon hears of it later.
    pub(crate) fn die(&mut self, worker: WorkerId, exit: Exit) {
        let Some(process) = self.processes.get_mut(&worker) else {
            return;
        };
        if !process.alive || (process.phantom && !process.zygote_died) {
            return;
        }
        process.alive = false;
        process.exit = exit;
        if let Some(call) = process.call
            && let Some(caller) = self.callers.get_mut(&call)
        {
            caller.exit = Some(exit);
        }
        // The daemon hears of it at once, or when it comes to it.
        let slow = self.rng.chance(200);
        let wait = self.rng.between(10, if slow { 200_000 } else { 2_000 });
        self.later(wait, Happening::ProcessReported(worker));
        if self.processes[&worker].kind != Kind::Zygote {
            return;
        }
        let copies: Vec<WorkerId> = self
            .processes
            .iter()
            .filter(|(_, process)| process.kind == Kind::Copy(worker))
            .map(|(copy, _)| *copy)
            .collect();
        for copy in copies {
            let process = self.processes.get_mut(&copy).expect("it was just listed");
            process.zygote_died = true;
            if process.alive {
                process.alive = false;
                process.exit = Exit::Signal(9);
                let after = wait + self.rng.between(0, 500);
                self.later(after, Happening::ProcessReported(copy));
            }
        }
    }

    /// The caller's patience ends, or it is killed: if nobody took the call yet, nobody will.
    fn caller_leaves(&mut self, call: CallId) -> Option<Event> {
        let caller = self.callers.get_mut(&call)?;
        if caller.settled || caller.left {
            return None;
        }
        caller.left = true;
        caller.claim = false;
        let wait = self.rng.magnitude(3_000);
        self.later(wait, Happening::ConnectionEnds(call));
        None
    }

    fn cold_run_ends(&mut self, call: CallId) -> Option<Event> {
        let timed = self.rng.chance(900);
        let exit = Exit::Code(u8::try_from(self.rng.between(0, 3)).expect("small"));
        let now = self.now;
        let caller = self.callers.get_mut(&call)?;
        if caller.left {
            return None;
        }
        let timed = timed && caller.deadline.is_some_and(|deadline| deadline <= now);
        caller.exit = Some(exit);
        let timing = if timed { ColdTiming::TimedOut } else { ColdTiming::InTime };
        self.later(50, Happening::ConnectionEnds(call));
        Some(Event::ColdEnded { call, exit, timing })
    }

    /// Notes of a learning run, unless the program changed since; or none.
    fn notes_arrive(&mut self, program: ProgramId, generation: u64) -> Option<Event> {
        let nothing = self.rng.chance(self.scenario.no_lesson);
        let entry = self.programs.entry(program).or_default();
        if generation == u64::MAX && !entry.lesson || generation < entry.generation {
            return None;
        }
        if nothing && generation != u64::MAX {
            // The daemon can make keys of a program that has nothing to preload.
            let key = if self.rng.chance(500) { Some(self.key_of(program)) } else { None };
            return Some(Event::Learned { program, lesson: Lesson::Nothing, key });
        }
        entry.lesson = true;
        let key = if self.rng.chance(800) { Some(self.key_of(program)) } else { None };
        Some(Event::Learned { program, lesson: Lesson::Notes, key })
    }

    fn memory_is_read(&mut self) -> Option<Event> {
        self.later(700_000, Happening::MemoryIsRead);
        let pressure = self.rng.chance(self.scenario.pressure);
        let high = if pressure { 150_000 } else { 6_000 };
        let workers: Vec<WorkerId> = self.processes.keys().copied().collect();
        let readings =
            workers.into_iter().map(|worker| (worker, self.rng.magnitude(high))).collect();
        Some(Event::Memory { readings })
    }
}
