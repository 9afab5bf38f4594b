//! The front's connection to the loop: many requests on their way, each answered under its number.
//!
//! It is a sender of messages like any other (`docs/wire.md`); a request whose body lies in a file
//! is a frame of its own kind. When the loop leaves, what waits is
//! told so; nothing is sent twice.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hob_os::uds;
use hob_wire::call::Hello;
use hob_wire::frame::{self, Kind};
use hob_wire::frames::http::{Respond, Source};
use hob_wire::message::{Answer, Attach, Failure, Manner, Message, Numbered, Reason};
use rustix::fd::{AsFd, OwnedFd};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};

/// Frames that wait to be written; whoever has more waits.
const OUTBOX_MAX: usize = 256;
const READ_BYTES: usize = 64 * 1024;

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The payload of its answer.
    Answered(Vec<u8>),
    /// The answer has begun; its body comes by another way.
    Begun(Begun),
    /// There is none; why, and a line for the log.
    Failed(Reason, String),
}

/// An answer that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    /// What `body` is.
    pub(crate) source: Source,
    /// Of a file: where the body begins, and how many bytes it has.
    pub(crate) part: (u64, u64),
    /// The payload of an answer, with the body's first bytes.
    pub(crate) head: Vec<u8>,
    pub(crate) body: OwnedFd,
    /// What becomes of the request in the end.
    pub(crate) end: End,
}

/// What becomes of a request whose answer has begun. Dropped before that is known, it takes the
/// request back, and its worker ends.
#[derive(Debug)]
pub(crate) struct End {
    asked: Asked,
    outcome: oneshot::Receiver<Told>,
}

impl End {
    /// Awaits it: why the app did not get to its end; `None`: it did. Not to be called again.
    pub(crate) async fn failure(&mut self) -> Option<(Reason, String)> {
        let told = (&mut self.outcome).await;
        self.asked.done = true;
        match told {
            Ok(Told::Failed(reason, text)) => Some((reason, text)),
            Ok(Told::Answered(_) | Told::Begun { .. }) => None,
            Err(_) => Some((Reason::Stopping, STOPS.to_owned())),
        }
    }
}

const STOPS: &str = "hob stops";

/// What the loop says of a request.
#[derive(Debug)]
enum Told {
    Answered(Vec<u8>),
    Begun {
        source: Source,
        part: (u64, u64),
        head: Vec<u8>,
        body: OwnedFd,
        then: oneshot::Receiver<Told>,
    },
    Failed(Reason, String),
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    open: HashMap<u64, oneshot::Sender<Told>>,
}

/// A frame that is to be sent.
#[derive(Debug)]
struct Out {
    bytes: Vec<u8>,
    /// What goes with its first byte.
    file: Option<OwnedFd>,
}

/// The connection. Copies of it are the same connection.
#[derive(Debug, Clone)]
pub(crate) struct Link(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    out: mpsc::Sender<Out>,
    waiting: Mutex<Waiting>,
    over: watch::Receiver<bool>,
}

/// A request whose asker may leave: it is taken back then.
#[derive(Debug)]
struct Asked {
    link: Link,
    id: u64,
    done: bool,
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.done {
            self.link.lock().open.remove(&self.id);
            let cancel = Numbered { id: self.id };
            // A full outbox takes nothing back: the answer then finds nobody.
            let _ = encode(Kind::Cancel, 0, |out| cancel.encode(out))
                .map(|bytes| self.link.0.out.try_send(Out { bytes, file: None }));
        }
    }
}

fn encode(kind: Kind, fds: u8, body: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    frame::append(&mut bytes, kind, fds, body).ok().map(|()| bytes)
}

impl Link {
    /// Connects, and says where the site lies.
    pub(crate) async fn connect(
        socket: &Path,
        build: [u8; 16],
        attach: &Attach,
    ) -> std::io::Result<Link> {
        let (reader, mut writer) = UnixStream::connect(socket).await?.into_split();
        let hello = Hello { build, pid: std::process::id() };
        let frames =
            encode(Kind::Hello, 0, |out| hello.encode(out))
                .zip(encode(Kind::Attach, 0, |out| attach.encode(out)));
        let (hello, attach) = frames.ok_or_else(|| {
            std::io::Error::other("the environment is larger than a frame (1 MiB)")
        })?;
        writer.write_all(&hello).await?;
        writer.write_all(&attach).await?;
        let (out, frames) = mpsc::channel(OUTBOX_MAX);
        let (ends, over) = watch::channel(false);
        let link = Link(Arc::new(Shared { out, waiting: Mutex::default(), over }));
        tokio::spawn(write(writer, frames));
        tokio::spawn(link.clone().read(reader, ends));
        Ok(link)
    }

