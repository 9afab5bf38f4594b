//! `hob start`, `hob stop`, `hob restart`.

use hob_os::spawn::Session;
use hob_os::start::Start;

use super::request::{self, RequestError};
use super::{Failure, out};
use crate::connect::{self, Trouble};

/// How long a daemon may take to be ready. Nothing waits for it but this verb.
const START_MS: u64 = 10_000;
/// How long a daemon may take to stop: its running calls have their own grace, after which they
/// are ended.
const STOP_MS: u64 = 20_000;

/// Starts the daemon unless one runs.
pub(crate) fn start(start: &Start) -> Result<(), Failure> {
    match connect::connect(&connect::directory(start)) {
        Ok(_) => return report(start, "already running"),
        Err(Trouble::UnsafeDir(hob_os::dir::Unsafe::Missing) | Trouble::NoDaemon) => {}
        Err(Trouble::UnsafeDir(why)) => {
            let directory = connect::directory(start);
            return Err(Failure::new(format!(
                "{}: not used: {why}; remove it, or name another directory in HOB_DIR",
                directory.display()
            )));
        }
        Err(_) => return Err(Failure::new(RequestError::NoAnswer.to_string())),
    }
    match connect::launch(start, &[c"hob", c"daemon"], (Session::New, START_MS)) {
        Ok(()) => report(start, "started"),
        Err(_) => Err(Failure::new(
            "the daemon did not start; `hob daemon` runs it in the foreground and says why",
        )),
    }
}

/// Stops the daemon and waits until it is gone.
pub(crate) fn stop(start: &Start) -> Result<(), Failure> {
    match request::ask(start, "stop") {
        Err(RequestError::NoDaemon) => out("hob: no daemon was running\n"),
        Err(error) => Err(Failure::new(error.to_string())),
        Ok((answer, socket)) => {
            let pid = answer.get("stopping").and_then(serde_json::Value::as_u64).unwrap_or(0);
            if request::wait_for_end(&socket, STOP_MS) {
                out(&format!("hob: stopped (pid {pid})\n"))
            } else {
                Err(Failure::new(format!("the daemon (pid {pid}) has not stopped yet")))
            }
        }
    }
}

/// Stops the daemon, if one runs, and starts it anew.
pub(crate) fn restart(start: &Start) -> Result<(), Failure> {
    stop(start)?;
    self::start(start)
}

fn report(start: &Start, what: &str) -> Result<(), Failure> {
    let (status, _) = request::ask(start, "status").map_err(|e| Failure::new(e.to_string()))?;
    let pid = status.get("pid").and_then(serde_json::Value::as_u64).unwrap_or(0);
    out(&format!("hob: {what} (pid {pid})\n"))
}
