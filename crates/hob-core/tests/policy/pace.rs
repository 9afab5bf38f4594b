//! A program that is slower warm than cold goes cold, and is tried again.

use hob_core::event::{Effect, Event, Lesson, Took};
use hob_core::ids::CallId;
use hob_core::isolation::Name;
use hob_core::outcome::ColdReason;

use crate::desk::{Ask, Desk, KEY, OK, PROGRAM, cold, given_to, retired};

const COLD_US: u64 = 10_000;
const SLOW: Took = Took::Warm { us: 12_000, cold_us: COLD_US };
const FAST: Took = Took::Warm { us: 1_000, cold_us: COLD_US };

/// Tells of so many calls that took so long.
fn measure(desk: &mut Desk, took: Took, calls: u32) -> Vec<Effect> {
    (0..calls).flat_map(|_| desk.tell(Event::Measured { program: PROGRAM, took })).collect()
}

/// A desk whose program has been slower warm just often enough to be tried cold.
fn suspected() -> Desk {
    let mut desk = Desk::with_copies(2, |_| {}).0;
    let calls = desk.limits.pace_calls;
    measure(&mut desk, SLOW, calls);
    desk
}

/// Goes through a trial in which the cold calls take so long, and the warm ones as before.
fn try_cold(desk: &mut Desk, us: u64) -> Vec<Effect> {
    let mut effects = Vec::new();
    for _ in 0..desk.limits.pace_trial_calls {
        desk.tell(Event::Tick);
        assert!(desk.core.is_slower_warm(PROGRAM), "a cold call's turn");
        effects.extend(measure(desk, Took::Cold { us }, 1));
        assert!(!desk.core.is_slower_warm(PROGRAM), "a warm call's turn");
        effects.extend(measure(desk, SLOW, 1));
    }
    effects
}

/// The same, found slower: what became of its pool.
fn found() -> (Desk, Vec<Effect>) {
    let mut desk = suspected();
    let effects = try_cold(&mut desk, COLD_US);
    (desk, effects)
}

fn reason(desk: &mut Desk, ask: Ask) -> (CallId, Option<ColdReason>) {
    let (call, effects) = desk.call_as(ask);
    let reason = cold(&effects, call);
    if let Some(worker) = given_to(&effects, call) {
        desk.finished(worker, OK);
        desk.gone(worker, OK);
    } else {
        desk.cold_ends(call);
    }
    desk.caller_gone(call);
    (call, reason)
}

fn is_warm(desk: &mut Desk) -> bool {
    reason(desk, Ask::default()).1.is_none()
}

#[test]
fn nineteen_slow_calls_are_not_enough_and_twenty_are_tried_cold() {
    let mut desk = Desk::with_copies(2, |_| {}).0;
    measure(&mut desk, SLOW, 19);
    assert!(!desk.core.is_slower_warm(PROGRAM));
    assert!(is_warm(&mut desk));
    measure(&mut desk, SLOW, 1);
    assert!(desk.core.is_slower_warm(PROGRAM));
    assert_eq!(reason(&mut desk, Ask::default()).1, Some(ColdReason::SlowerWarm));
}

#[test]
fn calls_that_mostly_or_together_gain_are_no_reason() {
    // Ten that lose and ten that gain; then one slow outlier among many that gain.
    let outlier = Took::Warm { us: 10_000_000, cold_us: COLD_US };
    for (slow, losses) in [(SLOW, 10), (outlier, 1)] {
        let mut desk = Desk::with_copies(2, |_| {}).0;
        for _ in 0..5 {
            measure(&mut desk, slow, losses);
            measure(&mut desk, FAST, 20 - losses);
            assert!(!desk.core.is_slower_warm(PROGRAM), "{slow:?}");
        }
    }
    // Eleven that lose a little, nine that gain much.
    let mut desk = Desk::with_copies(2, |_| {}).0;
    measure(&mut desk, FAST, 9);
    measure(&mut desk, SLOW, 11);
    assert!(!desk.core.is_slower_warm(PROGRAM));
}

#[test]
fn only_the_last_calls_count() {
    let mut desk = Desk::with_copies(2, |_| {}).0;
    measure(&mut desk, FAST, 500);
    // 19 of the 20 are slow: the one that gained saved 9 ms, the others lost 38.
    measure(&mut desk, SLOW, 18);
    assert!(desk.core.is_slower_warm(PROGRAM));
}

#[test]
fn a_trial_that_finds_cold_faster_gives_the_pool_up_and_lasts_a_while() {
    let (mut desk, effects) = found();
    assert_eq!(retired(&effects).len(), 2, "{effects:?}");
    assert_eq!(desk.core.pools().len(), 0);
    let wait_us = desk.limits.pace_wait_us(1);
    desk.turn(wait_us - 1);
    assert_eq!(reason(&mut desk, Ask::default()).1, Some(ColdReason::SlowerWarm));
    desk.turn(1);
    assert_eq!(reason(&mut desk, Ask::default()).1, Some(ColdReason::Warming));
    assert_eq!(desk.core.pools().len(), 1);
}

