//! Asks of this host's senders whose program is not here.

use std::collections::VecDeque;
use std::sync::Arc;

use hob_core::hosts::affinity::KeyAffinity;
use hob_core::hosts::asker::{Asker, Effect, Ended, Event, NotGiven};
use hob_core::hosts::reply::{self, Reply};
use hob_core::hosts::trail::Trail;
use hob_core::hosts::{Attempt, Order, Published, Way, addressed};
use hob_core::ids::{CallId, Time};
use hob_core::phase::Mark;
use hob_core::receipt::trace::{self, Trace};
use hob_core::receipt::{ELSEWHERE, ProgramPart};
use hob_os::clock;
use hob_wire::message::{Answer, Manner, Reason};

use super::Connection;
use crate::ctx::Ctx;
use crate::handlers::route::Refused;
use crate::inputs::Came;
use crate::jobs::job::{Away, Job, Kind, Performer, Work};
use crate::jobs::origin::Origin;
use crate::jobs::receipts::{self, ANSWERED};
use crate::tables::Tables;

/// The asks that other hosts perform.
#[derive(Debug, Default)]
pub(super) struct Asks {
    asker: Asker,
    affinity: KeyAffinity,
}

impl Away {
    /// What the machine knows of it: its program as it is asked, and its bytes.
    fn asked(&self, bytes: usize) -> (String, usize) {
        let Some(message) = &self.message else { return (self.program.clone(), bytes) };
        let program = match message.host.as_str() {
            "" => message.program.clone(),
            host => format!("{}@{host}", message.program),
        };
        (program, bytes + 3 * (message.key.len() + message.content_type.len()))
    }
}

impl Asks {
    pub(super) fn is_empty(&self) -> bool {
        self.asker.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.asker.len()
    }

    pub(super) fn has(&self, call: CallId) -> bool {
        self.asker.has(call)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.asker.next_deadline()
    }

    /// An ask whose program no `hob.toml` of its sender's names, as `absent` says: another host may have
    /// it. `before` is the way of what its sender performs.
    pub(super) fn ask(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        connection: &Connection,
        came: &Came<'_>,
        absent: Refused,
        before: Option<Trail>,
    ) -> Result<(), (Reason, String)> {
        let Came { message, sender, received_ns, .. } = came;
        let (sender, received_ns) = (*sender, *received_ns);
        let program = String::from_utf8_lossy(message.program).into_owned();
        let is_for_others = connection.is_configured() && message.manner == Manner::Ask;
        let Some((name, host)) = addressed(&program).filter(|_| is_for_others) else {
            let host = addressed(&program).and_then(|(name, host)| Some((name, host?)));
            return Err(host.map_or(absent.into(), |parts| not_asked(parts, message.manner)));
        };
        if connection.link.is_none() {
            let why = connection.why_off();
            let text =
                format!("{program}: not a program of this host, and no other is asked: {why}");
            return Err((Reason::Config, text));
        }
        if tables.is_stopping {
            return Err((Reason::Stopping, format!("{program}: hob stops")));
        }
        let Ok(from) = tables.senders.from(sender) else { return Ok(()) };
        let call = CallId(ctx.recorder.next_call());
        tables.senders.waits(sender, message.id, call);
        let deadline =
            (message.remaining_us > 0).then(|| Time(received_ns).after_us(message.remaining_us));
        let seed = trace::seed(call, received_ns);
        let new = match from.parent {
            Some(parent) => Some(parent.call(seed)),
            None => Trace::begun(drawn(), seed),
        };
        let trail = Trail::on(before, new, seed);
        let known = self.affinity.find(name, message.key).filter(|_| host.is_none());
        let (host, by_affinity) = (host.or(known).unwrap_or_default(), known.is_some());
        let published = Published {
            trail,
            attempt: Attempt { call, number: 0 },
            way: Way::Plain,
            program: name.to_owned(),
            host: host.to_owned(),
            within_us: 0,
            key: message.key.to_vec(),
            content_type: message.content_type.to_vec(),
            payload: message.payload.to_vec(),
        };
        let away = Away {
            is_followed: from.parent.is_some() || before.is_some(),
            program: program.clone(),
            deadline,
            attempts: 0,
            by_affinity,
            key: message.key.to_vec(),
            message: Some(published),
        };
        let performer = Performer {
            kind: Kind::Elsewhere(program.clone()),
            program: ProgramPart::named(program, ELSEWHERE),
            isolation: ELSEWHERE,
        };
        let mut job = Job::new(Origin::Sender(sender, message.id), Arc::new(performer));
        job.marks.stamp(Mark::Received, Time(received_ns));
        job.marks.stamp(Mark::Planned, Time(clock::now_ns()));
        job.pid = tables.senders.pid(sender);
        (job.trace, job.hops, job.bytes) = (trail.trace, trail.hops, message.payload.len());
        let (program, bytes) = away.asked(job.bytes);
        job.work = Work::Elsewhere(away);
        tables.jobs.open(call, job);
        let event = Event::Ask { call, program, bytes, deadline, after: 0 };
        self.decide(ctx, tables, connection, event);
        Ok(())
    }

