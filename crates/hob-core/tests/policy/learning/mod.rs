//! Programs: how they are learned, and when that no longer holds.

mod layers;

use hob_core::event::{Aim, Effect, Event, Learning, Lesson, Performed, Preload};
use hob_core::ids::{CallId, ProgramId};
use hob_core::isolation::Name;
use hob_core::outcome::{CancelledBy, ColdReason, Outcome};
use hob_core::plan::{Facts, Hosted};

use crate::desk::{Ask, Desk, KEY, PROGRAM, cold, forked, other_key, retired};

const UNKNOWN: Ask = Ask {
    aim: Aim::Perform,
    program: PROGRAM,
    work: hob_core::ids::Work { edition: 0, task: 0 },
    key: None,
    layers: [None; 2],
    isolation: None,
    ahead: None,
    timeout_us: None,
};

fn learns(effects: &[Effect], of: CallId) -> bool {
    effects.iter().any(|effect| {
        matches!(effect, Effect::RunCold { call, learning: Learning::Yes, .. } if *call == of)
    })
}

fn learned(desk: &mut Desk, lesson: Lesson) -> Vec<Effect> {
    desk.tell(Event::Learned { program: PROGRAM, lesson, key: Some(KEY) })
}

#[test]
fn the_first_call_learns_and_others_do_not_meanwhile() {
    let mut desk = Desk::new();
    let (first, effects) = desk.call_as(UNKNOWN);
    assert!(learns(&effects, first));
    let (second, effects) = desk.call_as(UNKNOWN);
    assert_eq!(cold(&effects, second), Some(ColdReason::BeingLearned));
    assert!(!learns(&effects, second));
    // Of another program, the first call is the first.
    let (third, effects) = desk.call_as(Ask { program: ProgramId(2), ..UNKNOWN });
    assert!(learns(&effects, third));
}

#[test]
fn the_second_call_is_warm() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    assert_eq!(desk.pool().zygote, Some(zygote));
    desk.given();
}

#[test]
fn a_program_is_warmed_as_its_first_call_asked() {
    let mut desk = Desk::new();
    let ask = Ask { isolation: Some(Name::Standby), ahead: Some(2), ..UNKNOWN };
    let (call, _) = desk.call_as(ask);
    desk.cold_ends(call);
    learned(&mut desk, Lesson::Notes);
    assert_eq!(desk.pool().state, "standby");
    assert_eq!(desk.pool().ahead, 2);
}

#[test]
fn a_spawn_that_learned_nothing_for_itself_starts_nothing() {
    let mut desk = Desk::new();
    let ask = Ask { isolation: Some(Name::Standby), ahead: Some(0), ..UNKNOWN };
    desk.call_as(ask);
    assert_eq!(learned(&mut desk, Lesson::Notes), []);
    assert_eq!(desk.core.pools(), []);
}

#[test]
fn a_call_that_is_cold_by_wish_does_not_learn() {
    let mut desk = Desk::new();
    let facts = Facts { hosted: Hosted::NotHosted, ..Facts::default() };
    let (call, effects) = desk.call_with(UNKNOWN, facts);
    assert_eq!(cold(&effects, call), Some(ColdReason::NotHosted));
    assert!(!learns(&effects, call));
    let (call, effects) = desk.call_as(UNKNOWN);
    assert!(learns(&effects, call));
}

#[test]
fn a_learning_run_whose_notes_do_not_come_is_repeated() {
    let mut desk = Desk::new();
    let (first, _) = desk.call_as(UNKNOWN);
    desk.turn(3_000_000);
    desk.cold_ends(first);
    desk.turn(desk.limits.learn_wait_us - 1);
    let (call, effects) = desk.call_as(UNKNOWN);
    assert_eq!(cold(&effects, call), Some(ColdReason::BeingLearned));
    // That this one ends has nothing to do with the notes of the first.
    desk.cold_ends(call);
    desk.turn(1);
    let (call, effects) = desk.call_as(UNKNOWN);
    assert!(learns(&effects, call));
}

