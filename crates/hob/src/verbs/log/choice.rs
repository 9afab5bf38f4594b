//! Which calls are asked for, of those that are kept: the same options wherever calls are listed or
//! written.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use crate::durations;
use crate::failure::Failure;
use crate::show::entries::filter::Filter;

/// What chooses calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Choice {
    /// Only calls of this program: its name, its file, or the end of its path
    #[arg(value_name = "PROGRAM")]
    pub(super) program: Option<String>,
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
    #[arg(long, alias = "last", value_name = "TIME", value_parser = durations::parse)]
    since: Option<Duration>,
    /// Only calls from this directory, or from one below it
    #[arg(long)]
    here: bool,
}

impl Choice {
    /// Whether it chooses all calls.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Choice::default()
    }

    /// The filter that takes these calls, of this moment.
    ///
    /// # Errors
    /// If the time is before all times, or there is no working directory.
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        let Choice { program, cold, failed, slower, since, here } = self;
        let since = since.map(|length| Timestamp::now().checked_sub(length)).transpose();
        let since = since.map_err(|_| {
            Failure::usage("--since: that is before time began; try 7d, or leave it out")
        })?;
        let here = if *here {
            let directory = std::env::current_dir().map_err(|error| {
                Failure::new(format!("cannot tell the working directory for --here: {error}"))
            })?;
            Some(directory.to_string_lossy().into_owned())
        } else {
            None
        };
        let slower_us = slower.map(|length| u64::try_from(length.as_micros()).unwrap_or(u64::MAX));
        let (program, cold, failed) = (program.clone(), *cold, *failed);
        Ok(Filter { program, cold, failed, slower_us, since, here, ..Filter::default() })
    }
}
