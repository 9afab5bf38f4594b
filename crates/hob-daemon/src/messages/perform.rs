//! What the core answers, performed.

use hob_core::hosts::trail::Trail;
use hob_core::ids::{CallId, PoolId, WorkerId};
use hob_core::phase::Mark;
use hob_core::receipt::trace::Trace;
use hob_core::requests::{Effect, Event, Found, Loaded};
use hob_core::span::Kind as Noted;
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Message, Numbered};
use hob_wire::worker::{Preload, Role};
use rustix::fd::AsFd;

use crate::channel;
use crate::ctx::Ctx;
use crate::messages::Messages;
use crate::recorder::ring;
use crate::workers::hands::{self, Origin};

use super::loading;

impl Messages {
    pub(crate) fn perform_message(&mut self, ctx: &mut Ctx<'_>, effect: Effect) {
        match effect {
            Effect::Give { call, worker, found } => self.give_message(ctx, call, worker, found),
            Effect::Cancel { call, worker } => {
                let cancel = Numbered { id: call.0 };
                let bytes = channel::encode(Kind::Cancel, 0, |out| cancel.encode(out));
                if !bytes.is_some_and(|bytes| ctx.hands.tell(worker, bytes, &[])) {
                    ctx.request(Event::Unreached { worker, unread: None });
                }
            }
            Effect::Lend { lane, worker, uses } => self.lend(ctx, lane, worker, uses),
            Effect::NoLane { lane } => self.refuse_lane(lane),
            Effect::Recall { worker } => self.recall(worker),
            Effect::Forget { pool } => {
                self.handlers.remove(&pool);
                self.thin.forget(pool);
                self.reload_of(pool, loading::code(Loaded::Nothing), None);
            }
            Effect::Loaded { pool, loaded } => self.became(ctx, pool, loaded),
            Effect::Settle { call, outcome } => self.settle_message(ctx, call, outcome),
        }
    }

    /// Starts a process of a handler; `false`: the pool is a program's.
    pub(crate) fn start_handler(
        &mut self,
        ctx: &mut Ctx<'_>,
        pool: PoolId,
        worker: WorkerId,
        role: Role,
    ) -> bool {
        if role == Role::Zygote {
            self.attempts(pool, worker);
        }
        let Some(loaded) = self.handlers.get_mut(&pool) else { return false };
        let host = &loaded.host;
        let argv = ctx.hands.runtimes().handler(host);
        let preload = Preload {
            role,
            kind: loaded.kind,
            target: loaded.target.clone(),
            prefix: host.prefix.iter().collect(),
            modules: hob_wire::strings::Strings::new(),
            argv: std::iter::once(loaded.target.as_slice()).collect(),
            volatile: hob_wire::strings::Strings::new(),
        };
        let started = argv.and_then(|argv| {
            let origin = Origin {
                program: hob_core::ids::ProgramId(0),
                handler: Some(pool),
                key: loaded.key,
                session: 0,
                file: &host.interpreter,
                prints: Some(&loaded.target),
                argv: &argv,
                env: &loaded.env,
                directory: loaded.directory.as_ref(),
                held_below: 0,
            };
            ctx.hands.start_with(worker, &origin, &preload)
        });
        if let Err(error) = started {
            let file = String::from_utf8_lossy(&loaded.target);
            loaded.trouble = Some(format!("{file}: {error}"));
            ctx.events.push_back(hands::stillborn(worker));
        }
        true
    }

    fn give_message(&mut self, ctx: &mut Ctx<'_>, call: CallId, worker: WorkerId, found: Found) {
        let Some(open) = self.open.get_mut(&call) else { return };
        let now_ns = clock::now_ns();
        let remaining_us =
            open.deadline_ns.map_or(0, |at| (at.saturating_sub(now_ns) / 1000).max(1));
        (open.given_ns, open.worker, open.found) = (Some(now_ns), Some(worker), found);
        ring::edge(call, Mark::Queued, now_ns);
        ring::note(Noted::Given, call, worker.0, 0);
        let trail = Trail { trace: open.trace, hops: open.hops };
        open.old = self.handlers.get(&open.pool).is_some_and(loading::Loaded::is_old);
        let trace = open.trace.as_ref().map(Trace::header).unwrap_or_default();
        let message = Message {
            id: call.0,
            manner: open.manner,
            remaining_us,
            program: trace.as_bytes(),
            key: &open.key,
            content_type: &open.content_type,
            message_id: &open.message_id,
            payload: &open.payload,
        };
        if (trail.hops > 0 || trail.trace.is_some()) && self.hosts.is_configured() {
            self.hosts.trails.insert(call, (worker, trail));
        }
        // It stays here: a worker that dies before it has read this leaves it to another one.
        let files: Vec<_> = open.file.iter().map(AsFd::as_fd).collect();
        let (kind, count) =
            if open.file.is_some() { (Kind::Request, 1) } else { (Kind::Message, 0) };
        let bytes = channel::encode(kind, count, |out| message.encode(out));
        let sent = bytes.is_some_and(|bytes| ctx.hands.tell_message(worker, call, bytes, &files));
        if !sent {
            ctx.request(Event::Unsent { worker, call });
        }
    }
}