    /// Hands an event to the machine, and does what comes of it.
    pub(super) fn decide(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        connection: &Connection,
        event: Event,
    ) {
        let (mut events, mut effects) = (VecDeque::from([event]), Vec::new());
        while let Some(event) = events.pop_front() {
            self.asker.handle(Time(clock::now_ns()), event, &mut effects);
            for effect in effects.drain(..) {
                events.extend(match effect {
                    Effect::Publish { attempt, way, within_us } => {
                        publish(tables, connection, attempt, way, within_us)
                    }
                    Effect::Go { attempt, to, within_us } => {
                        let order = Order::Go { attempt, to, within_us };
                        send(tables, connection, attempt, order)
                    }
                    Effect::End { call, ended } => self.end(ctx, tables, call, ended),
                });
            }
        }
    }

    /// An ask has its outcome, but for one that is asked again of any host.
    fn end(
        &mut self,
        ctx: &mut Ctx<'_>,
        tables: &mut Tables,
        call: CallId,
        ended: Ended,
    ) -> Option<Event> {
        let mut job = tables.jobs.close(call)?;
        let Work::Elsewhere(mut away) = std::mem::replace(&mut job.work, Work::Done) else {
            return None;
        };
        let name = addressed(&away.program).map_or("", |(name, _)| name);
        if away.by_affinity && has_left(&ended) {
            // Nothing was performed, and what its key had there is gone: any host may have it now.
            self.affinity.forget(name, &away.key);
            away.by_affinity = false;
            if let Some(message) = &mut away.message {
                message.host.clear();
            }
            let ((program, bytes), deadline) = (away.asked(job.bytes), away.deadline);
            let after = away.attempts;
            job.work = Work::Elsewhere(away);
            tables.jobs.put_back(call, job);
            return Some(Event::Ask { call, program, bytes, deadline, after });
        }
        if let Ended::Replied(Reply::Answer { by, .. }) = &ended
            && let Some((host, _)) = by.split_once('/')
        {
            self.affinity.learn(name, &away.key, host);
        }
        let outcome = Outcome::of(&away.program, ended);
        if let Some((id, number)) = job.origin.sender()
            && tables.senders.told(id, number)
        {
            match &outcome.answer {
                Some((content_type, payload)) => {
                    let answer = Answer { id: number, content_type, payload };
                    tables.senders.answer(id, &answer);
                }
                None => tables.senders.fail(id, number, outcome.reason, &outcome.text),
            }
        }
        let is_sampled = outcome.answer.is_some() && !away.is_followed;
        outcome.end(&mut job);
        if is_sampled {
            tables.receipts.leave(ctx.recorder, job, 1);
        } else {
            receipts::write_own(ctx.recorder, job, 1);
        }
        None
    }
}

fn publish(
    tables: &mut Tables,
    connection: &Connection,
    attempt: Attempt,
    way: Way,
    within_us: u64,
) -> Option<Event> {
    let job = tables.jobs.get_mut(attempt.call)?;
    let Work::Elsewhere(away) = &mut job.work else { return None };
    // A claim may have to be asked again, and so may what goes to the host of its key.
    let message = match way {
        Way::Plain if !away.by_affinity => away.message.take(),
        Way::Plain | Way::Claim | Way::ClaimOfAll => away.message.clone(),
    }?;
    let now = Time(clock::now_ns());
    job.marks.stamp(Mark::Queued, now);
    job.marks.stamp(Mark::Main, now);
    let order = Order::Publish(Published { attempt, way, within_us, ..message });
    send(tables, connection, attempt, order)
}

fn send(
    tables: &mut Tables,
    connection: &Connection,
    attempt: Attempt,
    order: Order,
) -> Option<Event> {
    if let Some(away) = tables.jobs.away(attempt.call) {
        away.attempts = attempt.number;
    }
    let is_sent = connection.order(order);
    let why = || "the connection to other hosts takes no more".to_owned();
    (!is_sent).then(|| Event::NotSent { attempt, why: why() })
}

/// Whether the host that was asked offers the program no more, or may not be asked by its name.
fn has_left(ended: &Ended) -> bool {
    match ended {
        Ended::Replied(Reply::NoResponders) | Ended::NotGiven(NotGiven::Forbidden(_)) => true,
        Ended::Replied(Reply::Failure { reason, .. }) => {
            matches!(reason, Reason::Stopping | Reason::NoProgram | Reason::NoHost)
        }
        Ended::Replied(Reply::Answer { .. })
        | Ended::TimedOut
        | Ended::Lost(_)
        | Ended::TakenBack
        | Ended::NotGiven(
            NotGiven::NoConnection(_)
            | NotGiven::TimedOut
            | NotGiven::NotTaken
            | NotGiven::Busy
            | NotGiven::TooLarge { .. },
        ) => false,
    }
}

