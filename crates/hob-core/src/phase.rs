//! The phases of a call and the marks at their edges.
//!
//! ```text
//! start ─connect─ connected ─send─ received ─plan─ planned ─queue─ queued ─give─ given
//!       ─enter─ main ─main─ finished ─settle─ settled ─leave─ ended
//! ```
//! Between `connected` and `received` a request of a web app has `parsed` (its phase is *head*),
//! `judged` (*rights*) and `whole` (*body*), between `settled` and `ended` it has `passed` (*write*).
//! A request of a file of a repository has, in place of what a program has, `queued`, `found` (*ref*) and
//! `read` (*object*).
//! A cold run has no `queued` and `given`; its `enter` begins at `planned`.

use serde::{Deserialize, Serialize};

use crate::ids::Time;

/// The stamp at the edge of a phase, in the order in which a call passes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// The client's `main` began.
    Start,
    /// It began to send.
    Connected,
    /// The front had the request's head.
    Parsed,
    /// It was known that the request has a right to what it asks for.
    Judged,
    /// The front had the whole request, its body too.
    Whole,
    /// The daemon had the whole call.
    Received,
    /// The plan was made.
    Planned,
    /// A worker was found.
    Queued,
    /// The call was with the worker.
    Given,
    /// The program's own code began.
    Main,
    /// It was known which object of a repository a request asks for.
    Found,
    /// That object was read.
    Read,
    /// It ended.
    Finished,
    /// The outcome was known to the caller, where a worker told it, or to the daemon.
    Settled,
    /// The front had passed on the last byte of the answer.
    Passed,
    /// The client had left, or had said that it leaves.
    Ended,
}

impl Mark {
    /// Every mark in order.
    pub const ALL: [Mark; 16] = [
        Mark::Start,
        Mark::Connected,
        Mark::Parsed,
        Mark::Judged,
        Mark::Whole,
        Mark::Received,
        Mark::Planned,
        Mark::Queued,
        Mark::Given,
        Mark::Main,
        Mark::Found,
        Mark::Read,
        Mark::Finished,
        Mark::Settled,
        Mark::Passed,
        Mark::Ended,
    ];
}

/// A named stretch of a call's time: it ends at the mark after which it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The client finds the daemon (ends at `Connected`).
    Connect,
    /// The head of a request comes (ends at `Parsed`).
    Head,
    /// The rights of a request are judged (ends at `Judged`).
    Rights,
    /// The body of a request comes (ends at `Whole`).
    Body,
    /// The call travels (ends at `Received`).
    Send,
    /// It is resolved and decided (ends at `Planned`).
    Plan,
    /// It waits for a worker (ends at `Queued`).
    Queue,
    /// It is claimed and handed over (ends at `Given`).
    Give,
    /// The worker takes on the caller's world; cold: the interpreter starts (ends at `Main`).
    Enter,
    /// A revision and a path are looked up in a repository (ends at `Found`).
    Ref,
    /// An object of a repository is read (ends at `Read`).
    Object,
    /// The program runs (ends at `Finished`).
    Main,
    /// The outcome reaches the daemon (ends at `Settled`).
    Settle,
    /// The answer is passed on to a request's client (ends at `Passed`).
    Write,
    /// The client leaves (ends at `Ended`).
    Leave,
}

impl Phase {
    /// Every phase in order.
    pub const ALL: [Phase; 15] = [
        Phase::Connect,
        Phase::Head,
        Phase::Rights,
        Phase::Body,
        Phase::Send,
        Phase::Plan,
        Phase::Queue,
        Phase::Give,
        Phase::Enter,
        Phase::Ref,
        Phase::Object,
        Phase::Main,
        Phase::Settle,
        Phase::Write,
        Phase::Leave,
    ];

    /// The phase that ends at this mark.
    #[must_use]
    pub fn ending_at(mark: Mark) -> Option<Phase> {
        match mark {
            Mark::Start => None,
            Mark::Connected => Some(Phase::Connect),
            Mark::Parsed => Some(Phase::Head),
            Mark::Judged => Some(Phase::Rights),
            Mark::Whole => Some(Phase::Body),
            Mark::Received => Some(Phase::Send),
            Mark::Planned => Some(Phase::Plan),
            Mark::Queued => Some(Phase::Queue),
            Mark::Given => Some(Phase::Give),
            Mark::Main => Some(Phase::Enter),
            Mark::Found => Some(Phase::Ref),
            Mark::Read => Some(Phase::Object),
            Mark::Finished => Some(Phase::Main),
            Mark::Settled => Some(Phase::Settle),
            Mark::Passed => Some(Phase::Write),
            Mark::Ended => Some(Phase::Leave),
        }
    }

