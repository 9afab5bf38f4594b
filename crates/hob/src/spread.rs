//! How many durations are spread: what an `hdrhistogram` tells of them.
//!
//! Quantiles have three significant digits: up to 2,047 units they are exact, from there at most
//! 0.1 % too large, and never above the largest. The count and the largest are exact.
//!
//! Invariant: the size does not grow with the number of durations, only with the largest of them.
//! Series that are short and compared with one another are sorted lists (`hob_proof::series`).

use hdrhistogram::Histogram;

/// Digits of a quantile that are true.
const DIGITS: u8 = 3;

/// Durations, all in one unit of the caller's choice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    histogram: Histogram<u32>,
    count: u64,
    max: u64,
}

impl Default for Spread {
    fn default() -> Spread {
        let histogram = Histogram::new(DIGITS).expect("a histogram has up to five digits");
        Spread { histogram, count: 0, max: 0 }
    }
}

impl Spread {
    pub(crate) fn add(&mut self, duration: u64) {
        // It grows as it has to; only an address space of 32 bits could refuse that.
        if self.histogram.record(duration).is_ok() {
            self.count += 1;
            self.max = self.max.max(duration);
        }
    }

    /// Adds all that another one has.
    pub(crate) fn join(&mut self, other: &Spread) {
        if self.histogram.add(&other.histogram).is_ok() {
            self.count += other.count;
            self.max = self.max.max(other.max);
        }
    }

    /// The smallest duration that `percent` of all do not exceed; `None` if there are none.
    pub(crate) fn quantile(&self, percent: u32) -> Option<u64> {
        let part = f64::from(percent) / 100.0;
        (self.count > 0).then(|| self.histogram.value_at_quantile(part).min(self.max))
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(durations: impl IntoIterator<Item = u64>) -> Spread {
        let mut spread = Spread::default();
        durations.into_iter().for_each(|duration| spread.add(duration));
        spread
    }

    #[test]
    fn quantiles_have_three_digits() {
        let spread = of(1..=100_000);
        for (percent, exact) in [(1, 1_000_u64), (50, 50_000), (99, 99_000), (100, 100_000)] {
            let found = spread.quantile(percent).unwrap();
            assert!((exact..=exact + exact / 1000).contains(&found), "{percent}: {found}");
        }
        assert_eq!((spread.count(), spread.max()), (100_000, 100_000));
    }

    #[test]
    fn a_few_short_ones_are_told_exactly() {
        let spread = of((1..=100).rev());
        let told = [0, 50, 99, 100].map(|percent| spread.quantile(percent));
        assert_eq!(told, [Some(1), Some(50), Some(99), Some(100)]);
        assert_eq!(of([]).quantile(50), None);
        assert_eq!(of([0, 0]).quantile(50), Some(0));
        assert_eq!(of([7_777_777]).quantile(50), Some(7_777_777));
        assert_eq!(of([1 << 62]).quantile(99), Some(1 << 62));
    }

    #[test]
    fn two_joined_are_one_of_all() {
        let mut joined = of(1..=50);
        joined.join(&of(51..=100_000));
        assert_eq!(joined, of(1..=100_000));
        joined.join(&Spread::default());
        assert_eq!(joined.count(), 100_000);
    }
}
