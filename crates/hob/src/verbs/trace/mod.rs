//! `hob trace`: a call's phases, and beneath them what it waited for.
//!
//! Phases are the receipt's; what is beneath comes from the rings, which are of the last while. They
//! are read from the disk: no daemon is needed, and that of a killed one is there still.

use clap::Args;
use hob_core::receipt::Receipt;
use hob_os::start::Start;

use super::log::{flush, state_dir, unreadable};
use super::{Failure, out, rings};
use crate::show::clock::Clock;
use crate::show::entries::{self, Entry};
use crate::show::style::Look;
use crate::show::trace;

/// Among how many calls the slowest is looked for.
const SLOWEST_OF: usize = 1000;

/// What is asked.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Trace {
    /// The call's number, as `hob log` lists it (the last call otherwise)
    #[arg(value_name = "CALL")]
    call: Option<u64>,
    /// The slowest of the last 1000 calls
    #[arg(long, conflicts_with = "call")]
    slowest: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows it.
pub(crate) fn run(start: &Start, asked: Trace) -> Result<(), Failure> {
    flush(start);
    let receipt = receipt(asked)?;
    let rings = rings::read(start);
    let spans = rings.of(&receipt);
    if asked.json {
        return out(&trace::json(&receipt, &spans));
    }
    out(&trace::figure(&receipt, (&spans, &rings.unread), &Clock::now(), &Look::of_stdout()))
}

fn receipt(asked: Trace) -> Result<Receipt, Failure> {
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
