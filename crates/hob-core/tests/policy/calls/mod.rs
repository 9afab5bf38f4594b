//! How calls end.

mod prepare;

use hob_core::event::{ColdTiming, Effect, Event, Performed};
use hob_core::outcome::{CancelledBy, ColdReason, Outcome};
use hob_core::phase::Phase;
use hob_wire::exit::Exit;

use crate::desk::{Ask, Desk, OK, cold, outcome, signals};

const CALLER: Outcome = Outcome::Cancelled(CancelledBy::Caller);

#[test]
fn a_worker_that_dies_by_a_signal_is_how_its_program_ended() {
    for exit in [Exit::Signal(11), Exit::Code(7)] {
        let (mut desk, _) = Desk::with_zygote(|_| {});
        let (call, worker) = desk.given();
        let effects = desk.gone(worker, exit);
        assert_eq!(outcome(&effects, call), Some(Outcome::Exited(exit)));
        assert_eq!(desk.core.counts().workers, 1);
        assert_eq!(desk.core.counts().ignored, 0);
    }
}

#[test]
fn a_call_that_its_worker_executes_cold_is_cold() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    assert_eq!(desk.tell(Event::Executes { worker, reason: ColdReason::Signals }), []);
    let how = Performed::InPlace(ColdReason::Signals);
    let settled = Effect::Settle { call, outcome: Outcome::Exited(OK), how };
    assert!(desk.gone(worker, OK).contains(&settled));
    // It has no call any more.
    desk.tell(Event::Executes { worker, reason: ColdReason::Signals });
    assert_eq!(desk.core.counts().ignored, 1);
}

#[test]
fn a_cold_run_ends_as_its_client_says() {
    let exit = Exit::Code(9);
    for (timing, expected) in [
        (ColdTiming::InTime, Outcome::Exited(exit)),
        (ColdTiming::TimedOut, Outcome::TimedOut(Phase::Main)),
    ] {
        let mut desk = Desk::new();
        let (call, _) = desk.call();
        let effects = desk.tell(Event::ColdEnded { call, exit, timing });
        let how = Performed::Cold(ColdReason::Warming);
        assert_eq!(effects, [Effect::Settle { call, outcome: expected, how }]);
        assert_eq!(desk.caller_gone(call), []);
        assert_eq!(desk.core.counts().ignored, 0);
    }
}

#[test]
fn a_caller_that_leaves_its_cold_run_has_cancelled_it() {
    let mut desk = Desk::new();
    let (call, _) = desk.call();
    assert_eq!(outcome(&desk.caller_gone(call), call), Some(CALLER));
    // The end of the run comes too late to be anything.
    assert_eq!(desk.cold_ends(call), []);
    assert_eq!(desk.core.counts().ignored, 1);
}

#[test]
fn a_caller_that_leaves_takes_its_running_program_along() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    let effects = desk.caller_gone(call);
    assert_eq!(signals(&effects), [(worker, 9)]);
    assert_eq!(outcome(&effects, call), Some(CALLER));
    assert_eq!(desk.core.counts().given, 0);
    // What the worker says now is late.
    assert_eq!(desk.finished(worker, OK), []);
    assert_eq!(desk.gone(worker, Exit::Signal(9)), []);
    assert_eq!(desk.core.counts().workers, 1);
}

#[test]
fn a_caller_that_leaves_the_queue_was_not_performed() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 1);
    let (_, worker) = desk.given();
    let (call, _) = desk.call();
    let effects = desk.caller_gone(call);
    assert_eq!(effects, [Effect::Settle { call, outcome: CALLER, how: Performed::Not }]);
    assert_eq!(desk.core.counts().queued, 0);
    assert_eq!(desk.finished(worker, OK).len(), 1);
}

