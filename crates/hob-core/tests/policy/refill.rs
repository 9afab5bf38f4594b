//! When copies are made ahead of calls, and how many; what is given up when nothing is called.

use hob_core::event::{Aim, Effect, Pages};
use hob_core::ids::{ProgramId, Time, WorkerId};
use hob_core::isolation::Name;
use hob_core::outcome::ColdReason;
use hob_core::pool::Mode;

use crate::desk::{Ask, Desk, OK, cold, forked, other_key, retired};

fn paid(effects: &[Effect]) -> usize {
    forked(effects, Pages::Paid).len()
}

#[test]
fn a_copy_is_made_when_it_has_been_quiet_and_not_before() {
    let (mut desk, zygote) = Desk::with_zygote(|_| {});
    let effects = desk.turn(desk.limits.quiet_us - 1);
    assert_eq!(paid(&effects), 0);
    let effects = desk.turn(1);
    let [Effect::Fork { zygote: of, worker, pages: Pages::Paid }] = effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(of, zygote);
    // One at a time; the next follows as soon as the first is ready.
    assert_eq!(desk.turn(4000), []);
    assert_eq!(desk.core.counts().paying, 1);
    assert_eq!(paid(&desk.ready(worker)), 1);
}

#[test]
fn a_call_puts_the_next_copy_off() {
    let (mut desk, _, copies) = Desk::with_copies(2, |_| {});
    let (_, worker) = desk.given();
    assert_eq!(worker, copies[1]);
    assert_eq!(paid(&desk.turn(1400)), 0);
    assert_eq!(paid(&desk.finished(worker, OK)), 0);
    assert_eq!(paid(&desk.gone(worker, OK)), 0);
    assert_eq!(paid(&desk.turn(desk.limits.quiet_us - 1)), 0);
    assert_eq!(paid(&desk.turn(1)), 1);
}

#[test]
fn a_young_call_holds_refills_up_and_an_old_one_does_not() {
    let (mut desk, _, _) = Desk::with_copies(2, |_| {});
    desk.given();
    assert_eq!(paid(&desk.turn(desk.limits.in_flight_us - 1)), 0);
    assert_eq!(paid(&desk.turn(1)), 1);
}

#[test]
fn a_cold_run_holds_refills_up_as_a_warm_one_does() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.refill_patience_us = 1_000_000);
    let (call, _) = desk.call_as(Ask { isolation: Some(Name::Spawn), ..Ask::default() });
    assert_eq!(paid(&desk.turn(30_000)), 0);
    desk.cold_ends(call);
    assert_eq!(paid(&desk.turn(desk.limits.quiet_us - 1)), 0);
    assert_eq!(paid(&desk.turn(1)), 1);
}

#[test]
fn a_pool_that_has_run_out_waits_for_quiet_only_so_long() {
    let (mut desk, _, _) = Desk::with_copies(1, |_| {});
    desk.given();
    assert_eq!(paid(&desk.turn(desk.limits.refill_patience_us - 1)), 0);
    assert_eq!(paid(&desk.turn(1)), 1);
}

/// Lets time pass while copies take 4 ms to make; returns how many are begun.
fn turn_with_copies(desk: &mut Desk, paying: &mut Vec<(WorkerId, Time)>, us: u64) -> usize {
    let mut begun = 0;
    for _ in 0..us / 100 {
        let mut effects = desk.turn(100);
        if let Some((copy, due)) = paying.first().copied()
            && due <= desk.now
        {
            paying.remove(0);
            effects.extend(desk.ready(copy));
        }
        for copy in forked(&effects, Pages::Paid) {
            begun += 1;
            paying.push((copy, desk.now.after_us(4000)));
        }
    }
    begun
}

#[test]
fn calls_that_come_faster_than_copies_can_be_made_get_none() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.ahead_min = 1);
    let mut paying = Vec::new();
    let begun = turn_with_copies(&mut desk, &mut paying, 10_000);
    assert_eq!(begun, 1);
    two_at_once(&mut desk);
    // A call each 3 ms: after each it is quiet for longer than a refill waits. It takes a few to
    // tell a load from a pair.
    let mut begun = 0;
    for round in 0..40 {
        let (call, effects) = desk.call();
        let worker = crate::desk::given_to(&effects, call).unwrap();
        let before = begun;
        begun += turn_with_copies(&mut desk, &mut paying, 500);
        desk.finished(worker, OK);
        desk.gone(worker, OK);
        begun += turn_with_copies(&mut desk, &mut paying, 2500);
        assert!(round < 5 || begun == before, "a copy is made under load, in round {round}");
    }
    assert_eq!(desk.pool().mode, Mode::Throughput);
    assert_eq!((desk.pool().idle, desk.pool().starting), (0, 0));
    // The load ends with a pause of as long as a copy takes.
    let begun = turn_with_copies(&mut desk, &mut paying, 1200);
    assert_eq!(desk.pool().mode, Mode::Latency);
    assert_eq!(begun, 1);
}

