//! `hob log`, and where receipts are read from.

mod choice;
mod daemon;
mod http;
mod output;
mod tail;

use std::cell::Cell;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use hob_os::start::Start;

use super::{request, rings};
use crate::failure::Failure;
use crate::fallback;
use crate::output::{out, out_json};
use crate::show::clock::Clock;
use crate::show::entries::filter::{Filter, Made};
use crate::show::entries::{self, Entry};
use crate::show::page;
use crate::show::style::Look;
use crate::show::table;
pub(crate) use choice::Choice;

/// The rows of who says no number.
const ROWS: usize = 20;

/// Records that are read for each row: a run of hooks is many records, and one row.
const RECORDS_A_ROW: usize = 20;

/// The most calls of a page.
const PAGE_CALLS_MAX: usize = 1000;

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("other").args(["http", "daemon", "output"])))]
pub(crate) struct Log {
    #[command(flatten)]
    choice: Choice,
    /// How many, the newest [default: 20; of --output: all lines]
    #[arg(short = 'n', value_name = "N")]
    count: Option<usize>,
    /// Calls that this verb made to compare them, which are left out otherwise; all: those, too
    #[arg(long, value_name = "VERB", value_parser = Made::WORDS)]
    #[arg(conflicts_with_all = ["http", "daemon", "output"])]
    purpose: Option<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Print one page of HTML, which needs no script and no network
    #[arg(long, conflicts_with_all = ["json", "http", "daemon", "output"])]
    html: bool,
    #[command(flatten)]
    requests: http::Requests,
    #[command(flatten)]
    own: daemon::Own,
    #[command(flatten)]
    printed: output::Printed,
}

/// Lists recent receipts, the newest last.
pub(crate) fn run(start: &Start, log: &Log) -> Result<(), Failure> {
    if let (true, Some(program)) = (log.printed.output, &log.choice.program) {
        let (count, follow) = (log.count, log.requests.follow);
        return output::run(start, &output::Asked { program, count, follow, raw: log.printed.raw });
    }
    let count = log.count.unwrap_or(ROWS);
    let filter = log.choice.filter()?;
    if log.own.daemon {
        let http::Requests { follow, site, .. } = &log.requests;
        let json = log.json;
        return daemon::run(
            start,
            &log.own,
            &daemon::Shown { count, json, follow: *follow, site: site.as_deref() },
        );
    }
    if log.requests.http {
        let Filter { failed, slower_us, since, .. } = filter;
        let json = log.json;
        return http::run(
            start,
            &log.requests,
            http::Selection { count, failed, slower_us, since, json },
        );
    }
    let purpose = log.purpose.as_deref().map(Made::of).unwrap_or_default();
    let filter = Filter { purpose, ..filter };
    flush(start);
    if log.html && count > PAGE_CALLS_MAX {
        return Err(Failure::usage(format!("--html: a page has at most {PAGE_CALLS_MAX} calls")));
    }
    let as_rows = !log.json && !log.html;
    let records = if as_rows { count.saturating_mul(RECORDS_A_ROW) } else { count };
    let all = Filter { purpose: Made::Any, ..filter.clone() };
    let left_out = Cell::new(0);
    let takes = |entry: &Entry| {
        let taken = filter.takes(entry);
        left_out.set(left_out.get() + u64::from(!taken && all.takes(entry)));
        taken
    };
    let found = entries::recent_of(&state_dir()?, records, takes).map_err(unreadable)?;
    if log.json {
        return out_json(&found.iter().map(|entry| entry.json() + "\n").collect::<String>());
    }
    if log.html {
        return out(&page::calls::page(&found, &rings::read(start), &Clock::now()));
    }
    if found.is_empty() && !filter.is_empty() {
        return out("no call that is kept is such a one: `hob log` lists the newest\n");
    }
    let mut text = table::entries(&found, count, &Clock::now(), &Look::of_stdout());
    match (&filter.purpose, left_out.get()) {
        (Made::ToUse, 1) => text += "left out: 1 call that hob made to compare it",
        (Made::ToUse, count @ 2..) => {
            text += &format!("left out: {count} calls that hob made to compare them");
        }
        _ => return out(&text),
    }
    out(&(text + " (`hob log --purpose all`)\n"))
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
