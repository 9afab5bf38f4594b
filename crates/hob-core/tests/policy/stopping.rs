//! How a daemon stops.

use hob_core::event::{Effect, Event, Lesson};
use hob_core::outcome::{CancelledBy, ColdReason, Outcome};
use hob_core::phase::Phase;
use hob_wire::exit::Exit;

use crate::desk::{Ask, Desk, KEY, OK, PROGRAM, cold, outcome, retired, signals};

#[test]
fn with_nothing_alive_it_exits_at_once() {
    let mut desk = Desk::new();
    assert_eq!(desk.tell(Event::Drain), [Effect::Exit]);
    assert_eq!(desk.tell(Event::Drain), []);
    assert_eq!(desk.core.next_deadline(), None);
}

#[test]
fn what_waits_ends_and_the_last_end_is_the_exit() {
    let (mut desk, zygote, copies) = Desk::with_copies(2, |_| {});
    assert_eq!(retired(&desk.tell(Event::Drain)), copies);
    desk.gone(copies[0], OK);
    assert_eq!(desk.gone(copies[1], OK), [Effect::Retire { worker: zygote }]);
    assert_eq!(desk.gone(zygote, OK), [Effect::Exit]);
    assert_eq!(desk.turn(100_000_000), []);
}

#[test]
fn new_calls_run_cold_and_waiting_ones_too() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.calls_max = 1);
    desk.given();
    let (waits, _) = desk.call();
    let effects = desk.tell(Event::Drain);
    assert_eq!(cold(&effects, waits), Some(ColdReason::Stopping));
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Stopping));
    let (call, effects) = desk.call_as(Ask { key: None, ..Ask::default() });
    assert_eq!(cold(&effects, call), Some(ColdReason::Stopping));
    // What is learned now starts nothing.
    let learned = Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(KEY) };
    assert_eq!(desk.tell(learned), []);
}

#[test]
fn a_running_call_may_end_by_itself() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    assert_eq!(desk.tell(Event::Drain), []);
    let effects = desk.turn(desk.limits.drain_grace_us - 1);
    assert_eq!(effects, []);
    let effects = desk.finished(worker, Exit::Code(4));
    assert_eq!(outcome(&effects, call), Some(Outcome::Exited(Exit::Code(4))));
    assert_eq!(retired(&desk.gone(worker, OK)), [zygote]);
    assert_eq!(desk.gone(zygote, OK), [Effect::Exit]);
}

#[test]
fn one_that_does_not_is_terminated_then_killed_and_settled() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    desk.tell(Event::Drain);
    let effects = desk.turn(desk.limits.drain_grace_us);
    assert_eq!(effects, [Effect::Signal { worker, signal: 15 }]);
    assert_eq!(desk.turn(desk.limits.kill_grace_us - 1), []);
    let effects = desk.turn(1);
    assert!(signals(&effects).contains(&(worker, 9)));
    assert!(signals(&effects).contains(&(zygote, 9)));
    assert_eq!(outcome(&effects, call), Some(Outcome::Cancelled(CancelledBy::Stop)));
    desk.gone(zygote, Exit::Signal(9));
    assert_eq!(desk.gone(worker, Exit::Signal(9)), [Effect::Exit]);
}

#[test]
fn one_that_ends_by_the_sigterm_has_exited() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, worker) = desk.given();
    desk.tell(Event::Drain);
    desk.turn(desk.limits.drain_grace_us);
    let effects = desk.gone(worker, Exit::Signal(15));
    assert_eq!(outcome(&effects, call), Some(Outcome::Exited(Exit::Signal(15))));
}

#[test]
fn what_cannot_be_killed_does_not_hold_the_daemon() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    desk.given();
    desk.tell(Event::Drain);
    let limits = desk.limits.clone();
    let effects = desk.turn(limits.drain_grace_us + 2 * limits.kill_grace_us - 1);
    assert!(!effects.contains(&Effect::Exit));
    assert_eq!(desk.turn(1).last(), Some(&Effect::Exit));
}

#[test]
fn a_cold_run_is_waited_for_and_then_its_end_is_not_known() {
    let mut desk = Desk::new();
    let (call, _) = desk.call_as(Ask { key: None, ..Ask::default() });
    assert_eq!(desk.tell(Event::Drain), []);
    assert_eq!(desk.turn(desk.limits.drain_grace_us - 1), []);
    let effects = desk.turn(1);
    assert_eq!(outcome(&effects, call), Some(Outcome::Lost(Phase::Main)));
    assert_eq!(effects.last(), Some(&Effect::Exit));
}

#[test]
fn a_cold_run_that_ends_in_time_is_the_exit() {
    let mut desk = Desk::new();
    let (call, _) = desk.call_as(Ask { key: None, ..Ask::default() });
    desk.tell(Event::Drain);
    let effects = desk.cold_ends(call);
    assert_eq!(effects.last(), Some(&Effect::Exit));
    assert_eq!(effects.len(), 2);
}

#[test]
fn a_daemon_that_was_itself_stopped_gives_everyone_another_moment() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (_, worker) = desk.given();
    desk.tell(Event::Drain);
    // It sleeps for an hour: the grace has passed, but nobody could be heard meanwhile.
    desk.now = desk.now.after_us(3_600_000_000);
    assert_eq!(desk.tell(Event::Tick), []);
    assert_eq!(desk.turn(desk.limits.late_us - 1), []);
    assert_eq!(signals(&desk.turn(1)), [(worker, 15)]);
}
