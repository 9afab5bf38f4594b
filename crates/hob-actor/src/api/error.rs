//! Why an ask has no answer, and why a message was not sent.

use thiserror::Error;

use crate::api::panic::PanicText;

/// Why there is no answer. An ask ends once: with its answer, or with one of these.
///
/// ```
/// use hob_actor::{Actor, AskError, Context, Handler, Message, System};
///
/// #[derive(Message)]
/// #[answer(u32)]
/// struct Parse(&'static str);
///
/// struct Parser;
/// impl Actor for Parser {}
/// impl Handler<Parse> for Parser {
///     fn handle(&mut self, Parse(text): Parse, _: &mut Context<'_, Self>) -> u32 {
///         text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
///     }
/// }
///
/// let system = System::with_shards(1)?;
/// let parser = system.spawn(Parser);
/// let error = parser.ask(Parse("seven")).wait().unwrap_err();
/// assert_eq!(error, AskError::Panicked("no number: seven".into()));
/// assert_eq!(parser.ask(Parse("7")).wait(), Ok(7), "the actor goes on");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AskError {
    /// The deadline came first.
    #[error("the deadline came before the answer")]
    Expired,
    /// The actor had ended, or ended before it answered.
    #[error("the actor has ended")]
    Stopped,
    /// Its handler panicked over this message, and said this.
    #[error("the handler panicked{0}")]
    Panicked(PanicText),
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

/// A message that was not sent, and why. It is an error whatever the message is: `?` asks nothing
/// of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TellError<M> {
    /// Why not.
    pub why: NotSent,
    /// The message itself.
    pub message: M,
}

/// Without the message, which need not be `Debug`.
impl<M> std::fmt::Debug for TellError<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TellError").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<M> std::fmt::Display for TellError<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.why.fmt(f)
    }
}

impl<M> std::error::Error for TellError<M> {}

impl From<NotSent> for AskError {
    fn from(why: NotSent) -> AskError {
        match why {
            NotSent::Stopped => AskError::Stopped,
            NotSent::Full => AskError::Full,
        }
    }
}
