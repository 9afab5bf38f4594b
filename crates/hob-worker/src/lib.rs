//! A program whose messages hob brings: a worker of the daemon's, over the wire that the runtimes
//! of interpreters speak (`docs/worker.md`).
//!
//! ```toml
//! [program.greeter]
//! runtime = "native"
//! handler = "target/release/greeter"
//! ```
//! ```no_run
//! fn main() -> Result<(), hob_worker::ServeError> {
//!     hob_worker::serve(|message| format!("hello {}", String::from_utf8_lossy(message.payload())))
//! }
//! ```
//! or, where the answer is an actor's, [`serve_actor`]. `hob ask greeter you` then asks it.
//!
//! Invariants: the daemon hears of a message once, by an answer or a failure, or by this process's
//! end; a message on a lane is looked at only after the doorbell (`docs/why/lanes.md`); what a
//! handler panics with is that message's alone.
//!
//! Not here: calls with standard streams (`hob run`), and forks: a Rust program may have threads.
#![forbid(unsafe_code)]

mod frames;
mod incoming;
mod lane;
mod notes;
mod spans;

use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use hob_wire::caps::{BODY_MAX, WORD_MAX};
use hob_wire::frame::{self, Kind};
use hob_wire::message::{self as wire, Lend};
use hob_wire::worker::{Preload, Ready, Role, TargetKind};

use hob_actor::{Address, Receives};
use hob_os::uds;

pub use incoming::{Answer, Incoming, IntoAnswer, Manner};
pub use spans::{Span, span};

use frames::Frames;

/// The longest text of a failure.
const FAILURE_BYTES_MAX: usize = 4096;

/// Why a program is not, or is no longer, a worker of hob's.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// It was started by something else.
    #[error(
        "hob did not start this program: name it in a hob.toml, as [program.NAME], with runtime = \
         \"native\" and handler = its path, and use `hob ask NAME`"
    )]
    NotStarted,
    /// What came is not what a daemon of this version says.
    #[error("cannot understand the daemon: {0}")]
    Wire(String),
    /// The kernel refused something.
    #[error("cannot talk to the daemon")]
    Kernel(#[from] std::io::Error),
}

/// As a person reads it: it is what a `main` that returns it shows.
impl std::fmt::Debug for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")?;
        match std::error::Error::source(self) {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl From<rustix::io::Errno> for ServeError {
    fn from(error: rustix::io::Errno) -> ServeError {
        ServeError::Kernel(error.into())
    }
}

/// Answers what hob brings, one message at a time, until hob wants no more of this process; then
/// return from `main`. What a panic says is that message's failure, and the next one is handled.
///
/// Descriptor 0 is the way to hob until this is called, and `/dev/null` from then on; standard
/// output and error are hob's log. So call it early, and read nothing from standard input before.
///
/// # Errors
/// When this process was not started by hob, or hob cannot be talked to.
pub fn serve<R: IntoAnswer>(handle: impl FnMut(Incoming) -> R) -> Result<(), ServeError> {
    Worker::new().serve(handle)
}

/// The same by an actor: each message is asked of it, with the time that its sender still waits.
/// Its handler of [`Incoming`] may be any of the three kinds.
///
/// # Errors
/// As [`serve`].
pub fn serve_actor<A, How>(address: &Address<A>) -> Result<(), ServeError>
where
    A: Receives<Incoming, How>,
{
    Worker::new().serve_actor(address)
}

/// A worker with more to say of itself than [`serve`] does.
#[derive(Debug, Default)]
pub struct Worker {
    notes: notes::Notes,
}

impl Worker {
    /// One that depends on its own code only: the program and the libraries that it is linked
    /// with. When one of them is another, hob starts the program anew for the next message.
    #[must_use]
    pub fn new() -> Worker {
        Worker::default()
    }

    /// A file that this program has read, or would have if it were there: when it is another, hob
    /// starts the program anew too. A relative path begins at the directory of `hob.toml`.
    #[must_use]
    pub fn reads(mut self, path: impl AsRef<Path>) -> Worker {
        self.notes.reads(path.as_ref());
        self
    }

    /// As [`serve`].
    ///
    /// # Errors
    /// As [`serve`].
    pub fn serve<R: IntoAnswer>(
        self,
        mut handle: impl FnMut(Incoming) -> R,
    ) -> Result<(), ServeError> {
        let channel = uds::take_stdin()?.ok_or(ServeError::NotStarted)?;
        // What is printed goes where a handler's goes: into the log.
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        let mut handle = |incoming| handle(incoming).into_answer();
        Daemon { frames: Frames::new(channel) }.serve(self.notes, &mut handle)
    }

    /// As [`serve_actor`].
    ///
    /// # Errors
    /// As [`serve`].
    pub fn serve_actor<A, How>(self, address: &Address<A>) -> Result<(), ServeError>
    where
        A: Receives<Incoming, How>,
    {
        self.serve(|incoming: Incoming| {
            let asked = match incoming.remaining() {
                Some(left) => address.ask_within(incoming, left),
                None => address.ask(incoming),
            };
            match asked.wait() {
                Ok(answer) => answer,
                Err(why) => Err(why.to_string()),
            }
        })
    }
}

type Handle<'a> = &'a mut dyn FnMut(Incoming) -> Result<Answer, String>;

/// The daemon, at the other end of the channel.
struct Daemon {
    frames: Frames,
}

impl Daemon {
    fn serve(mut self, mut notes: notes::Notes, handle: Handle<'_>) -> Result<(), ServeError> {
        let Some((Kind::Preload, at)) = self.frames.next()? else {
            return Err(ServeError::Wire("a preload was expected".to_owned()));
        };
        let preload = Preload::decode(self.frames.bytes(at)).map_err(wire_error)?;
        if (preload.role, preload.kind) != (Role::Standby, TargetKind::Handler) {
            return Err(ServeError::Wire("only handlers are served, each by exec".to_owned()));
        }
        notes.note_program(&preload.target);
        let ready = Ready {
            role: Role::Standby,
            pid: std::process::id(),
            threads: threads(),
            notes: notes.strings(),
        };
        let mut out = Vec::new();
        put(&mut out, Kind::Ready, |out| ready.encode(out));
        self.frames.send(&out)?;
        while let Some((kind, at)) = self.frames.next()? {
            if kind == Kind::Message {
                out.clear();
                let message = wire::Message::decode(self.frames.bytes(at)).map_err(wire_error)?;
                let id = message.id;
                spans::begin();
                let mut answer = Vec::new();
                perform(&message, handle, &mut answer);
                // Before the answer: with it the call ends.
                spans::end(id, &mut out);
                out.append(&mut answer);
                self.frames.send(&out)?;
            } else if kind == Kind::Lend {
                let lend = Lend::decode(self.frames.bytes(at)).map_err(wire_error)?;
                let mut next = || self.frames.fd();
                let (Some(lane), Some(doorbell), Some(tally)) = (next(), next(), next()) else {
                    return Err(ServeError::Wire("a lane came without itself".to_owned()));
                };
                let ends = lane::Ends { lane, doorbell, tally };
                lane::serve(lend, ends, &self.frames, handle)?;
            } else {
                return Err(ServeError::Wire("a message was expected".to_owned()));
            }
        }
        Ok(())
    }
}

/// Whether a message has an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Answer,
    Failure,
}

