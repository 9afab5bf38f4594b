//! Bodies of answers that do not come with their head: an app makes them while the client reads, or
//! they lie in a file.
//!
//! What an app makes is read ahead of its client, up to a bound (`ahead`); above it the socket between
//! the app and the front is full, and the app waits. What the client is sent is whole or its connection
//! is cut: the last bytes of a body whose length is known go out when the app has said that there are
//! no others.

mod ahead;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use hob_wire::frame::{HEADER_LEN, Header, Kind};
use hob_wire::frames::http::Source;
use hob_wire::message::Reason;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use ahead::Ahead;

use crate::body::Broken;
use crate::link::{App, Begun, End};
use crate::log;

/// As much is read at once.
const PIECE: usize = 64 * 1024;
/// An app whose client has left may take so long to notice, and to close what it has open.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// A body of an app's.
pub(crate) struct AppBody {
    state: State,
    left: Option<u64>,
}

type Next = Pin<Box<dyn Future<Output = (Making, Result<Option<Bytes>, Broken>)> + Send>>;

enum State {
    Idle(Making),
    Busy(Next),
    Ahead(Ahead),
    Over,
}

/// Where the bytes come from.
enum Way {
    /// A socket, what was read of it, and how much of that and what follows belongs to a chunk.
    Stream { socket: UnixStream, buffer: BytesMut, chunk: usize },
    /// A file, the place of the next byte, and how many there are.
    File { file: Arc<File>, at: u64, left: u64 },
}

/// A body that is being made.
struct Making {
    /// The mount, for the log.
    name: String,
    first: Bytes,
    way: Way,
    /// Bytes that are missing to its length, if that was said.
    left: Option<u64>,
    /// The app has said that there are no more.
    is_whole: bool,
    /// How long an app may make nothing.
    gap: Duration,
    /// `None`: what became of the request is known.
    end: Option<End>,
}

impl std::fmt::Debug for AppBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppBody").field("left", &self.left).finish_non_exhaustive()
    }
}

