//! New code beside old: which of them answers, and what becomes of the other.

use hob_core::event::{Effect, Event, Loaded};
use hob_core::ids::{CallId, PoolId, WorkerId};
use hob_core::isolation::Name;
use hob_core::requests::{Effect as Asked, Event as Told};
use hob_core::terms::{Stale, Terms};

use crate::desk::{Desk, retired, signals};
use crate::requests::{answer, ask, comes_up, gone, killed, open, settled, started, terms};

/// A pool that has answered one request; the worker that did.
fn serving(name: Name, stale: Stale) -> (Desk, PoolId, WorkerId) {
    let mut desk = Desk::new();
    let pool = open(&mut desk, Terms { stale, ..terms(name) });
    let effects = ask(&mut desk, pool, 1);
    let worker = comes_up(&mut desk, effects).unwrap();
    answer(&mut desk, worker, 1);
    (desk, pool, worker)
}

fn tell(desk: &mut Desk, event: Told) -> Vec<Effect> {
    desk.tell(Event::Request(event))
}

fn edited(desk: &mut Desk, pool: PoolId) -> WorkerId {
    let effects = tell(desk, Told::Stale { pool });
    assert_eq!(retired(&effects), [], "the old stays");
    started(&effects)[0]
}

fn loaded(effects: &[Effect]) -> Vec<Loaded> {
    let of = |effect: &Effect| match effect {
        Effect::Loaded { loaded, .. } => Some(*loaded),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

fn given(effects: &[Effect]) -> Vec<(CallId, WorkerId)> {
    let of = |effect: &Effect| match effect {
        Effect::Request(Asked::Give { call, worker, .. }) => Some((*call, *worker)),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

#[test]
fn what_comes_waits_for_new_code_and_gets_it() {
    let (mut desk, pool, old) = serving(Name::Prefork, Stale::Waits);
    let zygote = edited(&mut desk, pool);
    assert_eq!(given(&ask(&mut desk, pool, 2)), []);
    let effects = desk.zygote_is_ready(zygote);
    assert_eq!(loaded(&effects), [Loaded::Anew]);
    assert!(retired(&effects).contains(&old), "{effects:?}");
    assert_ne!(comes_up(&mut desk, effects), Some(old));
}

#[test]
fn new_code_that_cannot_be_loaded_leaves_what_waits_to_the_old() {
    for stale in [Stale::Waits, Stale::Serves] {
        let (mut desk, pool, old) = serving(Name::Prefork, stale);
        let zygote = edited(&mut desk, pool);
        let waits = given(&ask(&mut desk, pool, 2)).is_empty();
        assert_eq!(waits, stale == Stale::Waits);
        let effects = gone(&mut desk, zygote);
        assert_eq!((loaded(&effects), settled(&effects)), (vec![Loaded::Kept], vec![]));
        let call = CallId(2);
        assert_eq!(given(&effects), if waits { vec![(call, old)] } else { vec![] });
        answer(&mut desk, old, 2);
        // It does not end for being idle, since nothing could take its place.
        desk.turn(60_000_000);
        assert_eq!(given(&ask(&mut desk, pool, 3)), [(CallId(3), old)]);
    }
}

#[test]
fn new_code_whose_zygote_is_killed_is_loaded_once_more_and_not_for_ever() {
    let (mut desk, pool, old) = serving(Name::Prefork, Stale::Waits);
    let mut zygote = edited(&mut desk, pool);
    for _ in 1..desk.limits.kills_max {
        let mut effects = killed(&mut desk, zygote);
        assert_eq!(loaded(&effects), []);
        effects.extend(desk.turn(1_000_000));
        zygote = started(&effects)[0];
        // What goes on is ready and answers meanwhile, which says nothing of the new.
        assert_eq!(given(&ask(&mut desk, pool, zygote.0)), []);
    }
    let effects = killed(&mut desk, zygote);
    assert_eq!(loaded(&effects), [Loaded::Kept]);
    assert_eq!(given(&effects)[0].1, old);
}

#[test]
fn what_was_edited_while_it_is_loaded_is_loaded_once_more_and_the_first_is_not_heard() {
    let (mut desk, pool, _) = serving(Name::Fork, Stale::Waits);
    let first = edited(&mut desk, pool);
    ask(&mut desk, pool, 2);
    let effects = tell(&mut desk, Told::Stale { pool });
    assert_eq!(retired(&effects), [first]);
    let second = started(&effects)[0];
    assert_eq!(loaded(&gone(&mut desk, first)), []);
    let effects = desk.zygote_is_ready(second);
    assert_eq!(loaded(&effects), [Loaded::Anew]);
}

#[test]
fn what_could_not_be_loaded_is_tried_again_ever_less_often_and_nobody_waits_for_it() {
    let (mut desk, pool, old) = serving(Name::Prefork, Stale::Waits);
    let mut zygote = edited(&mut desk, pool);
    for wait_us in [1_000_000, 2_000_000, 4_000_000] {
        gone(&mut desk, zygote);
        desk.turn(wait_us - 1);
        assert_eq!(started(&tell(&mut desk, Told::Again { pool })), []);
        desk.turn(1);
        zygote = started(&tell(&mut desk, Told::Again { pool }))[0];
        let call = desk.now.0;
        assert_eq!(given(&ask(&mut desk, pool, call)), [(CallId(call), old)]);
        answer(&mut desk, old, call);
    }
    assert_eq!(loaded(&desk.zygote_is_ready(zygote)), [Loaded::Anew]);
}

#[test]
fn a_request_that_runs_in_old_code_ends_there_and_its_worker_after_it() {
    let (mut desk, pool, old) = serving(Name::Prefork, Stale::Serves);
    assert_eq!(given(&ask(&mut desk, pool, 2)), [(CallId(2), old)]);
    let zygote = edited(&mut desk, pool);
    let effects = desk.zygote_is_ready(zygote);
    assert!(!retired(&effects).contains(&old) && signals(&effects).is_empty(), "{effects:?}");
    let effects = answer(&mut desk, old, 2);
    assert_eq!(retired(&effects), [old]);
}

#[test]
fn a_reload_holds_nobody_up_and_where_nothing_is_loaded_it_says_so() {
    let (mut desk, pool, old) = serving(Name::Prefork, Stale::Waits);
    let zygote = started(&tell(&mut desk, Told::Reload { pool }))[0];
    assert_eq!(given(&ask(&mut desk, pool, 2)), [(CallId(2), old)]);
    answer(&mut desk, old, 2);
    assert_eq!(loaded(&desk.zygote_is_ready(zygote)), [Loaded::Anew]);
    let alone = open(&mut desk, Terms { stale: Stale::Waits, ..terms(Name::Spawn) });
    assert_eq!(loaded(&tell(&mut desk, Told::Reload { pool: alone })), [Loaded::Nothing]);
}

#[test]
fn old_code_that_ends_by_itself_is_followed_by_what_is_being_loaded() {
    let (mut desk, pool, _) = serving(Name::Prefork, Stale::Waits);
    let old = desk.core.pools()[0].zygote.unwrap();
    let new = edited(&mut desk, pool);
    ask(&mut desk, pool, 2);
    let effects = gone(&mut desk, old);
    assert_eq!(loaded(&effects), []);
    for copy in retired(&effects) {
        gone(&mut desk, copy);
    }
    let effects = desk.zygote_is_ready(new);
    assert_eq!((loaded(&effects), settled(&effects)), (vec![Loaded::Anew], vec![]));
    assert!(comes_up(&mut desk, effects).is_some());
}
