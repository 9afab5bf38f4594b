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
//! | own | when a span of the program's own began, in nanoseconds of the monotonic clock | how long it took, its number, its parent, whether it was open at the end |
//! | own name | 8 bytes of the name of the span before it | 8 more |
//! | own dropped | how many spans of the program's own there was no room for | |

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
    /// A span that the program has made itself.
    Own = 8,
    /// A part of the name of the span before it.
    OwnName = 9,
    /// The program has made more than a call may.
    OwnDropped = 10,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 10] = [
        Kind::Edge,
        Kind::HeldByCall,
        Kind::HeldByLane,
        Kind::Starting,
        Kind::Fork,
        Kind::Forked,
        Kind::Given,
        Kind::Own,
        Kind::OwnName,
        Kind::OwnDropped,
    ];

    /// Its number in a record, which never changes its meaning.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The kind of this number, if this build knows it.
    #[must_use]
    pub fn of(number: u16) -> Option<Kind> {
        // Each stands at the place of its number: this is asked of each note of a ring.
        let kind = Kind::ALL.get(usize::from(number).checked_sub(1)?).copied();
        kind.filter(|kind| kind.number() == number)
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

/// How many spans of its own a program's call may have.
pub const OWN_MAX: usize = 256;
/// The most bytes of such a span's name; what is longer is cut.
pub const OWN_NAME_MAX: usize = 48;
const NAME_PART: usize = 16;

/// A span that a program has made itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Which of its call it is, in the order of their begins.
    pub number: u8,
    /// The number of the one in which it was begun, a lower one.
    pub parent: Option<u8>,
    /// When it began, in nanoseconds of the monotonic clock.
    pub start_ns: u64,
    /// How long it took, in nanoseconds, up to 19 hours.
    pub ns: u64,
    /// Whether the program had not ended it when the call ended.
    pub is_open: bool,
    /// Its name, in whatever bytes the program gave it; without a NUL.
    pub name: Vec<u8>,
}

/// Bits of the time in the second number of such a span's record; behind it stand its number, one
/// more than its parent's (9 bits), and whether it was open.
const OWN_NS_BITS: u32 = 46;

impl Own {
    /// The span of this number by the words of a worker: its begin, how long it took, one more than
    /// its parent's number (0: none), and whether it was open, all as decimal numbers with a space
    /// behind each; then its name.
    #[must_use]
    pub fn parse(number: u8, said: &[u8]) -> Option<Own> {
        let mut words = said.splitn(5, |byte| *byte == b' ');
        let mut value = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
        let (start_ns, ns, parent, open) = (value()?, value()?, value()?, value()?);
        let mut name = words.next()?.to_vec();
        name.truncate(OWN_NAME_MAX);
        let ns = ns.min((1 << OWN_NS_BITS) - 1);
        Some(Own { number, parent: before(number, parent), start_ns, ns, is_open: open > 0, name })
    }

    /// Its records: one, and one for each 16 bytes of its name.
    pub fn records(&self, call: CallId) -> impl Iterator<Item = Record> {
        let parent = self.parent.map_or(0, |parent| u64::from(parent) + 1);
        let ns = self.ns.min((1 << OWN_NS_BITS) - 1);
        let b = ns | u64::from(self.number) << OWN_NS_BITS | parent << 54;
        let first = Record::new(Kind::Own, call, self.start_ns, b | u64::from(self.is_open) << 63);
        let names = self.name.chunks(NAME_PART).map(move |part| {
            let mut bytes = [0; NAME_PART];
            bytes[..part.len()].copy_from_slice(part);
            let number = u128::from_le_bytes(bytes);
            #[expect(clippy::cast_possible_truncation, reason = "its two halves")]
            let (a, b) = (number as u64, (number >> 64) as u64);
            Record::new(Kind::OwnName, call, a, b)
        });
        std::iter::once(first).chain(names)
    }

    /// The spans of these records, in their order. A name whose span was overwritten is none's.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Own> {
        let mut spans: Vec<Own> = Vec::new();
        for record in records {
            match Kind::of(record.kind) {
                Some(Kind::Own) => {
                    let number = (record.b >> OWN_NS_BITS & 0xff) as u8;
                    spans.push(Own {
                        number,
                        parent: before(number, record.b >> 54 & 0x1ff),
                        start_ns: record.a,
                        ns: record.b & ((1 << OWN_NS_BITS) - 1),
                        is_open: record.b >> 63 > 0,
                        name: Vec::new(),
                    });
                }
                Some(Kind::OwnName) => {
                    let Some(span) = spans.last_mut() else { continue };
                    let bytes = record.a.to_le_bytes().into_iter().chain(record.b.to_le_bytes());
                    span.name.extend(bytes.take_while(|byte| *byte > 0));
                }
                _ => {}
            }
        }
        spans
    }
}

/// The parent that is said as one more than its number, if it is one that comes before.
fn before(number: u8, said: u64) -> Option<u8> {
    u8::try_from(said.checked_sub(1)?).ok().filter(|parent| *parent < number)
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
    fn a_span_of_a_program_is_read_as_it_was_written_whatever_its_name() {
        let own = |number, parent, ns, name: &[u8]| Own {
            number,
            parent,
            start_ns: u64::MAX,
            ns,
            is_open: number > 100,
            name: name.to_vec(),
        };
        let all = [
            own(0, None, 0, b""),
            own(1, Some(0), 7, b"parse"),
            own(255, Some(254), (1 << OWN_NS_BITS) - 1, b"exactly sixteen."),
            own(254, None, 1, b"\xff\n a b \x1b[0m and more than sixteen bytes"),
            own(3, Some(2), 1, &[b'x'; OWN_NAME_MAX]),
        ];
        let records: Vec<_> = all.iter().flat_map(|span| span.records(CallId(3))).collect();
        assert!(records.iter().all(|record| record.call == CallId(3)));
        assert_eq!(Own::of(&records), all);
        assert_eq!(Own::of(&records[2..])[0], all[2], "a name alone is none's");
    }

    #[test]
    fn what_a_worker_says_of_a_span_is_bounded_or_none() {
        let said = Own::parse(9, b"5 70 9 1 a name").unwrap();
        let name = b"a name".to_vec();
        let want = Own { number: 9, parent: Some(8), start_ns: 5, ns: 70, is_open: true, name };
        assert_eq!(said, want);
        for parent in ["0", "10", "11", "256", "257", "18446744073709551615"] {
            let said = format!("1 2 {parent} 0 x");
            assert_eq!(Own::parse(9, said.as_bytes()).unwrap().parent, None, "{parent}");
        }
        let long = [b"1 18446744073709551615 0 0 ".as_slice(), &[b'y'; 1000]].concat();
        let long = Own::parse(0, &long).unwrap();
        assert_eq!((long.name.len(), long.ns), (OWN_NAME_MAX, (1 << OWN_NS_BITS) - 1));
        for bad in ["", "1", "1 2 3", "1 2 3 0", "-1 2 3 0 x", "1 2 x 0 n", "1  2 3 0"] {
            assert_eq!(Own::parse(0, bad.as_bytes()), None, "{bad}");
        }
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
