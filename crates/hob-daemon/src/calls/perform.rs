//! What the core answers, performed; and the receipts of calls of which nothing is outstanding.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use hob_core::event::{
    Effect, Event, Found, GiveFailure, Learning, Performed, Prepared, Told, Took,
};
use hob_core::ids::{CallId, Time, WorkerId};
use hob_core::key::Key;
use hob_core::limits::Limits;
use hob_core::outcome::{CancelledBy, ColdReason, Outcome, RefuseReason};
use hob_core::phase::Mark;
use hob_core::receipt::WorkerPart;
use hob_core::span::Kind as Noted;
use hob_core::supervisor::Demotion;
use hob_os::clock;
use hob_wire::call::{Purpose, Terminal};
use hob_wire::exit::{Exit, ExitCode};
use hob_wire::frame::Kind;
use hob_wire::reply::{self, Fate, Refused, RunCold};
use hob_wire::strings::Strings;
use hob_wire::worker::Role;

use super::facts::Own;
use super::{gain, keys};
use crate::around::Around;
use crate::calls::Calls;
use crate::calls::ledger::{Entry, Ledger};
use crate::channel;
use crate::ctx::Ctx;
use crate::recorder::ring;
use crate::warm::lesson::Lesson;
use crate::workers::processes::{self, Crowd, Given};

/// How long one that was asked to start a daemon in this one's place has for it.
const SUCCESSOR_WAIT_US: u64 = 60_000_000;

impl Calls {
    pub(crate) fn new(around: Arc<Around>, directory: PathBuf) -> Calls {
        Calls {
            ledger: Ledger::default(),
            silences: HashMap::new(),
            closing: Vec::new(),
            own: Own::new(around),
            successor_at: None,
            directory,
            bounds: Limits::default(),
        }
    }

    /// Writes the receipts of calls of which nothing is outstanding any more; whether there were
    /// any to look at.
    pub(crate) fn close_settled(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let closing = std::mem::take(&mut self.closing);
        for call in &closing {
            self.close(ctx, *call);
        }
        !closing.is_empty()
    }

    /// Writes the receipt of a call if nothing of it is outstanding.
    pub(crate) fn close(&mut self, ctx: &mut Ctx<'_>, call: CallId) {
        if let Some(entry) = self.ledger.close_if_complete(call, Time(clock::now_ns())) {
            self.record(ctx, call, &entry);
        }
    }

    /// Writes the receipts of calls whose workers did not say in time what they used.
    pub(crate) fn close_overdue(&mut self, ctx: &mut Ctx<'_>) {
        let now = Time(clock::now_ns());
        while let Some((id, entry)) = self.ledger.close_overdue(now) {
            self.record(ctx, id, &entry);
        }
    }

    /// Writes the receipts of all settled calls with what is known of them: the daemon leaves, and
    /// hears neither of their callers nor of their workers any more.
    pub(crate) fn close_all_settled(&mut self, ctx: &mut Ctx<'_>) {
        for (id, entry) in self.ledger.close_settled() {
            self.record(ctx, id, &entry);
        }
    }

    /// Performs an effect that is about a call alone. What comes of it is an event.
    pub(crate) fn perform(&mut self, ctx: &mut Ctx<'_>, effect: Effect) {
        match effect {
            Effect::RunCold { call, reason, learning } => {
                self.run_cold(ctx, call, reason, learning);
            }
            Effect::Refuse { call, reason } => self.refuse(call, reason),
            Effect::Prepared { call, prepared } => self.prepared(call, prepared),
            Effect::Queue { call } => self.queue(ctx, call),
            Effect::Give { call, worker, told } => self.give(ctx, call, worker, told),
            Effect::Settle { call, outcome, how } => self.settle(ctx, call, outcome, how),
            Effect::StartZygote { .. }
            | Effect::StartStandby { .. }
            | Effect::Fork { .. }
            | Effect::Signal { .. }
            | Effect::Retire { .. }
            | Effect::Overstays { .. }
            | Effect::Recall { .. }
            | Effect::Forget { .. }
            | Effect::Loaded { .. }
            | Effect::Request(_)
            | Effect::Exit => {}
        }
    }

