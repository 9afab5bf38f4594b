//! Where a call stands in a trace of the W3C's Trace Context: what its caller's `traceparent` says.
//!
//! ```text
//!   00-TRACE (32 hex digits)-PARENT (16)-FLAGS (2)
//! ```
//! Invariants: pure, and what is no `traceparent` as the standard has it is none. A call within a trace
//! has a span of its own there, which is the parent of what it calls in turn.

use crate::ids::CallId;
use hob_wire::message::Traced;
use serde::{Deserialize, Serialize};

/// What a caller's `traceparent` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace; never 0.
    pub id: u128,
    /// The span that calls; 0 where the call begins the trace.
    pub span: u64,
    /// What the standard says of it in bits: 1 is that its spans are kept.
    pub flags: u8,
}

/// A call within a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// Who calls.
    pub parent: Parent,
    /// The call's own span; never 0.
    pub span: u64,
}

/// What a receipt says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePart {
    /// The trace: 32 hex digits.
    pub id: String,
    /// The span that has called: 16 hex digits; absent where the call began the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The call's own span: 16 hex digits.
    pub span: String,
}

impl Parent {
    /// Reads a `traceparent`; `None` if it is none.
    #[must_use]
    pub fn read(traceparent: &[u8]) -> Option<Parent> {
        let text = std::str::from_utf8(traceparent).ok()?;
        let (version, rest) = text.split_once('-')?;
        let (id, rest) = rest.split_once('-')?;
        let (span, rest) = rest.split_once('-')?;
        let (flags, more) =
            rest.split_once('-').map_or((rest, None), |(all, more)| (all, Some(more)));
        let is_hex = |text: &str, length| {
            let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            text.len() == length && text.bytes().all(is_digit)
        };
        let is_known = is_hex(version, 2) && version != "ff" && (more.is_none() || version != "00");
        if !is_known || !is_hex(id, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
            return None;
        }
        let id = u128::from_str_radix(id, 16).ok().filter(|id| *id != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        Some(Parent { id, span, flags: u8::from_str_radix(flags, 16).ok()? })
    }

    /// A call that goes on with it. The seed tells apart what has the same parent.
    #[must_use]
    pub fn call(self, seed: u64) -> Trace {
        let [high, low] = halves(self.id);
        let span =
            [high, low, self.span, seed].into_iter().fold(0, |span, part| mixed(span ^ part));
        Trace { parent: self, span: span.max(1) }
    }
}

impl Trace {
    /// A call that begins a trace; `None`: 0 is no trace.
    #[must_use]
    pub fn begun(id: u128, seed: u64) -> Option<Trace> {
        (id != 0).then(|| Parent { id, span: 0, flags: 1 }.call(seed))
    }

    /// What a front has said of a request; `None`: it is in no trace.
    #[must_use]
    pub fn of(said: Traced) -> Option<Trace> {
        let id = u128::from(said.high) << 64 | u128::from(said.low);
        let parent = Parent { id, span: said.parent, flags: 0 };
        (id != 0).then_some(Trace { parent, span: said.span })
    }

    /// What the call calls in turn.
    #[must_use]
    pub fn below(&self, seed: u64) -> Trace {
        Parent { span: self.span, ..self.parent }.call(seed)
    }

    /// The `traceparent` for what the call calls in turn.
    #[must_use]
    pub fn header(&self) -> String {
        let Parent { id, flags, .. } = self.parent;
        format!("00-{id:032x}-{:016x}-{flags:02x}", self.span)
    }

    /// What a receipt says of it.
    #[must_use]
    pub fn part(&self) -> TracePart {
        TracePart {
            id: format!("{:032x}", self.parent.id),
            parent: Some(self.parent.span)
                .filter(|span| *span != 0)
                .map(|span| format!("{span:016x}")),
            span: format!("{:016x}", self.span),
        }
    }
}

impl From<Trace> for Traced {
    fn from(trace: Trace) -> Traced {
        let [high, low] = halves(trace.parent.id);
        Traced { high, low, parent: trace.parent.span, span: trace.span }
    }
}

/// What tells this call's span from those of others with the same parent: its number, and when it came
/// in nanoseconds, since numbers begin again.
#[must_use]
pub fn seed(call: CallId, at_ns: u64) -> u64 {
    call.0 ^ at_ns.rotate_left(20)
}

/// The upper and the lower half of a trace's id.
fn halves(id: u128) -> [u64; 2] {
    let [high, low] = [id >> 64, id & u128::from(u64::MAX)];
    [high, low].map(|half| u64::try_from(half).unwrap_or(u64::MAX))
}

/// The last step of splitmix64.
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_traceparent_is_read_as_the_standard_has_it() {
        let read = |text: String| Parent::read(text.as_bytes());
        let parent = Parent {
            id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span: 0x00f0_67aa_0ba9_02b7,
            flags: 1,
        };
        assert_eq!(read(format!("00-{ID}-00f067aa0ba902b7-01")), Some(parent));
        // A later version may say more.
        assert_eq!(read(format!("cc-{ID}-00f067aa0ba902b7-01-what")), Some(parent));
        for wrong in [
            format!("00-{ID}-00f067aa0ba902b7-01-what"),
            format!("ff-{ID}-00f067aa0ba902b7-01"),
            format!("00-{ID}-00f067aa0ba902b7-1"),
            format!("00-{ID}-00f067aa0ba902b7"),
            format!("00-{ID}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{}-00f067aa0ba902b7-01", ID.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", &ID[1..]),
            format!("00-{ID}-00f067aa0ba902b7-0g "),
            String::new(),
        ] {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
        assert_eq!(Parent::read(b"00-\xff"), None);
    }

    #[test]
    fn a_call_has_a_span_of_its_own_that_is_the_parent_of_what_it_calls() {
        let parent = Parent::read(format!("00-{ID}-00f067aa0ba902b7-00").as_bytes()).unwrap();
        let (one, two) = (parent.call(1), parent.call(2));
        assert!(one.span != two.span && one.span != parent.span);
        let next = Parent::read(one.header().as_bytes()).unwrap();
        assert_eq!(next, Parent { span: one.span, ..parent });
        let part = one.part();
        assert_eq!((&*part.id, part.parent.as_deref()), (ID, Some("00f067aa0ba902b7")));
        let begun = Trace::begun(parent.id, 1).unwrap();
        assert_eq!((&*begun.part().id, begun.part().parent), (ID, None));
        assert_eq!(begun.below(2).parent.span, begun.span);
        assert_eq!(Trace::begun(0, 1), None);
        assert_eq!(part.span, format!("{:016x}", one.span));
        assert_eq!(Trace::of(Traced::from(one)).map(|said| said.part()), Some(part));
        assert_eq!(Trace::of(Traced::default()), None);
    }
}
