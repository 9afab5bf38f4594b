//! `hob top`: the daemon as it is now, again and again.
//!
//! ```text
//!   sample ─▶ (a second) ─▶ sample ─▶ Snapshot ─┬─▶ one text, or one line of `hob.top/1` each time
//!      ▲                                  ├──────┴─▶ screen (a terminal, until `q` or a signal)
//!      │                                  │             ▲
//!      │            receipts ─▶ Explorer ─┘        keys ┘
//!      └──────────────────────────────────────────────┘
//! ```
//! Invariants: it asks by one control request an interval and makes no call, so that watching
//! changes no figure; it starts no daemon, and goes on while one comes or goes; the terminal is
//! given back as it was, however it ends.

mod explorer;
mod keys;
mod screen;
mod snapshot;

use std::io::IsTerminal;

use clap::Args;
use hob_core::status::Status;
use hob_os::clock;
use hob_os::start::Start;

use self::snapshot::{Sample, Snapshot};
use super::request::{self, RequestError};
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::{Look, is_plain};
use crate::{connect, say};

/// How long between two samples.
const INTERVAL_MS: u64 = 1_000;

/// How to watch.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Top {
    /// Print JSON, one object a line, each second
    #[arg(long)]
    json: bool,
    /// Print what one second shows, and end
    #[arg(long)]
    once: bool,
}

/// Runs the verb.
pub(crate) fn run(start: &Start, top: Top) -> Result<(), Failure> {
    if top.json && !top.once {
        return stream(start);
    }
    if !top.once && is_screen(start) {
        return screen::watch(start);
    }
    let first = sample(start).map_err(|error| Failure::new(error.to_string()))?;
    pause(INTERVAL_MS);
    let second = sample(start).map_err(|error| Failure::new(error.to_string()))?;
    let snapshot = Snapshot::between(Some(&first), &second);
    if top.json {
        return out_json(&format!("{}\n", snapshot.json()));
    }
    out(&lines(&snapshot.lines(&Look::of_stdout())))
}

/// One line an interval, for as long as somebody reads.
fn stream(start: &Start) -> Result<(), Failure> {
    let mut last = sample(start).ok();
    loop {
        pause(INTERVAL_MS);
        let line = match sample(start) {
            Ok(now) => {
                let line = Snapshot::between(last.as_ref(), &now).json();
                last = Some(now);
                line
            }
            Err(_) => {
                last = None;
                snapshot::without_daemon()
            }
        };
        // Who has stopped reading ends this process by SIGPIPE, or by the error.
        out_json(&format!("{line}\n"))?;
    }
}

/// Whether there is a screen to draw on, and keys to end it with.
fn is_screen(start: &Start) -> bool {
    let term = start.variable(b"TERM").unwrap_or_default();
    say::Stream::Out.is_terminal()
        && std::io::stdin().is_terminal()
        && !term.is_empty()
        && !is_plain()
}

/// The daemon's status, and when it was asked for.
fn sample(start: &Start) -> Result<Sample, RequestError> {
    // Keys and signals wait for the answer, so it must not take longer than an interval.
    let (answer, _) = request::ask_within(start, "status", INTERVAL_MS)?;
    let status: Status = serde_json::from_value(answer).map_err(|_| RequestError::NoAnswer)?;
    Ok(Sample { status, at_ns: clock::now_ns() })
}

fn pause(ms: u64) {
    // An interruption makes one interval shorter, which the next sample's time accounts for.
    let _ = rustix::event::poll(&mut [], Some(&connect::milliseconds(ms)));
}

fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}
