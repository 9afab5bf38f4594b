//! Asks of other hosts: found among what is offered, given, answered.

use std::collections::BTreeMap;

use hob_core::hosts::host::{Host, Verdict};
use hob_core::hosts::reply::Reply;
use hob_core::hosts::{Order, Question, Stats};
use hob_core::ids::{CallId, Time};
use hob_core::log::Category;
use hob_core::receipt::trace::{self, Parent};
use hob_os::{clock, signals};
use hob_wire::caps::{BODY_MAX, WORD_MAX};
use hob_wire::message::{Manner, Reason};

use super::{Connection, Reach};
use crate::ctx::Ctx;
use crate::jobs::job::{Asked, Job, Said};
use crate::jobs::ledger::OPEN_BYTES_MAX;
use crate::jobs::origin::{AskedBy, Origin};

/// A machine that has slept for less has not slept.
const SLEPT_NS_MIN: u64 = 50_000_000;

/// Why a host takes nothing new.
const STOPS: &str = "hob stops there";

/// The asks of other hosts that are performed here.
#[derive(Debug, Default)]
pub(super) struct Questions {
    host: Host,
    /// How often this process has gone on after a stop, and how long its machine has slept, in ns,
    /// when that was last looked at: at each ask, and each time that the loop wakes of itself.
    stood: (u64, u64),
    /// How the offered programs did.
    served: BTreeMap<String, Stats>,
}

