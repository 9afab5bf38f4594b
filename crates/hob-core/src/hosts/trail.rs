//! The way of an ask over hosts: where it stands in a trace, and how many hosts it has come over. A
//! handler that is asked by another host, and asks a third one, goes on with both.

use crate::receipt::trace::Trace;

/// The way of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trail {
    /// Where it stands in its trace; `None`: in none.
    pub trace: Option<Trace>,
    /// The hosts that it has come over.
    pub hops: u64,
}

impl Trail {
    /// The way of what is asked on: one host more, in the trace of what came before, or else in a new
    /// one. The seed tells apart what has the same parent.
    #[must_use]
    pub fn on(before: Option<Trail>, new: Option<Trace>, seed: u64) -> Trail {
        let below = before.and_then(|before| before.trace).map(|trace| trace.below(seed));
        Trail {
            trace: below.or(new),
            hops: before.map_or(0, |before| before.hops).saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_on_keeps_its_trace_and_counts() {
        let (first, other) = (Trace::begun(1, 1), Trace::begun(2, 1));
        let begun = Trail::on(None, first, 7);
        assert_eq!(begun, Trail { trace: first, hops: 1 });
        let next = Trail::on(Some(begun), other, 8);
        let (first, trace) = (first.unwrap(), next.trace.unwrap());
        assert_eq!((next.hops, trace.parent.id), (2, 1));
        assert_eq!(trace.parent.span, first.span);
        assert_ne!(trace.span, first.span);
        let untold = Trail { trace: None, hops: 4 };
        assert_eq!(Trail::on(Some(untold), other, 9), Trail { trace: other, hops: 5 });
    }
}
