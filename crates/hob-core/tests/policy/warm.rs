//! Where a warm call finds its worker.

use hob_core::event::{Aim, Effect, Event, Found, Pages, Performed, Told};
use hob_core::ids::{CallId, WorkerId};
use hob_core::isolation::Name;
use hob_core::outcome::{ColdReason, Outcome};
use hob_core::plan::{Facts, Hosted};
use hob_core::supervisor::Counts;
use hob_wire::exit::Exit;

use crate::desk::{Ask, Desk, OK, cold, forked, given_to, other_key, outcome, retired};

/// What the settling of a warm call says it found.
fn found(effects: &[Effect]) -> Option<Found> {
    effects.iter().find_map(|effect| match effect {
        Effect::Settle { how: Performed::Warm { found, .. }, .. } => Some(*found),
        _ => None,
    })
}

#[test]
fn a_copy_that_waits_is_given_at_once_and_ends_after_its_call() {
    let (mut desk, _, copies) = Desk::with_copies(2, |_| {});
    let (call, effects) = desk.call();
    // The newest copy: its pages are the least likely to be out.
    assert_eq!(effects, [Effect::Give { call, worker: copies[1], told: Told::Nothing }]);
    let effects = desk.finished(copies[1], Exit::Code(3));
    let [Effect::Settle { call: settled, outcome, how }] = effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((settled, outcome), (call, Outcome::Exited(Exit::Code(3))));
    let recipe = Name::Fork.lower(4);
    assert_eq!(how, Performed::Warm { recipe, worker: copies[1], found: Found::CopyReady });
    assert_eq!(desk.gone(copies[1], OK), []);
    assert_eq!(desk.caller_gone(call), []);
    assert_eq!(desk.core.counts().calls, 0);
}

#[test]
fn without_a_copy_one_is_forked_for_the_call_and_given_in_the_same_breath() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let (call, effects) = desk.call();
    let [
        Effect::Fork { zygote: of, worker, pages: Pages::Unpaid },
        Effect::Give { worker: to, .. },
    ] = effects[..]
    else {
        panic!("{effects:?}");
    };
    assert_eq!((of, to), (zygote, worker));
    assert!(worker > zygote);
    let effects = desk.finished(worker, OK);
    assert_eq!(found(&effects), Some(Found::ForkedOnDemand));
    assert_eq!(outcome(&effects, call), Some(Outcome::Exited(OK)));
}

#[test]
fn a_call_with_ahead_0_takes_no_copy_that_waits_and_has_no_say_in_how_many_do() {
    let (mut desk, _, copies) = Desk::with_copies(2, |_| {});
    let (_, effects) = desk.call_as(Ask { ahead: Some(0), ..Ask::default() });
    let unpaid = forked(&effects, Pages::Unpaid);
    assert_eq!(unpaid.len(), 1);
    assert!(!copies.contains(&unpaid[0]));
    assert_eq!(desk.pool().ahead, 2);
    assert_eq!(desk.pool().idle, 2);
}

#[test]
fn a_pool_that_was_only_called_with_ahead_0_makes_no_copies() {
    let mut desk = Desk::new();
    let zygote = desk.start_pool(crate::desk::PROGRAM, other_key(9));
    desk.zygote_is_ready(zygote);
    // The learning call's pool has another key; this one begins with `--ahead 0`.
    let ask = Ask { ahead: Some(0), ..Ask::default() };
    let (call, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    let Some(Effect::StartZygote { zygote, .. }) = effects.last() else {
        panic!("{effects:?}");
    };
    let zygote = *zygote;
    desk.cold_ends(call);
    desk.zygote_is_ready(zygote);
    let effects = desk.turn(3_000_000);
    let forks_of = |effects: &[Effect]| {
        effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Fork { zygote: of, .. } if *of == zygote))
            .count()
    };
    assert_eq!(forks_of(&effects), 0, "{effects:?}");
    // A call without the option brings them back.
    let (_, effects) = desk.call();
    let worker = forked(&effects, Pages::Unpaid)[0];
    desk.finished(worker, OK);
    desk.gone(worker, OK);
    assert_eq!(forks_of(&desk.turn(3_000_000)), 1);
}

#[test]
fn more_copies_than_the_bound_cannot_be_asked_for() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.ahead_asked_max = 7);
    desk.call_as(Ask { ahead: Some(6), ..Ask::default() });
    assert_eq!((desk.pool().ahead, desk.pool().recipe.ahead), (6, 6));
    desk.call_as(Ask { ahead: Some(8), ..Ask::default() });
    assert_eq!((desk.pool().ahead, desk.pool().recipe.ahead), (7, 7));
    desk.call();
    assert_eq!(desk.pool().recipe.ahead, 4);
}

