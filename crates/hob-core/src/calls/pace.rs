//! Whether a program is worth being kept warm: how long its warm calls take, beside its cold ones.
//!
//! ```text
//!            most of its last calls, and all together, took longer than cold
//!  Watched ──────────────────────────────────────────────────▶ Trial: cold and warm in turns
//!     ▲ ▲                                                        │   │
//!     │ └── cold was not faster, or too few calls came in time ──┘   │ cold was faster
//!     │                                                              ▼
//!     └──────── a while has passed: it is tried warm again ─────── Slower: runs cold
//! ```
//! Invariants: everything is bounded (the calls that are looked at, a trial, the wait, which
//! doubles up to its bound); a program that changed begins anew.
//!
//! The newest cold run may have done other work than the warm calls (`--version` is cheap, warm or
//! cold), or the machine may be busier now. So a suspicion is only tried: the next calls run cold
//! and warm in turns, and decide. It does not measure: the daemon tells how long a call took.

use std::collections::VecDeque;

use crate::event::Took;
use crate::ids::Time;
use crate::limits::Limits;

/// What is known of a program's pace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    stage: Stage,
    /// Trials, since the program was last seen to gain from being warm.
    trials: u32,
}

#[derive(Debug, Clone)]
enum Stage {
    /// It runs warm. No trial is begun before `from`.
    Watched { last: VecDeque<Call>, from: Time },
    /// Its next calls run cold and warm in turns.
    Trial { cold_us: Vec<u64>, warm_us: Vec<u64>, until: Time },
    /// It runs cold until then.
    Slower { until: Time },
}

/// A warm call, and the newest cold one when it ended.
#[derive(Debug, Clone, Copy)]
struct Call {
    us: u64,
    cold_us: u64,
}

/// What a measured call brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// Nothing.
    AsBefore,
    /// The program is slower warm: its pools are of no use.
    Slower,
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::Watched { last: VecDeque::new(), from: Time::default() }
    }
}

impl Pace {
    /// Whether calls run cold for the sake of speed.
    pub(crate) fn is_cold(&self, now: Time) -> bool {
        match self.stage {
            Stage::Watched { .. } => false,
            Stage::Trial { ref cold_us, ref warm_us, until } => {
                now < until && cold_us.len() <= warm_us.len()
            }
            Stage::Slower { until } => now < until,
        }
    }

    /// Whether it was found slower warm, and nothing warm of it is of use.
    pub(crate) fn is_given_up(&self, now: Time) -> bool {
        matches!(self.stage, Stage::Slower { until } if now < until)
    }

    /// Whether what was found of it has had its time.
    fn is_over(&self, now: Time) -> bool {
        match self.stage {
            Stage::Watched { .. } => false,
            Stage::Trial { until, .. } | Stage::Slower { until } => until <= now,
        }
    }

    /// Takes a measured call in.
    pub(crate) fn take(&mut self, now: Time, took: Took, limits: &Limits) -> Pacing {
        if self.is_over(now) {
            self.stage = Stage::default();
        }
        match (&mut self.stage, took) {
            (Stage::Watched { last, from }, Took::Warm { us, cold_us }) => {
                last.push_back(Call { us, cold_us });
                while last.len() > size(limits.pace_calls) {
                    last.pop_front();
                }
                if last.len() < size(limits.pace_calls) {
                    return Pacing::AsBefore;
                }
                if !is_slower(last) {
                    self.trials = 0;
                } else if *from <= now {
                    let until = now.after_us(limits.pace_trial_us);
                    self.stage = Stage::Trial { cold_us: Vec::new(), warm_us: Vec::new(), until };
                }
                Pacing::AsBefore
            }
            (Stage::Trial { cold_us: taken, .. }, Took::Cold { us })
            | (Stage::Trial { warm_us: taken, .. }, Took::Warm { us, .. }) => {
                if taken.len() < size(limits.pace_trial_calls) {
                    taken.push(us);
                }
                self.judge(now, limits)
            }
            // Calls that were given before, or that asked for how they ran.
            (Stage::Watched { .. }, Took::Cold { .. }) | (Stage::Slower { .. }, _) => {
                Pacing::AsBefore
            }
        }
    }

    /// Ends a trial that has seen enough.
    fn judge(&mut self, now: Time, limits: &Limits) -> Pacing {
        let Stage::Trial { cold_us, warm_us, .. } = &self.stage else { return Pacing::AsBefore };
        let enough = size(limits.pace_trial_calls);
        if cold_us.len() < enough || warm_us.len() < enough {
            return Pacing::AsBefore;
        }
        let is_faster_cold = middle(cold_us) < middle(warm_us);
        self.trials = self.trials.saturating_add(1);
        let until = now.after_us(limits.pace_wait_us(self.trials));
        if is_faster_cold {
            self.stage = Stage::Slower { until };
            return Pacing::Slower;
        }
        self.stage = Stage::Watched { last: VecDeque::new(), from: until };
        Pacing::AsBefore
    }
}

/// One call that waited for a page of the disk must not decide, nor many that lost a little.
fn is_slower(calls: &VecDeque<Call>) -> bool {
    let losses = calls.iter().filter(|call| call.us > call.cold_us).count();
    let sum = |part: fn(&Call) -> u64| calls.iter().map(|call| u128::from(part(call))).sum();
    let (warm, cold): (u128, u128) = (sum(|call| call.us), sum(|call| call.cold_us));
    losses * 2 > calls.len() && warm > cold
}

fn middle(figures: &[u64]) -> u64 {
    let mut figures = figures.to_vec();
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied().unwrap_or(0)
}

fn size(calls: u32) -> usize {
    usize::try_from(calls).unwrap_or(usize::MAX).max(1)
}
