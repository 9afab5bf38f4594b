//! Calls to be profiled, in copies of what is loaded below their program.

use hob_core::event::{
    Effect, Event, Found, GiveFailure, Layer, Learning, Lesson, Pages, Performed, Preload, Told,
};
use hob_core::ids::{CallId, ProgramId, WorkerId};
use hob_core::isolation::Name;
use hob_core::key::Key;
use hob_core::outcome::ColdReason;
use hob_core::plan::{Facts, Terminal};
use hob_wire::exit::Exit;

use crate::desk::{Ask, Desk, PROGRAM, cold, forked, other_key};

const BARE: ProgramId = ProgramId(9);

fn key() -> Key {
    other_key(9)
}

fn unknown() -> Ask {
    let layer = Layer { program: BARE, key: key(), found: Found::Bare };
    Ask { key: None, layers: [None, Some(layer)], ..Ask::default() }
}

/// The worker that a call is given to, as a copy that is told what to run.
fn told(effects: &[Effect], of: CallId) -> Option<WorkerId> {
    effects.iter().find_map(|effect| match effect {
        Effect::Give { call, worker, told: Told::Profiled } if *call == of => Some(*worker),
        _ => None,
    })
}

fn started(effects: &[Effect]) -> Option<WorkerId> {
    effects.iter().find_map(|effect| match effect {
        Effect::StartZygote { zygote, key: of, .. } if *of == key() => Some(*zygote),
        _ => None,
    })
}

/// A desk whose bare interpreter's zygote is ready.
fn with_bare() -> Desk {
    let mut desk = Desk::new();
    let (call, effects) = desk.call_as(Ask { program: ProgramId(2), ..unknown() });
    assert_eq!(cold(&effects, call), Some(ColdReason::Learning));
    assert_eq!(started(&effects), None, "not on the path of a call");
    let effects = desk.cold_ends(call);
    let zygote = started(&effects).expect("off the path it is");
    desk.zygote_is_ready(zygote);
    desk
}

#[test]
fn a_call_to_be_profiled_is_given_to_a_copy_of_the_bare_interpreter() {
    let mut desk = with_bare();
    let (call, effects) = desk.call_as(unknown());
    let worker = told(&effects, call).expect("given");
    assert_eq!(cold(&effects, call), None);
    // Meanwhile it is being learned, as by a cold run; others are performed there as well.
    let (second, effects) = desk.call_as(unknown());
    let other = effects.iter().find_map(|effect| match effect {
        Effect::Give { call, worker, told: Told::Program } if *call == second => Some(*worker),
        _ => None,
    });
    assert!(other.is_some() && cold(&effects, second).is_none(), "{effects:?}");
    let effects = desk.tell(Event::Finished { worker, exit: Exit::Code(0) });
    let how = effects.iter().find_map(|effect| match effect {
        Effect::Settle { how, .. } => Some(*how),
        _ => None,
    });
    assert!(matches!(how, Some(Performed::Warm { found: Found::Bare, .. })), "{how:?}");
    let learned =
        Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(other_key(1)) };
    let effects = desk.tell(learned);
    assert!(matches!(effects[..], [Effect::StartZygote { .. }]), "{effects:?}");
}

#[test]
fn a_call_that_came_before_its_layer_had_another_key_begins_no_pool_of_the_old_one() {
    let mut desk = Desk::new();
    let (first, _) = desk.call_as(Ask { program: ProgramId(2), ..unknown() });
    let (second, _) = desk.call_as(Ask { program: ProgramId(3), ..unknown() });
    let zygote = started(&desk.cold_ends(first)).expect("it begins when a call has ended");
    desk.tell(Event::ZygoteReady { zygote, threads: 1, preload: Preload::Amended });
    assert_eq!(started(&desk.cold_ends(second)), None);
    // One that comes later has the key that there is now.
    let (third, _) = desk.call_as(Ask { program: ProgramId(4), ..unknown() });
    assert!(started(&desk.cold_ends(third)).is_some());
}

