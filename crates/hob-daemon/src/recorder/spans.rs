//! Spans of a call, found in the rings of the processes that performed it.
//!
//! A receipt says how long each phase took; the rings say what was beneath. They are of the last
//! while only, so an answer always says whether all of the call is still there ([`Coverage`]).
//! Numbers of calls are not enough to find one: two processes may use the same, so the moment must
//! fit too.

use std::path::{Path, PathBuf};

use hob_core::phase::{Mark, Phase};
use hob_core::receipt::Receipt;
use hob_core::span::{HOLDERS_MAX, Kind, Record};
use hob_os::ring::{self, Copied, Pair, Unread};

use super::export::begun_ns;

/// How far a note and its receipt may be apart and be of one call.
const APART_NS: u64 = 2_000_000_000;

/// The rings of all processes that there are or were.
#[derive(Debug, Default)]
pub struct Rings {
    rings: Vec<Ring>,
    /// Files that are not read, and why.
    pub unread: Vec<(PathBuf, Unread)>,
}

/// One ring, with its times in nanoseconds of the monotonic clock.
#[derive(Debug)]
struct Ring {
    clock: Clock,
    notes: Vec<(u64, Record)>,
    began_ns: u64,
    /// Whether something was overwritten.
    is_full: bool,
}

/// What is left of a call's spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All that was noted.
    Whole,
    /// The newest of them; older ones were overwritten.
    Part,
    /// None: they were overwritten.
    Overwritten,
    /// None: no ring is there of the process that performed it.
    NoRing,
}

impl Coverage {
    /// Its word, as in JSON.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Coverage::Whole => "whole",
            Coverage::Part => "part",
            Coverage::Overwritten => "overwritten",
            Coverage::NoRing => "no-ring",
        }
    }
}

/// A stretch within a call's phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What it is.
    pub what: What,
    /// When it began, in microseconds after the call's first mark.
    pub start_us: u64,
    /// How long it took.
    pub us: u64,
}

/// What a span is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It waited for what others had.
    Waited {
        /// Who, the first of them.
        holders: Vec<Held>,
        /// How many there were.
        of: u64,
        /// Calls that its worker was given while it waited, in order, and how long each had it.
        then: Vec<(u64, u64)>,
    },
    /// A worker was forked for it.
    Forked {
        /// Its process; 0: it is not known.
        pid: u64,
    },
    /// Something that another build notes, by its number.
    Unknown(u16),
}

/// Who had what a call waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// A call, and how long it had it after the wait began, in microseconds; `None`: all the while.
    Call(u64, Option<u64>),
    /// A sender that spoke to the worker directly.
    Lane(u64),
    /// The worker was not ready yet.
    Starting(u64),
}

/// The spans of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spans {
    /// What is left of them.
    pub coverage: Coverage,
    /// In the order of their begins.
    pub spans: Vec<Span>,
}

impl Rings {
    /// Copies all rings in these directories.
    #[must_use]
    pub fn read(directories: &[PathBuf]) -> Rings {
        let mut rings = Rings::default();
        let files = directories.iter().flat_map(|directory: &PathBuf| ring::files(directory));
        for file in files {
            rings.add(&file);
        }
        rings
    }

    fn add(&mut self, file: &Path) {
        match ring::read(file) {
            Ok(copied) => self.rings.push(Ring::of(&copied, ring::pair_now())),
            Err(why) => self.unread.push((file.to_path_buf(), why)),
        }
    }

