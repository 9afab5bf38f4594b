//! The message service: what happens of messages, taken to the parts that own it.
//!
//! | file | does |
//! |---|---|
//! | `mod` | what senders, other hosts, the outbox and the core say |
//! | `workers` | what handlers' processes say, and how they end |
//! | `settle` | outcomes: to who brought the job, and to its receipt |
//! | `state` | the shared state |
//!
//! What is decided is `hob_core::requests`'. Invariants: a sender hears of each of its messages once;
//! nothing of a message outlives its outcome.

mod settle;
mod state;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::BTreeMap;

use hob_core::hosts::News;
use hob_core::hosts::trail::Trail;
use hob_core::ids::{CallId, LaneId, Time, WorkerId};
use hob_core::log::Category;
use hob_core::phase::Mark;
use hob_core::receipt::trace::{self, Trace};
use hob_core::requests::shared_state::Shared;
use hob_core::requests::{Effect, Event, Found};
use hob_core::span::Kind as Noted;
use hob_core::supervisor::Supervisor;
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Manner, Message, Named, Numbered, Reason};
use rustix::fd::{AsFd, OwnedFd};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::channel;
use crate::ctx::Ctx;
use crate::hosts::{Heard, Hosts};
use crate::inputs::{Came, SenderEvent, SenderId, Sent};
use crate::jobs::job::{Asked, Given};
use crate::jobs::ledger::OPEN_BYTES_MAX;
use crate::jobs::origin::Origin;
use crate::leases::Leases;
use crate::outbox::{Done, Outbox};
use crate::project::Declared;
use crate::recorder::ring;
use crate::tables::Tables;
use crate::tells::Tells;

use workers::Ends;

/// How long the loop's end waits for the disk.
const CLOSE_MAX_NS: u64 = 2_000_000_000;

/// All that the loop holds for messages.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) tables: Tables,
    pub(crate) leases: Leases,
    pub(crate) tells: Tells,
    pub(crate) hosts: Hosts,
    ends: Ends,
    shared: Shared,
    /// Since when the loop waits for the outbox alone.
    closing_ns: Option<u64>,
    /// Whether anything happened since the supervisor was last told.
    active: bool,
}

