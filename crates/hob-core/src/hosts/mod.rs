//! Programs of other hosts: what becomes of an ask that leaves this host, and of one that comes from
//! another. Two machines without a clock and without a connection; a task that holds the
//! connection moves what they decide.
//!
//! ```text
//!  this host   Ask ─▶ asker ─▶ Order::Publish ─▶ the connection ─▶ another host's News::Asked
//!                       ▲                                                   │
//!              Ended ◀──┴── News::Replied ◀── its Order::Answer ◀── host ◀──┘
//! ```
//! | file | decides |
//! |---|---|
//! | `asker` | when an ask may leave, and its one outcome |
//! | `host` | which questions are performed, and until when |
//! | `tells` | who owns a tell to another host's program, and what becomes of it |
//! | `reply` | how an outcome is written in a reply, and read again |
//! | `trail` | where an ask stands in a trace, and over how many hosts it has come |
//! | `words` | how bytes are written in a header |
//!
//! Invariants (`tests/hosts`, with lost, late, doubled and reordered messages): an ask ends once; one
//! that ended as *not given* was performed by no host; no question is performed twice; what is claimed
//! is performed by one host, and by none after its asker gave up; every wait and every number of open
//! ones has a named bound.

pub mod affinity;
pub mod asker;
pub mod host;
pub mod reply;
pub mod tells;
pub mod trail;
pub mod words;

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::requests::dead::{Elsewhere, OfHost};
use reply::Reply;
use tells::{End, NotKept, Telling, Told};
use trail::Trail;

/// For so long an ask without a time of its own is waited for, in µs. Then it is lost.
pub const WITHIN_US: u64 = 300_000_000;
/// Asks that are open at other hosts at one time; above that an ask is not given.
pub const ASKS_MAX: usize = 1024;
/// Questions of other hosts that are open here at one time; above that they are answered `busy`.
pub const QUESTIONS_MAX: usize = 1024;
/// A question that has come over more hosts than this is not performed.
pub const HOPS_MAX: u64 = 4;
/// For so long a claim waits for a host that takes it, in µs. Then all of them are asked.
pub const CLAIM_US: u64 = 250_000;
/// So often a claim is tried. Then it is not given.
pub const CLAIM_TRIES: u32 = 4;
/// For so long a host that has taken a claim waits for the word to perform it, in µs.
pub const GO_US: u64 = 2_000_000;
/// The bytes that headers may take of what a server lets pass.
pub const HEADERS_BYTES: usize = 8 * 1024;
/// The characters of a host's name.
pub const HOST_CHARS_MAX: usize = 64;

/// What the task that holds the connection is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Send an ask.
    Publish(Published),
    /// Offer these programs, and no others.
    Offer(Vec<Offered>),
    /// Say that a taken ask is to be performed.
    Go {
        /// The ask, and where its reply comes from now on.
        attempt: Attempt,
        /// Where to.
        to: String,
        /// The time that is left for it, in µs.
        within_us: u64,
    },
    /// Say that a question is taken, and performed after a word.
    Taken {
        /// Where to.
        to: String,
        /// What that word names.
        ticket: u64,
    },
    /// Tell a program's stream.
    Tell(Box<Telling>),
    /// Say what became of a tell that a stream has given.
    Settle {
        /// The program.
        program: String,
        /// Where to.
        ack: String,
        /// What.
        end: End,
    },
    /// Answer a question.
    Answer {
        /// Where to.
        to: String,
        /// What.
        reply: Reply,
    },
    /// Say how an offered program does, to who asks that of services.
    Stats {
        /// Where to.
        to: String,
        /// The program.
        program: String,
        /// How it does.
        stats: Stats,
    },
    /// Say when all that has come by now has been handed over.
    CatchUp,
    /// Ask all hosts how their programs do.
    Survey,
    /// Ask all hosts for their dead letters.
    AskLetters,
    /// Say which dead letters the offered programs of this host have.
    SayLetters {
        /// Where to.
        to: String,
        /// Which.
        letters: Box<OfHost>,
    },
    /// Offer nothing more, send what is there, and end.
    Stop,
}

/// One attempt to have an ask performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// The ask's number.
    pub call: CallId,
    /// Which attempt of it: the first is 1.
    pub number: u32,
}

/// To whom an ask goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// One of the hosts, which performs it at once, or takes it where its program is claimed.
    Plain,
    /// One of the hosts whose program is claimed.
    Claim,
    /// All of these.
    ClaimOfAll,
}

/// An ask on its way to another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its number here.
    pub attempt: Attempt,
    /// To whom.
    pub way: Way,
    /// The program's name.
    pub program: String,
    /// The one host that is asked; empty: any.
    pub host: String,
    /// The time that is left for it, in µs.
    pub within_us: u64,
    /// Its way, this host's step included.
    pub trail: Trail,
    /// The sender's key.
    pub key: Vec<u8>,
    /// What the payload is.
    pub content_type: Vec<u8>,
    /// What is asked.
    pub payload: Vec<u8>,
}

/// A program that other hosts may ask.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Offered {
    /// Its name.
    pub program: String,
    /// Its version, as `hob.toml` has it.
    pub version: String,
    /// Whether it is taken before it is performed.
    pub claimed: bool,
    /// Into how many parts tells with a key are divided; 0: it takes none with a key from other hosts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub partitions: u32,
    /// The hooks directory that it is; `None`: it is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<OfferedHooks>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A hooks directory that other hosts may have run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OfferedHooks {
    /// Its path at its host.
    pub directory: String,
    /// For how many targets it runs there at one time.
    pub at_once: u32,
}

