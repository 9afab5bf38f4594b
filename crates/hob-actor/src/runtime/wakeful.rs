//! Whether to look a while before sleeping. Pure.
//!
//! To wake a process on another core costs tens of microseconds, and two that answer each other at
//! once would spend nearly all their time with it. If what comes next mostly comes within
//! [`LOOKS_FOR`], it is better awaited awake. Whether it does is only seen by trying, and where it
//! does not (both on one core, a busy machine, a slow peer) looking is in the way of others. So:
//!
//! ```text
//!   sleeps ──every so often: looks──▶ nothing came ──▶ sleeps, and tries half as often
//!                └──▶ it came ──▶ trusts: looks before each sleep
//!                                   ├── one of three did not ──▶ sleeps
//!                                   └── it was suspended meanwhile ──▶ sleeps, tries as seldom as can be
//! ```
//! Whoever is suspended while it looks has others beside it who need the processor, and the kernel
//! wakes those first who have slept.

use std::time::Duration;

/// For how long: a wake of the other side must fit in.
pub(crate) const LOOKS_FOR: Duration = Duration::from_micros(50);
/// How often at least, in sleeps, it is tried.
const GAP_MAX: u32 = 4096;
const GAP_MIN: u32 = 128;
/// How much trust there is at most. Each time that something came gives one, each time that
/// nothing did takes two.
const TRUST_MAX: u32 = 16;

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Wakeful {
    trust: u32,
    /// After so many sleeps it is tried again, if there is no trust.
    left: u32,
    gap: u32,
}

impl Default for Wakeful {
    fn default() -> Wakeful {
        Wakeful { trust: 0, left: GAP_MIN, gap: GAP_MIN }
    }
}

impl Wakeful {
    /// Whether to look before this sleep.
    #[inline]
    pub(crate) fn looks(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.trust > 0 || self.left == 0
    }

    /// It looked, and something came.
    pub(crate) fn came(&mut self) {
        self.trust = (self.trust + 1).min(TRUST_MAX);
        self.gap = GAP_MIN;
    }

    /// It looked for `time`, and nothing came, or too late.
    pub(crate) fn missed(&mut self, time: Duration) {
        if time > LOOKS_FOR * 2 {
            (self.trust, self.gap) = (0, GAP_MAX);
        }
        if self.trust == 0 {
            self.gap = (self.gap * 2).min(GAP_MAX);
        }
        self.trust = self.trust.saturating_sub(2);
        self.left = self.gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it looked in so many sleeps, where `comes` says what it would have seen.
    fn looked(wakeful: &mut Wakeful, sleeps: u32, comes: impl Fn(u32) -> bool) -> u32 {
        let mut looked = 0;
        for sleep in 0..sleeps {
            if wakeful.looks() {
                looked += 1;
                if comes(sleep) { wakeful.came() } else { wakeful.missed(LOOKS_FOR) }
            }
        }
        looked
    }

    #[test]
    fn it_looks_where_it_pays_and_hardly_where_it_does_not() {
        let mut wakeful = Wakeful::default();
        assert_eq!(looked(&mut wakeful, GAP_MIN - 1, |_| true), 0);
        // All but the first few, and one that fails now and then changes nothing.
        assert_eq!(looked(&mut wakeful, 10_000, |at| at % 10 != 5), 10_000);
        // It gives up soon, and tries ever less.
        assert!(looked(&mut wakeful, 10_000, |_| false) < TRUST_MAX + 10);
        assert_eq!(wakeful.gap, GAP_MAX);
        assert!(looked(&mut wakeful, 100_000, |_| false) <= 100_000 / GAP_MAX + 1);
        // Every second one is not enough.
        assert!(looked(&mut wakeful, 100_000, |at| at % 2 == 0) < 5_000);
        // And it comes back.
        assert!(looked(&mut wakeful, 10_000, |_| true) > 10_000 - GAP_MAX - 1);
        // Where others need the processor it is once enough.
        wakeful.missed(LOOKS_FOR * 3);
        assert_eq!(looked(&mut wakeful, GAP_MAX - 1, |_| true), 0);
    }
}
