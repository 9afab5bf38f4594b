//! `hob trace export`: receipts and spans in the formats of other programs.

use std::path::{Path, PathBuf};

use clap::Args;
use hob_core::receipt::Receipt;
use hob_daemon::recorder::export::Format;
use hob_daemon::recorder::recording::Recording;
use hob_daemon::recorder::spans::Rings;
use hob_os::start::Start;

use super::super::log::{Choice, flush, state_dir, unreadable};
use super::super::{named_file, rings};
use super::metrics;
use crate::failure::Failure;
use crate::output::{out, out_bytes};
use crate::say;
use crate::show::entries::{self, Entry};

/// What is asked.
#[derive(Debug, Clone, Args)]
pub(crate) struct Export {
    /// The format: perfetto or otlp; prometheus: the daemon's counts as they are now
    #[arg(value_name = "FORMAT", value_parser = format)]
    format: Wanted,
    #[command(flatten)]
    choice: Choice,
    /// How many, the newest; calls that no daemon took do not count
    #[arg(short = 'n', value_name = "N", default_value_t = 10_000)]
    count: usize,
    /// Only the call with this number
    #[arg(long, value_name = "N", conflicts_with_all = ["program", "since", "count"])]
    call: Option<u64>,
    /// Of a recording, as `hob trace record` has written it
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Of the recording of this name that is kept
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    recording: Option<String>,
    /// With prometheus: in the text of OpenMetrics
    #[arg(long)]
    openmetrics: bool,
    /// Where it is written (standard output otherwise)
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    /// Whether something chooses calls.
    fn is_of_some(&self) -> bool {
        let Export { choice, call, file, recording, .. } = self;
        !choice.is_empty() || call.is_some() || file.is_some() || recording.is_some()
    }
}

/// What is exported.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Calls(Format),
    Metrics,
}

const METRICS: &str = "prometheus";

fn format(name: &str) -> Result<Wanted, String> {
    if name == METRICS {
        return Ok(Wanted::Metrics);
    }
    let names = Format::NAMES.join(", ");
    let none = || format!("no such format; there is {names}, {METRICS}");
    Format::of(name).map(Wanted::Calls).ok_or_else(none)
}

/// Exports.
pub(crate) fn run(start: &Start, asked: &Export) -> Result<(), Failure> {
    let format = match asked.format {
        Wanted::Calls(_) if asked.openmetrics => {
            return Err(Failure::usage(
                "--openmetrics: it is a form of `hob trace export prometheus`",
            ));
        }
        Wanted::Calls(format) => format,
        Wanted::Metrics if asked.is_of_some() => {
            return Err(Failure::usage(
                "prometheus: these are the counts of the daemon, not those of some calls; leave out \
                 what chooses calls",
            ));
        }
        Wanted::Metrics => {
            return metrics::run(start, asked.output.as_deref(), asked.openmetrics);
        }
    };
    if asked.output.is_none() && format == Format::Perfetto && is_terminal() {
        return Err(Failure::usage(
            "a trace of perfetto is no text: write it with `-o FILE`, or into a pipe",
        ));
    }
    let kept = match &asked.recording {
        Some(name) => Some(rings::kept(&state_dir()?, name)),
        None => asked.file.clone(),
    };
    if let Some(file) = kept {
        return recorded(format, asked, rings::recording(&file)?);
    }
    flush(start);
    let place = state_dir()?;
    let found = match asked.call {
        Some(call) => entries::numbered(&place, call).map(|entry| entry.into_iter().collect()),
        None => entries::receipts_of(&place, asked.count, {
            let filter = asked.choice.filter()?;
            move |entry| filter.takes(entry)
        }),
    };
    let found = found.map_err(unreadable)?;
    if let (Some(call), true) = (asked.call, found.is_empty()) {
        return Err(Failure::new(format!(
            "no receipt of call {call} is kept; `hob log` lists calls with their numbers"
        )));
    }
    write(format, asked.output.as_deref(), &found, &rings::read(start))
}

/// Exports of a recording what is asked for.
fn recorded(format: Format, asked: &Export, recording: Recording) -> Result<(), Failure> {
    if let Some(gone) = rings::gone(&recording) {
        say::line(gone.as_bytes());
    }
    let (filter, rings) = (asked.choice.filter()?, Rings::recorded(&recording.rings));
    let is_asked = |receipt: &Receipt| asked.call.is_none_or(|call| call == receipt.call);
    let receipts = recording.receipts.into_iter().filter(is_asked);
    let entries = receipts.map(|receipt| Entry::Receipt(Box::new(receipt)));
    let found: Vec<_> = entries.filter(|it| filter.takes(it)).take(asked.count).collect();
    if let (Some(call), true) = (asked.call, found.is_empty()) {
        return Err(Failure::new(format!("the recording has no call {call}")));
    }
    write(format, asked.output.as_deref(), &found, &rings)
}

/// Writes receipts in a foreign format, with what rings have of them, to standard output if there is
/// no file. What no daemon saw has no times, and is in none.
fn write(
    format: Format,
    file: Option<&Path>,
    found: &[Entry],
    rings: &Rings,
) -> Result<(), Failure> {
    let receipts = found.iter().filter_map(|entry| match entry {
        Entry::Receipt(receipt) => Some(&**receipt),
        Entry::Fallback(_) => None,
    });
    let receipts: Vec<_> = receipts.collect();
    let bytes = format.bytes(&receipts, rings);
    let Some(file) = file else { return out_bytes(&bytes) };
    named_file::write(file, |out| std::io::Write::write_all(out, &bytes))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))?;
    let calls = |count: usize| match count {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    };
    let mut said =
        format!("{} written to {}: {}\n", calls(receipts.len()), file.display(), format.hint());
    let others = found.len() - receipts.len();
    if others > 0 {
        let others = calls(others);
        said += &format!("not in it: {others} that no daemon took, whose times are not known\n");
    }
    out(&said)
}

fn is_terminal() -> bool {
    say::Stream::Out.is_terminal()
}
