//! The one loop: takes what happens, asks the core, performs what the core answers. It owns all
//! state of the daemon and never waits for anything but the next input.

mod arrive;
mod control;
pub(crate) mod ledger;
mod perform;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_core::event::{Effect, Event, GiveFailure, Lesson as Told, Preload};
use hob_core::ids::{CallId, ProgramId, Time, WorkerId};
use hob_core::phase::Mark;
use hob_core::receipt::Receipt;
use hob_core::supervisor::Supervisor;
use hob_os::{clock, process};
use hob_wire::call::{ColdEnded, Received, Usage};
use hob_wire::exit::Exit;
use hob_wire::strings::Strings;
use hob_wire::worker::{Finished, Joined, Ready, Role};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::around::Around;
use crate::ctx::Ctx;
use crate::freshness::NotYet;
use crate::fronts::local::Accepting;
use crate::inputs::{CallerEvent, Input, WorkerEvent};
use crate::messages::Messages;
use crate::owner::ledger::Ledger;
use crate::recorder::Recorder;
use crate::sets::Sets;
use crate::socket::Socket;
use crate::warm::Warm;
use crate::warm::fresh::Admission;
use crate::workers::hands::{Ended, Hands};
use crate::workers::memory;

/// The daemon's state.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) core: Supervisor,
    pub(crate) hands: Hands,
    pub(crate) ledger: Ledger,
    /// Programs, and whether what is warm of them is fresh.
    pub(crate) warm: Warm,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) socket: Socket,
    pub(crate) directory: PathBuf,
    pub(crate) around: Arc<Around>,
    pub(crate) limits: [(u64, u64); 16],
    pub(crate) started_ns: u64,
    pub(crate) readings: Vec<(WorkerId, u64)>,
    pub(crate) budget_kib: u64,
    pub(crate) build: [u8; 16],
    /// Events that came of effects, to be handled before anything new.
    pub(crate) events: VecDeque<Event>,
    pub(crate) leaving: bool,
    /// Who accepts; taken when the socket is given up.
    pub(crate) accepting: Option<Accepting>,
    pub(crate) inbox: mpsc::Sender<Input>,
    /// Who waits until every settled call's receipt is on the disk.
    pub(crate) flushes: Vec<oneshot::Sender<Value>>,
    /// Receipts of runs of hooks, which wait for those of their hooks' calls.
    pub(crate) runs: Vec<Receipt>,
    /// Workers whose process has ended and whose last words may not have been read yet.
    pub(crate) silences: HashMap<WorkerId, CallId>,
    /// All about messages.
    pub(crate) messages: Messages,
    /// Hook sets of callers that cannot run them by themselves.
    pub(crate) sets: Sets,
    /// The state directory, receipts or not: the register of trusted files, the outbox.
    pub(crate) home: Option<PathBuf>,
    /// The supervisor has nothing left.
    pub(crate) retired: bool,
}

impl Owner {
    /// The message service, and what it may reach.
    pub(crate) fn messages(&mut self) -> (&mut Messages, Ctx<'_>) {
        let ctx = Ctx {
            core: &mut self.core,
            events: &mut self.events,
            hands: &mut self.hands,
            warm: &mut self.warm,
            recorder: &self.recorder,
            home: self.home.as_deref(),
        };
        (&mut self.messages, ctx)
    }