    /// The spans of the call with this receipt.
    #[must_use]
    pub fn of(&self, receipt: &Receipt) -> Spans {
        let none = |coverage| Spans { coverage, spans: Vec::new() };
        let Some(at_ns) = begun_ns(receipt) else { return none(Coverage::NoRing) };
        let found = self.rings.iter().filter_map(|ring| {
            let (first, _) = *ring.notes_of(receipt).first()?;
            Some((ring.clock.real(first).abs_diff(at_ns), ring))
        });
        if let Some((_, ring)) = found.min_by_key(|(apart, _)| *apart) {
            return ring.spans(receipt, at_ns);
        }
        // One that was there at that time and has had to overwrite since.
        let might = |ring: &&Ring| {
            let oldest = ring.notes.first().map_or(u64::MAX, |(at, _)| ring.clock.real(*at));
            let began = ring.clock.real(ring.began_ns).saturating_sub(APART_NS);
            ring.is_full && began <= at_ns && at_ns <= oldest.saturating_add(APART_NS)
        };
        match self.rings.iter().find(might) {
            Some(_) => none(Coverage::Overwritten),
            None => none(Coverage::NoRing),
        }
    }
}

impl Ring {
    fn of(copied: &Copied, now: Pair) -> Ring {
        let mut pairs = copied.pairs.clone();
        if pairs.first().is_none_or(|first| copied.first.stamp < first.stamp) {
            pairs.insert(0, copied.first);
        }
        pairs.push(now);
        let clock = Clock { pairs };
        let note = |[stamp, a, b, c]: &[u64; 4]| (clock.at(*stamp), Record::of([*a, *b, *c]));
        let notes = copied.records.iter().map(note).collect();
        let is_full = copied.written > copied.records.len() as u64;
        Ring { notes, began_ns: copied.first.monotonic_ns, is_full, clock }
    }

    /// The notes of this call, by its number and its time. The wall clock may be set while it runs:
    /// only the first one is judged by it.
    fn notes_of(&self, receipt: &Receipt) -> Vec<(u64, &Record)> {
        let at_ns = begun_ns(receipt).unwrap_or_default();
        let spare_ns = receipt.total_us.saturating_mul(1000).saturating_add(APART_NS);
        let real = at_ns.saturating_sub(APART_NS)..=at_ns.saturating_add(spare_ns);
        let own = || self.notes.iter().filter(|(_, record)| record.call.0 == receipt.call);
        let Some((first, _)) = own().find(|(at, _)| real.contains(&self.clock.real(*at))) else {
            return Vec::new();
        };
        let fits = |at: u64| (*first..=first.saturating_add(spare_ns)).contains(&at);
        own().filter(|(at, _)| fits(*at)).map(|(at, record)| (*at, record)).collect()
    }

    fn spans(&self, receipt: &Receipt, at_ns: u64) -> Spans {
        let notes = self.notes_of(receipt);
        let edges: Vec<_> = notes.iter().filter_map(|(_, record)| record.as_edge()).collect();
        let has_come = edges.iter().any(|(mark, _)| *mark == Mark::Received);
        let fixed = edges.iter().find_map(|(mark, ns)| {
            let after_us = after(receipt, *mark)?;
            (*ns > 0).then(|| ns.saturating_sub(after_us * 1000))
        });
        // Without an edge that the receipt knows there is the wall clock's moment of its coming.
        let origin_ns = fixed.unwrap_or_else(|| {
            let received_us = after(receipt, Mark::Received).unwrap_or(0);
            self.clock.of_real(at_ns).saturating_sub(received_us * 1000)
        });
        let us = |at: u64| at.saturating_sub(origin_ns) / 1000;
        let mut spans = self.waits(&notes, &us);
        spans.extend(self.fork(&notes, &us));
        spans.extend(
            notes.iter().filter(|(_, note)| Kind::of(note.kind).is_none()).map(|(at, note)| Span {
                what: What::Unknown(note.kind),
                start_us: us(*at),
                us: 0,
            }),
        );
        spans.sort_by_key(|span| span.start_us);
        let coverage = if has_come { Coverage::Whole } else { Coverage::Part };
        Spans { coverage, spans }
    }