impl Questions {
    /// The connection begins.
    pub(super) fn begin() -> Questions {
        Questions { stood: stood(), ..Questions::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.host.len()
    }

    /// How an offered program did.
    pub(super) fn served(&self, program: &str) -> Stats {
        self.served.get(program).cloned().unwrap_or_default()
    }

    /// What came while this process stood still has been seen.
    pub(super) fn caught_up(&mut self) {
        self.host.caught_up();
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.host.next_deadline().map(|at| {
            // It is counted by the clock that goes on while the machine sleeps.
            Time(clock::now_ns() + at.0.saturating_sub(clock::since_boot_ns()))
        })
    }

    /// Forgets what no word has come for.
    pub(super) fn tick(&mut self, connection: &Connection) {
        self.look_at_stops(connection);
        self.host.tick(Time(clock::since_boot_ns()));
    }

    /// Another host asks.
    pub(super) fn asked(
        &mut self,
        ctx: &mut Ctx<'_>,
        reach: Reach<'_>,
        question: Question,
        came_ns: u64,
    ) {
        let bytes = question.payload.len();
        if !reach.tables.jobs.has_room(self.host.taken_bytes() + bytes) {
            let text = format!("more than {} MiB of messages are open", OPEN_BYTES_MAX >> 20);
            let connection = reach.connection;
            return refuse(ctx, connection, &question.reply_to, Reason::Busy, text);
        }
        self.look_at_stops(reach.connection);
        let is_claimed = reach.offers.is_claimed(&question.program);
        let now = Time(clock::since_boot_ns());
        let verdict = self.host.came(now, question, is_claimed);
        self.judged(ctx, reach, verdict, came_ns);
    }

    /// Notices that this process, or its machine, has stood still: what has come meanwhile may be
    /// older than its asker's patience.
    fn look_at_stops(&mut self, connection: &Connection) {
        if connection.link.is_none() {
            return;
        }
        let (continued, slept_ns) = stood();
        let (before, slept_before) = self.stood;
        // The two clocks are read one after the other.
        if continued != before || slept_ns > slept_before.saturating_add(SLEPT_NS_MIN) {
            hob_os::debug!(Category::Hosts, "this process or its machine has stood still");
            self.host.stood_still();
            self.stood = (continued, slept_ns);
            connection.order(Order::CatchUp);
        }
    }

    /// Another host says that what this one has taken is to be performed.
    pub(super) fn went(
        &mut self,
        ctx: &mut Ctx<'_>,
        reach: Reach<'_>,
        ticket: u64,
        word: (Option<String>, Option<&str>),
        came_ns: u64,
    ) {
        let verdict = self.host.went(Time(clock::since_boot_ns()), ticket, word);
        self.judged(ctx, reach, verdict, came_ns);
    }

    fn judged(&mut self, ctx: &mut Ctx<'_>, reach: Reach<'_>, verdict: Verdict, came_ns: u64) {
        let connection = reach.connection;
        match verdict {
            Verdict::Ignore => {}
            Verdict::Refuse { to, reason, text } => refuse(ctx, connection, &to, reason, text),
            // One that will not be performed is better refused now.
            Verdict::Take { to, .. } if reach.tables.is_stopping => {
                self.host.ended(&to);
                refuse(ctx, connection, &to, Reason::Stopping, STOPS.to_owned());
            }
            Verdict::Take { to, ticket } => {
                connection.order(Order::Taken { to, ticket });
            }
            Verdict::Give(given) => {
                let deadline = Time(clock::now_ns()).after_us(given.within_us);
                let to = given.question.reply_to.clone();
                let taken = Taken { question: given.question, hops: given.hops, came_ns, deadline };
                if let Err((reason, text)) = taken.open(ctx, reach) {
                    self.host.ended(&to);
                    refuse(ctx, connection, &to, reason, text);
                }
            }
        }
    }

    /// Answers another host's ask, once: by what the job's worker has said, or why there is none.
    pub(super) fn answer(
        &mut self,
        connection: &Connection,
        job: &Job,
        asked: &AskedBy,
        failed: Option<(Reason, &str)>,
    ) {
        self.host.ended(&asked.to);
        let by = format!("{}/{}", connection.name, job.call.map_or(0, |call| call.0));
        let spent_us = Time(clock::now_ns()).us_since(job.received());
        self.count(&asked.program, spent_us, failed.map(|(reason, _)| reason));
        let reply = match (failed, job.asked().and_then(|asked| asked.said.as_ref())) {
            (None, Some(Said::Answer { content_type, payload })) => Reply::Answer {
                by,
                spent_us,
                content_type: content_type.clone(),
                payload: payload.clone(),
            },
            (failed, _) => {
                let (reason, text) = failed.unwrap_or((Reason::Lost, ""));
                Reply::Failure { by, spent_us, reason, text: text.to_owned() }
            }
        };
        // Without room for it nothing can be said: its asker waits until its time has passed.
        connection.order(Order::Answer { to: asked.to.clone(), reply });
    }

    /// Counts an ask that has ended; without a reason it was answered.
    fn count(&mut self, program: &str, spent_us: u64, failed: Option<Reason>) {
        let served = self.served.entry(program.to_owned()).or_default();
        served.asked += 1;
        served.spent_us = served.spent_us.saturating_add(spent_us);
        if let Some(reason) = failed {
            served.failed += 1;
            reason.code().clone_into(&mut served.last_failure);
        }
    }
}

/// An ask that this host performs, and until when its asker waits.
struct Taken {
    question: Question,
    hops: u64,
    came_ns: u64,
    deadline: Time,
}

impl Taken {
    fn open(self, ctx: &mut Ctx<'_>, reach: Reach<'_>) -> Result<(), (Reason, String)> {
        let Reach { tables, offers, .. } = reach;
        let Taken { question, hops, came_ns, deadline } = self;
        let Question { program, key, content_type, payload, reply_to, from, traceparent, .. } =
            question;
        if tables.is_stopping {
            return Err((Reason::Stopping, STOPS.to_owned()));
        }
        let bytes = payload.len();
        if bytes > BODY_MAX || key.len() > WORD_MAX || content_type.len() > WORD_MAX {
            return Err((Reason::Malformed, "it is larger than a message may be".to_owned()));
        }
        let Some(way) = offers.from(&program) else {
            return Err((Reason::NoProgram, "this host does not offer it any more".to_owned()));
        };
        let (pool, _) = tables.catalog.route_of_came(ctx, &way, program.as_bytes(), came_ns)?;
        let call = CallId(ctx.recorder.next_call());
        let parent = traceparent.as_deref().and_then(|text| Parent::read(text.as_bytes()));
        let deadline = Some(deadline);
        let empty = Asked::new(Manner::Ask, pool);
        let asked = Asked { key, content_type, payload: payload.into(), deadline, ..empty };
        let origin = Origin::Host(AskedBy { to: reply_to, program, from });
        let mut job = tables.message(origin, asked, came_ns);
        job.trace = parent.map(|parent| parent.call(trace::seed(call, came_ns)));
        job.hops = hops;
        hob_os::debug!(Category::Hosts, "another host's ask is taken as call {}", call.0);
        tables.open(ctx, call, job);
        Ok(())
    }
}

/// Answers that an ask was not given. It has a number of its own, and no receipt: what a stranger
/// sends is not kept.
fn refuse(ctx: &Ctx<'_>, connection: &Connection, to: &str, reason: Reason, text: String) {
    hob_os::debug!(Category::Hosts, "another host's ask is refused: {}: {text}", reason.code());
    let by = format!("{}/{}", connection.name, ctx.recorder.next_call());
    let reply = Reply::Failure { by, spent_us: 0, reason, text };
    connection.order(Order::Answer { to: to.to_owned(), reply });
}

/// How often this process has gone on after a stop, and how long its machine has slept.
fn stood() -> (u64, u64) {
    (signals::continues(), clock::since_boot_ns().saturating_sub(clock::now_ns()))
}
