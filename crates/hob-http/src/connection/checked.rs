//! A connection whose bytes are judged before hyper parses them.
//!
//! hyper is lenient where two readers could disagree (line ends, folded lines, lengths). What the
//! core refuses does not reach it: to hyper the connection has ended there. A refusal in a head is
//! answered when hyper has left, since hyper has not seen that request; one in a body reaches the
//! request's own answer as a body that broke off, and its status is told beside.
//!
//! The other way, a client that takes nothing of its answer for too long is cut off.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hob_core::http::Refusal;
use hob_core::http::limits::Limits;
use hob_core::http::stream::Requests;
use hob_core::ids::Time;
use hob_os::clock;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;

use crate::connection::hints::Hints;
use crate::connection::socket::Stream;

/// The connection.
#[derive(Debug)]
pub(crate) struct Checked {
    stream: Stream,
    requests: Requests,
    over: bool,
    /// What comes is no HTTP any more: how much of it has come.
    raw: Option<Heard>,
    opening: Opening,
    /// Bytes that are read before those of the stream.
    early: Bytes,
    unanswered: Option<Refusal>,
    signals: Signals,
    write_gap: Duration,
    /// Since when the reader has taken nothing, if something waits for it.
    waits: Option<Pin<Box<Sleep>>>,
}

/// What HTTP/2 begins with (RFC 9113, section 3.4). In HTTP/1 it would be a request that is refused.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a connection has begun with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// Nothing has come.
    Before,
    /// So many bytes of HTTP/2's first, which are withheld.
    Preface(usize),
    Http1,
    Http2,
}

impl Opening {
    /// How many bytes are withheld, while it is not known what has begun.
    fn withheld(self) -> Option<usize> {
        match self {
            Opening::Before => Some(0),
            Opening::Preface(had) => Some(had),
            Opening::Http1 | Opening::Http2 => None,
        }
    }
}

/// What a stream and those who answer on it tell one another. Copies of it are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    pub(crate) in_body: InBody,
    /// When heads began to come.
    pub(crate) heads: Heads,
    /// Whether bytes wait for a reader: as long as that is so, hyper has others that it has not passed
    /// on.
    pub(crate) unwritten: Arc<AtomicBool>,
    /// What apps say before their answers.
    pub(crate) hints: Hints,
    /// Whether the connection has ended because its client took nothing for too long.
    pub(crate) stalled: Arc<AtomicBool>,
}

/// The status of what was refused in a body of a connection; 0: nothing was.
pub(crate) type InBody = Arc<AtomicU16>;

/// When the heads of requests that are not answered yet began to come, in order. Copies of it are the
/// same; it has no more of them than the parser has in its buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heads(Arc<Mutex<VecDeque<Time>>>);

impl Heads {
    fn extend(&self, heads: impl ExactSizeIterator<Item = Time>) {
        if heads.len() > 0 {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(heads);
        }
    }

    /// That of the request which is to be answered; `None` in HTTP/2, whose heads are not seen.
    pub(crate) fn next(&self) -> Option<Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// How many bytes have come since a connection is no HTTP any more.
pub(crate) type Heard = Arc<AtomicU64>;

impl Checked {
    pub(crate) fn new(stream: Stream, limits: Limits, signals: Signals) -> Checked {
        let requests = Requests::new(limits);
        let write_gap = Duration::from_millis(limits.write_gap_ms);
        Checked {
            stream,
            requests,
            over: false,
            raw: None,
            opening: Opening::Before,
            early: Bytes::new(),
            unanswered: None,
            signals,
            write_gap,
            waits: None,
        }
    }

    /// The same connection, of which another protocol is spoken from now on. Of a client that has not
    /// waited for that to be accepted nothing more is read.
    pub(crate) fn raw(self, heard: Heard) -> Checked {
        Checked { raw: Some(heard), ..self }
    }

    /// Whether its client speaks HTTP/2, of which nothing has been passed on.
    pub(crate) fn is_http2(&self) -> bool {
        self.opening == Opening::Http2
    }

