//! What the loop takes in: plain data, below everything that sends or handles it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hob_core::hosts::News;
use hob_core::ids::{CallId, WorkerId};
use hob_core::sessions::dialogue::{self, Cloned};
use hob_core::sessions::{ClientId, SessionId};
use hob_os::claim::Claim;
use hob_wire::call::{Call, ColdEnded, Received, Signal};
use hob_wire::frame::Kind;
use hob_wire::launch::Launched;
use hob_wire::message::{Attach, Handled, Message, Passed, Served};
use hob_wire::session::OpenSession;
use hob_wire::worker::{Executes, Failed, Finished, Forked, Gone, Joined, Notes, Ready, Spans};
use rustix::fd::OwnedFd;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::around::Seen;
use crate::channel::{Frame, Outlet, Stream};
use crate::outbox::Done;

/// Inputs that wait for the loop. Whoever has more waits too, and with it its caller.
pub(crate) const INBOX_MAX: usize = 1024;

/// Something that happened outside.
#[derive(Debug)]
pub(crate) enum Input {
    /// A call came in whole.
    Call(Box<Incoming>),
    /// The caller of an open call did something.
    Caller { call: CallId, event: CallerEvent },
    /// A worker said something.
    Worker { worker: WorkerId, event: WorkerEvent },
    /// There is a launcher in this terminal's session now.
    Launcher { session: u32, stream: Arc<Stream> },
    /// The terminal is gone: nothing new is started there.
    LauncherLeaves { session: u32 },
    /// The launcher has left; the kernel has ended what it had started.
    LauncherGone { session: u32, stream: Arc<Stream> },
    /// Somebody asks about the daemon, or asks something of it.
    Control { request: Value, reply: oneshot::Sender<Value> },
    /// A sender of messages did something.
    Sender { sender: SenderId, event: SenderEvent },
    /// The outbox has done something.
    Outbox(Vec<Done>),
    /// Of the connection to other hosts, and when it had come.
    Hosts { news: News, came_ns: u64 },
    /// The last of the open hook sets has ended.
    SetsEnded,
    /// A client of sessions did something.
    Session { client: ClientId, event: SessionEvent },
    /// A session takes connections.
    SessionReady { session: SessionId, serves: Vec<u8> },
    /// The memory of sessions was read, in KiB.
    SessionMemory(Vec<(SessionId, u64)>),
    /// Memory was read.
    Memory(Vec<(WorkerId, u64)>),
}

/// A call that has come in whole.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) id: CallId,
    pub(crate) call: Call,
    pub(crate) caller: Arc<Stream>,
    pub(crate) seen: Seen,
    pub(crate) fds: CallFds,
    pub(crate) received_ns: u64,
}

/// The descriptors that come with a call.
#[derive(Debug)]
pub(crate) struct CallFds {
    pub(crate) directory: OwnedFd,
    /// In it lie the caller's streams and its others, until the call is given.
    pub(crate) claim: Claim,
}

/// A connection of a sender. Numbers are never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SenderId(pub(crate) u64);

/// A message as it was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) frame: Bytes,
    /// What comes behind its payload, if that is a request's body in a file.
    pub(crate) file: Option<OwnedFd>,
}

/// A sender's message that has come.
#[derive(Debug)]
pub(crate) struct Came<'a> {
    pub(crate) sender: SenderId,
    pub(crate) message: Message<'a>,
    /// Its payload, which keeps the frame that it came in.
    pub(crate) payload: Bytes,
    pub(crate) received_ns: u64,
}

/// What a sender does.
#[derive(Debug)]
pub(crate) enum SenderEvent {
    /// It is here.
    Attached { attach: Attach, outlet: Outlet, pid: u32 },
    /// Messages, not decoded, with the time at which they were whole: those that came together.
    Messages { sent: Vec<Sent>, received_ns: u64 },
    /// It takes a message back.
    Cancel { id: u64 },
    /// It wants a lane.
    WantLane { id: u64, program: Vec<u8> },
    /// It has left a lane.
    LeaveLane { lane: u64 },
    /// A front is done with a request.
    Passed { passed: Passed<'static>, program: Vec<u8> },
    /// A front has answered requests itself.
    Served { served: Served<'static>, mount: Vec<u8> },
    /// A request to the shared state, not decoded.
    State { payload: Vec<u8> },
    /// Its connection has ended.
    Gone,
}

/// What a client of sessions does.
#[derive(Debug)]
pub(crate) enum SessionEvent {
    /// It wants to be in one.
    Wanted(Box<Wanted>),
    /// It began to evaluate something.
    Began,
    /// That has ended.
    Ended(dialogue::Done),
    /// It left.
    Left,
}

/// What a client wants, and how it hears of it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) open: OpenSession,
    pub(crate) directory: OwnedFd,
    pub(crate) pid: u32,
    /// What of its context a session that is started for it would not have, for a person.
    pub(crate) differs: Option<String>,
    pub(crate) reply: oneshot::Sender<Result<InSession, Refused>>,
}

/// Why a client is not let in: the exit code of its process, and a line for a person.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: u8,
    pub(crate) text: String,
}

