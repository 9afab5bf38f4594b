//! The receipt of a set: one for all of its hooks.

use hob_core::hooks::{Account, HookOutcome, SetRecord};
use hob_core::receipt::Receipt;

use super::{Cut, Open};
use crate::recorder::format;

/// What became of a set, with why it was cut: one that ran out of time was cancelled by that.
pub(super) fn outcome(record: &SetRecord, cut: Option<Cut>) -> HookOutcome {
    match (record.outcome, cut) {
        (HookOutcome::Cancelled, Some(Cut::TimedOut)) => HookOutcome::Timeout,
        (outcome, _) => outcome,
    }
}

/// The receipt of a set that has ended.
pub(super) fn of(open: &Open, record: &SetRecord, outcome: HookOutcome) -> Receipt {
    let mut account = Account::new(record.dir.text().into_owned());
    account.add(record);
    // The runner is older than this set, and what cut it is known here.
    (account.outcome, account.wall_us) = (outcome, record.wall_us);
    let at = format::moment(open.at);
    account.receipt(open.call.0, at, open.pid, reason(outcome, open.cut))
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
