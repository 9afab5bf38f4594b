//! Who brings a job, and hears of its outcome.

use crate::inputs::SenderId;
use crate::outbox::MessageId;

/// Who brings a job.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A sender of this host's, which waits under a number of its own.
    Sender(SenderId, u64),
    /// A sender that was told that its message is accepted: it hears no more.
    Accepted,
    /// A sender over its lane: its worker has answered it already.
    Lane,
    /// A front, which has answered the request itself.
    Front,
    /// The outbox, which keeps the message under this id.
    Outbox(MessageId),
    /// Another host, which asks.
    Host(AskedBy),
    /// A stream between hosts, which has given a tell to this one.
    Stream(Streamed),
}

/// The other host that asks.
#[derive(Debug)]
pub(crate) struct AskedBy {
    /// Where the reply goes.
    pub(crate) to: String,
    /// What it asks.
    pub(crate) program: String,
    /// Its name, and its call's number there, as it says.
    pub(crate) from: String,
}

/// A tell that a stream has given to this host.
#[derive(Debug)]
pub(crate) struct Streamed {
    /// Where its end is said.
    pub(crate) ack: String,
    pub(crate) program: String,
    /// How often it was given, with this time.
    pub(crate) delivered: u32,
    /// Who tells it; empty where that is not said.
    pub(crate) from: String,
}

impl Origin {
    /// The sender that waits, and its number of the job.
    pub(crate) fn sender(&self) -> Option<(SenderId, u64)> {
        match self {
            Origin::Sender(id, number) => Some((*id, *number)),
            Origin::Accepted | Origin::Lane | Origin::Front => None,
            Origin::Outbox(_) | Origin::Host(_) | Origin::Stream(_) => None,
        }
    }

    /// The other host that a receipt names.
    pub(crate) fn asked_by(&self) -> Option<&str> {
        match self {
            Origin::Host(asked) => Some(&asked.from),
            Origin::Stream(streamed) => Some(streamed.from.as_str()).filter(|by| !by.is_empty()),
            Origin::Sender(..) | Origin::Accepted | Origin::Lane => None,
            Origin::Front | Origin::Outbox(_) => None,
        }
    }
}
