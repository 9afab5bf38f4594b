//! What handlers' processes say, and how they end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_core::event::{self, ForkFailure, Serves};
use hob_core::http::answer::HINT_BYTES_MAX;
use hob_core::ids::{CallId, PoolId, WorkerId};
use hob_core::requests::Event;
use hob_wire::exit::Exit;
use hob_wire::frame::Kind;
use hob_wire::frames::http::{Hint, Respond};
use hob_wire::message::{Answer, Failure, Reason};
use hob_wire::worker::{Ready, Role, Spans};
use rustix::fd::OwnedFd;

use crate::channel;
use crate::ctx::Ctx;
use crate::inputs::{SenderId, WorkerEvent};
use crate::jobs::job::Said;
use crate::messages::Messages;
use crate::recorder::ring;
use crate::workers::processes::{Ended, Process};

/// A handler's process that has ended, and how.
#[derive(Debug)]
struct Leaving {
    pool: PoolId,
    exit: Exit,
    unread: Arc<AtomicBool>,
    newest: Option<CallId>,
}

/// Processes that have ended, or whose channel has, and not both yet.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Those that have ended: their last words come before their end.
    leaving: HashMap<WorkerId, Leaving>,
    /// Those whose channel has ended.
    silent: HashSet<WorkerId>,
}

impl Ends {
    /// Whether a worker's process has ended, or its channel has.
    pub(super) fn has_left(&self, worker: WorkerId) -> bool {
        self.silent.contains(&worker) || self.leaving.contains_key(&worker)
    }
}

impl Messages {
    /// Whether a handler's process has ended, and its last word is not read.
    pub(crate) fn listens_to(&self, worker: WorkerId) -> bool {
        self.ends.leaving.contains_key(&worker)
    }

    /// Takes what a handler's process says.
    pub(crate) fn handler_says(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, event: WorkerEvent) {
        match event {
            WorkerEvent::Ready(ready) => self.handler_ready(ctx, worker, &ready),
            WorkerEvent::Forked(forked, pidfd) => {
                let copy = WorkerId(forked.worker);
                if forked.pid != 0 {
                    ctx.processes.forked(copy, forked.pid, pidfd);
                } else {
                    ctx.processes.unforked(copy);
                    let why = match forked.error.as_slice() {
                        b"threads" => ForkFailure::Threads,
                        _ => ForkFailure::System,
                    };
                    ctx.events.push_back(event::Event::ForkFailed { worker: copy, why });
                }
            }
            WorkerEvent::Gone(gone) => {
                let (worker, usage) = (WorkerId(gone.worker), Some(gone.usage));
                let mut all = Vec::new();
                ctx.processes.remove(Ended { worker, exit: gone.exit, usage }, &mut all);
                for (ended, process) in all {
                    if let Serves::Handler(pool) = process.serves {
                        self.handler_gone(ctx, &ended, &process, pool);
                    }
                }
            }
            WorkerEvent::Failed(failed) => self.cannot_load(ctx, worker, &failed.text),
            WorkerEvent::Answer(payload) => match Answer::decode(&payload) {
                Ok(answer) => {
                    let content_type = answer.content_type.to_vec();
                    let said = Said::Answer { content_type, payload: answer.payload.to_vec() };
                    self.said(ctx, worker, CallId(answer.id), said);
                }
                Err(_) => ctx.processes.retire(worker),
            },
            WorkerEvent::Failure(payload) => match Failure::decode(&payload) {
                Ok(failure) => {
                    let raised = || Said::Raised { text: failure.text.to_vec() };
                    let left = failure.reason == Reason::Cancelled;
                    let said = if left { Said::Left } else { raised() };
                    self.said(ctx, worker, CallId(failure.id), said);
                }
                Err(_) => ctx.processes.retire(worker),
            },
            WorkerEvent::Respond(payload, body) => match Respond::decode(&payload) {
                Ok(respond) => self.responds(ctx, worker, respond, body),
                Err(_) => ctx.processes.retire(worker),
            },
            WorkerEvent::Hint(payload) => match Hint::decode(&payload) {
                Ok(hint) => self.hints(worker, hint),
                Err(_) => ctx.processes.retire(worker),
            },
            WorkerEvent::Handled(handled) => {
                self.active = true;
                self.leases.handled(ctx, &mut self.tables, worker, &handled);
            }
            WorkerEvent::Notes(notes) => {
                let Some(pool) = self.pool_of(ctx, worker) else { return };
                self.tables.catalog.attempt_noted(pool, worker, &notes.notes);
            }
            WorkerEvent::Spans(spans) => self.spans_said(worker, &spans),
            WorkerEvent::Launched(..) | WorkerEvent::Finished(_) => {}
            WorkerEvent::Joined(_) | WorkerEvent::Executes(_) => {}
            WorkerEvent::Closed => {
                if let Some(left) = self.ends.leaving.remove(&worker) {
                    self.has_gone(ctx, worker, &left);
                } else if ctx.processes.get(worker).is_some() {
                    self.ends.silent.insert(worker);
                }
            }
        }
    }

    /// What a message's program says that it did, if the message is this worker's.
    fn spans_said(&mut self, worker: WorkerId, spans: &Spans) {
        if self.tables.jobs.of_worker(CallId(spans.call), worker).is_some() {
            ring::own(spans);
        }
    }

