//! What came of the cells of a run, in numbers and in words.

use super::run::{Found, State};

/// What came of all cells, in numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Cells that are as they should be.
    pub passed: usize,
    /// Cells that are not.
    pub failed: usize,
    /// Cells that are, too late.
    pub slow: usize,
    /// Cells that were not asked.
    pub not_run: usize,
    /// How often anything was asked.
    pub calls: usize,
}

impl Counts {
    /// Counts.
    #[must_use]
    pub fn new(found: &Found) -> Counts {
        let mut counts = Counts::default();
        for done in &found.cells {
            counts.calls += done.took_us.len();
            match done.state {
                State::Passed => counts.passed += 1,
                State::Failed => counts.failed += 1,
                State::Slow => counts.slow += 1,
                State::NotRun(_) => counts.not_run += 1,
            }
        }
        counts
    }

    /// What did not pass, in words, each with its number.
    pub fn bad(&self) -> Vec<String> {
        let all = [(self.failed, "failed"), (self.slow, "too slow"), (self.not_run, "not run")];
        all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
    }

    /// `3 too slow · 141 of 144 passed`: what is worst comes first.
    pub fn verdict(&self) -> String {
        let mut words = self.bad();
        let all = self.passed + self.failed + self.slow + self.not_run;
        words.push(format!("{} of {all} passed", self.passed));
        if all == 0 {
            words = vec!["nothing was checked: no check is left".to_owned()];
        }
        words.join(" · ")
    }
}
