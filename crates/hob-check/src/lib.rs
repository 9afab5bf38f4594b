//! What `hob check` does: do the endpoints and commands of a file still answer as they should, for each kind
//! of user, in time?
//!
//! ```text
//!   file ─▶ plan: checks × profiles ─▶ cells, `jobs` at one time ─▶ judged (shown by `hob`)
//! ```
//! Invariants: one bound over everything; each body and each wait has an end; what has no sample has
//! not passed; what is slower than before is told only if fresh times say so; what a profile may show goes to its own origin and to no other; no secret is shown.

#![forbid(unsafe_code)]

mod against;
mod answer;
mod command;
mod counts;
mod earlier;
mod expect;
mod file;
mod hurl;
mod plan;
mod request;
mod run;
mod sample;
mod secrets;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hob_proof::looks::Gate;

pub use against::Against;
pub use counts::Counts;
pub use earlier::{Earlier, Off, Run};
use file::File;
pub use plan::{Cell, Check, Plan, Profile, Request, What};
pub use request::curl;
use run::Caller;
pub use run::{Done, Found, NewProgress, Progress, State};
pub use secrets::Secrets;

/// Exit codes beside 0.
const FAILED: u8 = 1;
const NOT_CONCLUSIVE: u8 = 3;
const SLOWER: u8 = 4;
/// A file that is longer is no file of checks.
const FILE_MAX: u64 = 64 << 20;

/// What is asked of each file.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Only checks with such a name, where there are any.
    pub only: Vec<String>,
    /// All but these.
    pub skip: Vec<String>,
    /// Only as these profiles, where there are any.
    pub profile: Vec<String>,
    /// Where paths begin, instead of the file's base.
    pub base: Option<String>,
    /// How often each is asked.
    pub times: Option<usize>,
    /// How many are asked at one time.
    pub jobs: Option<usize>,
    /// The share by which one may be slower.
    pub gate: Option<f64>,
    /// The variables of a file of Hurl's.
    pub variable: Vec<(String, String)>,
    /// Those that no report shows.
    pub secret: Vec<(String, String)>,
    /// The base of another server to compare with.
    pub against: Option<String>,
}

/// A file that is understood; nothing is asked yet.
#[derive(Debug)]
pub struct Planned {
    path: PathBuf,
    this: Rc<Plan>,
    other: Option<Rc<Plan>>,
}

/// A file of checks that was performed.
#[derive(Debug)]
pub struct Ran {
    /// Its name.
    pub file: String,
    /// What was to be asked.
    pub plan: Rc<Plan>,
    /// What came of it.
    pub found: Found,
    /// `None`: it was stopped, or asked nothing.
    pub earlier: Option<Earlier>,
    /// `None`: no other server was asked for, or it was stopped before.
    pub against: Option<Against>,
    /// The exit code for this file.
    pub code: u8,
}

impl Planned {
    /// Understands a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(path: &Path, asked: &Asked) -> Result<Planned, String> {
        let plan = |asked: &Asked| Plan::new(read(path, asked)?, asked).map(Rc::new);
        let this = plan(asked)?;
        let other = asked.against.is_some().then(|| {
            let there = Asked { base: asked.against.clone(), ..asked.clone() };
            plan(&there).map_err(|error| format!("--against: {error}"))
        });
        Ok(Planned { path: path.to_owned(), this, other: other.transpose()? })
    }

    /// Performs it, and compares it with the runs before or with the other server.
    ///
    /// # Errors
    /// The system has no signals or sockets to give.
    pub fn perform(self, asked: &Asked, progress: NewProgress) -> std::io::Result<Ran> {
        match &self.other {
            Some(other) => self.with_other(other, asked, progress),
            None => self.alone(asked.gate, progress),
        }
    }

    fn alone(&self, gate: Option<f64>, progress: NewProgress) -> std::io::Result<Ran> {
        let plan = self.this.clone();
        let caller = Caller::new(&plan, progress);
        let mut found = caller.run()?;
        let mut earlier = earlier::earlier(&self.path, &plan, &caller, &mut found)?;
        let mut code = code(&plan, &found);
        if let (0, Some(gate)) = (code, gate) {
            code = match &mut earlier {
                Some(earlier) if earlier.is_slower(gate) => SLOWER,
                Some(earlier) if earlier.compared > 0 => 0,
                Some(earlier) => {
                    earlier
                        .notes
                        .push("--gate cannot be decided: no run to compare with".to_owned());
                    NOT_CONCLUSIVE
                }
                None => NOT_CONCLUSIVE,
            };
        }
        Ok(Ran { file: self.name(), plan, found, earlier, against: None, code })
    }

    /// Performs a file at both servers, and compares them. The run is not one of those that later ones
    /// are compared with: the other server may have disturbed it.
    fn with_other(
        &self,
        other: &Rc<Plan>,
        asked: &Asked,
        progress: NewProgress,
    ) -> std::io::Result<Ran> {
        let plan = self.this.clone();
        let (caller, there) = (Caller::new(&plan, progress), Caller::new(other, progress));
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
        Ok(Ran { file: self.name(), plan, found, earlier: None, against, code })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// The exit code of all files.
#[must_use]
pub fn worst(all: &[Ran]) -> u8 {
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

fn read(path: &Path, asked: &Asked) -> Result<File, String> {
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
