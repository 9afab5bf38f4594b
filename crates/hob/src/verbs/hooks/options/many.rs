//! The options of a run over many targets.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hob_hooks::Limits;

use super::super::resume::Earlier;
use super::time;
use crate::failure::Failure;

/// Running for many targets.
#[derive(Debug, Args)]
pub(crate) struct Many {
    /// Run for every target of this file: a JSON object a line, a table (CSV), or a plain list; its
    /// members or columns are variables (of a list TARGET), the first one names the target; - reads
    /// standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) for_each: Option<PathBuf>,
    /// How many targets run at once at most, such as 8, or 200% of the processors; as many as there
    /// are of those if not said
    #[arg(long, value_name = "N", requires = "for_each")]
    jobs: Option<Amount>,
    /// Write whole lines of what hooks write as they come, each below its target's name and a tab
    #[arg(long, requires = "for_each", conflicts_with = "json")]
    pub(in super::super) tag: bool,
    /// Begin no further target once so many have failed, such as 10, or 1% of all
    #[arg(long, value_name = "N", requires = "for_each")]
    halt: Option<Amount>,
    /// Run a target that ended in error or timeout again at once, up to N more times: N + 1 tries in
    /// all (GNU parallel counts the first one too)
    #[arg(long, value_name = "N", requires = "for_each", default_value = "0")]
    #[arg(hide_default_value = true)]
    pub(in super::super) retries: u32,
    /// Leave out what ended in an earlier run that was ended before its time; `--resume=failed`
    /// runs again what failed
    #[arg(long, value_name = "WHAT", requires = "for_each", num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "rest")]
    resume: Option<ResumeName>,
    /// Run on the hosts that offer the directory and whose names are such as web-* (* is any
    /// characters, ? one); may be given more than once
    #[arg(long, value_name = "GLOB", requires = "for_each", conflicts_with_all = ["tag", "dry_run"])]
    pub(in super::super) hosts: Vec<String>,
    /// What a host has for so long, while it says nothing, is lost
    #[arg(long, value_name = "TIME", requires = "hosts", default_value = "30s")]
    lost_after: String,
}

/// How many, at least one: a number, or a share of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    Number(u64),
    /// In hundredths.
    Percent(u64),
}

impl Amount {
    /// Of so many; a share of them is rounded up.
    fn of(self, all: u64) -> u64 {
        match self {
            Amount::Number(number) => number,
            Amount::Percent(percent) => all.saturating_mul(percent).div_ceil(100).max(1),
        }
    }
}

impl std::str::FromStr for Amount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Amount, &'static str> {
        let (number, amount): (&str, fn(u64) -> Amount) = match text.strip_suffix('%') {
            Some(percent) => (percent, Amount::Percent),
            None => (text, Amount::Number),
        };
        match number.parse() {
            Ok(number) if number > 0 => Ok(amount(number)),
            Ok(_) | Err(_) => Err("not a whole number of at least 1, or a share such as 50%"),
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ResumeName {
    /// What has not ended
    Rest,
    /// That, and what failed
    Failed,
}

impl Many {
    pub(in super::super) fn earlier(&self) -> Earlier {
        match self.resume {
            None => Earlier::Nothing,
            Some(ResumeName::Rest) => Earlier::Ended,
            Some(ResumeName::Failed) => Earlier::EndedWell,
        }
    }

    /// Whether it is said how many run at one time.
    pub(in super::super) fn has_jobs(&self) -> bool {
        self.jobs.is_some()
    }

    pub(in super::super) fn lost_after(&self) -> Result<Duration, Failure> {
        Ok(time("--lost-after", Some(&self.lost_after))?.unwrap_or_default())
    }

    /// Those of so many jobs as are asked for.
    pub(in super::super) fn limits(&self, usual: Limits) -> Limits {
        let jobs = self.jobs.map(|jobs| jobs.of(usual.jobs as u64));
        let jobs = jobs.map_or(usual.jobs, |jobs| usize::try_from(jobs).unwrap_or(usize::MAX));
        Limits { jobs, ..usual }
    }

    /// How many of so many may fail before no further one is begun.
    pub(in super::super) fn halt(&self, total: u64) -> Option<u64> {
        self.halt.map(|halt| halt.of(total))
    }
}