#[test]
fn a_trial_that_finds_cold_as_slow_lets_the_program_be() {
    // The cold run that it was compared with had done less work.
    let mut desk = suspected();
    try_cold(&mut desk, 15_000);
    assert!(!desk.core.is_slower_warm(PROGRAM));
    assert!(is_warm(&mut desk));
    // It is not suspected again at once, however its calls look.
    measure(&mut desk, SLOW, 100);
    assert!(is_warm(&mut desk));
    desk.turn(desk.limits.pace_wait_us(1));
    measure(&mut desk, SLOW, 1);
    assert!(desk.core.is_slower_warm(PROGRAM));
}

#[test]
fn a_machine_that_was_busy_while_the_program_was_suspected_does_not_decide() {
    // It is quiet again: both kinds of calls are fast, and warm ones faster.
    let mut desk = suspected();
    for _ in 0..desk.limits.pace_trial_calls {
        measure(&mut desk, Took::Cold { us: COLD_US }, 1);
        measure(&mut desk, FAST, 1);
    }
    assert!(!desk.core.is_slower_warm(PROGRAM));
    assert!(is_warm(&mut desk));
}

#[test]
fn a_trial_needs_enough_of_both_kinds() {
    let mut desk = suspected();
    measure(&mut desk, Took::Cold { us: COLD_US }, 50);
    assert!(!desk.core.is_slower_warm(PROGRAM), "it is the warm ones' turn");
    let trial = desk.limits.pace_trial_calls;
    measure(&mut desk, SLOW, trial - 1);
    assert_eq!(desk.core.pools().len(), 1);
    measure(&mut desk, SLOW, 1);
    assert!(desk.core.is_slower_warm(PROGRAM));
    assert_eq!(desk.core.pools().len(), 0);
}

#[test]
fn the_wait_doubles_each_time_and_begins_anew_after_a_gain() {
    let (mut desk, _) = found();
    let again = |desk: &mut Desk| {
        for _ in 0..desk.limits.pace_calls {
            if !desk.core.is_slower_warm(PROGRAM) {
                measure(desk, SLOW, 1);
            }
        }
        try_cold(desk, COLD_US);
    };
    for times in 1..10 {
        let wait_us = desk.limits.pace_wait_us(times);
        desk.turn(wait_us - 1);
        assert!(desk.core.is_slower_warm(PROGRAM), "the {times}th time");
        desk.turn(1);
        desk.tell(Event::Tick);
        again(&mut desk);
    }
    assert_eq!(desk.limits.pace_wait_us(10), desk.limits.pace_wait_max_us);
    desk.turn(desk.limits.pace_wait_max_us);
    let calls = desk.limits.pace_calls;
    measure(&mut desk, FAST, calls);
    again(&mut desk);
    desk.turn(desk.limits.pace_wait_us(1));
    let calls = desk.limits.pace_calls;
    measure(&mut desk, SLOW, calls - 1);
    assert!(!desk.core.is_slower_warm(PROGRAM));
}

#[test]
fn a_trial_that_is_never_measured_ends() {
    let mut desk = suspected();
    desk.turn(desk.limits.pace_trial_us);
    desk.tell(Event::Tick);
    assert!(!desk.core.is_slower_warm(PROGRAM));
    measure(&mut desk, SLOW, 1);
    assert!(!desk.core.is_slower_warm(PROGRAM), "the calls before the trial count no more");
}

#[test]
fn whoever_asks_for_an_isolation_gets_it() {
    let mut desk = suspected();
    let ask = Ask { isolation: Some(Name::Fork), ..Ask::default() };
    assert_eq!(reason(&mut desk, ask).1, None);
    assert_eq!(reason(&mut desk, Ask::default()).1, Some(ColdReason::SlowerWarm));
}

#[test]
fn what_a_late_preload_tells_warms_no_program_that_was_given_up() {
    let (mut desk, _) = found();
    let learned = Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(KEY) };
    assert_eq!(desk.tell(learned), []);
    assert_eq!(desk.core.pools().len(), 0);
}

#[test]
fn a_program_that_changed_begins_anew() {
    let (mut desk, _) = found();
    desk.tell(Event::Stale { program: PROGRAM });
    assert!(!desk.core.is_slower_warm(PROGRAM));
    let (call, effects) = desk.call_as(Ask { key: None, ..Ask::default() });
    assert_eq!(cold(&effects, call), Some(ColdReason::Stale));
}
