//! Which messages travel, and what both ends of a link must agree on before the first one does.
//!
//! A message is registered under a name, with the actor that takes it; its schema and its answer's
//! become a hash. At connect each end sends its table. A name that both know with two hashes is an
//! error there and then, so nothing is ever decoded as something else. A name that only one of
//! them knows is not: it cannot be sent to the other, and an ask of it says so.

use std::any::TypeId;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

use super::buffers::Outgoing;
use super::names::Along;
use super::run::{self, Run};
use super::wire::{Decoder, Encoder, Schema, Wire, WireError};
use crate::api::actor::{Message, Receives};
use crate::api::error::{AskError, NotSent};
use crate::api::panic::PanicText;
use crate::memory::hash::ByType;
use crate::memory::parcel::{Label, Parcel, Slot, Typed};
use crate::memory::when::When;
use crate::shard::tells::Gathered;

/// The version of frames and of what they hold.
const VERSION: u16 = 3;

/// One message of one actor.
pub(crate) struct Entry {
    pub(crate) name: String,
    hash: u64,
    pub(crate) actor: TypeId,
    /// Appends the message that a parcel holds.
    pub(crate) encode: fn(&mut Parcel, &mut Encoder<'_>) -> Result<(), AskError>,
    /// Appends several that were told one after the other, as [`Gathered`] has them; says how many
    /// could not be.
    pub(crate) encode_told: fn(&Gathered, &mut Waiting, u16, u64, Along<'_>) -> u32,
    /// A parcel for the actor.
    pub(crate) parcel: Opens<Parcel>,
    /// Into the mailbox of the actor, which is one of the shard `along`.
    pub(crate) deliver: Opens<Delivered>,
    /// A parcel of several tells for the actor.
    pub(crate) several: fn(Run, Slot) -> Parcel,
    /// Appends the answer that a parcel holds.
    pub(crate) encode_answer: fn(&mut Parcel, &mut Encoder<'_>) -> Result<(), AskError>,
    /// Gives the answer to its asker. (Slot and time come apart here and above, in registers: a
    /// pair that was just written, in halves, is slow to read as a whole.)
    pub(crate) answer: fn(&[u8], Along<'_>, Slot, When) -> Result<(), WireError>,
}

/// What waits to go on a link, with the descriptors of its frames.
pub(crate) type Waiting = Outgoing<Vec<OwnedFd>>;

/// Makes something of a message's bytes, for whom it is, who waits for what comes of it, and until
/// when.
pub(crate) type Opens<T> = fn(&[u8], Along<'_>, Slot, Slot, When) -> Result<T, WireError>;

/// Whether a mailbox took a message; if not, it comes back.
pub(crate) type Delivered = Result<(), Box<(NotSent, Parcel)>>;

/// Who waits for an answer.
pub(crate) type Asker = (Slot, When);

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{:016x}", self.name, self.hash)
    }
}

/// The messages that may travel between processes. Both programs build the same table, or at
/// least the same lines for what they share.
#[derive(Debug, Default)]
pub struct Messages {
    pub(crate) entries: Vec<Entry>,
    by_type: HashMap<(TypeId, TypeId), u16, ByType>,
}

impl Messages {
    /// None yet.
    #[must_use]
    pub fn new() -> Messages {
        Messages::default()
    }

    /// The actor `A` takes the message `M` from other processes, under a name that is the same in
    /// both programs.
    ///
    /// # Panics
    /// When the name is taken, or 65,535 are: both are slips of the program.
    #[must_use]
    pub fn takes<A, M, How>(mut self, name: &str) -> Messages
    where
        A: Receives<M, How>,
        M: Message + Wire,
        M::Answer: Wire,
    {
        assert!(self.entries.iter().all(|entry| entry.name != name), "{name} is registered twice");
        let number = u16::try_from(self.entries.len()).expect("at most 65,535 messages");
        let (actor, message) = (TypeId::of::<A>(), TypeId::of::<M>());
        self.by_type.insert((actor, message), number);
        self.entries.push(Entry {
            name: name.to_owned(),
            hash: Schema::hash_of::<M>().rotate_left(32) ^ Schema::hash_of::<M::Answer>(),
            actor,
            encode: encode::<A, M, How>,
            encode_told: encode_told::<M>,
            parcel: parcel::<A, M, How>,
            deliver: deliver::<A, M, How>,
            several: run::parcel::<A, M, How>,
            encode_answer: encode_answer::<M::Answer>,
            answer: answer::<M::Answer>,
        });
        self
    }

    /// The number of what a parcel holds, for an actor of this type.
    #[inline]
    pub(crate) fn number(&self, actor: TypeId, message: TypeId) -> Option<u16> {
        self.by_type.get(&(actor, message)).copied()
    }

    pub(crate) fn get(&self, number: u16) -> Option<&Entry> {
        self.entries.get(usize::from(number))
    }

    /// Any message of this actor: its name stands for the actor's.
    pub(crate) fn any_of(&self, actor: TypeId) -> Option<u16> {
        let at = self.entries.iter().position(|entry| entry.actor == actor)?;
        u16::try_from(at).ok()
    }

    /// What is sent first on a link.
    pub(crate) fn hello(&self, node: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let out = &mut Encoder::new(&mut bytes, None);
        VERSION.encode(out);
        node.encode(out);
        out.length(self.entries.len());
        for entry in &self.entries {
            entry.name.encode(out);
            entry.hash.encode(out);
        }
        bytes
    }

    /// What the other end sent first: its node, and which of our messages each of its numbers is.
    pub(crate) fn agree(&self, hello: &[u8]) -> Result<(u64, Vec<Option<u16>>), HelloError> {
        let mut input = Decoder::new(hello, None);
        let version = u16::decode(&mut input)?;
        if version != VERSION {
            return Err(HelloError::Version { theirs: version, ours: VERSION });
        }
        let node = u64::decode(&mut input)?;
        let mut numbers = Vec::new();
        for _ in 0..input.length()? {
            let (name, hash) = <(String, u64)>::decode(&mut input)?;
            let ours = self.entries.iter().position(|entry| entry.name == name);
            if ours.is_some_and(|at| self.entries[at].hash != hash) {
                return Err(HelloError::Schema { message: name });
            }
            numbers.push(ours.and_then(|at| u16::try_from(at).ok()));
        }
        Ok((node, numbers))
    }
}

/// Why two ends of a link do not talk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// They were built from different versions of this library.
    #[error("the other end speaks version {theirs} of the link, this one {ours}")]
    Version {
        /// The other end's.
        theirs: u16,
        /// This one's.
        ours: u16,
    },
    /// They both know a message of this name, and mean different things.
    #[error(
        "the two programs declare the message {message:?} differently: build both from the same declaration"
    )]
    Schema {
        /// Its name.
        message: String,
    },
    /// It is something else than a hello.
    #[error("the other end began with something else than a hello: {0}")]
    Bytes(#[from] WireError),
}

fn encode<A, M, How>(parcel: &mut Parcel, out: &mut Encoder<'_>) -> Result<(), AskError>
where
    A: Receives<M, How>,
    M: Message + Wire,
{
    let message = parcel.take_as::<M>(&A::dispatch().0).ok_or(AskError::Unregistered)?;
    message.encode(out);
    Ok(())
}

fn encode_told<M: Message + Wire>(
    told: &Gathered,
    out: &mut Waiting,
    number: u16,
    to: u64,
    along: Along<'_>,
) -> u32 {
    let encode = |message: &M, out: &mut Vec<u8>| {
        message.encode(&mut Encoder::new(out, Some(along)));
    };
    out.append_tells(number, to, told.messages(), encode)
}

fn parcel<A, M, How>(
    bytes: &[u8],
    along: Along<'_>,
    to: Slot,
    asker: Slot,
    when: When,
) -> Result<Parcel, WireError>
where
    A: Receives<M, How>,
    M: Message + Wire,
{
    let message = Decoder::whole::<M>(bytes, Some(along))?;
    Ok(Parcel::new(&A::dispatch().0, to, asker, when, message))
}

fn deliver<A, M, How>(
    bytes: &[u8],
    along: Along<'_>,
    to: Slot,
    asker: Slot,
    when: When,
) -> Result<Delivered, WireError>
where
    A: Receives<M, How>,
    M: Message + Wire,
{
    let message = Decoder::whole::<M>(bytes, Some(along))?;
    Ok(along.shard.deliver_message(&A::dispatch().0, Label { to, asker, when }, message))
}

fn encode_answer<T: Wire>(parcel: &mut Parcel, out: &mut Encoder<'_>) -> Result<(), AskError> {
    let answer = parcel.take_as(Typed::<T>::answer()).ok_or(AskError::Unanswered)?;
    answer.encode(out);
    Ok(())
}

fn answer<T: Wire>(
    bytes: &[u8],
    along: Along<'_>,
    slot: Slot,
    when: When,
) -> Result<(), WireError> {
    let answer = Decoder::whole::<T>(bytes, Some(along))?;
    along.shard.answer(slot, when, answer);
    Ok(())
}

/// Before the text of a panic: an empty text is a text.
const HAS_TEXT: u8 = 1;

/// How an error travels: its kind, two numbers, and the text of a panic, which ends the frame.
pub(crate) fn encode_error(error: &AskError) -> Vec<u8> {
    let (kind, code, signal) = match *error {
        AskError::Expired => (1, None, None),
        AskError::Stopped => (2, None, None),
        AskError::Panicked(_) => (3, None, None),
        AskError::Unanswered => (4, None, None),
        AskError::Full => (5, None, None),
        AskError::Displaced => (6, None, None),
        AskError::Lost { code, signal } => (7, code, signal),
        AskError::Unregistered => (8, None, None),
    };
    let mut bytes = vec![kind];
    // No exit code and no signal is negative.
    bytes.extend(code.unwrap_or(-1).to_le_bytes());
    bytes.extend(signal.unwrap_or(-1).to_le_bytes());
    if let AskError::Panicked(said) = error
        && let Some(text) = said.text()
    {
        bytes.push(HAS_TEXT);
        bytes.extend(text.as_bytes());
    }
    bytes
}

pub(crate) fn decode_error(bytes: &[u8]) -> AskError {
    let number = |at| {
        let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(i32::from_le_bytes(bytes)).filter(|number| *number >= 0)
    };
    match bytes.first() {
        Some(1) => AskError::Expired,
        Some(2) => AskError::Stopped,
        Some(3) => AskError::Panicked(decode_panic(&bytes[1..])),
        Some(5) => AskError::Full,
        Some(6) => AskError::Displaced,
        Some(7) => AskError::Lost { code: number(1), signal: number(5) },
        Some(8) => AskError::Unregistered,
        Some(_) | None => AskError::Unanswered,
    }
}

/// What follows the kind of a panic: two numbers that say nothing, and its text.
fn decode_panic(bytes: &[u8]) -> PanicText {
    match bytes.get(8..) {
        Some([HAS_TEXT, text @ ..]) => PanicText::from(&*String::from_utf8_lossy(text)),
        Some(_) | None => PanicText::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_arrive_as_they_were() {
        let errors = [
            AskError::Expired,
            AskError::Stopped,
            AskError::Panicked(PanicText::default()),
            AskError::Panicked(PanicText::from("")),
            AskError::Panicked(PanicText::from("no bread left, né")),
            AskError::Unanswered,
            AskError::Full,
            AskError::Displaced,
            AskError::Lost { code: Some(3), signal: None },
            AskError::Lost { code: None, signal: Some(9) },
            AskError::Unregistered,
        ];
        for error in errors {
            assert_eq!(decode_error(&encode_error(&error)), error);
        }
        assert_eq!(decode_error(&[3]), AskError::Panicked(PanicText::default()), "cut short");
        assert_eq!(decode_error(&[]), AskError::Unanswered);
    }
}
