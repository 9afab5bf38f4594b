//! Outcomes of messages: to who brought the job, and to its receipt.

use std::sync::Arc;

use hob_core::ids::{CallId, Time};
use hob_core::log::Category;
use hob_core::phase::Mark;
use hob_core::receipt::trace::Trace;
use hob_core::receipt::{FRONT, ProgramPart};
use hob_core::requests::{Found, Given, RAN_LATE, Refusal, Settled, WAITED};
use hob_os::clock;
use hob_wire::message::{Answer, Passed, Reason, Served, Turned};

use crate::ctx::Ctx;
use crate::hosts::streams::Buried;
use crate::inputs::SenderId;
use crate::jobs::job::{Asked, Head, Job, Kind, Performer, Said, Work, part_of};
use crate::jobs::origin::Origin;
use crate::jobs::receipts::{self, ANSWERED};
use crate::messages::Messages;
use crate::recorder::ring;
use crate::tables::Tables;
use crate::tells::Told;

/// The outcome of a request that was turned away before it came to the loop.
const REFUSED: &str = "refused";

impl Messages {
    /// Tells a message's outcome, once, to who brought it.
    pub(super) fn settle(&mut self, ctx: &mut Ctx<'_>, call: CallId, outcome: Settled) {
        let Messages { tables, tells, hosts, .. } = self;
        let Some(mut job) = tables.jobs.close(call) else { return };
        let Some(asked) = job.asked() else { return };
        ring::edge(call, Mark::Settled, clock::now_ns());
        hosts.trails.ended(call);
        // Who takes back what its worker has left behind may only be the first to see that.
        let outcome = match asked.worker() {
            Some(worker) if outcome == Settled::Cancelled && self.ends.has_left(worker) => {
                Settled::Lost
            }
            Some(_) | None => outcome,
        };
        let is_answered = outcome == Settled::Answered && asked.is_answered();
        let (reason, text) = failure_of(&self.tables, asked, outcome);
        // The text of what a handler raised may hold what it was asked, and stays out.
        if !is_answered && outcome == Settled::Answered {
            hob_os::debug!(Category::Asks, "call {} has no answer: {}", call.0, reason.code());
        } else if outcome != Settled::Answered {
            hob_os::debug!(Category::Asks, "call {}: {}: {text}", call.0, reason.code());
        }
        let tables = &mut self.tables;
        let why = || format!("{}: {text}", reason.code());
        let mut is_waited_for = false;
        match &job.origin {
            Origin::Sender(id, number) => {
                is_waited_for = tables.senders.told(*id, *number);
                match (is_waited_for, &asked.said) {
                    (false, _) => {}
                    (true, Some(Said::Answer { content_type, payload })) if is_answered => {
                        let answer = Answer { id: *number, content_type, payload };
                        tables.senders.answer(*id, &answer);
                    }
                    (true, _) => tables.senders.fail(*id, *number, reason, &text),
                }
            }
            Origin::Host(from) => {
                let failed = (!is_answered).then_some((reason, text.as_str()));
                hosts.answer(&job, from, failed);
            }
            Origin::Stream(streamed) => {
                if let Some(address) = hosts.settle(tables, &job, streamed, outcome) {
                    let (ack, program) = (streamed.ack.clone(), streamed.program.clone());
                    let buried = Buried { ack, program, tries: streamed.delivered, why: why() };
                    tells.bury(hosts, address, asked, buried);
                }
            }
            Origin::Outbox(id) => {
                let told = Told { id: *id, asked, outcome, why: &why() };
                tells.settled(ctx, tables, hosts, &told);
            }
            Origin::Accepted | Origin::Lane | Origin::Front => {}
        }
        end(ctx, &mut job, outcome, reason);
        tables.receipts.settled(ctx.recorder, job, is_waited_for);
    }

    /// A front is done with a request.
    pub(super) fn passed(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        passed: Passed<'static>,
        program: &[u8],
    ) {
        let tables = &mut self.tables;
        if passed.turned != Turned::Not {
            return self.turned(ctx, sender, &passed, program);
        }
        if passed.lane != 0 {
            return self.leases.passed(ctx, tables, sender, &passed);
        }
        let call = tables.senders.job(sender, passed.id);
        match call.and_then(|call| tables.jobs.get_mut(call)) {
            Some(job) => job.passed(&passed),
            None => tables.receipts.passed(ctx.recorder, sender, &passed),
        }
    }

    /// A front has turned a request away, though its app is known.
    fn turned(&mut self, ctx: &mut Ctx<'_>, sender: SenderId, passed: &Passed<'_>, program: &[u8]) {
        let tables = &mut self.tables;
        let from = tables.senders.from(sender);
        let routed = from.and_then(|from| tables.catalog.route(ctx, &from, program));
        // What is wrong with the app is told to its next request.
        let Some(performer) = routed.ok().and_then(|(pool, _)| tables.catalog.performer(pool))
        else {
            return;
        };
        let mut job = Job::new(Origin::Front, performer);
        job.pid = tables.senders.pid(sender);
        job.head(Head::of(passed));
        let was_whole = passed.whole_ns > 0;
        let whole_ns = if was_whole { passed.whole_ns } else { passed.passed_ns };
        job.marks.stamp(Mark::Whole, Time(whole_ns));
        if was_whole {
            job.marks.stamp(Mark::Queued, Time(passed.passed_ns));
        }
        job.trace = Trace::of(passed.trace);
        (job.front.protocol, job.front.judged) = (Some(passed.protocol), passed.judged);
        let ended = &mut job.ended;
        (ended.reason, ended.outcome, ended.isolation) = (passed.turned.code(), REFUSED, "none");
        tables.receipts.leave(ctx.recorder, job, 1);
    }

