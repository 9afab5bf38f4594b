//! The start and the end of a daemon.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hob_core::supervisor::Supervisor;
use hob_os::process::limits;
use hob_os::process::near::Near;
use hob_os::{build_id, clock, signals, spawn, uds};
use hob_wire::call::Hello;
use hob_wire::frame::Kind;
use tokio::sync::mpsc;

use crate::around::Around;
use crate::calls::Calls;
use crate::channel::{self, Listener, Reader};
use crate::config::{Config, StartAs, Tells};
use crate::fronts::Front;
use crate::fronts::local::{Accepting, take_own};
use crate::hosts::Hosts;
use crate::inputs::{INBOX_MAX, Input};
use crate::messages::Messages;
use crate::outbox::Outbox;
use crate::recorder::push::Push;
use crate::recorder::{Recorder, ring};
use crate::run::{Daemon, log};
use crate::sessions::Sessions;
use crate::sets::Sets;
use crate::socket::{ListenError, Socket};
use crate::warm::Warm;
use crate::warm::fresh::Fingerprints;
use crate::warm::programs::Programs;
use crate::warm::resolutions::Resolutions;
use crate::workers::processes::Processes;
use crate::workers::runtimes::Runtimes;

/// Why a daemon did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The socket cannot be had. That another daemon has it is no failure for who asked for one.
    #[error("{0}")]
    Listen(String),
    /// Another daemon serves already.
    #[error("{0}")]
    Running(String),
    /// The system refused.
    #[error("cannot run the daemon: {0}")]
    System(#[from] std::io::Error),
}

/// How long another build's daemon may take to give up its socket.
const RELEASE_WAIT: Duration = Duration::from_secs(5);
/// Connections of the daemon's own parts to its front that are not taken yet.
const OWN_CALLS_MAX: usize = 64;

/// Runs a daemon until it is stopped or idle for long enough. Says that it is ready on the
/// descriptor that its starter left, if there is one.
pub fn run(config: Config) -> Result<(), DaemonError> {
    // Before any caller's environment comes.
    hob_os::arena::wipe_what_is_freed();
    let ready = spawn::readiness();
    // What came while it stood still may be older than its asker's patience.
    signals::hold_sigcont().map_err(std::io::Error::from)?;
    limits::raise_nofile();
    let near = Arc::new(Near::default());
    let (begins, ended) = (Arc::clone(&near), Arc::clone(&near));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || begins.wait_begins())
        .on_thread_unpark(move || ended.wait_ended())
        .build()
        .map_err(|error| {
            let text = format!("the system refuses epoll or eventfd, by which it waits: {error}");
            std::io::Error::new(error.kind(), text)
        })?;
    let result = runtime.block_on(async {
        if config.start == StartAs::Replacement {
            replace(&config).await;
        }
        let socket = Socket::listen(&config.directory)?;
        log::begin(&config.directory, config.user_config.as_deref());
        serve(config, socket, near, ready).await
    });
    // A blocking thread may sit in a slow read of `/proc`; nobody waits for it.
    runtime.shutdown_background();
    result
}

