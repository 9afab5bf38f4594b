//! One connection to the daemon as a sender of messages, and the lane that it may have: what
//! `clients/python/hob.py` is for Python. `reach` is what sends a message until a daemon has it.

use std::os::unix::ffi::OsStrExt;

use hob_os::clock;
use hob_os::start::Start;
use hob_wire::caps::{BODY_MAX, WORD_MAX};
use hob_wire::frame::{self, HEADER_LEN, Header, Kind};
use hob_wire::message::{
    ALL_OPEN, Answer, Attach, DRAWN_BYTES, Failure, Lent, Manner, Message, Named, Numbered, Reason,
};
use hob_wire::strings::Strings;
use rustix::fd::OwnedFd;

use crate::connection::{Connection, NoFrame, Unsent};

/// What a daemon is that has gone.
pub(super) const LEFT: &str = "the daemon has left";
/// How much longer than the message's own time the daemon's word is waited for.
const PATIENCE_MS: u64 = 250;
/// After so many messages by way of the daemon a lane is asked for again where there was none.
const LANE_EVERY: u32 = 64;

/// Why a message has no reply.
#[derive(Debug)]
pub(super) enum Undone {
    /// It has its outcome.
    Over(Unanswered),
    /// It was not given, and the next daemon may have it.
    NotGiven(String),
    /// Nobody can say whether it was given.
    Unknown,
}

impl From<Unanswered> for Undone {
    fn from(unanswered: Unanswered) -> Undone {
        match unanswered.reason {
            Reason::Stopping => Undone::NotGiven(unanswered.text),
            Reason::Raised
            | Reason::TimedOut
            | Reason::NoProgram
            | Reason::NotLoaded
            | Reason::Untrusted
            | Reason::Config
            | Reason::Malformed
            | Reason::Lost
            | Reason::Cancelled
            | Reason::Busy
            | Reason::Again
            | Reason::NotKept
            | Reason::Context
            | Reason::NoHost => Undone::Over(unanswered),
        }
    }
}

/// Why the daemon gives no reply any more.
impl From<NoFrame> for Undone {
    fn from(none: NoFrame) -> Undone {
        match none {
            NoFrame::Unread => Undone::NotGiven(LEFT.to_owned()),
            NoFrame::Late | NoFrame::Ended | NoFrame::Malformed => Undone::Unknown,
        }
    }
}

/// What is sent.
#[derive(Debug, Clone)]
pub(super) struct Mail {
    pub(super) program: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) content_type: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) manner: Manner,
    pub(super) timeout_ms: Option<u64>,
    /// By this a tell that is sent again is known.
    pub(super) drawn: Option<[u8; DRAWN_BYTES]>,
}

/// A message that has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verbs) struct Unanswered {
    pub(in crate::verbs) reason: Reason,
    pub(in crate::verbs) text: String,
}

impl Unanswered {
    pub(super) fn lost(text: impl Into<String>) -> Unanswered {
        Unanswered { reason: Reason::Lost, text: text.into() }
    }