#[test]
fn an_unknown_environment_runs_cold_while_its_zygote_is_made() {
    let (mut desk, first) = Desk::with_zygote(|_| {});
    let (call, effects) = desk.call_as(Ask { key: Some(other_key(2)), ..Ask::default() });
    let [Effect::RunCold { .. }, Effect::StartZygote { zygote, key, .. }] = effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    assert_eq!(key, other_key(2));
    assert!(zygote > first);
    // The next one finds it on its way, and does not start a second.
    let (call, effects) = desk.call_as(Ask { key: Some(other_key(2)), ..Ask::default() });
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    assert_eq!(effects.len(), 1);
    assert_eq!(desk.core.pools().len(), 2);
    assert_eq!(desk.core.pools()[1].state, "warming");
}

#[test]
fn a_key_from_an_earlier_daemon_is_warmed_without_learning_again() {
    let mut desk = Desk::new();
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    assert!(matches!(effects[1], Effect::StartZygote { .. }));
}

#[test]
fn fork_and_standby_of_one_key_are_two_pools() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let ask = Ask { isolation: Some(Name::Standby), ..Ask::default() };
    let (call, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    let pools = desk.core.pools();
    assert_eq!([pools[0].state, pools[1].state], ["ready", "standby"]);
    assert_eq!([pools[0].zygote, pools[1].zygote], [Some(zygote), None]);
    assert_eq!(pools[1].recipe.name(), Name::Standby);
}

#[test]
fn a_standby_is_started_while_its_calls_run_cold_and_is_given_when_ready() {
    let mut desk = Desk::with(|limits| limits.ahead_min = 1);
    let ask = Ask { isolation: Some(Name::Standby), ..Ask::default() };
    let (call, _) = desk.call_as(ask);
    let effects = desk.turn(desk.limits.refill_patience_us - 1);
    assert_eq!(effects, []);
    let effects = desk.turn(1);
    let [Effect::StartStandby { worker, .. }] = effects[..] else {
        panic!("{effects:?}");
    };
    // One that starts is not waited for.
    let (second, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, second), Some(ColdReason::Warming));
    assert!(desk.ready(worker).is_empty());
    desk.cold_ends(call);
    desk.cold_ends(second);
    let (call, effects) = desk.call_as(ask);
    assert_eq!(given_to(&effects, call), Some(worker));
    let effects = desk.finished(worker, OK);
    assert_eq!(found(&effects), Some(Found::StandbyReady));
}

#[test]
fn a_standby_with_nothing_ahead_is_a_spawn() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let ask = Ask { isolation: Some(Name::Standby), ahead: Some(0), ..Ask::default() };
    let (call, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, call), Some(ColdReason::SpawnAsked));
    assert_eq!(effects.len(), 1);
    assert_eq!(desk.core.pools().len(), 1);
}

#[test]
fn when_all_calls_are_taken_the_next_waits_and_is_given_in_order() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 2);
    let (_, one) = desk.given();
    let (_, two) = desk.given();
    let (third, effects) = desk.call();
    assert_eq!(effects, [Effect::Queue { call: third }]);
    let (fourth, effects) = desk.call();
    assert_eq!(effects, [Effect::Queue { call: fourth }]);
    assert_eq!(desk.core.counts().queued, 2);
    assert_eq!((desk.pool().queued, desk.pool().requests), (2, 4));
    let effects = desk.finished(two, OK);
    let worker = given_to(&effects, third).expect("the first in the queue is given");
    assert_eq!(given_to(&effects, fourth), None);
    let effects = desk.finished(worker, OK);
    assert_eq!(found(&effects), Some(Found::Queued));
    assert!(given_to(&effects, fourth).is_some());
    let effects = desk.finished(one, OK);
    assert_eq!(effects.len(), 1);
}

#[test]
fn a_pool_has_a_bounded_number_of_workers() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.workers_max = 2);
    let (_, one) = desk.given();
    desk.given();
    let (third, effects) = desk.call();
    assert_eq!(effects, [Effect::Queue { call: third }]);
    // A worker that only ends still counts: its process is there.
    assert_eq!(given_to(&desk.finished(one, OK), third), None);
    let effects = desk.gone(one, OK);
    assert!(given_to(&effects, third).is_some());
}

#[test]
fn among_pools_whoever_waited_longest_is_served_first() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 1);
    let second = desk.start_pool(hob_core::ids::ProgramId(2), other_key(2));
    desk.zygote_is_ready(second);
    let other =
        Ask { program: hob_core::ids::ProgramId(2), key: Some(other_key(2)), ..Ask::default() };
    let (_, worker) = desk.given();
    let (early, _) = desk.call_as(other);
    let (late, _) = desk.call();
    let effects = desk.finished(worker, OK);
    assert!(given_to(&effects, early).is_some());
    assert_eq!(given_to(&effects, late), None);
}

#[test]
fn a_full_queue_sends_calls_cold() {
    let (mut desk, _) = Desk::with_zygote(|limits| {
        limits.calls_max = 1;
        limits.queue_max = 1;
    });
    desk.given();
    let (second, effects) = desk.call();
    assert_eq!(effects, [Effect::Queue { call: second }]);
    let (third, effects) = desk.call();
    assert_eq!(cold(&effects, third), Some(ColdReason::Busy));
}

