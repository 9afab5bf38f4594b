//! What a run found, for programs: `hob.check/1`.

use hob_proof::many::differs;
use hob_proof::score::Estimate;
use serde_json::{Value, json};

use super::{Ran, causes, failures};
use hob_check::Against;
use hob_check::Earlier;
use hob_check::Plan;

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
pub(in super::super) fn json(ran: &Ran) -> Value {
    let Ran { file, plan, found, code, earlier, against } = ran;
    let cells = plan.cells.iter().zip(&found.cells).enumerate();
    let cells = cells.map(|(at, (cell, done))| {
        json!({
            "check": plan.checks[cell.check].name,
            "profile": plan.profiles[cell.profile].name,
            "state": done.state.word(),
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
        "earlier": earlier.as_ref().map(|earlier| beside(plan, earlier)),
        "against": against.as_ref().map(|against| other(plan, against)),
    })
}

/// The runs before.
fn beside(plan: &Plan, earlier: &Earlier) -> Value {
    let off = earlier.off.iter().map(|off| {
        let cell = &plan.cells[off.cell];
        json!({
            "check": plan.checks[cell.check].name,
            "profile": plan.profiles[cell.profile].name,
            "ratio": off.ratio,
            "sure": off.sure,
            "again": off.again,
        })
    });
    let runs = earlier.runs.iter().map(|run| run.number).collect::<Vec<_>>();
    json!({
        "run": earlier.number,
        "runs": runs,
        "compared": earlier.compared,
        "alike": earlier.alike,
        "off": off.collect::<Vec<Value>>(),
        "calls": earlier.calls,
        "notes": earlier.notes,
    })
}

/// The other server.
fn other(plan: &Plan, against: &Against) -> Value {
    let ratios = |found: &Estimate| {
        let [middle, low, high] = [found.middle, found.low, found.high].map(Estimate::ratio);
        json!({"ratio": middle, "low": low, "high": high, "sure": differs(found)})
    };
    let named = |at: usize, mut value: Value| {
        let cell = &plan.cells[at];
        value["check"] = plan.checks[cell.check].name.clone().into();
        value["profile"] = plan.profiles[cell.profile].name.clone().into();
        value
    };
    let cells = against.cells.iter().map(|(at, found)| named(*at, ratios(found)));
    let left_out = against.left_out.iter().map(|(at, why)| named(*at, json!({"why": why})));
    json!({
        "base": against.base,
        "pairs": against.pairs,
        "all": against.all.as_ref().map(ratios),
        "cells": cells.collect::<Vec<Value>>(),
        "left_out": left_out.collect::<Vec<Value>>(),
        "gate": against.gate.map(|gate| gate.word()),
    })
}
