//! `hob check`: do the endpoints and commands of a file still answer as they should, for each kind
//! of user, in time?
//!
//! ```text
//!   file ─▶ plan: checks × profiles ─▶ cells, `jobs` at one time ─▶ judged ─▶ matrix, failures, reports
//! ```
//! Invariants: one bound over everything; each body and each wait has an end; what has no sample has
//! not passed; what is slower than before is told only if fresh times say so; what a profile may show goes to its own origin and to no other; no secret is shown.

mod against;
mod answer;
mod command;
mod counts;
mod earlier;
mod expect;
mod file;
mod hurl;
mod plan;
mod report;
mod request;
mod run;
mod sample;
mod secrets;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use hob_core::proof::looks::Gate;
use hob_os::signals;

use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::say;
use crate::show::style::Look;
use crate::show::text::printable;
use file::File;
use plan::Plan;
use report::{Ran, Report};
use run::{Caller, Found, State};

/// Exit codes beside 0.
const FAILED: u8 = 1;
const WRONG: u8 = 2;
const NOT_CONCLUSIVE: u8 = 3;
const SLOWER: u8 = 4;
/// A file that is longer is no file of checks.
const FILE_MAX: u64 = 64 << 20;

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(after_help = "A file of checks, site.check.toml:\n\n  \
base   = \"http://127.0.0.1:8080\"\n  within = \"800ms\"\n\n  \
[profile.anonymous]\n  [profile.support]\n  basic = { user = \"support\", password = \"env:SUPPORT_PASSWORD\" }\n\n  \
[check.packages]\n  get    = \"/api/packages\"\n  status = { anonymous = 401, else = 200 }\n  json   = { \"$.entries\" = \"count >= 1\" }\n\n\
Exit code: 0 all passed; 1 one failed, or nothing was checked; 2 the file or the command line is wrong; 3 some could not \
be run, such as after a login that failed; 4 one is surely slower than --gate allows.")]
pub(crate) struct Check {
    /// Files of checks; one of Hurl's ends in .hurl
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only the checks with such a name; `*` is any text [may be repeated]
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
    /// All but these [may be repeated]
    #[arg(long, value_name = "GLOB")]
    skip: Vec<String>,
    /// Only as this profile [may be repeated]
    #[arg(long, value_name = "NAME")]
    profile: Vec<String>,
    /// Where paths begin, instead of the file's `base`
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    /// How often each is asked
    #[arg(long, value_name = "N")]
    times: Option<usize>,
    /// How many are asked at one time
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Print JSON, one line a file
    #[arg(long)]
    json: bool,
    /// Write a report: .html, .xml (JUnit), .json or .md, by the name's ending [may be repeated]
    #[arg(long, value_name = "FILE")]
    report: Vec<PathBuf>,
    /// Exit code 4 if one is surely slower by more than this share, such as 10%, than in the runs before
    /// or at the other server
    #[arg(long, value_name = "SHARE", value_parser = crate::verbs::repeated::share)]
    gate: Option<f64>,
    /// What `{{NAME}}` stands for in a file of Hurl's; HURL_NAME in the environment is another way
    /// [may be repeated]
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    variable: Vec<(String, String)>,
    /// The same for what no report shows [may be repeated]
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    secret: Vec<(String, String)>,
    /// Compare with another server: both are asked, in pairs and in random order
    #[arg(long, value_name = "base=URL", value_parser = other_base)]
    against: Option<String>,
}

/// What `--against` names.
fn other_base(text: &str) -> Result<String, String> {
    let url = text.strip_prefix("base=").filter(|url| !url.is_empty());
    url.map(str::to_owned).ok_or_else(|| "write it as base=http://127.0.0.1:8081".to_owned())
}

