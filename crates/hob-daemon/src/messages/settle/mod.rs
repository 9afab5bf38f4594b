//! Outcomes of messages: to their senders, and to the recorder.
//!
//! Which of them have a receipt of their own is `thin`'s to say. That of a request is held until its
//! front is done with it: only then is known what its client took.

mod served;

use std::sync::Arc;

use hob_core::ids::{CallId, PoolId, Time, WorkerId};
use hob_core::log::Category;
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::trace::{Trace, TracePart};
use hob_core::receipt::{
    MessagePart, OutcomePart, PhasePart, ProgramPart, Receipt, SCHEMA, WorkerPart,
};
use hob_core::requests::{Found, Given, RAN_LATE, Refusal, Settled, WAITED};
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Answer, Judged, Passed, Protocol, Reason, Turned};

use crate::ctx::Ctx;
use crate::inputs::SenderId;
use crate::messages::Messages;
use crate::workers::hands::Process;

use super::loading::ended_early;
use super::thin::{ANSWERED, Told};
use super::{Open, Said};
use crate::recorder::{format, ring};

/// Outcomes that wait for their fronts; above that receipts lack what the front would say.
const HELD_MAX: usize = 16_384;

/// What a receipt will say of a request, once its front is done with it.
#[derive(Debug)]
pub(in crate::messages) struct Held {
    pool: PoolId,
    told: Told,
}

impl Messages {
    /// Tells a message's outcome, once.
    pub(in crate::messages) fn settle_message(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        outcome: Settled,
    ) {
        let Some(open) = self.open.remove(&call) else { return };
        ring::edge(call, Mark::Settled, clock::now_ns());
        self.open_bytes -= open.payload.len();
        self.hosts.trails.remove(&call);
        // Who takes back what its worker has left behind may only be the first to see that.
        let outcome = match open.worker {
            Some(worker) if outcome == Settled::Cancelled && self.has_left(worker) => Settled::Lost,
            Some(_) | None => outcome,
        };
        let (reason, text) = self.failure_of(&open, outcome);
        // The text of what a handler raised may hold what it was asked, and stays out.
        if outcome == Settled::Answered && !matches!(open.said, Some(Said::Answer { .. })) {
            hob_os::debug!(Category::Asks, "call {} has no answer: {}", call.0, reason.code());
        } else if outcome != Settled::Answered {
            hob_os::debug!(Category::Asks, "call {}: {}: {text}", call.0, reason.code());
        }
        if let Some((id, number)) = open.sender
            && let Some(sender) = self.senders.get_mut(&id)
        {
            sender.open.remove(&number);
            match (&open.said, outcome) {
                (Some(Said::Answer { content_type, payload }), Settled::Answered) => {
                    let answer = Answer { id: number, content_type, payload };
                    self.say(id, Kind::Answer, |out| answer.encode(out));
                }
                _ => self.tell_failure(id, number, reason, &text),
            }
        }
        if let Some(asked) = &open.asked_by {
            self.answer_host(call, &open, asked, outcome, (reason, &text));
        }
        if let Some(streamed) = &open.streamed {
            let why = format!("{}: {text}", reason.code());
            self.streamed_settled(&open, streamed, outcome, &why);
        }
        if let Some(id) = open.told {
            self.tell_settled(ctx, id, &open, outcome, &format!("{}: {text}", reason.code()));
        }
        self.record_message(ctx, call, &open, outcome, reason);
    }

