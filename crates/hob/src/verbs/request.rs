//! Asking the daemon: one control request, one JSON answer, within a bound.

use rustix::fd::OwnedFd;
use serde_json::Value;

use hob_os::start::Start;
use hob_os::{build_id, clock, uds};
use hob_wire::call::Hello;
use hob_wire::frame::{self, Kind};

use crate::connect::{self, Trouble};

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
    let hello = Hello { build: build_id::own(), pid: std::process::id() };
    let mut bytes = Vec::new();
    let framed =
        frame::append(&mut bytes, Kind::Hello, 0, |out| hello.encode(out)).and_then(|()| {
            frame::append(&mut bytes, Kind::Control, 0, |out| {
                out.extend_from_slice(body.as_bytes())
            })
        });
    if framed.is_err() {
        return Err(RequestError::NoAnswer);
    }
    if uds::send(&socket, &bytes, &[]) != Ok(bytes.len()) {
        return Err(RequestError::Ended);
    }
    Ok((receive(&socket, answer_ms)?, socket))
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

fn receive(socket: &OwnedFd, answer_ms: u64) -> Result<Value, RequestError> {
    let deadline_ns = clock::now_ns() + answer_ms * 1_000_000;
    let mut received = Vec::new();
    loop {
        let left_ms = deadline_ns.saturating_sub(clock::now_ns()) / 1_000_000;
        if !matches!(connect::wait_readable(socket, left_ms), Ok(true)) {
            return Err(RequestError::NoAnswer);
        }
        let mut chunk = [0; 16 * 1024];
        match uds::receive(socket, &mut chunk, &mut Vec::new()) {
            Ok(0) | Err(_) => return Err(RequestError::Ended),
            Ok(len) => received.extend_from_slice(&chunk[..len]),
        }
        match frame::split(&received) {
            Ok(None) => {}
            Ok(Some((header, payload, _))) if header.kind == Kind::ControlReply => {
                return serde_json::from_slice(payload).map_err(|_| RequestError::NoAnswer);
            }
            Ok(Some(_)) | Err(_) => return Err(RequestError::NoAnswer),
        }
    }
}

/// Waits until the daemon at the other end has ended: `false` when it has not within the bound.
#[must_use]
pub fn wait_for_end(socket: &OwnedFd, wait_ms: u64) -> bool {
    let deadline_ns = clock::now_ns() + wait_ms * 1_000_000;
    loop {
        let left_ms = deadline_ns.saturating_sub(clock::now_ns()) / 1_000_000;
        if !matches!(connect::wait_readable(socket, left_ms), Ok(true)) {
            return false;
        }
        match uds::receive(socket, &mut [0; 256], &mut Vec::new()) {
            Ok(0) | Err(_) => return true,
            Ok(_) => {}
        }
    }
}
