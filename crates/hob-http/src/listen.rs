//! Connections: accepted, bounded, heard by hyper, and let end when the site stops.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use hob_core::http::forwarded::Proxies;
use hob_core::http::limits::Limits;
use hob_core::http::mounts::Mounts;
use hob_core::log::Category;
use hob_wire::message::Attach;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};

use crate::answer::{Beside, Front, Mounted, Served, ServedApp, Taken, TakenOver};
use crate::blobs::Blobs;
use crate::connection::checked::{Checked, Heard, Signals};
use crate::connection::socket::{Accepting, Listener, Stream};
use crate::control::meter::Meter;
use crate::control::slow::Slow;
use crate::control::{self, Control};
use crate::files::Files;
use crate::hijack;
use crate::http2;
use crate::link::served::Telling;
use crate::link::{App, Link};
use crate::log::{Log, Logs};
use crate::rights::{self, Rights};
use crate::websocket;

/// Connections at one time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 10_000;
/// When a site stops, its last lines of log may take this long, and its last words to the loop.
const LOG_TIME: Duration = Duration::from_secs(1);
/// When a site stops, requests that are being answered may take this long.
const DRAIN_TIME: Duration = Duration::from_secs(15);

/// What is served at one prefix.
#[derive(Debug, Clone)]
pub enum Mount {
    /// An app: the loop knows it by the mount's path.
    App {
        /// From a request's arrival to its answer, in microseconds.
        timeout_us: u64,
        /// The most bytes of a request's body.
        body_bytes: u64,
        /// The most bytes of a message that comes on a WebSocket; `None`: it takes no WebSockets.
        message_bytes: Option<u64>,
        /// The most bytes of an answer in pieces that wait for their client.
        answer_bytes: u64,
        /// Where its workers take one request after another: how many there may be, and how many
        /// requests may wait for them.
        shared: Option<(u32, u32)>,
        /// Whether each client has a worker of its own, by a cookie.
        by_client: bool,
    },
    /// Files.
    Static {
        /// Their folder.
        root: PathBuf,
        /// The file in it that answers for what is not there.
        fallback: Option<String>,
        /// What caches are told of them.
        cache_control: Option<String>,
        /// The names with a dot at their begin that are served; all others are not.
        dot_files: Vec<String>,
    },
    /// Files of revisions of repositories.
    Git {
        /// The directory that has the repositories.
        root: PathBuf,
        /// On what terms they are read.
        terms: hob_git::Terms,
        /// How many are read at one time.
        jobs: usize,
        /// How many requests may wait.
        queue: usize,
    },
}

/// What is served.
#[derive(Debug)]
pub struct Site<'a> {
    /// The mounts, by their paths.
    pub mounts: BTreeMap<String, Mount>,
    /// The rights of those that have some.
    pub rights: BTreeMap<String, rights::Terms>,
    /// The socket of the loop that has the apps.
    pub socket: &'a Path,
    /// This build.
    pub build: [u8; 16],
    /// Where the site lies, and the environment that its apps are found with.
    pub attach: Attach,
    /// The bounds of a request.
    pub limits: Limits,
    /// The proxies that are believed.
    pub proxies: Proxies,
    /// Where its access log goes.
    pub log: Logs,
    /// Where it listens, for who asks.
    pub listens: Vec<String>,
    /// Where it is asked how it is.
    pub control: Control,
}

/// Serves until SIGTERM or SIGINT comes or the loop ends, and what is being answered has ended.
/// Calls the first function when requests are accepted and signals are heard, the second one when no
/// more are, each once; and `hangup` for each SIGHUP, which must not wait.
///
/// # Errors
/// If the loop cannot be reached, or a mount's path cannot be one.
pub fn run(
    listeners: Vec<Listener>,
    site: Site<'_>,
    ready: impl FnOnce(),
    stops: impl FnOnce(),
    hangup: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut hangups = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                hangup();
            }
        });
        serve(listeners, site, ready, stops).await
    })
}

async fn serve(
    listeners: Vec<Listener>,
    site: Site<'_>,
    ready: impl FnOnce(),
    stops: impl FnOnce(),
) -> std::io::Result<()> {
    let (stopping, stop) = watch::channel(false);
    let meter = Arc::new(Meter::new(site.listens, site.mounts.keys()));
    let link = Link::connect(site.socket, site.build, &site.attach).await?;
    let (mounts, all_rights) = mounted(site.mounts, site.rights, &meter, &link)?;
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let looped = link.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = looped.ended() => {}
        }
        let _ = stopping.send(true);
    });
    let listeners: Vec<Accepting> =
        listeners.into_iter().map(Accepting::new).collect::<Result<_, _>>()?;
    let (log, written) = Log::begin(site.log, &meter.lines_dropped, &meter.log_fault)?;
    let forget = move |user: Option<&str>| {
        let who = user.map(|user| rights::who(Some(user)));
        hob_os::debug!(
            Category::Rights,
            "those of {} are forgotten",
            user.map_or("all users", |_| "one user")
        );
        all_rights.iter().for_each(|each: &Arc<Rights>| each.forget(who.as_ref()));
        all_rights.len()
    };
    let lines = log.clone();
    let flush: control::Flush = Box::new(move || {
        let lines = lines.clone();
        Box::pin(async move { lines.flush().await })
    });
    let own = control::Own { forget: Box::new(forget), flush };
    control::begin(site.control, Arc::clone(&meter), own)?;
    let (limits, proxies) = (site.limits, site.proxies);
    let front = Arc::new(Front { mounts, link, limits, proxies, log, meter });
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    front.meter.set_accepts(true);
    ready();
    let mut accepting = tokio::task::JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, Arc::clone(&front), Arc::clone(&room), stop.clone()));
    }
    // Each ends when the site stops.
    while let Some(ended) = accepting.join_next().await {
        ended.map_err(std::io::Error::other)??;
    }
    front.meter.set_accepts(false);
    stops();
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(DRAIN_TIME, room.acquire_many(all)).await;
    let _ = tokio::time::timeout(LOG_TIME, front.link.flush()).await;
    // The log's threads end with the last who could write a line; or nobody reads what they write.
    drop(front);
    let all_written = async {
        for each in written {
            let _ = each.await;
        }
    };
    let _ = tokio::time::timeout(LOG_TIME, all_written).await;
    Ok(())
}

