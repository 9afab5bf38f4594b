//! From a request to its answer: judged, routed, asked of an app or a folder, checked, logged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hob_core::http::Refusal;
use hob_core::http::answer::{Answer, check_answer};
use hob_core::http::filter::Body as Length;
use hob_core::http::filter::{self, Head};
use hob_core::http::forwarded::{self, Proxies, Seen};
use hob_core::http::limits::Limits;
use hob_core::http::mounts::Mounts;
use hob_core::http::websocket::{self, Handshake};
use hob_core::receipt::trace::Parent;
use hob_wire::frames::http::Source;
use hob_wire::http::{self, Answered};
use hob_wire::message::{Protocol, Reason, Turned};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::blobs::Blobs;
use crate::body::{Body, Refused, plain, refused, whole};
use crate::connection::checked::Signals;
use crate::control::meter::{Measured, Meter, Tally};
use crate::control::slow::Slow;
use crate::files::Files;
use crate::hijack::Hijacked;
use crate::link::served::Telling;
use crate::link::{App, Ask, Begun, Link, Outcome};
use crate::log::{self, Line, Log};
use crate::rights::Rights;
use crate::rights::access::Access;
use crate::session::Session;
use crate::stream::AppBody;
use crate::upload;
use crate::websocket::Accepted;

/// Where a client names the trace that its request stands in.
const TRACEPARENT: &str = "traceparent";

/// What is served at a prefix, and what is counted of it.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub(crate) served: Served,
    pub(crate) tally: Arc<Tally>,
    /// Who may have it; `None`: who reaches it.
    pub(crate) rights: Option<Arc<Rights>>,
}

/// An app, and what its requests are held to.
#[derive(Debug)]
pub(crate) struct ServedApp {
    pub(crate) app: Arc<App>,
    pub(crate) body_bytes: u64,
    pub(crate) message_bytes: Option<u64>,
    pub(crate) by_client: bool,
}

/// What is served at a prefix.
#[derive(Debug)]
pub(crate) enum Served {
    /// An app.
    App(ServedApp),
    /// A folder.
    Files(Files, Arc<Telling>),
    /// Repositories.
    Blobs(Blobs, Arc<Telling>),
}

/// A request of a client that is known.
struct Arriving<'r> {
    parts: &'r Parts,
    headers: &'r Headers<'r>,
    seen: Seen<'r>,
    body: Incoming,
    beside: &'r Beside,
}

/// A request to an app, judged and routed.
struct Routed<'r> {
    arriving: Arriving<'r>,
    accepted: &'r filter::Accepted<'r>,
    target: &'r [u8],
    prefix: &'r [u8],
    rest: &'r [u8],
}

/// Names and values, as they came.
type Headers<'a> = Vec<(&'a [u8], &'a [u8])>;

/// What a connection becomes, if an app takes it over.
#[derive(Debug)]
pub(crate) enum Taken {
    /// A WebSocket, when its handshake has been answered.
    WebSocket(Accepted),
    /// The app's, at once.
    Connection(Hijacked),
}

/// Where it is said what a connection becomes.
#[derive(Debug, Default)]
pub(crate) struct TakenOver {
    taken: Mutex<Option<Taken>>,
    hijacked: AtomicBool,
}

impl TakenOver {
    fn give(&self, taken: Taken) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).replace(taken);
    }

    pub(crate) fn take(&self) -> Option<Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether no response follows.
    pub(crate) fn is_hijacked(&self) -> bool {
        self.hijacked.load(Ordering::Relaxed)
    }
}

/// What belongs to a connection and not to one of its requests.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    /// Where the site listens that it was made to.
    pub(crate) local: SocketAddr,
    /// Who has made it.
    pub(crate) peer: SocketAddr,
    /// `None`: it is no one request's to take, as in HTTP/2.
    pub(crate) taken: Option<Arc<TakenOver>>,
    /// What it says to its stream, and hears of it.
    pub(crate) signals: Signals,
    /// Where it is said which answer its client is to take.
    pub(crate) slow: Slow,
}

