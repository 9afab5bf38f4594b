//! Why an ask has no answer, and why a message was not sent.

use thiserror::Error;

/// Why there is no answer. An ask ends once: with its answer, or with one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AskError {
    /// The deadline came first.
    #[error("the deadline came before the answer")]
    Expired,
    /// The actor had ended, or ended before it answered.
    #[error("the actor has ended")]
    Stopped,
    /// Its handler panicked over this message.
    #[error("the handler panicked")]
    Panicked,
    /// Its handler dropped the reply.
    #[error("the handler gave no answer")]
    Unanswered,
    /// The mailbox was full, and does not let senders wait.
    #[error("the mailbox is full")]
    Full,
    /// The message was dropped from a full mailbox for a newer one.
    #[error("a newer message took its place in the mailbox")]
    Displaced,
    /// The peer ended; its exit code, or the signal that killed it, if it is known.
    #[error("the peer was lost (exit code {code:?}, signal {signal:?})")]
    Lost {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// The message's type was not registered for peers.
    #[error("the message's type is not registered for peers")]
    Unregistered,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotSent {
    /// The actor has ended: a dead letter.
    #[error("the actor has ended")]
    Stopped,
    /// Its mailbox is full.
    #[error("the mailbox is full")]
    Full,
}

/// A message that was not sent, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct TellError<M> {
    /// Why not.
    pub why: NotSent,
    /// The message itself.
    pub message: M,
}

impl From<NotSent> for AskError {
    fn from(why: NotSent) -> AskError {
        match why {
            NotSent::Stopped => AskError::Stopped,
            NotSent::Full => AskError::Full,
        }
    }
}