    /// A handler's process cannot load it, and leaves.
    fn cannot_load(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, text: &[u8]) {
        let text = String::from_utf8_lossy(text).into_owned();
        // The first line says what; below it is where in the runtime.
        let text = text.lines().next().unwrap_or_default();
        let text = text.strip_prefix("LoadError: ").unwrap_or(text).to_owned();
        if let Some(pool) = self.pool_of(ctx, worker) {
            self.tables.catalog.attempt_explained(ctx, pool, worker, text);
        }
        ctx.processes.retire(worker);
    }

    fn pool_of(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId) -> Option<PoolId> {
        match ctx.processes.get(worker).map(|process| process.serves) {
            Some(Serves::Handler(pool)) => Some(pool),
            Some(Serves::Program(_)) | None => self.ends.leaving.get(&worker).map(|left| left.pool),
        }
    }

    fn handler_ready(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, ready: &Ready) {
        let Some(process) = ctx.processes.get(worker) else { return };
        let since = process.loads_since;
        if ready.role != Role::Copy {
            let Some(pool) = self.pool_of(ctx, worker) else { return };
            if ready.role == Role::Zygote && !self.tables.catalog.is_attempt(pool, worker) {
                // Another one took its place meanwhile.
                return;
            }
            if !self.tables.catalog.admit(pool, &ready.notes, since) {
                // Edited while it was loaded: what it has may be either.
                self.tables.catalog.load_anew(ctx, pool);
                return;
            }
        }
        let threads = ready.threads;
        ctx.events.push_back(match ready.role {
            Role::Zygote => {
                let preload = event::Preload::AsLearned;
                event::Event::ZygoteReady { zygote: worker, threads, preload }
            }
            Role::Standby | Role::Copy => event::Event::Ready { worker, threads },
        });
    }

    /// An answer begins: it is passed on with what its body comes by, and from now on who asked
    /// watches its time.
    fn responds(
        &mut self,
        ctx: &mut Ctx<'_>,
        worker: WorkerId,
        respond: Respond<'_>,
        body: OwnedFd,
    ) {
        let call = CallId(respond.id);
        let Some((id, number)) = self.unanswered(call, worker) else { return };
        let Some(sender) = self.tables.senders.get(id) else { return };
        let respond = Respond { id: number, ..respond };
        let bytes = channel::encode(Kind::Respond, 1, |out| respond.encode(out));
        sender.outlet.pass(bytes, body);
        ctx.request(Event::Begun { worker, call });
    }

    /// Who waits for a job that this worker has not answered yet.
    fn unanswered(&mut self, call: CallId, worker: WorkerId) -> Option<(SenderId, u64)> {
        let asked = self.tables.jobs.of_worker(call, worker)?;
        if asked.said.is_some() {
            return None;
        }
        self.tables.jobs.get(call)?.origin.sender()
    }

    /// What an app says before its answer is passed on to whoever asked, and changes nothing here.
    fn hints(&mut self, worker: WorkerId, hint: Hint<'_>) {
        if hint.head.len() > HINT_BYTES_MAX {
            return;
        }
        let Some((id, number)) = self.unanswered(CallId(hint.id), worker) else { return };
        let hint = Hint { id: number, ..hint };
        self.tables.senders.say(id, Kind::Hint, |out| hint.encode(out));
    }

    fn said(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, call: CallId, said: Said) {
        if let Some(job) = self.tables.jobs.get_mut(call) {
            let asked = job.asked_mut().filter(|asked| asked.worker() == Some(worker));
            let Some(asked) = asked else { return };
            asked.said.get_or_insert(said);
        }
        // One that is settled already was let go by this.
        ctx.request(Event::Answered { worker, call });
    }

    /// A handler's process has ended; its lane with it. What it said last (an answer, or why it
    /// cannot load its handler) may still lie in its channel, and is read first.
    pub(crate) fn handler_gone(
        &mut self,
        ctx: &mut Ctx<'_>,
        ended: &Ended,
        process: &Process,
        pool: PoolId,
    ) {
        let worker = ended.worker;
        self.leases.cut(worker, process);
        let (unread, newest) = (Arc::clone(process.unread()), process.newest());
        let left = Leaving { pool, exit: ended.exit, unread, newest };
        if self.ends.silent.remove(&worker) {
            self.has_gone(ctx, worker, &left);
        } else {
            self.ends.leaving.insert(worker, left);
        }
    }

    /// A handler's process has ended, and its last word was read.
    fn has_gone(&mut self, ctx: &mut Ctx<'_>, worker: WorkerId, left: &Leaving) {
        self.leases.lost(ctx, &mut self.tables, worker);
        self.tables.catalog.attempt_ended(ctx, left.pool, worker, left.exit);
        // Of what was sent before the last it is not known whether it was read.
        if left.unread.load(Ordering::Relaxed)
            && let Some(call) = left.newest
            && self.tables.jobs.of_worker(call, worker).is_some()
        {
            ctx.request(Event::Unreached { worker, unread: Some(call) });
        }
        ctx.events.push_back(event::Event::Gone { worker, exit: left.exit });
    }
}