    pub(super) fn timed_out(mail: &Mail, why: &str) -> Unanswered {
        let name = String::from_utf8_lossy(&mail.program);
        Unanswered { reason: Reason::TimedOut, text: format!("{name}: the time passed{why}") }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// An answer.
    Answer(Vec<u8>),
    /// A tell was accepted under this id.
    Accepted(Vec<u8>),
}

impl Mail {
    /// Why it could not be sent at all.
    pub(super) fn fault(&self) -> Option<String> {
        let words = [&self.program, &self.key, &self.content_type];
        if words.iter().any(|word| word.len() > WORD_MAX) {
            return Some(format!("a name, key or content type has at most {WORD_MAX} bytes"));
        }
        (self.payload.len() > BODY_MAX).then(|| {
            format!("the payload has {} bytes; at most {BODY_MAX} fit", self.payload.len())
        })
    }
}

/// Speaks as a sender on a connection.
pub(super) fn attach(socket: OwnedFd, start: &Start) -> Result<Connection, String> {
    let directory = std::env::current_dir()
        .map_err(|error| format!("cannot tell the current directory: {error}"))?;
    let attach = Attach {
        directory: directory.as_os_str().as_bytes().to_vec(),
        env: start.env.iter().map(|entry| entry.to_bytes()).collect::<Strings>(),
    };
    let connection = Connection::new(socket);
    match connection.greet(Kind::Attach, &[], |out| attach.encode(out)) {
        Err(Unsent::TooLarge(_)) => {
            Err("the environment is larger than a frame (1 MiB)".to_owned())
        }
        // One that has left is found so with the first message.
        Ok(()) | Err(Unsent::Cut(_)) => Ok(connection),
    }
}

#[derive(Debug)]
struct Lane {
    number: u64,
    stream: Connection,
}

/// A connection that sends messages, one at a time.
#[derive(Debug)]
pub(super) struct Link {
    stream: Connection,
    number: u64,
    lane: Option<Lane>,
    /// Messages until a lane is asked for.
    patience: u32,
}

impl Link {
    pub(super) fn new(stream: Connection) -> Link {
        Link { stream, number: 0, lane: None, patience: 1 }
    }

    /// Sends a message and awaits its reply.
    pub(super) fn send(&mut self, mail: &Mail, until_ns: Option<u64>) -> Result<Reply, Undone> {
        if mail.manner == Manner::Ask && mail.key.is_empty() {
            self.find_lane(mail, until_ns)?;
            if let Some(reply) = self.send_on_lane(mail, until_ns) {
                return reply;
            }
        }
        self.send_to_daemon(mail, until_ns)
    }

    fn frame(&mut self, mail: &Mail, until_ns: Option<u64>, program: &[u8]) -> Vec<u8> {
        self.number += 1;
        // The time of a tell is how long its sender waits until it is kept.
        let until_ns = until_ns.filter(|_| mail.manner == Manner::Ask);
        let left = until_ns.map(|until| (until.saturating_sub(clock::now_ns()) / 1000).max(1));
        let message = Message {
            id: self.number,
            manner: mail.manner,
            remaining_us: left.unwrap_or(0),
            program,
            key: &mail.key,
            content_type: &mail.content_type,
            message_id: mail.drawn.as_ref().map_or(&[], <[u8; DRAWN_BYTES]>::as_slice),
            payload: &mail.payload,
        };
        let mut bytes = Vec::with_capacity(HEADER_LEN + 64 + mail.payload.len());
        // The caps of `Mail::fault` keep it within a frame.
        let _ = frame::append(&mut bytes, Kind::Message, 0, |out| message.encode(out));
        bytes
    }

    fn send_to_daemon(&mut self, mail: &Mail, until_ns: Option<u64>) -> Result<Reply, Undone> {
        let bytes = self.frame(mail, until_ns, &mail.program);
        let number = self.number;
        // What it did not have whole it has not given.
        self.stream.send(&bytes, &[]).map_err(|_| Undone::NotGiven(LEFT.to_owned()))?;
        // The daemon keeps the time too, and says more.
        let until_ns = until_ns.map(|until| until.saturating_add(PATIENCE_MS * 1_000_000));
        let (kind, payload) = match self.reply(number, until_ns) {
            Ok((header, payload)) => (header.kind, payload),
            Err(NoFrame::Late) => {
                self.tell(Kind::Cancel, number);
                return Err(Undone::Over(Unanswered::timed_out(mail, waits(mail))));
            }
            Err(none) => return Err(none.into()),
        };
        if kind == Kind::Accepted
            && let Ok(accepted) = Named::decode(&payload)
        {
            return Ok(Reply::Accepted(accepted.name));
        }
        Ok(read(kind, &payload)?)
    }

    /// The reply to a request of this number; what belongs to others was given up before.
    fn reply(&mut self, number: u64, until_ns: Option<u64>) -> Result<(Header, Vec<u8>), NoFrame> {
        loop {
            let (header, payload) = self.stream.next(until_ns)?;
            let of = payload.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
            if of == Some(number) || of == Some(ALL_OPEN) {
                return Ok((header, payload));
            }
        }
    }

