//! What a run found, as rows and columns, and what failed by its cause. Each form of a report is made
//! of these: text, JSON.

pub(super) mod json;
pub(super) mod text;

use super::plan::{Plan, What};
use super::request;
use super::run::{Found, State};
use crate::show::units::{Micro, duration};

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
            let curl = match &plan.checks[*check].what {
                What::Request(request) if ran => {
                    let cookies = plan.login_of(&plan.cells[at]).is_some();
                    Some(request::curl(plan, request, *profile, cookies))
                }
                What::Request(_) | What::Run { .. } => None,
            };
            failures.push(Failure { check: *check, profiles: vec![*profile], causes, curl, ran });
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