/// Two calls at one time, so that what follows does not count as one caller's.
fn two_at_once(desk: &mut Desk) {
    let workers = [0; 2].map(|_| desk.given().1);
    for worker in workers {
        desk.finished(worker, OK);
        desk.gone(worker, OK);
    }
}

/// A call that takes 1 ms; the worker that had it, and the plain copies that were forked for later.
fn one_of_a_row(desk: &mut Desk) -> (WorkerId, Vec<WorkerId>) {
    let (call, mut effects) = desk.call();
    let worker = crate::desk::given_to(&effects, call).unwrap();
    effects.extend(desk.turn(1000));
    effects.extend(desk.finished(worker, OK));
    effects.extend(desk.gone(worker, OK));
    (worker, forked(&effects, Pages::Plain))
}

#[test]
fn calls_one_directly_after_another_find_a_plain_copy_of_the_call_before() {
    let (mut desk, _, copies) = Desk::with_copies(2, |_| {});
    assert_eq!(one_of_a_row(&mut desk), (copies[1], vec![]));
    // It takes two calls to be a row; the second takes the last copy that waits.
    let (last, mut plain) = one_of_a_row(&mut desk);
    assert_eq!(last, copies[0]);
    for round in 0..40 {
        assert_eq!(plain.len(), 1, "round {round}");
        // Ready or still to come, it is what the next call has.
        if round % 2 == 0 {
            assert_eq!(forked(&desk.ready(plain[0]), Pages::Plain), []);
        }
        let (next, more) = one_of_a_row(&mut desk);
        assert_eq!(next, plain[0], "round {round}");
        plain = more;
    }
    // The row has ended: what waits is paid for again.
    desk.ready(plain[0]);
    let made = desk.turn(desk.limits.refill_patience_us);
    assert_eq!((forked(&made, Pages::Plain), paid(&made)), (vec![], 1));
}

#[test]
fn calls_two_at_a_time_or_far_apart_have_no_plain_copy() {
    let (mut desk, _, _) = Desk::with_copies(2, |_| {});
    two_at_once(&mut desk);
    for _ in 0..10 {
        assert_eq!(one_of_a_row(&mut desk).1, []);
    }
    // No copy that pays is ever ready here, so that the pool is soon bare.
    let (mut desk, _, _) = Desk::with_copies(2, |_| {});
    for _ in 0..10 {
        assert_eq!(one_of_a_row(&mut desk).1, []);
        assert_eq!(forked(&desk.turn(desk.limits.refill_patience_us), Pages::Plain), []);
    }
}

#[test]
fn calls_12_ms_apart_always_find_a_copy() {
    let (mut desk, _, _) = Desk::with_copies(2, |_| {});
    for round in 0..200 {
        let (_, effects) = desk.call();
        let [Effect::Give { worker, .. }] = effects[..] else {
            panic!("call {round} found no copy: {effects:?}");
        };
        desk.turn(1000);
        desk.finished(worker, OK);
        desk.turn(300);
        desk.gone(worker, OK);
        // What is left of the 12 ms. A copy takes 5 ms to make.
        let mut left = 10_700;
        let mut paying = forked(&desk.turn(1_500), Pages::Paid);
        left -= 1_500;
        while let Some(copy) = paying.pop()
            && left >= 5_000
        {
            desk.turn(5_000);
            left -= 5_000;
            paying.extend(forked(&desk.ready(copy), Pages::Paid));
        }
        for copy in paying {
            desk.turn(0);
            desk.ready(copy);
        }
        desk.turn(left);
    }
    assert_eq!(desk.pool().mode, Mode::Latency);
}

#[test]
fn a_burst_raises_the_number_of_copies_up_to_its_bound() {
    let (mut desk, _, _) = Desk::with_copies(1, |limits| limits.ahead_max = 5);
    assert_eq!(desk.pool().ahead, 1);
    let calls: Vec<_> = (0..3).map(|_| desk.given()).collect();
    for (_, worker) in &calls {
        desk.finished(*worker, OK);
        desk.gone(*worker, OK);
    }
    desk.turn(1_000_000);
    assert_eq!(desk.pool().ahead, 3);
    for _ in 0..9 {
        desk.given();
    }
    assert_eq!(desk.pool().ahead, 5);
}

