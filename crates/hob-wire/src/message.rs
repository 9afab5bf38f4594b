//! Messages: asks and tells from any program to a handler, their answers, the lanes on which they
//! travel without the daemon between, and the shared state beside them. `docs/wire.md` tells the
//! same in words.
//!
//! The fixed fields of a [`Message`] and an [`Answer`] come first and the lengths with them, so
//! that an interpreter reads them with one call of its standard library; the payload is what is
//! left of the frame.

use crate::cursor::{Append, Cursor, DecodeError};
use crate::strings::Strings;

/// The longest name, key, content type or message id.
pub const WORD_MAX: usize = 1024;
/// The largest payload of a message or an answer: what is left of a frame beside the longest words.
pub const BODY_MAX: usize = crate::frame::PAYLOAD_MAX - 8 * WORD_MAX;

/// How a message was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Manner {
    /// Its sender awaits the answer.
    Ask = 0,
    /// Its sender has gone on; it is kept until it is finished, and may come again after a crash.
    Tell = 1,
    /// Its sender has gone on, and it is given at most once.
    TellOnce = 2,
}

/// Where a connection speaks from. The first frame of a sender, and sent once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attach {
    /// The absolute path of its working directory: `hob.toml` is looked for there and above.
    pub directory: Vec<u8>,
    /// Its environment: finds the interpreter, and names what a handler may have of it.
    pub env: Strings,
}

impl Attach {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_blob(&self.directory);
        self.env.encode(out);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Attach, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let directory = cursor.blob("directory")?.to_vec();
        let env = Strings::decode(&mut cursor, "environment")?;
        cursor.end()?;
        if !directory.starts_with(b"/") || directory.contains(&0) {
            return Err(DecodeError::Value("directory"));
        }
        Ok(Attach { directory, env })
    }
}

/// One message: to the daemon, on to a worker, or straight to a worker on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its number among those of this connection; the daemon's own number on the way to a worker.
    pub id: u64,
    /// Ask or tell.
    pub manner: Manner,
    /// How long its sender waits from now on, in microseconds; 0: as long as it takes.
    pub remaining_us: u64,
    /// The program's name in `hob.toml`; empty on a lane, which leads to one program.
    pub program: &'a [u8],
    /// The session that it belongs to; empty without one.
    pub key: &'a [u8],
    /// What the payload is, as MIME names it; empty: bytes.
    pub content_type: &'a [u8],
    /// The id that a redelivery repeats; empty for an ask, and until the daemon has chosen one.
    pub message_id: &'a [u8],
    /// The message itself.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Appends the payload. Words beyond [`WORD_MAX`] are a mistake of whoever sends; the other
    /// end does not take them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
        out.put_u8(self.manner as u8);
        out.put_u64(self.remaining_us);
        let words = [self.program, self.key, self.content_type, self.message_id];
        for word in words {
            out.put_u32(u32::try_from(word.len()).unwrap_or(u32::MAX));
        }
        for word in words {
            out.extend_from_slice(word);
        }
        out.extend_from_slice(self.payload);
    }

    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Message<'a>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64("id")?;
        let manner = match cursor.u8("manner")? {
            0 => Manner::Ask,
            1 => Manner::Tell,
            2 => Manner::TellOnce,
            _ => return Err(DecodeError::Value("manner")),
        };
        let remaining_us = cursor.u64("remaining")?;
        let mut lengths = [0; 4];
        for length in &mut lengths {
            *length = word_length(&mut cursor)?;
        }
        let program = cursor.bytes(lengths[0], "program")?;
        let key = cursor.bytes(lengths[1], "key")?;
        let content_type = cursor.bytes(lengths[2], "content type")?;
        let message_id = cursor.bytes(lengths[3], "message id")?;
        let payload = cursor.rest();
        if payload.len() > BODY_MAX {
            return Err(DecodeError::TooMany("bytes of a message"));
        }
        Ok(Message { id, manner, remaining_us, program, key, content_type, message_id, payload })
    }
}

