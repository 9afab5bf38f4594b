//! Messages: asks and tells from any program to a handler, their answers, the lanes on which they
//! travel without the daemon between, and the shared state beside them. `docs/wire.md` tells the
//! same in words.
//!
//! The fixed fields of a [`Message`] and an [`Answer`] come first and the lengths with them, so
//! that an interpreter reads them with one call of its standard library; the payload is what is
//! left of the frame.

use crate::codec::{Absolute, Body, LateWord, Rest, Word};
use crate::frames::{frames, numbers};
use crate::strings::Strings;

/// The number of no message: a failure with it is about all that are open on its connection.
pub const ALL_OPEN: u64 = u64::MAX;
/// How many bytes a sender draws for a tell, so that it can be sent again and is kept once.
pub const DRAWN_BYTES: usize = 8;

frames! {
    /// Where a connection speaks from. The first frame of a sender, and sent once.
    frame Attach {
        /// The absolute path of its working directory: `hob.toml` is looked for there and above.
        directory: Vec<u8> as Absolute,
        /// Its environment: finds the interpreter, and names what a handler may have of it.
        env: Strings = "environment",
    }

    /// One message: to the daemon, on to a worker, or straight to a worker on a lane. Words beyond
    /// [`crate::caps::WORD_MAX`] are a mistake of whoever sends; the other end does not take them.
    frame Message<'a>: Copy {
        /// Its number among those of this connection; the daemon's own number on the way to a
        /// worker.
        id: u64,
        /// Ask or tell.
        manner: Manner,
        /// How long its sender waits from now on, in microseconds; 0: as long as it takes.
        remaining_us: u64 = "remaining",
        /// The program's name in `hob.toml`; empty on a lane, which leads to one program. On the
        /// way to a worker the `traceparent` of its call, empty without one.
        program: &'a [u8] as LateWord,
        /// The session that it belongs to; empty without one.
        key: &'a [u8] as LateWord,
        /// What the payload is, as MIME names it; empty: bytes.
        content_type: &'a [u8] as LateWord = "content type",
        /// The id that a redelivery repeats; empty for an ask. Until the daemon has chosen one: eight
        /// bytes that the sender has drawn for a tell, or empty.
        message_id: &'a [u8] as LateWord = "message id",
        /// The message itself.
        payload: &'a [u8] as Body,
    }

    /// What a handler answered.
    frame Answer<'a>: Copy {
        /// The number of the message.
        id: u64,
        /// What the payload is; empty: bytes.
        content_type: &'a [u8] as Word = "content type",
        /// The answer itself; empty for a tell.
        payload: &'a [u8] as Rest,
    }

    /// A message's end without an answer.
    frame Failure<'a>: Copy {
        /// The number of the message, or of the hook set; 2^64 - 1: all that are open.
        id: u64,
        /// Why.
        reason: Reason,
        /// One line for a person.
        text: &'a [u8] as Rest,
    }

    /// A number alone: a message or hook set that is taken back, or a lane that its sender has
    /// left.
    frame Numbered: Copy {
        /// The number of the message, of the hook set, or of the lane.
        id: u64,
    }

    /// A number and a word: a lane that is wanted to a program, or a tell that was accepted under
    /// a message id.
    frame Named {
        /// The number of what it answers or asks.
        id: u64,
        /// The program's name, or the message id.
        name: Vec<u8> as Word,
    }

    /// Where a request stands in its client's trace, by its `traceparent`; all 0: in none.
    part Traced: Copy, Default {
        /// The upper half of the trace's id.
        high: u64 = "trace",
        /// The lower half.
        low: u64 = "trace",
        /// The span of the client.
        parent: u64,
        /// The span of the request.
        span: u64,
    }

    /// What a front says of a request when it is done with it, for its receipt.
    frame Passed<'a>: Copy {
        /// The number of the message by which its app was asked; 0: it was not.
        id: u64,
        /// The lane that it went on, as the message of this number there; 0: it went by the daemon.
        lane: u64,
        /// Why its app was not asked.
        turned: Turned,
        /// What its client speaks.
        protocol: Protocol,
        /// When the first byte of its head came; 0: that is not known.
        head_ns: u64 = "head",
        /// When its head was whole.
        begun_ns: u64 = "begun",
        /// When its rights were judged; 0: it has none.
        judged_ns: u64 = "judged",
        /// Where the answer about them came from.
        judged: Judged,
        /// When its body was whole; 0: never.
        whole_ns: u64 = "whole",
        /// When it went on its lane; 0 without one.
        given_ns: u64 = "given",
        /// When its app had come to its end on a lane; 0 without one.
        ended_ns: u64 = "ended",
        /// When the last byte of its answer was passed on, or its client had left.
        passed_ns: u64 = "passed",
        /// Where it stands in a trace.
        trace: Traced,
        /// Its app, where `id` is 0.
        program: &'a [u8] as Rest,
    }

    /// What a front says of a request that it has answered itself, for its receipt: files of a folder
    /// or a repository.
    frame Served<'a>: Copy {
        /// How many requests of the same mount and status this stands for, itself among them.
        stands_for: u64,
        /// The status of the answer.
        status: u64,
        /// Bytes of the body that went out.
        bytes: u64,
        /// Where the answer about its rights came from.
        judged: Judged,
        /// What its client speaks.
        protocol: Protocol,
        /// When the first byte of its head came; 0: that is not known.
        head_ns: u64 = "head",
        /// When its head was whole.
        begun_ns: u64 = "begun",
        /// When its rights were judged; 0: it has none.
        judged_ns: u64 = "judged",
        /// When a reader took it; 0: none was needed.
        queued_ns: u64 = "queued",
        /// When it was known which object it is; 0: it is none.
        found_ns: u64 = "found",
        /// When the object was read; 0: it was not.
        read_ns: u64 = "read",
        /// When the last byte of its answer was passed on, or its client had left.
        passed_ns: u64 = "passed",
        /// Where it stands in a trace.
        trace: Traced,
        /// The path of its mount.
        mount: &'a [u8] as Rest,
    }

    /// The answer to a wanted lane: with the lane's descriptor, or without.
    frame Lent: Copy {
        /// The number of the request.
        id: u64,
        /// The lane's number; 0: none now, messages go by the daemon.
        lane: u64,
    }

    /// Daemon to worker: a lane to answer on. Its descriptors: the lane, what says that something
    /// of the warm state may have changed, and the memory to count in.
    frame Lend: Copy {
        /// The lane's number.
        lane: u64,
        /// How many messages the worker has left; it ends the lane after them.
        uses: u32,
    }

    /// Worker to daemon: messages of a lane that were handled since the last report, with the times
    /// of the newest of them.
    frame Handled: Copy {
        /// The lane's number.
        lane: u64,
        /// How many; all but one have no receipt of their own.
        count: u32,
        /// How many of them raised.
        raised: u32,
        /// Whether the newest raised.
        newest_raised: bool = "newest raised",
        /// When the newest was received.
        main_ns: u64 = "main",
        /// When it was answered.
        finished_ns: u64 = "finished",
        /// Whether the lane is over: the worker is the daemon's again.
        over: bool,
    }

    /// A request to the shared state.
    frame State<'a> {
        /// Its number among those of this connection.
        id: u64,
        /// What to do.
        verb: StateVerb,
        /// What to add.
        number: i64,
        /// How long an entry lives, in microseconds; 0: until there is no room for it.
        ttl_us: u64 = "time to live",
        /// The name of the counter, or the key of the entry.
        name: &'a [u8] as Word,
        /// The value of an entry to set.
        value: &'a [u8] as Rest,
    }

    /// An answer of the shared state.
    frame StateReply<'a>: Copy {
        /// The number of the request.
        id: u64,
        /// What became of it.
        held: Held,
        /// The counter.
        number: i64,
        /// The entry's value.
        value: &'a [u8] as Rest,
    }
}

