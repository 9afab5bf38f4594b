//! The receipt of a set: one for all of its hooks.

use hob_core::hooks::{HookOutcome, SetRecord, Way};
use hob_core::receipt::{OutcomePart, PhasePart, ProgramPart, Receipt, SCHEMA, UsagePart};

use super::{Cut, Open};

/// What became of a set, with why it was cut: one that ran out of time was cancelled by that.
pub(super) fn outcome(record: &SetRecord, cut: Option<Cut>) -> HookOutcome {
    match (record.outcome, cut) {
        (HookOutcome::Cancelled, Some(Cut::TimedOut)) => HookOutcome::Timeout,
        (outcome, _) => outcome,
    }
}

/// The receipt of a set that has ended.
pub(super) fn of(open: &Open, record: &SetRecord, outcome: HookOutcome) -> Receipt {
    let name = record.dir.text().into_owned();
    let warm = !record.hooks.is_empty() && record.hooks.iter().all(|hook| hook.way == Way::Warm);
    let phases = vec![PhasePart { name: "run".to_owned(), start_us: 0, us: record.wall_us }];
    Receipt {
        schema: SCHEMA.to_owned(),
        call: open.call.0,
        at: open.at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        program: ProgramPart {
            id: None,
            target: name.clone(),
            name,
            runtime: "exec".to_owned(),
            interpreter: None,
            arguments: 0,
        },
        caller_pid: open.pid,
        warm,
        reason: reason(outcome, open.cut).to_owned(),
        isolation: if warm { "fork" } else { "spawn" }.to_owned(),
        outcome: part(record, outcome),
        phases,
        total_us: record.wall_us,
        usage: usage(record),
        worker: None,
        cold_us: None,
        demoted: None,
        message: None,
    }
}

/// The stable code: why it ended as it did, where that was not a hook's own doing.
fn reason(outcome: HookOutcome, cut: Option<Cut>) -> &'static str {
    match (outcome, cut) {
        (HookOutcome::Cancelled, Some(Cut::CallerLeft)) => "caller-left",
        (HookOutcome::Cancelled, Some(Cut::Stopped)) => "stopping",
        (HookOutcome::Cancelled, Some(Cut::Asked | Cut::TimedOut) | None) => "cancelled",
        _ => "hooks",
    }
}

fn part(record: &SetRecord, outcome: HookOutcome) -> OutcomePart {
    let last = record.hooks.last();
    let kind = match outcome {
        HookOutcome::Timeout => "timed-out",
        HookOutcome::Cancelled => "cancelled",
        HookOutcome::Ok
        | HookOutcome::Warning
        | HookOutcome::Interrupt
        | HookOutcome::Error
        | HookOutcome::SystemError => "exited",
    };
    let (code, signal) = match kind {
        "exited" => match last.and_then(|hook| hook.signal) {
            Some(signal) if outcome == HookOutcome::Error => (None, Some(signal)),
            Some(_) | None => (Some(outcome.exit_code()), None),
        },
        _ => (None, None),
    };
    OutcomePart { kind: kind.to_owned(), code, signal, phase: None }
}

/// The sum of what its hooks used; of memory, the most.
fn usage(record: &SetRecord) -> Option<UsagePart> {
    let parts = record.hooks.iter().filter_map(|hook| hook.usage);
    parts.reduce(|one, other| UsagePart {
        user_us: one.user_us + other.user_us,
        system_us: one.system_us + other.system_us,
        peak_kib: one.peak_kib.max(other.peak_kib),
    })
}
