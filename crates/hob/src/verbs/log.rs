//! `hob log`, and where receipts are read from.

use std::path::PathBuf;

use hob_os::start::Start;

use super::{Failure, Log, out, request};
use crate::fallback;
use crate::show::clock::Clock;
use crate::show::style::Look;
use crate::show::{entries, table};

/// Lists recent receipts, the newest last.
pub(crate) fn run(start: &Start, log: Log) -> Result<(), Failure> {
    flush(start);
    let recent = entries::recent(&state_dir()?, log.count).map_err(unreadable)?;
    if log.json {
        let lines: String = recent.iter().map(|entry| entry.json() + "\n").collect();
        return out(&lines);
    }
    out(&table::entries(&recent, &Clock::now(), &Look::of_stdout()))
}

/// Has the daemon write what it holds. Without a daemon there is nothing to write.
pub(crate) fn flush(start: &Start) {
    let _ = request::ask(start, "flush");
}

/// Where receipts are.
pub(crate) fn state_dir() -> Result<PathBuf, Failure> {
    fallback::state_dir().ok_or_else(|| {
        Failure::new(
            "no receipts are kept: neither XDG_STATE_HOME nor HOME is set to an absolute path",
        )
    })
}

pub(crate) fn unreadable(error: hob_daemon::recorder::PlaceError) -> Failure {
    Failure::new(format!("cannot read the receipts: {error}"))
}
