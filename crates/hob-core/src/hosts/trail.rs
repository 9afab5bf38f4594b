//! The way of an ask over hosts: the one trace that it belongs to, and how many hosts it has come
//! over. A handler that is asked by another host, and asks a third one, goes on with both.
//!
//! The trace is written as the W3C's `traceparent` has it, so that other tools can join it:
//! `00-TRACE-PARENT-01`.

use std::fmt::Write as _;

use crate::ids::CallId;

/// The identity of a trace: 32 hex digits, not all of them 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(u128);

impl TraceId {
    /// The identity of these bytes; `None`: they are all 0.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Option<TraceId> {
        Some(u128::from_be_bytes(bytes)).filter(|id| *id != 0).map(TraceId)
    }

    /// What a `traceparent` says; `None`: it is none of version 0.
    #[must_use]
    pub fn of_parent(text: &str) -> Option<TraceId> {
        let parts: Vec<&str> = text.split('-').collect();
        let [version, trace, parent, flags] = parts[..] else { return None };
        let is_hex = |part: &str, digits: usize| {
            part.len() == digits
                && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_whole =
            version == "00" && is_hex(trace, 32) && is_hex(parent, 16) && is_hex(flags, 2);
        let is_some = parent.bytes().any(|byte| byte != b'0');
        let id = u128::from_str_radix(trace, 16).ok().filter(|id| is_whole && is_some && *id != 0);
        id.map(TraceId)
    }

    /// The `traceparent` of what this call asks of another host.
    #[must_use]
    pub fn parent(self, call: CallId) -> String {
        format!("00-{}-{:016x}-01", self.text(), call.0.max(1))
    }

    /// Its 32 hex digits.
    #[must_use]
    pub fn text(self) -> String {
        let mut text = String::with_capacity(32);
        let _ = write!(text, "{:032x}", self.0);
        text
    }
}

/// The way of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trail {
    /// Its trace; `None`: its asker has said none.
    pub trace: Option<TraceId>,
    /// The hosts that it has come over.
    pub hops: u64,
}

impl Trail {
    /// The way of what is asked on: one host more, of a trace in any case.
    #[must_use]
    pub fn on(before: Option<Trail>, new: Option<TraceId>) -> Trail {
        Trail {
            trace: before.and_then(|before| before.trace).or(new),
            hops: before.map_or(0, |before| before.hops).saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_as_it_is_written_and_nothing_else_is() {
        let id = TraceId::new([7; 16]).unwrap();
        let text = id.parent(CallId(42));
        assert_eq!(text, format!("00-{}-000000000000002a-01", "07".repeat(16)));
        assert_eq!(TraceId::of_parent(&text), Some(id));
        assert_eq!(TraceId::new([0; 16]), None);
        let zero = format!("00-{}-000000000000002a-01", "0".repeat(32));
        let none = format!("00-{}-{}-01", "07".repeat(16), "0".repeat(16));
        let other = text.replacen("00-", "01-", 1);
        let upper = text.replace("2a", "2A");
        for wrong in ["", "00", "-", &text[1..], &zero, &none, &other, &upper, &format!("{text}-x")]
        {
            assert_eq!(TraceId::of_parent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_asked_on_keeps_its_trace_and_counts() {
        let (first, other) = (TraceId::new([1; 16]), TraceId::new([2; 16]));
        let begun = Trail::on(None, first);
        assert_eq!(begun, Trail { trace: first, hops: 1 });
        assert_eq!(Trail::on(Some(begun), other), Trail { trace: first, hops: 2 });
        let untold = Trail { trace: None, hops: 4 };
        assert_eq!(Trail::on(Some(untold), other), Trail { trace: other, hops: 5 });
    }
}