    /// What a message without an answer is told; of no meaning for one with an answer.
    fn failure_of(&self, open: &Open, outcome: Settled) -> (Reason, String) {
        let loaded = self.handlers.get(&open.pool);
        let name = loaded.map_or("?", |loaded| loaded.name.as_str());
        match outcome {
            Settled::Answered => match &open.said {
                Some(Said::Raised { text }) => {
                    (Reason::Raised, String::from_utf8_lossy(text).into_owned())
                }
                Some(Said::Left) => (Reason::Cancelled, format!("{name}: its client has left")),
                Some(Said::Answer { .. }) | None => (Reason::Raised, String::new()),
            },
            Settled::Lost => (Reason::Lost, format!("{name}: its worker ended before it answered")),
            Settled::TimedOut { given: Given::Yes } if open.found == Found::Queued => {
                (Reason::TimedOut, format!("{name}: {RAN_LATE}"))
            }
            Settled::TimedOut { given: Given::Yes } => {
                (Reason::TimedOut, format!("{name}: the time passed while its handler ran"))
            }
            Settled::TimedOut { given: Given::No } => {
                (Reason::TimedOut, format!("{name}: {WAITED}"))
            }
            Settled::Cancelled => (Reason::Cancelled, format!("{name}: taken back")),
            Settled::Refused(refusal) => match refusal {
                Refusal::QueueFull => (Reason::Busy, format!("{name}: too many messages wait")),
                Refusal::SessionsFull => (Reason::Busy, format!("{name}: too many sessions")),
                Refusal::Stopping => (Reason::Stopping, format!("{name}: hob stops")),
                Refusal::NotLoaded => {
                    let trouble = loaded.and_then(|loaded| loaded.trouble.clone());
                    let ended = loaded.map_or("", |loaded| ended_early(&loaded.host));
                    let trouble = trouble.unwrap_or_else(|| ended.to_owned());
                    (Reason::NotLoaded, format!("{name}: cannot be loaded: {trouble}"))
                }
            },
        }
    }

    fn record_message(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        open: &Open,
        outcome: Settled,
        reason: Reason,
    ) {
        let now = Time(clock::now_ns());
        let answered =
            matches!(open.said, Some(Said::Answer { .. })) && outcome == Settled::Answered;
        let known = self.handlers.get(&open.pool);
        let Some(face) = known.map(|loaded| Arc::clone(&loaded.face)) else { return };
        let mut marks = Marks::default();
        marks.stamp(Mark::Received, Time(open.received_ns));
        marks.stamp(Mark::Planned, Time(open.planned_ns));
        if let Some(given_ns) = open.given_ns {
            marks.stamp(Mark::Queued, Time(given_ns));
            marks.stamp(Mark::Main, Time(given_ns));
            marks.stamp(Mark::Finished, now);
        }
        marks.stamp(Mark::Settled, now);
        let told = Told {
            face,
            call: Some(call),
            pid: open.pid,
            given: open.worker.is_some(),
            worker: open.worker.and_then(|id| self.worker_part(ctx, id)),
            marks,
            at: open.at,
            reason: match (open.given_ns, open.found) {
                (None, _) => refused_for(outcome).unwrap_or(reason.code()),
                (Some(_), _) if open.old => "old-code",
                (Some(_), Found::Waiting) => "worker-ready",
                (Some(_), Found::Queued) => "queued",
            },
            outcome: if answered { ANSWERED } else { reason.code() },
            bytes: open.payload.len(),
            protocol: None,
            judged: Judged::Not,
            asked_by: match (&open.asked_by, &open.streamed) {
                (Some(asked), _) => Some(asked.from.clone()),
                (None, Some(streamed)) => Some(streamed.from.clone()).filter(|by| !by.is_empty()),
                (None, None) => None,
            },
            hops: open.hops,
            trace: open.trace.as_ref().map(Trace::part),
        };
        self.record_when_passed(ctx, open, told);
    }

    /// Leaves a receipt, or holds it until the front is done with its request.
    fn record_when_passed(&mut self, ctx: &mut Ctx<'_>, open: &Open, mut told: Told) {
        let front = open.sender.filter(|(id, _)| self.senders.contains_key(id));
        match (front, &open.passed) {
            (Some(_), Some(passed)) => stamp(&mut told, passed),
            (Some(number), None) if !self.mounts.is_empty() && self.held.len() < HELD_MAX => {
                self.held.insert(number, Held { pool: open.pool, told });
                return;
            }
            (Some(_) | None, _) => {}
        }
        self.leave_receipt(ctx, open.pool, Time(clock::now_ns()), told, 1);
    }

