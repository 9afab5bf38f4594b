//! WebSockets that an app has accepted: the protocol is spoken here, the app gets and sends whole
//! messages.
//!
//! ```text
//!   client ◀── frames of RFC 6455 ──▶ run ◀── text, binary, close ──▶ worker
//! ```
//! Nothing is read ahead in either direction: while the app takes no message, the client is not read;
//! while the client takes none, the app waits in its next one. The memory of one is bounded by the
//! limit of a message and the buffers of the sockets.
//!
//! Whoever ends it first is answered here, and the other one is told. What the app does behind the
//! end may take as long as an answer could.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hob_wire::caps::PAYLOAD_MAX;
use hob_wire::frame::{self, HEADER_LEN, Header, Kind};
use hob_wire::frames::http::{Close, MessagePart};
use hob_wire::message::Reason;
use rustix::fd::OwnedFd;
use rustix::net::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use crate::connection::checked::{Checked, Heard};
use crate::link::End;
use crate::log;

/// As much is read of a client, or of an app, at once.
const PIECE: usize = 16 * 1024;
/// What is longer is not copied behind its header.
const SMALL: usize = 64 * 1024;
/// The most bytes of a message in one frame: what is left beside `more`.
const PART_MAX: usize = PAYLOAD_MAX - 1;
/// A client that is told of the end may take so long to say that it knows.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// When the site stops, an app that knows it may go on for so long.
const STOP_TIME: Duration = Duration::from_secs(5);

const GONE: u16 = 1006;
const NO_CODE: u16 = 1005;

/// A WebSocket that an app has accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// The mount, for the log.
    pub(crate) name: String,
    /// Where the app's messages come and go.
    pub(crate) socket: OwnedFd,
    /// How long the app may go on behind the end.
    pub(crate) gap: Duration,
    /// The most bytes of a message of the client's.
    pub(crate) message_bytes: u64,
    /// What becomes of its request.
    pub(crate) end: End,
}

type ToClient = SplitSink<WebSocketStream<Checked>, Message>;
type FromClient = SplitStream<WebSocketStream<Checked>>;

/// Why it ends.
enum Ended {
    /// The client says so, or has left: what the app is told. It is answered already.
    Client(u16, String),
    /// The client has broken a rule.
    Wrong(CloseCode),
    /// The app says so.
    App(u16, String),
    /// The app has ended without a word.
    Broken,
    /// The site stops.
    Stops,
}

/// Passes messages both ways until one side ends it, the app's process is gone, or the site stops;
/// returns when the app has got to its end, or was taken back.
pub(crate) async fn run(
    client: Checked,
    early: Bytes,
    accepted: Accepted,
    ping: Duration,
    stop: &mut watch::Receiver<bool>,
) {
    let Accepted { name, socket, gap, message_bytes, mut end } = accepted;
    let most = usize::try_from(message_bytes).ok();
    let config = WebSocketConfig::default()
        .read_buffer_size(PIECE)
        .max_message_size(most)
        .max_frame_size(most);
    let socket = std::os::unix::net::UnixStream::from(socket);
    let socket = socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket));
    // Without descriptors to spare; the request is taken back.
    let Ok(socket) = socket else { return };
    let (from_app, to_app) = socket.into_split();
    let heard = Heard::default();
    let client = client.raw(Arc::clone(&heard));
    let client =
        WebSocketStream::from_partially_read(client, early.to_vec(), Role::Server, Some(config));
    let (to_client, from_client) = client.await.split();
    let mut client = Client { to: to_client, from: from_client };
    let mut app = App { from: from_app, to: to_app, read: BytesMut::new(), waits: VecDeque::new() };

    let pings = Pings { heard, gap: ping, due: Notify::new() };
    let mut settled = None;
    let ended = {
        let both = async {
            tokio::select! {
                ended = up(&mut client.from, &pings, &mut app.to, &mut app.waits) => ended,
                ended = down(&mut app.from, &mut app.read, &pings, &mut client.to) => ended,
                _ = stop.wait_for(|stop| *stop) => Ended::Stops,
            }
        };
        let gone = async {
            settled = Some(end.failure().await);
            // What it has said is still on its way; a child of its may hold its socket open.
            tokio::time::sleep(gap).await;
            Ended::Broken
        };
        tokio::select! {
            ended = both => ended,
            ended = gone => ended,
        }
    };
    let most = if matches!(ended, Ended::Stops) { gap.min(STOP_TIME) } else { gap };
    let told = app.told(&ended);
    let told = tokio::time::timeout(most, app.finish(told));
    let (_taken, ()) = tokio::join!(told, client.finish(&ended));
    if settled.is_none() {
        settled = tokio::time::timeout(most, end.failure()).await.ok();
    }
    match settled {
        Some(Some((reason, text))) if reason != Reason::Cancelled => {
            log::say(&format!("{name}: {}: {text}", reason.code()));
        }
        Some(_) => {}
        None => log::say(&format!("{name}: it went on behind the end of its WebSocket")),
    }
}

