//! What processes of programs say, and how they end.

use hob_core::calls::changing::Change;
use hob_core::calls::growth::Beyond;
use hob_core::event::{Event, ForkFailure, GiveFailure, Lesson, Preload};
use hob_core::ids::{CallId, ProgramId, Time, WorkerId};
use hob_core::log::Category;
use hob_core::outcome::ColdReason;
use hob_core::phase::Mark;
use hob_os::{clock, process};
use hob_wire::strings::Strings;
use hob_wire::worker::{Executes, Failed, Finished, Forked, Joined, Ready, Role, Unfit};
use rustix::fd::OwnedFd;

use crate::calls::Calls;
use crate::calls::keys::{load_anew, stale, teach_again};
use crate::ctx::Ctx;
use crate::freshness::NotYet;
use crate::inputs::WorkerEvent;
use crate::recorder::ring;
use crate::warm::fresh::Admission;
use crate::warm::lesson::Lesson as Known;
use crate::workers::processes::{Ended, Process};

/// What a terminal sends: hang-up, interrupt, quit, stop, window change.
const TERMINAL_SIGNALS: [u8; 5] = [1, 2, 3, 20, 28];

/// The note of a worker whose program is ended by an error that nobody caught.
const UNCAUGHT: &[u8] = b"U";

impl Calls {
    /// Takes what a process says of itself. Ends of processes are the loop's: they may be a zygote's,
    /// and take others with them.
    pub(crate) fn worker_says(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, event: WorkerEvent) {
        match event {
            WorkerEvent::Ready(ready) => self.ready(ctx, worker, &ready),
            WorkerEvent::Forked(forked, pidfd) => self.forked(ctx, &forked, pidfd),
            WorkerEvent::Finished(finished) => self.finished(ctx, worker, finished),
            WorkerEvent::Notes(notes) if notes.notes.iter().eq([UNCAUGHT]) => {
                ctx.events.push_back(Event::Uncaught { worker });
            }
            WorkerEvent::Notes(notes) => self.noted(ctx, worker, &notes.notes),
            WorkerEvent::Spans(spans) => {
                let own = ctx.processes.get(worker).and_then(|process| process.call);
                if own == Some(CallId(spans.call)) {
                    ring::own(&spans);
                }
            }
            WorkerEvent::Failed(failed) => cannot_load(ctx, worker, &failed),
            WorkerEvent::Joined(joined) => self.joined(ctx, worker, joined),
            WorkerEvent::Executes(executes) => self.executes(ctx, worker, executes),
            WorkerEvent::Closed => self.silent(ctx, worker),
            WorkerEvent::Launched(..) | WorkerEvent::Gone(_) => {}
            // Only handlers' workers say this.
            WorkerEvent::Answer(_)
            | WorkerEvent::Failure(_)
            | WorkerEvent::Respond(..)
            | WorkerEvent::Hint(_)
            | WorkerEvent::Handled(_) => {}
        }
    }

    /// A process has ended: its call's receipt gets the usage, the core the event.
    pub(crate) fn worker_gone(&mut self, ctx: &mut Ctx<'_>, ended: &Ended, process: &Process) {
        if let Some(call) = process.call
            && let Some(entry) = self.ledger.get(call)
        {
            entry.worker_gone = true;
            if !entry.answered && process.left_its_call_unread() {
                entry.was_not_given();
                let why = GiveFailure::Unread;
                ctx.events.push_back(Event::GiveFailed { call, worker: ended.worker, why });
            } else {
                entry.usage = ended.usage;
                entry.worker_ended = Some(Time(clock::now_ns()));
                if !entry.worker_silent {
                    self.silences.insert(ended.worker, call);
                }
            }
        }
        let processes = &*ctx.processes;
        ctx.warm.programs.forget_environments_but(|key| processes.loads(key));
        ctx.events.push_back(Event::Gone { worker: ended.worker, exit: ended.exit });
        if let Some(call) = process.call {
            self.closing.push(call);
            ctx.processes.leave_deserted();
        }
    }

