//! The local front: clients on the Unix socket, and control requests.
//!
//! A connection is: `hello`, then one `call` (and then signals, or the report of a cold run, until
//! the client leaves), or any number of `control` requests.

use std::sync::Arc;
use std::time::Duration;

use hob_core::ids::{CallId, WorkerId};
use hob_core::log::Category;
use hob_os::claim::Claim;
use hob_os::{clock, process, uds};
use hob_wire::call::{Call, ColdEnded, Hello, Received, Signal};
use hob_wire::frame::Kind;
use hob_wire::launch::Launcher;
use rustix::fd::OwnedFd;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::around::Seen;
use crate::channel::{self, Frame, Listener, Reader, Stream};
use crate::fronts::{Front, hooks, message, repl};
use crate::inputs::{CallFds, CallerEvent, Incoming, Input, WorkerEvent};

/// Connections at one time. A caller beyond them waits in the listener's queue, and goes cold
/// when its budget has passed.
const CONNECTIONS_MAX: usize = 4096;
/// How long a connection may take to say what it wants. A client sends at once.
const FIRST_FRAME: Duration = Duration::from_secs(5);

/// Who accepts connections.
#[derive(Debug)]
pub(crate) struct Accepting {
    pub(crate) task: AbortHandle,
}

impl Accepting {
    pub(crate) fn begin(listener: Listener, front: Front) -> Accepting {
        Accepting { task: tokio::spawn(accept(listener, front)).abort_handle() }
    }
}