/// A session that a client is in.
#[derive(Debug)]
pub(crate) struct InSession {
    /// Where it takes connections.
    pub(crate) socket: PathBuf,
    pub(crate) pid: u32,
    pub(crate) fresh: bool,
    pub(crate) serves: Vec<u8>,
    /// The dialogues in it.
    pub(crate) cloned: Arc<Mutex<Cloned>>,
    /// Why it is over, when it is.
    pub(crate) over: oneshot::Receiver<String>,
}

/// What a caller does after its call.
#[derive(Debug)]
pub(crate) enum CallerEvent {
    /// It passes a signal on.
    Signal(Signal),
    /// Its cold run has ended.
    ColdEnded(ColdEnded),
    /// It has its answer.
    Received(Received),
    /// It left.
    Gone { at_ns: u64 },
}

/// What a worker says.
#[derive(Debug)]
pub(crate) enum WorkerEvent {
    Ready(Ready),
    Forked(Forked, Option<OwnedFd>),
    Launched(Launched, Option<OwnedFd>),
    Gone(Gone),
    Finished(Finished),
    Notes(Notes),
    Spans(Spans),
    Failed(Failed),
    Joined(Joined),
    Executes(Executes),
    Answer(Vec<u8>),
    Failure(Vec<u8>),
    /// How an answer begins, with its body's stream or file.
    Respond(Vec<u8>, OwnedFd),
    /// What an app says of its answer before that begins.
    Hint(Vec<u8>),
    Handled(Handled),
    Closed,
}

impl WorkerEvent {
    /// Decodes a frame from a worker; `None` for what no worker says.
    pub(crate) fn decode(mut frame: Frame) -> Option<WorkerEvent> {
        let payload = &frame.payload;
        match frame.kind {
            Kind::Ready => Ready::decode(payload).ok().map(WorkerEvent::Ready),
            Kind::Forked => {
                let pidfd = frame.fds.pop();
                Forked::decode(payload).ok().map(|forked| WorkerEvent::Forked(forked, pidfd))
            }
            Kind::Launched => {
                let pidfd = frame.fds.pop();
                Launched::decode(payload).ok().map(|made| WorkerEvent::Launched(made, pidfd))
            }
            Kind::Gone => Gone::decode(payload).ok().map(WorkerEvent::Gone),
            Kind::Finished => Finished::decode(payload).ok().map(WorkerEvent::Finished),
            Kind::Notes => Notes::decode(payload).ok().map(WorkerEvent::Notes),
            Kind::Spans => Spans::decode(payload).ok().map(WorkerEvent::Spans),
            Kind::Failed => Failed::decode(payload).ok().map(WorkerEvent::Failed),
            Kind::Joined => Joined::decode(payload).ok().map(WorkerEvent::Joined),
            Kind::Executes => Executes::decode(payload).ok().map(WorkerEvent::Executes),
            // The owner decodes them where it needs them: their payloads may be large.
            Kind::Answer => Some(WorkerEvent::Answer(frame.payload)),
            Kind::Failure => Some(WorkerEvent::Failure(frame.payload)),
            Kind::Respond => {
                let body = frame.fds.pop()?;
                Some(WorkerEvent::Respond(frame.payload, body))
            }
            Kind::Hint => Some(WorkerEvent::Hint(frame.payload)),
            Kind::Handled => Handled::decode(payload).ok().map(WorkerEvent::Handled),
            Kind::Hello
            | Kind::Message
            | Kind::Attach
            | Kind::Cancel
            | Kind::WantLane
            | Kind::LeaveLane
            | Kind::State
            | Kind::Passed
            | Kind::Served
            | Kind::Lent
            | Kind::Accepted
            | Kind::StateReply
            | Kind::Lend
            | Kind::Call
            | Kind::Signal
            | Kind::ColdEnded
            | Kind::Control
            | Kind::Received
            | Kind::Launcher
            | Kind::Launch
            | Kind::Queued
            | Kind::RunCold
            | Kind::Ended
            | Kind::Refused
            | Kind::Prepared
            | Kind::ControlReply
            | Kind::Preload
            | Kind::Fork
            | Kind::Give
            | Kind::RunSet
            | Kind::SetBegun
            | Kind::HookStarted
            | Kind::HookOutput
            | Kind::HookEnded
            | Kind::SetEnded
            | Kind::OpenSession
            | Kind::SessionOpened
            | Kind::Request
            | Kind::Chunk
            | Kind::End
            | Kind::SocketText
            | Kind::SocketBinary
            | Kind::SocketClose => None,
        }
    }
}