numbers! {
    /// How a message was sent.
    enum Manner {
        /// Its sender awaits the answer.
        Ask = 0,
        /// Its sender has gone on; it is kept until it is finished, and may come again after a crash.
        Tell = 1,
        /// Its sender has gone on, and it is given at most once.
        TellOnce = 2,
    }

    /// Why a message has no answer.
    enum Reason {
        /// The handler raised, or gave what is no answer. It ran.
        Raised = 1,
        /// Its worker ended before it answered. It may have run.
        Lost = 2,
        /// Its time had passed. It may have run.
        TimedOut = 3,
        /// Its sender took it back, or left.
        Cancelled = 4,
        /// It was not given: the queue is full, or there are too many sessions.
        Busy = 5,
        /// It was not given: no `hob.toml` above the sender's directory has such a program.
        NoProgram = 6,
        /// It was not given: the `hob.toml` is not trusted.
        Untrusted = 7,
        /// It was not given: the `hob.toml` cannot be used as it is.
        Config = 8,
        /// It was not given: the handler cannot be loaded.
        NotLoaded = 9,
        /// It was not given: the daemon stops.
        Stopping = 10,
        /// On a lane: it was not given, and is to be sent to the daemon.
        Again = 11,
        /// It was not given: it breaks a rule of the wire, such as the cap of a payload.
        Malformed = 12,
        /// It was not kept: the outbox cannot be written.
        NotKept = 13,
        /// It was not given: what the daemon starts could not have the caller's context.
        Context = 14,
        /// It was not given: no program here has its name, and no other host that could be reached
        /// offers one.
        NoHost = 15,
    }

    /// Why no app was asked a request that was for it.
    enum Turned {
        /// It was asked.
        Not = 0,
        /// Its body is longer than the mount takes.
        BodyBytes = 1,
        /// Its body stopped coming.
        BodyGap = 2,
        /// Its body broke off, or is not what its head says.
        BodyBroken = 3,
        /// There is no room to keep its body.
        BodyRoom = 4,
        /// Too many requests wait already.
        Queue = 5,
        /// The time of a request passed while it waited for a worker.
        Timeout = 6,
    }

    /// Where the answer about the rights of a request came from.
    enum Judged {
        /// It has none.
        Not = 0,
        /// It was asked for.
        Asked = 1,
        /// It was kept.
        Kept = 2,
        /// Another request had asked already.
        Shared = 3,
    }

    /// What a client of a site speaks.
    enum Protocol {
        /// Nothing: the front asks by itself.
        Nothing = 0,
        /// HTTP/1.0.
        Http10 = 1,
        /// HTTP/1.1.
        Http11 = 2,
        /// HTTP/2.
        Http2 = 3,
    }

    /// What is asked of the shared state.
    enum StateVerb {
        /// Add to a counter, and read it.
        Add = 0,
        /// Read a counter; one that was never added to is 0.
        Count = 1,
        /// Set an entry of the cache.
        Set = 2,
        /// Read an entry of the cache.
        Get = 3,
        /// Remove an entry of the cache.
        Delete = 4,
    }

    /// What the shared state answers.
    enum Held {
        /// There is no such entry.
        Nothing = 0,
        /// Done; with the counter's number, or the entry's value.
        There = 1,
        /// Not done: it is larger than the whole room, or there are too many counters.
        NoRoom = 2,
    }
}