    /// What the call waited for: notes that follow one another are of one wait.
    fn waits(&self, notes: &[(u64, &Record)], us: &impl Fn(u64) -> u64) -> Vec<Span> {
        let mut waits: Vec<(u64, Vec<Record>)> = Vec::new();
        for (at, note) in notes {
            if held(note).is_none() {
                continue;
            }
            match waits.last_mut() {
                Some((_, holders)) if note.b >> 32 > 0 => holders.push(**note),
                _ => waits.push((*at, vec![**note])),
            }
        }
        let spans = waits.into_iter().map(|(began, holders)| {
            let ends = notes.iter().filter(|(at, note)| *at > began && ends_a_wait(note));
            let end = ends.map(|(at, _)| *at).min().unwrap_or(began);
            let of = holders.first().map_or(0, |first| first.b & u64::from(u32::MAX));
            let holders = holders.iter().filter_map(held);
            let holders = holders.map(|holder| match holder {
                Held::Call(call, _) => Held::Call(call, self.had(call, began, end)),
                Held::Lane(_) | Held::Starting(_) => holder,
            });
            let then = self.given_before(notes, began, end);
            let what = What::Waited { holders: holders.collect(), of, then };
            Span { what, start_us: us(began), us: (end - began) / 1000 }
        });
        spans.collect()
    }

    /// How long a call went on after a wait began; `None`: longer than the wait.
    fn had(&self, call: u64, began: u64, end: u64) -> Option<u64> {
        let ends = self.notes.iter().filter(|(at, note)| {
            let is_end = matches!(note.as_edge(), Some((Mark::Settled, _)));
            note.call.0 == call && is_end && (began..=end).contains(at)
        });
        ends.map(|(at, _)| (at - began) / 1000).min()
    }

    /// What the call's worker was given while the call waited: what came before it.
    fn given_before(&self, notes: &[(u64, &Record)], began: u64, end: u64) -> Vec<(u64, u64)> {
        let is_given = |note: &Record| Kind::of(note.kind) == Some(Kind::Given);
        let worker = notes.iter().rfind(|(_, note)| is_given(note)).map(|(_, note)| note.a);
        let own = notes.first().map(|(_, note)| note.call);
        let before = self.notes.iter().filter(|(at, note)| {
            is_given(note)
                && Some(note.a) == worker
                && Some(note.call) != own
                && (began..end).contains(at)
        });
        let took = before.map(|(at, note)| {
            let ended = self.had(note.call.0, *at, end).unwrap_or((end - at) / 1000);
            (note.call.0, ended)
        });
        took.take(HOLDERS_MAX).collect()
    }

    /// The fork of the worker that the call was given to, if that was for this call.
    fn fork(&self, notes: &[(u64, &Record)], us: &impl Fn(u64) -> u64) -> Option<Span> {
        let (came, _) = notes.first()?;
        let given = notes.iter().rfind(|(_, note)| Kind::of(note.kind) == Some(Kind::Given));
        let worker = given?.1.a;
        let of = |kind: Kind| {
            self.notes.iter().find(move |(at, note)| {
                at >= came && note.a == worker && Kind::of(note.kind) == Some(kind)
            })
        };
        let (began, _) = of(Kind::Fork)?;
        let (ended, forked) = of(Kind::Forked)?;
        let what = What::Forked { pid: forked.b };
        Some(Span { what, start_us: us(*began), us: ended.saturating_sub(*began) / 1000 })
    }
}

/// A note that somebody has what is waited for.
fn held(note: &Record) -> Option<Held> {
    match Kind::of(note.kind)? {
        Kind::HeldByCall => Some(Held::Call(note.a, None)),
        Kind::HeldByLane => Some(Held::Lane(note.a)),
        Kind::Starting => Some(Held::Starting(note.a)),
        Kind::Edge | Kind::Fork | Kind::Forked | Kind::Given => None,
    }
}

/// A note after which a call waits no longer.
fn ends_a_wait(note: &Record) -> bool {
    let mark = note.as_edge().map(|(mark, _)| mark);
    matches!(mark, Some(Mark::Queued | Mark::Given | Mark::Settled))
}