/// What `--variable` names.
fn variable(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Checks; returns the exit code.
pub(crate) fn run(asked: &Check) -> Result<u8, Failure> {
    // Each file is understood before anything is asked.
    let mut plans = Vec::new();
    for path in &asked.files {
        let name = path.display().to_string();
        let plan = |asked: &Check| read(path, asked).and_then(|file| Plan::new(file, asked));
        let wrong = |error: String| Failure::with_code(format!("{name}: {error}"), WRONG);
        let this = plan(asked).map_err(wrong)?;
        let that = match &asked.against {
            None => None,
            Some(_) => {
                let there = Check { base: asked.against.clone(), ..asked.clone() };
                let plan = plan(&there).map_err(|error| wrong(format!("--against: {error}")))?;
                Some(Rc::new(plan))
            }
        };
        plans.push((name, Rc::new(this), that));
    }
    let reports = asked.report.iter().map(|path| Report::new(path)).collect::<Result<Vec<_>, _>>();
    let reports = reports.map_err(|why| Failure::with_code(format!("--report {why}"), WRONG))?;
    let mut all = Vec::new();
    for (path, (file, plan, other)) in asked.files.iter().zip(plans) {
        let ran = match other {
            Some(other) => with_other(file, plan, &other, asked),
            None => ran(path, file, plan, asked.gate),
        };
        let ran = ran.map_err(|error| Failure::new(format!("cannot check: {error}")))?;
        if asked.json {
            out_json(&format!("{}\n", report::json::json(&ran)))?;
        } else {
            out(&report::text::report(&ran, &Look::of_stdout()))?;
        }
        if ran.plan.cells.is_empty() {
            let text = format!("{}: nothing was checked: no check is left", ran.file);
            say::line(text.as_bytes());
        }
        let interrupted = ran.found.interrupted.is_some();
        all.push(ran);
        if interrupted {
            break;
        }
    }
    let code = worst(&all);
    let unwritten = report::write(&reports, &all, code);
    if let Some(number) = all.last().and_then(|ran| ran.found.interrupted) {
        for why in &unwritten {
            say::line(format!("--report {why}").as_bytes());
        }
        signals::die_by(number);
    }
    if let Some(why) = unwritten.first() {
        return Err(Failure::new(format!("--report {why}")));
    }
    if !reports.is_empty() && !asked.json {
        let look = Look::of_stdout();
        let paths: Vec<_> =
            reports.iter().map(|report| report.path().display().to_string()).collect();
        out(&format!("report: {}\n", printable(&paths.join(", "), look.charset)))?;
    }
    Ok(code)
}

/// Performs a file, and compares it with the runs before.
fn ran(path: &Path, file: String, plan: Rc<Plan>, gate: Option<f64>) -> std::io::Result<Ran> {
    let caller = Caller::new(&plan);
    let mut found = caller.run()?;
    let mut earlier = earlier::earlier(path, &plan, &caller, &mut found)?;
    let mut code = code(&plan, &found);
    if let (0, Some(gate)) = (code, gate) {
        code = match &mut earlier {
            Some(earlier) if earlier.is_slower(gate) => SLOWER,
            Some(earlier) if earlier.compared > 0 => 0,
            Some(earlier) => {
                earlier.notes.push("--gate cannot be decided: no run to compare with".to_owned());
                NOT_CONCLUSIVE
            }
            None => NOT_CONCLUSIVE,
        };
    }
    Ok(Ran { file, plan, found, earlier, against: None, code })
}

/// Performs a file at both servers, and compares them. The run is not one of those that later ones
/// are compared with: the other server may have disturbed it.
fn with_other(
    file: String,
    plan: Rc<Plan>,
    other: &Rc<Plan>,
    asked: &Check,
) -> std::io::Result<Ran> {
    let (caller, there) = (Caller::new(&plan), Caller::new(other));
    let mut found = caller.run()?;
    let wanted = against::Asked { times: asked.times, gate: asked.gate };
    let against = against::against(&caller, (&plan, &mut found), (&there, other), wanted)?;
    let mut code = code(&plan, &found);
    if code == 0 && asked.gate.is_some() {
        code = match against.as_ref().and_then(|against| against.gate) {
            Some(Gate::Passed) => 0,
            Some(Gate::Failed) => SLOWER,
            Some(Gate::Undecided) | None => NOT_CONCLUSIVE,
        };
    }
    Ok(Ran { file, plan, found, earlier: None, against, code })
}

/// The code of all files.
fn worst(all: &[Ran]) -> u8 {
    let any = |code: u8| all.iter().any(|ran| ran.code == code).then_some(code);
    any(FAILED).or(any(SLOWER)).or(any(NOT_CONCLUSIVE)).unwrap_or(0)
}

/// A failure counts before what was not run, and a login that failed is why others were not run.
fn code(plan: &Plan, found: &Found) -> u8 {
    if plan.cells.is_empty() {
        return FAILED;
    }
    let mut not_run = false;
    let mut failed = false;
    let mut login_failed = false;
    for (cell, done) in plan.cells.iter().zip(&found.cells) {
        match done.state {
            State::Passed => {}
            State::NotRun(_) => not_run = true,
            State::Failed if plan.is_login(cell) => login_failed = true,
            State::Failed | State::Slow => failed = true,
        }
    }
    match (failed, login_failed, not_run) {
        (true, ..) => FAILED,
        (false, _, true) => NOT_CONCLUSIVE,
        (false, true, false) => FAILED,
        (false, false, false) => 0,
    }
}

fn read(path: &std::path::Path, asked: &Check) -> Result<File, String> {
    use std::io::Read as _;
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(format!("is longer than {} MiB", FILE_MAX >> 20));
    }
    if path.extension().is_some_and(|ending| ending == "hurl") {
        return hurl::read(&bytes, &asked.variable, &asked.secret);
    }
    File::read(&bytes)
}