/// All that a connection needs.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) mounts: Mounts<Mounted>,
    pub(crate) link: Link,
    pub(crate) limits: Limits,
    pub(crate) proxies: Proxies,
    pub(crate) log: Log,
    pub(crate) meter: Arc<Meter>,
}

impl Front {
    /// Answers a request, whatever becomes of it.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        beside: &Beside,
    ) -> Result<Response<Body>, std::convert::Infallible> {
        let (parts, body) = request.into_parts();
        let peer = beside.peer;
        let mut measured = self.meter.begin(beside.signals.heads.next(), protocol(parts.version));
        let traceparent = parts.headers.get(TRACEPARENT).map(HeaderValue::as_bytes);
        measured.trace_from(traceparent.and_then(Parent::read), peer.port());
        let headers: Headers<'_> = parts
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
            .collect();
        let judged =
            forwarded::judge((peer.ip(), peer.port()), &self.proxies, headers.iter().copied());
        let client = judged.as_ref().map_or(peer.ip(), |seen| seen.address);
        let response = match judged {
            Ok(seen) => {
                let arriving = Arriving { parts: &parts, headers: &headers, seen, body, beside };
                self.perform(arriving, &mut measured).await
            }
            Err(refusal) => Err(refusal.into()),
        };
        let response = match response {
            Ok(response) => response,
            Err(refused) => {
                let mut response = plain(refused.status, &format!("{}\n", refused.text));
                if refused.status == StatusCode::SERVICE_UNAVAILABLE {
                    let soon = HeaderValue::from_static("1");
                    response.headers_mut().insert(header::RETRY_AFTER, soon);
                }
                if refused.status == StatusCode::UPGRADE_REQUIRED {
                    let fields = response.headers_mut();
                    let version = HeaderValue::from_static("13");
                    fields.insert(header::SEC_WEBSOCKET_VERSION, version);
                    fields.insert(header::UPGRADE, WEBSOCKET);
                }
                if refused.close {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                response
            }
        };
        beside.slow.answers(measured.tally());
        let field = |name| parts.headers.get(name).map_or(&b""[..], HeaderValue::as_bytes);
        let line = Line {
            client,
            method: parts.method.as_str(),
            target: &parts.uri.to_string(),
            protocol: protocol(parts.version).name(),
            status: response.status().as_u16(),
            referer: field(header::REFERER),
            agent: field(header::USER_AGENT),
            traceparent: field(HeaderName::from_static(TRACEPARENT)),
        };
        if response.extensions().get::<Streamed>().is_some() {
            return Ok(response.map(|body| Body::new(self.log.counted(&line, body, measured))));
        }
        let bytes = sent(&parts.method, &response);
        let ended = measured.end(line.status, bytes);
        self.log.take(&line, bytes, ended);
        if let Some(taken) = &beside.taken
            && response.extensions().get::<NoResponse>().is_some()
        {
            taken.hijacked.store(true, Ordering::Relaxed);
            // The connection is taken from hyper, and this with it.
            std::future::pending::<()>().await;
        }
        Ok(response)
    }

    async fn perform(
        &self,
        arriving: Arriving<'_>,
        measured: &mut Measured,
    ) -> Result<Response<Body>, Refused> {
        let Arriving { parts, headers, ref seen, ref body, beside } = arriving;
        let target = parts.uri.to_string();
        let method = parts.method.as_str().as_bytes();
        let version = version(parts.version);
        let head =
            Head { version, method, target: target.as_bytes(), headers: headers.iter().copied() };
        let mut accepted = filter::check(head, &self.limits)?;
        if body.is_end_stream() {
            accepted.body = Length::Empty;
        }
        let found = self.mounts.find(&accepted.path).ok_or_else(nothing)?;
        measured.belongs_to(&found.value.tally);
        let client = seen.address;
        let by_proxy = self.proxies.have(beside.peer.ip());
        let access = Access { of: &found.value.rights, link: &self.link, parts, client, by_proxy };
        match &found.value.served {
            Served::Files(files, telling) => {
                measured.tells(telling);
                access.check(found.rest, measured).await?;
                folder(files, parts, found.prefix, found.rest).await
            }
            Served::Blobs(blobs, telling) => {
                measured.tells(telling);
                repository(blobs, &access, found.rest, accepted.target.query, measured).await
            }
            Served::App(served) => {
                access.check(found.rest, measured).await?;
                let (prefix, rest) = (found.prefix, found.rest);
                let target = target.as_bytes();
                let to = Routed { arriving, accepted: &accepted, target, prefix, rest };
                self.perform_app(served, to, measured).await
            }
        }
    }

    /// Has an app answer.
    async fn perform_app(
        &self,
        ServedApp { app, body_bytes, message_bytes, by_client }: &ServedApp,
        Routed { arriving, accepted, target, prefix, rest }: Routed<'_>,
        measured: &mut Measured,
    ) -> Result<Response<Body>, Refused> {
        let Arriving { parts, headers, seen, body, beside } = arriving;
        let (method, version) = (parts.method.as_str().as_bytes(), version(parts.version));
        let asked = message_bytes.map(|bytes| (version, method, bytes));
        let handshake = handshake(asked, headers, accepted.body)?;
        let gap = Duration::from_millis(self.limits.body_gap_ms);
        let in_body = &beside.signals.in_body;
        let gathered = upload::gather(body, in_body, accepted.body.told(), *body_bytes, gap).await;
        let gathered = gathered.inspect_err(|why| self.turn_away(app, why.status, measured))?;
        let usual = if seen.secure { 443 } else { 80 };
        let server = seen.host.or(accepted.host);
        let port = server.map_or(Some(beside.local.port()), |host| host.port);
        let port = port.unwrap_or(usual).to_string();
        let (address, peer_port) = (seen.address.to_string(), seen.port.unwrap_or(0));
        let (local, peer_port) = (beside.local.ip().to_string(), peer_port.to_string());
        // What an app makes of the address that was asked for begins with this.
        let host = seen.host.map(|host| host.text(usual));
        let line: [&[u8]; http::WORDS] = [
            method,
            target,
            prefix,
            rest,
            accepted.target.query,
            protocol(parts.version).name().as_bytes(),
            scheme(seen.secure, handshake.is_some()),
            server.map_or(local.as_bytes(), |host| host.name),
            port.as_bytes(),
            address.as_bytes(),
            peer_port.as_bytes(),
        ];
        let (length, inline) = (gathered.length.to_string(), &gathered.inline);
        let dropped = [&accepted.dropped, &seen.dropped];
        let mut passed = passed(headers, dropped, host.as_deref());
        let traceparent = measured.traceparent();
        if let Some(own) = &traceparent {
            passed.retain(|(name, _)| *name != b"traceparent");
            passed.push((b"traceparent", own.as_bytes()));
        }
        if accepted.body != Length::Empty {
            passed.push((b"content-length", length.as_bytes()));
        }
        let mut payload = Vec::with_capacity(2048 + inline.len());
        http::encode_request(&line, &passed, inline, &mut payload);
        let begin = || Session::of(headers.iter().copied(), handshake.is_some());
        let session = by_client.then(begin).transpose()?;
        let key = session.as_ref().map_or("", Session::name);
        let may_hint = version == filter::Version::Http11 && handshake.is_none();
        let hints = may_hint.then_some(&beside.signals.hints);
        let ask = Ask { app, key, payload: &payload, file: gathered.file, hints };
        let outcome = self.ask(ask, measured).await;
        if let Outcome::Failed(reason, _) = &outcome {
            measured.app_failed(*reason, *by_client);
        }
        let taken = beside.taken.as_deref();
        let mut response = ended(&parts.method, handshake, outcome, app, taken)?;
        if let Some(session) = session {
            session.tell(&mut response, prefix, seen.secure);
        }
        Ok(response)
    }
}

