//! `hob daemon`: the daemon in the foreground, as `start` and the first `run` start it in the
//! background.

pub(crate) mod push;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use hob_daemon::Config;
use hob_daemon::config::StartAs;
use hob_os::process::inherited::inherit_none_from;
use hob_os::signals;
use hob_os::start::Start;
use hob_os::surroundings::ordinary;

use crate::{connect, say};

/// What a daemon ignores. Every peer may leave at any time, and the error of the write tells
/// (SIGPIPE); so does that of one beyond the limit of file sizes, which the daemon has of whoever
/// started it (SIGXFSZ). A terminal that closes is none of its callers' business (SIGHUP): `hob
/// stop`, SIGTERM and SIGINT end a daemon.
const IGNORED: [i32; 3] = [SIGHUP, SIGPIPE, SIGXFSZ];
const SIGHUP: i32 = 1;
pub(crate) const SIGPIPE: i32 = 13;
pub(crate) const SIGXFSZ: i32 = 25;

/// From here on, what its starter had open stays with the process that was started: a worker that had it
/// too would hold a caller's pipe, and take no call that has this number open.
pub(crate) const FIRST_INHERITED: u32 = 3;

/// Serves until stopped. Another daemon that serves already is no failure: whoever wanted one has
/// one.
#[must_use]
pub fn run(start: &Start) -> u8 {
    IGNORED.into_iter().for_each(signals::ignore);
    inherit_none_from(FIRST_INHERITED);
    ordinary::take();
    let replace = start.argv.iter().skip(2).any(|word| word.to_bytes() == b"--replace");
    let start_as = if replace { StartAs::Replacement } else { StartAs::Only };
    let variable = |name: &str| {
        start.variable(name.as_bytes()).map(|value| OsStr::from_bytes(value).to_owned())
    };
    let config = Config::from_variables(connect::directory(start), start_as, variable);
    let config = Config { push: Some(push::open), ..config };
    #[cfg(feature = "nats")]
    let config = Config { connect: Some(hob_nats::connect), ..config };
    match hob_daemon::run(config) {
        Ok(()) => 0,
        Err(hob_daemon::DaemonError::Running(text)) => {
            say::line(text.as_bytes());
            0
        }
        Err(error) => {
            say::line(error.to_string().as_bytes());
            1
        }
    }
}