#[test]
fn waiting_has_an_end() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 1);
    desk.given();
    let (call, _) = desk.call();
    let effects = desk.turn(desk.limits.queue_wait_us - 1);
    assert_eq!(cold(&effects, call), None);
    let effects = desk.turn(1);
    assert_eq!(cold(&effects, call), Some(ColdReason::Busy));
    let counts = desk.core.counts();
    assert_eq!((counts.queued, counts.cold, counts.given), (0, 1, 1));
}

const PREFORK: Ask = Ask {
    aim: Aim::Perform,
    program: crate::desk::PROGRAM,
    layers: [None; 2],
    work: hob_core::ids::Work { edition: 0, task: 0 },
    key: Some(crate::desk::KEY),
    isolation: Some(Name::Prefork),
    ahead: Some(0),
    timeout_us: None,
};

/// A desk with a `prefork` worker that is with its first call.
fn with_prefork() -> (Desk, CallId, WorkerId) {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.worker_kib = 1000);
    let (call, effects) = desk.call_as(PREFORK);
    let Some(Effect::StartZygote { zygote, .. }) = effects.last().cloned() else {
        panic!("{effects:?}");
    };
    desk.cold_ends(call);
    desk.zygote_is_ready(zygote);
    let (call, effects) = desk.call_as(Ask { ahead: None, ..PREFORK });
    let worker = forked(&effects, Pages::Unpaid)[0];
    (desk, call, worker)
}

#[test]
fn a_prefork_worker_is_given_calls_one_after_another() {
    let (mut desk, _, worker) = with_prefork();
    let ask = Ask { ahead: None, ..PREFORK };
    // It is not given a call before it says that it is ready again.
    desk.finished(worker, OK);
    assert_eq!(desk.core.counts().paying, 0);
    let (call, effects) = desk.call_as(ask);
    assert_ne!(given_to(&effects, call), Some(worker));
    desk.ready(worker);
    let (call, effects) = desk.call_as(ask);
    assert_eq!(given_to(&effects, call), Some(worker));
    // A call with `fork` never sees its state.
    let (call, effects) = desk.call();
    assert_ne!(given_to(&effects, call), Some(worker));
}

#[test]
fn a_prefork_worker_ends_when_it_has_grown_too_large() {
    for (kib, ends) in [(1000, false), (1001, true)] {
        let (mut desk, _, worker) = with_prefork();
        desk.tell(Event::Memory { readings: vec![(worker, kib)] });
        let effects = desk.finished(worker, OK);
        assert_eq!(retired(&effects).contains(&worker), ends, "{kib}");
    }
}

#[test]
fn a_prefork_worker_of_a_stale_program_ends_after_its_call() {
    let (mut desk, call, worker) = with_prefork();
    desk.tell(Event::Stale { program: crate::desk::PROGRAM });
    let effects = desk.finished(worker, OK);
    assert_eq!(retired(&effects), [worker]);
    assert_eq!(outcome(&effects, call), Some(Outcome::Exited(OK)));
}

#[test]
fn a_call_that_never_reached_its_worker_is_no_use_of_it() {
    let (mut desk, call, worker) = with_prefork();
    let why = hob_core::event::GiveFailure::CallerLeft;
    desk.tell(Event::GiveFailed { call, worker, why });
    let ask = Ask { ahead: None, ..PREFORK };
    for _ in 0..hob_core::isolation::PREFORK_USES {
        let (call, effects) = desk.call_as(ask);
        assert_eq!(given_to(&effects, call), Some(worker));
        desk.tell(Event::GiveFailed { call, worker, why });
    }
    desk.call_as(ask);
    assert_eq!(retired(&desk.finished(worker, OK)), []);
}

#[test]
fn what_cannot_be_run_is_refused_and_forgotten() {
    let mut desk = Desk::new();
    let facts = Facts { hosted: Hosted::NotFound, ..Facts::default() };
    let (call, effects) = desk.call_with(Ask { key: None, ..Ask::default() }, facts);
    let reason = hob_core::outcome::RefuseReason::NotFound;
    assert_eq!(effects, [Effect::Refuse { call, reason }]);
    let counts = desk.core.counts();
    assert_eq!(counts, Counts { settled: 1, programs: 1, ..Counts::default() });
}

#[test]
fn a_number_that_is_in_use_is_not_taken_twice() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, _) = desk.given();
    let arrival = hob_core::event::Arrival {
        call,
        program: crate::desk::PROGRAM,
        work: hob_core::ids::Work::default(),
        key: None,
        layers: Vec::new(),
        facts: Facts::default(),
        ahead: None,
        timeout_us: None,
        aim: hob_core::event::Aim::Perform,
    };
    let before = desk.core.counts();
    assert_eq!(desk.tell(Event::Arrived(arrival)), []);
    assert_eq!(desk.core.counts(), Counts { ignored: before.ignored + 1, ..before });
}

#[test]
fn numbers_of_workers_are_never_used_twice() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let mut last: WorkerId = zygote;
    for _ in 0..20 {
        let (_, worker) = desk.given();
        assert!(worker > last);
        last = worker;
        desk.finished(worker, OK);
        desk.gone(worker, OK);
    }
}
