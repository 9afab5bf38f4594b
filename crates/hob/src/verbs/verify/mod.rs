//! `hob verify`: is a program the same warm as cold? It is run both ways, and what it wrote, how it
//! ended, the files that it left and the world that it saw are compared.
//!
//! ```text
//!   cold 1 ─▶ (until it is warm) ─▶ warm 1 ─▶ cold 2 ─▶ warm 2 ─▶ warm 3 ─▶ cold 3 ─▶ probes
//!                     ─▶ each world: cold 1 ─▶ warm 1 ─▶ cold 2 ─▶ warm 2
//! ```
//! Invariants: the program is run through `hob run` only, as its callers do; a cold run comes
//! first, and last where anything differs, so that what changes by itself shows among the cold
//! runs; no verdict is better than its worst part; outputs are compared and not kept.
//!
//! It does not look inside the program, and it cannot see what a program does elsewhere: over the
//! network, or in files outside its directory.

pub(crate) mod change;
mod compare;
mod files;
mod ground;
mod kept;
mod record;
mod runs;
mod session;
mod text;
mod verdict;
mod world;
mod worlds;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hob_os::start::Start;
use hob_os::{process, signals};
use hob_resolve::Program;
use rustix::fd::AsFd;

use super::log::state_dir;
use super::repeated::interrupts::Interrupts;
use crate::durations;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::Look;
use compare::Verdict;
use record::Record;
use session::{Session, cannot};

/// Exit codes beside 0.
const DIFFERS: u8 = 1;
const NEVER_WARM: u8 = 3;

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(
    override_usage = "hob verify [OPTIONS] PROGRAM [ARGUMENT]...\n       hob verify [OPTIONS] -m MODULE [ARGUMENT]...\n       hob verify --list [--json]",
    after_help = "It runs the program 2 N times and a few more, here, and then 4 to 8 times in each of 23 \
worlds: some 110 runs, and more where something differs. What the program does, it does as often. `--worlds none` leaves the worlds \
out; with --copy each run starts from the same private copy of this directory.\n\n\
Worlds, each with one thing that is other than in yours:\n  \
time                                a second and more between runs\n  \
input-empty -pipe -file -closed     standard input (-part -null: where some is given)\n  \
environment-added -order -small     one variable more, another order, PATH and HOME alone\n  \
environment-read -usual             other values of what it asks for; of TZ, LANG, TERM\n  \
home-empty -site                    HOME, without and with modules of the user's\n  \
directory                           an empty one\n  \
arguments-help                      `--help` as one more (-none: only if it is named)\n  \
umask limits-files limits-core      of the process\n  \
signals-hup -int -pipe              ignored\n  \
link-called -moved -replaced        called through a link\n\n\
Exit code: 0 the same (what varies by itself is left out), 1 it differs, 3 it was never warm."
)]
pub(crate) struct Verify {
    /// How often it is run each way
    #[arg(short = 'n', value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
    /// Run it in a private copy of this directory, put back after each run
    #[arg(long)]
    copy: bool,
    /// End a run after this time, such as 500ms, 5s or 2m
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: String,
    /// Give it this file as standard input (otherwise what is piped into hob, or nothing)
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Worlds to run it in beside yours: all, none, or some, such as input,time,link-moved
    #[arg(long, value_name = "LIST", default_value = "all")]
    worlds: String,
    /// Try no further world after this time
    #[arg(long, value_name = "TIME", default_value = "5m")]
    within: String,
    /// Show each world, also where it is the same there
    #[arg(long)]
    verbose: bool,
    /// Show the verdicts that are kept, and whether they still hold
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// As for `hob run`; a `--` after the program is left out
    #[arg(required_unless_present = "list", trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM [ARGUMENT]...")]
    program: Vec<OsString>,
}

/// Verifies, or lists; returns the exit code.
pub(crate) fn run(start: &Start, asked: &Verify) -> Result<u8, Failure> {
    let kept_in = state_dir()?;
    if asked.list {
        list(&kept_in, asked)?;
        return Ok(0);
    }
    let chosen = worlds::chosen(&asked.worlds)
        .map_err(|error| Failure::usage(format!("`--worlds`: {error}")))?;
    let within = durations::milliseconds(&asked.within)
        .map_err(|wrong| Failure::usage(format!("--within {}: {wrong}", asked.within)))?;
    let within = Duration::from_millis(within);
    let words = runs::words(&asked.program);
    let program = resolve(start, &words)?;
    let interrupts = Interrupts::new().map_err(cannot)?;
    let session = Session::new((start, &interrupts), asked, words)?;
    let record = session.verify(&program, &kept_in, &chosen, within);
    if let Some(number) = interrupts.came() {
        // The session has cleared up.
        crate::say::line(b"interrupted: no verdict");
        signals::die_by(number);
    }
    let record = record?;
    if let Err(error) = kept::keep(&kept_in, &record) {
        let place = kept_in.display();
        crate::say::line(format!("the verdict is not kept in {place}: {error}").as_bytes());
    }
    if asked.json {
        out_json(&json(&record))?;
    } else {
        out(&text::record(&record, asked.verbose, &Look::of_stdout()))?;
    }
    Ok(match record.verdict {
        Verdict::Same | Verdict::Varies => 0,
        Verdict::Differs | Verdict::Frozen => DIFFERS,
        Verdict::NeverWarm => NEVER_WARM,
    })
}

fn list(kept_in: &Path, asked: &Verify) -> Result<(), Failure> {
    let records = kept::list(kept_in)
        .map_err(|error| Failure::new(format!("cannot read the verdicts: {error}")))?;
    if asked.json {
        return out_json(&records.iter().map(json).collect::<String>());
    }
    out(&text::list(&records, &crate::show::clock::Clock::now(), &Look::of_stdout()))
}

fn json(record: &Record) -> String {
    let line = serde_json::to_string(record);
    line.expect("a record has only string keys and whole numbers") + "\n"
}

/// What would run.
fn resolve(start: &Start, words: &[OsString]) -> Result<Program, Failure> {
    let argv: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let lookup = |name: &[u8]| start.variable(name);
    let here = process::working_directory();
    let cwd = here.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
    hob_resolve::resolve(&argv, &lookup, cwd)
        .map_err(|error| Failure::not_resolved(start, argv.first().copied(), &error))
}
