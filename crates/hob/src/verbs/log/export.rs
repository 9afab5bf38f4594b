//! `hob export`: receipts and spans in the formats of other programs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hob_daemon::recorder::export::Format;
use hob_os::start::Start;
use jiff::Timestamp;

use super::super::{Failure, rings};
use super::{flush, state_dir, unreadable, write};
use crate::durations;
use crate::show::entries;
use crate::show::entries::filter::Filter;

/// What is asked.
#[derive(Debug, Clone, Args)]
pub(crate) struct Export {
    /// The format: perfetto, otlp or chrome
    #[arg(value_name = "FORMAT", value_parser = format)]
    format: Format,
    /// Only calls of this program: its name, its file, or the end of its path
    #[arg(value_name = "PROGRAM")]
    program: Option<String>,
    /// How many, the newest
    #[arg(short = 'n', value_name = "N", default_value_t = 10_000)]
    count: usize,
    /// Only calls of the last while, such as 1h or 7d
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    last: Option<Duration>,
    /// Only the call with this number
    #[arg(long, value_name = "N", conflicts_with_all = ["program", "last", "count"])]
    call: Option<u64>,
    /// Where it is written (standard output otherwise)
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn format(name: &str) -> Result<Format, String> {
    Format::of(name).ok_or_else(|| format!("no such format; there is {}", Format::NAMES.join(", ")))
}

/// Exports.
pub(crate) fn run(start: &Start, asked: &Export) -> Result<(), Failure> {
    if asked.output.is_none() && asked.format == Format::Perfetto && is_terminal() {
        return Err(Failure::usage(
            "a trace of perfetto is no text: write it with `-o FILE`, or into a pipe",
        ));
    }
    flush(start);
    let place = state_dir()?;
    let found = match asked.call {
        Some(call) => entries::numbered(&place, call).map(|entry| entry.into_iter().collect()),
        None => entries::recent_of(&place, asked.count, {
            let filter = filter(asked)?;
            move |entry| filter.takes(entry)
        }),
    };
    let found = found.map_err(unreadable)?;
    if let (Some(call), true) = (asked.call, found.is_empty()) {
        return Err(Failure::new(format!(
            "no receipt of call {call} is kept; `hob log` lists calls with their numbers"
        )));
    }
    write((asked.format, asked.output.as_deref()), &found, &rings::read(start))
}

fn filter(asked: &Export) -> Result<Filter, Failure> {
    let since = asked.last.map(|length| Timestamp::now().checked_sub(length)).transpose();
    let since = since.map_err(|_| Failure::usage("--last: that is before time began"))?;
    Ok(Filter { program: asked.program.clone(), since, ..Filter::default() })
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdout())
}