    /// The same connection of HTTP/2: from its first byte on, and not judged here.
    pub(crate) fn into_http2(self) -> Checked {
        Checked { raw: Some(Heard::default()), over: false, ..self }
    }

    /// Answers what was refused in a head, and ends the connection. Returns the answer's status, if
    /// there was one.
    pub(crate) async fn finish(mut self) -> Option<u16> {
        let refused = self.unanswered.take();
        if let Some(refusal) = refused {
            let body = refusal.what;
            let answer = format!(
                "HTTP/1.1 {} Refused\r\ncontent-type: text/plain; charset=utf-8\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{body}\n",
                refusal.status,
                body.len() + 1,
            );
            let _ = self.stream.write_all(answer.as_bytes()).await;
        }
        let _ = self.stream.shutdown().await;
        refused.map(|refusal| refusal.status)
    }
}

impl AsyncRead for Checked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.over {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match self.opening {
            Opening::Before | Opening::Preface(_) => ready!(self.open(context, buffer))?,
            _ if !self.early.is_empty() => {
                let count = self.early.len().min(buffer.remaining());
                buffer.put_slice(&self.early.split_to(count));
            }
            Opening::Http1 | Opening::Http2 => {
                ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            }
        }
        if let Some(heard) = &self.raw {
            let came = buffer.filled().len() - before;
            heard.fetch_add(came as u64, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        let came = &buffer.filled()[before..];
        let fed = self.requests.feed(came, Time(clock::now_ns()));
        let Checked { requests, signals, .. } = &mut *self;
        signals.heads.extend(requests.heads());
        buffer.set_filled(before + fed.passed);
        if let Some(refusal) = fed.refused {
            self.over = true;
            if fed.in_head {
                self.unanswered = Some(refusal);
            } else {
                self.signals.in_body.store(refusal.status, Ordering::Relaxed);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Checked {
    /// The first read, or several if less has come than tells HTTP/2 from HTTP/1. Of a client that
    /// speaks HTTP/2 nothing is passed on, as if it had left.
    fn open(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        while let Some(had) = self.opening.withheld() {
            // The parser's first buffer has room for far more.
            buffer.put_slice(&PREFACE[..had]);
            let read = Pin::new(&mut self.stream).poll_read(context, buffer);
            let came = &buffer.filled()[before..];
            let told = came.len().min(PREFACE.len());
            let is_more = came.len() > had && came[..told] == PREFACE[..told];
            self.opening = match (&read, is_more) {
                (Poll::Pending, _) => self.opening,
                (Poll::Ready(_), false) => Opening::Http1,
                (Poll::Ready(_), true) if told < PREFACE.len() => Opening::Preface(told),
                (Poll::Ready(_), true) => {
                    self.early = Bytes::copy_from_slice(came);
                    self.over = true;
                    Opening::Http2
                }
            };
            if self.opening != Opening::Http1 {
                buffer.set_filled(before);
            }
            ready!(read)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Passes on what came of a write, unless it has waited for its reader for too long.
    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        came: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.signals.unwritten.store(came.is_pending(), Ordering::Relaxed);
        if came.is_ready() {
            self.waits = None;
            return came;
        }
        let gap = self.write_gap;
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(gap)));
        ready!(waits.as_mut().poll(context));
        self.signals.stalled.store(true, Ordering::Relaxed);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Checked {
    /// Writes the rest of hints that have begun to go out, and those that have not, if `anew`.
    fn write_hints(&mut self, context: &mut Context<'_>, anew: bool) -> Poll<io::Result<()>> {
        while let Some(rest) = self.signals.hints.rest(anew) {
            let came = Pin::new(&mut self.stream).poll_write(context, &rest);
            let count = ready!(self.written(context, came))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.signals.hints.went(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Checked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.write_hints(context, false))?;
        let came = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, came)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.write_hints(context, false))?;
        let came = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, came)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_hints(context, true))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
