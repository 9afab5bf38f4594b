//! Asks of this host's senders whose program is not here.

use hob_core::hosts::asker::{Effect, Ended, Event, NotGiven};
use hob_core::hosts::reply::Reply;
use hob_core::hosts::trail::Trail;
use hob_core::hosts::{Attempt, Order, Published, Way, addressed};
use hob_core::ids::{CallId, Time};
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::trace::{self, Trace};
use hob_core::receipt::{ELSEWHERE, MessagePart, ProgramPart, Receipt};
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Answer, Manner, Message, Reason};

use crate::ctx::Ctx;
use crate::inputs::SenderId;
use crate::messages::Messages;
use crate::messages::route::Refused;
use crate::messages::settle::receipt;
use crate::messages::thin::ANSWERED;

use super::sampled::Due;

/// An ask that is open elsewhere.
#[derive(Debug)]
pub(in crate::messages) struct Away {
    sender: (SenderId, u64),
    pid: u32,
    trail: Trail,
    /// Whether somebody else's trace goes on in it, who looks for its receipt.
    is_followed: bool,
    program: String,
    bytes: usize,
    at: jiff::Timestamp,
    received_ns: u64,
    planned_ns: u64,
    published_ns: Option<u64>,
    /// When its sender no longer waits.
    deadline: Option<Time>,
    /// The last attempt to have it performed.
    attempts: u32,
    /// Whether it goes to the host that has answered the one before with its key.
    by_affinity: bool,
    /// The sender's key.
    key: Vec<u8>,
    /// What is asked, as long as it may go to another host.
    message: Option<Published>,
}

impl Away {
    /// What the machine knows of it: its program as it is asked, and its bytes.
    fn asked(&self) -> (String, usize) {
        let Some(message) = &self.message else { return (self.program.clone(), self.bytes) };
        let program = match message.host.as_str() {
            "" => message.program.clone(),
            host => format!("{}@{host}", message.program),
        };
        (program, self.bytes + 3 * (message.key.len() + message.content_type.len()))
    }
}

impl Messages {
    /// An ask whose program no `hob.toml` of its sender's names: another host may have it.
    pub(in crate::messages) fn ask_elsewhere(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: SenderId,
        message: &Message<'_>,
        (received_ns, absent): (u64, Refused),
    ) -> Result<(), (Reason, String)> {
        let program = String::from_utf8_lossy(message.program).into_owned();
        let is_for_others = self.hosts.is_configured() && message.manner == Manner::Ask;
        let Some((name, host)) = addressed(&program).filter(|_| is_for_others) else {
            let host = addressed(&program).and_then(|(name, host)| Some((name, host?)));
            return Err(host.map_or(absent.into(), |parts| not_asked(parts, message.manner)));
        };
        if self.hosts.link.is_none() {
            let why = self.hosts.trouble.clone().unwrap_or_default();
            let text =
                format!("{program}: not a program of this host, and no other is asked: {why}");
            return Err((Reason::Config, text));
        }
        if self.stopping {
            return Err((Reason::Stopping, format!("{program}: hob stops")));
        }
        let Some(sender) = self.senders.get_mut(&id) else { return Ok(()) };
        let sender_pid = sender.pid;
        let call = CallId(ctx.recorder.next_call());
        sender.open.insert(message.id, call);
        let deadline =
            (message.remaining_us > 0).then(|| Time(received_ns).after_us(message.remaining_us));
        let bytes = message.payload.len();
        let seed = trace::seed(call, received_ns);
        let before = self.trail_of(ctx, sender_pid);
        let parent = self.from(id).ok().and_then(|from| from.parent);
        let is_followed = parent.is_some() || before.is_some();
        let new = match parent {
            Some(parent) => Some(parent.call(seed)),
            None => Trace::begun(drawn(), seed),
        };
        let trail = Trail::on(before, new, seed);
        let known = self.hosts.affinity.find(name, message.key).filter(|_| host.is_none());
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
            sender: (id, message.id),
            pid: sender_pid,
            trail,
            is_followed,
            program: program.clone(),
            deadline,
            attempts: 0,
            by_affinity,
            key: message.key.to_vec(),
            bytes,
            at: jiff::Timestamp::now(),
            received_ns,
            planned_ns: clock::now_ns(),
            published_ns: None,
            message: Some(published),
        };
        self.open_bytes += bytes;
        let (program, bytes) = away.asked();
        self.hosts.away.insert(call, away);
        self.decide(ctx, Event::Ask { call, program, bytes, deadline, after: 0 });
        Ok(())
    }

    /// A sender does not wait for this any more; `false`: it is not asked elsewhere.
    pub(in crate::messages) fn take_back_elsewhere(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
    ) -> bool {
        let is_away = self.hosts.asker.has(call);
        if is_away {
            self.decide(ctx, Event::TakenBack { call });
        }
        is_away
    }

    /// Hands an event to the machine, and does what comes of it.
    pub(super) fn decide(&mut self, ctx: &mut Ctx<'_>, event: Event) {
        let mut effects = Vec::new();
        self.hosts.asker.handle(Time(clock::now_ns()), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Publish { attempt, way, within_us } => {
                    self.publish(ctx, attempt, (way, within_us));
                }
                Effect::Go { attempt, to, within_us } => {
                    self.send(ctx, attempt, Order::Go { attempt, to, within_us });
                }
                Effect::End { call, ended } => self.end_away(ctx, call, ended),
            }
        }
    }

    fn publish(&mut self, ctx: &mut Ctx<'_>, attempt: Attempt, (way, within_us): (Way, u64)) {
        let Some(away) = self.hosts.away.get_mut(&attempt.call) else { return };
        // A claim may have to be asked again, and so may what goes to the host of its key.
        let message = match way {
            Way::Plain if !away.by_affinity => away.message.take(),
            Way::Plain | Way::Claim | Way::ClaimOfAll => away.message.clone(),
        };
        let Some(message) = message else { return };
        away.published_ns.get_or_insert_with(clock::now_ns);
        let order = Order::Publish(Published { attempt, way, within_us, ..message });
        self.send(ctx, attempt, order);
    }

    fn send(&mut self, ctx: &mut Ctx<'_>, attempt: Attempt, order: Order) {
        if let Some(away) = self.hosts.away.get_mut(&attempt.call) {
            away.attempts = attempt.number;
        }
        if !self.hosts.order(order) {
            let why = "the connection to other hosts takes no more".to_owned();
            self.decide(ctx, Event::NotSent { attempt, why });
        }
    }

    fn end_away(&mut self, ctx: &mut Ctx<'_>, call: CallId, ended: Ended) {
        let Some(mut away) = self.hosts.away.remove(&call) else { return };
        let name = addressed(&away.program).map_or("", |(name, _)| name);
        if away.by_affinity && has_left(&ended) {
            // Nothing was performed, and what its key had there is gone: any host may have it now.
            self.hosts.affinity.forget(name, &away.key);
            away.by_affinity = false;
            if let Some(message) = &mut away.message {
                message.host.clear();
            }
            let ((program, bytes), deadline, after) = (away.asked(), away.deadline, away.attempts);
            self.hosts.away.insert(call, away);
            return self.decide(ctx, Event::Ask { call, program, bytes, deadline, after });
        }
        if let Ended::Replied(Reply::Answer { by, .. }) = &ended
            && let Some((host, _)) = by.split_once('/')
        {
            self.hosts.affinity.learn(name, &away.key, host);
        }
        self.open_bytes -= away.bytes;
        let outcome = Outcome::of(&away.program, ended);
        let (id, number) = away.sender;
        if let Some(sender) = self.senders.get_mut(&id) {
            sender.open.remove(&number);
            match &outcome.answer {
                Some((content_type, payload)) => {
                    let answer = Answer { id: number, content_type, payload };
                    self.say(id, Kind::Answer, |out| answer.encode(out));
                }
                None => self.tell_failure(id, number, outcome.reason, &outcome.text),
            }
        }
        self.leave_receipt_of(ctx, call, away, outcome);
    }

    /// Leaves its receipt now; or keeps it, for a later one to stand for it.
    fn leave_receipt_of(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        mut away: Away,
        outcome: Outcome,
    ) {
        // What was asked and answered is not kept longer than who asked needs it.
        (away.message, away.key) = (None, Vec::new());
        let is_sampled = outcome.answer.is_some() && !away.is_followed;
        let at = Time(clock::now_ns());
        let performed = Performed { call, away, ended: outcome.without_its_bytes(), at };
        let due = if is_sampled {
            let program = performed.away.program.clone();
            self.hosts.performed.take(program.as_str(), at, performed)
        } else {
            Some((performed, 1))
        };
        due.into_iter().for_each(|due| record(ctx, due));
    }
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

