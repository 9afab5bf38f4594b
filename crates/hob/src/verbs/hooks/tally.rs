//! What many targets come to: counts, the spread of times, the slowest, the first failures.
//!
//! Invariant: its size does not grow with the number of targets, only with that of the hooks in
//! the directory.

use std::collections::BTreeMap;

use hob_core::hooks::{HookOutcome, HookRecord, SetRecord, signal_name};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// How many of the slowest are kept.
const SLOWEST_MAX: usize = 5;
/// How many causes are kept, each with the output of its first target; all failures are in a report.
const CAUSES_MAX: usize = 20;
/// How many targets of a cause are named.
const NAMED_MAX: usize = 3;
/// How much of the end of a failed hook's output is kept.
const OUTPUT_BYTES_MAX: usize = 4096;

/// A target that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Its line in the file of targets.
    pub(crate) line: u64,
    /// What it is told by.
    pub(crate) digest: String,
    /// Which of those that ran at once it was: the least number that was free.
    pub(crate) lane: u32,
    /// How often it was tried; its record is that of the last try.
    #[serde(default = "once")]
    pub(crate) tries: u32,
    /// What became of it.
    pub(crate) set: SetRecord,
}

fn once() -> u32 {
    1
}

impl Ended {
    /// What is worth saying of its tries, behind something else.
    pub(crate) fn in_which_try(&self) -> String {
        if self.tries > 1 { format!(", in try {}", self.tries) } else { String::new() }
    }
}

/// Whether an outcome is a failure. An interrupt is none: a hook asked for it.
pub(crate) fn failed(outcome: HookOutcome) -> bool {
    match outcome {
        HookOutcome::Ok | HookOutcome::Warning | HookOutcome::Interrupt => false,
        HookOutcome::Error
        | HookOutcome::Timeout
        | HookOutcome::SystemError
        | HookOutcome::Cancelled => true,
    }
}

/// Whether a person wants to see why: of a failure, and of an interrupt, whose target was not done.
pub(crate) fn told(outcome: HookOutcome) -> bool {
    failed(outcome) || outcome == HookOutcome::Interrupt
}

/// The place of an outcome in arrays of counts.
pub(crate) fn place(outcome: HookOutcome) -> usize {
    HookOutcome::ALL.iter().position(|one| *one == outcome).unwrap_or(0)
}

/// How a hook ended, in a few words.
pub(crate) fn how(hook: &HookRecord) -> String {
    let end = match (hook.outcome, hook.code, hook.signal) {
        (HookOutcome::Timeout, _, _) => "out of time".to_owned(),
        (_, Some(code), _) => format!("exit code {code}"),
        (_, None, Some(signal)) => format!("ended by {}", signal_name(signal)),
        (HookOutcome::Cancelled, None, None) => "cancelled".to_owned(),
        (_, None, None) => "not started".to_owned(),
    };
    match &hook.message {
        Some(message) => format!("{end}: {message}"),
        None => end,
    }
}

/// One name in the directory, over all targets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookTally {
    pub(crate) spread: Spread,
    pub(crate) outcomes: [u64; HookOutcome::ALL.len()],
}

/// One of the slowest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slow {
    pub(crate) wall_us: u64,
    pub(crate) line: u64,
    pub(crate) target: Vec<u8>,
    /// The hook, where it is one's time.
    pub(crate) hook: Option<Vec<u8>>,
}

/// What several targets failed by: the same hook, in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) outcome: HookOutcome,
    /// The hook, if it was one's doing.
    pub(crate) hook: Option<Vec<u8>>,
    pub(crate) how: String,
    /// How many targets.
    pub(crate) count: u64,
    /// The first of them: line and name.
    pub(crate) first: Vec<(u64, Vec<u8>)>,
    /// How long the first one took.
    pub(crate) wall_us: u64,
    /// In which try that was, if not in the first: words behind it.
    pub(crate) in_which_try: String,
    /// The end of what it wrote: stderr, or stdout if that is empty.
    pub(crate) output: Vec<u8>,
}

/// One run of `hob hooks run` over these targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sitting {
    pub(crate) at: String,
    pub(crate) jobs: u32,
    /// When its last target ended, since it began.
    pub(crate) wall_us: u64,
    pub(crate) targets: u64,
}