impl Front {
    /// Asks an app, of which these hints go out until its answer is there.
    async fn ask(&self, ask: Ask<'_>, measured: &mut Measured) -> Outcome {
        let hints = ask.hints;
        measured.asks();
        hints.inspect(|hints| hints.open());
        let (outcome, passing) = self.link.ask(ask, measured.times()).await;
        hints.inspect(|hints| hints.close());
        measured.passes(passing);
        measured.app_answered();
        outcome
    }

    /// Its receipt, too, says why a request whose body was refused is not put to its app.
    fn turn_away(&self, app: &App, status: StatusCode, measured: &Measured) {
        let turned = turned(status);
        if matches!(turned, Turned::BodyBytes | Turned::BodyGap) {
            measured.reached(turned.code());
        }
        self.link.turned_away(app.name(), measured.times(), turned);
    }
}

/// Why an app is not asked a request whose body was refused with this status.
fn turned(status: StatusCode) -> Turned {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => Turned::BodyBytes,
        StatusCode::REQUEST_TIMEOUT => Turned::BodyGap,
        StatusCode::INSUFFICIENT_STORAGE => Turned::BodyRoom,
        _ => Turned::BodyBroken,
    }
}

/// The handshake of a request to an app that takes WebSockets, and the most bytes of a message, if
/// that is what it asks for.
fn handshake<'a>(
    asked: Option<(filter::Version, &[u8], u64)>,
    headers: &Headers<'a>,
    body: Length,
) -> Result<Option<(Handshake<'a>, u64)>, Refusal> {
    let fields = || headers.iter().copied();
    let Some((version, method, message_bytes)) = asked.filter(|_| websocket::is_asked(fields()))
    else {
        return Ok(None);
    };
    if body != Length::Empty {
        return Err(Refusal::bad("the handshake of a WebSocket with a body"));
    }
    Ok(Some((websocket::check(version, method, fields())?, message_bytes)))
}