    fn tell(&self, kind: Kind, id: u64) {
        // A daemon that has left needs no telling.
        let _ = self.stream.say(kind, &[], |out| Numbered { id }.encode(out));
    }

    /// Asks for a lane, from the second message on.
    fn find_lane(&mut self, mail: &Mail, until_ns: Option<u64>) -> Result<(), Undone> {
        if self.lane.is_some() || self.patience > 0 {
            self.patience = self.patience.saturating_sub(1);
            return Ok(());
        }
        self.patience = LANE_EVERY;
        self.number += 1;
        let number = self.number;
        let wanted = Named { id: number, name: mail.program.clone() };
        let left = || Undone::NotGiven(LEFT.to_owned());
        self.stream.say(Kind::WantLane, &[], |out| wanted.encode(out)).map_err(|_| left())?;
        match self.reply(number, until_ns) {
            Ok((header, payload)) if header.kind == Kind::Lent => {
                let lane = Lent::decode(&payload).map_or(0, |lent| lent.lane);
                if let (1.., Some(socket)) = (lane, self.stream.take_fds(&header).pop()) {
                    self.lane = Some(Lane { number: lane, stream: Connection::new(socket) });
                }
                Ok(())
            }
            Err(NoFrame::Late) => Err(Undone::Over(Unanswered::timed_out(mail, waits(mail)))),
            // The message is still here.
            Ok(_) | Err(_) => Err(left()),
        }
    }

    /// Sends on the lane; `None`: there is none, or the message was not given.
    fn send_on_lane(
        &mut self,
        mail: &Mail,
        until_ns: Option<u64>,
    ) -> Option<Result<Reply, Undone>> {
        self.lane.as_ref()?;
        let bytes = self.frame(mail, until_ns, b"");
        let lane = self.lane.as_mut()?;
        if lane.stream.send(&bytes, &[]).is_err() {
            self.leave_lane();
            return None;
        }
        let (kind, payload) = match lane.stream.next(until_ns) {
            Ok((header, payload)) => (header.kind, payload),
            Err(NoFrame::Late) => {
                self.leave_lane();
                return Some(Err(Undone::Over(Unanswered::timed_out(mail, waits(mail)))));
            }
            Err(NoFrame::Unread) => {
                self.leave_lane();
                return None;
            }
            Err(NoFrame::Ended | NoFrame::Malformed) => {
                self.leave_lane();
                let name = String::from_utf8_lossy(&mail.program);
                let text = format!("{name}: its worker ended before it answered");
                return Some(Err(Undone::Over(Unanswered::lost(text))));
            }
        };
        let reply = read(kind, &payload);
        if reply.as_ref().is_err_and(|error| error.reason == Reason::Again) {
            self.leave_lane();
            return None;
        }
        Some(reply.map_err(Undone::from))
    }

    fn leave_lane(&mut self) {
        if let Some(lane) = self.lane.take() {
            self.patience = 0;
            self.tell(Kind::LeaveLane, lane.number);
        }
    }
}

/// What may be of a message whose time has passed while its daemon was silent.
fn waits(mail: &Mail) -> &'static str {
    match mail.manner {
        Manner::Ask => "",
        Manner::Tell | Manner::TellOnce => "; it may have been taken",
    }
}

pub(super) fn read(kind: Kind, payload: &[u8]) -> Result<Reply, Unanswered> {
    if kind == Kind::Answer
        && let Ok(answer) = Answer::decode(payload)
    {
        return Ok(Reply::Answer(answer.payload.to_vec()));
    }
    match Failure::decode(payload) {
        Ok(failure) if kind == Kind::Failure => Err(Unanswered {
            reason: failure.reason,
            text: String::from_utf8_lossy(failure.text).into_owned(),
        }),
        Ok(_) | Err(_) => Err(Unanswered::lost("the other end does not speak hob's wire")),
    }
}