/// All of it.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// Targets by outcome, in the order of [`HookOutcome::ALL`].
    pub(crate) targets: [u64; HookOutcome::ALL.len()],
    pub(crate) spread: Spread,
    pub(crate) hooks: BTreeMap<Vec<u8>, HookTally>,
    pub(crate) slowest: Vec<Slow>,
    pub(crate) slowest_hooks: Vec<Slow>,
    pub(crate) causes: Vec<Cause>,
    pub(crate) sittings: Vec<Sitting>,
    /// How many targets ran at once, at most.
    pub(crate) lanes: u32,
    /// How many targets were tried more than once.
    pub(crate) retried: u64,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            targets: [0; HookOutcome::ALL.len()],
            spread: Spread::default(),
            hooks: BTreeMap::new(),
            slowest: Vec::new(),
            slowest_hooks: Vec::new(),
            causes: Vec::new(),
            sittings: Vec::new(),
            lanes: 0,
            retried: 0,
        }
    }

    /// A sitting begins: what is added from now on is its.
    pub(crate) fn sit(&mut self, at: String, jobs: u32) {
        self.sittings.push(Sitting { at, jobs, wall_us: 0, targets: 0 });
    }

    pub(crate) fn add(&mut self, ended: &Ended) {
        let set = &ended.set;
        self.targets[place(set.outcome)] += 1;
        self.spread.add(set.wall_us);
        self.lanes = self.lanes.max(ended.lane + 1);
        self.retried += u64::from(ended.tries > 1);
        if let Some(sitting) = self.sittings.last_mut() {
            sitting.wall_us = sitting.wall_us.max(set.at_us + set.wall_us);
            sitting.targets += 1;
        }
        let slow = |wall_us: u64, hook: Option<&HookRecord>| Slow {
            wall_us,
            line: ended.line,
            target: set.target.0.clone(),
            hook: hook.map(|hook| hook.name.0.clone()),
        };
        keep(&mut self.slowest, set.wall_us, || slow(set.wall_us, None));
        for hook in &set.hooks {
            if !self.hooks.contains_key(&hook.name.0) {
                let fresh = HookTally { spread: Spread::default(), outcomes: Default::default() };
                self.hooks.insert(hook.name.0.clone(), fresh);
            }
            if let Some(tally) = self.hooks.get_mut(&hook.name.0) {
                tally.spread.add(hook.wall_us);
                tally.outcomes[place(hook.outcome)] += 1;
            }
            keep(&mut self.slowest_hooks, hook.wall_us, || slow(hook.wall_us, Some(hook)));
        }
        if told(set.outcome) {
            self.add_cause(ended);
        }
    }

    fn add_cause(&mut self, ended: &Ended) {
        let (line, set) = (ended.line, &ended.set);
        let hook = set.hooks.iter().rev().find(|hook| told(hook.outcome));
        let name = hook.map(|hook| hook.name.0.clone());
        let how = match (hook, &set.message) {
            (Some(hook), _) => how(hook),
            (None, Some(message)) => message.clone(),
            (None, None) => set.outcome.word().to_owned(),
        };
        let same = |cause: &&mut Cause| {
            (cause.outcome, &cause.hook, &cause.how) == (set.outcome, &name, &how)
        };
        if let Some(cause) = self.causes.iter_mut().find(same) {
            cause.count += 1;
            if cause.first.len() < NAMED_MAX {
                cause.first.push((line, set.target.0.clone()));
            }
        } else if self.causes.len() < CAUSES_MAX {
            self.causes.push(Cause {
                outcome: set.outcome,
                hook: name,
                how,
                count: 1,
                first: vec![(line, set.target.0.clone())],
                wall_us: set.wall_us,
                in_which_try: ended.in_which_try(),
                output: hook.map(end_of_output).unwrap_or_default(),
            });
        }
    }

    /// The moment that is so long after a sitting began.
    pub(crate) fn moment(&self, sitting: u32, at_us: u64) -> Timestamp {
        let begun = usize::try_from(sitting).ok().and_then(|index| self.sittings.get(index));
        let begun = begun.and_then(|one| one.at.parse::<Timestamp>().ok()).unwrap_or_default();
        let at = SignedDuration::from_micros(i64::try_from(at_us).unwrap_or(0));
        begun.checked_add(at).unwrap_or(begun)
    }

    /// How many targets have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.targets.iter().sum()
    }

    /// How many of them failed.
    pub(crate) fn failed(&self) -> u64 {
        let of = |outcome: &&HookOutcome| failed(**outcome);
        HookOutcome::ALL.iter().filter(of).map(|outcome| self.targets[place(*outcome)]).sum()
    }

    /// How many hooks ran.
    pub(crate) fn hooks_run(&self) -> u64 {
        self.hooks.values().map(|hook| hook.spread.count()).sum()
    }

    /// How long the sittings took together.
    pub(crate) fn wall_us(&self) -> u64 {
        self.sittings.iter().map(|sitting| sitting.wall_us).sum()
    }

    /// What stands for all of it.
    pub(crate) fn outcome(&self) -> HookOutcome {
        let met = HookOutcome::ALL.iter().filter(|one| self.targets[place(**one)] > 0);
        met.fold(HookOutcome::Ok, |all, one| all.worst(*one))
    }
}

/// The end of what a hook wrote.
fn end_of_output(hook: &HookRecord) -> Vec<u8> {
    let stream = if hook.stderr.total > 0 { &hook.stderr } else { &hook.stdout };
    let mut output = stream.shown();
    if output.len() > OUTPUT_BYTES_MAX {
        output.drain(..output.len() - OUTPUT_BYTES_MAX);
    }
    output
}

/// Keeps it if it is among the slowest.
fn keep(slowest: &mut Vec<Slow>, wall_us: u64, make: impl FnOnce() -> Slow) {
    let at = slowest.partition_point(|other| other.wall_us >= wall_us);
    if at < SLOWEST_MAX {
        slowest.insert(at, make());
        slowest.truncate(SLOWEST_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_slowest_are_kept_the_slowest_first() {
        let mut slowest = Vec::new();
        for wall_us in [5, 1, 9, 7, 3, 8, 2] {
            let slow = Slow { wall_us, line: wall_us, target: Vec::new(), hook: None };
            keep(&mut slowest, wall_us, || slow);
        }
        let kept: Vec<u64> = slowest.iter().map(|slow| slow.wall_us).collect();
        assert_eq!(kept, [9, 8, 7, 5, 3]);
    }
}
