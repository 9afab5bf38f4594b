//! Tells to programs of other hosts, and those that a stream gives to this one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hob_core::hosts::Order;
use hob_core::hosts::tells::{self, End, Ended, KEPT_US, NotKept, Telling, Told};
use hob_core::ids::{CallId, Time};
use hob_core::phase::Mark;
use hob_core::receipt::{ACCEPTED, ELSEWHERE, ProgramPart, STREAM};
use hob_core::requests::{Given, Settled};
use hob_os::clock;
use hob_wire::caps::{BODY_MAX, WORD_MAX};
use hob_wire::message::Manner;

use super::{Connection, Reach};
use crate::ctx::Ctx;
use crate::handlers::address::elsewhere;
use crate::jobs::job::{Asked, Job, Kind, Performer};
use crate::jobs::origin::{Origin, Streamed};
use crate::outbox::{self, MessageId};

/// The tells that are said to their streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// Each, and until when its stream's word is waited for.
    telling: HashMap<MessageId, (Time, Sent)>,
    /// Why nothing comes of streams, by their names.
    why: BTreeMap<String, String>,
}

/// A tell that is said to its stream.
#[derive(Debug)]
pub(crate) struct Sent {
    at: jiff::Timestamp,
    at_ns: u64,
    /// The bytes of its payload.
    bytes: usize,
}

/// What became of a tell that was said to its stream.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) id: MessageId,
    pub(crate) became: Became,
}

/// The same of which tell.
#[derive(Debug)]
pub(crate) enum Became {
    /// Its stream has it.
    Accepted(Sent),
    /// No stream will ever have it.
    Failed { why: String },
    /// No stream takes what is told to its program.
    NoStream,
    /// It has to wait.
    Waits { why: String },
}

/// A tell of a stream's that is to be kept as a dead letter.
#[derive(Debug)]
pub(crate) struct Buried {
    /// Where its end is said.
    pub(crate) ack: String,
    pub(crate) program: String,
    pub(crate) tries: u32,
    pub(crate) why: String,
}

impl Sent {
    /// It is said now.
    fn now(bytes: usize) -> Sent {
        Sent { at: jiff::Timestamp::now(), at_ns: clock::now_ns(), bytes }
    }

    /// The job that it was for this host, whose outcome is that the stream of this address has it.
    pub(crate) fn accepted(self, address: Arc<[u8]>) -> Job {
        let name = String::from_utf8_lossy(elsewhere(&address).unwrap_or_default()).into_owned();
        let performer = Performer {
            kind: Kind::Stream(address),
            program: ProgramPart::named(name, ELSEWHERE),
            isolation: ELSEWHERE,
        };
        let mut job = Job::new(Origin::Accepted, Arc::new(performer));
        (job.at, job.bytes) = (self.at, self.bytes);
        job.marks.stamp(Mark::Received, Time(self.at_ns));
        job.marks.stamp(Mark::Given, Time(clock::now_ns()));
        let ended = &mut job.ended;
        (ended.reason, ended.outcome, ended.isolation) = (STREAM, ACCEPTED, ELSEWHERE);
        job
    }
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.telling.len()
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.telling.values().map(|(until, _)| *until).min()
    }

    /// Why nothing comes of one of them.
    pub(super) fn why(&self) -> Option<String> {
        self.why.values().next().cloned()
    }

    /// Something comes of a stream again, or why nothing does.
    pub(super) fn heard_of(&mut self, name: String, why: Option<String>) {
        match why {
            Some(why) => self.why.insert(name, why),
            None => self.why.remove(&name),
        };
    }

    /// Says a tell to its stream; `None`: it is for a program of this host. `Err`: why it waits.
    pub(super) fn tell(
        &mut self,
        connection: &Connection,
        message: &outbox::Message,
    ) -> Option<Result<(), String>> {
        let program = elsewhere(&message.program)?;
        if !connection.is_up {
            let why = connection.trouble.clone();
            let why = why.unwrap_or_else(|| "there is no connection to other hosts yet".to_owned());
            return Some(Err(why));
        }
        let telling = Telling {
            id: message.id.to_string(),
            program: String::from_utf8_lossy(program).into_owned(),
            key: message.key.clone().unwrap_or_default(),
            content_type: message.content_type.clone(),
            payload: message.payload.to_vec(),
        };
        if !connection.order(Order::Tell(Box::new(telling))) {
            return Some(Err("the connection to other hosts takes no more".to_owned()));
        }
        let until = Time(clock::now_ns()).after_us(KEPT_US);
        self.telling.insert(message.id, (until, Sent::now(message.payload.len())));
        Some(Ok(()))
    }

    /// A stream has a tell, or not.
    pub(super) fn kept(&mut self, id: &str, kept: Result<(), NotKept>) -> Vec<Word> {
        let Some(id) = MessageId::parse(id) else { return Vec::new() };
        // A word that comes after it was said again is as good.
        let sent = self.telling.remove(&id).map(|(_, sent)| sent);
        let became = match kept {
            // Of one whose first word was given up nothing else is known.
            Ok(()) => Became::Accepted(sent.unwrap_or_else(|| Sent::now(0))),
            Err(NotKept { why, never: true, .. }) => Became::Failed { why },
            Err(NotKept { nobody: true, .. }) => Became::NoStream,
            Err(NotKept { why, .. }) => Became::Waits { why },
        };
        vec![Word { id, became }]
    }

    /// No word comes any more to what was told; or none has come in time.
    pub(super) fn not_kept(&mut self, why: &str, until: Option<Time>) -> Vec<Word> {
        let is_late = |at: Time| until.is_none_or(|until| at <= until);
        let late = self.telling.extract_if(|_, (at, _)| is_late(*at));
        let became = || Became::Waits { why: why.to_owned() };
        late.map(|(id, _)| Word { id, became: became() }).collect()
    }

    /// A stream gives a tell to this host.
    pub(super) fn told(&self, ctx: &mut Ctx<'_>, reach: Reach<'_>, told: Told) {
        let (ack, program, delivered) =
            (told.ack.clone(), told.program.clone(), told.delivered.max(1));
        let (connection, is_stopping) = (reach.connection, reach.tables.is_stopping);
        if open(ctx, reach, told).is_none() {
            // Not the message's fault: another host may have what this one lacks.
            let delay_ms = if is_stopping { 0 } else { tells::delay_ms(delivered) };
            connection.order(Order::Settle { program, ack, end: End::Again { delay_ms } });
        }
    }
}

