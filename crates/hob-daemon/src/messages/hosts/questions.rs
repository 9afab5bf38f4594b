//! Asks of other hosts: found among what is offered, given, answered.

use std::sync::Arc;

use hob_core::hosts::host::Verdict;
use hob_core::hosts::reply::Reply;
use hob_core::hosts::{Order, Question, addressed};
use hob_core::ids::{CallId, Time};
use hob_core::log::Category;
use hob_core::receipt::trace::{self, Parent};
use hob_core::requests::{Event, Settled};
use hob_os::{clock, signals};
use hob_wire::message::{BODY_MAX, Manner, Message, Reason, WORD_MAX};

use crate::ctx::Ctx;
use crate::messages::route::From;
use crate::messages::{Messages, OPEN_BYTES_MAX, Open, Said};

/// A machine that has slept for less has not slept.
const SLEPT_NS_MIN: u64 = 50_000_000;

/// How often this process has gone on after a stop, and how long its machine has slept.
pub(super) fn stood() -> (u64, u64) {
    (signals::continues(), clock::since_boot_ns().saturating_sub(clock::now_ns()))
}

/// Why a host takes nothing new.
const STOPS: &str = "hob stops there";

/// The other host that asks.
#[derive(Debug)]
pub(in crate::messages) struct AskedBy {
    /// Where the reply goes.
    to: String,
    /// What it asks.
    program: String,
    /// Its name, and its call's number there, as it says.
    pub(in crate::messages) from: String,
}

