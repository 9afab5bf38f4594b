//! What a call's receipt says of the time that it saved: which calls are a measure, and which are
//! measured. The arithmetic is the core's ([`hob_core::calls::saving`]).
//!
//! Not counted at all: a watched run, a call beside which others ran, one that ended otherwise
//! than by itself, and one that waited at a terminal.

use std::hash::{DefaultHasher, Hash, Hasher};

use hob_core::calls::saving::{ColdRun, WarmRun, has_waited};
use hob_core::event::{Found, Performed};
use hob_core::outcome::{ColdReason, Outcome};
use hob_core::phase::Phase;
use hob_core::receipt::{GainPart, Receipt};
use hob_wire::call::Streams;
use hob_wire::exit::Exit;

use super::ledger::Entry;
use crate::warm::programs::Entry as Known;

/// Remembers a cold run, or says what a warm call saved.
pub(super) fn account(entry: &Entry, receipt: &Receipt, known: &mut Known) -> Option<GainPart> {
    let (outcome, how) = entry.settled?;
    let (Outcome::Exited(Exit::Code(code)), true) = (outcome, entry.company.alone) else {
        return None;
    };
    let main = receipt.phases.iter().find(|phase| phase.name == Phase::Main.name())?;
    let cpu_us = receipt.usage.map(|usage| usage.user_us.saturating_add(usage.system_us));
    let waited = cpu_us.is_none_or(|cpu_us| has_waited(main.us, cpu_us));
    if entry.streams == Streams::Terminal && waited {
        return None;
    }
    let arguments = digest(entry, code)?;
    match how {
        Performed::Cold(ColdReason::Learning | ColdReason::Stale)
        | Performed::Warm { found: Found::Bare | Found::Installed, .. }
        | Performed::InPlace(_)
        | Performed::Not => None,
        Performed::Cold(_) => {
            let run = ColdRun { wall_us: main.us, cpu_us: cpu_us? };
            known.cold_runs.remember(arguments, run);
            None
        }
        Performed::Warm { .. } => {
            let warm = WarmRun { total_us: receipt.total_us, main_us: main.us };
            let preload_us = known.lesson.as_ref()?.preload_us?;
            known.cold_runs.gain(arguments, warm, preload_us)
        }
    }
}

/// What tells calls of other arguments apart, and such as ended otherwise. It stays in memory.
fn digest(entry: &Entry, code: u8) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    for word in &entry.resolved.as_ref()?.argv {
        word.hash(&mut hasher);
    }
    code.hash(&mut hasher);
    Some(hasher.finish())
}