impl Messages {
    pub(crate) fn new(
        outbox: Outbox,
        mounts: BTreeMap<String, Declared>,
        hosts: Hosts,
    ) -> Messages {
        Messages {
            tables: Tables::new(mounts),
            leases: Leases::new(),
            tells: Tells::new(outbox),
            hosts,
            ends: Ends::default(),
            shared: Shared::default(),
            closing_ns: None,
            active: false,
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let due = [
            self.tells.next_due(),
            self.tables.receipts.next_due(),
            self.leases.next_look(),
            self.hosts.next_deadline(),
        ];
        due.into_iter().flatten().min()
    }

    /// Whether somebody relies on this daemon to be there: it does not leave for idleness.
    pub(crate) fn take_activity(&mut self) -> bool {
        let holds = !self.tables.senders.is_empty()
            || !self.shared.is_empty()
            || !self.tells.is_empty()
            || self.hosts.holds();
        std::mem::take(&mut self.active) || holds
    }

    /// From now on nothing new is given.
    pub(crate) fn stop(&mut self) {
        self.tables.is_stopping = true;
        self.hosts.withdraw();
    }

    /// Gives the outbox up, for the next daemon to open, as soon as nothing new is given and no tell
    /// is with a worker any more. Whether that is done.
    pub(crate) fn hand_over(&self) -> bool {
        self.tables.is_stopping && !self.tells.flies() && self.tells.outbox().begin_close()
    }

    /// At the loop's end it is given up whatever is on its way. Whether that is done, or the disk has
    /// taken too long.
    pub(crate) fn gives_up(&mut self) -> bool {
        let since_ns = *self.closing_ns.get_or_insert_with(clock::now_ns);
        self.tells.outbox().begin_close() || clock::now_ns() >= since_ns + CLOSE_MAX_NS
    }

    /// Does what is due of what is no message's own.
    pub(crate) fn tick(&mut self, ctx: &mut Ctx<'_>) {
        let Messages { tables, leases, tells, hosts, .. } = self;
        tells.tick(ctx, tables, hosts);
        leases.tick(ctx, tables, Time(clock::now_ns()));
        tables.receipts.tick(ctx.recorder);
        let words = hosts.tick(ctx, tables);
        tells.said(ctx, tables, words);
    }

    /// Leaves receipts of all messages that have ended and were counted by now.
    pub(crate) fn leave_all_receipts(&mut self, ctx: &Ctx<'_>) {
        self.tables.receipts.leave_all(ctx.recorder);
    }

    /// The loop ends: no front says more, and what is asked elsewhere is lost.
    pub(crate) async fn leave(&mut self, ctx: &mut Ctx<'_>) {
        self.tables.receipts.fronts_gone(ctx.recorder);
        self.hosts.leave(ctx, &mut self.tables).await;
        self.tables.senders.flush();
        self.tables.senders.leave();
    }

    /// Says to other hosts what this one offers.
    pub(crate) fn offer(&mut self, ctx: &Ctx<'_>) {
        if !self.tables.is_stopping {
            self.hosts.offer(ctx.home);
        }
    }

    /// Something was trusted, or is no longer.
    pub(crate) fn trust_changed(&mut self, ctx: &mut Ctx<'_>) {
        self.offer(ctx);
        self.tables.catalog.trust_changed();
        self.tells.release(ctx, &mut self.tables, &mut self.hosts);
    }

    /// Loads mounts anew, one or all, and answers when it is known what became of each.
    pub(crate) fn reload(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Value,
        reply: oneshot::Sender<Value>,
    ) {
        if self.tables.is_stopping {
            // Whoever asked may have left.
            let _ = reply.send(json!({ "error": "the site stops" }));
        } else {
            self.tables.catalog.reload(ctx, request, reply);
        }
    }

    /// What the outbox has done.
    pub(crate) fn outbox_did(&mut self, ctx: &mut Ctx<'_>, done: Vec<Done>) {
        self.active = true;
        self.tells.outbox_did(ctx, &mut self.tables, &mut self.hosts, done);
    }

    /// Takes in what the connection to other hosts says, and had come by then.
    pub(crate) fn heard(&mut self, ctx: &mut Ctx<'_>, news: News, came_ns: u64) {
        self.active = true;
        let Messages { tables, tells, hosts, .. } = self;
        match hosts.heard(ctx, tables, news, came_ns) {
            Heard::Nothing => {}
            Heard::Repaired => tells.release(ctx, tables, hosts),
            Heard::Words(words) => {
                tells.said(ctx, tables, words);
                tells.deliver_all(ctx, tables, hosts);
            }
            Heard::StatsWanted { to, program } => {
                let dead = tells.status().dead;
                hosts.say_stats(ctx, tables, to, program, dead);
            }
            Heard::LettersWanted { to } => tells.letters_wanted(to),
        }
    }

    /// Takes in what a sender says.
    pub(crate) fn sender(&mut self, ctx: &mut Ctx<'_>, id: SenderId, event: SenderEvent) {
        self.active = true;
        let Messages { tables, leases, .. } = self;
        match event {
            SenderEvent::Attached { attach, outlet, pid } => {
                tables.senders.attach(id, attach, outlet, pid);
            }
            SenderEvent::Messages { sent, received_ns } => {
                for each in sent {
                    self.message(ctx, id, each, received_ns);
                }
            }
            SenderEvent::Cancel { id: number } => {
                if let Some(call) = tables.senders.job(id, number) {
                    self.taken_back(ctx, call);
                }
            }
            SenderEvent::WantLane { id: number, program } => {
                leases.want(ctx, tables, id, number, &program);
            }
            SenderEvent::LeaveLane { lane } => leases.left(ctx, id, LaneId(lane)),
            SenderEvent::Passed { passed, program } => self.passed(ctx, id, passed, &program),
            SenderEvent::Served { served, mount } => self.served(ctx, id, &served, &mount),
            SenderEvent::State { payload } => {
                state::reply(&mut self.shared, &tables.senders, id, &payload);
            }
            SenderEvent::Gone => {
                let Some(open) = tables.senders.gone(id) else { return };
                open.for_each(|call| self.taken_back(ctx, call));
                self.leases.sender_gone(ctx, id);
                self.tables.receipts.sender_gone(ctx.recorder, id);
            }
        }
    }

    fn message(&mut self, ctx: &mut Ctx<'_>, sender: SenderId, sent: Sent, received_ns: u64) {
        let Sent { frame, file } = sent;
        let Ok(message) = Message::decode(&frame) else {
            hob_os::debug!(Category::Connection, "a sender is sent away: it says no message");
            return self.tables.senders.send_away(sender);
        };
        let (number, payload) = (message.id, frame.slice_ref(message.payload));
        let came = Came { sender, message, payload, received_ns };
        if let Err((reason, text)) = self.open(ctx, &came, file) {
            hob_os::debug!(Category::Asks, "not taken: {}: {text}", reason.code());
            self.tables.senders.fail(sender, number, reason, &text);
        }
    }

    /// Takes a sender's message to where it is kept, or to a pool, or to other hosts.
    fn open(
        &mut self,
        ctx: &mut Ctx<'_>,
        came: &Came<'_>,
        file: Option<OwnedFd>,
    ) -> Result<(), (Reason, String)> {
        let at = jiff::Timestamp::now();
        let Came { sender, ref message, received_ns, .. } = *came;
        let Messages { tables, tells, hosts, .. } = self;
        let Ok(from) = tables.senders.from(sender) else { return Ok(()) };
        if tables.senders.job(sender, message.id).is_some() {
            return Err((Reason::Malformed, format!("message {} is open already", message.id)));
        }
        if !tables.jobs.has_room(message.payload.len()) {
            let text = format!("more than {} MiB of messages are open", OPEN_BYTES_MAX >> 20);
            return Err((Reason::Busy, text));
        }
        if file.is_some() && message.manner != Manner::Ask {
            return Err((Reason::Malformed, "a request is asked, not told".to_owned()));
        }
        if message.manner == Manner::Tell {
            return tells.accept(ctx, tables, hosts, came);
        }
        let catalog = &mut tables.catalog;
        let pool = match catalog.route_of_came(ctx, &from, message.program, received_ns) {
            Ok((pool, _)) => pool,
            Err(refused) if !refused.is_absent => return Err(refused.into()),
            Err(absent) => match hosts.offered_here(message) {
                Some((from, program)) => catalog.route_of_came(ctx, &from, program, received_ns)?.0,
                None if file.is_some() => return Err(absent.into()),
                None => return hosts.ask(ctx, tables, came, absent),
            },
        };
        let call = CallId(ctx.recorder.next_call());
        let pid = tables.senders.pid(sender);
        let before = hosts.trails.of(ctx, pid);
        let deadline =
            (message.remaining_us > 0).then(|| Time(received_ns).after_us(message.remaining_us));
        let message_id = match message.manner {
            Manner::Ask => Vec::new(),
            Manner::Tell | Manner::TellOnce => new_message_id(call),
        };
        let asked = Asked {
            key: message.key.to_vec(),
            content_type: message.content_type.to_vec(),
            message_id,
            payload: came.payload.clone(),
            file,
            deadline,
            ..Asked::new(message.manner, pool)
        };
        let origin = Origin::Sender(sender, message.id);
        let mut job = tables.message(origin, asked, received_ns);
        // What a site's front asks stands in its client's trace, and not in the one that started it.
        let seed = trace::seed(call, received_ns);
        let below = before.and_then(|trail| trail.trace).map(|trace| trace.below(seed));
        let parent = from.parent.filter(|_| !tables.catalog.is_site());
        job.trace = below.or_else(|| parent.map(|parent| parent.call(seed)));
        job.hops = before.map_or(0, |trail| trail.hops);
        (job.pid, job.at) = (pid, at);
        tables.senders.waits(sender, message.id, call);
        tables.open(ctx, call, job);
        Ok(())
    }

    /// A sender does not wait for its message any more.
    fn taken_back(&mut self, ctx: &mut Ctx<'_>, call: CallId) {
        if !self.hosts.take_back(ctx, &mut self.tables, call) {
            ctx.request(Event::SenderGone { call });
        }
    }

    /// After the core has decided: what waits is noted, and the tells that it did not refuse are
    /// accepted, and their senders wait for nothing more.
    pub(crate) fn decided(&mut self, core: &Supervisor) {
        let Tables { jobs, senders, .. } = &mut self.tables;
        jobs.note_waits(core);
        for call in jobs.take_undecided() {
            let Some(job) = jobs.get_mut(call) else { continue };
            let Some((sender, number)) = job.origin.sender() else { continue };
            job.origin = Origin::Accepted;
            let name = job.asked().map(|asked| asked.message_id.clone()).unwrap_or_default();
            let accepted = Named { id: number, name };
            senders.told(sender, number);
            senders.say(sender, Kind::Accepted, |out| accepted.encode(out));
        }
    }

    /// Performs what the core answers.
    pub(crate) fn perform(&mut self, ctx: &mut Ctx<'_>, effect: Effect) {
        let Messages { tables, leases, .. } = self;
        match effect {
            Effect::Give { call, worker, found } => self.give(ctx, call, worker, found),
            Effect::Cancel { call, worker } => {
                let cancel = Numbered { id: call.0 };
                let bytes = channel::encode(Kind::Cancel, 0, |out| cancel.encode(out));
                if !bytes.is_some_and(|bytes| ctx.processes.tell(worker, bytes, &[])) {
                    ctx.request(Event::Unreached { worker, unread: None });
                }
            }
            Effect::Lend { lane, worker, uses } => leases.lend(ctx, tables, lane, worker, uses),
            Effect::NoLane { lane } => leases.refuse(&mut tables.senders, lane),
            Effect::Settle { call, outcome } => self.settle(ctx, call, outcome),
        }
    }

    fn give(&mut self, ctx: &mut Ctx<'_>, call: CallId, worker: WorkerId, found: Found) {
        let Tables { jobs, catalog, .. } = &mut self.tables;
        let Some(job) = jobs.get_mut(call) else { return };
        let trail = Trail { trace: job.trace, hops: job.hops };
        let Some(asked) = job.asked_mut() else { return };
        let now = Time(clock::now_ns());
        let remaining_us =
            asked.deadline.map_or(0, |at| (at.0.saturating_sub(now.0) / 1000).max(1));
        ring::edge(call, Mark::Queued, now.0);
        ring::note(Noted::Given, call, worker.0, 0);
        let is_old = catalog.get(asked.pool).is_some_and(|loaded| loaded.is_old());
        asked.given = Some(Given { at: now, worker, found, is_old });
        let trace = trail.trace.as_ref().map(Trace::header).unwrap_or_default();
        let message = Message {
            id: call.0,
            manner: asked.manner,
            remaining_us,
            program: trace.as_bytes(),
            key: &asked.key,
            content_type: &asked.content_type,
            message_id: &asked.message_id,
            payload: &asked.payload,
        };
        if trail.hops > 0 || trail.trace.is_some() {
            self.hosts.given(call, worker, trail);
        }
        // It stays here: a worker that dies before it has read this leaves it to another one.
        let files: Vec<_> = asked.file.iter().map(AsFd::as_fd).collect();
        let (kind, count) =
            if asked.file.is_some() { (Kind::Request, 1) } else { (Kind::Message, 0) };
        let bytes = channel::encode(kind, count, |out| message.encode(out));
        let sent =
            bytes.is_some_and(|bytes| ctx.processes.tell_message(worker, call, bytes, &files));
        if !sent {
            ctx.request(Event::Unsent { worker, call });
        }
    }
}

/// An id that no other message has: the time, and the call's number.
fn new_message_id(call: CallId) -> Vec<u8> {
    let at = jiff::Timestamp::now().as_microsecond();
    format!("{at:x}-{:x}", call.0).into_bytes()
}
