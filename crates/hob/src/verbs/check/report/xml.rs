//! The report for what reads JUnit's XML: a suite for each profile, a case in it for each check.
//!
//! What was not run is an error and not skipped: else a run whose login failed would be green.

use std::fmt::Write as _;

use super::{Matrix, Ran, causes, code_word, failures};
use crate::show::page::markup::{attribute, text};
use hob_check::State;

/// The one case of a file of which nothing is left.
const NOTHING: &str = "nothing was checked";

/// The whole report.
pub(super) fn xml(all: &[Ran]) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    let mut id = 0;
    for ran in all {
        let matrix = Matrix::new(&ran.plan);
        if matrix.profiles.is_empty() {
            suite(&mut out, ran, &mut id, &Suite::nothing());
        }
        for profile in &matrix.profiles {
            suite(&mut out, ran, &mut id, &Suite::new(ran, &matrix, *profile));
        }
    }
    out += "</testsuites>\n";
    out
}

/// A profile and what came of its checks.
#[derive(Default)]
struct Suite {
    name: String,
    cases: String,
    tests: usize,
    failures: usize,
    errors: usize,
    took_us: u64,
}

impl Suite {
    fn new(ran: &Ran, matrix: &Matrix, profile: usize) -> Suite {
        let plan = &ran.plan;
        let mut suite = Suite { name: plan.profiles[profile].name.clone(), ..Suite::default() };
        let failures = failures(plan, &ran.found);
        for check in &matrix.checks {
            let Some(at) = matrix.cell(*check, profile) else { continue };
            let done = &ran.found.cells[at];
            let took_us = done.took_us.iter().fold(0_u64, |sum, us| sum.saturating_add(*us));
            suite.tests += 1;
            suite.took_us = suite.took_us.saturating_add(took_us);
            let _ = write!(
                suite.cases,
                "<testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
                attribute(suite.name.as_bytes()),
                attribute(plan.checks[*check].name.as_bytes()),
                seconds(took_us),
            );
            let element = match done.state {
                State::Passed => {
                    suite.cases += "/>\n";
                    continue;
                }
                State::Failed | State::Slow => {
                    suite.failures += 1;
                    "failure"
                }
                State::NotRun(_) => {
                    suite.errors += 1;
                    "error"
                }
            };
            let causes = causes(plan, &ran.found, at);
            let own = failures.iter().find(|one| one.check == *check && one.causes == causes);
            let mut said = causes.join("\n");
            if let Some(own) = own {
                said += &format!("\n\n{}", own.curl.as_ref().unwrap_or(&own.asked));
            }
            if let Some(answer) = &done.answer {
                said += &format!("\n\n{}, answered:\n{answer}", code_word(plan, *check, done));
            }
            let _ = writeln!(
                suite.cases,
                "><{element} type=\"{}\" message=\"{}\">{}</{element}></testcase>",
                done.state.word(),
                attribute(causes.join("; ").as_bytes()),
                text(said.as_bytes()),
            );
        }
        suite
    }

    fn nothing() -> Suite {
        let cases = format!(
            "<testcase classname=\"check\" name=\"{NOTHING}\" time=\"0.000000\">\
             <error type=\"not-run\" message=\"no check is left\"/></testcase>\n"
        );
        Suite { name: "check".to_owned(), cases, tests: 1, errors: 1, ..Suite::default() }
    }
}

fn suite(out: &mut String, ran: &Ran, id: &mut usize, suite: &Suite) {
    let _ = writeln!(
        out,
        "<testsuite id=\"{id}\" package=\"{}\" name=\"{}\" timestamp=\"{}\" hostname=\"localhost\" \
         tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{}\">\n<properties/>",
        attribute(ran.file.as_bytes()),
        attribute(suite.name.as_bytes()),
        ran.found.begun.strftime("%Y-%m-%dT%H:%M:%S"),
        suite.tests,
        suite.failures,
        suite.errors,
        seconds(suite.took_us),
    );
    *id += 1;
    *out += &suite.cases;
    *out += "<system-out></system-out>\n<system-err></system-err>\n</testsuite>\n";
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}
