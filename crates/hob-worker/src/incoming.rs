//! What a handler is given, and what it gives back.

use std::time::{Duration, Instant};

use hob_wire::message as wire;

use hob_actor::Message;

/// How a message was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manner {
    /// Its sender awaits the answer.
    Ask,
    /// Its sender has gone on; the answer only says that it is done.
    Tell,
}

/// A message that hob has brought. For an actor it is a message like any other, whose answer is an
/// [`Answer`], or why there is none.
#[derive(Debug, Clone)]
pub struct Incoming {
    payload: Vec<u8>,
    manner: Manner,
    id: String,
    key: Vec<u8>,
    content_type: String,
    traceparent: String,
    deadline: Option<Instant>,
}

impl Message for Incoming {
    type Answer = Result<Answer, String>;
}

impl Incoming {
    pub(super) fn new(message: &wire::Message<'_>) -> Incoming {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let left = Duration::from_micros(message.remaining_us);
        Incoming {
            payload: message.payload.to_vec(),
            manner: match message.manner {
                wire::Manner::Ask => Manner::Ask,
                wire::Manner::Tell | wire::Manner::TellOnce => Manner::Tell,
            },
            id: match message.message_id {
                [] => message.id.to_string(),
                id => text(id),
            },
            key: message.key.to_vec(),
            content_type: text(message.content_type),
            traceparent: text(message.program),
            deadline: (!left.is_zero()).then(|| Instant::now().checked_add(left)).flatten(),
        }
    }

    /// Its call in its sender's trace, as the W3C's Trace Context has it; `None`: it is in none.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        (!self.traceparent.is_empty()).then_some(self.traceparent.as_str())
    }

    /// The message itself.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The message itself, to keep.
    #[must_use]
    pub fn into_payload(self) -> Vec<u8> {
        self.payload
    }

    /// Asked or told.
    #[must_use]
    pub fn manner(&self) -> Manner {
        self.manner
    }

    /// What a redelivery of a tell repeats; of an ask, its number.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session that it belongs to.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        (!self.key.is_empty()).then_some(self.key.as_slice())
    }

    /// What the payload is, as MIME names it; `None`: bytes.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        (!self.content_type.is_empty()).then_some(self.content_type.as_str())
    }

    /// How long its sender still waits; `None`: as long as it takes.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

/// What is answered: bytes, and what they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub(super) content_type: String,
    pub(super) payload: Vec<u8>,
}

impl Answer {
    /// Bytes with a content type, as MIME names it.
    #[must_use]
    pub fn of(content_type: impl Into<String>, payload: impl Into<Vec<u8>>) -> Answer {
        Answer { content_type: content_type.into(), payload: payload.into() }
    }

    /// A text that is JSON.
    #[must_use]
    pub fn json(text: impl Into<Vec<u8>>) -> Answer {
        Answer::of("application/json", text)
    }
}

/// Bytes of no declared kind.
impl From<Vec<u8>> for Answer {
    fn from(payload: Vec<u8>) -> Answer {
        Answer { content_type: String::new(), payload }
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Answer {
        Answer::of("text/plain; charset=utf-8", text)
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Answer {
        Answer::from(text.to_owned())
    }
}

/// Nothing.
impl From<()> for Answer {
    fn from((): ()) -> Answer {
        Answer::default()
    }
}

/// What a handler may return: an [`Answer`] or what becomes one, or a `Result` with one, whose
/// error is told to the asker.
pub trait IntoAnswer {
    /// The answer, or why there is none.
    #[expect(clippy::missing_errors_doc, reason = "the error is the handler's own")]
    fn into_answer(self) -> Result<Answer, String>;
}

macro_rules! into_answer {
    ($($of:ty),*) => {$(
        impl IntoAnswer for $of {
            fn into_answer(self) -> Result<Answer, String> {
                Ok(Answer::from(self))
            }
        }
    )*};
}

into_answer!(Answer, Vec<u8>, String, &str, ());

impl<T: Into<Answer>, E: std::fmt::Display> IntoAnswer for Result<T, E> {
    fn into_answer(self) -> Result<Answer, String> {
        self.map(Into::into).map_err(|why| why.to_string())
    }
}
