//! `hob last`: receipts as figures, with what is still kept of their spans.

use clap::Args;
use hob_os::start::Start;

use super::log::{flush, state_dir, unreadable};
use super::rings;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::clock::Clock;
use crate::show::entries::filter::Made;
use crate::show::entries::{self, Entry};
use crate::show::page;
use crate::show::style::Look;
use crate::show::{trace, waterfall};

/// What `hob last` is asked.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Last {
    /// How many calls, the newest last
    #[arg(value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// The call with this number instead, as `hob log` lists it
    #[arg(long, value_name = "CALL", conflicts_with_all = ["count", "html"])]
    call: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Print one page of HTML, which needs no script and no network
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

/// Shows the receipts of the last calls, or of the one that is named.
pub(crate) fn run(start: &Start, asked: Last) -> Result<(), Failure> {
    flush(start);
    if let Some(call) = asked.call {
        return shown(start, &[numbered(call)?], asked.json);
    }
    let used = |entry: &Entry| Made::ToUse.takes(entry);
    let entries = entries::recent_of(&state_dir()?, usize::from(asked.count), used);
    let entries = entries.map_err(unreadable)?;
    if entries.is_empty() {
        return Err(Failure::new("no call has been recorded yet; `hob run PROGRAM` makes one"));
    }
    if asked.html {
        return out(&page::calls::page(&entries, &rings::read(start), &Clock::now()));
    }
    shown(start, &entries, asked.json)
}

/// The record of one call.
fn numbered(call: u64) -> Result<Entry, Failure> {
    let found = entries::numbered(&state_dir()?, call).map_err(unreadable)?;
    found.ok_or_else(|| {
        Failure::new(format!(
            "no receipt of call {call} is kept (the newest 10,000 or so are); `hob log` lists \
             calls with their numbers"
        ))
    })
}

fn shown(start: &Start, entries: &[Entry], json: bool) -> Result<(), Failure> {
    if json {
        return out_json(&entries.iter().map(|entry| entry.json() + "\n").collect::<String>());
    }
    let (clock, look) = (Clock::now(), Look::of_stdout());
    let rings = rings::read(start);
    let figure = |entry: &Entry| match entry {
        Entry::Receipt(receipt) => trace::receipt(receipt, &rings.of(receipt), &clock, &look),
        Entry::Fallback(_) => waterfall::entry(entry, &clock, &look),
    };
    out(&entries.iter().map(figure).collect::<Vec<_>>().join("\n"))
}
