//! Whether what a program imports has grown beyond what is loaded ahead of its calls.
//!
//! ```text
//!            a call imports more, and could have been faster
//!  Still ◀────────────────────────────────────────────────────▶ Grown(n)
//!    ▲                                                            │ often enough
//!    │ loaded: it was worth it, or twice as many calls are needed ▼
//!    └──────────────────────────────────────────────────────── Loading
//! ```
//!
//! A learning run sees one call. Another call may take other ways (a subcommand, an edited script),
//! and what it imports itself it imports in each call. What such an import takes is known only when
//! it was done ahead: a call says how long its program ran, which is the most that it can be. So a
//! suspicion is tried, and the preload that follows tells what it was worth.

use crate::calls::changing::Change;
use crate::limits::Limits;

/// What is known of the growth of one program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    /// Calls that imported more, since that was last loaded ahead.
    calls: u32,
    /// How often in a row it was not worth it.
    vain: u32,
    /// What the preload took before, while another is awaited.
    before_us: Option<u64>,
}

/// What a warm call imported that could have been loaded ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beyond {
    /// How many modules.
    pub modules: usize,
    /// How long the program's own code ran, imports included, in microseconds.
    pub main_us: u64,
}

impl Growth {
    /// A warm call has ended. `preload_us` is what the preload took that it was performed with.
    pub fn called(&mut self, beyond: Beyond, preload_us: u64, limits: &Limits) -> Change {
        if beyond.modules == 0 || beyond.main_us < limits.growth_min_us {
            return Change::AsBefore;
        }
        self.calls += 1;
        let doublings = self.vain.min(limits.growth_doublings_max);
        if self.calls < limits.growth_calls.max(1) << doublings {
            return Change::AsBefore;
        }
        self.calls = 0;
        self.before_us = Some(preload_us);
        Change::LoadsAnew
    }

    /// What was imported is loaded ahead now, which took so long.
    pub fn loaded(&mut self, preload_us: u64, limits: &Limits) {
        let Some(before_us) = self.before_us.take() else { return };
        let was_worth_it = preload_us.saturating_sub(before_us) >= limits.growth_worth_us;
        self.vain = if was_worth_it { 0 } else { self.vain.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits() -> Limits {
        Limits {
            growth_min_us: 3_000,
            growth_worth_us: 2_000,
            growth_calls: 2,
            growth_doublings_max: 5,
            ..Limits::default()
        }
    }

    /// Calls until more is loaded ahead; how many it took.
    fn calls(growth: &mut Growth) -> u32 {
        let beyond = Beyond { modules: 3, main_us: 50_000 };
        (1..1000).find(|_| growth.called(beyond, 10_000, &limits()) == Change::LoadsAnew).unwrap()
    }

    #[test]
    fn the_second_call_that_imports_more_has_it_loaded_ahead() {
        let mut growth = Growth::default();
        assert_eq!(calls(&mut growth), 2);
    }

    #[test]
    fn calls_that_import_nothing_or_are_short_are_no_reason() {
        let mut growth = Growth::default();
        for _ in 0..100 {
            for beyond in
                [Beyond { modules: 0, main_us: 90_000 }, Beyond { modules: 9, main_us: 2_999 }]
            {
                assert_eq!(growth.called(beyond, 0, &limits()), Change::AsBefore);
            }
        }
        assert_eq!(calls(&mut growth), 2);
    }

    #[test]
    fn what_was_not_worth_it_takes_twice_as_many_calls_the_next_time_within_a_bound() {
        let mut growth = Growth::default();
        let mut took = Vec::new();
        for _ in 0..8 {
            took.push(calls(&mut growth));
            growth.loaded(11_999, &limits());
        }
        assert_eq!(took, [2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(calls(&mut growth), 64);
        growth.loaded(12_000, &limits());
        assert_eq!(calls(&mut growth), 2, "it was worth it");
        // A preload that nobody awaits for this says nothing.
        growth.loaded(1, &limits());
        growth.loaded(1, &limits());
        assert_eq!(calls(&mut growth), 4);
    }

    proptest! {
        /// A program that imports something else in each call, in vain, is loaded anew ever more
        /// rarely.
        #[test]
        fn imports_in_vain_cost_few_preloads(calls in 1u32..4000, main_us in 0u64..100_000) {
            let (mut growth, mut loads) = (Growth::default(), 0u32);
            for _ in 0..calls {
                if growth.called(Beyond { modules: 1, main_us }, 5_000, &limits()) == Change::LoadsAnew {
                    loads += 1;
                    growth.loaded(5_000, &limits());
                }
            }
            prop_assert!(loads <= 6 + calls / 64);
        }
    }
}