/// The headers that an app sees, but for the length of its body; with this host, if a proxy says it.
fn passed<'a>(
    headers: &Headers<'a>,
    dropped: [&Vec<usize>; 2],
    host: Option<&'a [u8]>,
) -> Headers<'a> {
    let mut passed: Headers<'a> = Vec::with_capacity(headers.len() + 2);
    if websocket::is_asked(headers.iter().copied()) {
        // By which libraries know it; an app that takes the connection over speaks it itself.
        passed.push((b"connection", b"upgrade"));
    }
    for (place, (name, value)) in headers.iter().copied().enumerate() {
        if dropped.iter().any(|dropped| dropped.binary_search(&place).is_ok()) {
            continue;
        }
        match (name, host) {
            (b"content-length", _) => {}
            (b"host", Some(host)) => passed.push((name, host)),
            _ => passed.push((name, value)),
        }
    }
    passed
}

/// How many bytes of a body go out.
fn sent(method: &Method, response: &Response<Body>) -> u64 {
    let told = response.headers().get(header::CONTENT_LENGTH);
    let told = told.and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    match (*method == Method::HEAD, told) {
        (true, _) => 0,
        (false, Some(bytes)) => bytes,
        (false, None) => response.body().size_hint().lower(),
    }
}

/// A longer file is not sent at once: its request lasts until its client has it.
const AT_ONCE_MAX: u64 = 64 * 1024;