fn word_length(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    match cursor.u32("length")? as usize {
        length if length <= WORD_MAX => Ok(length),
        _ => Err(DecodeError::TooMany("bytes of a word")),
    }
}

/// What a handler answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The number of the message.
    pub id: u64,
    /// What the payload is; empty: bytes.
    pub content_type: &'a [u8],
    /// The answer itself; empty for a tell.
    pub payload: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
        out.put_blob(self.content_type);
        out.extend_from_slice(self.payload);
    }

    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Answer<'a>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64("id")?;
        let length = word_length(&mut cursor)?;
        let content_type = cursor.bytes(length, "content type")?;
        Ok(Answer { id, content_type, payload: cursor.rest() })
    }
}

/// Why a message has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
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
}

impl Reason {
    /// Every reason, for tables and tests.
    pub const ALL: [Reason; 14] = [
        Reason::Raised,
        Reason::Lost,
        Reason::TimedOut,
        Reason::Cancelled,
        Reason::Busy,
        Reason::NoProgram,
        Reason::Untrusted,
        Reason::Config,
        Reason::NotLoaded,
        Reason::Stopping,
        Reason::Again,
        Reason::Malformed,
        Reason::NotKept,
        Reason::Context,
    ];

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
        }
    }
}

/// A message's end without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The number of the message.
    pub id: u64,
    /// Why.
    pub reason: Reason,
    /// One line for a person.
    pub text: &'a [u8],
}

impl<'a> Failure<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
        out.put_u8(self.reason as u8);
        out.extend_from_slice(self.text);
    }

    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<Failure<'a>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64("id")?;
        let byte = cursor.u8("reason")?;
        let reason = Reason::ALL.into_iter().find(|reason| *reason as u8 == byte);
        let reason = reason.ok_or(DecodeError::Value("reason"))?;
        Ok(Failure { id, reason, text: cursor.rest() })
    }
}

/// A number alone: a message that is taken back, or a lane that its sender has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// The message's or the lane's number.
    pub id: u64,
}

impl Numbered {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Numbered, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64("id")?;
        cursor.end()?;
        Ok(Numbered { id })
    }
}

/// A number and a word: a lane that is wanted to a program, or a tell that was accepted under a
/// message id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The number of what it answers or asks.
    pub id: u64,
    /// The program's name, or the message id.
    pub name: Vec<u8>,
}

impl Named {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
        out.put_blob(&self.name);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Named, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64("id")?;
        let name = cursor.blob("name")?;
        if name.len() > WORD_MAX {
            return Err(DecodeError::TooMany("bytes of a word"));
        }
        cursor.end()?;
        Ok(Named { id, name: name.to_vec() })
    }
}

/// The answer to a wanted lane: with the lane's descriptor, or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lent {
    /// The number of the request.
    pub id: u64,
    /// The lane's number; 0: none now, messages go by the daemon.
    pub lane: u64,
}

impl Lent {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
        out.put_u64(self.lane);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Lent, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let lent = Lent { id: cursor.u64("id")?, lane: cursor.u64("lane")? };
        cursor.end()?;
        Ok(lent)
    }
}

/// Daemon to worker: a lane to answer on. Its descriptors: the lane, what says that something of
/// the warm state may have changed, and the memory to count in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lend {
    /// The lane's number.
    pub lane: u64,
    /// How many messages the worker has left; it ends the lane after them.
    pub uses: u32,
}

impl Lend {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.lane);
        out.put_u32(self.uses);
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Lend, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let lend = Lend { lane: cursor.u64("lane")?, uses: cursor.u32("uses")? };
        cursor.end()?;
        Ok(lend)
    }
}

