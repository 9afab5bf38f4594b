//! Who waits for an answer, and until when, in one word: it rides in every parcel.
//!
//! Bit 63: the message was counted as one from outside its actor's shard. Bits 24 to 62: the
//! deadline, in milliseconds since the process's first look at the clock (17 years of them).
//! Bits 0 to 23: the place that the answer goes to.
//!
//! Deliberately not here: a clock. [`Millis`] comes from whoever drives a shard.

use std::time::Duration;

/// A point in time, in milliseconds since the process's epoch.
pub(crate) type Millis = u64;

/// Where an answer goes: the number of a shard of this process, or one of the two below.
pub(crate) type Place = u32;

/// Nobody waits.
pub(crate) const NOBODY: Place = 0;
/// A thread or a foreign executor waits, see `outside.rs`.
pub(crate) const OUTSIDE: Place = 0xff_ffff;

const PLACE_BITS: u32 = 24;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const COUNTED: u64 = 1 << 63;
/// The deadline that never comes.
pub(crate) const NEVER: Millis = (1 << 39) - 1;

/// The word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct When(u64);

impl When {
    pub(crate) const TELL: When = When((NEVER << PLACE_BITS) | NOBODY as u64);

    pub(crate) fn new(place: Place, deadline: Millis) -> When {
        When((deadline.min(NEVER) << PLACE_BITS) | (u64::from(place) & PLACE_MASK))
    }

    pub(crate) fn place(self) -> Place {
        // The mask leaves 24 bits.
        u32::try_from(self.0 & PLACE_MASK).unwrap_or(NOBODY)
    }

    pub(crate) fn deadline(self) -> Millis {
        (self.0 & !COUNTED) >> PLACE_BITS
    }

    pub(crate) fn is_tell(self) -> bool {
        self.0 & PLACE_MASK == 0
    }

    pub(crate) fn counted_outside(self) -> When {
        When(self.0 | COUNTED)
    }

    /// Without the mark of where it was counted: a forwarded message is counted anew.
    pub(crate) fn uncounted(self) -> When {
        When(self.0 & !COUNTED)
    }

    pub(crate) fn is_counted_outside(self) -> bool {
        self.0 & COUNTED != 0
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> When {
        When(bits)
    }
}

/// Rounded up: a deadline never comes early.
pub(crate) fn deadline_after(now: Millis, within: Duration) -> Millis {
    let millis = within.as_nanos().div_ceil(1_000_000);
    now.saturating_add(u64::try_from(millis).unwrap_or(NEVER)).min(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let when = When::new(77, 123_456_789).counted_outside();
        assert_eq!((when.place(), when.deadline()), (77, 123_456_789));
        assert!(when.is_counted_outside() && !when.is_tell());
        assert_eq!(When::from_bits(when.bits()), when);
        assert!(When::TELL.is_tell());
        assert_eq!(When::TELL.deadline(), NEVER);
    }

    #[test]
    fn a_deadline_is_rounded_up_and_never_overflows() {
        assert_eq!(deadline_after(10, Duration::from_micros(1)), 11);
        assert_eq!(deadline_after(10, Duration::MAX), NEVER);
    }
}