/// How an offered program does at one host, since its daemon started.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stats {
    /// Asks of other hosts that have ended.
    pub asked: u64,
    /// Those of them without an answer.
    pub failed: u64,
    /// Why the last of these had none, in one word; empty without one.
    pub last_failure: String,
    /// The time that was spent on them all, in µs.
    pub spent_us: u64,
    /// Workers that wait.
    pub ready: u32,
    /// Workers that perform something.
    pub busy: u32,
    /// Messages that wait for one.
    pub queued: u32,
    /// Dead letters at that host, of all its programs.
    #[serde(default)]
    pub dead: u64,
}

/// An offered program of some host, as that says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seen {
    /// The host's name.
    pub host: String,
    /// Its program.
    #[serde(flatten)]
    pub offered: Offered,
    /// What tells two hosts of one name apart.
    pub id: String,
    /// How it does.
    #[serde(flatten)]
    pub stats: Stats,
}

/// Programs of all hosts that are shown at most.
pub const SEEN_MAX: usize = 4096;

/// What the task that holds the connection has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// There is a connection, and what is offered is offered on it.
    Up {
        /// The most bytes of payload and headers that its server lets pass.
        bytes_max: usize,
    },
    /// There is none, and why; it is tried again.
    Down {
        /// A line for a person.
        why: String,
    },
    /// An ask has a reply.
    Replied {
        /// The ask.
        attempt: Attempt,
        /// What was said.
        reply: Reply,
    },
    /// A host has taken an ask.
    Taken {
        /// The ask.
        attempt: Attempt,
        /// Where to say that it is to be performed.
        to: String,
    },
    /// An ask was not sent.
    NotSent {
        /// The ask.
        attempt: Attempt,
        /// A line for a person.
        why: String,
    },
    /// The server lets this host ask no host to take a program's messages.
    Forbidden {
        /// The program's name, as it is asked.
        program: String,
        /// A line for a person.
        why: String,
    },
    /// Something does not work although there is a connection.
    Trouble {
        /// A line for a person.
        why: String,
    },
    /// Somebody asks how an offered program does.
    StatsWanted {
        /// Where to say so.
        to: String,
        /// The program.
        program: String,
    },
    /// What all hosts have said of their programs.
    Surveyed(Vec<Seen>),
    /// Somebody asks for the dead letters of this host.
    LettersWanted {
        /// Where to say so.
        to: String,
    },
    /// What other hosts have said of their dead letters.
    Letters(Elsewhere),
    /// Another host asks.
    Asked(Box<Question>),
    /// A stream has a tell, or not.
    Kept {
        /// Its id in the outbox.
        id: String,
        /// Which of both.
        kept: Result<(), NotKept>,
    },
    /// A stream gives a tell to this host.
    Told(Box<Told>),
    /// All that had come by then has been handed over.
    CaughtUp,
    /// Whether the tells of a stream come.
    Stream {
        /// Its name.
        name: String,
        /// Why not, in a line for a person.
        why: Option<String>,
    },
    /// The word has come to perform what was taken.
    Went {
        /// What it names.
        ticket: u64,
        /// Where the reply goes from now on; `None`: where it was to go before.
        reply_to: Option<String>,
        /// The time that was left when it was said, as it is written.
        within: Option<String>,
    },
}

/// A question of another host, as it was read. Every field is what a stranger wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Where the reply goes; no two questions have the same.
    pub reply_to: String,
    /// The program's name.
    pub program: String,
    /// The time that was left when it was sent, as it is written; `None`: nothing is said.
    pub within: Option<String>,
    /// The hosts that it has come over, as it is written.
    pub hops: Option<String>,
    /// Its trace, as it is written.
    pub traceparent: Option<String>,
    /// Who asks: a host's name and its call's number; empty where that is not said or is none.
    pub from: String,
    /// What it says of claims.
    pub claim: Claim,
    /// The sender's key.
    pub key: Vec<u8>,
    /// What the payload is.
    pub content_type: Vec<u8>,
    /// What is asked.
    pub payload: Vec<u8>,
}

/// Whether a question is taken before it is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Its asker does not know of that.
    Unknown,
    /// Its asker knows of it: where its program is claimed, it is taken.
    Known,
    /// It is not performed in any other way.
    Needed,
}

/// Whether a program's name can be one of a subject: letters, digits, `-` and `_`.
#[must_use]
pub fn is_subject(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=HOST_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_word)
}

/// A program's name, and the host behind its `@`, if one is named: `greeter@web-1`. `None`: it can be
/// no name of an offered program, or of a host.
#[must_use]
pub fn addressed(name: &str) -> Option<(&str, Option<&str>)> {
    match name.split_once('@') {
        None => is_subject(name).then_some((name, None)),
        Some((program, host)) => {
            (is_subject(program) && is_host(host)).then_some((program, Some(host)))
        }
    }
}

/// Whether this can be a host's name: as a program's, with dots.
#[must_use]
pub fn is_host(name: &str) -> bool {
    name.len() <= HOST_CHARS_MAX && name.split('.').all(is_subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_be_asked_at_one_host() {
        assert_eq!(addressed("greeter"), Some(("greeter", None)));
        assert_eq!(addressed("greeter@web-1.lan"), Some(("greeter", Some("web-1.lan"))));
        for wrong in ["", "@", "greeter@", "@web-1", "a.b@web-1", "a@b@c", "a@*", "a@b..c", "a@>"] {
            assert_eq!(addressed(wrong), None, "{wrong}");
        }
    }
}