    /// A front has answered requests itself, of which it tells one.
    pub(super) fn served(
        &mut self,
        ctx: &mut Ctx<'_>,
        sender: SenderId,
        served: &Served<'_>,
        mount: &[u8],
    ) {
        let mount = String::from_utf8_lossy(mount).into_owned();
        let program = ProgramPart::named(mount, FRONT);
        let performer = Performer { kind: Kind::Front, program, isolation: FRONT };
        let mut job = Job::new(Origin::Front, Arc::new(performer));
        job.began_at(served.begun_ns);
        job.pid = self.tables.senders.pid(sender);
        job.bytes = usize::try_from(served.bytes).unwrap_or(usize::MAX);
        job.trace = Trace::of(served.trace);
        let Served { head_ns: came_ns, begun_ns, judged_ns, .. } = *served;
        job.head(Head { came_ns, begun_ns, judged_ns });
        let read = [
            (Mark::Queued, served.queued_ns),
            (Mark::Found, served.found_ns),
            (Mark::Read, served.read_ns),
            (Mark::Passed, served.passed_ns),
        ];
        for (mark, at_ns) in read.into_iter().filter(|(_, at_ns)| *at_ns > 0) {
            job.marks.stamp(mark, Time(at_ns));
        }
        (job.front.protocol, job.front.judged) = (Some(served.protocol), served.judged);
        job.front.status = u16::try_from(served.status).ok();
        let ended = &mut job.ended;
        (ended.reason, ended.outcome, ended.isolation) = (FRONT, ANSWERED, FRONT);
        receipts::write_own(ctx.recorder, job, served.stands_for);
    }
}

/// What a message without an answer is told; of no meaning for one with an answer.
fn failure_of(tables: &Tables, asked: &Asked, outcome: Settled) -> (Reason, String) {
    let loaded = tables.catalog.get(asked.pool);
    let name = loaded.map_or("?", |loaded| loaded.name());
    match outcome {
        Settled::Answered => match &asked.said {
            Some(Said::Raised { text }) => {
                (Reason::Raised, String::from_utf8_lossy(text).into_owned())
            }
            Some(Said::Left) => (Reason::Cancelled, format!("{name}: its client has left")),
            Some(Said::Answer { .. }) | None => (Reason::Raised, String::new()),
        },
        Settled::Lost => (Reason::Lost, format!("{name}: its worker ended before it answered")),
        Settled::TimedOut { given: Given::Yes }
            if asked.given.is_some_and(|given| given.found == Found::Queued) =>
        {
            (Reason::TimedOut, format!("{name}: {RAN_LATE}"))
        }
        Settled::TimedOut { given: Given::Yes } => {
            (Reason::TimedOut, format!("{name}: the time passed while its handler ran"))
        }
        Settled::TimedOut { given: Given::No } => (Reason::TimedOut, format!("{name}: {WAITED}")),
        Settled::Cancelled => (Reason::Cancelled, format!("{name}: taken back")),
        Settled::Refused(refusal) => match refusal {
            Refusal::QueueFull => (Reason::Busy, format!("{name}: too many messages wait")),
            Refusal::SessionsFull => (Reason::Busy, format!("{name}: too many sessions")),
            Refusal::Stopping => (Reason::Stopping, format!("{name}: hob stops")),
            Refusal::NotLoaded => {
                let why = loaded.map_or("", |loaded| loaded.why_not());
                (Reason::NotLoaded, format!("{name}: cannot be loaded: {why}"))
            }
        },
    }
}

/// Takes down what a job's receipt says of its outcome; nothing is left to be done.
fn end(ctx: &Ctx<'_>, job: &mut Job, outcome: Settled, reason: Reason) {
    let Work::Here(asked) = std::mem::replace(&mut job.work, Work::Done) else { return };
    let now = Time(clock::now_ns());
    let is_answered = asked.is_answered() && outcome == Settled::Answered;
    if let Some(given) = asked.given {
        job.marks.stamp(Mark::Queued, given.at);
        job.marks.stamp(Mark::Main, given.at);
        job.marks.stamp(Mark::Finished, now);
        let process = ctx.processes.look(given.worker);
        job.ended.worker = process.map(|process| part_of(given.worker, process));
    }
    job.marks.stamp(Mark::Settled, now);
    let isolation = job.performer.isolation;
    let ended = &mut job.ended;
    ended.is_warm = asked.given.is_some();
    ended.isolation = if ended.is_warm { isolation } else { "none" };
    ended.outcome = if is_answered { ANSWERED } else { reason.code() };
    ended.reason = match asked.given {
        None => refused_for(outcome).unwrap_or(reason.code()),
        Some(given) if given.is_old => "old-code",
        Some(given) => match given.found {
            Found::Waiting => "worker-ready",
            Found::Queued => "queued",
        },
    };
}

/// The limit for which a message was refused, by its name.
fn refused_for(outcome: Settled) -> Option<&'static str> {
    if outcome == Settled::Refused(Refusal::QueueFull) {
        return Some(Turned::Queue.code());
    }
    (outcome == Settled::Refused(Refusal::SessionsFull)).then_some("sessions")
}
