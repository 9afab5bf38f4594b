//! Message ids: unique, sortable by the time of making, and the same over every redelivery.
//!
//! An id is a UUID of version 7 (RFC 9562), made by the daemon before the message is stored:
//! 48 bits of milliseconds since 1970, 12 bits that count within the millisecond, 62 bits that are
//! drawn, by the message's sender or once a daemon. An id is never lower than the one before it: when the clock stands or is
//! set back, the counter goes on from the last id. Two daemons differ in the drawn bits.

use std::fmt;

/// The name of one message, for as long as anybody remembers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u128);

/// Where the milliseconds begin.
const TIME_SHIFT: u32 = 80;
/// Where the version and the counter begin.
const COUNT_SHIFT: u32 = 64;
const COUNT_MAX: u128 = 0xfff;
const VERSION: u128 = 7 << 76;
const VARIANT: u128 = 2 << 62;
const DRAWN_BITS: u128 = (1 << 62) - 1;
const TEXT_LEN: usize = 36;
/// How far each part of the text is shifted, and what is left of it.
const PARTS: [(u32, u128); 5] =
    [(96, 0xffff_ffff), (80, 0xffff), (64, 0xffff), (48, 0xffff), (0, 0xffff_ffff_ffff)];
/// Before which digit of the text a hyphen stands.
const HYPHENS: [usize; 4] = [8, 12, 16, 20];

impl MessageId {
    /// The id of these sixteen bytes, the first the most significant.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> MessageId {
        MessageId(u128::from_be_bytes(bytes))
    }

    /// Sixteen bytes that sort like the id.
    #[must_use]
    pub fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Reads an id as [`fmt::Display`] writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<MessageId> {
        if text.len() != TEXT_LEN {
            return None;
        }
        let mut value = 0;
        for (at, byte) in text.bytes().enumerate() {
            if HYPHENS.iter().enumerate().any(|(before, digit)| digit + before == at) {
                if byte != b'-' {
                    return None;
                }
            } else {
                value = value << 4 | u128::from(char::from(byte).to_digit(16)?);
            }
        }
        Some(MessageId(value))
    }

    /// What was drawn for it.
    #[must_use]
    pub fn drawn(self) -> u64 {
        u64::try_from(self.0 & DRAWN_BITS).unwrap_or(0)
    }

    pub(super) fn number(self) -> u128 {
        self.0
    }

    pub(super) fn from_number(number: u128) -> MessageId {
        MessageId(number)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e] = PARTS.map(|(shift, mask)| self.0 >> shift & mask);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Makes ids.
#[derive(Debug)]
pub struct Ids {
    /// Milliseconds and counter of the last id, as one number.
    last: u128,
    drawn: u128,
}

impl Ids {
    /// A maker whose ids differ from every other daemon's by `drawn`.
    #[must_use]
    pub fn new(drawn: u64) -> Ids {
        Ids { last: 0, drawn: u128::from(drawn) & DRAWN_BITS }
    }

    /// From now on ids are above `id`: one that an earlier daemon made, perhaps by a clock that
    /// was ahead.
    pub fn go_on_after(&mut self, id: MessageId) {
        let count = id.0 >> COUNT_SHIFT & COUNT_MAX;
        self.last = self.last.max((id.0 >> TIME_SHIFT) << 12 | count);
    }

    /// The next id, at so many milliseconds since 1970.
    pub fn next(&mut self, now_ms: u64) -> MessageId {
        self.next_of(now_ms, None)
    }

    /// The same, with what the message's sender has drawn.
    pub fn next_of(&mut self, now_ms: u64, drawn: Option<u64>) -> MessageId {
        let now = u128::from(now_ms) << 12;
        // A full counter runs over into the milliseconds, which the RFC allows.
        self.last = now.max(self.last + 1);
        let (ms, count) = (self.last >> 12, self.last & COUNT_MAX);
        let drawn = drawn.map_or(self.drawn, |drawn| u128::from(drawn) & DRAWN_BITS);
        MessageId(ms << TIME_SHIFT | VERSION | count << COUNT_SHIFT | VARIANT | drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_whatever_the_clock_does() {
        let mut ids = Ids::new(u64::MAX);
        let mut last = ids.next(1_000);
        for now in [1_000, 1_000, 999, 5, 1_001, 1_001, 0] {
            let next = ids.next(now);
            assert!(next > last, "{next} after {last}");
            last = next;
        }
        for _ in 0..10_000 {
            let next = ids.next(1_001);
            assert!(next > last, "{next} after {last}");
            last = next;
        }
    }

    #[test]
    fn ids_of_two_daemons_differ_at_the_same_instant() {
        assert_ne!(Ids::new(1).next(7), Ids::new(2).next(7));
    }

    #[test]
    fn ids_go_on_after_those_of_a_daemon_whose_clock_was_ahead() {
        let old = Ids::new(1).next(9_000_000);
        let mut ids = Ids::new(2);
        ids.go_on_after(old);
        assert!(ids.next(5) > old);
    }

    #[test]
    fn an_id_is_a_uuid_of_version_7_and_reads_back() {
        let id = Ids::new(0x0123_4567_89ab_cdef).next(0x0198_0000_0001);
        assert_eq!(id.to_string(), "01980000-0001-7000-8123-456789abcdef");
        assert_eq!(MessageId::parse(&id.to_string()), Some(id));
        assert_eq!(MessageId::from_bytes(id.bytes()), id);
        for wrong in [
            "",
            "01980000-0001-7000-8123-456789abcde",
            "0198000000017000-8123-456789abcdef--",
            "01980000-0001-7000-8123-456789abcdeg",
            "+1980000-0001-7000-8123-456789abcdef",
        ] {
            assert_eq!(MessageId::parse(wrong), None, "{wrong}");
        }
    }
}
