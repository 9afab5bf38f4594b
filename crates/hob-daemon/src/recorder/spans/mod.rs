//! Spans of a call, found in the rings of the processes that performed it.
//!
//! A receipt says how long each phase took; the rings say what was beneath. They are of the last
//! while only, so an answer always says whether all of the call is still there ([`Coverage`]).
//! Numbers of calls are not enough to find one: two processes may use the same, so the moment must
//! fit too.

mod clock;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use hob_core::phase::{Mark, Phase};
use hob_core::receipt::Receipt;
use hob_core::span::{HOLDERS_MAX, Kind, OWN_MAX, Own, Record};
use hob_os::ring::{self, Copied, Unread};

use super::format::begun_ns;
use clock::Clock;

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
    /// In the order in which one thread wrote them.
    notes: Vec<(u64, Record)>,
    /// Their places, by the number of the call and in order.
    by_call: Vec<usize>,
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
    /// The program has made it itself.
    Own {
        /// Its name, as text.
        name: String,
        /// Which of the call's it is, in the order of their begins.
        number: u8,
        /// The number of the one in which it was begun.
        parent: Option<u8>,
        /// How many it lies in, of those that are known.
        depth: u8,
        /// Whether the program had not ended it when the call ended.
        is_open: bool,
    },
    /// Something that another build notes, by its number.
    Unknown(u16),
}