    fn ready(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, ready: &Ready) {
        let Some(process) = ctx.processes.get(worker) else { return };
        let (Some(program), key) = (process.serves.program(), process.key) else { return };
        let loads_since = process.loads_since;
        let before = std::mem::take(&mut process.before);
        let threads = ready.threads;
        hob_os::debug!(Category::Zygote, "worker {} is ready, threads: {threads}", worker.0);
        if ready.role == Role::Copy {
            ctx.events.push_back(Event::Ready { worker, threads });
            return;
        }
        let mut told = Preload::Amended;
        // Without a spec it was told to load what would not be loaded now.
        let rooted = ctx.warm.programs.is_known(key);
        let entry = ctx.warm.programs.entry(program);
        if let Some(lesson) = entry.lesson.as_mut().filter(|_| rooted) {
            lesson.made_anew();
            told = lesson.take(&ready.notes, entry.runtime.row().variables);
            if told == Preload::Amended {
                entry.trouble =
                    Some("each time it was loaded, its imports did something new".into());
            }
        }
        ctx.warm.programs.heard(program);
        if told == Preload::AsLearned {
            ctx.warm.programs.forget_environment(key);
            let known = ctx.warm.programs.entry(program);
            if let Some(preload_us) = known.lesson.as_ref().and_then(|lesson| lesson.preload_us) {
                known.growth.loaded(preload_us, &self.bounds);
            }
        }
        let known = (ctx.warm.programs.spec(key), ctx.warm.programs.get(program));
        if let (Some(spec), Some(entry)) = known
            && let Some(lesson) = &entry.lesson
        {
            match ctx.warm.fresh.admit(key, spec, lesson, &before, loads_since) {
                Admission::Admitted => {}
                Admission::Again(not_yet) => {
                    told = Preload::Amended;
                    remade(ctx, program, &not_yet);
                }
                Admission::OthersStale => return stale(ctx, program),
            }
        }
        ctx.events.push_back(match ready.role {
            Role::Zygote => Event::ZygoteReady { zygote: worker, threads, preload: told },
            Role::Standby if told == Preload::AsLearned => Event::Ready { worker, threads },
            // Replaced like a zygote would be, by way of the program's own next call.
            Role::Standby | Role::Copy => return stale(ctx, program),
        });
        if told == Preload::Amended && ready.role == Role::Zygote {
            teach_again(ctx, program, key);
        }
    }

    fn finished(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, finished: Finished) {
        let call = CallId(finished.call);
        if ctx.processes.get(worker).is_none_or(|process| process.call != Some(call)) {
            return;
        }
        if let Some(entry) = self.ledger.get(call) {
            entry.answered = true;
            entry.stamp(Mark::Main, finished.main_ns);
            entry.stamp(Mark::Finished, finished.finished_ns);
        }
        ctx.events.push_back(Event::Finished { worker, exit: finished.exit });
    }

    /// The worker is in its caller's group. What the terminal sent before that, it did not get:
    /// what still waits in the client is delivered now, and what the client has begun to read is
    /// delivered when it comes. A signal of this very moment may come twice; none is lost.
    fn joined(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, joined: Joined) {
        let Some(entry) = self.ledger.get(CallId(joined.call)) else { return };
        if entry.worker != Some(worker) || entry.settled.is_some() {
            return;
        }
        let missed = process::pending(entry.caller_pid) & !entry.world.blocked;
        entry.joined_ns = Some(clock::now_ns());
        for number in TERMINAL_SIGNALS {
            if missed & (1 << (number - 1)) != 0 {
                ctx.processes.signal(worker, number);
            }
        }
    }

    /// The worker executes the program cold: from now on the call is what that process does.
    fn executes(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, executes: Executes) {
        let Some(entry) = self.ledger.get(CallId(executes.call)) else { return };
        if entry.worker != Some(worker) || entry.settled.is_some() {
            return;
        }
        entry.stamp(Mark::Main, executes.at_ns);
        let reason = match executes.why {
            Unfit::Program => ColdReason::NotAsLoaded,
            Unfit::Signals => ColdReason::Signals,
            Unfit::Limits => ColdReason::Limits,
            Unfit::Priority => ColdReason::Priority,
            Unfit::Processors => ColdReason::Processors,
            Unfit::Encodings => ColdReason::Encodings,
            Unfit::Directory => ColdReason::Directory,
            Unfit::Environment => ColdReason::Environment,
            Unfit::Descriptors => ColdReason::Descriptors,
            Unfit::Edited => ColdReason::Edited,
        };
        ctx.events.push_back(Event::Executes { worker, reason });
    }

