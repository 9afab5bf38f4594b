//! What a run found, as rows and columns, and what failed by its cause. Each form of a report is made
//! of these: text, JSON, JUnit's XML, a page, Markdown.

mod html;
pub(super) mod json;
mod markdown;
pub(super) mod text;
mod xml;

use std::io::Write as _;
use std::path::Path;

use hob_check::{Counts, Done, Found, Plan, Ran, State, What, curl};

use crate::show::units::{Micro, duration, seconds};
use crate::verbs::repeated::report_file::{Form, Refused, ReportFile};

/// What a report may be.
const FORMS: [Form; 4] = [Form::Html, Form::Xml, Form::Json, Form::Markdown];

/// A report that was asked for.
#[derive(Debug)]
pub(super) struct Report(ReportFile);

impl Report {
    /// By the name's ending, if it can be written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(path: &Path) -> Result<Report, Refused> {
        let file = ReportFile::new(path, &FORMS)?;
        file.check()?;
        Ok(Report(file))
    }

    /// Where it goes.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    fn text(&self, all: &[Ran], code: u8) -> String {
        match self.0.form() {
            Form::Html => html::page(all),
            Form::Xml => xml::xml(all),
            // JSON lines are not taken.
            Form::Json | Form::Lines => format!("{}\n", json::report(all, code)),
            Form::Markdown => markdown::markdown(all),
        }
    }
}

/// Writes reports. The exit code is that of all files. Returns what could not be written; what was
/// there before still is.
pub(super) fn write(reports: &[Report], all: &[Ran], code: u8) -> Vec<Refused> {
    let texts: Vec<String> = reports.iter().map(|report| report.text(all, code)).collect();
    // A disk that is waited for by all at once is waited for once.
    std::thread::scope(|scope| {
        let writing = reports.iter().zip(&texts).map(|(report, text)| {
            let write = || report.0.write(|out, _| out.write_all(text.as_bytes()));
            scope.spawn(write)
        });
        let writing: Vec<_> = writing.collect();
        let written = writing
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        written.filter_map(Result::err).collect()
    })
}

/// The base, or the file where there is none.
fn title(ran: &Ran) -> String {
    let base = ran.plan.base.as_ref();
    base.map_or_else(|| ran.file.clone(), |base| ran.plan.secrets.redacted(&base.to_string()))
}

/// What the runs before and the other server say, in parts of a line, and which are bad.
fn compared(ran: &Ran) -> Vec<(bool, String)> {
    let earlier = ran.earlier.iter().flat_map(|earlier| earlier.words(&ran.plan));
    let against = ran.against.iter().flat_map(|against| against.words(&ran.plan));
    earlier.chain(against).collect()
}

/// How much was asked, and how.
fn extent(ran: &Ran) -> String {
    let matrix = Matrix::new(&ran.plan);
    let (checks, profiles) = (matrix.checks.len(), matrix.profiles.len());
    let calls = many(Counts::new(&ran.found).calls, "call");
    let mut words = vec![
        format!("{} as {}", many(checks, "check"), many(profiles, "profile")),
        format!("{} at once", ran.plan.jobs),
        format!("{calls} in {}", took(&ran.found)),
        format!("begun {}", ran.found.begun.strftime("%Y-%m-%d %H:%M:%S UTC")),
    ];
    if let Some(number) = ran.earlier.as_ref().and_then(|earlier| earlier.number) {
        words.push(format!("run {number}"));
    }
    if ran.found.interrupted.is_some() {
        words.push("interrupted".to_owned());
    }
    words.join(" · ")
}

