//! What the stamps of a ring are, as times.

use hob_os::ring::{Copied, Pair};

/// From stamps to times, by the pairs beside them.
#[derive(Debug)]
pub(super) struct Clock {
    /// In order; at least one.
    pairs: Vec<Pair>,
}

impl Clock {
    /// By what a ring had when it was copied, and nothing else: the same copy tells the same times.
    pub(super) fn of(copied: &Copied) -> Clock {
        let mut pairs = copied.pairs.clone();
        if pairs.first().is_none_or(|first| copied.first.stamp < first.stamp) {
            pairs.insert(0, copied.first);
        }
        Clock { pairs }
    }

    /// The pair before a stamp, and the one behind it.
    fn around(&self, is_before: impl Fn(&Pair) -> bool) -> (Pair, Pair) {
        let last = self.pairs.len() - 1;
        // A file that somebody has damaged may have one pair only: no time passes by it.
        let behind = self.pairs.partition_point(is_before).clamp(1.min(last), last);
        (self.pairs[behind.saturating_sub(1)], self.pairs[behind])
    }

    /// Nanoseconds of the monotonic clock.
    pub(super) fn at(&self, stamp: u64) -> u64 {
        let (one, other) = self.around(|pair| pair.stamp <= stamp);
        let ticks = i128::from(other.stamp) - i128::from(one.stamp);
        let ns = i128::from(other.monotonic_ns) - i128::from(one.monotonic_ns);
        let since = i128::from(stamp) - i128::from(one.stamp);
        let after = if ticks > 0 { since.saturating_mul(ns) / ticks } else { 0 };
        u64::try_from(i128::from(one.monotonic_ns).saturating_add(after)).unwrap_or_default()
    }

    /// The wall clock at a time of the monotonic one, as it was set then.
    pub(super) fn real(&self, at_ns: u64) -> u64 {
        let (one, _) = self.around(|pair| pair.monotonic_ns <= at_ns);
        one.real_ns.wrapping_add(at_ns.wrapping_sub(one.monotonic_ns))
    }

    /// The reverse.
    pub(super) fn of_real(&self, real_ns: u64) -> u64 {
        let (one, _) = self.around(|pair| pair.real_ns <= real_ns);
        one.monotonic_ns.wrapping_add(real_ns.wrapping_sub(one.real_ns))
    }
}
