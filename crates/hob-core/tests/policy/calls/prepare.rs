//! Calls that perform nothing: what would perform them is made ready, and they are told of it.

use hob_core::event::{Aim, Effect, Event, Prepared};
use hob_core::ids::{CallId, WorkerId};
use hob_core::isolation::Name;
use hob_core::outcome::ColdReason;
use hob_core::supervisor::Counts;
use hob_wire::exit::Exit;

use crate::desk::{Ask, Desk};

fn ask() -> Ask {
    Ask { aim: Aim::Prepare, ..Ask::default() }
}

fn standby(effects: &[Effect]) -> WorkerId {
    let [Effect::StartStandby { worker, .. }] = effects[..] else { panic!("{effects:?}") };
    worker
}

fn told(effects: &[Effect]) -> Vec<(CallId, Prepared)> {
    let told = |effect: &Effect| match effect {
        Effect::Prepared { call, prepared } => Some((*call, *prepared)),
        _ => None,
    };
    effects.iter().filter_map(told).collect()
}

#[test]
fn a_standby_is_made_ready_and_the_next_call_has_it() {
    let mut desk = Desk::new();
    let (call, effects) = desk.call_as(Ask { isolation: Some(Name::Standby), ..ask() });
    assert_eq!(effects, []);
    let worker = standby(&desk.turn(100_000));
    assert_eq!(desk.core.counts().preparing, 1);
    let effects = desk.tell(Event::Ready { worker, threads: 1 });
    assert_eq!(told(&effects), [(call, Prepared::Ready)]);
    assert_eq!(desk.core.counts().calls, 0);

    let again = desk.call_as(Ask { isolation: Some(Name::Standby), ..ask() });
    assert_eq!(told(&again.1), [(again.0, Prepared::Ready)]);

    let (next, effects) = desk.call_as(Ask { isolation: Some(Name::Standby), ..Ask::default() });
    let gives = |effect: &Effect| matches!(effect, Effect::Give { call, worker: to, .. } if *call == next && *to == worker);
    assert!(effects.iter().any(gives), "{effects:?}");
}

#[test]
fn a_zygote_is_loaded_and_waited_for() {
    let mut desk = Desk::new();
    let (call, effects) = desk.call_as(ask());
    let [Effect::StartZygote { zygote, .. }] = effects[..] else { panic!("{effects:?}") };
    let effects = desk.zygote_is_ready(zygote);
    assert_eq!(told(&effects), [(call, Prepared::Ready)]);
}

#[test]
fn what_is_planned_cold_says_why_and_starts_nothing() {
    let mut desk = Desk::new();
    let (call, effects) = desk.call_as(Ask { key: None, ..ask() });
    let prepared = Prepared::Cold(ColdReason::Learning);
    assert_eq!(effects, [Effect::Prepared { call, prepared }]);
    let (call, effects) = desk.call_as(Ask { isolation: Some(Name::Spawn), ..ask() });
    let prepared = Prepared::Cold(ColdReason::SpawnAsked);
    assert_eq!(effects, [Effect::Prepared { call, prepared }]);
    // It has taken no learning run from the call that comes next.
    let (next, effects) = desk.call_as(Ask { key: None, ..Ask::default() });
    let learns = |effect: &Effect| matches!(effect, Effect::RunCold { call, reason: ColdReason::Learning, .. } if *call == next);
    assert!(effects.iter().any(learns), "{effects:?}");
}

#[test]
fn what_dies_on_the_way_is_said_to_be_cold() {
    let mut desk = Desk::with(|limits| limits.deaths_max = 1);
    let (call, effects) = desk.call_as(Ask { isolation: Some(Name::Standby), ..ask() });
    assert_eq!(effects, []);
    let worker = standby(&desk.turn(100_000));
    let effects = desk.tell(Event::Gone { worker, exit: Exit::Code(1) });
    assert_eq!(told(&effects), [(call, Prepared::Cold(ColdReason::WarmFailed))]);
}

#[test]
fn who_leaves_and_who_meets_a_stop_wait_no_longer() {
    let mut desk = Desk::new();
    let (left, _) = desk.call_as(ask());
    let (stays, _) = desk.call_as(ask());
    let effects = desk.tell(Event::CallerGone { call: left });
    assert_eq!(told(&effects), [(left, Prepared::Left)]);
    let effects = desk.tell(Event::Drain);
    assert_eq!(told(&effects), [(stays, Prepared::Cold(ColdReason::Stopping))]);
    let Counts { calls, preparing, .. } = desk.core.counts();
    assert_eq!((calls, preparing), (0, 0));
}
