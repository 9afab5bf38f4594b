//! `hob trace`: a call's phases, and beneath them what it waited for.
//!
//! Phases are the receipt's; what is beneath comes from the rings, which are of the last while. They
//! are read from the disk: no daemon is needed, and that of a killed one is there still. A recording
//! (`record`) has both, and `export` writes either for other programs.

pub(crate) mod export;
mod metrics;
pub(crate) mod record;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hob_core::receipt::Receipt;
use hob_daemon::recorder::spans::Rings;
use hob_os::start::Start;

use super::log::{flush, state_dir, unreadable};
use super::rings;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::clock::Clock;
use crate::show::entries::{self, Entry};
use crate::show::style::Look;
use crate::show::trace;

/// Among how many calls the slowest is looked for.
const SLOWEST_OF: usize = 1000;

/// What is asked.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Trace {
    /// The call's number, as `hob log` lists it (the last call otherwise)
    #[arg(value_name = "CALL")]
    call: Option<u64>,
    /// The slowest of the last 1000 calls
    #[arg(long, conflicts_with = "call")]
    slowest: bool,
    /// Of a recording, as `hob trace record` has written it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Keep what is noted of calls, for as long as it is asked to, in a file
    #[command(subcommand)]
    Record(record::Record),
    /// Write receipts and spans in another program's format: perfetto, otlp
    Export(export::Export),
}

/// Runs the verb; returns the exit code.
pub(crate) fn run(start: &Start, asked: &Trace) -> Result<u8, Failure> {
    match &asked.verb {
        None => shown(start, asked).map(|()| 0),
        Some(Verb::Record(what)) => record::run(start, what),
        Some(Verb::Export(asked)) => export::run(start, asked).map(|()| 0),
    }
}

/// Shows a call.
fn shown(start: &Start, asked: &Trace) -> Result<(), Failure> {
    let (receipt, rings, gone) = match &asked.file {
        None => {
            flush(start);
            (receipt(asked)?, rings::read(start), None)
        }
        Some(file) => {
            let recording = rings::recording(file)?;
            let (gone, rings) = (rings::gone(&recording), Rings::recorded(&recording.rings));
            (recorded(asked, recording.receipts)?, rings, gone)
        }
    };
    let spans = rings.of(&receipt);
    if asked.json {
        return out_json(&trace::json(&receipt, &spans));
    }
    let gone = gone.map(|gone| format!("{gone}\n")).unwrap_or_default();
    let (clock, look) = (Clock::now(), Look::of_stdout());
    out(&(trace::figure(&receipt, (&spans, &rings.unread), &clock, &look) + &gone))
}

/// The receipt that is asked for, of those of a recording, the newest first.
fn recorded(asked: &Trace, receipts: Vec<Receipt>) -> Result<Receipt, Failure> {
    let mut receipts = receipts.into_iter();
    let found = match (asked.call, asked.slowest) {
        (Some(call), _) => receipts.find(|receipt| receipt.call == call),
        (None, true) => receipts.max_by_key(|receipt| receipt.total_us),
        (None, false) => receipts.next(),
    };
    found.ok_or_else(|| match asked.call {
        Some(call) => Failure::new(format!("the recording has no call {call}")),
        None => Failure::new("the recording has no call"),
    })
}

fn receipt(asked: &Trace) -> Result<Receipt, Failure> {
    let place = state_dir()?;
    let of = |entry: Entry| match entry {
        Entry::Receipt(receipt) => Some(*receipt),
        Entry::Fallback(_) => None,
    };
    if let Some(call) = asked.call {
        let found = entries::numbered(&place, call).map_err(unreadable)?;
        return found.and_then(of).ok_or_else(|| {
            Failure::new(format!(
                "no receipt of call {call} is kept; `hob log` lists calls with their numbers"
            ))
        });
    }
    let count = if asked.slowest { SLOWEST_OF } else { 1 };
    let recent = entries::recent_of(&place, count, |entry| matches!(entry, Entry::Receipt(_)));
    let found = recent.map_err(unreadable)?.into_iter().filter_map(of);
    found
        .max_by_key(|receipt| receipt.total_us)
        .ok_or_else(|| Failure::new("no call has been recorded yet; `hob run PROGRAM` makes one"))
}