    /// Asks an app, and awaits what becomes of it.
    pub(crate) async fn ask(
        &self,
        program: &str,
        timeout_us: u64,
        (payload, file): (&[u8], Option<OwnedFd>),
    ) -> Outcome {
        let lost = || Outcome::Failed(Reason::Stopping, STOPS.to_owned());
        let (answer, answered) = oneshot::channel();
        let Some(id) = self.enter(answer) else { return lost() };
        let mut asked = Asked { link: self.clone(), id, done: false };
        let message = Message {
            id,
            manner: Manner::Ask,
            remaining_us: timeout_us,
            program: program.as_bytes(),
            key: b"",
            content_type: b"",
            message_id: b"",
            payload,
        };
        let kind = if file.is_some() { Kind::Request } else { Kind::Message };
        let count = u8::from(file.is_some());
        let Some(bytes) = encode(kind, count, |out| message.encode(out)) else {
            let text = "the request is larger than a frame (1 MiB)".to_owned();
            return Outcome::Failed(Reason::Malformed, text);
        };
        if self.0.out.send(Out { bytes, file }).await.is_err() {
            return lost();
        }
        match answered.await {
            Ok(Told::Begun { source, part, head, body, then }) => {
                let end = End { asked, outcome: then };
                Outcome::Begun(Begun { source, part, head, body, end })
            }
            settled => {
                asked.done = true;
                match settled {
                    Ok(Told::Answered(payload)) => Outcome::Answered(payload),
                    Ok(Told::Failed(reason, text)) => Outcome::Failed(reason, text),
                    Ok(Told::Begun { .. }) | Err(_) => lost(),
                }
            }
        }
    }

    fn enter(&self, answer: oneshot::Sender<Told>) -> Option<u64> {
        let mut waiting = self.lock();
        // Said under the lock: who enters before that is cleared away with the others.
        if *self.0.over.borrow() {
            return None;
        }
        waiting.next += 1;
        let id = waiting.next;
        waiting.open.insert(id, answer);
        Some(id)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(self, reader: OwnedReadHalf, ends: watch::Sender<bool>) {
        let stream: &UnixStream = reader.as_ref();
        let (mut room, mut have, mut fds) = (vec![0; READ_BYTES], 0, Vec::new());
        while stream.readable().await.is_ok() {
            let mut got = 0;
            let receive = || {
                let space = room.len() - have;
                got = uds::receive(stream, &mut room[have..], &mut fds)?;
                // That was all, which need not be found out by another read. Only where descriptors
                // came does the kernel stop before the end.
                let is_all = got > 0 && got < space && fds.is_empty();
                if is_all { Err(ErrorKind::WouldBlock.into()) } else { Ok(()) }
            };
            match stream.try_io(Interest::READABLE, receive) {
                Ok(()) if got == 0 => break,
                Err(error) if got == 0 && is_transient(&error) => continue,
                Err(_) if got == 0 => break,
                Ok(()) | Err(_) => have += got,
            }
            let mut taken = 0;
            while let Ok(Some((header, payload, end))) = frame::split(&room[taken..have]) {
                let mine = usize::from(header.fds).min(fds.len());
                self.take(header.kind, payload, fds.drain(..mine).next());
                taken += end;
            }
            room.copy_within(taken..have, 0);
            have -= taken;
            if room.len() - have < READ_BYTES / 2 {
                room.resize(have + READ_BYTES, 0);
            }
        }
        let mut waiting = self.lock();
        let _ = ends.send(true);
        // Those who wait hear of it by the end of their channels.
        waiting.open.clear();
    }

    /// Awaits that the loop has left.
    pub(crate) async fn ended(self) {
        let mut over = self.0.over.clone();
        let _ = over.wait_for(|over| *over).await;
    }

    fn take(&self, kind: Kind, payload: &[u8], fd: Option<OwnedFd>) {
        if kind == Kind::Respond {
            let (Ok(respond), Some(body)) = (Respond::decode(payload), fd) else { return };
            let mut waiting = self.lock();
            let Some(answer) = waiting.open.remove(&respond.id) else { return };
            let (settles, then) = oneshot::channel();
            waiting.open.insert(respond.id, settles);
            drop(waiting);
            let (source, part) = (respond.source, (respond.offset, respond.length));
            let head = respond.head.to_vec();
            // Dropped with what it was told, an asker that has left takes its request back.
            let _ = answer.send(Told::Begun { source, part, head, body, then });
            return;
        }
        let (id, told) = if kind == Kind::Answer {
            let Ok(answer) = Answer::decode(payload) else { return };
            (answer.id, Told::Answered(answer.payload.to_vec()))
        } else if kind == Kind::Failure {
            let Ok(failure) = Failure::decode(payload) else { return };
            let text = String::from_utf8_lossy(failure.text).into_owned();
            (failure.id, Told::Failed(failure.reason, text))
        } else {
            return;
        };
        let answer = self.lock().open.remove(&id);
        if let Some(answer) = answer {
            // Whoever asked may have left this moment.
            let _ = answer.send(told);
        }
    }
}

fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

async fn write(writer: OwnedWriteHalf, mut frames: mpsc::Receiver<Out>) {
    let stream: &UnixStream = writer.as_ref();
    while let Some(Out { bytes, file }) = frames.recv().await {
        let mut file = file.as_ref().map(AsFd::as_fd);
        let mut sent = 0;
        while sent < bytes.len() {
            let send = || {
                let sent = uds::send(stream, &bytes[sent..], file.as_slice());
                sent.map_err(std::io::Error::from)
            };
            match stream.try_io(Interest::WRITABLE, send) {
                Ok(count) => (sent, file) = (sent + count, None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if stream.writable().await.is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}
