//! The bytes of one client's dialogue, between its socket and the session's.
//!
//! Invariants: what is ready for one side goes in one write; a side that takes nothing holds the
//! other back, within [`ROOM`], and never the loop; only whole messages pass.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hob_core::ids::Time;
use hob_core::sessions::ClientId;
use hob_core::sessions::dialogue::{self, Act, Cloned, Dialogue};
use hob_os::clock;
use hob_wire::bencode::Scanner;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use crate::inputs::{InSession, Input, SessionEvent};

/// How much waits for one side before the other is not read any more.
const ROOM: usize = 256 * 1024;
/// How much is read at once.
const PIECE: usize = 64 * 1024;
/// How long the reason of a session's end is waited for, once its socket has ended.
const REASON: Duration = Duration::from_secs(5);
/// How long a client may take to read what it is told last.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Messages that come from one side.
#[derive(Debug, Default)]
struct Incoming {
    bytes: Vec<u8>,
    scanner: Scanner,
}

/// One client's dialogue, and what is on its way.
#[derive(Debug)]
pub(super) struct Proxy {
    client: ClientId,
    owner: mpsc::Sender<Input>,
    dialogue: Dialogue,
    cloned: Arc<Mutex<Cloned>>,
    /// Whether what this client has begun ends with it.
    ends_with_client: bool,
    to_client: Vec<u8>,
    to_session: Vec<u8>,
    /// The client has sent what cannot be answered: it hears this last.
    refused: bool,
}

impl Proxy {
    pub(super) fn new(
        client: ClientId,
        owner: mpsc::Sender<Input>,
        joined: &InSession,
        shared: bool,
        token: &[u8],
    ) -> Proxy {
        Proxy {
            client,
            owner,
            dialogue: Dialogue::new(shared, token),
            cloned: Arc::clone(&joined.cloned),
            ends_with_client: shared,
            to_client: Vec::new(),
            to_session: Vec::new(),
            refused: false,
        }
    }

    /// Carries messages until one side has ended.
    pub(super) async fn run(
        &mut self,
        client: UnixStream,
        session: UnixStream,
        over: oneshot::Receiver<String>,
    ) {
        let (mut from_client, mut from_session) = (Incoming::default(), Incoming::default());
        let session_ended = loop {
            if !flush(&client, &mut self.to_client) || self.refused {
                break false;
            }
            if !flush(&session, &mut self.to_session) {
                break true;
            }
            let due = self.dialogue.next_due();
            let wait = due.map_or(Duration::MAX, |due| {
                Duration::from_nanos(due.0.saturating_sub(clock::now_ns()))
            });
            tokio::select! {
                ready = client.readable(), if self.to_session.len() < ROOM => {
                    if ready.is_err() || !from_client.fill(&client) {
                        break false;
                    }
                    self.take_from_client(&mut from_client).await;
                }
                ready = session.readable(), if self.to_client.len() < ROOM => {
                    if ready.is_err() || !from_session.fill(&session) {
                        break true;
                    }
                    if !self.take_from_session(&mut from_session).await {
                        break true;
                    }
                }
                _ = client.writable(), if !self.to_client.is_empty() => {}
                _ = session.writable(), if !self.to_session.is_empty() => {}
                () = tokio::time::sleep(wait), if due.is_some() => {
                    let mut acts = Vec::new();
                    self.dialogue.tick(now(), &mut acts);
                    self.perform(acts).await;
                }
            }
        };
        if session_ended {
            self.session_has_ended(&client, over).await;
        } else if self.refused {
            let _ = tokio::time::timeout(LAST_WORDS, drain(&client, &mut self.to_client)).await;
        } else if self.ends_with_client {
            self.to_session.extend(self.dialogue.interrupt_all());
            let _ = tokio::time::timeout(LAST_WORDS, drain(&session, &mut self.to_session)).await;
        }
        let mut acts = Vec::new();
        self.dialogue.over(&mut acts);
        self.perform(acts).await;
    }

