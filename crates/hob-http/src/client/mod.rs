//! The client of HTTP that hob asks others with: `hob check`, the rights of mounts, and what pushes
//! receipts.
//!
//! ```text
//!   request ─▶ an idle connection of the origin, or a new one ─▶ head ─▶ body, up to a bound
//!                       ▲                                                   │
//!                       └──────────────── whole, and kept alive ◀───────────┘
//! ```
//! Invariants: nothing waits without an end; a body is read up to a bound and not beyond; a request
//! is repeated once, and only if no byte of it can have left; no redirect is followed and no
//! cookie kept here: that is its user's decision. It asks for no encoding and decodes none.

pub mod posts;
mod tls;
pub mod turns;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Connections that wait, for each origin.
const IDLE_MAX: usize = 8;
/// So long a connection waits to be used again.
const IDLE: Duration = Duration::from_secs(90);
/// So long the addresses of a name are believed.
const NAMES: Duration = Duration::from_secs(10);

/// Where a request goes: scheme, host and port. What belongs to one origin is not told to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// In lower case; an IPv6 address without its brackets.
    host: String,
    port: u16,
    /// Whether it is asked by TLS.
    is_secure: bool,
}

/// An address of HTTP, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Who is asked.
    pub origin: Origin,
    /// The path and the query, as they are sent.
    pub target: String,
}

impl Url {
    /// Reads `http[s]://HOST[:PORT][/PATH][?QUERY]`; a fragment is left out, since none is ever sent.
    ///
    /// # Errors
    /// What is wrong with it, in words, without the address itself: it may hold a secret.
    pub fn parse(text: &str) -> Result<Url, String> {
        let text = text.split('#').next().unwrap_or_default();
        let uri: Uri = text.parse().map_err(|error| format!("no address: {error}"))?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(other) => return Err(format!("`{other}` is no scheme of the web")),
            None => return Err("an address begins with http:// or https://".to_owned()),
        };
        let authority = uri.authority().ok_or("an address has a host")?;
        if authority.as_str().contains('@') {
            return Err("a user's name does not stand in an address: use a profile".to_owned());
        }
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        if host.is_empty() {
            return Err("an address has a host".to_owned());
        }
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let target = if target.starts_with('?') { format!("/{target}") } else { target.to_owned() };
        let port = authority.port_u16().unwrap_or(usual_port(is_secure));
        Ok(Url { origin: Origin { host, port, is_secure }, target })
    }

    /// The path without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_secure { "https://" } else { "http://" })?;
        f.write_str(&self.authority())
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.origin, self.target)
    }
}

fn usual_port(is_secure: bool) -> u16 {
    if is_secure { 443 } else { 80 }
}

impl Origin {
    /// Whether it is asked by TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// `HOST[:PORT]`, as the header `Host` has it.
    #[must_use]
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual_port(self.is_secure) { host } else { format!("{host}:{}", self.port) }
    }
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method, in upper case.
    pub method: String,
    /// Where.
    pub url: Url,
    /// Headers beside `Host` and `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers in their order; the names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, up to the bound.
    pub body: Vec<u8>,
    /// Whether the body goes on after the bound.
    pub cut: bool,
    /// From before the connection, if one had to be made, to the last byte.
    pub took: Duration,
}

impl Answer {
    /// The first value of a header, named in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name has no address.
    #[error("{host}: no address: {error}")]
    Name {
        /// The host.
        host: String,
        /// What the resolver said.
        error: std::io::Error,
    },
    /// Nothing listens, or it cannot be reached.
    #[error("cannot connect to {to}: {error}")]
    Connect {
        /// Host and port.
        to: String,
        /// What the system said of the last address.
        error: std::io::Error,
    },
    /// Who answers cannot be trusted, or speaks no TLS.
    #[error("no TLS with {to}: {what}")]
    Tls {
        /// Host and port.
        to: String,
        /// Why.
        what: String,
    },
    /// The time has passed.
    #[error("no whole answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// What was asked is no request.
    #[error("no request of HTTP: {0}")]
    Asked(String),
    /// The connection ended, or what came is no HTTP.
    #[error("{0}")]
    Broken(String),
}

/// The client: one for a process.
#[derive(Debug, Default)]
pub struct Client {
    idle: Mutex<HashMap<Origin, Vec<Idle>>>,
    names: Mutex<HashMap<Origin, (Instant, Vec<SocketAddr>)>>,
}

#[derive(Debug)]
struct Idle {
    since: Instant,
    sender: Sender,
}

type Sender = SendRequest<Full<Bytes>>;

