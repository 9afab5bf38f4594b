//! `hob check`: the options, and what is shown of what `hob_check` finds.

mod report;

use std::path::PathBuf;

use clap::Args;
use hob_check::{Asked, Planned};
use hob_os::signals;

use super::repeated::progress::Progress as Line;
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::say;
use crate::show::style::Look;
use crate::show::text::printable;
use report::Report;

/// Where the file or the command line is wrong.
const WRONG: u8 = 2;

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

impl Check {
    fn wanted(&self) -> Asked {
        Asked {
            only: self.only.clone(),
            skip: self.skip.clone(),
            profile: self.profile.clone(),
            base: self.base.clone(),
            times: self.times,
            jobs: self.jobs,
            gate: self.gate,
            variable: self.variable.clone(),
            secret: self.secret.clone(),
            against: self.against.clone(),
        }
    }
}

/// Checks; returns the exit code.
pub(crate) fn run(asked: &Check) -> Result<u8, Failure> {
    let wanted = asked.wanted();
    // Each file is understood before anything is asked.
    let plan = |path: &PathBuf| {
        Planned::new(path, &wanted)
            .map_err(|error| Failure::with_code(format!("{}: {error}", path.display()), WRONG))
    };
    let plans = asked.files.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let reports = asked.report.iter().map(|path| Report::new(path)).collect::<Result<Vec<_>, _>>();
    let reports = reports.map_err(|why| Failure::with_code(format!("--report {why}"), WRONG))?;
    let mut all = Vec::new();
    for plan in plans {
        let ran = plan.perform(&wanted, || Box::new(Line::new()));
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
    let code = hob_check::worst(&all);
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