/// Answers of a folder.
async fn folder(
    files: &Files,
    parts: &Parts,
    prefix: &[u8],
    rest: &[u8],
) -> Result<Response<Body>, Refused> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        let text = "static files are read by GET and HEAD";
        return Err(refused(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    let rest = String::from_utf8_lossy(rest);
    let mut bare = Request::new(());
    *bare.method_mut() = parts.method.clone();
    *bare.headers_mut() = parts.headers.clone();
    let rest = if rest.is_empty() { "/" } else { &rest };
    let mut response = files.answer(&bare, prefix, rest).await;
    if parts.method == Method::GET && sent(&parts.method, &response) > AT_ONCE_MAX {
        response.extensions_mut().insert(Streamed);
    }
    Ok(response)
}

fn nothing() -> Refused {
    refused(StatusCode::NOT_FOUND, "nothing is served here")
}

/// Answers of repositories.
async fn repository(
    blobs: &Blobs,
    access: &Access<'_>,
    rest: &[u8],
    query: &[u8],
    measured: &mut Measured,
) -> Result<Response<Body>, Refused> {
    let parts = access.parts;
    let asked = Blobs::asked(parts, rest, query)?;
    let denied = access.denied(&asked, measured).await?;
    let (mut response, times) = blobs.answer(parts, asked, &denied).await?;
    measured.read(times);
    if response.body().size_hint().exact().is_none() {
        response.extensions_mut().insert(Streamed);
    }
    Ok(response)
}

fn version(version: Version) -> filter::Version {
    match version {
        Version::HTTP_10 => filter::Version::Http10,
        Version::HTTP_2 => filter::Version::Http2,
        _ => filter::Version::Http11,
    }
}

fn protocol(version: Version) -> Protocol {
    match version {
        Version::HTTP_10 => Protocol::Http10,
        Version::HTTP_2 => Protocol::Http2,
        _ => Protocol::Http11,
    }
}

/// An app's answer as a response, if it is one.
fn answered(method: &Method, payload: Vec<u8>) -> Result<Response<Body>, Refused> {
    let payload = Bytes::from(payload);
    let read = Answered::decode(&payload).map_err(|_| no_response())?;
    let (response, judged) = response(method, &read, Some(read.body.len() as u64))?;
    let body = if judged.body { payload.slice_ref(read.body) } else { Bytes::new() };
    Ok(response.map(|()| whole(body)))
}

/// An answer whose body is not with it.
fn answering(method: &Method, mut begun: Begun, app: &App) -> Result<Response<Body>, Refused> {
    let head = Bytes::from(std::mem::take(&mut begun.head));
    let read = Answered::decode(&head).map_err(|_| no_response())?;
    let known = match begun.source {
        Source::Stream => None,
        Source::File => Some(begun.part.1),
        Source::Socket | Source::Connection => return Err(no_response()),
    };
    let (mut response, judged) = response(method, &read, known)?;
    let first = head.slice_ref(read.body);
    let body = AppBody::new(app, first, judged.length, begun);
    let body = body.map_err(|_| no_response())?;
    if !judged.body {
        // Nobody reads it, by which its app learns that there is to be none.
        return Ok(response.map(|()| whole(Bytes::new())));
    }
    response.extensions_mut().insert(Streamed);
    Ok(response.map(|()| Body::new(body)))
}

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// The scheme that an app is told, by which it knows a WebSocket.
fn scheme(secure: bool, websocket: bool) -> &'static [u8] {
    match (websocket, secure) {
        (false, false) => b"http",
        (false, true) => b"https",
        (true, false) => b"ws",
        (true, true) => b"wss",
    }
}

