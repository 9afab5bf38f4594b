//! Connections of HTTP/2: many requests at one time, each answered as one of HTTP/1 is.
//!
//! h2 keeps the protocol's rules, and its own bounds (frames of a head, answers to pings, streams that
//! are taken back before they are looked at). What it leaves is bounded here: how many requests are
//! open, how long a connection may be without one, how long a client may take nothing of an answer, and
//! how many requests it may take back, since each may have cost a worker.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hob_core::http::limits::Limits;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::answer::{Beside, Front};
use crate::body::{Body, Broken, whole};
use crate::connection::checked::Checked;
use crate::control::slow::Slow;

/// What a client may send of one body before it is read, and of all.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What waits of one answer for its client's window, beside what the answer itself keeps.
const SEND_BYTES: usize = 64 * 1024;
/// An answer goes on in pieces of so many bytes: a frame's usual size.
const PIECE: usize = 16 * 1024;
/// What a header counts beside its name and value (RFC 9113, section 6.5.2).
const HEADER_EXTRA: u64 = 32;

/// Answers requests until the connection ends, by its client, by a limit, or with the site.
pub(crate) async fn run(
    stream: Checked,
    beside: Beside,
    front: Arc<Front>,
    stop: &mut watch::Receiver<bool>,
) {
    let limits = front.limits;
    let quiet = Duration::from_millis(limits.head_ms);
    let streams = Streams::new(&limits);
    let answering = streams.clone();
    let service = service_fn(move |request| {
        let (front, streams, slow) = (Arc::clone(&front), answering.clone(), beside.slow.clone());
        let beside = beside.clone();
        Box::pin(async move {
            let asked = streams.asks();
            let request = as_http1(request);
            let is_head = *request.method() == Method::HEAD;
            let pace = PACE.try_with(Arc::clone).unwrap_or_default();
            let beside = Beside { slow: pace.slow.clone(), ..beside };
            let response = front.answer(request, &beside).await?;
            slow.shares(&pace.slow);
            Ok::<_, std::convert::Infallible>(paced(response, is_head, pace, asked))
        })
    });
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let heads = limits.header_bytes.saturating_add(HEADER_EXTRA * limits.header_count);
    let connection = http2::Builder::new(Tasks(streams.clone()))
        .timer(TokioTimer::new())
        .max_concurrent_streams(small(limits.streams))
        .max_header_list_size(small(heads))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut told = false;
    loop {
        tokio::select! {
            // A peer that breaks off is none of our faults.
            _ = connection.as_mut() => return,
            () = streams.overdrawn() => return,
            _ = stop.wait_for(|stop| *stop), if !told => {}
            // Told already, it has had its time to leave.
            () = streams.quiet(quiet) => if told { return },
        }
        told = true;
        connection.as_mut().graceful_shutdown();
    }
}

/// A request as the front knows it: its target is a path, its server the header `Host`, its cookies
/// one header (RFC 9113, section 8.2.3).
fn as_http1(mut request: Request<Incoming>) -> Request<Incoming> {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let target = request.uri().path_and_query().cloned().map(|target: PathAndQuery| target);
    if let Some(target) = target {
        *request.uri_mut() = Uri::from(target);
    }
    let headers = request.headers_mut();
    if let Some(authority) = authority.and_then(|name| HeaderValue::try_from(name).ok()) {
        let same = |host: &HeaderValue| host.as_bytes().eq_ignore_ascii_case(authority.as_bytes());
        // Two names of the server are refused behind, as two of this header.
        if !headers.get(header::HOST).is_some_and(same) {
            headers.append(header::HOST, authority);
        }
    }
    join_cookies(headers);
    request
}

fn join_cookies(headers: &mut HeaderMap) {
    let cookies: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// What is open on a connection.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Streams that are not done with.
    streams: u64,
    /// How many there have been.
    seen: u64,
    /// How many requests may be taken back; below 0 one too many was.
    left: i64,
}

/// The streams of a connection. Copies of it are the same ones.
#[derive(Debug, Clone)]
struct Streams {
    open: Arc<watch::Sender<Open>>,
    resets: i64,
    write_gap: Duration,
}

