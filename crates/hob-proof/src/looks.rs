//! When a comparison has seen enough: five looks, each at a quarter of the error that all of them
//! may make together.

use super::score::{Estimate, estimate};

/// Pairs after which is looked, unless a number is asked for.
pub const LOOKS: [usize; 5] = [10, 20, 40, 80, 160];
/// Fewer pairs decide nothing.
pub const PAIRS_MIN: usize = LOOKS[0];
/// Within this of 1 two times are the same, unless another width is asked for.
pub const SAME: f64 = 0.02;
/// Standard deviations of a look at 1.25 %: five of them are wrong in at most 5 of 100 series.
const Z_OF_MANY: f64 = 2.498;
/// Standard deviations of one look at 5 %.
const Z_OF_ONE: f64 = 1.960;
/// Standard deviations of a look at A against A, at 1 %.
const Z_OF_CHECK: f64 = 2.576;

/// What is asked of a series of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// One look after so many pairs; `None`: [`LOOKS`].
    pub pairs: Option<usize>,
    /// What B/A has to be within. `None`: no gate.
    pub gate: Option<Range>,
    /// Within this share of 1 they are the same.
    pub same: f64,
}

/// Ratios from one to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least; 0 where B may be as fast as it likes.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Range {
    /// At most this share more: 0.05 is 5 %.
    #[must_use]
    pub fn at_most(share: f64) -> Range {
        Range { least: 0.0, most: 1.0 + share }
    }

    /// At most this share more or less.
    #[must_use]
    pub fn around(share: f64) -> Range {
        Range { least: 1.0 - share, most: 1.0 + share }
    }

    /// What both allow.
    #[must_use]
    pub fn and(self, other: Range) -> Range {
        Range { least: self.least.max(other.least), most: self.most.min(other.most) }
    }

    /// Whether an estimate lies in it.
    #[must_use]
    pub fn judges(self, estimate: &Estimate) -> Gate {
        // A logarithm of nothing is below all.
        let (least, most) = (self.least.max(0.0).ln(), self.most.ln());
        if estimate.low > most || estimate.high < least {
            Gate::Failed
        } else if estimate.low > least && estimate.high < most {
            Gate::Passed
        } else {
            Gate::Undecided
        }
    }

    /// How far a difference is from the nearer end.
    fn distance(self, difference: f64) -> f64 {
        let (least, most) = (self.least.max(0.0).ln(), self.most.ln());
        (difference - least).abs().min((difference - most).abs())
    }
}

/// How B compares with A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// B takes longer.
    Slower,
    /// B takes less time.
    Faster,
    /// Whatever they differ by, it is less than the width that was asked for.
    Same,
    /// None of these is sure.
    Undecided,
}

impl Verdict {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Same => "the same",
            Verdict::Undecided => "undecided",
        }
    }
}

/// Whether B stays within the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Surely.
    Passed,
    /// Surely not.
    Failed,
    /// Neither is sure.
    Undecided,
}

impl Gate {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Gate::Passed => "passed",
            Gate::Failed => "failed",
            Gate::Undecided => "undecided",
        }
    }
}

/// What a look says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Pairs that it rests on.
    pub pairs: usize,
    /// The estimate of `ln(B/A)`.
    pub estimate: Estimate,
    /// How B compares.
    pub verdict: Verdict,
    /// How B stands to the gate; `None` where none was asked for.
    pub gate: Option<Gate>,
    /// Whether no further pair is to be run.
    pub is_last: bool,
    /// About how many pairs a verdict would take; `None` where there is one.
    pub would_take: Option<usize>,
}

impl Question {
    /// The most pairs that it may take.
    #[must_use]
    pub fn pairs_max(&self) -> usize {
        self.pairs.unwrap_or(LOOKS[LOOKS.len() - 1])
    }

    /// Looks at the differences `ln(B/A)` of the pairs so far. `None`: it is not time to look.
    #[must_use]
    pub fn look(&self, differences: &[f64]) -> Option<Look> {
        let pairs = differences.len();
        let due = match self.pairs {
            Some(asked) => pairs == asked,
            None => LOOKS.contains(&pairs),
        };
        if due { self.look_now(differences) } else { None }
    }

    /// The same at any time, such as when the user has had enough. `None` for too few pairs.
    #[must_use]
    pub fn look_now(&self, differences: &[f64]) -> Option<Look> {
        let pairs = differences.len();
        let z = if self.pairs.is_some() { Z_OF_ONE } else { Z_OF_MANY };
        let estimate = estimate(differences, z).filter(|_| pairs >= PAIRS_MIN)?;
        let verdict = if estimate.at_zero > z {
            Verdict::Slower
        } else if estimate.at_zero < -z {
            Verdict::Faster
        } else if Range::around(self.same).judges(&estimate) == Gate::Passed {
            Verdict::Same
        } else {
            Verdict::Undecided
        };
        let gate = self.gate.map(|range| range.judges(&estimate));
        let decided = match gate {
            Some(gate) => gate != Gate::Undecided,
            None => verdict != Verdict::Undecided,
        };
        let would_take = (!decided).then(|| self.would_take(pairs, &estimate));
        let is_last = decided || pairs >= self.pairs_max();
        Some(Look { pairs, estimate, verdict, gate, is_last, would_take })
    }