#[test]
fn a_caller_that_leaves_its_learning_run_counts_as_its_end() {
    let mut desk = Desk::new();
    let (first, _) = desk.call_as(UNKNOWN);
    desk.caller_gone(first);
    desk.turn(desk.limits.learn_wait_us);
    let (call, effects) = desk.call_as(UNKNOWN);
    assert!(learns(&effects, call));
}

#[test]
fn a_learning_run_that_its_caller_took_back_says_nothing_about_the_program() {
    let mut desk = Desk::new();
    for _ in 0..5 {
        let (call, effects) = desk.call_as(UNKNOWN);
        assert!(learns(&effects, call));
        let effects = desk.tell(Event::TakenBack { call });
        let outcome = Outcome::Cancelled(CancelledBy::Caller);
        assert_eq!(effects, [Effect::Settle { call, outcome, how: Performed::Not }]);
        // Its connection ends later, which changes nothing.
        assert_eq!(desk.caller_gone(call), []);
    }
    // Another call's taking back is not the learning run's.
    let (first, _) = desk.call_as(UNKNOWN);
    let (second, _) = desk.call_as(UNKNOWN);
    desk.tell(Event::TakenBack { call: second });
    let (third, effects) = desk.call_as(UNKNOWN);
    assert_eq!(cold(&effects, third), Some(ColdReason::BeingLearned));
    desk.cold_ends(first);
}

#[test]
fn a_program_that_never_leaves_notes_is_warmed_without() {
    let mut desk = Desk::new();
    desk.call_as(UNKNOWN);
    assert_eq!(learned(&mut desk, Lesson::Nothing), []);
    // That the daemon can make a key of nothing is no lesson.
    let (call, effects) = desk.call();
    assert!(learns(&effects, call));
    let effects = learned(&mut desk, Lesson::Nothing);
    assert!(matches!(effects[..], [Effect::StartZygote { .. }]));
}

#[test]
fn overdue_notes_count_as_none() {
    let mut desk = Desk::new();
    for _ in 0..2 {
        let (call, _) = desk.call_as(UNKNOWN);
        desk.cold_ends(call);
        desk.turn(desk.limits.learn_wait_us);
    }
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    // A daemon that lost the lesson has no key: nothing can be warmed from that.
    let (call, effects) = desk.call_as(UNKNOWN);
    assert_eq!(cold(&effects, call), Some(ColdReason::WarmFailed));
}

#[test]
fn notes_in_between_begin_the_count_anew() {
    let mut desk = Desk::new();
    desk.call_as(UNKNOWN);
    learned(&mut desk, Lesson::Nothing);
    desk.call_as(UNKNOWN);
    learned(&mut desk, Lesson::Notes);
    // Nothing is left of a program that was learned already: that changes nothing.
    assert_eq!(learned(&mut desk, Lesson::Nothing), []);
    assert_eq!(desk.pool().state, "warming");
}

#[test]
fn notes_that_come_late_are_notes_all_the_same() {
    let mut desk = Desk::new();
    let (call, _) = desk.call_as(UNKNOWN);
    desk.cold_ends(call);
    desk.turn(desk.limits.learn_wait_us * 2);
    let effects = learned(&mut desk, Lesson::Notes);
    assert!(matches!(effects[..], [Effect::StartZygote { .. }]));
}

#[test]
fn a_learning_run_that_does_not_end_lets_another_call_learn() {
    let mut desk = Desk::new();
    desk.call_as(UNKNOWN);
    desk.turn(desk.limits.learn_patience_us - 1);
    let (call, effects) = desk.call_as(UNKNOWN);
    assert_eq!(cold(&effects, call), Some(ColdReason::BeingLearned));
    desk.turn(1);
    let (call, effects) = desk.call_as(UNKNOWN);
    assert!(learns(&effects, call));
}