#[test]
fn a_call_whose_time_is_up_gets_sigterm_then_sigkill() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, effects) = desk.call_as(Ask { timeout_us: Some(300_000), ..Ask::default() });
    let worker = crate::desk::given_to(&effects, call).unwrap();
    let effects = desk.turn(299_999);
    assert_eq!(signals(&effects), []);
    assert_eq!(signals(&desk.turn(1)), [(worker, 15)]);
    assert_eq!(signals(&desk.turn(desk.limits.kill_grace_us - 1)), []);
    let effects = desk.turn(1);
    assert_eq!(signals(&effects), [(worker, 9)]);
    assert_eq!(outcome(&effects, call), None);
    let effects = desk.gone(worker, Exit::Signal(9));
    assert_eq!(outcome(&effects, call), Some(Outcome::TimedOut(Phase::Main)));
}

#[test]
fn a_program_that_ends_in_its_grace_has_timed_out_all_the_same() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, effects) = desk.call_as(Ask { timeout_us: Some(1000), ..Ask::default() });
    let worker = crate::desk::given_to(&effects, call).unwrap();
    desk.turn(1000);
    let effects = desk.finished(worker, OK);
    assert_eq!(outcome(&effects, call), Some(Outcome::TimedOut(Phase::Main)));
    desk.gone(worker, OK);
    let later = signals(&desk.turn(60_000_000));
    assert!(later.iter().all(|(signalled, _)| *signalled != worker), "{later:?}");
}

#[test]
fn a_process_that_survives_sigkill_does_not_hold_its_caller() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, _) = desk.call_as(Ask { timeout_us: Some(1000), ..Ask::default() });
    let grace = desk.limits.kill_grace_us;
    let effects = desk.turn(1000 + 2 * grace - 1);
    assert_eq!(outcome(&effects, call), None);
    let effects = desk.turn(1);
    assert_eq!(outcome(&effects, call), Some(Outcome::TimedOut(Phase::Main)));
    assert_eq!(desk.core.counts().workers, 2 + desk.pool().starting);
}

#[test]
fn time_can_run_out_in_the_queue() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 1);
    desk.given();
    let (call, _) = desk.call_as(Ask { timeout_us: Some(1000), ..Ask::default() });
    assert_eq!(outcome(&desk.turn(999), call), None);
    let effects = desk.turn(1);
    let expected = Outcome::TimedOut(Phase::Queue);
    assert_eq!(effects, [Effect::Settle { call, outcome: expected, how: Performed::Not }]);
    assert_eq!(desk.core.counts().queued, 0);
}

#[test]
fn a_call_that_waited_keeps_its_deadline_when_it_is_given() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 1);
    let (_, first) = desk.given();
    let (call, _) = desk.call_as(Ask { timeout_us: Some(1000), ..Ask::default() });
    desk.turn(600);
    let effects = desk.finished(first, OK);
    let worker = crate::desk::given_to(&effects, call).unwrap();
    assert_eq!(signals(&desk.turn(399)), []);
    assert_eq!(signals(&desk.turn(1)), [(worker, 15)]);
}

#[test]
fn the_client_times_its_own_cold_runs() {
    let mut desk = Desk::new();
    let (call, effects) = desk.call_as(Ask { timeout_us: Some(1000), ..Ask::default() });
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    let effects = desk.turn(2_000_000);
    assert_eq!(outcome(&effects, call), None);
    assert_eq!(signals(&effects), []);
}

#[test]
fn a_call_that_waited_too_long_and_ran_cold_is_settled_once() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 1);
    desk.given();
    let (call, _) = desk.call();
    desk.turn(desk.limits.queue_wait_us);
    let effects = desk.cold_ends(call);
    let how = Performed::Cold(ColdReason::Busy);
    assert_eq!(effects, [Effect::Settle { call, outcome: Outcome::Exited(OK), how }]);
}

#[test]
fn the_end_of_a_cold_run_says_nothing_about_a_warm_call() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    assert_eq!(desk.cold_ends(call), []);
    assert_eq!(desk.core.counts().ignored, 1);
    assert_eq!(outcome(&desk.finished(worker, OK), call), Some(Outcome::Exited(OK)));
}