async fn serve(
    config: Config,
    mut socket: Socket,
    near: Arc<Near>,
    ready: Option<rustix::fd::OwnedFd>,
) -> Result<(), DaemonError> {
    let (inbox, inputs) = mpsc::channel(INBOX_MAX);
    let recorder = Arc::new(recorder(&config));
    let build = build_id::own();
    let listener = socket.take_listener().ok_or(std::io::ErrorKind::NotConnected);
    let listener = Listener::new(listener.map_err(std::io::Error::from)?)?;
    let around = Arc::new(Around::own());
    let (own_calls, own) = mpsc::channel(OWN_CALLS_MAX);
    let sets = Sets::new(own_calls, Arc::clone(&recorder), inbox.clone());
    let front = Front {
        build,
        owner: inbox.clone(),
        recorder: Arc::clone(&recorder),
        around: Arc::clone(&around),
        sets: sets.clone(),
    };
    let runtimes = Runtimes::write(&config.directory, config.state_dir.as_deref())?;
    if config.notes_spans {
        ring::begin(&config.directory);
    }
    let processes =
        Processes::new(runtimes, inbox.clone(), &config.directory, near, config.prints)?;
    tokio::spawn(take_own(own, front.clone()));
    let accepting = Accepting::begin(listener, front);
    let outbox = outbox(&config, inbox.clone());
    let hosts = Hosts::start(config.connect, config.user_config.as_deref(), inbox.clone());
    let messages = Messages::new(outbox, config.mounts, hosts);
    let sessions =
        Sessions::new(&config.directory, config.sessions, Arc::clone(&recorder), inbox.clone());
    let mut daemon = Daemon {
        budget_kib: config.limits.budget_kib,
        core: Supervisor::new(config.limits),
        processes,
        calls: Calls::new(Arc::clone(&around), config.directory),
        warm: Warm {
            programs: Programs::new(recorder.cold_times().clone()),
            fresh: Fingerprints::new(),
            resolutions: Resolutions::default(),
        },
        recorder,
        socket,
        around,
        sessions,
        sets,
        started_ns: clock::now_ns(),
        readings: Vec::new(),
        build,
        events: VecDeque::new(),
        leaving: false,
        accepting: Some(accepting),
        inbox,
        flushes: Vec::new(),
        runs: Vec::new(),
        messages,
        home: config.home,
        retired: false,
    };
    daemon.offer_programs();
    if let Some(ready) = ready {
        // Whoever started us may have left; that is its business.
        let _ = rustix::io::write(&ready, b"\n");
    }
    // A task of its own, which what it hears puts next in line: what the runtime itself waits for
    // comes after one more look at all connections.
    let result = match tokio::spawn(daemon.run(inputs)).await {
        Ok(ended) => ended.map_err(DaemonError::from),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    // Who asked an idle daemon to stop has its answer in the hands of a task that has not run.
    tokio::task::yield_now().await;
    result
}

fn outbox(config: &Config, inbox: mpsc::Sender<Input>) -> Outbox {
    match config.tells {
        Tells::OfDaemon => Outbox::of_site(),
        Tells::Kept => Outbox::start(
            config.home.as_deref(),
            // A loop that has ended hears nothing any more.
            Box::new(move |done| _ = inbox.blocking_send(Input::Outbox(done))),
        ),
    }
}

fn recorder(config: &Config) -> Recorder {
    let configured = config.push.zip(config.user_config.as_deref());
    let push = configured.and_then(|(open, path)| Push::start(open, path, &config.directory));
    Recorder::pushing(config.state_dir.as_deref(), push)
}

/// Asks the daemon that has the socket to give it up, and waits until it has.
async fn replace(config: &Config) {
    let path = config.directory.join("socket");
    let ask = async {
        let stream = channel::adopt(uds::connect(&path)?)?;
        let hello = Hello { build: build_id::own(), pid: std::process::id() };
        let body = br#"{"verb":"replace"}"#;
        let mut bytes =
            channel::encode(Kind::Hello, 0, |out| hello.encode(out)).unwrap_or_default();
        bytes.extend(
            channel::encode(Kind::Control, 0, |out| out.extend_from_slice(body))
                .unwrap_or_default(),
        );
        channel::send(&stream, bytes, &[])?;
        // The answer itself does not matter: when it comes, or the connection ends, the name is
        // free, and the lock tells whether it really is.
        let _ = Reader::new(stream).next().await;
        Ok::<(), std::io::Error>(())
    };
    let _ = tokio::time::timeout(RELEASE_WAIT, ask).await;
}

impl From<ListenError> for DaemonError {
    fn from(error: ListenError) -> Self {
        match error {
            ListenError::Taken(_) => DaemonError::Running(error.to_string()),
            ListenError::Directory { .. } | ListenError::System { .. } => {
                DaemonError::Listen(error.to_string())
            }
        }
    }
}
