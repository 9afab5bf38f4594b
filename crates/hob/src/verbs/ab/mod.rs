//! `hob ab`: does B take longer than A? Pairs of runs in random order, with a known rate of error
//! (`hob-proof`), on a machine that others use too.
//!
//! ```text
//!   two unmeasured runs of each ─▶ pair ─▶ pair of A and A ─▶ … ─▶ look ─▶ decided, or go on
//! ```
//! Invariants: a fair coin says which of a pair is first; no run is left out of the estimate; what
//! ends otherwise, or prints otherwise, from run to run is not compared; a gate fails only for sure
//! and passes only for sure.
//!
//! It does not say how fast a program is on a quiet machine, and it puts no load on one.

mod measured;
mod pairs;
mod phases;
mod report;
mod revision;
mod run;
mod side;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hob_os::signals;
use hob_os::start::Start;
use hob_proof::looks::{Gate, PAIRS_MIN, Question, Range, SAME};

use super::repeated::interrupts::Interrupts;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::style::Look;
use pairs::{Ended, Pairs};
use report::Report;
use revision::Worktree;
use side::{Letter, Side};

/// Exit codes beside 0.
const FAILED: u8 = 1;
const NO_VERDICT: u8 = 3;
/// More pairs are no patience that anybody has.
const PAIRS_MAX: i64 = 10_000;

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(
    override_usage = "hob ab [OPTIONS] 'COMMAND A' 'COMMAND B'\n       hob ab [OPTIONS] --warm PROGRAM [ARGUMENT]...\n       hob ab [OPTIONS] --rev REVISION -- COMMAND [ARGUMENT]...",
    after_help = "It runs A and B in pairs, a coin says which is first, and looks after 10, 20, 40, 80 and 160 \
pairs: of 100 comparisons of a thing with itself at most 5 say that it differs, however busy the machine is. Both must \
exit and print the same. A command with characters of the shell is run by `sh -c`, any other directly.\n\n\
Exit code: 0; 1 what --gate or --same asks for is surely not so; 3 no verdict: they end or print otherwise, or with --gate or \
--same it is undecided."
)]
pub(crate) struct Ab {
    /// Look once, after so many pairs
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(i64).range(PAIRS_MIN as i64..=PAIRS_MAX))]
    pairs: Option<i64>,
    /// Fail if B surely takes so much longer than A, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = crate::verbs::repeated::share)]
    gate: Option<f64>,
    /// Fail unless B surely takes the same time as A, within 2% or within this
    #[arg(long, value_name = "SHARE", value_parser = crate::verbs::repeated::share, num_args = 0..=1)]
    #[arg(default_missing_value = "2%", require_equals = true)]
    same: Option<f64>,
    /// What decides: wall time, or processor time, which moves less on a shared machine
    #[arg(long, value_enum, value_name = "NAME", default_value = "wall")]
    metric: Metric,
    /// Run this by `sh -c` before each run, unmeasured
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Compare although A and B print otherwise, or end with different exit codes
    #[arg(long)]
    differ: bool,
    /// Compare a program cold (without hob) and warm
    #[arg(long, conflicts_with = "rev")]
    warm: bool,
    /// Compare a command in a worktree of this revision and here
    #[arg(long, value_name = "REVISION")]
    rev: Option<String>,
    /// With --rev: run this by `sh -c` in both places first
    #[arg(long, value_name = "COMMAND", requires = "rev")]
    build: Option<String>,
    /// Print JSON, every run included
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown, for a pull request
    #[arg(long)]
    markdown: bool,
    /// Two commands; with --warm or --rev one, with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "COMMAND")]
    words: Vec<std::ffi::OsString>,
}

/// What is compared, and decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Metric {
    /// From before a run's start to after its end
    Wall,
    /// User and system time of a run and of all that it waited for
    Cpu,
}