/// Worker to daemon: messages of a lane that were handled since the last report, with the times of
/// the newest of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handled {
    /// The lane's number.
    pub lane: u64,
    /// How many; all but one have no receipt of their own.
    pub count: u32,
    /// How many of them raised.
    pub raised: u32,
    /// Whether the newest raised.
    pub newest_raised: bool,
    /// When the newest was received.
    pub main_ns: u64,
    /// When it was answered.
    pub finished_ns: u64,
    /// Whether the lane is over: the worker is the daemon's again.
    pub over: bool,
}

impl Handled {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.lane);
        out.put_u32(self.count);
        out.put_u32(self.raised);
        out.put_u8(u8::from(self.newest_raised));
        out.put_u64(self.main_ns);
        out.put_u64(self.finished_ns);
        out.put_u8(u8::from(self.over));
    }

    /// Reads the payload.
    pub fn decode(payload: &[u8]) -> Result<Handled, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let handled = Handled {
            lane: cursor.u64("lane")?,
            count: cursor.u32("count")?,
            raised: cursor.u32("raised")?,
            newest_raised: cursor.flag("newest raised")?,
            main_ns: cursor.u64("main")?,
            finished_ns: cursor.u64("finished")?,
            over: cursor.flag("over")?,
        };
        cursor.end()?;
        Ok(handled)
    }
}

/// What is asked of the shared state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StateVerb {
    /// Add to a counter, and read it.
    Add = 0,
    /// Read a counter; one that nobody has added to is 0.
    Count = 1,
    /// Set an entry of the cache.
    Set = 2,
    /// Read an entry of the cache.
    Get = 3,
    /// Remove an entry of the cache.
    Delete = 4,
}

/// A request to the shared state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State<'a> {
    /// Its number among those of this connection.
    pub id: u64,
    /// What to do.
    pub verb: StateVerb,
    /// What to add, in two's complement.
    pub number: i64,
    /// How long an entry lives, in microseconds; 0: until there is no room for it.
    pub ttl_us: u64,
    /// The name of the counter, or the key of the entry.
    pub name: &'a [u8],
    /// The value of an entry to set.
    pub value: &'a [u8],
}

impl<'a> State<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
        out.put_u8(self.verb as u8);
        out.put_u64(self.number.cast_unsigned());
        out.put_u64(self.ttl_us);
        out.put_blob(self.name);
        out.extend_from_slice(self.value);
    }

    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<State<'a>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64("id")?;
        let verb = match cursor.u8("verb")? {
            0 => StateVerb::Add,
            1 => StateVerb::Count,
            2 => StateVerb::Set,
            3 => StateVerb::Get,
            4 => StateVerb::Delete,
            _ => return Err(DecodeError::Value("verb")),
        };
        let number = cursor.u64("number")?.cast_signed();
        let ttl_us = cursor.u64("time to live")?;
        let length = word_length(&mut cursor)?;
        let name = cursor.bytes(length, "name")?;
        Ok(State { id, verb, number, ttl_us, name, value: cursor.rest() })
    }
}

/// What the shared state answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Held {
    /// There is no such entry.
    Nothing = 0,
    /// Done; with the counter's number, or the entry's value.
    There = 1,
    /// Not done: it is larger than the whole room, or there are too many counters.
    NoRoom = 2,
}

/// An answer of the shared state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateReply<'a> {
    /// The number of the request.
    pub id: u64,
    /// What became of it.
    pub held: Held,
    /// The counter.
    pub number: i64,
    /// The entry's value.
    pub value: &'a [u8],
}

impl<'a> StateReply<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.id);
        out.put_u8(self.held as u8);
        out.put_u64(self.number.cast_unsigned());
        out.extend_from_slice(self.value);
    }

    /// Reads the payload.
    pub fn decode(payload: &'a [u8]) -> Result<StateReply<'a>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u64("id")?;
        let held = match cursor.u8("held")? {
            0 => Held::Nothing,
            1 => Held::There,
            2 => Held::NoRoom,
            _ => return Err(DecodeError::Value("held")),
        };
        let number = cursor.u64("number")?.cast_signed();
        Ok(StateReply { id, held, number, value: cursor.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
