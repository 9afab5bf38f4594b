//! `hob gain`: what being warm has gained and lost.

use clap::Args;
use hob_daemon::recorder::days;
use hob_os::start::Start;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::log::{flush, state_dir, unreadable};
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::Look;
use crate::show::{entries, gain};

/// What is asked.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Gain {
    /// How many days, today included (days are those of UTC; at most 92 are kept)
    #[arg(long, value_name = "N", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=92))]
    days: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows the report.
pub(crate) fn run(start: &Start, asked: Gain) -> Result<(), Failure> {
    flush(start);
    let dir = state_dir()?;
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let span = (i64::from(asked.days) - 1).days();
    let since = today.checked_sub(span).unwrap_or(Date::MIN);
    let kept = days::newest(&dir, usize::from(asked.days)).map_err(unreadable)?;
    let lines = entries::fallbacks(&dir);
    let report = gain::report((since.to_string(), today.to_string()), &kept, &lines);
    if asked.json {
        let line = serde_json::to_string(&report);
        return out_json(&(line.expect("a report has only string keys and whole numbers") + "\n"));
    }
    out(&gain::text(&report, &Look::of_stdout()))
}