#[test]
fn calls_that_wait_count_as_a_burst_too() {
    let (mut desk, _, _) = Desk::with_copies(1, |limits| {
        limits.ahead_max = 9;
        limits.calls_max = 2;
    });
    let calls: Vec<_> = (0..2).map(|_| desk.given()).collect();
    let waiting: Vec<_> = (0..3).map(|_| desk.call().0).collect();
    for call in waiting {
        desk.caller_gone(call);
    }
    for (_, worker) in calls {
        desk.finished(worker, OK);
    }
    desk.turn(1_000_000);
    assert_eq!(desk.pool().ahead, 5);
}

#[test]
fn only_so_many_copies_pay_at_one_time_over_all_pools() {
    let (mut desk, _) = Desk::with_zygote(|limits| limits.refills_at_once = 2);
    let second = desk.start_pool(ProgramId(2), other_key(2));
    desk.zygote_is_ready(second);
    assert_eq!(paid(&desk.turn(100_000)), 2);
    assert_eq!(desk.core.counts().paying, 2);
}

#[test]
fn a_bare_pool_is_filled_before_one_that_has_a_copy() {
    let (mut desk, _, _) = Desk::with_copies(1, |limits| limits.ahead_max = 4);
    let second = desk.start_pool(ProgramId(2), other_key(2));
    desk.zygote_is_ready(second);
    // The first pool is used last, and still has a copy while it wants more.
    let ask = Ask { ahead: Some(3), ..Ask::default() };
    desk.call_as(ask);
    let (call, effects) = desk.call_as(ask);
    let worker = crate::desk::given_to(&effects, call).unwrap();
    desk.finished(worker, OK);
    let mut made = desk.turn(60_000);
    made.retain(|effect| matches!(effect, Effect::Fork { pages: Pages::Paid, .. }));
    let zygotes: Vec<_> = made
        .iter()
        .map(|effect| match effect {
            Effect::Fork { zygote, .. } => *zygote,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(zygotes.len(), 1);
}

#[test]
fn so_many_interpreters_start_at_one_time_and_the_newest_wish_is_first() {
    let mut desk = Desk::with(|limits| limits.starts_at_once = 2);
    let mut started = Vec::new();
    for number in 1..=4 {
        let ask = Ask {
            program: ProgramId(u64::from(number)),
            key: Some(other_key(number)),
            ..Ask::default()
        };
        desk.turn(1000);
        let (_, effects) = desk.call_as(ask);
        started.extend(effects.iter().filter_map(|effect| match effect {
            Effect::StartZygote { zygote, key, .. } => Some((*zygote, *key)),
            _ => None,
        }));
    }
    assert_eq!(started.len(), 2);
    assert_eq!(desk.core.counts().starting, 2);
    let states: Vec<_> = desk.core.pools().iter().map(|pool| pool.state).collect();
    assert_eq!(states, ["warming", "warming", "waiting", "waiting"]);
    let effects = desk.zygote_is_ready(started[0].0);
    let [Effect::StartZygote { key, .. }] = effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(key, other_key(4));
}

#[test]
fn standbys_are_replaced_off_the_path_and_not_all_at_once() {
    let mut desk = Desk::with(|limits| limits.starts_at_once = 2);
    let ask = Ask { isolation: Some(Name::Standby), ahead: Some(3), ..Ask::default() };
    let (call, _) = desk.call_as(ask);
    desk.cold_ends(call);
    let starts = |effects: &[Effect]| -> Vec<_> {
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::StartStandby { worker, .. } => Some(*worker),
                _ => None,
            })
            .collect()
    };
    let first = starts(&desk.turn(30_000));
    assert_eq!(first.len(), 2);
    let third = starts(&desk.ready(first[0]));
    assert_eq!(third.len(), 1);
    desk.ready(first[1]);
    desk.ready(third[0]);
    assert_eq!(starts(&desk.turn(100_000)), []);
    let (_, worker) = {
        let (call, effects) = desk.call_as(ask);
        (call, crate::desk::given_to(&effects, call).unwrap())
    };
    desk.finished(worker, OK);
    assert_eq!(starts(&desk.turn(desk.limits.quiet_us - 1)), []);
    assert_eq!(starts(&desk.turn(1)).len(), 1);
}

#[test]
fn surplus_copies_go_when_calls_have_stopped() {
    let (mut desk, _, _) = Desk::with_copies(1, |_| {});
    desk.call_as(Ask { ahead: Some(3), ..Ask::default() });
    let mut paying = forked(&desk.turn(60_000), Pages::Paid);
    let mut copies = Vec::new();
    while let Some(copy) = paying.pop() {
        copies.push(copy);
        paying.extend(forked(&desk.ready(copy), Pages::Paid));
    }
    assert_eq!(copies.len(), 3);
    // Back to what hob thinks best.
    desk.call();
    let effects = desk.turn(desk.limits.rate_us - 1);
    assert_eq!(retired(&effects), []);
    let effects = desk.turn(1);
    assert_eq!(retired(&effects), [copies[0]], "the oldest goes");
    assert_eq!(desk.pool().idle, 1);
}