    fn run_cold(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        reason: ColdReason,
        learning: Learning,
    ) {
        let Some(entry) = self.ledger.get(call) else { return };
        entry.stamp(Mark::Planned, clock::now_ns());
        // What was looked at to plan it may have been a caller that runs something else already.
        if entry.fds.take().is_some_and(|fds| fds.claim.is_taken()) {
            ctx.events.push_back(Event::TakenBack { call });
            return;
        }
        // A session ends with its leader: a launcher would end with this very call.
        let Terminal { session, .. } = entry.terminal;
        let lasts = ![0, entry.caller_pid, Terminal::OUTSIDE].contains(&session);
        // Its workers inherit its priority, and are for callers with any.
        let alike = self.own.around.is_like(&entry.world.priority);
        let wanted = lasts && alike && !ctx.processes.reaches(session);
        let better = entry.surpasses
            && matches!(reason, ColdReason::Cgroup | ColdReason::Priority | ColdReason::Limits);
        let successor = better && is_due_for_a_successor(&mut self.successor_at);
        let Some(resolved) = &entry.resolved else { return };
        // Without its file the interpreter would say so, and not run the program.
        let learning = learning == Learning::Yes && resolved.is_hosted();
        let learns = learning && resolved.row().learns;
        let (file, cold) = resolved.cold_argv();
        let argv: Strings = if learns && ctx.processes.runtimes().are_there() {
            let notes = self.directory.join(format!("notes-{}", call.0));
            let argv = ctx.processes.runtimes().learn(resolved, &notes);
            entry.notes = Some(notes);
            argv.iter().collect()
        } else {
            cold.into_iter().collect()
        };
        let run = RunCold {
            call: call.0,
            reason: reason.code().as_bytes().to_vec(),
            file: file.to_vec(),
            argv,
            set: resolved.env.words().collect(),
            launcher: wanted,
            successor,
        };
        let program = entry.program;
        send(entry, Kind::RunCold, |out| run.encode(out));
        if learning && !learns {
            // There is nothing to wait for: what is started now finds out itself what it loads.
            self.ledger.learned(ctx, call, program, Lesson::default(), &Strings::new());
        }
    }

    fn refuse(&mut self, call: CallId, reason: RefuseReason) {
        let outcome = Outcome::Refused(reason);
        self.ledger.count(outcome, Performed::Not);
        let Some(entry) = self.ledger.get(call) else { return };
        entry.stamp(Mark::Planned, clock::now_ns());
        // The caller's pipes must not stay open here when it has left.
        entry.fds = None;
        entry.settled = Some((outcome, Performed::Not));
        let (code, text) = entry.refusal.take().unwrap_or_else(|| {
            (ExitCode::NotExecutable as u8, format!("{}: cannot be run", entry.name))
        });
        let refused = Refused { code, text: text.into_bytes() };
        send(entry, Kind::Refused, |out| refused.encode(out));
    }

    /// Nothing was performed: there is no receipt.
    fn prepared(&mut self, call: CallId, prepared: Prepared) {
        let Some(entry) = self.ledger.forget(call) else { return };
        let cold = match prepared {
            Prepared::Ready => "",
            Prepared::Cold(reason) => reason.code(),
            Prepared::Left => return,
        };
        let told = reply::Prepared { cold: cold.as_bytes().to_vec() };
        send(&entry, Kind::Prepared, |out| told.encode(out));
    }

    fn queue(&mut self, ctx: &Ctx<'_>, call: CallId) {
        let Some(entry) = self.ledger.get(call) else { return };
        entry.stamp(Mark::Planned, clock::now_ns());
        ring::waits(call, &ctx.core.holders(call));
        send(entry, Kind::Queued, |_| ());
    }

    fn give(&mut self, ctx: &mut Ctx<'_>, call: CallId, worker: WorkerId, told: Told) {
        let crowd = if self.ledger.running() == 1 { Crowd::Alone } else { Crowd::Others };
        let Some(entry) = self.ledger.get(call) else {
            let why = GiveFailure::CallerLeft;
            ctx.events.push_back(Event::GiveFailed { call, worker, why });
            return;
        };
        let now_ns = clock::now_ns();
        entry.stamp(Mark::Planned, now_ns);
        entry.stamp(Mark::Queued, now_ns);
        let Some(program) = &entry.resolved else { return };
        let argv: Strings = program.argv.iter().collect();
        let given = Given {
            call,
            argv: &argv,
            env: &entry.env,
            world: &entry.world,
            caller: &entry.caller,
            caller_pid: entry.caller_pid,
            processor: entry.processor,
            group: entry.terminal.group,
            fds: &mut entry.fds,
            closed: entry.closed,
            beyond: &entry.beyond,
            signals: &mut entry.signals,
            crowd,
        };
        // Before the send: the worker it wakes may take this very processor.
        let given_ns = clock::now_ns();
        if told != Told::Nothing {
            ctx.processes.name_program(worker, program);
        }
        match ctx.processes.give(worker, given) {
            Ok(()) => {
                entry.stamp(Mark::Given, given_ns);
                ring::note(Noted::Given, call, worker.0, 0);
                entry.worker = Some(worker);
                entry.profiles = told == Told::Profiled;
                entry.worker_gone = false;
                entry.worker_silent = false;
            }
            Err(why) => ctx.events.push_back(Event::GiveFailed { call, worker, why }),
        }
    }