fn open(ctx: &mut Ctx<'_>, reach: Reach<'_>, told: Told) -> Option<()> {
    let Reach { tables, offers, .. } = reach;
    let Told { program, id, from, key, content_type, payload, ack, delivered } = told;
    let is_large = payload.len() > BODY_MAX || content_type.len().max(key.len()) > WORD_MAX;
    if tables.is_stopping || is_large || !tables.jobs.has_room(payload.len()) {
        return None;
    }
    let way = offers.from(&program)?;
    let (pool, _) = tables.catalog.route(ctx, &way, program.as_bytes()).ok()?;
    let call = CallId(ctx.recorder.next_call());
    let (message_id, empty) = (id.into_bytes(), Asked::new(Manner::Tell, pool));
    let asked = Asked { key, content_type, message_id, payload: payload.into(), ..empty };
    let origin = Origin::Stream(Streamed { ack, program, delivered, from });
    let job = tables.message(origin, asked, clock::now_ns());
    tables.open(ctx, call, job);
    Some(())
}

/// A tell that a stream has given has its outcome here. Returns its address where it has failed too
/// often, and is to be kept as a dead letter: its stream hears of that when it is on the disk.
pub(super) fn settle(
    reach: Reach<'_>,
    job: &Job,
    streamed: &Streamed,
    outcome: Settled,
) -> Option<Arc<[u8]>> {
    let Reach { tables, connection, offers } = reach;
    let asked = job.asked()?;
    let ended = match outcome {
        Settled::Answered if asked.is_answered() => Ended::Performed,
        Settled::Refused(_) | Settled::Cancelled | Settled::TimedOut { given: Given::No } => {
            Ended::NotTried
        }
        Settled::Lost if tables.is_stopping => Ended::NotTried,
        Settled::Answered | Settled::Lost | Settled::TimedOut { given: Given::Yes } => {
            Ended::Failed
        }
    };
    let Streamed { ack, program, delivered, .. } = streamed;
    let end = match tells::settle(ended, *delivered, tables.catalog.tries(asked.pool)) {
        Some(end) => end,
        None => match offers.from(program) {
            Some(from) => {
                return Some(tables.catalog.address(&from, program.as_bytes(), asked.pool));
            }
            None => End::Again { delay_ms: tells::delay_ms(*delivered) },
        },
    };
    connection.order(Order::Settle { program: program.clone(), ack: ack.clone(), end });
    None
}

/// A dead letter of a stream's is on the disk, or cannot be.
pub(super) fn buried(connection: &Connection, buried: &Buried, is_kept: bool) {
    let Buried { ack, program, tries, .. } = buried;
    let end = if is_kept { End::Dead } else { End::Again { delay_ms: tells::delay_ms(*tries) } };
    connection.order(Order::Settle { program: program.clone(), ack: ack.clone(), end });
}