    /// About how many pairs would decide, if they go on like this: an interval narrows by the root
    /// of their number.
    fn would_take(&self, pairs: usize, estimate: &Estimate) -> usize {
        let half = (estimate.high - estimate.low) / 2.0;
        let from = |limit: f64| (estimate.middle - limit).abs();
        let away = match self.gate {
            Some(range) => range.distance(estimate.middle),
            // Either it leaves 0, or it fits into what counts as the same.
            None => from(0.0).max((1.0 + self.same).ln() - from(0.0)),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an estimate that is rounded up to tens, and bounded"
        )]
        let needed = (pairs as f64 * (half / away.max(1e-6)).powi(2)).min(1e6) as usize;
        needed.max(pairs + 1).next_multiple_of(10)
    }
}

/// Whether A against itself came out as something else: then the machine, or what measures, is at
/// fault, and no verdict is to be believed.
#[must_use]
pub fn is_at_fault(differences: &[f64]) -> bool {
    let found = estimate(differences, Z_OF_CHECK).filter(|_| differences.len() >= PAIRS_MIN);
    found.is_some_and(|found| found.at_zero.abs() > Z_OF_CHECK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Question = Question { pairs: None, gate: None, same: SAME };

    /// So many differences around a middle, evenly spread.
    fn around(middle: f64, spread: f64, count: usize) -> Vec<f64> {
        let half = f64::from(u32::try_from(count).unwrap() - 1) / 2.0;
        let steps = 0..u32::try_from(count).unwrap();
        steps.map(|at| middle + spread * (f64::from(at) - half) / half).collect()
    }

    #[test]
    fn it_looks_when_it_is_time() {
        for pairs in 0..200 {
            let look = PLAIN.look(&around(0.0, 0.5, pairs.max(2))[..pairs]);
            assert_eq!(look.is_some(), LOOKS.contains(&pairs), "{pairs}");
        }
        let asked = Question { pairs: Some(33), ..PLAIN };
        assert!(asked.look(&around(0.0, 0.5, 32)).is_none());
        assert!(asked.look(&around(0.0, 0.5, 33)).unwrap().is_last);
    }

    #[test]
    fn what_is_plain_is_said_at_the_first_look() {
        let verdict = |middle, spread| PLAIN.look(&around(middle, spread, 10)).unwrap().verdict;
        assert_eq!(verdict(0.10, 0.02), Verdict::Slower);
        assert_eq!(verdict(-0.10, 0.02), Verdict::Faster);
        assert_eq!(verdict(0.0, 0.01), Verdict::Same);
        assert_eq!(verdict(0.01, 0.30), Verdict::Undecided);
    }

    #[test]
    fn a_gate_fails_only_for_sure_and_passes_only_for_sure() {
        let gated = Question { gate: Some(Range::at_most(0.05)), ..PLAIN };
        let gate = |middle, spread| gated.look(&around(middle, spread, 10)).unwrap();
        assert_eq!(gate(0.10, 0.02).gate, Some(Gate::Failed));
        assert_eq!(gate(0.00, 0.02).gate, Some(Gate::Passed));
        let unsure = gate(0.05, 0.02);
        assert_eq!((unsure.gate, unsure.is_last), (Some(Gate::Undecided), false));
        // Slower for sure, and by less than the gate allows.
        let within = gate(0.02, 0.01);
        assert_eq!((within.verdict, within.gate), (Verdict::Slower, Some(Gate::Passed)));
    }

    #[test]
    fn what_is_surely_slower_by_less_than_was_asked_for_counts_as_the_same() {
        let same = Question { gate: Some(Range::around(0.02)), ..PLAIN };
        let look = |middle| same.look(&around(middle, 0.004, 10)).unwrap();
        let slower = look(0.008);
        assert_eq!((slower.verdict, slower.gate), (Verdict::Slower, Some(Gate::Passed)));
        assert_eq!((look(0.05).gate, look(-0.05).gate), (Some(Gate::Failed), Some(Gate::Failed)));
        assert_eq!(look(0.0198).gate, Some(Gate::Undecided));
        let both = Range::at_most(0.01).and(Range::around(0.02));
        assert_eq!((both.least, both.most), (0.98, 1.01));
    }

    #[test]
    fn an_open_question_says_what_it_would_take() {
        let look = PLAIN.look(&around(0.01, 0.30, 160)).unwrap();
        assert!(look.is_last && look.would_take.unwrap() > 160, "{look:?}");
        assert_eq!(PLAIN.look(&around(0.10, 0.02, 10)).unwrap().would_take, None);
    }

    #[test]
    fn a_against_a_is_at_fault_only_if_it_differs() {
        assert!(is_at_fault(&around(0.10, 0.02, 20)));
        assert!(!is_at_fault(&around(0.0, 0.02, 20)));
        assert!(!is_at_fault(&around(0.10, 0.02, 5)), "too few to tell");
    }
}
