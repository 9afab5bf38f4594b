//! How an outcome is written in a reply, and read again.
//!
//! | outcome | code | may be asked again |
//! |---|---|---|
//! | answered | none | |
//! | `busy`, `stopping` | 503 | yes: it was not given |
//! | `raised`, `lost` | 500 | no |
//! | `timed-out` | 504 | no |
//! | `untrusted`, `config`, `context` | 403 | it was not given |
//! | `no-program` | 404 | it was not given |
//! | `not-loaded` | 424 | it was not given |
//! | `malformed` | 400 | it was not given |
//!
//! `Hob-Reason` has the word, and counts before the code. A reply that is none of this is of no
//! host of hob's: what it answered is `lost`, since it may have run.

use hob_wire::message::Reason;

/// What was said to an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The server says that no host offers it.
    NoResponders,
    /// It was performed.
    Answer {
        /// Who performed it: a host's name and its call's number.
        by: String,
        /// The time that was spent there, in µs.
        spent_us: u64,
        /// What the payload is.
        content_type: Vec<u8>,
        /// The answer.
        payload: Vec<u8>,
    },
    /// It has no answer.
    Failure {
        /// Who says so.
        by: String,
        /// The time that was spent there, in µs.
        spent_us: u64,
        /// Why.
        reason: Reason,
        /// A line for a person.
        text: String,
    },
}

/// Reasons that a reply may have.
const REASONS: [Reason; 11] = [
    Reason::Busy,
    Reason::Stopping,
    Reason::Raised,
    Reason::Lost,
    Reason::TimedOut,
    Reason::Untrusted,
    Reason::Config,
    Reason::Context,
    Reason::NoProgram,
    Reason::NotLoaded,
    Reason::Malformed,
];

/// The code of a reason.
#[must_use]
pub fn code(reason: Reason) -> u16 {
    match reason {
        Reason::Busy | Reason::Stopping => 503,
        Reason::TimedOut => 504,
        Reason::Untrusted | Reason::Config | Reason::Context => 403,
        Reason::NoProgram | Reason::NoHost => 404,
        Reason::NotLoaded => 424,
        Reason::Malformed => 400,
        Reason::Raised | Reason::Lost | Reason::Cancelled | Reason::Again | Reason::NotKept => 500,
    }
}

/// The reason of a reply that has this code and this word.
#[must_use]
pub fn reason(code: &str, word: Option<&str>) -> Reason {
    let named = word.and_then(|word| REASONS.iter().find(|reason| reason.code() == word));
    match (named, code) {
        (Some(reason), _) => *reason,
        (None, "503") => Reason::Busy,
        (None, "504") => Reason::TimedOut,
        (None, "403") => Reason::Untrusted,
        (None, "404") => Reason::NoProgram,
        (None, "424") => Reason::NotLoaded,
        (None, "400") => Reason::Malformed,
        (None, _) => Reason::Lost,
    }
}

/// Whether an outcome says that nothing was performed.
#[must_use]
pub fn was_not_given(reason: Reason) -> bool {
    match reason {
        Reason::Busy
        | Reason::Stopping
        | Reason::Untrusted
        | Reason::Config
        | Reason::Context
        | Reason::NoProgram
        | Reason::NoHost
        | Reason::NotLoaded
        | Reason::Malformed
        | Reason::NotKept
        | Reason::Again => true,
        Reason::Raised | Reason::Lost | Reason::TimedOut | Reason::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for each in REASONS {
            assert_eq!(reason(&code(each).to_string(), Some(each.code())), each);
            // Without its word it may be less exact, and never says that nothing ran where it did.
            let alone = reason(&code(each).to_string(), None);
            assert!(was_not_given(each) || !was_not_given(alone), "{each:?} {alone:?}");
        }
    }

    #[test]
    fn a_stranger_s_reply_may_have_run() {
        for (code, word) in [("200", None), ("", None), ("599", Some("fine")), ("-1", Some(""))] {
            assert_eq!(reason(code, word), Reason::Lost);
        }
        // One does not make itself another kind of ours.
        assert_eq!(reason("500", Some("no-host")), Reason::Lost);
    }
}
