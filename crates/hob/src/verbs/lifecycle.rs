//! `hob start`, `hob stop`, `hob restart`.

use hob_os::clock;
use hob_os::spawn::Session;
use hob_os::start::Start;
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::request::{self, RequestError};
use super::trace;
use crate::connect::{self, Trouble};
use crate::failure::Failure;
use crate::output::out;

/// How long a daemon may take to be ready. Nothing waits for it but this verb.
const START_MS: u64 = 10_000;
/// How long a daemon may take to stop: its running calls have their own grace, after which they
/// are ended.
const STOP_MS: u64 = 20_000;

/// How long a daemon that is just ending may be in the way: killed, it keeps its name and its lock
/// until the kernel has cleared it away.
const ENDING_MS: u64 = 1_000;
/// The same while a daemon holds the directory's lock: one whose socket was removed looks every
/// five seconds whether it is still found, and makes it anew.
const HELD_MS: u64 = 8_000;
const ENDING_LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Starts the daemon unless one runs.
pub(crate) fn start(start: &Start) -> Result<(), Failure> {
    let begun_ns = clock::now_ns();
    let mut what = "already running";
    loop {
        let error = match connect::connect(&connect::directory(start)) {
            Ok(_) => match answering(start) {
                Ok(pid) => return out(&format!("hob: {what} (pid {pid})\n")),
                Err(error) => error,
            },
            Err(Trouble::UnsafeDir(hob_os::dir::Unsafe::Missing) | Trouble::NoDaemon) => {
                what = "started";
                launch(start)?;
                match answering(start) {
                    Ok(pid) => return out(&format!("hob: {what} (pid {pid})\n")),
                    Err(error) => error,
                }
            }
            Err(Trouble::UnsafeDir(why)) => {
                let error = request::not_used(&connect::directory(start), why);
                return Err(Failure::new(error.to_string()));
            }
            Err(Trouble::Sandbox) => RequestError::Sandbox,
            Err(Trouble::DaemonClosed) => RequestError::Ended,
            Err(_) => RequestError::NoAnswer,
        };
        let ending = matches!(error, RequestError::NoDaemon | RequestError::Ended);
        let wait_ms = if is_held(start) { HELD_MS } else { ENDING_MS };
        if !ending || clock::now_ns() >= begun_ns + wait_ms * 1_000_000 {
            return Err(if what == "started" && ending {
                did_not_start()
            } else {
                Failure::new(error.to_string())
            });
        }
        std::thread::sleep(ENDING_LOOK);
    }
}

/// Whether a daemon that lives holds the lock, under whatever name.
pub(super) fn is_held(start: &Start) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(connect::directory(start).join("lock"), flags, Mode::empty()).is_ok_and(
        |lock| {
            let tried = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared);
            tried == Err(rustix::io::Errno::WOULDBLOCK)
        },
    )
}

fn launch(start: &Start) -> Result<(), Failure> {
    let launched = connect::launch(start, &[c"hob", c"daemon"], (Session::New, START_MS));
    launched.map_err(|_| did_not_start())
}

fn did_not_start() -> Failure {
    Failure::new("the daemon did not start; `hob daemon` runs it in the foreground and says why")
}

/// Stops the daemon and waits until it is gone.
pub(crate) fn stop(start: &Start) -> Result<(), Failure> {
    let until_ns = clock::now_ns() + ENDING_MS * 1_000_000;
    let mut answer = request::ask(start, "stop");
    while matches!(answer, Err(RequestError::Ended)) && clock::now_ns() < until_ns {
        std::thread::sleep(ENDING_LOOK);
        answer = request::ask(start, "stop");
    }
    match answer {
        Err(RequestError::NoDaemon) => out("hob: no daemon was running\n"),
        Err(error) => Err(Failure::new(error.to_string())),
        Ok((answer, socket)) => {
            let pid = answer.get("stopping").and_then(serde_json::Value::as_u64).unwrap_or(0);
            if request::wait_for_end(socket, STOP_MS) {
                trace::record::wait_for_ends(start);
                out(&format!("hob: stopped (pid {pid})\n"))
            } else {
                Err(Failure::new(format!("the daemon (pid {pid}) has not stopped yet")))
            }
        }
    }
}

/// Starts a daemon in the place of the one that runs, if one runs: what comes meanwhile finds the
/// one or the other. The old one finishes what it has begun, within its grace.
pub(crate) fn restart(start: &Start) -> Result<(), Failure> {
    let Ok((answer, old)) = request::ask(start, "status") else {
        stop(start)?;
        return self::start(start);
    };
    let replaces = [c"hob", c"daemon", c"--replace"];
    connect::launch(start, &replaces, (Session::New, START_MS)).map_err(|_| did_not_start())?;
    let new = answering_soon(start)?;
    let pid = answer.get("pid").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if !request::wait_for_end(old, STOP_MS) {
        return Err(Failure::new(format!("the daemon (pid {pid}) has not stopped yet")));
    }
    trace::record::wait_for_ends(start);
    out(&format!("hob: stopped (pid {pid})\nhob: started (pid {new})\n"))
}

/// The process id of the daemon that answers in a moment: another may be started by who calls.
fn answering_soon(start: &Start) -> Result<u64, Failure> {
    let until_ns = clock::now_ns() + ENDING_MS * 1_000_000;
    loop {
        match answering(start) {
            Ok(pid) => return Ok(pid),
            Err(_) if clock::now_ns() < until_ns => std::thread::sleep(ENDING_LOOK),
            Err(_) => return Err(did_not_start()),
        }
    }
}

/// The process id of the daemon that answers.
fn answering(start: &Start) -> Result<u64, RequestError> {
    let (status, _) = request::ask(start, "status")?;
    Ok(status.get("pid").and_then(serde_json::Value::as_u64).unwrap_or(0))
}