    /// The client is told why its session is over.
    async fn session_has_ended(&mut self, client: &UnixStream, over: oneshot::Receiver<String>) {
        let why = tokio::time::timeout(REASON, over).await;
        let text = match why {
            Ok(Ok(text)) => text,
            Ok(Err(_)) | Err(_) => "the session closed the connection".to_owned(),
        };
        self.to_client.extend(dialogue::closing(&text));
        let _ = tokio::time::timeout(LAST_WORDS, drain(client, &mut self.to_client)).await;
    }

    async fn take_from_client(&mut self, from: &mut Incoming) {
        let mut acts = Vec::new();
        loop {
            let message = match from.next() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(fault) => {
                    let refusal = from.http_refusal().unwrap_or_else(|| dialogue::fault(fault));
                    acts.push(Act::Refuse(refusal));
                    break;
                }
            };
            let mut cloned = self.cloned.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(fault) = self.dialogue.client(now(), message, &mut cloned, &mut acts) {
                acts.push(Act::Refuse(dialogue::fault(fault)));
                break;
            }
        }
        self.perform(acts).await;
    }

    /// Takes what came; `false` if it is no bencode.
    async fn take_from_session(&mut self, from: &mut Incoming) -> bool {
        let mut acts = Vec::new();
        let good = loop {
            let message = match from.next() {
                Ok(Some(message)) => message,
                Ok(None) => break true,
                Err(_) => break false,
            };
            let mut cloned = self.cloned.lock().unwrap_or_else(PoisonError::into_inner);
            self.dialogue.session(message, &mut cloned, &mut acts);
        };
        self.perform(acts).await;
        good
    }

    /// The loop hears of an end before the client does: who asks for the receipt then finds it.
    async fn perform(&mut self, acts: Vec<Act>) {
        for act in acts {
            let event = match act {
                Act::ToSession(bytes) => {
                    self.to_session.extend(bytes);
                    continue;
                }
                Act::ToClient(bytes) => {
                    self.to_client.extend(bytes);
                    continue;
                }
                Act::Refuse(bytes) => {
                    self.to_client.extend(bytes);
                    self.refused = true;
                    continue;
                }
                Act::Began => SessionEvent::Began,
                Act::Ended(done) => SessionEvent::Ended(done),
            };
            let _ = self.owner.send(Input::Session { client: self.client, event }).await;
        }
    }
}

impl Incoming {
    /// Reads what is there; `false`: the other side has ended.
    fn fill(&mut self, stream: &UnixStream) -> bool {
        let before = self.bytes.len();
        self.bytes.resize(before + PIECE, 0);
        let read = stream.try_read(self.bytes.get_mut(before..).unwrap_or_default());
        let (count, open) = match read {
            Ok(0) => (0, false),
            Ok(count) => (count, true),
            Err(error) => (0, is_for_now(&error)),
        };
        self.bytes.truncate(before + count);
        open
    }

    /// The next whole message.
    fn next(&mut self) -> Result<Option<Vec<u8>>, hob_wire::bencode::Fault> {
        let Some(end) = self.scanner.end(&self.bytes)? else { return Ok(None) };
        let rest = self.bytes.split_off(end);
        Ok(Some(std::mem::replace(&mut self.bytes, rest)))
    }

    /// What a browser is told, if that is what came.
    fn http_refusal(&self) -> Option<Vec<u8>> {
        const METHODS: [&[u8]; 7] =
            [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"OPTIONS ", b"DELETE ", b"CONNECT "];
        let text = "This is a REPL for editors (nREPL), not a web site.\n";
        METHODS.iter().any(|method| self.bytes.starts_with(method)).then(|| {
            format!(
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{text}",
                text.len()
            )
            .into_bytes()
        })
    }
}

fn now() -> Time {
    Time(clock::now_ns())
}

fn is_for_now(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

/// Writes what the other side takes now; `false`: it takes nothing any more.
fn flush(stream: &UnixStream, bytes: &mut Vec<u8>) -> bool {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(count) => drop(bytes.drain(..count)),
            Err(error) => return is_for_now(&error),
        }
    }
    true
}

/// Writes all of it.
async fn drain(stream: &UnixStream, bytes: &mut Vec<u8>) {
    while flush(stream, bytes) && !bytes.is_empty() && stream.writable().await.is_ok() {}
}
