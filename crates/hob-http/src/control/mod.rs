//! What whoever runs a site asks its front: is it alive, is it ready, what has it counted.
//!
//! It is HTTP on a socket that only the site's user reaches, and on an address only if one is asked
//! for. It has no part in what the site serves: it goes on answering while the site stops, and a
//! site that is full does not make it wait.

pub(crate) mod meter;
mod metrics;
pub(crate) mod slow;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hob_core::status::Status;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

use self::meter::Meter;
use self::metrics::Text;
use crate::body::{Body, plain};

/// Who asks more at one time waits.
const CONNECTIONS_MAX: usize = 32;
const HEAD_TIME: Duration = Duration::from_secs(5);

/// Where a front is asked how it is, and whom it asks in turn.
pub struct Control {
    /// A socket that only the site's user reaches.
    pub socket: std::os::unix::net::UnixListener,
    /// An address, if one is asked for: whoever reaches it may ask.
    pub address: Option<std::net::TcpListener>,
    /// Asks the loop; `None`: it does not answer. May wait; called in a thread of its own.
    pub status: Arc<dyn Fn() -> Option<Status> + Send + Sync>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Asked {
    meter: Arc<Meter>,
    status: Arc<dyn Fn() -> Option<Status> + Send + Sync>,
    room: Semaphore,
    own: Own,
}

/// What only who serves the site may have it do.
pub(crate) struct Own {
    /// Forgets rights.
    pub(crate) forget: Forget,
    /// Writes the lines of the access log that wait.
    pub(crate) flush: Flush,
}

/// Resolves once they are written.
pub(crate) type Flush = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Forgets the rights of a user, or of all; how many mounts have some.
pub(crate) type Forget = Box<dyn Fn(Option<&str>) -> usize + Send + Sync>;

/// Answers until the runtime ends.
pub(crate) fn begin(control: Control, meter: Arc<Meter>, own: Own) -> io::Result<()> {
    let room = Semaphore::new(CONNECTIONS_MAX);
    let asked = Arc::new(Asked { meter, status: control.status, room, own });
    control.socket.set_nonblocking(true)?;
    let socket = UnixListener::from_std(control.socket)?;
    let of_socket = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let accepted = socket.accept().await.map(|(stream, _)| stream);
            take(accepted, &of_socket, true).await;
        }
    });
    let Some(address) = control.address else { return Ok(()) };
    address.set_nonblocking(true)?;
    let address = TcpListener::from_std(address)?;
    tokio::spawn(async move {
        loop {
            let accepted = address.accept().await.map(|(stream, _)| stream);
            take(accepted, &asked, false).await;
        }
    });
    Ok(())
}

async fn take<S>(accepted: io::Result<S>, asked: &Arc<Asked>, is_own: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(stream) = accepted else {
        // Out of descriptors, or a peer that left at once.
        return tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let asked = Arc::clone(asked);
    tokio::spawn(async move {
        let Ok(_permit) = asked.room.acquire().await else { return };
        let service = service_fn(|request| {
            let asked = Arc::clone(&asked);
            async move { Ok::<_, std::convert::Infallible>(answer(&request, &asked, is_own).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        // A peer that breaks off is no fault of ours.
        let _ = connection.await;
    });
}

async fn answer<B>(request: &Request<B>, asked: &Asked, is_own: bool) -> Response<Body> {
    if request.method() == Method::POST && is_own {
        match request.uri().path() {
            FORGET => return forget(request, asked),
            FLUSH => {
                (asked.own.flush)().await;
                return plain(StatusCode::OK, "written\n");
            }
            _ => {}
        }
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "GET /health, /ready, /metrics, /status\n");
    }
    match request.uri().path() {
        "/health" => {
            state(asked.loop_status().await.is_some(), "alive", "the loop does not answer")
        }
        "/ready" if !asked.meter.accepts() => state(false, "", "the site stops"),
        "/ready" => state(asked.loop_status().await.is_some(), "ready", "the loop does not answer"),
        "/metrics" => {
            let accept = request.headers().get_all(header::ACCEPT).iter();
            let accept: Vec<&str> = accept.filter_map(|each| each.to_str().ok()).collect();
            let form = Text::wanted(&accept.join(","));
            match metrics::text(&asked.meter, asked.loop_status().await, form) {
                Ok(text) => typed(&text, form.kind()),
                Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "no metrics can be written\n"),
            }
        }
        "/status" => match serde_json::to_string(&asked.meter.counts()) {
            Ok(text) => typed(&text, "application/json"),
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "no status can be written\n"),
        },
        _ => plain(StatusCode::NOT_FOUND, "there are /health, /ready, /metrics and /status\n"),
    }
}

/// Forgets what is known of rights: of the user whose header `hob-user` has it in hex, or of all.
/// Only on the socket that the site's user alone reaches.
const FORGET: &str = "/rights/forget";
/// Writes the lines of the access log that wait to be written together.
const FLUSH: &str = "/log/flush";

fn forget<B>(request: &Request<B>, asked: &Asked) -> Response<Body> {
    let user = match request.headers().get(USER) {
        None => None,
        Some(value) => {
            let text = data_encoding::HEXLOWER.decode(value.as_bytes()).ok();
            let Some(text) = text.and_then(|bytes| String::from_utf8(bytes).ok()) else {
                return plain(StatusCode::BAD_REQUEST, "hob-user is who it is, in hex\n");
            };
            Some(text)
        }
    };
    let count = (asked.own.forget)(user.as_deref());
    plain(StatusCode::OK, &format!("{count}\n"))
}

/// The header that names a user.
const USER: &str = "hob-user";

fn state(good: bool, word: &str, else_: &str) -> Response<Body> {
    let (status, text) =
        if good { (StatusCode::OK, word) } else { (StatusCode::SERVICE_UNAVAILABLE, else_) };
    plain(status, &format!("{text}\n"))
}

fn typed(text: &str, kind: &'static str) -> Response<Body> {
    let mut response = plain(StatusCode::OK, text);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

impl Asked {
    async fn loop_status(&self) -> Option<Status> {
        let status = Arc::clone(&self.status);
        tokio::task::spawn_blocking(move || status()).await.ok().flatten()
    }
}