impl What {
    /// Its word, as it is shown and in JSON.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            What::Own { name, .. } => name,
            What::Waited { .. } => "waited",
            What::Forked { .. } => "fork",
            What::Unknown(_) => "?",
        }
    }
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
    /// In the order of their begins; of those that begin together the longest first.
    pub spans: Vec<Span>,
    /// How many the program itself has made beyond what a call may have.
    pub dropped: u64,
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

    /// Those of a recording.
    #[must_use]
    pub fn recorded(copies: &[Copied]) -> Rings {
        Rings { rings: copies.iter().map(Ring::of).collect(), unread: Vec::new() }
    }

    fn add(&mut self, file: &Path) {
        match ring::read(file) {
            Ok(copied) => self.rings.push(Ring::of(&copied)),
            Err(why) => self.unread.push((file.to_path_buf(), why)),
        }
    }

    /// The spans of the call with this receipt.
    #[must_use]
    pub fn of(&self, receipt: &Receipt) -> Spans {
        let none = |coverage| Spans { coverage, spans: Vec::new(), dropped: 0 };
        let Some(at_ns) = begun_ns(receipt) else { return none(Coverage::NoRing) };
        let found = self.rings.iter().filter_map(|ring| {
            let notes = ring.notes_of(receipt, at_ns);
            let (first, _) = *notes.first()?;
            Some((ring.clock.real(first).abs_diff(at_ns), ring, notes))
        });
        if let Some((_, ring, notes)) = found.min_by_key(|(apart, ..)| *apart) {
            return ring.spans(receipt, at_ns, &notes);
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
    fn of(copied: &Copied) -> Ring {
        let clock = Clock::of(copied);
        let note = |[stamp, a, b, c]: &[u64; 4]| (clock.at(*stamp), Record::of([*a, *b, *c]));
        let notes: Vec<_> = copied.records.iter().map(note).collect();
        let mut by_call: Vec<_> = (0..notes.len()).collect();
        by_call.sort_by_key(|place| notes[*place].1.call);
        let is_full = copied.written > copied.records.len() as u64;
        Ring { notes, by_call, began_ns: copied.first.monotonic_ns, is_full, clock }
    }

    /// All notes of a call of this number, in order.
    fn of_call(&self, call: u64) -> impl Iterator<Item = &(u64, Record)> {
        let number = |place: &usize| self.notes[*place].1.call.0;
        let from = self.by_call.partition_point(|place| number(place) < call);
        let of = self.by_call[from..].iter().take_while(move |place| number(place) == call);
        of.map(|place| &self.notes[*place])
    }

    /// The notes from this time on, in order.
    fn since(&self, at_ns: u64) -> &[(u64, Record)] {
        &self.notes[self.notes.partition_point(|(at, _)| *at < at_ns)..]
    }

    /// The notes of this call, by its number and its time. The wall clock may be set while it runs:
    /// only the first one is judged by it.
    fn notes_of(&self, receipt: &Receipt, at_ns: u64) -> Vec<(u64, &Record)> {
        let spare_ns = receipt.total_us.saturating_mul(1000).saturating_add(APART_NS);
        let real = at_ns.saturating_sub(APART_NS)..=at_ns.saturating_add(spare_ns);
        let own = || self.of_call(receipt.call);
        let Some((first, _)) = own().find(|(at, _)| real.contains(&self.clock.real(*at))) else {
            return Vec::new();
        };
        let fits = |at: u64| (*first..=first.saturating_add(spare_ns)).contains(&at);
        own().filter(|(at, _)| fits(*at)).map(|(at, record)| (*at, record)).collect()
    }

    fn spans(&self, receipt: &Receipt, at_ns: u64, notes: &[(u64, &Record)]) -> Spans {
        let edges: Vec<_> = notes.iter().filter_map(|(_, record)| record.as_edge()).collect();
        let has_come = edges.iter().any(|(mark, _)| *mark == Mark::Received);
        let fixed = edges.iter().find_map(|(mark, ns)| {
            let after_us = after(receipt, *mark)?;
            (*ns > 0).then(|| ns.saturating_sub(after_us.saturating_mul(1000)))
        });
        // Without an edge that the receipt knows there is the wall clock's moment of its coming.
        let origin_ns = fixed.unwrap_or_else(|| {
            let received_us = after(receipt, Mark::Received).unwrap_or(0);
            self.clock.of_real(at_ns).saturating_sub(received_us.saturating_mul(1000))
        });
        let us = |at: u64| at.saturating_sub(origin_ns) / 1000;
        let mut spans = self.waits(notes, &us);
        spans.extend(self.fork(notes, &us));
        spans.extend(own(notes, receipt, &us));
        spans.extend(
            notes.iter().filter(|(_, note)| Kind::of(note.kind).is_none()).map(|(at, note)| Span {
                what: What::Unknown(note.kind),
                start_us: us(*at),
                us: 0,
            }),
        );
        spans.sort_by_key(|span| (span.start_us, std::cmp::Reverse(span.us)));
        let coverage = if has_come { Coverage::Whole } else { Coverage::Part };
        let dropped =
            notes.iter().filter(|(_, note)| Kind::of(note.kind) == Some(Kind::OwnDropped));
        let dropped = dropped.fold(0_u64, |sum, (_, note)| sum.saturating_add(note.a));
        Spans { coverage, spans, dropped }
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
        let ends = self.of_call(call).filter(|(at, note)| {
            let is_end = matches!(note.as_edge(), Some((Mark::Settled, _)));
            is_end && (began..=end).contains(at)
        });
        ends.map(|(at, _)| (at - began) / 1000).min()
    }

    /// What the call's worker was given while the call waited: what came before it.
    fn given_before(&self, notes: &[(u64, &Record)], began: u64, end: u64) -> Vec<(u64, u64)> {
        let is_given = |note: &Record| Kind::of(note.kind) == Some(Kind::Given);
        let worker = notes.iter().rfind(|(_, note)| is_given(note)).map(|(_, note)| note.a);
        let own = notes.first().map(|(_, note)| note.call);
        let meanwhile = self.since(began).iter().take_while(|(at, _)| *at < end);
        let before = meanwhile
            .filter(|(_, note)| is_given(note) && Some(note.a) == worker && Some(note.call) != own);
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
        let (given_ns, worker) = given.map(|(at, note)| (*at, note.a))?;
        let of = |kind: Kind| {
            let meanwhile = self.since(*came).iter().take_while(|(at, _)| *at <= given_ns);
            let is_it = move |note: &Record| note.a == worker && Kind::of(note.kind) == Some(kind);
            meanwhile.into_iter().find(|(_, note)| is_it(note))
        };
        let (began, _) = of(Kind::Fork)?;
        let (ended, forked) = of(Kind::Forked)?;
        let what = What::Forked { pid: forked.b };
        Some(Span { what, start_us: us(*began), us: ended.saturating_sub(*began) / 1000 })
    }
}

/// What the program says that it did. It lies within the call, whatever the program says.
fn own(
    notes: &[(u64, &Record)],
    receipt: &Receipt,
    us: &impl Fn(u64) -> u64,
) -> impl Iterator<Item = Span> {
    let mut depths = [None; OWN_MAX];
    let spans = Own::of(notes.iter().map(|(_, note)| *note)).into_iter();
    spans.map(move |span| {
        let depth = span.parent.and_then(|parent| depths[usize::from(parent)]);
        let depth = depth.map_or(0, |depth: u8| depth.saturating_add(1));
        depths[usize::from(span.number)] = Some(depth);

        let within = |at_ns: u64| us(at_ns).min(receipt.total_us);
        let start_us = within(span.start_ns);
        // From its end, so that what lies within another does so in microseconds too.
        let us = within(span.start_ns.saturating_add(span.ns)) - start_us;
        let name = String::from_utf8(span.name);
        let name =
            name.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let Own { number, parent, is_open, .. } = span;
        let what = What::Own { name, number, parent, depth, is_open };
        Span { what, start_us, us }
    })
}

/// A note that somebody has what is waited for.
fn held(note: &Record) -> Option<Held> {
    match Kind::of(note.kind)? {
        Kind::HeldByCall => Some(Held::Call(note.a, None)),
        Kind::HeldByLane => Some(Held::Lane(note.a)),
        Kind::Starting => Some(Held::Starting(note.a)),
        Kind::Edge | Kind::Fork | Kind::Forked | Kind::Given => None,
        Kind::Own | Kind::OwnName | Kind::OwnDropped => None,
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
    found.map(|part| part.start_us.saturating_add(part.us)).or(is_first.then_some(0))
}
