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
use hob_wire::message::{Answer, Attach, Failure, Manner, Message, Numbered, Reason};
use rustix::fd::{AsFd, OwnedFd};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
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
    /// There is none; why, and a line for the log.
    Failed(Reason, String),
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    open: HashMap<u64, oneshot::Sender<Outcome>>,
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
pub(crate) struct Link {
    out: mpsc::Sender<Out>,
    waiting: Arc<Mutex<Waiting>>,
    over: watch::Receiver<bool>,
}

/// A request whose asker may leave: it is taken back then.
struct Asked<'a> {
    link: &'a Link,
    id: u64,
    done: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.link.forget(self.id);
            let cancel = Numbered { id: self.id };
            // A full outbox takes nothing back: the answer then finds nobody.
            let _ = encode(Kind::Cancel, 0, |out| cancel.encode(out))
                .map(|bytes| self.link.out.try_send(Out { bytes, file: None }));
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
        let link = Link { out, waiting: Arc::default(), over };
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
        let lost = || Outcome::Failed(Reason::Stopping, "hob stops".to_owned());
        let (answer, answered) = oneshot::channel();
        let Some(id) = self.enter(answer) else { return lost() };
        let mut asked = Asked { link: self, id, done: false };
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
        if self.out.send(Out { bytes, file }).await.is_err() {
            return lost();
        }
        let outcome = answered.await;
        asked.done = true;
        outcome.unwrap_or_else(|_| lost())
    }

    fn enter(&self, answer: oneshot::Sender<Outcome>) -> Option<u64> {
        let mut waiting = self.lock();
        // Said under the lock: who enters before that is cleared away with the others.
        if *self.over.borrow() {
            return None;
        }
        waiting.next += 1;
        let id = waiting.next;
        waiting.open.insert(id, answer);
        Some(id)
    }

    fn forget(&self, id: u64) {
        self.lock().open.remove(&id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(self, mut reader: OwnedReadHalf, ends: watch::Sender<bool>) {
        let mut bytes = Vec::with_capacity(READ_BYTES);
        loop {
            match reader.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let mut taken = 0;
            while let Ok(Some((header, payload, end))) = frame::split(&bytes[taken..]) {
                self.take(header.kind, payload);
                taken += end;
            }
            bytes.drain(..taken);
            bytes.reserve(READ_BYTES);
        }
        let mut waiting = self.lock();
        let _ = ends.send(true);
        // Those who wait hear of it by the end of their channels.
        waiting.open.clear();
    }

    /// Awaits that the loop has left.
    pub(crate) async fn ended(mut self) {
        let _ = self.over.wait_for(|over| *over).await;
    }

    fn take(&self, kind: Kind, payload: &[u8]) {
        let (id, outcome) = if kind == Kind::Answer {
            let Ok(answer) = Answer::decode(payload) else { return };
            (answer.id, Outcome::Answered(answer.payload.to_vec()))
        } else if kind == Kind::Failure {
            let Ok(failure) = Failure::decode(payload) else { return };
            let text = String::from_utf8_lossy(failure.text).into_owned();
            (failure.id, Outcome::Failed(failure.reason, text))
        } else {
            return;
        };
        let answer = self.lock().open.remove(&id);
        if let Some(answer) = answer {
            // Whoever asked may have left this moment.
            let _ = answer.send(outcome);
        }
    }
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