/// Finds out whether a client that says nothing is still there.
struct Pings {
    heard: Heard,
    /// So long it may say nothing until it is asked, and then to answer.
    gap: Duration,
    due: Notify,
}

impl Pings {
    /// What comes next; `None`: the client has left without a word. In the middle of a long message
    /// no answer can come, but bytes do.
    async fn next(&self, client: &mut FromClient) -> Option<Option<Result<Message, Error>>> {
        let mut asked = false;
        loop {
            let before = self.heard.load(Ordering::Relaxed);
            match tokio::time::timeout(self.gap, client.next()).await {
                Ok(next) => return Some(next),
                Err(_) if self.heard.load(Ordering::Relaxed) > before => asked = false,
                Err(_) if asked => return None,
                Err(_) => {
                    asked = true;
                    self.due.notify_one();
                }
            }
        }
    }
}

/// From the client to the app.
async fn up(
    client: &mut FromClient,
    pings: &Pings,
    app: &mut OwnedWriteHalf,
    waits: &mut VecDeque<Bytes>,
) -> Ended {
    loop {
        if flush(app, waits).await.is_err() {
            // It takes no more; its end, or its death, is seen elsewhere.
            waits.clear();
        }
        let Some(next) = pings.next(client).await else {
            return Ended::Client(GONE, String::new());
        };
        match next {
            Some(Ok(Message::Text(text))) => queue(waits, Kind::SocketText, text.into()),
            Some(Ok(Message::Binary(bytes))) => queue(waits, Kind::SocketBinary, bytes),
            // tungstenite answers pings.
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(None))) => return Ended::Client(NO_CODE, String::new()),
            Some(Ok(Message::Close(Some(said)))) => {
                return Ended::Client(said.code.into(), said.reason.as_str().to_owned());
            }
            Some(Err(error)) => return wrong(&error),
            None => return Ended::Client(GONE, String::new()),
        }
    }
}

fn wrong(error: &Error) -> Ended {
    if matches!(error, Error::Capacity(CapacityError::MessageTooLong { .. })) {
        Ended::Wrong(CloseCode::Size)
    } else if matches!(error, Error::Utf8(_)) {
        Ended::Wrong(CloseCode::Invalid)
    } else if matches!(error, Error::Protocol(why) if *why != RESET) {
        Ended::Wrong(CloseCode::Protocol)
    } else {
        Ended::Client(GONE, String::new())
    }
}

/// The client has left without a word.
const RESET: ProtocolError = ProtocolError::ResetWithoutClosingHandshake;

/// Appends a message, as frames.
fn queue(waits: &mut VecDeque<Bytes>, kind: Kind, mut bytes: Bytes) {
    loop {
        let part = bytes.split_to(bytes.len().min(PART_MAX));
        let more = !bytes.is_empty();
        if part.len() <= SMALL {
            waits.push_back(encoded(kind, |out| MessagePart { more, bytes: &part }.encode(out)));
        } else {
            // The same as above, without a copy.
            let mut head =
                encoded(kind, |out| MessagePart { more, bytes: &[] }.encode(out)).to_vec();
            let length = u32::try_from(part.len() + 1).unwrap_or(u32::MAX);
            head[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&length.to_le_bytes());
            waits.extend([head.into(), part]);
        }
        if !more {
            return;
        }
    }
}

fn encoded(kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::new();
    // None of them is longer than a frame.
    let _ = frame::append(&mut out, kind, 0, body);
    out.into()
}

/// Writes what waits; interrupted, it goes on where it was.
async fn flush(app: &mut OwnedWriteHalf, waits: &mut VecDeque<Bytes>) -> io::Result<()> {
    while let Some(first) = waits.front_mut() {
        app.write_all_buf(first).await?;
        waits.pop_front();
    }
    Ok(())
}

