//! What receipts tell of runs that were calls of hob: processor time of warm workers, and which
//! phase differs.

use std::collections::HashMap;
use std::time::Duration;

use hob_core::receipt::Receipt;
use hob_os::start::Start;
use hob_proof::series;
use jiff::Timestamp;

use super::measured::Recorded;
use crate::show::clock::moment;
use crate::show::entries::{self, Entry};
use crate::verbs::log::{flush, state_dir};

/// How often receipts are read again until that of the last run is there.
const TRIES: usize = 20;
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// The receipts of runs, by process id.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    expected: bool,
    found: HashMap<u32, Receipt>,
}

/// One phase of both sides: medians, in microseconds.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) a_us: f64,
    pub(super) b_us: f64,
}

impl Receipts {
    /// Whether the unmeasured runs had receipts.
    pub(super) fn expect(&mut self, expected: bool) {
        self.expected = expected;
    }

    pub(super) fn are_to_be_read(&self) -> bool {
        self.expected
    }

    pub(super) fn read(&mut self, start: &Start, runs: &[Recorded], since: Timestamp) {
        let pids: Vec<u32> = runs.iter().map(|run| run.pid).collect();
        let last_of = |side: &str| runs.iter().rev().find(|run| run.side == side);
        for _ in 0..TRIES {
            self.found = of(start, &pids, since);
            // A daemon may write a call's receipt a moment after its caller has ended.
            let is_there = |run: &Recorded| self.found.contains_key(&run.pid);
            let of_side = |side: &&str| runs.iter().any(|run| run.side == *side && is_there(run));
            let mut sides = ["A", "B"].into_iter().filter(of_side);
            if sides.all(|side| last_of(side).is_none_or(is_there)) {
                return;
            }
            std::thread::sleep(TRY_AGAIN);
        }
    }

    /// The processor time of a run, its warm worker's with it; 0 where that is not known.
    pub(super) fn cpu_us(&self, run: &Recorded) -> f64 {
        let Some(receipt) = self.found.get(&run.pid).filter(|receipt| receipt.warm) else {
            return run.cpu_us;
        };
        #[expect(clippy::cast_precision_loss, reason = "microseconds of a run")]
        receipt.usage.map_or(0.0, |used| run.cpu_us + (used.user_us + used.system_us) as f64)
    }

    /// How many runs of a side were warm, of how many.
    pub(super) fn warm(&self, runs: &[Recorded], side: &str) -> Option<(usize, usize)> {
        let of_side: Vec<_> = runs.iter().filter(|run| run.side == side && !run.check).collect();
        let found: Vec<_> = of_side.iter().filter_map(|run| self.found.get(&run.pid)).collect();
        let warm = found.iter().filter(|receipt| receipt.warm).count();
        (!found.is_empty()).then_some((warm, of_side.len()))
    }

    /// The phases of both sides, in their order. Empty where not each side has receipts of most
    /// of its runs.
    pub(super) fn phases(&self, runs: &[Recorded]) -> Vec<Phase> {
        let mut names: Vec<&str> = Vec::new();
        let mut sides: [HashMap<&str, Vec<f64>>; 2] = Default::default();
        for (side, letter) in ["A", "B"].into_iter().enumerate() {
            let of_side = runs.iter().filter(|run| run.side == letter && !run.check);
            let (mut all, mut found) = (0, 0);
            for run in of_side {
                all += 1;
                let Some(receipt) = self.found.get(&run.pid) else { continue };
                found += 1;
                for phase in &receipt.phases {
                    if !names.contains(&phase.name.as_str()) {
                        names.push(&phase.name);
                    }
                    #[expect(clippy::cast_precision_loss, reason = "microseconds of a phase")]
                    sides[side].entry(&phase.name).or_default().push(phase.us as f64);
                }
            }
            if found * 2 <= all {
                return Vec::new();
            }
        }
        let median = |times: Option<&Vec<f64>>| {
            let mut sorted = times.cloned().unwrap_or_default();
            sorted.sort_by(f64::total_cmp);
            series::middle(&sorted).map_or(0.0, |[below, above]| f64::midpoint(below, above))
        };
        let phase = |name: &str| Phase {
            name: name.to_owned(),
            a_us: median(sides[0].get(name)),
            b_us: median(sides[1].get(name)),
        };
        names.into_iter().map(phase).collect()
    }
}

/// Whether the call of this process was performed by a warm worker of its own program.
pub(super) fn is_warm(start: &Start, pid: u32, since: Timestamp) -> bool {
    of(start, &[pid], since).get(&pid).is_some_and(Receipt::found_its_own)
}

/// Whether any of these processes was a call of hob.
pub(super) fn are_there(start: &Start, pids: &[u32], since: Timestamp) -> bool {
    !of(start, pids, since).is_empty()
}

fn of(start: &Start, pids: &[u32], since: Timestamp) -> HashMap<u32, Receipt> {
    flush(start);
    let Ok(state_dir) = state_dir() else { return HashMap::new() };
    // A second of room: the daemon's clock was read before ours, or is another machine's.
    let since = since.as_second() - 1;
    let is_one = |entry: &Entry| match entry {
        Entry::Receipt(receipt) => {
            pids.contains(&receipt.caller_pid)
                && moment(&receipt.at).is_some_and(|at| at.as_second() >= since)
        }
        Entry::Fallback(_) => false,
    };
    let found = entries::recent_of(&state_dir, pids.len(), is_one).unwrap_or_default();
    let receipts = found.into_iter().filter_map(|entry| match entry {
        Entry::Receipt(receipt) => Some((receipt.caller_pid, *receipt)),
        Entry::Fallback(_) => None,
    });
    receipts.collect()
}
