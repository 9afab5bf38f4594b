//! Finding the daemon: the socket's directory, the connection, the peer; and starting a daemon
//! where there is none. Each failure has the reason code of a fallback.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use hob_os::clock::rare as clock;
use hob_os::spawn::{self, Session};
use hob_os::start::Start;
use hob_os::{dir, uds};
use hob_wire::caller::Fault;

use crate::fallback::FallbackReason;

/// How long a call may wait for hob in all: to connect, to start a daemon, to send, to be answered.
/// With what a fallback takes beside, a call is at most 60 ms later than without hob.
pub const BUDGET_MS: u64 = 55;
/// How much of that a connection may take, from the first attempt.
pub const CONNECT_MS: u64 = 10;
/// How much of that a daemon that was just started may take until it is ready.
pub const START_MS: u64 = 40;

/// Why there is no daemon to talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody listens, and none could be started in time.
    NoDaemon,
    /// The system refuses a socket here, or to write in its directory: a daemon that was started here
    /// could not begin.
    Sandbox,
    /// The listener's queue stayed full.
    ConnectTimeout,
    /// Connected, and no answer came in time.
    NoAnswer,
    /// The daemon is another build.
    OtherBuild,
    /// The socket's directory is not a private one of ours.
    UnsafeDir(dir::Unsafe),
    /// The process at the other end belongs to somebody else.
    PeerUid,
    /// Descriptors beyond 0 to 2 are open, or one of these is closed.
    Descriptors,
    /// This process is traced.
    Traced,
    /// The system refuses what a call takes, or a child that is watched.
    SystemRefuses,
    /// argv and environment are larger than a frame.
    TooLarge,
    /// The daemon ended the connection before the call was given.
    DaemonClosed,
    /// The daemon answered with bytes that are not hob's.
    Protocol,
}

impl Trouble {
    /// The reason as a fallback's line carries it.
    #[must_use]
    pub fn reason(self) -> FallbackReason {
        match self {
            Trouble::NoDaemon => FallbackReason::NoDaemon,
            Trouble::Sandbox => FallbackReason::Sandbox,
            Trouble::ConnectTimeout => FallbackReason::ConnectTimeout,
            Trouble::NoAnswer => FallbackReason::NoAnswer,
            Trouble::OtherBuild => FallbackReason::OtherBuild,
            Trouble::UnsafeDir(_) => FallbackReason::SocketDirUnsafe,
            Trouble::PeerUid => FallbackReason::PeerUid,
            Trouble::Descriptors => FallbackReason::Descriptors,
            Trouble::Traced => FallbackReason::Traced,
            Trouble::SystemRefuses => FallbackReason::SystemRefuses,
            Trouble::TooLarge => FallbackReason::TooLarge,
            Trouble::DaemonClosed => FallbackReason::DaemonClosed,
            Trouble::Protocol => FallbackReason::Protocol,
        }
    }
}

/// A fault of the daemon's as the reason of a fallback.
impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        match fault {
            Fault::OtherBuild => Trouble::OtherBuild,
            Fault::Malformed => Trouble::Protocol,
            Fault::Closed => Trouble::DaemonClosed,
        }
    }
}

/// The socket's directory for this environment.
#[must_use]
pub fn directory(start: &Start) -> PathBuf {
    dir::location(start.variable(b"HOB_DIR"), start.variable(b"XDG_RUNTIME_DIR"))
}

/// The socket inside its directory. With a NUL behind, as all constants that a warm call reads: the
/// linker keeps those together (`client.ld`).
pub const SOCKET: &[u8] = c"socket".to_bytes();

