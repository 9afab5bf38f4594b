//! Asking the daemon: one control request, one JSON answer, within a bound.

use rustix::fd::OwnedFd;
use serde_json::Value;

use hob_os::clock;
use hob_os::start::Start;
use hob_wire::frame::Kind;

use crate::connect::{self, Trouble};
use crate::connection::{Connection, NoFrame, Unsent};

/// How long an answer may take. A daemon answers at once; it may be busy with a thousand callers.
pub(crate) const ANSWER_MS: u64 = 5_000;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No daemon runs.
    #[error("no daemon is running; `hob start` starts one, and so does the first `hob run`")]
    NoDaemon,
    /// None can be reached or started from here.
    #[error("a sandbox refuses hob's socket here; `hob doctor` says what allows it")]
    Sandbox,
    /// The peer is not to be trusted.
    #[error("{0}: not asked, since the socket there is not safely ours")]
    NotOurs(String),
    /// The socket's directory is not to be trusted: where, why, and what to do.
    #[error("{0}: not used: {1}; {2}")]
    UnsafeDir(String, hob_os::dir::Unsafe, &'static str),
    /// It did not answer in time, or not in JSON.
    #[error("the daemon does not answer; `hob restart` replaces it")]
    NoAnswer,
    /// It ended first. One that was killed can still be connected to for a moment.
    #[error("the daemon ended before it answered; run this again")]
    Ended,
}

/// Sends a request and returns the connection with the answer. The connection ends when the
/// daemon does.
pub fn ask(start: &Start, verb: &str) -> Result<(Value, OwnedFd), RequestError> {
    ask_within(start, verb, ANSWER_MS)
}

/// The same for who cannot wait so long.
pub fn ask_within(
    start: &Start,
    verb: &str,
    answer_ms: u64,
) -> Result<(Value, OwnedFd), RequestError> {
    send(start, &format!("{{\"verb\":\"{verb}\"}}"), answer_ms)
}

/// Sends a request that is more than a verb.
pub fn send(start: &Start, body: &str, answer_ms: u64) -> Result<(Value, OwnedFd), RequestError> {
    send_to(&connect::directory(start), body, answer_ms)
}

/// The same to what serves another directory: a site.
pub fn send_to(
    directory: &std::path::Path,
    body: &str,
    answer_ms: u64,
) -> Result<(Value, OwnedFd), RequestError> {
    let socket = connect::connect(directory).map_err(|trouble| match trouble {
        Trouble::NoDaemon => RequestError::NoDaemon,
        Trouble::Sandbox => RequestError::Sandbox,
        Trouble::UnsafeDir(why) => not_used(directory, why),
        Trouble::PeerUid => RequestError::NotOurs(directory.display().to_string()),
        Trouble::ConnectTimeout
        | Trouble::NoAnswer
        | Trouble::OtherBuild
        | Trouble::Descriptors
        | Trouble::Traced
        | Trouble::SystemRefuses
        | Trouble::TooLarge
        | Trouble::Protocol => RequestError::NoAnswer,
        Trouble::DaemonClosed => RequestError::Ended,
    })?;
    let mut connection = Connection::new(socket);
    let body = |out: &mut Vec<u8>| out.extend_from_slice(body.as_bytes());
    connection.greet(Kind::Control, &[], body).map_err(|unsent| match unsent {
        Unsent::TooLarge(_) => RequestError::NoAnswer,
        Unsent::Cut(_) => RequestError::Ended,
    })?;
    match connection.next_within(answer_ms) {
        Ok((header, payload)) if header.kind == Kind::ControlReply => {
            let answer = serde_json::from_slice(&payload).map_err(|_| RequestError::NoAnswer)?;
            Ok((answer, connection.socket))
        }
        Ok(_) | Err(NoFrame::Late | NoFrame::Malformed) => Err(RequestError::NoAnswer),
        Err(NoFrame::Ended | NoFrame::Unread) => Err(RequestError::Ended),
    }
}

/// The error of a directory that is not used.
pub fn not_used(directory: &std::path::Path, why: hob_os::dir::Unsafe) -> RequestError {
    use hob_os::dir::Unsafe;
    let next = match why {
        Unsafe::Relative => "set HOB_DIR to an absolute path, or unset it",
        Unsafe::TooLong(_) => "set HOB_DIR to a shorter path",
        Unsafe::Missing
        | Unsafe::NotADirectory
        | Unsafe::Foreign
        | Unsafe::Open
        | Unsafe::Unreadable(_) => "remove it, or name another directory in HOB_DIR",
    };
    RequestError::UnsafeDir(directory.display().to_string(), why, next)
}

/// Waits until the daemon at the other end has ended: `false` when it has not within the bound.
#[must_use]
pub fn wait_for_end(socket: OwnedFd, wait_ms: u64) -> bool {
    let until_ns = clock::now_ns() + wait_ms * 1_000_000;
    let mut connection = Connection::new(socket);
    loop {
        if let Err(none) = connection.next(Some(until_ns)) {
            return none != NoFrame::Late;
        }
    }
}