/// What is served, and the rights of it.
fn mounted(
    all: BTreeMap<String, Mount>,
    mut terms: BTreeMap<String, rights::Terms>,
    meter: &Meter,
    link: &Link,
) -> std::io::Result<(Mounts<Mounted>, Vec<Arc<Rights>>)> {
    let (mut mounts, mut all_rights) = (Mounts::default(), Vec::new());
    for (path, mount) in all {
        let rights = terms.remove(&path).map(Rights::new);
        all_rights.extend(rights.clone());
        let tally = meter.tally(&path);
        let served = match mount {
            Mount::App {
                timeout_us,
                body_bytes,
                message_bytes,
                answer_bytes,
                shared,
                by_client,
            } => {
                let waiting = &tally.waiting;
                let app = App::new(path.clone(), timeout_us, answer_bytes, shared, waiting);
                Served::App(ServedApp { app, body_bytes, message_bytes, by_client })
            }
            Mount::Static { root, fallback, cache_control, dot_files } => {
                // A cache that others share must not have what rights are for.
                let private = rights.is_some().then(|| "private, no-cache".to_owned());
                let cache_control = cache_control.or(private);
                let files =
                    Files::new(root, fallback.as_deref(), cache_control.as_deref(), dot_files);
                Served::Files(files, Telling::new(link, &path))
            }
            Mount::Git { root, terms, jobs, queue } => {
                let blobs = Blobs::new(root, terms, jobs, queue, rights.is_some());
                Served::Blobs(blobs, Telling::new(link, &path))
            }
        };
        let mounted = Mounted { served, tally, rights };
        mounts.insert(&path, mounted).map_err(std::io::Error::other)?;
    }
    Ok((mounts, all_rights))
}

/// Takes connections at one place until the site stops.
async fn accept(
    listener: Accepting,
    front: Arc<Front>,
    room: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let local = listener.local()?;
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.map_err(std::io::Error::other)?;
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        match accepted {
            Ok((stream, peer)) => {
                let (front, stop) = (Arc::clone(&front), stop.clone());
                tokio::spawn(async move {
                    connection(stream, peer, local, front, stop).await;
                    drop(permit);
                });
            }
            // Out of descriptors, or a peer that left at once: others are not to wait for it.
            Err(error) => {
                hob_os::debug!(Category::Front, "no connection is accepted: {error}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

async fn connection(
    stream: Stream,
    peer: SocketAddr,
    local: SocketAddr,
    front: Arc<Front>,
    mut stop: watch::Receiver<bool>,
) {
    let (limits, meter) = (front.limits, Arc::clone(&front.meter));
    let _connected = meter.connection();
    let taken = Arc::<TakenOver>::default();
    let (slow, signals) = (Slow::default(), Signals::default());
    let given = Some(Arc::clone(&taken));
    let beside = Beside { local, peer, taken: given, signals: signals.clone(), slow: slow.clone() };
    let checked = Checked::new(stream, limits, signals.clone());
    let count = |slow: &Slow| {
        if signals.stalled.load(Ordering::Relaxed) {
            slow.reached();
        }
    };
    let second = Arc::clone(&front);
    let service = service_fn(move |request| {
        let (front, beside) = (Arc::clone(&front), beside.clone());
        Box::pin(async move { front.answer(request, &beside).await })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.head_ms))
        .serve_connection(TokioIo::new(checked), service);
    let mut told = false;
    loop {
        tokio::select! {
            // A peer that breaks off is none of our faults.
            () = poll_fn(|context| {
                let ends = connection.poll_without_shutdown(context).is_ready();
                // A hijacked connection is hyper's until it has passed on what came before.
                let taken = taken.is_hijacked() && !signals.unwritten.load(Ordering::Relaxed);
                if ends || taken { Poll::Ready(()) } else { Poll::Pending }
            }) => break,
            _ = stop.wait_for(|stop| *stop), if !told => {
                told = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    }
    // Before its client can know that it has ended.
    count(&slow);
    let parts = connection.into_parts();
    let stream = parts.io.into_inner();
    match taken.take() {
        Some(Taken::WebSocket(accepted)) => {
            let ping = Duration::from_millis(limits.ping_ms);
            // What few connections become is not to make all others large.
            let run = websocket::run(stream, parts.read_buf, accepted, ping, &mut stop);
            Box::pin(run).await;
        }
        Some(Taken::Connection(hijacked)) => {
            let stream = stream.raw(Heard::default());
            Box::pin(hijack::run(stream, parts.read_buf, hijacked, &mut stop)).await;
        }
        None if stream.is_http2() => {
            let slow = slow.clone();
            let beside = Beside { local, peer, taken: None, signals: Signals::default(), slow };
            let run = http2::run(stream.into_http2(), beside, second, &mut stop);
            Box::pin(run).await;
        }
        None => {
            if let Some(status) = stream.finish().await {
                meter.refused_head(status);
            }
        }
    }
    count(&slow);
}