/// Why a program of a named host is not asked.
pub(super) fn not_asked((name, host): (&str, &str), manner: Manner) -> (Reason, String) {
    match manner {
        Manner::Tell | Manner::TellOnce => {
            let text = format!(
                "{name}@{host}: what is told goes to any host that offers {name}; leave out @{host}"
            );
            (Reason::Malformed, text)
        }
        Manner::Ask => {
            let text = format!(
                "{name}@{host}: {name} is asked of the host {host}, and this host is connected to no \
                 other: name a server as `url` under [nats] in your config.toml"
            );
            (Reason::NoHost, text)
        }
    }
}

/// The identity of a new trace; 0 where the kernel gives none: the ask has no trace then.
fn drawn() -> u128 {
    let mut bytes = [0; 16];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(16) => u128::from_be_bytes(bytes),
        _ => 0,
    }
}

/// What a sender is told, and a receipt.
#[derive(Debug)]
struct Outcome {
    answer: Option<(Vec<u8>, Vec<u8>)>,
    reason: Reason,
    text: String,
    /// Who has said it, and the time that was spent there.
    by: Option<(String, u64)>,
    /// Whether it left this host.
    was_sent: bool,
}

impl Outcome {
    /// What the receipt of its job says.
    fn end(self, job: &mut Job) {
        let now = Time(clock::now_ns());
        if job.marks.get(Mark::Queued).is_some() {
            job.marks.stamp(Mark::Finished, now);
        }
        job.marks.stamp(Mark::Settled, now);
        let is_answered = self.answer.is_some();
        let was_given = is_answered || !reply::was_not_given(self.reason);
        let (reason, isolation) = match was_given && self.was_sent {
            true => (ELSEWHERE, ELSEWHERE),
            false => (self.reason.code(), "none"),
        };
        let ended = &mut job.ended;
        (ended.reason, ended.isolation, ended.by) = (reason, isolation, self.by);
        ended.outcome = if is_answered { ANSWERED } else { self.reason.code() };
    }

    fn of(program: &str, ended: Ended) -> Outcome {
        let failed = |reason, text: String| Outcome {
            answer: None,
            reason,
            text: format!("{program}: {text}"),
            by: None,
            was_sent: true,
        };
        let not_given = |reason, text| Outcome { was_sent: false, ..failed(reason, text) };
        match ended {
            Ended::Replied(Reply::Answer { by, spent_us, content_type, payload }) => Outcome {
                answer: Some((content_type, payload)),
                by: Some((by, spent_us)),
                ..failed(Reason::Lost, String::new())
            },
            Ended::Replied(Reply::Failure { by, spent_us, reason, text }) => {
                let host = by.split('/').next().unwrap_or_default();
                let text = match (reason, host) {
                    // What a handler raised is told as it is.
                    (Reason::Raised, _) => text,
                    (_, "") => format!("{program}: {text}"),
                    (_, host) => format!("{program} on {host}: {text}"),
                };
                let reason = if reason == Reason::NoProgram { Reason::NoHost } else { reason };
                let by = (!by.is_empty()).then_some((by, spent_us));
                Outcome { text, by, ..failed(reason, String::new()) }
            }
            Ended::Replied(Reply::NoResponders) => failed(
                Reason::NoHost,
                "no program of this host has this name, and no other host offers it".to_owned(),
            ),
            Ended::TimedOut => failed(
                Reason::TimedOut,
                "the time passed before another host had answered".to_owned(),
            ),
            Ended::Lost(why) => failed(
                Reason::Lost,
                format!("another host may have performed it, and its answer is lost: {why}"),
            ),
            Ended::TakenBack => failed(Reason::Cancelled, "taken back".to_owned()),
            Ended::NotGiven(NotGiven::NoConnection(why)) => not_given(
                Reason::NoHost,
                format!("not a program of this host, and no other can be asked: {why}"),
            ),
            Ended::NotGiven(NotGiven::TimedOut) => not_given(
                Reason::TimedOut,
                "the time passed before another host had taken it".to_owned(),
            ),
            Ended::NotGiven(NotGiven::NotTaken) => {
                not_given(Reason::Busy, "the hosts that offer it do not take it".to_owned())
            }
            Ended::NotGiven(NotGiven::Forbidden(why)) => not_given(
                Reason::Config,
                format!(
                    "the server between hosts does not let this host ask for it: {why}; its \
                     permissions are the server's configuration (docs/hosts.md)"
                ),
            ),
            Ended::NotGiven(NotGiven::Busy) => {
                not_given(Reason::Busy, "too many asks of other hosts are open".to_owned())
            }
            Ended::NotGiven(NotGiven::TooLarge { max }) => not_given(
                Reason::Malformed,
                format!("the message is larger than the server between hosts takes ({max} bytes)"),
            ),
        }
    }
}
