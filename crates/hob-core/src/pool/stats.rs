//! What is known of a pool's calls: how often they come, how many at once, how long copies take.
//! Integers only, so that a run can be repeated exactly. No clock, no policy: [`crate::pool`]
//! decides by these figures.

use crate::ids::Time;

/// A gap longer than this says no more than this one does. It keeps one long pause from hiding
/// the burst after it.
const GAP_MAX_US: u64 = 1_000_000;

/// The weight of a new sample is one part in so many.
const WEIGHT: u64 = 4;

/// A running average that forgets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Average {
    value: Option<u64>,
}

impl Average {
    pub(crate) fn add(&mut self, sample: u64) {
        self.value = Some(match self.value {
            None => sample,
            Some(old) => (old * (WEIGHT - 1) + sample) / WEIGHT,
        });
    }

    pub(crate) fn get(self) -> Option<u64> {
        self.value
    }
}

/// When calls came, and how many ran at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    last: Option<Time>,
    last_gap_us: Option<u64>,
    gap_us: Average,
    /// The most at once in the running window, and in the one before.
    window: Window,
    before: Window,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Window {
    since: Time,
    peak: u32,
}

impl Arrivals {
    /// A call came; with it, `at_once` of the pool's calls run or wait. `window_us` is how long a
    /// peak is remembered, at least.
    pub(crate) fn note(&mut self, now: Time, at_once: u32, window_us: u64) {
        if let Some(last) = self.last {
            let gap_us = now.us_since(last);
            self.last_gap_us = Some(gap_us);
            self.gap_us.add(gap_us.min(GAP_MAX_US));
        }
        self.last = Some(now);
        if now.us_since(self.window.since) >= window_us {
            self.before = self.window;
            self.window = Window { since: now, peak: 0 };
        }
        self.window.peak = self.window.peak.max(at_once);
    }

    /// When the last call came.
    pub(crate) fn last(&self) -> Option<Time> {
        self.last
    }

    /// The time between two calls: the average, or the time since the last one if that is longer
    /// already. Nothing before the second call.
    pub(crate) fn gap_us(&self, now: Time) -> Option<u64> {
        let since_us = now.us_since(self.last?);
        Some(self.gap_us.get()?.max(since_us))
    }

    /// The time between the last two calls, or the time since the last one if that is longer
    /// already. An average would still tell of the pause before a row of calls.
    pub(crate) fn last_gap_us(&self, now: Time) -> Option<u64> {
        Some(self.last_gap_us?.max(now.us_since(self.last?)))
    }

    /// The most calls at once in the last one to two windows.
    pub(crate) fn peak(&self, window_us: u64, now: Time) -> u32 {
        let of = |window: &Window| {
            let recent = now.us_since(window.since) < 2 * window_us;
            if recent { window.peak } else { 0 }
        };
        of(&self.window).max(of(&self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time(us * 1000)
    }

    #[test]
    fn an_average_follows_and_forgets() {
        let mut average = Average::default();
        assert_eq!(average.get(), None);
        average.add(1000);
        assert_eq!(average.get(), Some(1000));
        average.add(2000);
        assert_eq!(average.get(), Some(1250));
        for _ in 0..40 {
            average.add(400);
        }
        assert!((400..404).contains(&average.get().unwrap()));
    }

    #[test]
    fn one_call_has_no_gap() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.gap_us(at(5)), None);
        arrivals.note(at(10), 1, 1000);
        assert_eq!(arrivals.gap_us(at(50)), None);
        arrivals.note(at(40), 1, 1000);
        assert_eq!(arrivals.gap_us(at(40)), Some(30));
    }

    #[test]
    fn silence_widens_the_gap_and_a_long_one_counts_little() {
        let mut arrivals = Arrivals::default();
        arrivals.note(at(0), 1, 1000);
        arrivals.note(at(100), 1, 1000);
        assert_eq!(arrivals.gap_us(at(150)), Some(100));
        assert_eq!(arrivals.gap_us(at(5100)), Some(5000));
        arrivals.note(at(3_600_000_000), 1, 1000);
        assert_eq!(arrivals.gap_us(at(3_600_000_000)), Some((100 * 3 + GAP_MAX_US) / 4));
    }

    #[test]
    fn a_peak_is_remembered_for_one_to_two_windows() {
        let mut arrivals = Arrivals::default();
        arrivals.note(at(10_000), 1, 1000);
        arrivals.note(at(10_100), 6, 1000);
        arrivals.note(at(10_200), 2, 1000);
        assert_eq!(arrivals.peak(1000, at(10_900)), 6);
        arrivals.note(at(11_000), 3, 1000);
        assert_eq!(arrivals.peak(1000, at(11_999)), 6);
        assert_eq!(arrivals.peak(1000, at(12_000)), 3);
        assert_eq!(arrivals.peak(1000, at(13_000)), 0);
    }
}
