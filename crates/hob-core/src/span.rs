//! Spans: what a call did within a phase, and for whom it waited, as records of a ring.
//!
//! A record is a stamp and three words: the call with what happened, and two numbers that depend on
//! it. This file is the one place that knows what they mean; the ring itself (`hob_os::ring`) does
//! not. A record whose kind is not known is kept, and shown by its number: another build wrote it.
//!
//! | kind | `a` | `b` |
//! |---|---|---|
//! | edge | the mark | when it was passed, in nanoseconds of the monotonic clock |
//! | held by a call | that call | which of how many holders this is |
//! | held by a lane | the lane | the same |
//! | starting | the worker that is not ready yet | the same |
//! | fork, forked | the worker | its process, if it is known |
//! | given | the worker | |

use crate::ids::CallId;
use crate::phase::Mark;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Kind {
    /// A call passed a mark.
    Edge = 1,
    /// A call began to wait for something that another call has.
    HeldByCall = 2,
    /// The same; a sender has it, which speaks to it directly.
    HeldByLane = 3,
    /// The same; it is there, and not ready yet.
    Starting = 4,
    /// A worker is to be forked.
    Fork = 5,
    /// It was.
    Forked = 6,
    /// A call was given to a worker.
    Given = 7,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] = [
        Kind::Edge,
        Kind::HeldByCall,
        Kind::HeldByLane,
        Kind::Starting,
        Kind::Fork,
        Kind::Forked,
        Kind::Given,
    ];

    /// Its number in a record, which never changes its meaning.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The kind of this number, if this build knows it.
    #[must_use]
    pub fn of(number: u16) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// A record, without its stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The call that it is about; 0: none.
    pub call: CallId,
    /// What happened, by its number.
    pub kind: u16,
    /// A number that depends on the kind.
    pub a: u64,
    /// Another.
    pub b: u64,
}

/// Bits of the word that the call shares with the kind.
const CALL_BITS: u32 = 48;

impl Record {
    /// One of a kind that is known.
    #[must_use]
    pub fn new(kind: Kind, call: CallId, a: u64, b: u64) -> Record {
        Record { call, kind: kind.number(), a, b }
    }

    /// That a call has passed a mark.
    #[must_use]
    pub fn edge(call: CallId, mark: Mark, at_ns: u64) -> Record {
        Record::new(Kind::Edge, call, mark as u64, at_ns)
    }

    /// Its words.
    #[must_use]
    pub fn words(self) -> [u64; 3] {
        let call = self.call.0 & ((1 << CALL_BITS) - 1);
        [u64::from(self.kind) << CALL_BITS | call, self.a, self.b]
    }

    /// The record of these words. Each three words are one.
    #[must_use]
    pub fn of([first, a, b]: [u64; 3]) -> Record {
        let kind = u16::try_from(first >> CALL_BITS).unwrap_or_default();
        Record { call: CallId(first & ((1 << CALL_BITS) - 1)), kind, a, b }
    }

    /// The mark of an edge, and when it was passed.
    #[must_use]
    pub fn as_edge(&self) -> Option<(Mark, u64)> {
        let index = usize::try_from(self.a).ok()?;
        let mark = *Mark::ALL.get(index)?;
        (Kind::of(self.kind) == Some(Kind::Edge)).then_some((mark, self.b))
    }
}

/// Who has what a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Another call.
    Call(CallId),
    /// A sender that speaks to the worker directly.
    Lane(u64),
    /// Nobody: the worker is not ready yet.
    Starting(u64),
}

/// How many holders of one wait are noted; `b` of each says how many there were.
pub const HOLDERS_MAX: usize = 8;

/// The records of a call that waits, one for each holder.
pub fn waits(call: CallId, holders: &[Holder]) -> impl Iterator<Item = Record> {
    let of = u64::try_from(holders.len()).unwrap_or(u64::MAX) & u64::from(u32::MAX);
    (0..).zip(holders.iter().take(HOLDERS_MAX)).map(move |(number, holder): (u64, _)| {
        let (kind, a) = match holder {
            Holder::Call(holder) => (Kind::HeldByCall, holder.0),
            Holder::Lane(lane) => (Kind::HeldByLane, *lane),
            Holder::Starting(worker) => (Kind::Starting, *worker),
        };
        Record::new(kind, call, a, number << 32 | of)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_number_and_what_is_written_is_read() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind.number()), Some(kind));
            let record = Record::new(kind, CallId((1 << CALL_BITS) - 1), u64::MAX, 7);
            assert_eq!(Record::of(record.words()), record);
        }
        assert_eq!(Kind::of(0), None);
        let later = Record::of([0xffff << CALL_BITS | 3, 1, 2]);
        assert_eq!((later.call, later.kind, later.as_edge()), (CallId(3), 0xffff, None));
    }

    #[test]
    fn an_edge_is_a_mark_and_its_time() {
        for mark in Mark::ALL {
            assert_eq!(Record::edge(CallId(1), mark, 9).as_edge(), Some((mark, 9)));
        }
        assert_eq!(Record { a: 99, ..Record::edge(CallId(1), Mark::Main, 9) }.as_edge(), None);
    }

    #[test]
    fn a_wait_has_a_record_for_each_holder_up_to_a_bound_and_says_how_many_there_were() {
        let holders: Vec<_> = (0..20).map(|call| Holder::Call(CallId(call))).collect();
        let records: Vec<_> = waits(CallId(99), &holders).collect();
        assert_eq!(records.len(), HOLDERS_MAX);
        assert!(records.iter().all(|record| record.b & 0xffff_ffff == 20));
        assert_eq!((records[3].a, records[3].b >> 32), (3, 3));
        assert_eq!(waits(CallId(99), &[]).count(), 0);
    }
}