/// Accepts connections until the task is dropped.
async fn accept(listener: Listener, front: Front) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok(stream) => {
                let front = front.clone();
                tokio::spawn(async move {
                    serve(stream, &front).await;
                    drop(place);
                });
                // Before the next one is waited for, this one is looked at, and what it may have
                // said already is done.
                tokio::task::yield_now().await;
                tokio::task::yield_now().await;
            }
            // Out of descriptors: those in use are given back soon; clients go cold meanwhile.
            Err(error) => {
                hob_os::debug!(Category::Connection, "none is accepted: {error}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// Serves the connections of this daemon's own parts, also when nobody else is accepted any more.
pub(crate) async fn take_own(mut own: mpsc::Receiver<OwnedFd>, front: Front) {
    while let Some(socket) = own.recv().await {
        let Ok(stream) = channel::adopt(socket) else { continue };
        let front = front.clone();
        tokio::spawn(async move { serve(stream, &front).await });
    }
}

/// Serves one connection to its end. Whatever is wrong with it ends this connection and nothing
/// else.
async fn serve(stream: Arc<Stream>, front: &Front) {
    let seen = match uds::peer(&*stream) {
        Ok(peer) if peer.uid == rustix::process::getuid().as_raw() => {
            Seen::look(&*stream, peer.pid)
        }
        Ok(peer) => {
            hob_os::debug!(Category::Connection, "a peer of user {} is sent away", peer.uid);
            return;
        }
        Err(_) => return,
    };
    let mut reader = Reader::new(Arc::clone(&stream));
    let Some(hello) = first(&mut reader, Kind::Hello).await else {
        hob_os::debug!(Category::Connection, "a peer says no hello, and is sent away");
        return;
    };
    let Ok(hello) = Hello::decode(&hello.payload) else { return };
    let Ok(Some(frame)) =
        tokio::time::timeout(FIRST_FRAME, reader.next()).await.unwrap_or(Ok(None))
    else {
        return;
    };
    if frame.kind == Kind::Control {
        control(frame, reader, stream, front).await;
    } else if frame.kind == Kind::Call && hello.build == front.build {
        call(frame, reader, stream, seen, front).await;
    } else if frame.kind == Kind::Launcher && hello.build == front.build {
        launcher(frame, reader, stream, front).await;
    } else if frame.kind == Kind::Attach {
        // Senders live in other languages' processes, and outlive an upgrade: the version of the
        // wire, which each frame carries, is what they have to agree on.
        message::serve(frame, reader, stream, front).await;
    } else if frame.kind == Kind::RunSet {
        // The same holds for callers of hook sets.
        hooks::serve(frame, reader, stream, seen, front).await;
    } else if frame.kind == Kind::OpenSession && hello.build == front.build {
        repl::serve(frame, reader, stream, seen, front).await;
    } else if matches!(frame.kind, Kind::Call | Kind::OpenSession) {
        hob_os::debug!(Category::Connection, "a client of another build, pid {}", hello.pid);
        say_hello(&stream, front);
    } else {
        hob_os::debug!(
            Category::Connection,
            "a peer begins with {:?}, and is sent away",
            frame.kind
        );
    }
}

async fn first(reader: &mut Reader, kind: Kind) -> Option<Frame> {
    let frame = tokio::time::timeout(FIRST_FRAME, reader.next()).await.ok()?.ok()??;
    (frame.kind == kind).then_some(frame)
}

/// Tells a client of another build who is here; it then runs its program itself.
fn say_hello(stream: &Arc<Stream>, front: &Front) {
    let hello = Hello { build: front.build, pid: std::process::id() };
    if let Some(bytes) = channel::encode(Kind::Hello, 0, |out| hello.encode(out)) {
        let _ = channel::send(stream, bytes, &[]);
    }
}

async fn call(frame: Frame, mut reader: Reader, caller: Arc<Stream>, seen: Seen, front: &Front) {
    let received_ns = clock::now_ns();
    let Ok(call) = Call::decode(&frame.payload) else { return };
    let Some(fds) = descriptors(frame.fds, &call.beyond) else { return };
    let id = CallId(front.recorder.next_call());
    let asker = Arc::clone(&caller);
    let incoming = Incoming { id, call, caller, seen, fds, received_ns };
    if front.owner.send(Input::Call(Box::new(incoming))).await.is_err() {
        return;
    }
    while let Ok(Some(frame)) = reader.next().await {
        if frame.kind == Kind::Queued {
            // It asks whether this process lives, which it shows by answering.
            let Some(bytes) = channel::encode(Kind::Queued, 0, |_| ()) else { break };
            let _ = channel::send(&asker, bytes, &[]);
            continue;
        }
        let event = if frame.kind == Kind::Signal {
            Signal::decode(&frame.payload).map(CallerEvent::Signal).ok()
        } else if frame.kind == Kind::ColdEnded {
            ColdEnded::decode(&frame.payload).map(CallerEvent::ColdEnded).ok()
        } else if frame.kind == Kind::Received {
            Received::decode(&frame.payload).map(CallerEvent::Received).ok()
        } else {
            None
        };
        // What a caller does not say ends the connection, as its leaving would.
        let Some(event) = event else { break };
        if front.owner.send(Input::Caller { call: id, event }).await.is_err() {
            return;
        }
    }
    let gone = CallerEvent::Gone { at_ns: clock::now_ns() };
    let _ = front.owner.send(Input::Caller { call: id, event: gone }).await;
}

/// The descriptors of a call; `None`: they are others, or the numbers of those in its claim cannot
/// be a caller's.
fn descriptors(fds: Vec<OwnedFd>, beyond: &[u32]) -> Option<CallFds> {
    let [directory, offers, takes] = <[OwnedFd; 3]>::try_from(fds).ok()?;
    let in_order = beyond.is_sorted_by(|one, next| one < next);
    let is_right = in_order && beyond.first().is_none_or(|number| *number > 2);
    is_right.then(|| CallFds { directory, claim: Claim::of_ends([offers, takes]) })
}

/// Hears a launcher to its end. It has to be in the session that it speaks for.
async fn launcher(first: Frame, mut reader: Reader, stream: Arc<Stream>, front: &Front) {
    let Ok(Launcher { session }) = Launcher::decode(&first.payload) else { return };
    if uds::peer_pid(&*stream).map(process::session_of) != Ok(session) || session == 0 {
        return;
    }
    let owner = &front.owner;
    if owner.send(Input::Launcher { session, stream: Arc::clone(&stream) }).await.is_err() {
        return;
    }
    while let Ok(Some(frame)) = reader.next().await {
        if frame.kind == Kind::Launcher {
            if owner.send(Input::LauncherLeaves { session }).await.is_err() {
                return;
            }
            continue;
        }
        let Some(event) = WorkerEvent::decode(frame) else { break };
        let worker = match &event {
            WorkerEvent::Launched(launched, _) => launched.worker,
            WorkerEvent::Gone(gone) => gone.worker,
            WorkerEvent::Ready(_)
            | WorkerEvent::Forked(..)
            | WorkerEvent::Finished(_)
            | WorkerEvent::Notes(_)
            | WorkerEvent::Spans(_)
            | WorkerEvent::Failed(_)
            | WorkerEvent::Joined(_)
            | WorkerEvent::Executes(_)
            | WorkerEvent::Answer(_)
            | WorkerEvent::Failure(_)
            | WorkerEvent::Respond(..)
            | WorkerEvent::Hint(_)
            | WorkerEvent::Handled(_)
            | WorkerEvent::Closed => break,
        };
        if owner.send(Input::Worker { worker: WorkerId(worker), event }).await.is_err() {
            return;
        }
    }
    let _ = owner.send(Input::LauncherGone { session, stream }).await;
}

/// Answers control requests, one after the other.
async fn control(first: Frame, mut reader: Reader, stream: Arc<Stream>, front: &Front) {
    let mut frame = first;
    loop {
        let (reply, answer) = oneshot::channel();
        let request = serde_json::from_slice(&frame.payload).unwrap_or_default();
        if front.owner.send(Input::Control { request, reply }).await.is_err() {
            return;
        }
        let Ok(answer) = answer.await else { return };
        let body = answer.to_string();
        let Some(bytes) =
            channel::encode(Kind::ControlReply, 0, |out| out.extend_from_slice(body.as_bytes()))
        else {
            return;
        };
        if channel::send(&stream, bytes, &[]).is_err() {
            return;
        }
        match reader.next().await {
            Ok(Some(next)) if next.kind == Kind::Control => frame = next,
            Ok(_) | Err(_) => return,
        }
    }
}