impl AppBody {
    /// The body that begins with `first` and has `length` bytes, if that was said.
    pub(crate) fn new(
        app: &App,
        first: Bytes,
        length: Option<u64>,
        begun: Begun,
    ) -> std::io::Result<AppBody> {
        let way = match begun.source {
            Source::Stream => {
                let socket = std::os::unix::net::UnixStream::from(begun.body);
                socket.set_nonblocking(true)?;
                let socket = UnixStream::from_std(socket)?;
                Way::Stream { socket, buffer: BytesMut::new(), chunk: 0 }
            }
            Source::File => {
                let (at, left) = begun.part;
                Way::File { file: Arc::new(File::from(begun.body)), at, left }
            }
            // It is none of a request that has asked for none.
            Source::Socket | Source::Connection => {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
        };
        let (name, gap) = (app.name().to_owned(), app.timeout());
        let end = Some(begun.end);
        let making = Making { name, first, way, left: length, is_whole: false, gap, end };
        let state = match making.way {
            Way::Stream { .. } => State::Ahead(Ahead::begin(making, app.answer_bytes())),
            // The server has it already.
            Way::File { .. } => State::Idle(making),
        };
        Ok(AppBody { state, left: length })
    }
}

impl Body for AppBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let mut next = match std::mem::replace(&mut self.state, State::Over) {
            State::Over => return Poll::Ready(None),
            State::Ahead(mut ahead) => {
                let taken = ahead.poll_take(context);
                if let Poll::Ready(Some(Ok(piece))) = &taken
                    && let Some(left) = &mut self.left
                {
                    *left = left.saturating_sub(piece.len() as u64);
                }
                if !matches!(taken, Poll::Ready(None | Some(Err(_)))) {
                    self.state = State::Ahead(ahead);
                }
                return taken.map(|taken| taken.map(|taken| taken.map(Frame::data)));
            }
            State::Busy(next) => next,
            State::Idle(mut making) => Box::pin(async move {
                let piece = making.next().await;
                (making, piece)
            }),
        };
        match next.as_mut().poll(context) {
            Poll::Pending => {
                self.state = State::Busy(next);
                Poll::Pending
            }
            Poll::Ready((making, Ok(Some(piece)))) => {
                self.left = making.left;
                self.state = State::Idle(making);
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Poll::Ready((_, Ok(None))) => Poll::Ready(None),
            Poll::Ready((making, Err(error))) => {
                log::say(&format!("{}: {error}; its client was cut off", making.name));
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

const LONGER: &str = "a body is longer than its Content-Length";
const SHORTER: &str = "a body is shorter than its Content-Length";

impl Making {
    /// The next bytes, or the end of a whole body.
    async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        let Some(piece) = self.more().await? else {
            return if self.left.is_some_and(|left| left > 0) {
                Err(SHORTER.into())
            } else {
                Ok(None)
            };
        };
        self.count(&piece)?;
        if self.left == Some(0) {
            // With these its client has a whole answer.
            while let Some(more) = self.more().await? {
                self.count(&more)?;
            }
        }
        Ok(Some(piece))
    }

    fn count(&mut self, piece: &Bytes) -> Result<(), Broken> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(piece.len() as u64).ok_or(LONGER)?;
        }
        Ok(())
    }

    /// More bytes, which are never none.
    async fn more(&mut self) -> Result<Option<Bytes>, Broken> {
        if !self.first.is_empty() {
            return Ok(Some(std::mem::take(&mut self.first)));
        }
        if self.is_whole {
            return Ok(None);
        }
        if let Way::File { file, at, left } = &mut self.way {
            let want = usize::try_from(*left).unwrap_or(PIECE).min(PIECE);
            if want == 0 {
                self.is_whole = true;
                return Ok(None);
            }
            let (source, place) = (Arc::clone(file), *at);
            // A disk may take its time.
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; want];
                let count = source.read_at(&mut bytes, place)?;
                bytes.truncate(count);
                Ok::<_, std::io::Error>(bytes)
            });
            let bytes = read.await??;
            if bytes.is_empty() {
                return Err("a file was cut while it was sent".into());
            }
            *at += bytes.len() as u64;
            *left -= bytes.len() as u64;
            return Ok(Some(bytes.into()));
        }
        while !self.is_whole {
            if let Some(bytes) = self.at_hand()? {
                return Ok(Some(bytes));
            }
            if !self.is_whole {
                self.read().await?;
            }
        }
        Ok(None)
    }

    /// What has been read of a chunk. Sees the end, too.
    fn at_hand(&mut self) -> Result<Option<Bytes>, Broken> {
        let Way::Stream { buffer, chunk, .. } = &mut self.way else { return Ok(None) };
        while *chunk == 0 {
            let Some(head) = buffer.first_chunk::<HEADER_LEN>() else { return Ok(None) };
            let Header { kind, len, .. } = Header::decode(head)?;
            buffer.advance(HEADER_LEN);
            if kind == Kind::End {
                self.is_whole = true;
                return Ok(None);
            }
            if kind != Kind::Chunk {
                return Err("its worker broke a rule of the wire".into());
            }
            *chunk = len;
        }
        let here = buffer.len().min(*chunk);
        *chunk -= here;
        Ok((here > 0).then(|| buffer.split_to(here).freeze()))
    }

    async fn read(&mut self) -> Result<(), Broken> {
        let Way::Stream { socket, buffer, .. } = &mut self.way else { return Ok(()) };
        buffer.reserve(PIECE);
        let failure = async {
            match &mut self.end {
                Some(end) => end.failure().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            read = socket.read_buf(buffer) => match read? {
                0 => Err("a body broke off".into()),
                _ => Ok(()),
            },
            // A child of the worker's may hold its socket open.
            failure = failure => {
                self.end = None;
                match failure {
                    Some((reason, text)) => Err(format!("{}: {text}", reason.code()).into()),
                    None => Ok(()),
                }
            }
            () = tokio::time::sleep(self.gap) => {
                // Its worker is at something that does not end: it is taken back.
                self.end = None;
                Err("it made no more of its answer in time".into())
            }
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let Some(mut end) = self.end.take() else { return };
        // What it does behind a whole answer may take as long as the answer could.
        let most = if self.is_whole { self.gap } else { LEAVE_TIME };
        let name = std::mem::take(&mut self.name);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // The stream is closed when this returns, by which the app learns of it.
        runtime.spawn(async move {
            let failure = tokio::time::timeout(most, end.failure()).await;
            if let Ok(Some((reason, text))) = failure
                && reason != Reason::Cancelled
            {
                log::say(&format!("{name}: {}: {text}", reason.code()));
            }
        });
    }
}