    /// Runs until the core says that all is retired.
    pub(crate) async fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> std::io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut readings = tokio::time::interval(memory::EVERY);
        readings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.leaving {
            let wake = self.wake_in();
            tokio::select! {
                biased;
                // First, for a call must not be given to the copies of a zygote that has ended.
                _ = children.recv() => self.reap(),
                Some(input) = inputs.recv() => self.take(input),
                _ = terminate.recv() => self.stop(),
                _ = interrupt.recv() => self.stop(),
                () = tokio::time::sleep(wake), if wake < Duration::MAX => self.tick(),
                _ = readings.tick() => {
                    self.read_memory();
                    self.hands.bound_log();
                    self.look_for_the_name();
                    self.tick_messages();
                    if self.messages.take_activity() | self.sets.take_activity() {
                        self.events.push_back(Event::Active);
                    }
                }
            }
            self.settle_events();
            self.messages.accept_tells();
            self.leaving = self.retired && self.sets.is_empty();
            self.record_runs();
            self.flush_when_complete();
        }
        self.runs.drain(..).for_each(|run| self.recorder.record(run));
        self.leave_all_receipts();
        self.messages.close();
        self.recorder.flush();
        Ok(())
    }

    /// How long until something is due.
    fn wake_in(&mut self) -> Duration {
        let messages = self.messages.next_deadline();
        let due = [self.core.next_deadline(), self.ledger.next_deadline(), messages];
        match due.into_iter().flatten().min() {
            Some(Time(at_ns)) => Duration::from_nanos(at_ns.saturating_sub(clock::now_ns())),
            None => Duration::MAX,
        }
    }

    fn tick_messages(&mut self) {
        let (messages, mut ctx) = self.messages();
        messages.tick_tells(&mut ctx);
        messages.tick_receipts(&mut ctx);
    }

    /// Leaves receipts of all messages that have ended by now.
    fn leave_all_receipts(&mut self) {
        let (messages, mut ctx) = self.messages();
        messages.count_lanes(&mut ctx);
        self.settle_events();
        let (messages, mut ctx) = self.messages();
        messages.leave_all_receipts(&mut ctx);
    }

    fn tick(&mut self) {
        self.events.push_back(Event::Tick);
        self.tick_messages();
        let now = Time(clock::now_ns());
        while let Some((id, entry)) = self.ledger.close_overdue(now) {
            self.record(id, &entry);
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Call(incoming) => self.arrive(*incoming),
            Input::Caller { call, event } => self.caller(call, event),
            Input::Worker { worker, event } => self.worker(worker, event),
            Input::Launcher { session, stream } => {
                self.hands.launcher(session, stream, self.build);
            }
            Input::LauncherGone { session, stream } => {
                for worker in self.hands.launcher_gone(session, &stream) {
                    self.gone(Ended::killed(worker));
                }
            }
            Input::LauncherLeaves { session } => {
                self.hands.launcher_leaves(session);
                self.hands.leave_deserted();
            }
            Input::Control { request, reply } => self.control(&request, reply),
            Input::Outbox(done) => {
                let (messages, mut ctx) = self.messages();
                messages.outbox_did(&mut ctx, done);
            }
            Input::Sender { sender, event } => {
                self.hands.is_busy();
                let (messages, mut ctx) = self.messages();
                messages.sender(&mut ctx, sender, event);
            }
            // The loop looks whether all has ended after each input.
            Input::SetsEnded => {}
            Input::Memory(readings) => {
                self.readings.clone_from(&readings);
                let allowed_kib = self.budget_kib;
                self.events.push_back(Event::Memory { readings, allowed_kib });
            }
        }
    }

    /// Hands events to the core and performs its effects until nothing comes of it any more.
    pub(crate) fn settle_events(&mut self) {
        let mut effects: Vec<Effect> = Vec::new();
        while let Some(event) = self.events.pop_front() {
            self.core.handle(Time(clock::now_ns()), event, &mut effects);
            for effect in effects.drain(..) {
                self.perform(effect);
            }
        }
    }

    fn caller(&mut self, call: CallId, event: CallerEvent) {
        let Some(entry) = self.ledger.get(call) else { return };
        match event {
            CallerEvent::Signal(signal) => match entry.worker {
                Some(worker) if entry.settled.is_none() && !entry.has_had(signal) => {
                    self.hands.signal(worker, signal.number);
                }
                Some(_) => {}
                None if entry.signals.len() < SIGNALS_WAITING_MAX => {
                    entry.signals.push(signal.number);
                }
                None => {}
            },
            CallerEvent::ColdEnded(ended) => self.cold_ended(call, ended),
            // The worker's own word may still be on its way.
            CallerEvent::Received(received) => {
                entry.answered = true;
                // It was so when the caller said it, whenever that is heard here.
                let Received { exit, at_ns } = received;
                for mark in [Mark::Settled, Mark::Ended] {
                    entry.marks.stamp_as_told(mark, Time(at_ns));
                }
                if let Some(worker) = entry.worker {
                    self.events.push_back(Event::Finished { worker, exit });
                }
            }
            CallerEvent::Gone { at_ns } => {
                entry.caller_gone = true;
                entry.stamp(Mark::Ended, at_ns);
                // Nobody will say that its learning run has ended.
                if let Some(path) = entry.notes.take() {
                    self.learn(call, &path);
                }
                self.events.push_back(Event::CallerGone { call });
                self.settle_events();
                self.close(call);
            }
        }
    }

    fn worker(&mut self, worker: WorkerId, event: WorkerEvent) {
        let (messages, mut ctx) = self.messages();
        if messages.is_handlers(&mut ctx, worker) {
            ctx.hands.is_busy();
            return messages.handler_says(&mut ctx, worker, event);
        }
        match event {
            WorkerEvent::Ready(ready) => self.ready(worker, &ready),
            WorkerEvent::Forked(forked, pidfd) => self.forked(&forked, pidfd),
            WorkerEvent::Launched(launched, pidfd) => {
                if !self.hands.launched(launched, pidfd) {
                    self.gone(Ended::killed(WorkerId(launched.worker)));
                }
            }
            WorkerEvent::Gone(gone) => self.gone(Ended {
                worker: WorkerId(gone.worker),
                exit: gone.exit,
                usage: Some(gone.usage),
            }),
            WorkerEvent::Finished(finished) => self.finished(worker, finished),
            WorkerEvent::Notes(notes) => self.noted(worker, &notes.notes),
            WorkerEvent::Failed(failed) => self.failed(worker, &failed),
            WorkerEvent::Joined(joined) => self.joined(worker, joined),
            WorkerEvent::Closed => self.silent(worker),
            // Only handlers' workers say this.
            WorkerEvent::Answer(_) | WorkerEvent::Failure(_) | WorkerEvent::Handled(_) => {}
        }
    }

    fn ready(&mut self, worker: WorkerId, ready: &Ready) {
        let Some(process) = self.hands.get(worker) else { return };
        let (program, key) = (process.program, process.key);
        let loads_since = process.loads_since;
        let threads = ready.threads;
        if ready.role == Role::Copy {
            self.events.push_back(Event::Ready { worker, threads });
            return;
        }
        let mut told = Preload::Amended;
        let entry = self.warm.programs.entry(program);
        if let Some(lesson) = &mut entry.lesson {
            lesson.made_anew();
            told = lesson.take(&ready.notes, entry.runtime.row().variables);
            if told == Preload::Amended {
                entry.trouble =
                    Some("each time it was loaded, its imports did something new".into());
            }
        }
        let known = (self.warm.programs.seed(key), self.warm.programs.get(program));
        if let (Some(seed), Some(entry)) = known
            && let Some(lesson) = &entry.lesson
        {
            match self.warm.fresh.admit((key, seed), lesson, loads_since) {
                Admission::Admitted => {}
                Admission::Again(not_yet) => {
                    told = Preload::Amended;
                    self.remade(program, &not_yet);
                }
                Admission::OthersStale => return self.stale(program),
            }
        }
        self.events.push_back(match ready.role {
            Role::Zygote => Event::ZygoteReady { zygote: worker, threads, preload: told },
            Role::Standby if told == Preload::AsLearned => Event::Ready { worker, threads },
            // Replaced like a zygote would be, by way of the program's own next call.
            Role::Standby | Role::Copy => return self.stale(program),
        });
        if told == Preload::Amended && ready.role == Role::Zygote {
            self.teach_again(program, key);
        }
    }

    /// A zygote has to be made again, since this changed while it loaded. If that never ends, the
    /// program goes cold for a while, and this is why.
    fn remade(&mut self, program: ProgramId, not_yet: &NotYet) {
        let entry = self.warm.programs.entry(program);
        self.hands.note(&format!("{}: {not_yet}\n", entry.name));
        entry.trouble = Some(not_yet.to_string());
    }

    fn finished(&mut self, worker: WorkerId, finished: Finished) {
        let call = CallId(finished.call);
        if self.hands.get(worker).is_none_or(|process| process.call != Some(call)) {
            return;
        }
        if let Some(entry) = self.ledger.get(call) {
            entry.answered = true;
            entry.stamp(Mark::Main, finished.main_ns);
            entry.stamp(Mark::Finished, finished.finished_ns);
        }
        self.events.push_back(Event::Finished { worker, exit: finished.exit });
    }

    /// The worker is in its caller's group. What the terminal sent before that, it did not get:
    /// what still waits in the client is delivered now, and what the client has begun to read is
    /// delivered when it comes. A signal of this very moment may come twice; none is lost.
    fn joined(&mut self, worker: WorkerId, joined: Joined) {
        let Some(entry) = self.ledger.get(CallId(joined.call)) else { return };
        if entry.worker != Some(worker) || entry.settled.is_some() {
            return;
        }
        let missed = process::pending(entry.caller_pid) & !entry.world.blocked;
        entry.joined_ns = Some(clock::now_ns());
        for number in TERMINAL_SIGNALS {
            if missed & (1 << (number - 1)) != 0 {
                self.hands.signal(worker, number);
            }
        }
    }

    fn noted(&mut self, worker: WorkerId, notes: &Strings) {
        let Some(process) = self.hands.get(worker) else { return };
        let entry = self.warm.programs.entry(process.program);
        if let Some(lesson) = &mut entry.lesson {
            // More to import ahead: the next zygote of this program does.
            let _ = lesson.take(notes, entry.runtime.row().variables);
        }
    }

    /// A worker says nothing any more. Its process's end is told by whoever waits for it: a
    /// program may close the channel.
    fn silent(&mut self, worker: WorkerId) {
        let call = self.silences.remove(&worker).or_else(|| self.hands.get(worker)?.call);
        if let Some(call) = call {
            if let Some(entry) = self.ledger.get(call) {
                entry.worker_silent = true;
            }
            self.close(call);
        }
    }

    /// Stops: calls and messages that are open may end, hook sets are cancelled.
    pub(crate) fn stop(&mut self) {
        self.sets.stop();
        self.drain();
    }

    /// Takes nothing new: what is open may end.
    pub(crate) fn drain(&mut self) {
        self.events.push_back(Event::Drain);
        self.messages.stop();
        self.sets.close();
    }

    fn reap(&mut self) {
        for ended in self.hands.reap() {
            self.gone(ended);
        }
    }

    /// A process has ended: its call's receipt gets the usage, the core the event.
    pub(crate) fn gone(&mut self, ended: Ended) {
        let mut all = Vec::new();
        self.hands.remove(ended, &mut all);
        for (ended, process) in all {
            if let Some(pool) = process.handler {
                let (messages, mut ctx) = self.messages();
                messages.handler_gone(&mut ctx, &ended, &process, pool);
                continue;
            }
            if let Some(call) = process.call
                && let Some(entry) = self.ledger.get(call)
            {
                entry.worker_gone = true;
                if !entry.answered && process.left_its_call_unread() {
                    entry.was_not_given();
                    let why = GiveFailure::Unread;
                    self.events.push_back(Event::GiveFailed { call, worker: ended.worker, why });
                } else {
                    entry.usage = ended.usage;
                    if !entry.worker_silent {
                        self.silences.insert(ended.worker, call);
                    }
                }
            }
            self.events.push_back(Event::Gone { worker: ended.worker, exit: ended.exit });
            self.settle_events();
            if let Some(call) = process.call {
                self.close(call);
                self.hands.leave_deserted();
            }
        }
    }

    fn cold_ended(&mut self, call: CallId, ended: ColdEnded) {
        let Some(entry) = self.ledger.get(call) else { return };
        entry.usage = Some(Usage { ..ended.usage });
        entry.stamp(Mark::Main, ended.main_ns);
        entry.stamp(Mark::Finished, ended.finished_ns);
        let notes = entry.notes.take();
        let timing = if ended.timed_out {
            hob_core::event::ColdTiming::TimedOut
        } else {
            hob_core::event::ColdTiming::InTime
        };
        if let Some(path) = notes {
            self.learn(call, &path);
        }
        let exit: Exit = ended.exit;
        self.events.push_back(Event::ColdEnded { call, exit, timing });
    }

    /// Writes the receipt of a call if nothing of it is outstanding.
    pub(crate) fn close(&mut self, call: CallId) {
        if let Some(entry) = self.ledger.close_if_complete(call, Time(clock::now_ns())) {
            self.record(call, &entry);
        }
    }

    fn read_memory(&self) {
        if self.hands.is_empty() {
            return;
        }
        let (processes, inbox) = (self.hands.pids(), self.inbox.clone());
        tokio::spawn(async move {
            let readings = memory::read(processes).await;
            let _ = inbox.send(Input::Memory(readings)).await;
        });
    }

    /// What a learning run left; the file is gone afterwards.
    fn learn(&mut self, call: CallId, path: &std::path::Path) {
        let notes = std::fs::read(path).ok();
        let _ = std::fs::remove_file(path);
        let Some(entry) = self.ledger.get(call) else { return };
        let program = entry.program;
        let Some(notes) = notes.filter(|notes| notes.ends_with(b"\0")) else {
            self.events.push_back(Event::Learned { program, lesson: Told::Nothing, key: None });
            self.warm.programs.entry(program).lesson =
                Some(crate::warm::programs::Lesson::default());
            return;
        };
        let notes: Strings = notes[..notes.len() - 1].split(|byte| *byte == 0).collect();
        let mut lesson = crate::warm::programs::Lesson::default();
        let entry = self.warm.programs.entry(program);
        let _ = lesson.take(&notes, entry.runtime.row().variables);
        entry.lesson = Some(lesson);
        let key = self.plant(call);
        self.events.push_back(Event::Learned { program, lesson: Told::Notes, key });
    }
}

/// What a terminal sends: hang-up, interrupt, quit, stop, window change.
const TERMINAL_SIGNALS: [u8; 5] = [1, 2, 3, 20, 28];
/// Signals that wait for a call to be given.
const SIGNALS_WAITING_MAX: usize = 64;