/// Connects to the daemon if one listens.
pub fn connect(directory: &std::path::Path) -> Result<OwnedFd, Trouble> {
    let path = dir::inside(directory.as_os_str().as_bytes(), SOCKET);
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(&path));
    match dir::check(directory) {
        Ok(()) => {}
        // Tried all the same: where sockets are refused, no daemon is worth a start.
        Err(dir::Unsafe::Missing) => {
            let tried = uds::connect(path);
            return Err(tried.map_or_else(unconnected, |_| Trouble::NoDaemon));
        }
        Err(why) => return Err(Trouble::UnsafeDir(why)),
    }
    let mut deadline_ns = None;
    let socket = loop {
        match uds::connect(path) {
            Ok(socket) => break socket,
            // The backlog is full: the daemon lives and is slow, so look again within the budget.
            Err(Errno::AGAIN) => {
                let now_ns = clock::now_ns();
                if now_ns >= *deadline_ns.get_or_insert(now_ns + CONNECT_MS * 1_000_000) {
                    return Err(Trouble::ConnectTimeout);
                }
                let _ = poll(&mut [], Some(&milliseconds(1)));
            }
            Err(error) => return Err(unconnected(error)),
        }
    };
    match uds::peer_uid(&socket) {
        Ok(uid) if uid == rustix::process::getuid().as_raw() => Ok(socket),
        Ok(_) | Err(_) => Err(Trouble::PeerUid),
    }
}

/// Why there is no connection. What the system refuses this process it refuses a daemon too: a filter
/// says `EPERM`, `EACCES` or `ENOSYS`, a list of allowed kinds `EAFNOSUPPORT`.
#[cold]
#[inline(never)]
fn unconnected(error: Errno) -> Trouble {
    match error {
        Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::AFNOSUPPORT => Trouble::Sandbox,
        _ => Trouble::NoDaemon,
    }
}

/// Whether a daemon could begin in the directory, as far as can be seen without making it.
#[cold]
#[inline(never)]
fn can_begin(directory: &std::path::Path) -> Result<(), Trouble> {
    match dir::could_hold(directory) {
        Err(Errno::ROFS | Errno::PERM | Errno::ACCESS) => Err(Trouble::Sandbox),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Connects, and starts a daemon first where none listens. `wait_ms` bounds the start.
pub fn connect_or_start(start: &Start, wait_ms: u64) -> Result<OwnedFd, Trouble> {
    let directory = directory(start);
    match connect(&directory) {
        Err(Trouble::NoDaemon) => {}
        other => return other,
    }
    can_begin(&directory)?;
    launch(start, &[c"hob", c"daemon"], (Session::New, wait_ms))?;
    connect(&directory)
}

/// Starts a daemon or launcher in this session, and waits so long until it says that it is ready.
pub fn launch(start: &Start, arguments: &[&CStr], how: (Session, u64)) -> Result<(), Trouble> {
    // If it failed, or another daemon was first, connecting tells which.
    launched(start, arguments, how).map(|_| ())
}

/// The same for what cannot be connected to for long: whether it said that it was ready.
pub fn launched(
    start: &Start,
    arguments: &[&CStr],
    (session, wait_ms): (Session, u64),
) -> Result<bool, Trouble> {
    let ready = spawn::nobodys(arguments, environment(start), session);
    let ready = ready.map_err(|_| Trouble::NoDaemon)?;
    let mut byte = [0];
    match wait_readable(&ready, wait_ms) {
        // End of file: it has ended.
        Ok(true) => Ok(rustix::io::read(&ready, &mut byte) == Ok(1)),
        Ok(false) | Err(_) => Err(Trouble::NoDaemon),
    }
}

/// What a daemon gets of its starter's environment: where things are, and nothing else. Its
/// workers get their callers' own.
fn environment(start: &Start) -> Vec<CString> {
    const PREFIXES: [&[u8]; 7] =
        [b"HOB_", b"XDG_", b"HOME=", b"PATH=", b"USER=", b"LOGNAME=", b"TMPDIR="];
    let wanted =
        |entry: &&&CStr| PREFIXES.iter().any(|prefix| entry.to_bytes().starts_with(prefix));
    start.env.iter().filter(wanted).map(|&entry| entry.to_owned()).collect()
}

/// Waits until the descriptor is readable (or closed at the other end): `false` when the time
/// has passed first.
fn wait_readable(fd: &OwnedFd, wait_ms: u64) -> rustix::io::Result<bool> {
    let deadline_ns = clock::now_ns() + wait_ms * 1_000_000;
    loop {
        let left_ns = deadline_ns.saturating_sub(clock::now_ns());
        let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&nanoseconds(left_ns))) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A time for `poll`.
#[must_use]
pub fn milliseconds(ms: u64) -> Timespec {
    nanoseconds(ms.saturating_mul(1_000_000))
}

/// A time for `poll`.
#[must_use]
pub fn nanoseconds(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}