    fn noted(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, notes: &Strings) {
        let Some(process) = ctx.processes.get(worker) else { return };
        let (Some(of), key) = (process.serves.program(), process.key) else { return };
        let Some(call) = process.call else { return };
        let Some(program) = self.ledger.get(call).map(|open| open.program) else { return };
        if program != of {
            if !self.ledger.get(call).is_some_and(|open| open.profiles) {
                // Another call's notes are its profile, or it has one.
                return;
            }
            // In a copy of a layer, whose imports and start-up code read what they read.
            let layer = ctx.warm.programs.get(of).and_then(|layer| layer.lesson.as_ref());
            let lesson = layer.map(Known::above).unwrap_or_default();
            self.ledger.learned(ctx, call, program, lesson, notes);
            return self.ledger.grow_layer(ctx, call, of);
        }
        let rooted = ctx.warm.programs.is_known(key);
        let Some(open) = self.ledger.get(call) else { return };
        let known = ctx.warm.programs.entry(program);
        let Some(lesson) = &mut known.lesson else { return };
        let mut imported = lesson.imported(notes, open.streams);
        // More to import ahead: the next zygote of this program does.
        let _ = lesson.take(notes, known.runtime.row().variables);
        // Where only the end of the process will tell it, the program has come to its end by now.
        let begun = open.marks.get(Mark::Main).or_else(|| open.marks.get(Mark::Given));
        let finished = open.marks.get(Mark::Finished).unwrap_or_else(|| Time(clock::now_ns()));
        let main_us = begun.map_or(0, |begun| finished.us_since(begun));
        let beyond = Beyond { modules: imported.beyond, main_us };
        let preload_us = lesson.preload_us.unwrap_or(0);
        // What was performed with an older preload says nothing of this one.
        let grown =
            rooted && known.growth.called(beyond, preload_us, &self.bounds) == Change::LoadsAnew;
        imported.ahead = grown;
        open.imported = Some(imported);
        if grown {
            load_anew(ctx, program);
            let key = self.ledger.plant(ctx, call);
            ctx.events.push_back(Event::Learned { program, lesson: Lesson::Notes, key });
        }
    }

    /// A worker says nothing any more. Its process's end is told by whoever waits for it: a
    /// program may close the channel.
    fn silent(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId) {
        let call = self.silences.remove(&worker).or_else(|| ctx.processes.get(worker)?.call);
        if let Some(call) = call {
            if let Some(entry) = self.ledger.get(call) {
                entry.worker_silent = true;
            }
            self.close(ctx, call);
        }
    }

    /// A fork came through, or did not. A call that was given ahead of it runs cold in that case:
    /// nothing has read it, and its descriptors are gone with the copy's channel.
    pub(crate) fn forked(&mut self, ctx: &mut Ctx<'_>, forked: &Forked, pidfd: Option<OwnedFd>) {
        let worker = WorkerId(forked.worker);
        if forked.pid != 0 {
            ctx.processes.forked(worker, forked.pid, pidfd);
            return;
        }
        if let Some(entry) = ctx.processes.unforked(worker).and_then(|call| self.ledger.get(call)) {
            entry.was_not_given();
        }
        let why = match forked.error.as_slice() {
            b"threads" => ForkFailure::Threads,
            _ => ForkFailure::System,
        };
        hob_os::debug!(Category::Zygote, "worker {} was not forked: {why:?}", worker.0);
        ctx.events.push_back(Event::ForkFailed { worker, why });
    }
}

/// A zygote has to be made again, since this changed while it loaded. If that never ends, the
/// program goes cold for a while, and this is why.
fn remade(ctx: &mut Ctx<'_>, program: ProgramId, not_yet: &NotYet) {
    let entry = ctx.warm.programs.entry(program);
    hob_os::log!(Info, Category::Files, "{}: {not_yet}", entry.name);
    entry.trouble = Some(not_yet.to_string());
}

/// A zygote or standby says why it cannot become ready; its end follows.
fn cannot_load(ctx: &mut Ctx<'_>, worker: WorkerId, failed: &Failed) {
    let text = String::from_utf8_lossy(&failed.text).into_owned();
    if let Some(program) = ctx.processes.get(worker).and_then(|process| process.serves.program()) {
        let entry = ctx.warm.programs.entry(program);
        entry.trouble = text.lines().next().map(str::to_owned);
        let (name, why) = (&entry.name, entry.trouble.as_deref().unwrap_or_default());
        hob_os::debug!(Category::Pool, "{name} cannot be kept warm: {why}");
    }
    ctx.processes.retire(worker);
}