/// When a mark was passed, in microseconds after the call's first one.
fn after(receipt: &Receipt, mark: Mark) -> Option<u64> {
    let phase = Phase::ending_at(mark)?;
    let found = receipt.phases.iter().find(|part| part.name == phase.name());
    // A message has no phase before it was received: that is its first mark.
    let is_first = mark == Mark::Received
        && !receipt.phases.iter().any(|part| part.name == Phase::Body.name());
    found.map(|part| part.start_us + part.us).or(is_first.then_some(0))
}

/// From stamps to times, by the pairs beside them.
#[derive(Debug)]
struct Clock {
    /// In order; at least two.
    pairs: Vec<Pair>,
}

impl Clock {
    /// The pair before a stamp, and the one behind it.
    fn around(&self, is_before: impl Fn(&Pair) -> bool) -> (Pair, Pair) {
        let behind = self.pairs.partition_point(is_before).clamp(1, self.pairs.len() - 1);
        (self.pairs[behind - 1], self.pairs[behind])
    }

    /// Nanoseconds of the monotonic clock.
    fn at(&self, stamp: u64) -> u64 {
        let (one, other) = self.around(|pair| pair.stamp <= stamp);
        let ticks = i128::from(other.stamp) - i128::from(one.stamp);
        let ns = i128::from(other.monotonic_ns) - i128::from(one.monotonic_ns);
        let since = i128::from(stamp) - i128::from(one.stamp);
        let after = if ticks > 0 { since * ns / ticks } else { 0 };
        u64::try_from(i128::from(one.monotonic_ns) + after).unwrap_or_default()
    }

    /// The wall clock at a time of the monotonic one, as it was set then.
    fn real(&self, at_ns: u64) -> u64 {
        let (one, _) = self.around(|pair| pair.monotonic_ns <= at_ns);
        one.real_ns.wrapping_add(at_ns.wrapping_sub(one.monotonic_ns))
    }