impl Messages {
    /// Where an ask of this host's own sender goes whose program is none of its directory's, and is
    /// offered here: it is asked here. With the program's name, without this host's.
    pub(in crate::messages) fn offered_here<'a>(
        &mut self,
        message: &Message<'a>,
    ) -> Option<(Arc<From>, &'a [u8])> {
        let program = std::str::from_utf8(message.program).ok()?;
        let (name, host) = addressed(program)?;
        let is_ours = host.is_none_or(|host| host == self.hosts.name);
        let is_asked_here = message.manner == Manner::Ask && is_ours;
        is_asked_here.then(|| self.hosts.from(name))?.map(|from| (from, name.as_bytes()))
    }

    /// Another host asks.
    pub(super) fn asked(&mut self, ctx: &mut Ctx<'_>, question: Question, came_ns: u64) {
        let bytes = question.payload.len();
        if self.open_bytes + self.hosts.host.taken_bytes() + bytes > OPEN_BYTES_MAX {
            let text = format!("more than {} MiB of messages are open", OPEN_BYTES_MAX >> 20);
            return self.refuse(ctx, &question.reply_to, Reason::Busy, text);
        }
        self.look_at_stops();
        let offer = self.hosts.offers.get(&question.program);
        let is_claimed = offer.is_some_and(|(offered, _)| offered.claimed);
        let now = Time(clock::since_boot_ns());
        let verdict = self.hosts.host.came(now, question, is_claimed);
        self.judged(ctx, verdict, came_ns);
    }

    /// Notices that this process, or its machine, has stood still: what has come meanwhile may be
    /// older than its asker's patience.
    pub(super) fn look_at_stops(&mut self) {
        if self.hosts.link.is_none() {
            return;
        }
        let (continued, slept_ns) = stood();
        let (before, slept_before) = self.hosts.stood;
        // The two clocks are read one after the other.
        if continued != before || slept_ns > slept_before.saturating_add(SLEPT_NS_MIN) {
            hob_os::debug!(Category::Hosts, "this process or its machine has stood still");
            self.hosts.host.stood_still();
            self.hosts.stood = (continued, slept_ns);
            self.hosts.order(Order::CatchUp);
        }
    }

    /// Another host says that what this one has taken is to be performed.
    pub(super) fn went(
        &mut self,
        ctx: &mut Ctx<'_>,
        ticket: u64,
        word: (Option<String>, Option<&str>),
        came_ns: u64,
    ) {
        let verdict = self.hosts.host.went(Time(clock::since_boot_ns()), ticket, word);
        self.judged(ctx, verdict, came_ns);
    }

    fn judged(&mut self, ctx: &mut Ctx<'_>, verdict: Verdict, came_ns: u64) {
        match verdict {
            Verdict::Ignore => {}
            Verdict::Refuse { to, reason, text } => self.refuse(ctx, &to, reason, text),
            // One that will not be performed is better refused now.
            Verdict::Take { to, .. } if self.stopping => {
                self.hosts.host.ended(&to);
                self.refuse(ctx, &to, Reason::Stopping, STOPS.to_owned());
            }
            Verdict::Take { to, ticket } => {
                self.hosts.order(Order::Taken { to, ticket });
            }
            Verdict::Give(given) => {
                let deadline = Time(clock::now_ns()).after_us(given.within_us);
                let to = given.question.reply_to.clone();
                let times = (came_ns, deadline);
                let asked = (given.question, given.hops);
                if let Err((reason, text)) = self.open_question(ctx, asked, times) {
                    self.hosts.host.ended(&to);
                    self.refuse(ctx, &to, reason, text);
                }
            }
        }
    }

    fn open_question(
        &mut self,
        ctx: &mut Ctx<'_>,
        (question, hops): (Question, u64),
        (received_ns, deadline): (u64, Time),
    ) -> Result<(), (Reason, String)> {
        let Question { program, key, content_type, payload, reply_to, from, traceparent, .. } =
            question;
        if self.stopping {
            return Err((Reason::Stopping, STOPS.to_owned()));
        }
        let bytes = payload.len();
        if bytes > BODY_MAX || key.len() > WORD_MAX || content_type.len() > WORD_MAX {
            return Err((Reason::Malformed, "it is larger than a message may be".to_owned()));
        }
        let Some(way) = self.hosts.from(&program) else {
            return Err((Reason::NoProgram, "this host does not offer it any more".to_owned()));
        };
        let (pool, _) = self.route_of_came(ctx, &way, program.as_bytes(), received_ns)?;
        let call = CallId(ctx.recorder.next_call());
        let parent = traceparent.as_deref().and_then(|text| Parent::read(text.as_bytes()));
        let trace = parent.map(|parent| parent.call(trace::seed(call, received_ns)));
        let open = Open {
            key: key.clone(),
            content_type,
            payload,
            deadline_ns: Some(deadline.0),
            asked_by: Some(AskedBy { to: reply_to, program, from }),
            hops,
            trace,
            ..Open::new(Manner::Ask, pool, received_ns)
        };
        hob_os::debug!(Category::Hosts, "another host's ask is taken as call {}", call.0);
        self.opened(call, open);
        ctx.request(Event::Arrived { call, pool, key, deadline: Some(deadline) });
        Ok(())
    }

    /// Answers another host's ask, once.
    pub(in crate::messages) fn answer_host(
        &mut self,
        call: CallId,
        open: &Open,
        asked: &AskedBy,
        outcome: Settled,
        (reason, text): (Reason, &str),
    ) {
        self.hosts.host.ended(&asked.to);
        let by = format!("{}/{}", self.hosts.name, call.0);
        let spent_us = clock::now_ns().saturating_sub(open.received_ns) / 1000;
        let is_answered =
            matches!(open.said, Some(Said::Answer { .. })) && outcome == Settled::Answered;
        let program = asked.program.clone();
        self.count_served(&program, spent_us, (!is_answered).then_some(reason));
        let reply = match (&open.said, outcome) {
            (Some(Said::Answer { content_type, payload }), Settled::Answered) => Reply::Answer {
                by,
                spent_us,
                content_type: content_type.clone(),
                payload: payload.clone(),
            },
            _ => Reply::Failure { by, spent_us, reason, text: text.to_owned() },
        };
        // Without room for it nothing can be said: its asker waits until its time has passed.
        self.hosts.order(Order::Answer { to: asked.to.clone(), reply });
    }

    /// Answers that an ask was not given. It has a number of its own, and no receipt: what a stranger
    /// sends is not kept.
    fn refuse(&mut self, ctx: &mut Ctx<'_>, to: &str, reason: Reason, text: String) {
        hob_os::debug!(Category::Hosts, "another host's ask is refused: {}: {text}", reason.code());
        let by = format!("{}/{}", self.hosts.name, ctx.recorder.next_call());
        let reply = Reply::Failure { by, spent_us: 0, reason, text };
        self.hosts.order(Order::Answer { to: to.to_owned(), reply });
    }
}