/// From the app to the client.
async fn down(
    app: &mut OwnedReadHalf,
    read: &mut BytesMut,
    pings: &Pings,
    client: &mut ToClient,
) -> Ended {
    // Within a message of several parts.
    let mut inside = false;
    loop {
        let taken = tokio::select! {
            taken = take(app, read) => taken,
            () = pings.due.notified() => {
                if client.send(Message::Ping(Bytes::new())).await.is_err() {
                    return Ended::Client(GONE, String::new());
                }
                continue;
            }
        };
        let Ok((kind, payload)) = taken else { return Ended::Broken };
        let data = match (inside, kind == Kind::SocketText) {
            (true, _) => Data::Continue,
            (false, true) => Data::Text,
            (false, false) => Data::Binary,
        };
        if kind == Kind::SocketClose {
            let Ok(close) = Close::decode(&payload) else { return Ended::Broken };
            let code = u16::try_from(close.code).unwrap_or(NO_CODE);
            return Ended::App(code, String::from_utf8_lossy(close.reason).into_owned());
        }
        let Ok(part) = MessagePart::decode(&payload) else { return Ended::Broken };
        inside = part.more;
        let frame = Frame::message(payload.slice_ref(part.bytes), OpCode::Data(data), !inside);
        if client.send(Message::Frame(frame)).await.is_err() {
            return Ended::Client(GONE, String::new());
        }
    }
}

/// The next frame that an app has sent.
async fn take(app: &mut OwnedReadHalf, read: &mut BytesMut) -> io::Result<(Kind, Bytes)> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    loop {
        let mut missing = PIECE;
        if let Some(head) = read.first_chunk::<HEADER_LEN>() {
            let Header { kind, len, .. } = Header::decode(head).map_err(|_| broken())?;
            let ours = [Kind::SocketText, Kind::SocketBinary, Kind::SocketClose];
            if !ours.contains(&kind) {
                return Err(broken());
            }
            if read.len() >= HEADER_LEN + len {
                read.advance(HEADER_LEN);
                return Ok((kind, read.split_to(len).freeze()));
            }
            missing = missing.max(HEADER_LEN + len - read.len());
        }
        read.reserve(missing);
        if app.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The client's side.
struct Client {
    to: ToClient,
    from: FromClient,
}

impl Client {
    /// Ends it in the protocol, as far as the client takes part.
    async fn finish(mut self, ended: &Ended) {
        let (code, reason) = match ended {
            Ended::Client(..) => (CloseCode::Normal, ""),
            Ended::Wrong(code) => (*code, ""),
            Ended::App(code, reason) => (CloseCode::from(*code), reason.as_str()),
            Ended::Broken => (CloseCode::Error, ""),
            Ended::Stops => (CloseCode::Away, ""),
        };
        let closing = async {
            if !matches!(ended, Ended::Client(..)) {
                let frame = CloseFrame { code, reason: reason.into() };
                let frame = (frame.code != CloseCode::Status).then_some(frame);
                self.to.send(Message::Close(frame)).await?;
            }
            // What it says that was on its way is for nobody; its answer, or ours, ends this. Of one
            // that has broken a rule nothing is understood any more.
            while let Some(said) = self.from.next().await {
                said?;
            }
            Ok::<_, Error>(())
        };
        let closed = tokio::time::timeout(CLOSE_TIME, closing).await;
        let Ok(mut stream) = self.to.reunite(self.from) else { return };
        let lingering = async {
            let stream = stream.get_mut();
            stream.shutdown().await?;
            if matches!(closed, Ok(Ok(()))) && !matches!(ended, Ended::Wrong(_)) {
                return Ok(());
            }
            // A connection that is left with bytes to read takes what was sent on it along.
            let mut nothing = [0; 4096];
            while stream.read(&mut nothing).await? > 0 {}
            Ok::<_, io::Error>(())
        };
        let _ = tokio::time::timeout(CLOSE_TIME, lingering).await;
    }
}

/// The app's side.
struct App {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    read: BytesMut,
    /// What it has not taken yet.
    waits: VecDeque<Bytes>,
}

impl App {
    /// What the app learns of the end: the code and the reason.
    fn told<'a>(&self, ended: &'a Ended) -> Option<(u16, &'a str)> {
        match ended {
            Ended::Client(code, reason) => Some((*code, reason)),
            Ended::Wrong(code) => Some(((*code).into(), "")),
            Ended::Stops => Some((CloseCode::Away.into(), "")),
            Ended::App(..) | Ended::Broken => None,
        }
    }

    /// Tells it, behind what it has not taken yet. It can say nothing more.
    async fn finish(&mut self, told: Option<(u16, &str)>) {
        let stream: &UnixStream = self.from.as_ref();
        let _ = rustix::net::shutdown(stream, Shutdown::Read);
        // One that waits for room is woken by room alone, and then learns that it is for nothing.
        while self.from.read_buf(&mut self.read).await.is_ok_and(|count| count > 0) {
            self.read.clear();
        }
        if let Some((code, reason)) = told {
            let close = Close { code: code.into(), reason: reason.as_bytes() };
            self.waits.push_back(encoded(Kind::SocketClose, |out| close.encode(out)));
            let _ = flush(&mut self.to, &mut self.waits).await;
        }
        let _ = self.to.shutdown().await;
    }
}