    fn settle(&mut self, ctx: &mut Ctx<'_>, call: CallId, outcome: Outcome, how: Performed) {
        // What is only compared is no use of hob's.
        if self.ledger.get(call).is_none_or(|entry| entry.purpose == Purpose::Use) {
            self.ledger.count(outcome, how);
        }
        self.ledger.settle(call, outcome, how);
        let Some(entry) = self.ledger.get(call) else { return };
        entry.stamp(Mark::Settled, clock::now_ns());
        entry.demoted = ctx.core.demotion(entry.program).map(reason);
        entry.fds = None;
        if let Performed::Warm { worker, .. } = how
            && let Some(process) = ctx.processes.get(worker)
        {
            let generation = process.zygote.unwrap_or(worker).0;
            entry.worker_part = Some(WorkerPart { pid: process.pid, generation });
        }
        if !entry.answered && !matches!(how, Performed::Cold(_)) {
            answer(entry, call, outcome, how);
        }
        self.close(ctx, call);
    }

    /// Writes the receipt of a closed call.
    pub(crate) fn record(&mut self, ctx: &mut Ctx<'_>, call: CallId, entry: &Entry) {
        let processes = &*ctx.processes;
        ctx.warm.programs.forget_environments_but(|key| processes.loads(key));
        if entry.profiles {
            keys::nothing_learned(ctx, entry.program);
        }
        let known = ctx.warm.programs.entry(entry.program);
        let Some(mut receipt) = entry.receipt(call, known) else { return };
        receipt.gain = gain::account(entry, &receipt, known);
        let us = receipt.total_us;
        ctx.recorder.record(receipt);
        // Only a program that ended by itself did what it was called for.
        let Some((Outcome::Exited(Exit::Code(_)), how)) = entry.settled else { return };
        let took = match (how, known.cold_us) {
            // It imported everything, and was watched.
            (Performed::Warm { found: Found::Bare | Found::Installed, .. }, _) => return,
            // A worker was spent on it: if there are many, that is what makes the program slow.
            (Performed::Warm { .. } | Performed::InPlace(_), Some(cold_us)) => {
                Took::Warm { us, cold_us }
            }
            (Performed::Cold(ColdReason::Learning | ColdReason::Stale), _) => {
                // Being watched took time of its own.
                known.cold_us.get_or_insert(us);
                return;
            }
            (Performed::Cold(_), _) => {
                known.cold_us = Some(us);
                Took::Cold { us }
            }
            (Performed::Warm { .. } | Performed::InPlace(_), None) | (Performed::Not, _) => return,
        };
        ctx.events.push_back(Event::Measured { program: entry.program, took });
    }
}

/// Whether a caller may start a daemon in this one's place; not each of them, should it fail.
fn is_due_for_a_successor(asked_at: &mut Option<Time>) -> bool {
    let now = Time(clock::now_ns());
    let is_due = asked_at.is_none_or(|at| now.us_since(at) >= SUCCESSOR_WAIT_US);
    if is_due {
        *asked_at = Some(now);
    }
    is_due
}

/// Tells the caller the outcome, where no worker has.
fn answer(entry: &Entry, call: CallId, outcome: Outcome, how: Performed) {
    let (fate, text) = match outcome {
        Outcome::Exited(exit) => (Fate::Exited(exit), String::new()),
        Outcome::TimedOut(_) => (Fate::TimedOut, String::new()),
        Outcome::Lost(phase) => (Fate::Lost, format!("its worker ended in phase {}", phase.name())),
        Outcome::Cancelled(CancelledBy::Stop) => (Fate::Lost, "hob was stopped".to_owned()),
        Outcome::Cancelled(CancelledBy::Caller) | Outcome::Refused(_) => return,
    };
    let cold = match how {
        Performed::InPlace(reason) => reason.code(),
        Performed::Warm { .. } | Performed::Cold(_) | Performed::Not => "",
    };
    let (text, cold) = (text.into_bytes(), cold.as_bytes().to_vec());
    let ended = reply::Ended { call: call.0, fate, text, cold };
    send(entry, Kind::Ended, |out| ended.encode(out));
}

/// Sends a frame to the caller. One that left meanwhile is noticed by its connection's end.
fn send(entry: &Entry, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
    if let Some(bytes) = channel::encode(kind, 0, body) {
        let _ = channel::send(&entry.caller, bytes, &[]);
    }
}

/// Why a program is not forked, for a person; it begins with the stable code.
pub(crate) fn reason(demotion: Demotion) -> String {
    let Demotion::Threads(count) = demotion;
    format!("{}: a fork would have one of its {count} threads", demotion.code())
}

/// Starts a zygote or standby of a program.
pub(crate) fn start(ctx: &mut Ctx<'_>, worker: WorkerId, role: Role, key: Key) {
    let spec = ctx.warm.programs.spec(key);
    let known = spec.and_then(|spec| Some((spec, ctx.warm.programs.get(spec.id)?)));
    let started = known
        .is_some_and(|(spec, known)| ctx.processes.start(worker, role, key, spec, known).is_ok());
    if !started {
        ctx.events.push_back(processes::stillborn(worker));
    }
}