/// Has a message handled, and appends what is said of it.
fn perform(message: &wire::Message<'_>, handle: Handle<'_>, out: &mut Vec<u8>) -> Said {
    let (id, incoming) = (message.id, Incoming::new(message));
    // What a handler keeps between messages may be half changed by its panic, as an actor's may.
    let answer = match catch_unwind(AssertUnwindSafe(|| handle(incoming))) {
        Ok(answer) => answer.and_then(Answer::within_bounds),
        Err(panic) => Err(format!("panicked: {}", text_of(panic.as_ref()))),
    };
    match answer {
        Ok(answer) => {
            let content_type = answer.content_type.as_bytes();
            let answer = wire::Answer { id, content_type, payload: &answer.payload };
            put(out, Kind::Answer, |out| answer.encode(out));
            Said::Answer
        }
        Err(why) => {
            fail(out, id, wire::Reason::Raised, &why);
            Said::Failure
        }
    }
}

impl Answer {
    fn within_bounds(self) -> Result<Answer, String> {
        let bytes = self.payload.len();
        if bytes > BODY_MAX {
            return Err(format!("an answer of {bytes} bytes is over the cap of {BODY_MAX}"));
        }
        if self.content_type.len() > WORD_MAX {
            return Err(format!("a content type is over the cap of {WORD_MAX} bytes"));
        }
        Ok(self)
    }
}

/// Appends a failure with one line of text.
fn fail(out: &mut Vec<u8>, id: u64, reason: wire::Reason, why: &str) {
    let mut line = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = (0..=FAILURE_BYTES_MAX.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    line.truncate(end.unwrap_or(0));
    let text = line.as_bytes();
    put(out, Kind::Failure, |out| wire::Failure { id, reason, text }.encode(out));
}

fn put(out: &mut Vec<u8>, kind: Kind, body: impl FnOnce(&mut Vec<u8>)) {
    // What is put is within a frame: answers and texts are bounded, notes are paths.
    let _ = frame::append(out, kind, 0, body);
}

fn wire_error(error: hob_wire::cursor::DecodeError) -> ServeError {
    ServeError::Wire(error.to_string())
}

/// What a panic says.
fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a text")
}

fn threads() -> u32 {
    let tasks = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    u32::try_from(tasks).unwrap_or(u32::MAX)
}

/// Sends all of it.
fn send_all(socket: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let sent = rustix::io::retry_on_intr(|| uds::send(socket.as_fd(), bytes, &[]))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}