#[test]
fn a_stale_program_is_retired_and_its_next_call_learns() {
    let (mut desk, zygote, copies) = Desk::with_copies(2, |_| {});
    let effects = desk.tell(Event::Stale { program: PROGRAM });
    assert_eq!(retired(&effects), copies);
    assert_eq!(desk.core.pools(), []);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Stale));
    assert!(learns(&effects, call));
    desk.gone(copies[0], crate::desk::OK);
    assert_eq!(retired(&desk.gone(copies[1], crate::desk::OK)), [zygote]);
}

#[test]
fn a_running_call_of_a_stale_program_ends_in_peace() {
    let (mut desk, zygote) = Desk::with_zygote(|limits| limits.calls_max = 1);
    let (call, worker) = desk.given();
    let (waits, _) = desk.call();
    let effects = desk.tell(Event::Stale { program: PROGRAM });
    assert_eq!(cold(&effects, waits), Some(ColdReason::Stale));
    assert!(!learns(&effects, waits));
    assert_eq!(retired(&effects), []);
    let effects = desk.finished(worker, crate::desk::OK);
    assert!(crate::desk::outcome(&effects, call).is_some());
    assert_eq!(retired(&desk.gone(worker, crate::desk::OK)), [zygote]);
}

#[test]
fn other_programs_are_not_stale() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    desk.tell(Event::Stale { program: ProgramId(2) });
    desk.given();
}

#[test]
fn an_amended_lesson_drops_the_pool_and_the_new_key_starts_another() {
    let mut desk = Desk::new();
    let zygote = desk.start_pool(PROGRAM, KEY);
    let amended = Event::ZygoteReady { zygote, threads: 1, preload: Preload::Amended };
    assert_eq!(retired(&desk.tell(amended)), [zygote]);
    assert_eq!(desk.core.pools(), []);
    let new = Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(other_key(2)) };
    let effects = desk.tell(new);
    assert!(matches!(effects[..], [Effect::StartZygote { key, .. }] if key == other_key(2)));
}

#[test]
fn a_lesson_that_never_settles_sends_the_program_cold_for_a_while() {
    let mut desk = Desk::with(|limits| limits.amend_tries = 2);
    let mut zygote = desk.start_pool(PROGRAM, KEY);
    for _ in 0..2 {
        desk.tell(Event::ZygoteReady { zygote, threads: 1, preload: Preload::Amended });
        let (call, effects) = desk.call();
        assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
        zygote = match effects[1] {
            Effect::StartZygote { zygote, .. } => zygote,
            ref other => panic!("{other:?}"),
        };
    }
    desk.tell(Event::ZygoteReady { zygote, threads: 1, preload: Preload::Amended });
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::WarmFailed));
    // Also the daemon's own wish has to wait.
    assert_eq!(learned(&mut desk, Lesson::Notes), []);
    desk.turn(desk.limits.backoff_min_us - 1);
    assert_eq!(learned(&mut desk, Lesson::Notes), []);
    desk.turn(1);
    assert!(matches!(learned(&mut desk, Lesson::Notes)[..], [Effect::StartZygote { .. }]));
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
}

#[test]
fn a_new_key_is_warmed_as_the_call_asked_that_the_program_was_warmed_for() {
    // Learned with `standby`; that someone else forks it says nothing about the next key.
    let standby = Ask { isolation: Some(Name::Standby), ..UNKNOWN };
    let mut desk = Desk::new();
    desk.call_as(standby);
    learned(&mut desk, Lesson::Notes);
    desk.call();
    desk.tell(Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(other_key(2)) });
    let states: Vec<_> = desk.core.pools().iter().map(|pool| pool.state).collect();
    assert_eq!(states, ["standby", "warming", "standby"]);
    // The same, if an earlier daemon had learned it.
    let mut desk = Desk::new();
    desk.call_as(Ask { key: Some(KEY), ..standby });
    desk.tell(Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(other_key(2)) });
    let states: Vec<_> = desk.core.pools().iter().map(|pool| pool.state).collect();
    assert_eq!(states, ["standby", "standby"]);
}