impl Metric {
    fn name(self) -> &'static str {
        match self {
            Metric::Wall => "wall",
            Metric::Cpu => "cpu",
        }
    }
}

impl Ab {
    fn question(&self) -> Question {
        let pairs = self.pairs.and_then(|pairs| usize::try_from(pairs).ok());
        let gate = match (self.gate.map(Range::at_most), self.same.map(Range::around)) {
            (Some(gate), Some(same)) => Some(gate.and(same)),
            (one, other) => one.or(other),
        };
        Question { pairs, gate, same: self.same.unwrap_or(SAME) }
    }
}

/// Compares; returns the exit code.
pub(crate) fn run(start: &Start, asked: &Ab) -> Result<u8, Failure> {
    let interrupts = Interrupts::new().map_err(cannot)?;
    let mut worktree = None;
    let sides = sides(asked, &interrupts, &mut worktree)?;
    let mut pairs = Pairs::new(start, &interrupts, asked, sides)?;
    let ended = pairs.run();
    let interrupted = interrupts.came();
    // Before anything is printed: who reads the verdict finds nothing of it left.
    drop(worktree);
    if let (Some(number), Err(_)) = (interrupted, &ended) {
        crate::say::line(b"interrupted: no pair is whole yet");
        signals::die_by(number);
    }
    let ended = ended?;
    let report = Report::new(&pairs, &ended, asked);
    if asked.json {
        out_json(&report.json())?;
    } else if asked.markdown {
        out(&text::markdown(&report))?;
    } else {
        out(&text::report(&report, &Look::of_stdout()))?;
    }
    if let Some(number) = interrupted {
        signals::die_by(number);
    }
    Ok(code(asked, &ended))
}

fn code(asked: &Ab, ended: &Ended) -> u8 {
    let Ended::Looked(looked) = ended else { return NO_VERDICT };
    let Some(decides) = looked.decides(asked.metric) else { return NO_VERDICT };
    if looked.at_fault {
        return NO_VERDICT;
    }
    match decides.gate {
        None | Some(Gate::Passed) => 0,
        Some(Gate::Failed) => FAILED,
        Some(Gate::Undecided) => NO_VERDICT,
    }
}

/// What A and what B is.
fn sides(
    asked: &Ab,
    interrupts: &Interrupts,
    worktree: &mut Option<Worktree>,
) -> Result<[Side; 2], Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(format!("cannot tell the working directory: {error}")))?;
    if asked.warm {
        return Ok([Side::cold(&asked.words, &here), Side::warm(&asked.words, &here)]);
    }
    if let Some(revision) = &asked.rev {
        let made = worktree.insert(Worktree::new(revision, &here)?);
        let there = made.directory();
        if let Some(build) = &asked.build {
            for place in [&there, &here] {
                revision::build(build, place, interrupts)?;
            }
        }
        let side =
            |letter, name: &str, place: PathBuf| Side::of_words(letter, name, &asked.words, place);
        let name = made.name();
        return Ok([side(Letter::A, &name, there)?, side(Letter::B, "here", here)?]);
    }
    let [a, b] = &asked.words[..] else {
        let later =
            asked.words.iter().skip(1).find(|word| word.as_encoded_bytes().starts_with(b"--"));
        if let Some(option) = later {
            let option = option.to_string_lossy();
            return Err(Failure::usage(format!(
                "`{option}` stands after a command: options of hob come first, and a command with \
                 options is in quotes"
            )));
        }
        let text = match asked.words.len() {
            1 => {
                "one command is not two: `hob ab 'COMMAND A' 'COMMAND B'`; with --warm or --rev one is enough"
            }
            _ => {
                "more than two commands: put quotes around each, as in `hob ab 'sort a' 'sort -u a'`"
            }
        };
        return Err(Failure::usage(text));
    };
    Ok([Side::of_text(Letter::A, a, here.clone())?, Side::of_text(Letter::B, b, here)?])
}

fn cannot(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot run commands: {error}"))
}