/// What an app has made of a request, as a response.
fn ended(
    method: &Method,
    handshake: Option<(Handshake<'_>, u64)>,
    outcome: Outcome,
    app: &App,
    taken: Option<&TakenOver>,
) -> Result<Response<Body>, Refused> {
    let begun = match outcome {
        Outcome::Answered(payload) => return answered(method, payload),
        Outcome::Begun(begun) => begun,
        Outcome::Failed(reason, text) => return Err(failed(app.name(), reason, &text)),
    };
    match (begun.source, handshake, taken) {
        (Source::Socket, Some((asked, message_bytes)), Some(taken)) => {
            accepting(asked, message_bytes, begun, app, taken)
        }
        (Source::Connection, _, Some(taken)) => hijacking(method, begun, app, taken),
        _ => answering(method, begun, app),
    }
}

/// A connection that an app takes over. The response stands for it in the log, and is not sent: what
/// is sent, if it has said anything, are these bytes.
fn hijacking(
    method: &Method,
    begun: Begun,
    app: &App,
    taken: &TakenOver,
) -> Result<Response<Body>, Refused> {
    let read = Answered::decode(&begun.head).map_err(|_| no_response())?;
    let (mut shown, mut head) = (Response::new(whole(Bytes::new())), Vec::new());
    *shown.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    if read.status == 101 {
        // Its `connection` and `upgrade` are for the client.
        append(&mut shown, read.headers.iter().copied(), &[])?;
    } else if read.status != 0 {
        let (judged, _) = response(method, &read, None)?;
        shown = judged.map(|()| whole(Bytes::new()));
        shown.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if read.status != 0 {
        let status = shown.status();
        let reason = status.canonical_reason().unwrap_or_default();
        head.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).as_bytes());
        for (name, value) in shown.headers() {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        head.extend_from_slice(b"\r\n");
    }
    shown.headers_mut().clear();
    shown.extensions_mut().insert(NoResponse);
    let (name, gap) = (app.name().to_owned(), app.timeout());
    let (socket, end) = (begun.body, begun.end);
    taken.give(Taken::Connection(Hijacked { name, head: head.into(), socket, gap, end }));
    Ok(shown)
}

/// Marks a response that is not sent.
#[derive(Debug, Clone, Copy)]
struct NoResponse;

/// A WebSocket that an app accepts: its connection is given over when this has been sent.
fn accepting(
    asked: Handshake<'_>,
    message_bytes: u64,
    begun: Begun,
    app: &App,
    taken: &TakenOver,
) -> Result<Response<Body>, Refused> {
    let read = Answered::decode(&begun.head).map_err(|_| no_response())?;
    let headers = || read.headers.iter().copied();
    let dropped = asked.check_accept(headers()).map_err(|_| no_response())?;
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    append(&mut response, headers(), &dropped)?;
    let key = HeaderValue::try_from(derive_accept_key(asked.key)).map_err(|_| no_response())?;
    let fields = response.headers_mut();
    fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(header::UPGRADE, WEBSOCKET);
    fields.insert(header::SEC_WEBSOCKET_ACCEPT, key);
    let (name, gap) = (app.name().to_owned(), app.timeout());
    let (socket, end) = (begun.body, begun.end);
    let accepted = Accepted { name, socket, gap, message_bytes, end };
    taken.give(Taken::WebSocket(accepted));
    Ok(response)
}

/// Adds an app's headers to a response, but for those at the places in `dropped`.
fn append<'a, B>(
    response: &mut Response<B>,
    headers: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    dropped: &[usize],
) -> Result<(), Refused> {
    for (place, (name, value)) in headers.enumerate() {
        if dropped.binary_search(&place).is_err() {
            let name = HeaderName::from_bytes(name).map_err(|_| no_response())?;
            let value = HeaderValue::from_bytes(value).map_err(|_| no_response())?;
            response.headers_mut().append(name, value);
        }
    }
    Ok(())
}

/// Marks a response whose bytes are counted as they are sent.
#[derive(Debug, Clone, Copy)]
struct Streamed;

fn no_response() -> Refused {
    refused(StatusCode::BAD_GATEWAY, "the app's answer is no response")
}

/// The head of a response whose body has `bytes`, if that is known.
fn response(
    method: &Method,
    read: &Answered<'_>,
    bytes: Option<u64>,
) -> Result<(Response<()>, Answer), Refused> {
    let is_head = *method == Method::HEAD;
    let headers = || read.headers.iter().copied();
    let judged = check_answer(read.status, headers(), bytes, is_head).map_err(|_| no_response())?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(read.status).map_err(|_| no_response())?;
    append(&mut response, headers(), &judged.dropped)?;
    if let Some(length) = judged.length {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok((response, judged))
}

/// What an app's failure is to whoever asked. Why it failed is for the log, not for strangers.
fn failed(name: &str, reason: Reason, text: &str) -> Refused {
    log::say(&format!("{name}: {}: {text}", reason.code()));
    match reason {
        Reason::Raised => refused(StatusCode::INTERNAL_SERVER_ERROR, "the app raised an error"),
        Reason::TimedOut => refused(StatusCode::GATEWAY_TIMEOUT, "the app took too long"),
        Reason::Busy => refused(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait"),
        Reason::Stopping => refused(StatusCode::SERVICE_UNAVAILABLE, "the site stops"),
        Reason::NotLoaded => refused(StatusCode::BAD_GATEWAY, "the app cannot be loaded"),
        Reason::Lost => refused(StatusCode::BAD_GATEWAY, "the app ended before it answered"),
        Reason::Cancelled
        | Reason::NoProgram
        | Reason::Untrusted
        | Reason::Config
        | Reason::Again
        | Reason::Malformed
        | Reason::NotKept
        | Reason::Context
        | Reason::NoHost => refused(StatusCode::BAD_GATEWAY, "the app did not answer"),
    }
}
