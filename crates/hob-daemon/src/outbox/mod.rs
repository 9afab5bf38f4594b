//! The outbox behind *tell*: a message stays on the disk until a worker has taken it and finished.
//!
//! ```text
//!   accept() ─▶ requests (bounded) ─▶ outbox's thread: one transaction and one sync a batch
//!         handle.rs   requests.rs          │                writer.rs        store.rs (redb)
//!   the loop ◀── Vec<Done>, one a batch ◀──┘
//!   Queue (pure, owned by the loop): what is next, in which order, and when again    queue.rs
//! ```
//! Invariants:
//! - [`Done::Accepted`] comes only after the message is synced; from then on it is delivered at
//!   least once, unless it becomes a dead letter, and those are kept until a person drops them;
//! - a message has the same id in every delivery (`id.rs` says how ids are made);
//! - nobody but the outbox's thread waits for the disk: every call here takes one short lock;
//! - everything is bounded: messages, their bytes, requests that wait, tries, a batch;
//! - what was refused says why, with a stable code in front;
//! - a user's outbox has one owner, the user's daemon; the next daemon waits until it is free, and
//!   what it is told meanwhile waits too. A site has none ([`Outbox::of_site`]).
//!
//! It does not give messages to workers, and it does not know what a program is: its name is
//! bytes. A message with a key waits for the one before it with the same program and key; one
//! without a key waits for nobody.

use std::sync::Arc;

use bytes::Bytes;

mod handle;
mod id;
mod owner;
mod queue;
mod requests;
mod store;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod torn;
mod writer;

pub use handle::Outbox;
pub use id::{Ids, MessageId};
pub use owner::{owner, place};
pub use queue::{Directory, Queue, TRIES, Verdict};

/// How many messages the outbox holds at most, dead letters included.
pub const MESSAGES_MAX: u64 = 1_000_000;

/// How many bytes they hold at most: payloads, keys, content types, and [`MESSAGE_BYTES`] each.
pub const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What a message takes beside its words.
pub const MESSAGE_BYTES: usize = 64;

/// How many new messages wait for the disk at most.
pub const REQUESTS_MAX: usize = 4096;

/// The longest reason of a failure that is kept.
pub const WHY_BYTES_MAX: usize = 1024;

/// How many dead letters one answer lists.
pub const LISTED_MAX: usize = 1000;

/// A message as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name, from [`Ids::next`].
    pub id: MessageId,
    /// Whom it is for, in the words of whoever delivers it. It is on the disk once for all of its
    /// messages, so it may say how the program is found.
    pub program: Arc<[u8]>,
    /// Messages of one program with the same key are delivered one after the other.
    pub key: Option<Vec<u8>>,
    /// What the payload is.
    pub content_type: Vec<u8>,
    /// What it says.
    pub payload: Bytes,
    /// When it was told, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A message that is to be delivered, without what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its name.
    pub id: MessageId,
    /// Whom it is for, in the words of whoever delivers it. It is on the disk once for all of its
    /// messages, so it may say how the program is found.
    pub program: Arc<[u8]>,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// How much of the outbox it takes.
    pub bytes: u64,
    /// How often it has failed.
    pub tries: u32,
    /// Not to be delivered before this, in milliseconds since 1970.
    pub due_ms: u64,
}

/// A message that failed too often. It stays until a person drops it or has it tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message.
    pub message: Message,
    /// When it was given up, in milliseconds since 1970.
    pub at_ms: u64,
    /// How often it had failed.
    pub tries: u32,
    /// What the last failure was.
    pub why: String,
}

/// Why a message was not taken. Nobody will deliver it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too many messages, or bytes, wait already.
    #[error(
        "outbox-full: {messages} messages with {bytes} bytes wait ({dead} of them dead letters); \
         at most {MESSAGES_MAX} messages with {BYTES_MAX} bytes are kept"
    )]
    Full {
        /// How many messages there are.
        messages: u64,
        /// Their bytes.
        bytes: u64,
        /// How many of them are dead letters.
        dead: u64,
    },
    /// More come than the disk takes.
    #[error("outbox-busy: {REQUESTS_MAX} messages wait for the disk already")]
    Busy,
    /// There is no directory for it.
    #[error("outbox-no-place: neither XDG_STATE_HOME nor HOME is set to an absolute path")]
    NoPlace,
    /// The daemon is leaving, and the next one keeps what is told.
    #[error("outbox-closed: this daemon is ending")]
    Closed,
    /// This loop serves a site.
    #[error("outbox-elsewhere: a site keeps no tells, the user's daemon does; tell it there")]
    Elsewhere,
    /// The store cannot be used; the text has a code of its own.
    #[error("{0}")]
    Store(String),
}

/// Who hears what was done, on the outbox's thread. It may wait.
pub type Notify = Box<dyn FnMut(Vec<Done>) + Send>;

/// What the outbox's thread has done. Each batch gives one list of these, in this order: what was
/// opened, what was read and answered, what was accepted or refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// The store is open. Comes once, before anything else.
    Opened {
        /// What earlier daemons left, in the order of the ids.
        waiting: Vec<Waiting>,
        /// The highest id there is: new ones go on after it.
        last: Option<MessageId>,
        /// How many dead letters there are.
        dead: u64,
    },
    /// The store cannot be opened now. It is tried again by itself.
    Unusable(String),
    /// All is written, and the file is free. Nothing comes after this.
    Closed,
    /// The message is on the disk, synced.
    Accepted(MessageId),
    /// The first is not kept, as its sender had sent it before: the second is the one.
    Known(MessageId, MessageId),
    /// The message is not kept.
    Refused(MessageId, Refusal),
    /// The answer to [`Outbox::read`].
    Read(Message),
    /// The message is not there, or cannot be read.
    Unreadable(MessageId, String),
    /// The answer to [`Outbox::list_dead`].
    Listed(u64, Result<Vec<DeadLetter>, String>),
    /// The answer to [`Outbox::drop_dead`]: how many there were.
    Dropped(u64, Result<u64, String>),
    /// The answer to [`Outbox::retry_dead`]: what is to be delivered again.
    Revived(u64, Result<Vec<Waiting>, String>),
}

/// Which dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// This one.
    One(MessageId),
    /// All that are for this program.
    Of(Arc<[u8]>),
    /// All.
    All,
}

impl Message {
    /// What of it is needed to decide when it is delivered.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        Waiting {
            id: self.id,
            program: Arc::clone(&self.program),
            key: self.key.clone(),
            bytes: self.bytes(),
            tries: 0,
            due_ms: 0,
        }
    }

    /// How much of the outbox it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        size(self.key.as_deref(), &self.content_type, &self.payload)
    }
}

impl Which {
    fn has(&self, letter: &DeadLetter) -> bool {
        match self {
            Which::One(id) => letter.message.id == *id,
            Which::Of(program) => letter.message.program == *program,
            Which::All => true,
        }
    }
}

fn size(key: Option<&[u8]>, content_type: &[u8], payload: &[u8]) -> u64 {
    (MESSAGE_BYTES + key.map_or(0, <[u8]>::len) + content_type.len() + payload.len()) as u64
}
