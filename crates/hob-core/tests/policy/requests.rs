//! Requests: pools that are opened and forgotten, that cannot be loaded, whose workers die; and
//! what they share with calls: the bound of starts, the budget, lateness, the way to end.

use hob_core::event::{Cause, Effect, Event, Loaded, Preload};
use hob_core::ids::{CallId, LaneId, PoolId, WorkerId};
use hob_core::isolation::{Name, Origin};
use hob_core::key::Key;
use hob_core::limits::Limits;
use hob_core::requests::{Effect as Asked, Event as Told, Given, Refusal, Settled};
use hob_core::terms::{Affinity, After, Refill, Stale, Terms};
use hob_wire::exit::Exit;

use crate::desk::{Ask, Desk, OK, PROGRAM, other_key, retired, signals};

const BACKOFF_MAX_US: u64 = 3_000_000;

pub(crate) fn terms(name: Name) -> Terms {
    Terms {
        recipe: name.lower(if name == Name::Session { 0 } else { 1 }),
        slots: 1,
        affinity: if name == Name::Session { Affinity::Session } else { Affinity::Any },
        after: After::Ready,
        refill: Refill::AtOnce,
        workers_max: 2,
        queue_max: 8,
        worker_kib: 1000,
        idle_us: 2_000_000,
        backoff_max_us: BACKOFF_MAX_US,
        stale: Stale::Ends,
    }
}

pub(crate) fn open(desk: &mut Desk, terms: Terms) -> PoolId {
    let pool = desk.core.new_pool();
    let key = Key([u8::try_from(pool.0).unwrap(); 16]);
    desk.tell(Event::Request(Told::Opened { pool, key, terms }));
    pool
}

pub(crate) fn ask(desk: &mut Desk, pool: PoolId, call: u64) -> Vec<Effect> {
    let arrived = Told::Arrived { call: CallId(call), pool, key: vec![], deadline: None };
    desk.tell(Event::Request(arrived))
}

pub(crate) fn answer(desk: &mut Desk, worker: WorkerId, call: u64) -> Vec<Effect> {
    desk.tell(Event::Request(Told::Answered { worker, call: CallId(call) }))
}