/// How long a run took.
fn took(found: &Found) -> String {
    match found.took.as_secs() {
        0..60 => format!("{:.1} s", found.took.as_secs_f64()),
        whole => seconds(whole),
    }
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `200`, `ok`, or `---` where there was no answer.
fn code_word(plan: &Plan, check: usize, done: &Done) -> String {
    match (&plan.checks[check].what, done.code) {
        (_, None) => "---".to_owned(),
        (What::Run { .. }, Some(0)) => "ok".to_owned(),
        (_, Some(code)) => code.to_string(),
    }
}

/// Rows and columns.
#[derive(Debug)]
pub(super) struct Matrix {
    /// Checks that have a cell, in the order of the file.
    pub(super) checks: Vec<usize>,
    /// Profiles that have a cell, in the order of the file.
    pub(super) profiles: Vec<usize>,
    cells: std::collections::HashMap<(usize, usize), usize>,
}

impl Matrix {
    pub(super) fn new(plan: &Plan) -> Matrix {
        let cells = plan.cells.iter().enumerate();
        let cells: std::collections::HashMap<_, _> =
            cells.map(|(at, cell)| ((cell.check, cell.profile), at)).collect();
        let sorted = |of: fn(&(usize, usize)) -> usize| {
            let mut all: Vec<usize> = cells.keys().map(of).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        Matrix { checks: sorted(|key| key.0), profiles: sorted(|key| key.1), cells }
    }

    /// The cell of a check as a profile.
    pub(super) fn cell(&self, check: usize, profile: usize) -> Option<usize> {
        self.cells.get(&(check, profile)).copied()
    }
}

/// A check that failed, as the profiles for which it failed in the same way.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) check: usize,
    pub(super) profiles: Vec<usize>,
    pub(super) causes: Vec<String>,
    pub(super) curl: Option<String>,
    /// What was asked, in one line.
    asked: String,
    /// The first cell of them.
    cell: usize,
    /// Whether it was asked at all.
    pub(super) ran: bool,
}

impl Failure {
    /// The check and its profiles.
    pub(super) fn title(&self, plan: &Plan, dot: &str) -> String {
        let mut words = vec![plan.checks[self.check].name.as_str()];
        words.extend(self.profiles.iter().map(|profile| plan.profiles[*profile].name.as_str()));
        words.join(dot)
    }
}

/// What did not pass, in the order of the file.
pub(super) fn failures(plan: &Plan, found: &Found) -> Vec<Failure> {
    let matrix = Matrix::new(plan);
    let mut failures: Vec<Failure> = Vec::new();
    for check in &matrix.checks {
        let from = failures.len();
        for profile in &matrix.profiles {
            let Some(at) = matrix.cell(*check, *profile) else { continue };
            if found.cells[at].state == State::Passed {
                continue;
            }
            let causes = causes(plan, found, at);
            let same = failures[from..].iter_mut().find(|failure| failure.causes == causes);
            if let Some(same) = same {
                same.profiles.push(*profile);
                continue;
            }
            let ran = !matches!(found.cells[at].state, State::NotRun(_));
            let planned = &plan.checks[*check];
            let filled = found.cells[at].filled.as_deref();
            let is_known = filled.is_some() || planned.is_whole();
            let what = &filled.unwrap_or(planned).what;
            let curl = match what {
                What::Request(request) if ran && is_known => {
                    let cookies = plan.login_of(&plan.cells[at]).is_some();
                    Some(curl(plan, request, *profile, cookies))
                }
                What::Request(_) | What::Run { .. } => None,
            };
            let asked = match what {
                _ if !is_known => planned.name.clone(),
                What::Request(request) => format!("{} {}", request.method, request.url),
                What::Run { words, .. } => words.join(" "),
            };
            let asked = plan.secrets.redacted(&asked);
            let profiles = vec![*profile];
            failures.push(Failure { check: *check, profiles, causes, curl, asked, cell: at, ran });
        }
    }
    failures
}

/// Why a cell did not pass, without secrets.
pub(super) fn causes(plan: &Plan, found: &Found, at: usize) -> Vec<String> {
    let done = &found.cells[at];
    if let State::NotRun(why) = &done.state {
        return vec![why.clone()];
    }
    let samples = done.took_us.len();
    let faults = done.faults.iter();
    let mut causes: Vec<String> = faults
        .map(|(fault, count)| {
            let fault = plan.secrets.redacted(fault);
            if samples > 1 { format!("{fault} ({count} of {samples})") } else { fault }
        })
        .collect();
    if let (State::Slow, Some(us)) = (&done.state, done.median_us()) {
        let within = plan.checks[plan.cells[at].check].within.unwrap_or_default();
        let within = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
        let shown = |us| duration(us, Micro::Sign);
        causes.push(format!("took {}, at most {}", shown(us), shown(within)));
    }
    causes
}