    /// The word for it, as in receipts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Head => "head",
            Phase::Rights => "rights",
            Phase::Body => "body",
            Phase::Send => "send",
            Phase::Plan => "plan",
            Phase::Queue => "queue",
            Phase::Give => "give",
            Phase::Enter => "enter",
            Phase::Ref => "ref",
            Phase::Object => "object",
            Phase::Main => "main",
            Phase::Settle => "settle",
            Phase::Write => "write",
            Phase::Leave => "leave",
        }
    }
}

/// The stamps of one call. A mark that was never passed leaves no phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    at: [Option<Time>; Mark::ALL.len()],
}

impl Marks {
    /// Stamps a mark. The first stamp counts.
    pub fn stamp(&mut self, mark: Mark, now: Time) {
        let slot = &mut self.at[mark as usize];
        if slot.is_none() {
            *slot = Some(now);
        }
    }

    /// Stamps a mark of which another process says when it was passed: the earlier stamp counts,
    /// whatever was heard first.
    pub fn stamp_as_told(&mut self, mark: Mark, at: Time) {
        let slot = &mut self.at[mark as usize];
        *slot = Some(slot.map_or(at, |known| known.min(at)));
    }

    /// When a mark was passed.
    #[must_use]
    pub fn get(&self, mark: Mark) -> Option<Time> {
        self.at[mark as usize]
    }

    /// The phases that were passed: name, start in microseconds after the first mark, length in
    /// microseconds. Marks that come from different processes can cross by a few microseconds;
    /// a phase is never negative, and the phases add up to the whole.
    #[must_use]
    pub fn phases(&self) -> Vec<(Phase, u64, u64)> {
        let mut phases = Vec::with_capacity(Phase::ALL.len());
        let mut passed = Mark::ALL.into_iter().filter_map(|mark| Some((mark, self.get(mark)?)));
        let Some((_, origin)) = passed.next() else {
            return phases;
        };
        let mut before_us = 0;
        for (mark, at) in passed {
            let end_us = at.us_since(origin).max(before_us);
            if let Some(phase) = Phase::ending_at(mark) {
                phases.push((phase, before_us, end_us - before_us));
            }
            before_us = end_us;
        }
        phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_add_up_and_are_never_negative() {
        let mut marks = Marks::default();
        marks.stamp(Mark::Start, Time(1_000_000));
        marks.stamp(Mark::Received, Time(1_200_000));
        marks.stamp(Mark::Planned, Time(1_190_000));
        marks.stamp(Mark::Ended, Time(2_000_000));
        marks.stamp(Mark::Ended, Time(9_000_000));
        assert_eq!(
            marks.phases(),
            [(Phase::Send, 0, 200), (Phase::Plan, 200, 0), (Phase::Leave, 200, 800)]
        );
    }

    #[test]
    fn what_another_process_says_of_a_mark_counts_whenever_it_is_heard() {
        for heard in [[2_000_000, 9_000_000], [9_000_000, 2_000_000]] {
            let mut marks = Marks::default();
            marks.stamp(Mark::Settled, Time(heard[0]));
            marks.stamp_as_told(Mark::Settled, Time(heard[1]));
            assert_eq!(marks.get(Mark::Settled), Some(Time(2_000_000)), "{heard:?}");
        }
    }

    #[test]
    fn a_phase_has_one_name() {
        for phase in Phase::ALL {
            let stored = serde_json::to_string(&phase).unwrap();
            assert_eq!(stored, format!("\"{}\"", phase.name()));
        }
    }

    #[test]
    fn marks_are_indexed_in_order() {
        for (index, mark) in Mark::ALL.into_iter().enumerate() {
            assert_eq!(mark as usize, index);
        }
        let ends: Vec<_> = Mark::ALL.into_iter().filter_map(Phase::ending_at).collect();
        assert_eq!(ends, Phase::ALL);
    }
}
