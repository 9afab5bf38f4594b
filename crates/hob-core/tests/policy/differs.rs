//! A program that fails warm where it succeeds cold runs cold, until it changes or a person asks.

use hob_core::event::{Aim, ColdTiming, Effect, Event};
use hob_core::ids::{ProgramId, Work};
use hob_core::isolation::Name;
use hob_core::outcome::ColdReason;
use hob_wire::exit::Exit;

use crate::desk::{Ask, Desk, KEY, OK, PROGRAM, cold, given_to};

const FAILED: Exit = Exit::Code(1);
const WORK: Work = Work { edition: 0, task: 7 };
const OTHER: Work = Work { edition: 0, task: 8 };

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Well,
    Chosen,
    Uncaught,
}

/// A call of some work, from its arrival to its end; why it ran cold, if it did.
fn call(desk: &mut Desk, work: Work, ends: Ends) -> Option<ColdReason> {
    let exit = if ends == Ends::Well { OK } else { FAILED };
    let (call, effects) = desk.call_as(Ask { work, ..Ask::default() });
    let reason = cold(&effects, call);
    if let Some(worker) = given_to(&effects, call) {
        if ends == Ends::Uncaught {
            desk.tell(Event::Uncaught { worker });
        }
        desk.finished(worker, exit);
        desk.gone(worker, OK);
    } else {
        desk.tell(Event::ColdEnded { call, exit, timing: ColdTiming::InTime });
    }
    desk.caller_gone(call);
    desk.turn(100_000);
    reason
}

/// A desk whose program was found to differ.
fn differing() -> Desk {
    let mut desk = Desk::with_copies(2, |_| {}).0;
    assert_eq!(call(&mut desk, WORK, Ends::Uncaught), None);
    assert_eq!(call(&mut desk, WORK, Ends::Well), Some(ColdReason::Compared));
    desk
}

#[test]
fn what_fails_warm_and_succeeds_cold_ends_its_pool_and_runs_cold() {
    let mut desk = differing();
    assert_eq!(desk.core.pools().len(), 0);
    assert_eq!(desk.core.resting(), [PROGRAM]);
    assert_eq!(desk.core.differs(PROGRAM), Some(FAILED));
    for work in [WORK, OTHER] {
        assert_eq!(call(&mut desk, work, Ends::Well), Some(ColdReason::Differs));
    }
    desk.turn(120_000_000);
    assert_eq!(call(&mut desk, WORK, Ends::Well), Some(ColdReason::Differs));
    assert_eq!(desk.core.differs(ProgramId(99)), None);
}

#[test]
fn a_change_of_the_program_has_it_tried_again() {
    let mut desk = differing();
    desk.tell(Event::Stale { program: PROGRAM });
    assert_eq!(desk.core.differs(PROGRAM), None);
    assert_eq!(call(&mut desk, WORK, Ends::Well), Some(ColdReason::Stale));
}

#[test]
fn a_person_who_asks_has_it_tried_again() {
    let mut desk = differing();
    let (_, effects) = desk.call_as(Ask { aim: Aim::Prepare, ..Ask::default() });
    let begins = |effect: &Effect| matches!(effect, Effect::StartZygote { key: KEY, .. });
    assert!(effects.iter().any(begins), "{effects:?}");
    assert_eq!(desk.core.differs(PROGRAM), None);
}

#[test]
fn what_fails_cold_too_stays_warm() {
    let mut desk = Desk::with_copies(2, |_| {}).0;
    assert_eq!(call(&mut desk, WORK, Ends::Uncaught), None);
    assert_eq!(call(&mut desk, WORK, Ends::Uncaught), Some(ColdReason::Compared));
    for ends in [Ends::Uncaught, Ends::Well, Ends::Chosen, Ends::Uncaught] {
        assert_eq!(call(&mut desk, WORK, ends), None);
    }
}

#[test]
fn other_work_stays_warm_while_one_is_compared() {
    let mut desk = Desk::with_copies(2, |_| {}).0;
    assert_eq!(call(&mut desk, WORK, Ends::Uncaught), None);
    assert_eq!(call(&mut desk, OTHER, Ends::Well), None);
    assert_eq!(call(&mut desk, WORK, Ends::Uncaught), Some(ColdReason::Compared));
}

/// A check that fails, whose files are mended, and that succeeds then, is no fault.
#[test]
fn a_program_that_chooses_to_fail_is_not_compared() {
    let mut desk = Desk::with_copies(2, |_| {}).0;
    for ends in [Ends::Chosen, Ends::Well, Ends::Chosen, Ends::Well] {
        assert_eq!(call(&mut desk, WORK, ends), None);
    }
}

#[test]
fn an_edit_of_its_own_file_has_it_tried_again() {
    let mut desk = differing();
    let edited = Work { edition: 1, ..WORK };
    // Its pool is made anew.
    assert_eq!(call(&mut desk, edited, Ends::Well), Some(ColdReason::Warming));
    assert_eq!(desk.core.differs(PROGRAM), None);
}

#[test]
fn whoever_asks_for_an_isolation_gets_it() {
    let mut desk = differing();
    let ask = Ask { work: WORK, isolation: Some(Name::Fork), ..Ask::default() };
    let (call, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
    assert_eq!(desk.core.differs(PROGRAM), Some(FAILED));
}

#[test]
fn a_signal_that_says_a_fault_is_one_and_another_is_not() {
    for (signal, want) in [(11, Some(ColdReason::Compared)), (15, None)] {
        let mut desk = Desk::with_copies(2, |_| {}).0;
        let (id, worker) = desk.given();
        desk.gone(worker, Exit::Signal(signal));
        desk.caller_gone(id);
        desk.turn(100_000);
        assert_eq!(call(&mut desk, Work::default(), Ends::Well), want, "signal {signal}");
    }
}