#[test]
fn a_lesson_that_settles_is_forgiven_its_tries() {
    let mut desk = Desk::with(|limits| limits.amend_tries = 1);
    for _ in 0..3 {
        let (_, effects) = desk.call();
        let Some(Effect::StartZygote { zygote, .. }) = effects.last().cloned() else {
            panic!("{effects:?}");
        };
        desk.tell(Event::ZygoteReady { zygote, threads: 1, preload: Preload::Amended });
        let (_, effects) = desk.call();
        let Some(Effect::StartZygote { zygote, .. }) = effects.last().cloned() else {
            panic!("{effects:?}");
        };
        desk.zygote_is_ready(zygote);
        desk.tell(Event::Gone { worker: zygote, exit: crate::desk::OK });
        desk.turn(desk.limits.backoff_max_us);
    }
}

#[test]
fn a_bounded_number_of_programs_is_remembered_the_newest_ones() {
    let mut desk = Desk::with(|limits| limits.programs_max = 2);
    for number in [1, 2, 3] {
        let (call, _) = desk.call_as(Ask { program: ProgramId(number), ..UNKNOWN });
        desk.cold_ends(call);
        let lesson = Lesson::Notes;
        desk.tell(Event::Learned { program: ProgramId(number), lesson, key: None });
        desk.turn(1000);
    }
    assert_eq!(desk.core.counts().programs, 2);
    // The second is learned; the first is not any more, and takes the third's place... of the
    // oldest, which is the second.
    let (call, effects) = desk.call_as(Ask { program: ProgramId(3), ..UNKNOWN });
    assert_eq!(cold(&effects, call), Some(ColdReason::WarmFailed));
    let (call, effects) = desk.call_as(Ask { program: ProgramId(1), ..UNKNOWN });
    assert!(learns(&effects, call));
}

#[test]
fn a_program_with_a_pool_is_not_forgotten() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.programs_max = 1);
    let (call, effects) = desk.call_as(Ask { program: ProgramId(2), ..UNKNOWN });
    assert!(learns(&effects, call));
    assert_eq!(desk.core.counts().programs, 2);
    let (_, effects) = desk.call();
    assert_eq!(forked(&effects, hob_core::event::Pages::Unpaid).len(), 1);
}

#[test]
fn what_is_to_be_loaded_otherwise_retires_all_pools_and_keeps_what_was_learned() {
    let (mut desk, zygote, copies) = Desk::with_copies(1, |_| {});
    let effects = desk.tell(Event::LoadsAnew { program: PROGRAM });
    assert_eq!(retired(&effects), copies);
    assert_eq!(desk.core.pools(), []);
    // The next call has another key; it does not learn.
    let (call, effects) = desk.call_as(Ask { key: Some(other_key(9)), ..Ask::default() });
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    assert!(!learns(&effects, call));
    let other =
        |effect: &Effect| matches!(effect, Effect::StartZygote { key, .. } if *key == other_key(9));
    assert!(effects.iter().any(other), "{effects:?} beside {zygote:?}");
    // Of a program that nobody knows there is nothing to retire.
    assert_eq!(desk.tell(Event::LoadsAnew { program: ProgramId(7) }), []);
}

#[test]
fn a_program_has_so_many_pools_and_the_one_that_rests_longest_makes_room() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.program_pools_max = 2);
    let pools =
        |desk: &Desk| desk.core.pools().iter().filter(|pool| pool.program == Some(PROGRAM)).count();
    let call = |desk: &mut Desk, number: u8| {
        let (call, effects) = desk.call_as(Ask { key: Some(other_key(number)), ..Ask::default() });
        desk.cold_ends(call);
        desk.caller_gone(call);
        cold(&effects, call)
    };
    assert_eq!(call(&mut desk, 2), Some(ColdReason::Warming));
    // Both were used a moment ago.
    assert_eq!(call(&mut desk, 3), Some(ColdReason::Busy));
    assert_eq!(pools(&desk), 2);
    desk.turn(desk.limits.rate_us);
    assert_eq!(call(&mut desk, 3), Some(ColdReason::Warming));
    assert_eq!(pools(&desk), 2);
}
