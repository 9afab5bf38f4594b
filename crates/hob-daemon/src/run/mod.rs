//! The one loop: takes what happens, asks the core, performs what the core answers. It owns all
//! state of the daemon and never waits for anything but the next input.

mod control;
pub(crate) mod log;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_core::event::{Effect, Event, ForkFailure, Serves};
use hob_core::hosts::News;
use hob_core::ids::{CallId, Time, WorkerId};
use hob_core::key::Key;
use hob_core::log::Category;
use hob_core::receipt::Receipt;
use hob_core::span::Kind;
use hob_core::supervisor::Supervisor;
use hob_os::clock;
use hob_wire::worker::Role;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::around::Around;
use crate::calls::Calls;
use crate::ctx::Ctx;
use crate::fronts::local::Accepting;
use crate::inputs::{Input, SenderEvent, WorkerEvent};
use crate::messages::Messages;
use crate::recorder::{Recorder, ring};
use crate::sessions::Sessions;
use crate::sets::Sets;
use crate::socket::Socket;
use crate::tables::senders::leave;
use crate::warm::Warm;
use crate::workers::memory;
use crate::workers::processes::{Ended, Processes};

/// So many inputs are taken at most before what they have senders told is sent.
const TOGETHER_MAX: u32 = 64;

/// The daemon's state.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) core: Supervisor,
    pub(crate) processes: Processes,
    /// All about calls.
    pub(crate) calls: Calls,
    /// Programs, and whether what is warm of them is fresh.
    pub(crate) warm: Warm,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) socket: Socket,
    pub(crate) around: Arc<Around>,
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
    /// All about messages.
    pub(crate) messages: Messages,
    /// All about sessions.
    pub(crate) sessions: Sessions,
    /// Hook sets of callers that cannot run them by themselves.
    pub(crate) sets: Sets,
    /// The state directory, receipts or not: the register of trusted files, the outbox.
    pub(crate) home: Option<PathBuf>,
    /// The supervisor has nothing left.
    pub(crate) retired: bool,
}

impl Daemon {
    /// The parts, and what each may reach beyond itself.
    pub(crate) fn parts(&mut self) -> (&mut Calls, &mut Messages, Ctx<'_>) {
        let ctx = Ctx {
            core: &mut self.core,
            events: &mut self.events,
            processes: &mut self.processes,
            warm: &mut self.warm,
            recorder: &self.recorder,
            home: self.home.as_deref(),
        };
        (&mut self.calls, &mut self.messages, ctx)
    }