    /// The reverse.
    fn of_real(&self, real_ns: u64) -> u64 {
        let (one, _) = self.around(|pair| pair.real_ns <= real_ns);
        one.monotonic_ns.wrapping_add(real_ns.wrapping_sub(one.real_ns))
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ids::CallId;
    use hob_core::receipt::PhasePart;
    use hob_core::span::{self, Holder};

    use super::super::format::tests::receipt;
    use super::*;

    /// When the monotonic clock began to count, by the wall clock.
    const REAL: u64 = 1_700_000_000_000_000_000;
    const MS: u64 = 1_000_000;
    /// When the calls of these tests come.
    const COMES: u64 = 3_000 * MS;

    /// A clock whose counter counts three times a nanosecond.
    fn pair(at_ns: u64) -> Pair {
        Pair { stamp: at_ns * 3, monotonic_ns: at_ns, real_ns: REAL + at_ns }
    }

    fn note(at_ns: u64, record: Record) -> [u64; 4] {
        let [a, b, c] = record.words();
        [at_ns * 3, a, b, c]
    }

    fn ring(records: Vec<[u64; 4]>, overwritten: u64) -> Rings {
        let copied = Copied {
            process: 1,
            first: pair(1_000 * MS),
            pairs: vec![pair(2_000 * MS), pair(3_000 * MS)],
            written: records.len() as u64 + overwritten,
            records,
            lost: 0,
        };
        Rings { rings: vec![Ring::of(&copied, pair(9_000 * MS))], unread: Vec::new() }
    }

    /// A message that came at [`COMES`], waited for 300 ms and was answered after 200 more.
    fn waited(call: u64) -> Receipt {
        let phase = |name: &str, start_us, us| PhasePart { name: name.to_owned(), start_us, us };
        Receipt {
            call,
            at: super::super::format::moment(
                jiff::Timestamp::from_nanosecond(i128::from(REAL + COMES)).unwrap(),
            ),
            phases: vec![
                phase("plan", 0, 1_000),
                phase("queue", 1_000, 300_000),
                phase("main", 301_000, 200_000),
            ],
            total_us: 501_000,
            ..receipt(call)
        }
    }

    /// What is noted of it: worker 5 is with call 7, is given call 8 next, and then this one.
    fn notes(call: u64) -> Vec<[u64; 4]> {
        let at = |ms: u64| COMES + ms * MS;
        let waits = span::waits(CallId(call), &[Holder::Call(CallId(7))]);
        let mut notes = vec![note(COMES, Record::edge(CallId(call), Mark::Received, COMES))];
        notes.extend(waits.map(|wait| note(at(1), wait)));
        let given = |call| Record::new(Kind::Given, CallId(call), 5, 0);
        notes.extend([
            note(at(101), Record::edge(CallId(7), Mark::Settled, at(101))),
            note(at(101), given(8)),
            note(at(301), Record::edge(CallId(8), Mark::Settled, at(301))),
            note(at(301), Record::edge(CallId(call), Mark::Queued, at(301))),
            note(at(301), given(call)),
            note(at(501), Record::edge(CallId(call), Mark::Settled, at(501))),
        ]);
        notes
    }

    #[test]
    fn a_wait_names_who_had_the_worker_and_who_had_it_then() {
        let found = ring(notes(9), 0).of(&waited(9));
        assert_eq!(found.coverage, Coverage::Whole);
        let what = What::Waited {
            holders: vec![Held::Call(7, Some(100_000))],
            of: 1,
            then: vec![(8, 200_000)],
        };
        assert_eq!(found.spans, [Span { what, start_us: 1_000, us: 300_000 }]);
    }

    #[test]
    fn what_was_overwritten_is_said_and_nothing_is_made_up() {
        let all = notes(9);
        let part = ring(all[2..].to_vec(), 50).of(&waited(9));
        assert_eq!((part.coverage, part.spans), (Coverage::Part, Vec::new()));
        let later = vec![note(COMES + 5_000 * MS, Record::edge(CallId(99), Mark::Received, 1))];
        let none = ring(later.clone(), 50).of(&waited(9));
        assert_eq!((none.coverage, none.spans), (Coverage::Overwritten, Vec::new()));
        // It was there all the time, has lost nothing, and never heard of it.
        assert_eq!(ring(later, 0).of(&waited(9)).coverage, Coverage::NoRing);
        assert_eq!(Rings::default().of(&waited(9)).coverage, Coverage::NoRing);
    }

    #[test]
    fn another_call_of_the_same_number_is_another() {
        let mut earlier = waited(9);
        earlier.at = "2023-11-14T22:13:20.000000Z".to_owned();
        assert_eq!(ring(notes(9), 0).of(&earlier).coverage, Coverage::NoRing);
        let mut two = ring(notes(9), 0);
        let other = vec![note(COMES + 900 * MS, Record::edge(CallId(9), Mark::Received, 1))];
        two.rings.extend(ring(other, 0).rings);
        two.rings.reverse();
        assert_eq!(two.of(&waited(9)).spans.len(), 1, "the nearer one is it");
    }

    #[test]
    fn kinds_of_another_build_are_shown_by_their_number() {
        let mut notes = notes(9);
        let unknown = Record { kind: 700, ..Record::edge(CallId(9), Mark::Main, 0) };
        notes.push(note(COMES + 400 * MS, unknown));
        let found = ring(notes, 0).of(&waited(9));
        let span = Span { what: What::Unknown(700), start_us: 400_000, us: 0 };
        assert_eq!(found.spans.last(), Some(&span));
    }

    #[test]
    fn a_wall_clock_that_was_set_meanwhile_changes_no_time_within_a_call() {
        let set = |pair: Pair| Pair { real_ns: pair.real_ns + 3_600_000 * MS, ..pair };
        let copied = Copied {
            first: pair(1_000 * MS),
            pairs: vec![pair(2_000 * MS), set(pair(COMES + 200 * MS))],
            written: 8,
            records: notes(9),
            ..Copied::default()
        };
        let ring = Ring::of(&copied, set(pair(9_000 * MS)));
        let rings = Rings { rings: vec![ring], unread: Vec::new() };
        let found = rings.of(&waited(9));
        assert_eq!((found.coverage, found.spans[0].us), (Coverage::Whole, 300_000));
    }
}