    /// A front is done with a request.
    pub(in crate::messages) fn passed(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        passed: Passed<'static>,
        program: &[u8],
    ) {
        if passed.turned != Turned::Not {
            self.record_turned(ctx, sender, &passed, program);
            return;
        }
        if passed.lane != 0 {
            self.passed_on_lane(ctx, sender, &passed);
            return;
        }
        let call = self.senders.get(&sender).and_then(|known| known.open.get(&passed.id));
        if let Some(open) = call.and_then(|call| self.open.get_mut(call)) {
            open.passed = Some(passed);
        } else if let Some(Held { pool, mut told }) = self.held.remove(&(sender, passed.id)) {
            stamp(&mut told, &passed);
            self.leave_late(ctx, pool, told);
        }
    }

    /// The receipt of a request that a front has turned away, though its app is known.
    fn record_turned(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        passed: &Passed<'_>,
        program: &[u8],
    ) {
        let pid = self.senders.get(&sender).map_or(0, |sender| sender.pid);
        let routed = self.from(sender).and_then(|from| self.route(ctx, &from, program));
        // What is wrong with the app is told to its next request.
        let Ok((pool, _)) = routed else { return };
        let Some(face) = self.handlers.get(&pool).map(|loaded| Arc::clone(&loaded.face)) else {
            return;
        };
        let mut marks = Marks::default();
        stamp_head(&mut marks, (passed.head_ns, passed.begun_ns, passed.judged_ns));
        let was_whole = passed.whole_ns > 0;
        let whole_ns = if was_whole { passed.whole_ns } else { passed.passed_ns };
        marks.stamp(Mark::Whole, Time(whole_ns));
        if was_whole {
            marks.stamp(Mark::Queued, Time(passed.passed_ns));
        }
        let told = Told {
            face,
            call: None,
            pid,
            given: false,
            worker: None,
            marks,
            at: jiff::Timestamp::now(),
            reason: passed.turned.code(),
            outcome: REFUSED,
            bytes: 0,
            protocol: Some(passed.protocol),
            judged: passed.judged,
            asked_by: None,
            hops: 0,
            trace: TracePart::of(passed.trace),
        };
        self.leave_receipt(ctx, pool, Time(clock::now_ns()), told, 1);
    }

    /// Leaves the receipt of a request whose pool may be over by now.
    fn leave_late(&mut self, ctx: &mut Ctx<'_>, pool: PoolId, told: Told) {
        self.leave_receipt(ctx, pool, Time(clock::now_ns()), told, 1);
        if !self.handlers.contains_key(&pool) {
            self.thin.forget(pool);
        }
    }

    /// Leaves what is held of a front that has left.
    pub(in crate::messages) fn leave_held_of(&mut self, ctx: &mut Ctx<'_>, sender: SenderId) {
        let held: Vec<Held> =
            self.held.extract_if(|(id, _), _| *id == sender).map(|(_, held)| held).collect();
        held.into_iter().for_each(|held| self.leave_late(ctx, held.pool, held.told));
    }

    /// Leaves all that is held: no front says more.
    pub(crate) fn leave_held(&mut self, ctx: &mut Ctx<'_>) {
        let held = std::mem::take(&mut self.held);
        held.into_values().for_each(|held| self.leave_late(ctx, held.pool, held.told));
    }

    pub(in crate::messages) fn worker_part(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: WorkerId,
    ) -> Option<WorkerPart> {
        ctx.hands.get(id).map(|process| part_of(id, process))
    }

    /// Leaves the receipt of so many messages, the newest of which is told of; or keeps it, for a
    /// later one to stand for them.
    pub(in crate::messages) fn leave_receipt(
        &mut self,
        ctx: &mut Ctx<'_>,
        pool: PoolId,
        now: Time,
        told: Told,
        count: u64,
    ) {
        for (told, stands_for) in self.thin.take(pool, now, told, count) {
            self.write_receipt(ctx, told, stands_for);
        }
    }

    /// Leaves the receipts that nothing has come to stand for in time.
    pub(crate) fn tick_receipts(&mut self, ctx: &mut Ctx<'_>) {
        let now = Time(clock::now_ns());
        self.look_at_lanes(ctx, now);
        for (told, stands_for) in self.thin.due(now) {
            self.write_receipt(ctx, told, stands_for);
        }
        self.tick_sampled(ctx, now);
    }