/// An ask that has ended, as its receipt will tell of it.
#[derive(Debug)]
pub(super) struct Performed {
    call: CallId,
    away: Away,
    ended: Outcome,
    at: Time,
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
    /// The same without what was answered.
    fn without_its_bytes(self) -> Outcome {
        let answer = self.answer.map(|_| (Vec::new(), Vec::new()));
        Outcome { answer, text: String::new(), ..self }
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

/// Leaves a receipt.
pub(super) fn record(ctx: &mut Ctx<'_>, (performed, stands_for): Due<Performed>) {
    let Performed { call, away, ended, at: now } = performed;
    let mut marks = Marks::default();
    marks.stamp(Mark::Received, Time(away.received_ns));
    marks.stamp(Mark::Planned, Time(away.planned_ns));
    if let Some(published_ns) = away.published_ns {
        marks.stamp(Mark::Queued, Time(published_ns));
        marks.stamp(Mark::Main, Time(published_ns));
        marks.stamp(Mark::Finished, now);
    }
    marks.stamp(Mark::Settled, now);
    let (host, host_us) = ended.by.unzip();
    let program = ProgramPart::named(away.program, ELSEWHERE);
    let message = MessagePart {
        bytes: away.bytes,
        stands_for,
        host,
        host_us,
        hops: Some(away.trail.hops),
        ..MessagePart::default()
    };
    let was_given = ended.answer.is_some() || !hob_core::hosts::reply::was_not_given(ended.reason);
    let outcome = if ended.answer.is_some() { ANSWERED } else { ended.reason.code() };
    let was_given = was_given && ended.was_sent;
    let reason = if was_given { ELSEWHERE } else { ended.reason.code() };
    ctx.recorder.record(Receipt {
        caller_pid: away.pid,
        reason: reason.to_owned(),
        isolation: if was_given { ELSEWHERE } else { "none" }.to_owned(),
        trace: away.trail.trace.as_ref().map(Trace::part),
        ..receipt((call.0, away.at, &marks), program, outcome, message)
    });
}