#[test]
fn an_idle_pool_keeps_one_copy_then_none_and_no_zygote() {
    let (mut desk, zygote, copies) = Desk::with_copies(3, |_| {});
    let (_, worker) = desk.given();
    desk.finished(worker, OK);
    desk.gone(worker, OK);
    let used = desk.now;
    let copy = forked(&desk.turn(10_000), Pages::Paid)[0];
    desk.ready(copy);
    let until = |desk: &Desk, us: u64| used.after_us(us).us_since(desk.now);
    let effects = desk.turn(until(&desk, desk.limits.copies_idle_us) - 1);
    assert_eq!(retired(&effects), []);
    assert_eq!(desk.pool().idle, 3);
    let effects = desk.turn(1);
    assert_eq!(retired(&effects), [copies[0], copies[1]]);
    for copy in &copies[..2] {
        desk.gone(*copy, OK);
    }
    assert_eq!((desk.pool().idle, desk.pool().ahead), (1, 1));
    let effects = desk.turn(until(&desk, desk.limits.pool_idle_us) - 1);
    assert_eq!(retired(&effects), []);
    let effects = desk.turn(1);
    // The zygote is told when its last copy has ended.
    assert_eq!(retired(&effects), [copy]);
    assert_eq!(desk.core.pools().len(), 0);
    assert_eq!(retired(&desk.gone(copy, OK)), [zygote]);
    assert_eq!(desk.gone(zygote, OK), []);
    assert_eq!(desk.core.counts().workers, 0);
}

#[test]
fn copies_that_were_asked_for_stay_as_long_as_the_pool() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (call, effects) = desk.call_as(Ask { ahead: Some(3), ..Ask::default() });
    let worker = crate::desk::given_to(&effects, call).unwrap();
    desk.finished(worker, OK);
    let mut paying = forked(&desk.turn(10_000), Pages::Paid);
    while let Some(copy) = paying.pop() {
        paying.extend(forked(&desk.ready(copy), Pages::Paid));
    }
    let effects = desk.turn(desk.limits.pool_idle_us - 20_000);
    assert_eq!(retired(&effects), []);
    assert_eq!(desk.pool().idle, 3);
}

/// A verb that compares makes pools for worlds that nobody lives in.
#[test]
fn a_pool_that_only_proofs_used_goes_soon_after_them() {
    let proof = || Ask { key: Some(other_key(7)), aim: Aim::Prove, ..Ask::default() };
    for (first, pools) in [(proof(), 1), (Ask { aim: Aim::Perform, ..proof() }, 2)] {
        let (mut desk, _) = Desk::with_zygote(|_| {});
        for ask in [first, proof()] {
            let (call, effects) = desk.call_as(ask);
            assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
            desk.cold_ends(call);
        }
        assert_eq!(desk.core.pools().len(), 2);
        desk.turn(desk.limits.proof_idle_us + desk.limits.rate_us);
        assert_eq!(desk.core.pools().len(), pools, "{first:?}");
    }
}

#[test]
fn a_pool_with_a_running_call_is_never_idle() {
    let (mut desk, _) = Desk::with_zygote(|_| {});
    let (_, worker) = desk.given();
    desk.turn(desk.limits.pool_idle_us * 3);
    assert_eq!(desk.core.pools().len(), 1);
    desk.finished(worker, OK);
    assert_eq!(desk.core.pools().len(), 1);
    desk.turn(desk.limits.pool_idle_us + desk.limits.copies_idle_us);
    assert_eq!(desk.core.pools().len(), 0);
}

#[test]
fn a_daemon_that_nobody_calls_exits() {
    let mut desk = Desk::new();
    desk.tell(hob_core::event::Event::Tick);
    let effects = desk.turn(desk.limits.idle_exit_us - 1);
    assert_eq!(effects, []);
    assert!(!desk.core.is_stopping());
    assert_eq!(desk.turn(1), [Effect::Exit]);
    assert!(desk.core.is_stopping());
    assert_eq!(desk.core.next_deadline(), None);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Stopping));
}

#[test]
fn a_call_begins_the_daemons_waiting_anew() {
    let mut desk = Desk::new();
    desk.tell(hob_core::event::Event::Tick);
    desk.turn(desk.limits.idle_exit_us - 1);
    let (call, _) = desk.call_as(Ask { key: None, ..Ask::default() });
    assert_eq!(desk.turn(desk.limits.idle_exit_us * 2), []);
    desk.cold_ends(call);
    assert_eq!(desk.turn(desk.limits.idle_exit_us - 1), []);
    assert_eq!(desk.turn(1), [Effect::Exit]);
}