impl Reason {
    /// The stable code, as receipts and errors show it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Reason::Raised => "raised",
            Reason::Lost => "lost",
            Reason::TimedOut => "timed-out",
            Reason::Cancelled => "cancelled",
            Reason::Busy => "busy",
            Reason::NoProgram => "no-program",
            Reason::Untrusted => "untrusted",
            Reason::Config => "config",
            Reason::NotLoaded => "not-loaded",
            Reason::Stopping => "stopping",
            Reason::Again => "again",
            Reason::Malformed => "malformed",
            Reason::NotKept => "not-kept",
            Reason::Context => "context",
            Reason::NoHost => "no-host",
        }
    }
}

impl Judged {
    /// The stable code, as receipts and logs show it; `None`: it has no rights.
    #[must_use]
    pub fn code(self) -> Option<&'static str> {
        match self {
            Judged::Not => None,
            Judged::Asked => Some("asked"),
            Judged::Kept => Some("kept"),
            Judged::Shared => Some("shared"),
        }
    }
}

impl Protocol {
    /// Its name, as requests and apps have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Nothing => "",
            Protocol::Http10 => "HTTP/1.0",
            Protocol::Http11 => "HTTP/1.1",
            Protocol::Http2 => "HTTP/2",
        }
    }
}

impl Turned {
    /// The stable code, as receipts show it: the name of the limit that was reached, where it was
    /// one.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Turned::Not => "asked",
            Turned::BodyBytes => "limits.body",
            Turned::BodyGap => "timeouts.body",
            Turned::BodyBroken => "body-broken",
            Turned::BodyRoom => "body-not-kept",
            Turned::Queue => "queue",
            Turned::Timeout => "timeout",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DecodeError;
    use crate::caps::{BODY_MAX, WORD_MAX};

    #[test]
    fn a_word_over_its_cap_is_not_taken() {
        let long = vec![b'x'; WORD_MAX + 1];
        let mut bytes = Vec::new();
        let message = Message {
            id: 1,
            manner: Manner::Ask,
            remaining_us: 0,
            program: &long,
            key: b"",
            content_type: b"",
            message_id: b"",
            payload: b"",
        };
        message.encode(&mut bytes);
        assert_eq!(Message::decode(&bytes), Err(DecodeError::TooMany("bytes of a word")));
    }

    #[test]
    fn reasons_have_different_numbers_and_codes() {
        for (at, one) in Reason::ALL.into_iter().enumerate() {
            for other in &Reason::ALL[at + 1..] {
                assert!(one as u8 != *other as u8 && one.code() != other.code());
            }
        }
    }

    #[test]
    fn the_largest_payload_fits_a_frame_with_the_longest_words() {
        let (word, body) = ([b'w'; WORD_MAX], vec![0; BODY_MAX]);
        let message = Message {
            id: 1,
            manner: Manner::Tell,
            remaining_us: 1,
            program: &word,
            key: &word,
            content_type: &word,
            message_id: &word,
            payload: &body,
        };
        let mut bytes = Vec::new();
        crate::frame::append(&mut bytes, crate::Kind::Message, 0, |out| message.encode(out))
            .unwrap();
    }
}