impl Streams {
    fn new(limits: &Limits) -> Streams {
        let resets = i64::try_from(limits.resets).unwrap_or(i64::MAX);
        let open = Open { streams: 0, seen: 0, left: resets };
        let write_gap = Duration::from_millis(limits.write_gap_ms);
        Streams { open: Arc::new(watch::Sender::new(open)), resets, write_gap }
    }

    /// A stream, until what is returned is dropped.
    fn enter(&self) -> Entered {
        self.open.send_modify(|open| (open.streams, open.seen) = (open.streams + 1, open.seen + 1));
        Entered(self.clone())
    }

    /// A request, which counts as taken back until it is said that its client has its answer.
    fn asks(&self) -> Asked {
        Asked { streams: self.clone(), change: -1 }
    }

    /// Awaits that too many requests were taken back.
    async fn overdrawn(&self) {
        let _ = self.open.subscribe().wait_for(|open| open.left < 0).await;
    }

    /// Awaits that for so long there was no stream.
    async fn quiet(&self, time: Duration) {
        let mut open = self.open.subscribe();
        loop {
            let Ok(seen) = open.wait_for(|open| open.streams == 0).await.map(|open| open.seen)
            else {
                return;
            };
            let comes = open.wait_for(|open| open.seen != seen);
            if tokio::time::timeout(time, comes).await.is_err() {
                return;
            }
        }
    }
}

#[derive(Debug)]
struct Entered(Streams);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| open.streams -= 1);
    }
}

/// A request whose client may still take it back.
#[derive(Debug)]
struct Asked {
    streams: Streams,
    /// What its end does to how many may be.
    change: i64,
}

impl Asked {
    fn answered(&mut self) {
        self.change = 1;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Asked { streams, change } = self;
        streams.open.send_if_modified(|open| {
            open.left = (open.left + *change).min(streams.resets);
            open.left < 0
        });
    }
}

tokio::task_local! {
    /// That of the answer which the task writes.
    static PACE: Arc<Pace>;
}

/// Runs each stream in a task of its own, which ends when its client takes nothing for too long: h2
/// tells the client then, and the request is taken back.
#[derive(Debug, Clone)]
struct Tasks(Streams);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, stream: F) {
        let (entered, gap) = (self.0.enter(), self.0.write_gap);
        let pace = Arc::<Pace>::default();
        let watched = Arc::clone(&pace);
        tokio::spawn(PACE.scope(pace, async move {
            tokio::select! {
                biased;
                () = stream => {}
                () = watched.stalls(gap) => watched.slow.reached(),
            }
            drop(entered);
        }));
    }
}

/// Since when the client has had room for nothing more of an answer.
#[derive(Debug, Default)]
struct Pace {
    since: Mutex<Option<Instant>>,
    changed: Notify,
    slow: Slow,
}

impl Pace {
    fn set(&self, since: Option<Instant>) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
        if since.is_some() {
            self.changed.notify_one();
        }
    }

    /// Awaits that it has been so for as long as `gap`.
    async fn stalls(&self, gap: Duration) {
        loop {
            let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
            match since {
                None => self.changed.notified().await,
                Some(since) if since.elapsed() >= gap => return,
                Some(since) => tokio::time::sleep_until(since + gap).await,
            }
        }
    }
}

/// An answer of which hyper asks for a piece when its client has room for one.
#[derive(Debug)]
struct Paced {
    body: Body,
    /// What is left of a piece of the body's.
    rest: Bytes,
    pace: Arc<Pace>,
    asked: Asked,
}

/// A response whose client's pace is known. That to a HEAD has no body, and tells the length.
fn paced(
    response: Response<Body>,
    is_head: bool,
    pace: Arc<Pace>,
    mut asked: Asked,
) -> Response<Paced> {
    let (mut parts, mut body) = response.into_parts();
    if is_head {
        if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
            parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
        }
        body = whole(Bytes::new());
    }
    if body.is_end_stream() {
        asked.answered();
    }
    Response::from_parts(parts, Paced { body, rest: Bytes::new(), pace, asked })
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.pace.set(None);
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    // A response has no trailers.
                    Err(_) => continue,
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.asked.answered();
                    return Poll::Ready(None);
                }
            }
            if self.rest.is_empty() && self.body.is_end_stream() {
                self.asked.answered();
                return Poll::Ready(None);
            }
        }
        let count = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(count);
        if self.is_end_stream() {
            self.asked.answered();
        } else {
            self.pace.set(Some(Instant::now()));
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
