//! Rings as daemons leave them, and what is found in them.

use hob_core::ids::CallId;
use hob_core::receipt::PhasePart;
use hob_core::span::{self, Holder};
use hob_os::ring::Pair;

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
    Rings { rings: vec![Ring::of(&copied)], unread: Vec::new() }
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
fn spans_of_a_program_lie_within_its_call_whatever_it_says() {
    let own = |number: u8, start_ms, ms, name: &str| span::Own {
        number,
        parent: number.checked_sub(1),
        start_ns: COMES + start_ms * MS,
        ns: ms * MS,
        is_open: false,
        name: name.into(),
    };
    let inner = own(2, 350, 50, "a name of more than sixteen bytes");
    // The first was overwritten; what is said to lie in another may end later.
    let said = [own(1, 350, 100, "outer"), inner, own(3, 5_000, 1, ""), own(4, 400, 9_000, "long")];
    let mut notes = notes(9);
    for span in &said {
        notes.extend(span.records(CallId(9)).map(|record| note(COMES + 500 * MS, record)));
    }
    notes.push(note(COMES + 500 * MS, Record::new(Kind::OwnDropped, CallId(9), 3, 0)));
    // Of another call.
    let other = own(0, 350, 100, "other");
    notes.extend(other.records(CallId(8)).map(|record| note(COMES + 500 * MS, record)));
    let found = ring(notes, 0).of(&waited(9));
    let is_own = |span: &&Span| matches!(span.what, What::Own { .. });
    let brief = found.spans.iter().filter(is_own).map(|it| {
        let What::Own { name, depth, .. } = &it.what else { unreachable!() };
        (name.as_str(), *depth, it.us)
    });
    let inner = ("a name of more than sixteen bytes", 1, 50_000);
    let expected = [("outer", 0, 100_000), inner, ("long", 3, 101_000), ("", 2, 0)];
    assert_eq!(brief.collect::<Vec<_>>(), expected);
    assert_eq!((found.coverage, found.dropped), (Coverage::Whole, 3));
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
    let ring = Ring::of(&copied);
    let rings = Rings { rings: vec![ring], unread: Vec::new() };
    let found = rings.of(&waited(9));
    assert_eq!((found.coverage, found.spans[0].us), (Coverage::Whole, 300_000));
}

/// What a copy says follows from its bytes alone, also where its newest pair is older than its
/// newest notes, and with one pair, as in no file of ours, nothing fails.
#[test]
fn times_follow_from_the_copy_alone() {
    let mut copied = Copied {
        first: pair(1_000 * MS),
        pairs: vec![pair(1_000 * MS), pair(1_001 * MS)],
        written: 8,
        records: notes(9),
        ..Copied::default()
    };
    let rings = Rings { rings: vec![Ring::of(&copied)], unread: Vec::new() };
    assert_eq!(rings.of(&waited(9)).spans[0].us, 300_000);
    copied.pairs.clear();
    let rings = Rings { rings: vec![Ring::of(&copied)], unread: Vec::new() };
    assert!(rings.of(&waited(9)).spans.iter().all(|span| span.us == 0), "no time passes by it");
}