    /// Leaves receipts of all messages that have ended and were counted by now.
    pub(crate) fn leave_all_receipts(&mut self, ctx: &mut Ctx<'_>) {
        let now = Time(clock::now_ns());
        for (told, stands_for) in self.thin.all(now) {
            self.write_receipt(ctx, told, stands_for);
        }
        self.leave_all_sampled(ctx, now);
    }

    fn write_receipt(&self, ctx: &mut Ctx<'_>, told: Told, stands_for: u64) {
        let call = told.call.map_or_else(|| ctx.recorder.next_call(), |call| call.0);
        let message = MessagePart {
            bytes: told.bytes,
            stands_for,
            protocol: named(told.protocol),
            rights: told.judged.code().map(str::to_owned),
            status: None,
            host: None,
            host_us: None,
            asked_by: told.asked_by,
            hops: Some(told.hops).filter(|hops| *hops > 0),
        };
        let program = told.face.program.clone();
        ctx.recorder.record(Receipt {
            caller_pid: told.pid,
            warm: told.given,
            reason: told.reason.to_owned(),
            isolation: if told.given { told.face.isolation } else { "none" }.to_owned(),
            worker: told.worker,
            trace: told.trace,
            ..receipt((call, told.at, &told.marks), program, told.outcome, message)
        });
    }
}

/// The receipt of a message that no worker performed, for who performed it to say so.
pub(in crate::messages) fn receipt(
    (call, at, marks): (u64, jiff::Timestamp, &Marks),
    program: ProgramPart,
    outcome: &str,
    message: MessagePart,
) -> Receipt {
    let phases = PhasePart::all(marks);
    let total_us = phases.last().map_or(0, |last| last.start_us + last.us);
    Receipt {
        schema: SCHEMA.to_owned(),
        call,
        at: format::moment(at),
        program,
        caller_pid: 0,
        directory: None,
        purpose: None,
        warm: false,
        reason: String::new(),
        isolation: String::new(),
        outcome: OutcomePart { kind: outcome.to_owned(), code: None, signal: None, phase: None },
        phases,
        total_us,
        usage: None,
        worker: None,
        cold_us: None,
        gain: None,
        demoted: None,
        imported: None,
        hooks: None,
        trace: None,
        message: Some(message),
    }
}

/// The outcome of a request that was turned away before it came to the loop.
const REFUSED: &str = "refused";

/// The limit for which a message was refused, by its name.
fn refused_for(outcome: Settled) -> Option<&'static str> {
    if outcome == Settled::Refused(Refusal::QueueFull) {
        return Some(Turned::Queue.code());
    }
    (outcome == Settled::Refused(Refusal::SessionsFull)).then_some("sessions")
}

/// Stamps what a front says of a request.
pub(in crate::messages) fn stamp(told: &mut Told, passed: &Passed<'_>) {
    (told.protocol, told.judged) = (Some(passed.protocol), passed.judged);
    told.trace = TracePart::of(passed.trace);
    let marks = &mut told.marks;
    stamp_head(marks, (passed.head_ns, passed.begun_ns, passed.judged_ns));
    marks.stamp(Mark::Whole, Time(passed.whole_ns));
    marks.stamp(Mark::Passed, Time(passed.passed_ns));
}

/// The name of what a client speaks, if its front has said.
fn named(protocol: Option<Protocol>) -> Option<String> {
    let protocol = protocol.filter(|protocol| *protocol != Protocol::Nothing)?;
    Some(protocol.name().to_owned())
}

/// When the head of a request came, and when its rights were judged. The head of HTTP/2 is not seen
/// before it is whole.
fn stamp_head(marks: &mut Marks, (head_ns, begun_ns, judged_ns): (u64, u64, u64)) {
    if head_ns == 0 {
        marks.stamp(Mark::Start, Time(begun_ns));
    } else {
        marks.stamp(Mark::Start, Time(head_ns));
        marks.stamp(Mark::Parsed, Time(begun_ns));
    }
    if judged_ns > 0 {
        marks.stamp(Mark::Judged, Time(judged_ns));
    }
}

/// What a receipt says of a worker's process.
pub(in crate::messages) fn part_of(id: WorkerId, process: &Process) -> WorkerPart {
    let generation = process.zygote.unwrap_or(id).0;
    WorkerPart { pid: process.pid, generation }
}
