//! A connection whose bytes are judged before hyper parses them.
//!
//! hyper is lenient where two readers could disagree (line ends, folded lines, lengths). What the
//! core refuses does not reach it: to hyper the connection has ended there. A refusal in a head is
//! answered when hyper has left, since hyper has not seen that request; one in a body reaches the
//! request's own answer as a body that broke off, and its status is told beside.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::{Context, Poll, ready};

use hob_core::http::Refusal;
use hob_core::http::limits::Limits;
use hob_core::http::stream::Requests;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

/// The connection.
#[derive(Debug)]
pub(crate) struct Checked {
    stream: TcpStream,
    requests: Requests,
    over: bool,
    unanswered: Option<Refusal>,
    in_body: InBody,
}

/// The status of what was refused in a body of a connection; 0: nothing was.
pub(crate) type InBody = Arc<AtomicU16>;

impl Checked {
    pub(crate) fn new(stream: TcpStream, limits: Limits, in_body: InBody) -> Checked {
        let requests = Requests::new(limits);
        Checked { stream, requests, over: false, unanswered: None, in_body }
    }

    /// Answers what was refused in a head, and ends the connection.
    pub(crate) async fn finish(mut self) {
        if let Some(refusal) = self.unanswered.take() {
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
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let fed = self.requests.feed(&buffer.filled()[before..]);
        buffer.set_filled(before + fed.passed);
        if let Some(refusal) = fed.refused {
            self.over = true;
            if fed.in_head {
                self.unanswered = Some(refusal);
            } else {
                self.in_body.store(refusal.status, Ordering::Relaxed);
            }
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
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