#[test]
fn the_highest_layer_that_is_there_performs() {
    let mut desk = with_bare();
    let installed = Layer { program: ProgramId(8), key: other_key(8), found: Found::Installed };
    let ask = || {
        let mut ask = unknown();
        ask.layers[0] = Some(installed);
        ask
    };
    let (call, effects) = desk.call_as(ask());
    let worker = told(&effects, call).expect("the lower one is there");
    let effects = desk.tell(Event::Finished { worker, exit: Exit::Code(0) });
    let zygote = effects.iter().find_map(|effect| match effect {
        Effect::StartZygote { zygote, key, .. } if *key == installed.key => Some(*zygote),
        _ => None,
    });
    desk.zygote_is_ready(zygote.expect("the other one begins when the call has ended"));
    let (call, effects) = desk.call_as(Ask { program: ProgramId(3), ..ask() });
    let worker = told(&effects, call).expect("given");
    let effects = desk.tell(Event::Finished { worker, exit: Exit::Code(0) });
    let how = effects.iter().find_map(|effect| match effect {
        Effect::Settle { how, .. } => Some(*how),
        _ => None,
    });
    assert!(matches!(how, Some(Performed::Warm { found: Found::Installed, .. })), "{how:?}");
}

#[test]
fn what_was_edited_is_performed_there_too_and_one_that_is_not_there_is_not_waited_for() {
    let mut desk = with_bare();
    desk.tell(Event::Stale { program: PROGRAM });
    let (call, effects) = desk.call_as(unknown());
    assert!(told(&effects, call).is_some(), "{effects:?}");
    // Its own pool has changed: nothing of it is given any more.
    desk.tell(Event::Stale { program: BARE });
    let (other, effects) = desk.call_as(Ask { program: ProgramId(3), ..unknown() });
    assert_eq!(cold(&effects, other), Some(ColdReason::Learning));
}

#[test]
fn it_is_no_place_for_another_isolation_or_where_no_worker_can_be() {
    let mut desk = with_bare();
    for (program, name) in [(4, Name::Standby), (5, Name::Prefork)] {
        let ask = Ask { program: ProgramId(program), isolation: Some(name), ..unknown() };
        let (call, effects) = desk.call_as(ask);
        assert_eq!(cold(&effects, call), Some(ColdReason::Learning), "{name:?}");
    }
    let facts = Facts { terminal: Terminal::Unreached, ..Facts::default() };
    let (call, effects) = desk.call_with(Ask { program: ProgramId(6), ..unknown() }, facts);
    assert_eq!(cold(&effects, call), Some(ColdReason::Learning));
}

#[test]
fn a_call_that_did_not_reach_its_copy_is_told_to_another_and_at_last_learns_cold() {
    let mut desk = with_bare();
    let (call, effects) = desk.call_as(unknown());
    let mut worker = told(&effects, call).expect("given");
    assert!(forked(&effects, Pages::Unpaid).contains(&worker));
    for _ in 0..100 {
        let why = GiveFailure::WorkerClosed;
        let effects = desk.tell(Event::GiveFailed { call, worker, why });
        if let Some(next) = told(&effects, call) {
            worker = next;
            continue;
        }
        let learns = effects.iter().any(|effect| {
            matches!(effect, Effect::RunCold { learning: Learning::Yes, reason, .. }
                if *reason == ColdReason::WorkerClosed)
        });
        assert!(learns, "{effects:?}");
        return;
    }
    panic!("it is given for ever");
}

#[test]
fn a_program_that_cannot_be_loaded_ahead_is_performed_there() {
    let mut desk = with_bare();
    let (call, _) = desk.call_as(unknown());
    desk.tell(Event::CallerGone { call });
    let key = other_key(1);
    let learned = Event::Learned { program: PROGRAM, lesson: Lesson::Notes, key: Some(key) };
    let effects = desk.tell(learned);
    let zygote = effects.iter().find_map(|effect| match effect {
        Effect::StartZygote { zygote, .. } => Some(*zygote),
        _ => None,
    });
    let worker = zygote.expect("its own zygote");
    desk.tell(Event::Gone { worker, exit: Exit::Signal(11) });
    let (call, effects) = desk.call_as(Ask { key: Some(key), ..unknown() });
    assert!(cold(&effects, call).is_none(), "{effects:?}");
    let given = effects.iter().any(|effect| {
        matches!(effect, Effect::Give { call: of, told: Told::Program, .. } if *of == call)
    });
    assert!(given, "{effects:?}");
}