    /// Runs until the core says that all is retired.
    pub(crate) async fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> std::io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut readings = tokio::time::interval(memory::EVERY);
        readings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut together = 0;
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
                    self.processes.bound_log();
                    self.look_for_the_name();
                    self.tick_messages();
                    let active = self.messages.take_activity() | self.sets.take_activity();
                    if active || !self.sessions.is_empty() {
                        self.events.push_back(Event::Active);
                    }
                }
            }
            self.settle_events();
            self.messages.decided(&self.core);
            let handed_over = self.messages.hand_over();
            let ended = self.retired && self.sets.is_empty() && self.sessions.is_empty();
            self.leaving = ended && (handed_over || self.messages.gives_up());
            self.record_runs();
            self.flush_when_complete();
            together += 1;
            // What else has come is answered in the same write: who waits for it is woken once.
            if inputs.is_empty() || together >= TOGETHER_MAX {
                self.messages.tables.senders.flush();
                together = 0;
            }
        }
        self.take_last(&mut inputs);
        let (calls, _, mut ctx) = self.parts();
        calls.close_all_settled(&mut ctx);
        self.runs.drain(..).for_each(|run| self.recorder.record(run));
        let (_, messages, mut ctx) = self.parts();
        messages.leave(&mut ctx).await;
        self.leave_all_receipts();
        self.recorder.flush();
        self.recorder.end_push();
        hob_os::log!(Info, Category::Daemon, "it ends");
        hob_os::log::end();
        Ok(())
    }

    /// What came last is refused here; what comes now, by who brings it.
    fn take_last(&mut self, inputs: &mut mpsc::Receiver<Input>) {
        inputs.close();
        while let Ok(input) = inputs.try_recv() {
            if let Input::Sender { event: SenderEvent::Attached { outlet, .. }, .. } = &input {
                leave(outlet);
            } else if matches!(
                &input,
                Input::Hosts { news: News::Asked(_) | News::Went { .. }, .. } | Input::Outbox(_)
            ) {
                // An ask of another host, or the last tells that are kept.
                self.take(input);
            }
        }
    }

    /// Says to other hosts what this one offers.
    pub(crate) fn offer_programs(&mut self) {
        let (_, messages, ctx) = self.parts();
        messages.offer(&ctx);
    }

    /// How long until something is due.
    fn wake_in(&mut self) -> Duration {
        let messages = self.messages.next_deadline();
        let sessions = self.sessions.next_deadline();
        let due =
            [self.core.next_deadline(), self.calls.ledger.next_deadline(), messages, sessions];
        match due.into_iter().flatten().min() {
            Some(Time(at_ns)) => Duration::from_nanos(at_ns.saturating_sub(clock::now_ns())),
            None => Duration::MAX,
        }
    }

    fn tick_messages(&mut self) {
        let (_, messages, mut ctx) = self.parts();
        messages.tick(&mut ctx);
    }

    /// Leaves receipts of all messages that have ended by now.
    fn leave_all_receipts(&mut self) {
        let (_, messages, mut ctx) = self.parts();
        messages.leases.count(&mut ctx, &mut messages.tables);
        self.settle_events();
        let (_, messages, ctx) = self.parts();
        messages.leave_all_receipts(&ctx);
    }

    fn tick(&mut self) {
        self.events.push_back(Event::Tick);
        self.sessions.tick();
        self.tick_messages();
        let (calls, _, mut ctx) = self.parts();
        calls.close_overdue(&mut ctx);
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Call(incoming) => {
                let (calls, _, mut ctx) = self.parts();
                calls.arrive(&mut ctx, *incoming);
            }
            Input::Caller { call, event } => {
                let (calls, _, mut ctx) = self.parts();
                calls.caller(&mut ctx, call, event);
            }
            Input::Worker { worker, event } => self.worker(worker, event),
            Input::Launcher { session, stream } => {
                self.processes.launcher(session, stream, self.build);
            }
            Input::LauncherGone { session, stream } => {
                for worker in self.processes.launcher_gone(session, &stream) {
                    self.gone(Ended::killed(worker));
                }
            }
            Input::LauncherLeaves { session } => {
                self.processes.launcher_leaves(session);
                self.processes.leave_deserted();
            }
            Input::Control { request, reply } => self.control(&request, reply),
            Input::Outbox(done) => {
                let (_, messages, mut ctx) = self.parts();
                messages.outbox_did(&mut ctx, done);
            }
            Input::Sender { sender, event } => {
                self.processes.forget_near();
                let (_, messages, mut ctx) = self.parts();
                messages.sender(&mut ctx, sender, event);
            }
            Input::Hosts { news, came_ns } => {
                self.processes.forget_near();
                let (_, messages, mut ctx) = self.parts();
                messages.heard(&mut ctx, news, came_ns);
            }
            Input::Session { client, event } => self.sessions.client(client, event),
            Input::SessionReady { session, serves } => self.sessions.ready(session, serves),
            Input::SessionMemory(readings) => self.sessions.memory(readings),
            // The loop looks whether all has ended after each input.
            Input::SetsEnded => {}
            Input::Memory(readings) => {
                self.readings.clone_from(&readings);
                self.events.push_back(Event::Memory { readings });
            }
        }
    }

    /// Hands events to the core and performs its effects until nothing comes of it any more.
    pub(crate) fn settle_events(&mut self) {
        let mut effects: Vec<Effect> = Vec::new();
        loop {
            while let Some(event) = self.events.pop_front() {
                self.core.handle(Time(clock::now_ns()), event, &mut effects);
                for effect in effects.drain(..) {
                    self.perform(effect);
                }
            }
            let (calls, _, mut ctx) = self.parts();
            if !calls.close_settled(&mut ctx) {
                return;
            }
        }
    }

    /// Performs one effect. What comes of it is an event.
    fn perform(&mut self, effect: Effect) {
        let (calls, messages, mut ctx) = self.parts();
        match effect {
            Effect::StartZygote { pool, serves, zygote: worker, key }
            | Effect::StartStandby { pool, serves, worker, key } => {
                let is_zygote = matches!(effect, Effect::StartZygote { .. });
                let role = if is_zygote { Role::Zygote } else { Role::Standby };
                let name = || name_of(&ctx, messages, serves, key);
                let (pool, id) = (pool.0, worker.0);
                hob_os::debug!(
                    Category::Pool,
                    "pool {pool}: worker {id} is started for {}",
                    name()
                );
                match serves {
                    Serves::Handler(pool) => {
                        messages.tables.catalog.start(&mut ctx, pool, worker, role);
                    }
                    Serves::Program(_) => crate::calls::start(&mut ctx, worker, role, key),
                }
            }
            Effect::Fork { zygote, worker, pages } => {
                hob_os::debug!(Category::Zygote, "worker {} forks worker {}", zygote.0, worker.0);
                ring::note(Kind::Fork, CallId(0), worker.0, zygote.0);
                if !ctx.processes.fork(zygote, worker, pages) {
                    ctx.events.push_back(Event::ForkFailed { worker, why: ForkFailure::System });
                }
            }
            Effect::Signal { worker, signal } => ctx.processes.signal(worker, signal),
            Effect::Retire { worker } => {
                hob_os::debug!(Category::Pool, "worker {} retires", worker.0);
                ctx.processes.retire(worker);
            }
            Effect::Overstays { worker } => say_overstay(&mut ctx, messages, worker),
            Effect::Recall { worker } => messages.leases.recall(worker),
            Effect::Forget { pool } => messages.tables.catalog.forget(pool),
            Effect::Loaded { pool, loaded } => {
                messages.tables.catalog.became(&mut ctx, pool, loaded);
            }
            Effect::Request(effect) => messages.perform(&mut ctx, effect),
            Effect::Exit => {
                hob_os::debug!(Category::Daemon, "nothing is left to do");
                self.retired = true;
                // Idle, not asked to: nothing more is delivered.
                self.messages.stop();
            }
            Effect::RunCold { .. }
            | Effect::Refuse { .. }
            | Effect::Prepared { .. }
            | Effect::Queue { .. }
            | Effect::Give { .. }
            | Effect::Settle { .. } => calls.perform(&mut ctx, effect),
        }
    }

    fn worker(&mut self, worker: WorkerId, event: WorkerEvent) {
        if let WorkerEvent::Forked(forked, _) = &event {
            ring::note(Kind::Forked, CallId(0), forked.worker, forked.pid.into());
        }
        let (_, messages, mut ctx) = self.parts();
        let is_handlers = match ctx.processes.get(worker).map(|process| process.serves) {
            Some(Serves::Handler(_)) => true,
            Some(Serves::Program(_)) => false,
            None => messages.listens_to(worker),
        };
        if is_handlers {
            ctx.processes.forget_near();
            messages.handler_says(&mut ctx, worker, event);
        } else if let WorkerEvent::Launched(launched, pidfd) = event {
            if !self.processes.launched(launched, pidfd) {
                self.gone(Ended::killed(WorkerId(launched.worker)));
            }
        } else if let WorkerEvent::Gone(gone) = event {
            let (worker, usage) = (WorkerId(gone.worker), Some(gone.usage));
            self.gone(Ended { worker, exit: gone.exit, usage });
        } else {
            let (calls, _, mut ctx) = self.parts();
            calls.worker_says(&mut ctx, worker, event);
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
        self.sessions.stop();
        self.sets.close();
    }

    fn reap(&mut self) {
        self.sessions.reap();
        for ended in self.processes.reap() {
            self.gone(ended);
        }
    }

    /// A process has ended, and with a zygote its copies.
    fn gone(&mut self, ended: Ended) {
        let mut all = Vec::new();
        self.processes.remove(ended, &mut all);
        for (ended, process) in all {
            let (calls, messages, mut ctx) = self.parts();
            match process.serves {
                Serves::Handler(pool) => messages.handler_gone(&mut ctx, &ended, &process, pool),
                Serves::Program(_) => calls.worker_gone(&mut ctx, &ended, &process),
            }
        }
    }

    fn read_memory(&self) {
        let (sessions, inbox) = (self.sessions.pids(), self.inbox.clone());
        if !sessions.is_empty() {
            tokio::spawn(async move {
                let readings = memory::read(sessions).await;
                let _ = inbox.send(Input::SessionMemory(readings)).await;
            });
        }
        if self.processes.is_empty() {
            return;
        }
        let (processes, inbox) = (self.processes.pids(), self.inbox.clone());
        tokio::spawn(async move {
            let readings = memory::read(processes).await;
            let _ = inbox.send(Input::Memory(readings)).await;
        });
    }
}

/// Says in the log whose process has not ended in time, and what it had done. Its receipt was
/// written without it.
fn say_overstay(ctx: &mut Ctx<'_>, messages: &Messages, worker: WorkerId) {
    let Some(process) = ctx.processes.get(worker) else { return };
    let (pid, key, serves) = (process.pid, process.key, process.serves);
    let after = process.call.map_or_else(String::new, |call| format!(" after call {}", call.0));
    let name = name_of(ctx, messages, serves, key);
    hob_os::log!(
        Warn,
        Category::Pool,
        "worker {} of {name}, pid {pid}, has not ended in the time that it had{after}: it is killed",
        worker.0
    );
}

/// The name of what a process is for, for the log.
fn name_of<'a>(ctx: &'a Ctx<'_>, messages: &'a Messages, serves: Serves, key: Key) -> &'a str {
    let name = match serves {
        Serves::Handler(pool) => messages.tables.catalog.name_of(pool),
        Serves::Program(_) => ctx.warm.programs.name_of(key),
    };
    name.unwrap_or("?")
}
