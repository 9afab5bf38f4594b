//! What a run found, for programs: `hob.check/1`.

use serde_json::{Value, json};

use super::{Ran, causes, failures};
use crate::verbs::check::run::State;

/// The name of the format.
const SCHEMA: &str = "hob.check/1";
/// That of a report, which holds all files.
const REPORT: &str = "hob.check-report/1";

/// A report of all files.
pub(super) fn report(all: &[Ran], code: u8) -> Value {
    let files = all.iter().map(json);
    let files: Vec<Value> = files.collect();
    json!({"schema": REPORT, "exit": code, "files": files})
}

/// A file's run as JSON.
pub(in crate::verbs::check) fn json(ran: &Ran) -> Value {
    let Ran { file, plan, found, code } = ran;
    let cells = plan.cells.iter().zip(&found.cells).enumerate();
    let cells = cells.map(|(at, (cell, done))| {
        json!({
            "check": plan.checks[cell.check].name,
            "profile": plan.profiles[cell.profile].name,
            "state": word(&done.state),
            "code": done.code,
            "median_us": done.median_us(),
            "took_us": done.took_us,
            "causes": causes(plan, found, at),
            "answer": done.answer,
        })
    });
    let cells: Vec<Value> = cells.collect();
    let failures = failures(plan, found).into_iter().map(|failure| {
        let profiles = failure.profiles.iter().map(|at| plan.profiles[*at].name.as_str());
        json!({
            "check": plan.checks[failure.check].name,
            "profiles": profiles.collect::<Vec<_>>(),
            "causes": failure.causes,
            "curl": failure.curl,
        })
    });
    let failures: Vec<Value> = failures.collect();
    let base = plan.base.as_ref().map(|base| plan.secrets.redacted(&base.to_string()));
    json!({
        "schema": SCHEMA,
        "file": file,
        "base": base,
        "jobs": plan.jobs,
        "at": found.begun.to_string(),
        "took_us": u64::try_from(found.took.as_micros()).unwrap_or(u64::MAX),
        "interrupted": found.interrupted.is_some(),
        "exit": code,
        "cells": cells,
        "failures": failures,
    })
}

/// A state in one word.
pub(super) fn word(state: &State) -> &'static str {
    match state {
        State::Passed => "passed",
        State::Failed => "failed",
        State::Slow => "slow",
        State::NotRun(_) => "not-run",
    }
}