/// No lock is held while anything is awaited.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// A client without connections.
    #[must_use]
    pub fn new() -> Client {
        Client::default()
    }

    /// Asks, within this time and up to so many bytes of body.
    ///
    /// # Errors
    /// There is no whole answer.
    pub async fn ask(
        &self,
        asked: &Asked,
        within: Duration,
        body_max: usize,
    ) -> Result<Answer, Error> {
        let request = request(asked)?;
        let begun = Instant::now();
        let answered = timeout(within, self.answered(asked, request, body_max)).await;
        let mut answer = answered.map_err(|_| Error::Late(within))??;
        answer.took = begun.elapsed();
        Ok(answer)
    }

    async fn answered(
        &self,
        asked: &Asked,
        request: Request<Full<Bytes>>,
        body_max: usize,
    ) -> Result<Answer, Error> {
        let origin = &asked.url.origin;
        let (mut sender, request) = match self.take(origin).await {
            Some(sender) => (sender, request),
            None => (self.connect(origin).await?, request),
        };
        let response = match sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => match error.take_message() {
                // It never left: the connection had ended while it waited.
                Some(request) => {
                    sender = self.connect(origin).await?;
                    sender.send_request(request).await.map_err(|error| broken(&error))?
                }
                None => return Err(broken(error.error())),
            },
        };
        let answer = read(response, body_max).await?;
        if !answer.cut && !sender.is_closed() {
            self.keep(origin, sender);
        }
        Ok(answer)
    }

    /// A connection that waits and still stands.
    async fn take(&self, origin: &Origin) -> Option<Sender> {
        loop {
            let idle = lock(&self.idle).get_mut(origin)?.pop()?;
            let mut sender = idle.sender;
            if idle.since.elapsed() < IDLE && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    fn keep(&self, origin: &Origin, sender: Sender) {
        let mut idle = lock(&self.idle);
        let waiting = idle.entry(origin.clone()).or_default();
        if waiting.len() < IDLE_MAX {
            waiting.push(Idle { since: Instant::now(), sender });
        }
    }

    async fn connect(&self, origin: &Origin) -> Result<Sender, Error> {
        let mut last = std::io::Error::other("the name has no address");
        for address in self.addresses(origin).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // A small request is not to wait for the acknowledgement of its first part.
                    let _ = stream.set_nodelay(true);
                    if !origin.is_secure {
                        return shake(stream).await;
                    }
                    let secured = tls::connect(&origin.host, stream).await;
                    let to = || origin.authority();
                    let stream = secured.map_err(|what| Error::Tls { to: to(), what })?;
                    return shake(stream).await;
                }
                Err(error) => last = error,
            }
        }
        Err(Error::Connect { to: origin.authority(), error: last })
    }

    async fn addresses(&self, origin: &Origin) -> Result<Vec<SocketAddr>, Error> {
        if let Some((since, known)) = lock(&self.names).get(origin)
            && since.elapsed() < NAMES
        {
            return Ok(known.clone());
        }
        let found = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await;
        let found = found.map_err(|error| Error::Name { host: origin.host.clone(), error })?;
        let found: Vec<SocketAddr> = found.collect();
        lock(&self.names).insert(origin.clone(), (Instant::now(), found.clone()));
        Ok(found)
    }
}

/// Speaks HTTP on a connection; its end is told by the sender.
async fn shake<S>(stream: S) -> Result<Sender, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|error| broken(&error))?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

fn request(asked: &Asked) -> Result<Request<Full<Bytes>>, Error> {
    let wrong = |text: &str| Error::Asked(text.to_owned());
    let method = Method::from_bytes(asked.method.as_bytes()).map_err(|_| wrong("the method"))?;
    let target: Uri = asked.url.target.parse().map_err(|_| wrong("the path"))?;
    let mut request = Request::new(Full::new(Bytes::from(asked.body.clone())));
    *request.method_mut() = method;
    *request.uri_mut() = target;
    let headers = request.headers_mut();
    let host = HeaderValue::from_str(&asked.url.origin.authority());
    headers.insert(HOST, host.map_err(|_| wrong("the host"))?);
    for (name, value) in &asked.headers {
        let told = HeaderName::from_bytes(name.as_bytes());
        let told = told.map_err(|_| Error::Asked(format!("the header's name `{name}`")))?;
        // A value may be a secret: only the name is told.
        let value = HeaderValue::from_bytes(value.as_bytes());
        let value = value.map_err(|_| Error::Asked(format!("the value of the header `{name}`")))?;
        if told == HOST {
            headers.insert(HOST, value);
        } else {
            headers.append(told, value);
        }
    }
    Ok(request)
}

async fn read(response: Response<hyper::body::Incoming>, body_max: usize) -> Result<Answer, Error> {
    let status = response.status().as_u16();
    let headers = response.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    let headers = headers.collect();
    let (mut body, mut cut) = (Vec::new(), false);
    let mut incoming = response.into_body();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        let room = body_max - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Answer { status, headers, body, cut, took: Duration::ZERO })
}

/// hyper's errors, with what caused them.
fn broken(error: &hyper::Error) -> Error {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    Error::Broken(format!("{error}{}", cause.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_or_refused_without_being_told() {
        let url = Url::parse("http://Example.org:8080/a?b=c#d").unwrap();
        assert_eq!(
            (url.to_string().as_str(), url.path(), url.origin.authority().as_str()),
            ("http://example.org:8080/a?b=c", "/a", "example.org:8080")
        );
        assert_eq!(Url::parse("http://[::1]:81").unwrap().to_string(), "http://[::1]:81/");
        assert_eq!(Url::parse("http://h?q").unwrap().target, "/?q");
        assert!(Url::parse("http://[::1]/").unwrap().origin.is_loopback());
        assert!(!Url::parse("http://127.0.0.1.example.org/").unwrap().origin.is_loopback());
        let secure = Url::parse("https://h:443/").unwrap();
        assert_eq!(
            (secure.to_string().as_str(), secure.origin.authority()),
            ("https://h/", "h".into())
        );
        assert_ne!(secure.origin, Url::parse("http://h:443/").unwrap().origin);
        let wrong = ["ftp://h/", "/a", "h", "http://u:secret@h/", "http:///a", ""];
        for text in wrong {
            let error = Url::parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