pub(crate) fn started(effects: &[Effect]) -> Vec<WorkerId> {
    let of = |effect: &Effect| match effect {
        Effect::StartZygote { zygote, .. } => Some(*zygote),
        Effect::StartStandby { worker, .. } => Some(*worker),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

pub(crate) fn settled(effects: &[Effect]) -> Vec<(u64, Settled)> {
    let of = |effect: &Effect| match effect {
        Effect::Request(Asked::Settle { call, outcome }) => Some((call.0, *outcome)),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

fn known(desk: &Desk) -> Vec<PoolId> {
    desk.core.pools().iter().map(|pool| pool.id).collect()
}

pub(crate) fn gone(desk: &mut Desk, worker: WorkerId) -> Vec<Effect> {
    desk.tell(Event::Gone { worker, exit: Exit::Code(1) })
}

pub(crate) fn killed(desk: &mut Desk, worker: WorkerId) -> Vec<Effect> {
    desk.tell(Event::Gone { worker, exit: Exit::Signal(9) })
}

/// What was started is ready, and so on until a request finds its worker.
pub(crate) fn comes_up(desk: &mut Desk, mut effects: Vec<Effect>) -> Option<WorkerId> {
    for _ in 0..4 {
        let mut next = Vec::new();
        for effect in effects {
            if let Effect::Request(Asked::Give { worker, .. }) = effect {
                return Some(worker);
            } else if let Effect::StartZygote { zygote, .. } = effect {
                next.extend(desk.zygote_is_ready(zygote));
            } else if let Effect::StartStandby { worker, .. } | Effect::Fork { worker, .. } = effect
            {
                next.extend(desk.ready(worker));
            }
        }
        effects = next;
    }
    None
}

/// Every start fails at once, until none is begun any more: how many there were, and whether what
/// waited was refused.
fn fails(desk: &mut Desk, mut effects: Vec<Effect>) -> (u32, bool) {
    let (mut starts, mut refused) = (0, false);
    loop {
        let is_refused = |(_, outcome)| outcome == Settled::Refused(Refusal::NotLoaded);
        refused |= settled(&effects).into_iter().any(is_refused);
        let Some(worker) = started(&effects).first().copied() else { return (starts, refused) };
        starts += 1;
        assert!(starts < 100, "it is started again and again");
        effects = gone(desk, worker);
    }
}

/// Every worker that is started comes up, answers if it has a request, and dies while it waits,
/// until none is begun any more; how many there were.
fn dies_waiting(desk: &mut Desk, effects: Vec<Effect>) -> u32 {
    let mut effects = std::collections::VecDeque::from(effects);
    let mut starts = 0;
    while let Some(effect) = effects.pop_front() {
        if let Effect::StartZygote { zygote, .. } = effect {
            effects.extend(desk.zygote_is_ready(zygote));
        } else if let Effect::StartStandby { worker, .. } | Effect::Fork { worker, .. } = effect {
            starts += 1;
            assert!(starts < 100, "it is started again and again");
            let up = desk.ready(worker);
            let given = up.iter().find_map(|effect| match effect {
                Effect::Request(Asked::Give { call, .. }) => Some(call.0),
                _ => None,
            });
            effects.extend(up);
            if let Some(call) = given {
                effects.extend(answer(desk, worker, call));
            }
            effects.extend(gone(desk, worker));
        }
    }
    starts
}

#[test]
fn the_pool_that_a_request_comes_for_is_not_the_one_that_goes() {
    let mut desk = Desk::with(|limits| limits.pools_max = 2);
    let first = open(&mut desk, terms(Name::Prefork));
    ask(&mut desk, first, 1);
    let second = open(&mut desk, terms(Name::Prefork));
    ask(&mut desk, second, 2);
    // Both have a request that waits.
    let third = open(&mut desk, terms(Name::Prefork));
    let effects = ask(&mut desk, third, 3);
    assert_eq!((started(&effects).len(), settled(&effects).len()), (1, 0), "{effects:?}");
    assert_eq!(known(&desk), [first, second, third]);
}

#[test]
fn it_is_told_which_pool_is_forgotten() {
    let mut desk = Desk::with(|limits| limits.pools_max = 2);
    let first = open(&mut desk, terms(Name::Prefork));
    let second = open(&mut desk, terms(Name::Prefork));
    let third = desk.core.new_pool();
    let opened = Told::Opened { pool: third, key: other_key(3), terms: terms(Name::Prefork) };
    let effects = desk.tell(Event::Request(opened));
    assert_eq!(effects, [Effect::Forget { pool: first }]);
    assert_eq!(known(&desk), [second, third]);
}

#[test]
fn a_pool_whose_worker_is_lent_is_kept() {
    let mut desk = Desk::with(|limits| limits.pools_max = 1);
    let pool = open(&mut desk, terms(Name::Prefork));
    let asked = ask(&mut desk, pool, 1);
    let worker = comes_up(&mut desk, asked).unwrap();
    answer(&mut desk, worker, 1);
    let lent = desk.tell(Event::Request(Told::WantLane { lane: LaneId(1), pool }));
    assert!(
        lent.iter().any(|effect| matches!(effect, Effect::Request(Asked::Lend { .. }))),
        "{lent:?}"
    );
    let other = open(&mut desk, terms(Name::Prefork));
    assert_eq!(known(&desk), [pool, other]);
}

#[test]
fn what_cannot_be_loaded_is_not_started_again_before_its_back_off_or_a_change() {
    for origin in [Origin::Exec, Origin::Fork] {
        let mut desk = Desk::new();
        let mut terms = terms(Name::Prefork);
        terms.recipe.origin = origin;
        let pool = open(&mut desk, terms);
        let most = if origin == Origin::Exec { Limits::default().deaths_max } else { 1 };
        let asked = ask(&mut desk, pool, 1);
        assert_eq!(fails(&mut desk, asked), (most, true), "{origin:?}");
        assert_eq!(desk.turn(desk.limits.backoff_min_us), []);
        let asked = ask(&mut desk, pool, 2);
        assert_eq!(fails(&mut desk, asked), (most, true), "{origin:?}, once more");
        // The back-off doubles, and has a bound; what comes meanwhile waits for its end.
        for (call, wait_us) in [(3, 2_000_000), (4, 3_000_000), (5, BACKOFF_MAX_US)] {
            assert_eq!(ask(&mut desk, pool, call), [], "{origin:?}, {call}");
            assert_eq!(desk.turn(wait_us - 1), [], "{origin:?}, {call}");
            let tried = desk.turn(1);
            assert_eq!(fails(&mut desk, tried), (most, true), "{origin:?}, {call}");
        }
        // It was mended, perhaps: one is started ahead, as if it could be loaded.
        let changed = desk.tell(Event::Request(Told::Stale { pool }));
        assert_eq!(fails(&mut desk, changed), (most, false), "{origin:?}, changed");
    }
}

#[test]
fn what_dies_while_it_waits_is_not_started_again_and_again() {
    for origin in [Origin::Exec, Origin::Fork] {
        let mut desk = Desk::new();
        let mut terms = terms(Name::Prefork);
        terms.recipe.origin = origin;
        let pool = open(&mut desk, terms);
        let most = desk.limits.deaths_max;
        let asked = ask(&mut desk, pool, 1);
        assert_eq!(dies_waiting(&mut desk, asked), most, "{origin:?}");
        // A request finds a worker all the same, and others are made ready beside it.
        let asked = ask(&mut desk, pool, 2);
        assert_eq!(dies_waiting(&mut desk, asked), most, "{origin:?}, once more");
        let changed = desk.tell(Event::Request(Told::Stale { pool }));
        assert_eq!(dies_waiting(&mut desk, changed), most, "{origin:?}, changed");
    }
}

/// A pool that has answered one request; the worker that did.
fn answered(desk: &mut Desk, origin: Origin) -> (PoolId, WorkerId) {
    let mut terms = terms(Name::Prefork);
    (terms.recipe.origin, terms.workers_max) = (origin, 1);
    let pool = open(desk, terms);
    let asked = ask(desk, pool, 1);
    let worker = comes_up(desk, asked).unwrap();
    answer(desk, worker, 1);
    (pool, worker)
}

/// The processes that are to be there, or a wait that is over.
fn made(desk: &mut Desk, effects: &[Effect]) -> Vec<WorkerId> {
    let of = |effect: &Effect| match effect {
        Effect::Fork { worker, .. } => Some(*worker),
        _ => None,
    };
    let mut made = started(effects);
    made.extend(effects.iter().filter_map(of));
    if made.is_empty() {
        let later = desk.turn(1_000_000);
        made.extend(started(&later));
        made.extend(later.iter().filter_map(of));
    }
    made
}

#[test]
fn workers_that_are_killed_while_they_wait_or_start_cost_no_request() {
    for origin in [Origin::Exec, Origin::Fork] {
        let mut desk = Desk::new();
        let (pool, worker) = answered(&mut desk, origin);
        let mut effects = killed(&mut desk, worker);
        // As many die while they wait as end a pool that cannot be loaded, and then some at the start.
        for _ in 1..desk.limits.deaths_max {
            let next = made(&mut desk, &effects)[0];
            desk.ready(next);
            effects = killed(&mut desk, next);
        }
        effects.extend(ask(&mut desk, pool, 2));
        for _ in 0..desk.limits.kills_max - 1 {
            let next = made(&mut desk, &effects)[0];
            effects = killed(&mut desk, next);
            assert_eq!(settled(&effects), [], "{origin:?}");
        }
        let next = made(&mut desk, &effects)[0];
        let effects = desk.ready(next);
        let given = |effect: &Effect| {
            matches!(effect, Effect::Request(Asked::Give { call: CallId(2), worker, .. })
                if *worker == next)
        };
        assert!(effects.iter().any(given), "{origin:?}: {effects:?}");
    }
}

#[test]
fn a_zygote_that_is_killed_while_it_loads_or_waits_costs_no_request() {
    let mut desk = Desk::new();
    let pool = open(&mut desk, terms(Name::Fork));
    let mut effects = ask(&mut desk, pool, 1);
    for round in 0..desk.limits.kills_max - 1 {
        let zygote = made(&mut desk, &effects)[0];
        let ready = if round % 2 == 1 { desk.zygote_is_ready(zygote) } else { Vec::new() };
        effects = killed(&mut desk, zygote);
        for copy in if ready.is_empty() { Vec::new() } else { made(&mut desk, &ready) } {
            effects.extend(killed(&mut desk, copy));
        }
        assert_eq!(settled(&effects), [], "{round}");
    }
    let zygote = made(&mut desk, &effects);
    let effects = desk.zygote_is_ready(zygote[0]);
    assert!(comes_up(&mut desk, effects).is_some());
}

#[test]
fn what_dies_by_a_signal_each_time_it_is_loaded_is_given_up_after_a_while_and_says_so() {
    for origin in [Origin::Exec, Origin::Fork] {
        let mut desk = Desk::new();
        let mut terms = terms(Name::Prefork);
        terms.recipe.origin = origin;
        let pool = open(&mut desk, terms);
        let mut effects = ask(&mut desk, pool, 1);
        let began = desk.now;
        let exit = Exit::Signal(11);
        for death in 1..desk.limits.kills_max {
            let worker = started(&effects)[0];
            effects = desk.tell(Event::Gone { worker, exit });
            assert_eq!(settled(&effects), [], "{origin:?}, {death}");
            let wait_us = desk.limits.death_wait_us(death);
            if wait_us > 0 {
                assert_eq!(started(&effects), [], "{origin:?}, {death}");
                assert_eq!(desk.turn(wait_us - 1), [], "{origin:?}, {death}");
                effects = desk.turn(1);
            }
        }
        let worker = started(&effects)[0];
        let effects = desk.tell(Event::Gone { worker, exit });
        assert_eq!(settled(&effects), [(1, Settled::Refused(Refusal::NotLoaded))], "{origin:?}");
        let loaded = Loaded::Not(Cause::Signal(11));
        assert!(effects.contains(&Effect::Loaded { pool, loaded }), "{origin:?}: {effects:?}");
        assert_eq!(started(&effects), []);
        assert!(desk.now.us_since(began) < 2_000_000, "{origin:?}");
    }
}

/// A desk with the request 2, for which a worker is being started.
fn asked_of_a_worker_that_starts() -> (Desk, WorkerId) {
    let mut desk = Desk::new();
    let mut terms = terms(Name::Prefork);
    (terms.recipe.origin, terms.recipe.ahead) = (Origin::Exec, 0);
    let pool = open(&mut desk, terms);
    let asked = ask(&mut desk, pool, 2);
    let worker = started(&asked)[0];
    (desk, worker)
}

#[test]
fn a_request_that_its_worker_has_not_read_goes_to_another_a_few_times() {
    let (mut desk, mut worker) = asked_of_a_worker_that_starts();
    let mut given = desk.ready(worker);
    for gives in 1..=desk.limits.gives_max {
        let gave = |effect: &Effect| matches!(effect, Effect::Request(Asked::Give { call: CallId(2), worker: to, .. }) if *to == worker);
        assert!(given.iter().any(gave), "{gives}: {given:?}");
        let unread = Some(CallId(2));
        let mut effects = desk.tell(Event::Request(Told::Unreached { worker, unread }));
        if gives == desk.limits.gives_max {
            assert_eq!(settled(&effects), [(2, Settled::Lost)]);
            return;
        }
        assert_eq!(settled(&effects), []);
        effects.extend(killed(&mut desk, worker));
        worker = made(&mut desk, &effects)[0];
        given = desk.ready(worker);
    }
}

/// As with the copies of a zygote that has ended, of which nobody has told yet.
#[test]
fn a_request_that_could_not_be_sent_to_its_worker_goes_on_as_often_as_it_takes() {
    let (mut desk, mut worker) = asked_of_a_worker_that_starts();
    for _ in 0..3 * desk.limits.gives_max {
        desk.ready(worker);
        let unsent = Told::Unsent { worker, call: CallId(2) };
        let mut effects = desk.tell(Event::Request(unsent));
        assert_eq!(settled(&effects), []);
        effects.extend(killed(&mut desk, worker));
        worker = made(&mut desk, &effects)[0];
    }
}

#[test]
fn interpreters_that_start_ahead_are_bounded_and_those_that_are_waited_for_by_more() {
    let mut desk = Desk::with(|limits| (limits.starts_at_once, limits.starts_waited_for) = (1, 3));
    // A program's zygote starts; another's waits for it.
    desk.start_pool(PROGRAM, crate::desk::KEY);
    let effects = desk.call_as(Ask { key: Some(other_key(9)), ..Ask::default() }).1;
    assert_eq!(started(&effects), []);
    // What a request waits for starts beside it, up to the other bound.
    let begun = [1, 2, 3].map(|call| {
        let pool = open(&mut desk, terms(Name::Prefork));
        started(&ask(&mut desk, pool, call)).len()
    });
    assert_eq!(begun, [1, 1, 0]);
}

#[test]
fn a_daemon_that_was_stopped_judges_no_handler_by_that_time() {
    let mut desk = Desk::new();
    let pool = open(&mut desk, terms(Name::Prefork));
    let zygote = started(&ask(&mut desk, pool, 1))[0];
    desk.now = desk.now.after_us(desk.limits.start_us * 10);
    assert_eq!(signals(&desk.tell(Event::Tick)), []);
    let effects = desk.zygote_is_ready(zygote);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Fork { .. })), "{effects:?}");
}

#[test]
fn a_handler_whose_time_has_passed_is_asked_to_end_and_then_killed() {
    let mut desk = Desk::new();
    let pool = open(&mut desk, terms(Name::Prefork));
    let deadline = Some(desk.now.after_us(1_000_000));
    let arrived = Told::Arrived { call: CallId(1), pool, key: vec![], deadline };
    let asked = desk.tell(Event::Request(arrived));
    let worker = comes_up(&mut desk, asked).unwrap();
    let effects = desk.turn(1_000_000);
    assert_eq!(settled(&effects), [(1, Settled::TimedOut { given: Given::Yes })]);
    assert_eq!(signals(&effects), [(worker, 15)]);
    assert_eq!(signals(&desk.turn(desk.limits.kill_grace_us)), [(worker, 9)]);
}

#[test]
fn a_handler_that_has_begun_to_answer_may_take_its_time() {
    let mut desk = Desk::new();
    let pool = open(&mut desk, terms(Name::Prefork));
    let deadline = Some(desk.now.after_us(1_000_000));
    let arrived = Told::Arrived { call: CallId(1), pool, key: vec![], deadline };
    let asked = desk.tell(Event::Request(arrived));
    let worker = comes_up(&mut desk, asked).unwrap();
    // What another worker says of it changes nothing.
    for begun in [WorkerId(worker.0 + 100), worker] {
        desk.tell(Event::Request(Told::Begun { worker: begun, call: CallId(1) }));
    }
    let effects = desk.turn(1_000_000);
    assert_eq!((settled(&effects), signals(&effects)), (vec![], vec![]));
    assert_eq!(settled(&answer(&mut desk, worker, 1)), [(1, Settled::Answered)]);
}

#[test]
fn a_worker_with_slots_has_several_requests_and_answers_in_any_order() {
    let mut desk = Desk::new();
    let mut terms = terms(Name::Prefork);
    (terms.slots, terms.workers_max, terms.recipe.ahead) = (3, 1, 0);
    let pool = open(&mut desk, terms);
    let asked = ask(&mut desk, pool, 1);
    let worker = comes_up(&mut desk, asked).unwrap();
    for call in [2, 3] {
        let given = ask(&mut desk, pool, call);
        assert!(
            matches!(given[..], [Effect::Request(Asked::Give { worker: to, .. })] if to == worker),
            "{given:?}"
        );
    }
    assert_eq!(ask(&mut desk, pool, 4), []);
    // The slot that is free is taken at once.
    let effects = answer(&mut desk, worker, 2);
    assert_eq!(settled(&effects), [(2, Settled::Answered)]);
    assert!(
        matches!(effects[1], Effect::Request(Asked::Give { call: CallId(4), .. })),
        "{effects:?}"
    );
    // One end takes what it has with it, each once.
    let lost = settled(&gone(&mut desk, worker));
    assert_eq!(lost, [(1, Settled::Lost), (3, Settled::Lost), (4, Settled::Lost)]);
}

#[test]
fn a_request_of_a_worker_with_slots_ends_alone_or_takes_its_worker_with_it() {
    let mut desk = Desk::new();
    let mut terms = terms(Name::Prefork);
    (terms.slots, terms.workers_max, terms.recipe.ahead) = (3, 1, 0);
    let pool = open(&mut desk, terms);
    let asked = ask(&mut desk, pool, 1);
    let worker = comes_up(&mut desk, asked).unwrap();
    ask(&mut desk, pool, 2);
    ask(&mut desk, pool, 3);
    let effects = desk.tell(Event::Request(Told::SenderGone { call: CallId(2) }));
    assert_eq!(settled(&effects), [(2, Settled::Cancelled)]);
    let cancel = |call| Effect::Request(Asked::Cancel { call: CallId(call), worker });
    assert!(effects.contains(&cancel(2)) && signals(&effects).is_empty(), "{effects:?}");
    // Its slot is free when its worker has let go of it.
    assert_eq!(ask(&mut desk, pool, 4), []);
    let effects = answer(&mut desk, worker, 2);
    assert!(
        matches!(effects[..], [Effect::Request(Asked::Give { call: CallId(4), .. })]),
        "{effects:?}"
    );
    assert_eq!(signals(&desk.turn(10_000_000)), []);
    // A worker that does not let go is not trusted with others.
    desk.tell(Event::Request(Told::SenderGone { call: CallId(3) }));
    let effects = desk.turn(10_000_000);
    assert_eq!(settled(&effects), [(1, Settled::Lost), (4, Settled::Lost)]);
    assert_eq!(signals(&effects).len(), 2, "it is asked to end, then killed: {effects:?}");
}

#[test]
fn one_budget_is_kept_by_calls_and_handlers_together() {
    let (mut desk, zygote) = Desk::with_zygote(|limits| {
        limits.budget_kib = 80;
        limits.ahead_min = 0;
    });
    let pool = open(&mut desk, terms(Name::Prefork));
    let asked = ask(&mut desk, pool, 1);
    let worker = comes_up(&mut desk, asked).unwrap();
    answer(&mut desk, worker, 1);
    let readings = vec![(zygote, 40), (worker, 60)];
    let effects = desk.tell(Event::Memory { readings });
    // The program was used before the handler.
    assert_eq!(retired(&effects), [zygote]);
    // Used again, it is the handler that goes, with its zygote.
    let again = desk.start_pool_again();
    desk.turn(1000);
    let (call, _) = desk.given();
    let effects = desk.tell(Event::Memory { readings: vec![(again, 40), (worker, 60)] });
    assert!(retired(&effects).contains(&worker), "{effects:?}");
    assert_eq!(desk.core.counts().held_kib, 40);
    desk.caller_gone(call);
}

#[test]
fn stopping_refuses_what_waits_lets_end_what_runs_and_leaves_when_nothing_lives() {
    let mut desk = Desk::new();
    let mut terms = terms(Name::Prefork);
    terms.workers_max = 1;
    let pool = open(&mut desk, terms);
    let asked = ask(&mut desk, pool, 1);
    let zygote = started(&asked)[0];
    let worker = comes_up(&mut desk, asked).unwrap();
    ask(&mut desk, pool, 2);
    let effects = desk.tell(Event::Drain);
    assert_eq!(settled(&effects), [(2, Settled::Refused(Refusal::Stopping))]);
    assert_eq!(retired(&effects), []);
    let effects = answer(&mut desk, worker, 1);
    assert_eq!(settled(&effects), [(1, Settled::Answered)]);
    assert_eq!(retired(&effects), [worker]);
    assert_eq!(retired(&desk.gone(worker, OK)), [zygote]);
    assert_eq!(desk.gone(zygote, OK), [Effect::Exit]);
}

#[test]
fn a_handler_with_threads_is_started_and_not_forked() {
    let mut desk = Desk::new();
    let pool = open(&mut desk, terms(Name::Fork));
    let zygote = started(&ask(&mut desk, pool, 1))[0];
    let effects = desk.tell(Event::ZygoteReady { zygote, threads: 2, preload: Preload::AsLearned });
    assert_eq!(retired(&effects), [zygote]);
    assert_eq!(started(&effects).len(), 1);
    assert!(comes_up(&mut desk, effects).is_some());
}
