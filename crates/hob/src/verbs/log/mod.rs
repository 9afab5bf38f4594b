//! `hob log`, and where receipts are read from.

mod daemon;
pub mod export;
mod http;
mod metrics;

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args};
use hob_daemon::recorder::export::Format;
use hob_daemon::recorder::spans::Rings;
use hob_os::start::Start;
use jiff::Timestamp;

use super::{Failure, named_file, out, out_json, request, rings};
use crate::show::clock::Clock;
use crate::show::entries::filter::{Filter, Made};
use crate::show::entries::{self, Entry};
use crate::show::page;
use crate::show::style::Look;
use crate::show::table;
use crate::{durations, fallback};

/// Records that are read for each row: a run of hooks is many records, and one row.
const RECORDS_A_ROW: usize = 20;

/// The most calls of a page.
const PAGE_CALLS_MAX: usize = 1000;

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("other").args(["http", "daemon"])))]
pub(crate) struct Log {
    /// Only calls of this program: its name, its file, or the end of its path
    #[arg(value_name = "PROGRAM")]
    program: Option<String>,
    /// How many, the newest
    #[arg(short = 'n', value_name = "N", default_value_t = 20)]
    count: usize,
    /// Only calls that ran cold
    #[arg(long)]
    cold: bool,
    /// Only calls that did not end with exit code 0
    #[arg(long)]
    failed: bool,
    /// Only calls that took at least so long, such as 200ms
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    slower: Option<Duration>,
    /// Only calls of the last while, such as 1h or 7d
    #[arg(long, value_name = "TIME", value_parser = durations::parse)]
    since: Option<Duration>,
    /// Only calls from this directory, or from one below it
    #[arg(long)]
    here: bool,
    /// Calls that this verb made to compare them, which are left out otherwise; all: those, too
    #[arg(long, value_name = "VERB", value_parser = Made::WORDS)]
    #[arg(conflicts_with_all = ["http", "daemon"])]
    purpose: Option<String>,
    /// Write them into FILE in another program's format, as `hob export` does (`-`: standard output)
    #[arg(long, num_args = 2, value_names = ["FORMAT", "FILE"])]
    export: Option<Vec<OsString>>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Print one page of HTML, which needs no script and no network
    #[arg(long, conflicts_with_all = ["json", "export", "http", "daemon"])]
    html: bool,
    #[command(flatten)]
    requests: http::Requests,
    #[command(flatten)]
    own: daemon::Own,
}

/// Lists recent receipts, the newest last.
pub(crate) fn run(start: &Start, log: &Log) -> Result<(), Failure> {
    if log.own.daemon {
        let http::Requests { follow, site, .. } = &log.requests;
        let count = log.count;
        let json = log.json;
        return daemon::run(
            start,
            &log.own,
            &daemon::Shown { count, json, follow: *follow, site: site.as_deref() },
        );
    }
    if log.requests.http {
        let Filter { failed, slower_us, since, .. } = filter(log)?;
        let (count, json) = (log.count, log.json);
        return http::run(&log.requests, http::Selection { count, failed, slower_us, since, json });
    }
    let export = log.export.as_deref().map(target).transpose()?;
    let filter = filter(log)?;
    flush(start);
    if log.html && log.count > PAGE_CALLS_MAX {
        return Err(Failure::usage(format!("--html: a page has at most {PAGE_CALLS_MAX} calls")));
    }
    let as_rows = !log.json && !log.html && export.is_none();
    let count = if as_rows { log.count.saturating_mul(RECORDS_A_ROW) } else { log.count };
    let all = Filter { purpose: Made::Any, ..filter.clone() };
    let left_out = Cell::new(0);
    let takes = |entry: &Entry| {
        let taken = filter.takes(entry);
        left_out.set(left_out.get() + u64::from(!taken && all.takes(entry)));
        taken
    };
    let found = entries::recent_of(&state_dir()?, count, takes).map_err(unreadable)?;
    if let Some((format, file)) = export {
        let file = (file.as_os_str() != "-").then_some(&*file);
        return write((format, file), &found, &rings::read(start));
    }
    if log.json {
        return out_json(&found.iter().map(|entry| entry.json() + "\n").collect::<String>());
    }
    if log.html {
        return out(&page::calls::page(&found, &rings::read(start), &Clock::now()));
    }
    if found.is_empty() && !filter.is_empty() {
        return out("no call that is kept is such a one: `hob log` lists the newest\n");
    }
    let mut text = table::entries(&found, log.count, &Clock::now(), &Look::of_stdout());
    match (&filter.purpose, left_out.get()) {
        (Made::ToUse, 1) => text += "left out: 1 call that hob made to compare it",
        (Made::ToUse, count @ 2..) => {
            text += &format!("left out: {count} calls that hob made to compare them");
        }
        _ => return out(&text),
    }
    out(&(text + " (`hob log --purpose all`)\n"))
}

fn filter(log: &Log) -> Result<Filter, Failure> {
    let since = log.since.map(|length| Timestamp::now().checked_sub(length));
    let since = since.transpose().map_err(|_| {
        Failure::usage("--since: that is before time began; try 7d, or leave it out")
    })?;
    let here = if log.here {
        let directory = std::env::current_dir().map_err(|error| {
            Failure::new(format!("cannot tell the working directory for --here: {error}"))
        })?;
        Some(directory.to_string_lossy().into_owned())
    } else {
        None
    };
    let slower_us = log.slower.map(|length| u64::try_from(length.as_micros()).unwrap_or(u64::MAX));
    let program = log.program.clone();
    let purpose = log.purpose.as_deref().map(Made::of).unwrap_or_default();
    Ok(Filter { program, cold: log.cold, failed: log.failed, slower_us, since, here, purpose })
}

/// The format and the file of `--export`.
fn target(words: &[OsString]) -> Result<(Format, PathBuf), Failure> {
    let [format, file] = words else {
        return Err(Failure::usage(
            "--export needs a format and a file, as in `hob log --export perfetto trace.bin`",
        ));
    };
    let known = format.to_str().and_then(Format::of);
    let format = known.ok_or_else(|| {
        Failure::usage(format!(
            "--export {}: no such format; there is {}",
            format.to_string_lossy(),
            Format::NAMES.join(", ")
        ))
    })?;
    Ok((format, PathBuf::from(file)))
}

/// Writes receipts in a foreign format, with what rings have of them, to standard output if there is
/// no file. What no daemon saw has no times, and is in none.
pub(crate) fn write(
    (format, file): (Format, Option<&Path>),
    found: &[Entry],
    rings: &Rings,
) -> Result<(), Failure> {
    let receipts = found.iter().filter_map(|entry| match entry {
        Entry::Receipt(receipt) => Some(&**receipt),
        Entry::Fallback(_) => None,
    });
    let receipts: Vec<_> = receipts.collect();
    let bytes = format.bytes(&receipts, rings);
    let Some(file) = file else { return super::out_bytes(&bytes) };
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
