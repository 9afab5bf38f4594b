//! What a run of hooks comes to, for its receipt: one set, or thousands, in the same size.

use serde::{Deserialize, Serialize};

use super::{HookOutcome, SetRecord, Way};
use crate::receipt::{HooksPart, OutcomePart, PhasePart, ProgramPart, Receipt, UsagePart};

/// The sum of the sets that have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The hooks directory, as it was named.
    pub dir: String,
    /// The worst that became of a set.
    pub outcome: HookOutcome,
    /// The signal that ended the last hook of that set, if one did.
    pub signal: Option<u8>,
    /// When the last set ended, in microseconds since the runner began.
    pub wall_us: u64,
    /// The sum of what the hooks used; of memory, the most.
    pub usage: Option<UsagePart>,
    /// Counts.
    pub hooks: HooksPart,
}

impl Account {
    /// Of a directory, without any set yet.
    #[must_use]
    pub fn new(dir: String) -> Account {
        let (outcome, hooks) = (HookOutcome::Ok, HooksPart::default());
        Account { dir, outcome, signal: None, wall_us: 0, usage: None, hooks }
    }

    /// Adds a set that has ended.
    pub fn add(&mut self, set: &SetRecord) {
        let worst = self.outcome.worst(set.outcome);
        if worst != self.outcome {
            self.signal = set.hooks.last().and_then(|hook| hook.signal);
        }
        self.outcome = worst;
        self.wall_us = self.wall_us.max(set.at_us + set.wall_us);
        if set.outcome == HookOutcome::Cancelled && set.hooks.is_empty() {
            // It was never begun.
            return;
        }
        self.hooks.targets += 1;
        self.hooks.failed += u64::from(!set.outcome.goes_on());
        for hook in &set.hooks {
            let count = match hook.way {
                Way::Spawned => &mut self.hooks.spawned,
                Way::Prestarted => &mut self.hooks.prestarted,
                Way::Forked => &mut self.hooks.forked,
                Way::Warm => &mut self.hooks.warm,
            };
            *count += 1;
            self.usage = match (self.usage, hook.usage) {
                (Some(one), Some(other)) => Some(UsagePart {
                    user_us: one.user_us + other.user_us,
                    system_us: one.system_us + other.system_us,
                    peak_kib: one.peak_kib.max(other.peak_kib),
                }),
                (one, other) => one.or(other),
            };
        }
    }

    /// The receipt: of which call, when it came (RFC 3339), whose it was, and the reason code.
    #[must_use]
    pub fn receipt(&self, call: u64, at: String, caller_pid: u32, reason: &str) -> Receipt {
        let HooksPart { spawned, prestarted, forked, warm, .. } = self.hooks;
        let all_warm = warm > 0 && spawned + prestarted + forked == 0;
        let program = ProgramPart::named(self.dir.clone(), "exec");
        let mut receipt = Receipt::new(call, at, program, self.part());
        (receipt.caller_pid, receipt.warm) = (caller_pid, all_warm);
        receipt.reason = reason.to_owned();
        receipt.isolation = if all_warm { "fork" } else { "spawn" }.to_owned();
        receipt.phases = vec![PhasePart { name: "run".to_owned(), start_us: 0, us: self.wall_us }];
        receipt.total_us = self.wall_us;
        (receipt.usage, receipt.hooks) = (self.usage, Some(self.hooks));
        receipt
    }

    fn part(&self) -> OutcomePart {
        let kind = match self.outcome {
            HookOutcome::Timeout => "timed-out",
            HookOutcome::Cancelled => "cancelled",
            HookOutcome::Ok
            | HookOutcome::Warning
            | HookOutcome::Interrupt
            | HookOutcome::Error
            | HookOutcome::SystemError => "exited",
        };
        let (code, signal) = match (kind, self.signal) {
            ("exited", Some(signal)) if self.outcome == HookOutcome::Error => (None, Some(signal)),
            ("exited", _) => (Some(self.outcome.exit_code()), None),
            _ => (None, None),
        };
        OutcomePart { kind: kind.to_owned(), code, signal, phase: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::HookRecord;

    fn set(outcome: HookOutcome, ways: &[Way], signal: Option<u8>) -> SetRecord {
        use crate::hooks::record::tests;
        let hook = |way: &Way| HookRecord { signal, way: *way, ..tests::hook(outcome) };
        SetRecord { outcome, hooks: ways.iter().map(hook).collect(), ..tests::set() }
    }

    fn receipt(sets: &[SetRecord]) -> Receipt {
        let mut account = Account::new("d".to_owned());
        sets.iter().for_each(|set| account.add(set));
        account.receipt(4, String::new(), 9, "hooks")
    }

    #[test]
    fn sets_are_counted_with_their_hooks_ways_and_usage() {
        let receipt = receipt(&[
            set(HookOutcome::Ok, &[Way::Spawned, Way::Forked], None),
            set(HookOutcome::Warning, &[Way::Prestarted, Way::Warm], None),
        ]);
        let want =
            HooksPart { targets: 2, failed: 0, spawned: 1, prestarted: 1, forked: 1, warm: 1 };
        assert_eq!((receipt.hooks, receipt.warm, receipt.total_us), (Some(want), false, 30));
        assert_eq!(receipt.usage, Some(UsagePart { user_us: 4, system_us: 8, peak_kib: 3 }));
        assert_eq!((receipt.outcome.kind.as_str(), receipt.outcome.code), ("exited", Some(0)));
    }

    #[test]
    fn a_set_that_was_never_begun_is_not_counted_and_is_told() {
        let cut = receipt(&[
            set(HookOutcome::Ok, &[Way::Prestarted], None),
            set(HookOutcome::Cancelled, &[], None),
        ]);
        assert_eq!(cut.hooks.map(|part| (part.targets, part.failed)), Some((1, 0)));
        assert_eq!(cut.outcome.kind, "cancelled");
    }

    #[test]
    fn the_worst_set_gives_the_outcome() {
        let killed = receipt(&[
            set(HookOutcome::Ok, &[Way::Warm], None),
            set(HookOutcome::Error, &[Way::Warm], Some(9)),
            set(HookOutcome::Warning, &[Way::Warm], None),
        ]);
        assert_eq!((killed.outcome.code, killed.outcome.signal), (None, Some(9)));
        assert_eq!((killed.hooks.map(|part| part.failed), killed.warm), (Some(1), true));
        let late = receipt(&[set(HookOutcome::Timeout, &[Way::Spawned], Some(15))]);
        assert_eq!((late.outcome.kind.as_str(), late.outcome.code), ("timed-out", None));
    }
}
