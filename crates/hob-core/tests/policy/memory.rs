//! The memory budget.

use hob_core::event::{Event, Pages};
use hob_core::ids::ProgramId;
use hob_core::outcome::ColdReason;

use crate::desk::{Ask, Desk, OK, cold, forked, other_key, retired};

/// Two programs with a zygote each; the first is used last.
fn two_pools() -> (Desk, [hob_core::ids::WorkerId; 2]) {
    let (mut desk, first) = Desk::with_zygote(|limits| {
        limits.budget_kib = 1000;
        limits.ahead_min = 0;
    });
    let second = desk.start_pool(ProgramId(2), other_key(2));
    desk.zygote_is_ready(second);
    desk.turn(1000);
    let (_, worker) = desk.given();
    desk.finished(worker, OK);
    desk.gone(worker, OK);
    (desk, [first, second])
}

fn read(
    desk: &mut Desk,
    readings: &[(hob_core::ids::WorkerId, u64)],
) -> Vec<hob_core::event::Effect> {
    desk.tell(Event::Memory { readings: readings.to_vec() })
}

#[test]
fn within_the_budget_nothing_goes() {
    let (mut desk, [first, second]) = two_pools();
    assert_eq!(retired(&read(&mut desk, &[(first, 600), (second, 400)])), []);
    assert_eq!(desk.core.counts().held_kib, 1000);
    let kib: Vec<_> = desk.core.pools().iter().map(|pool| pool.kib).collect();
    assert_eq!(kib, [600, 400]);
}

#[test]
fn over_the_budget_the_least_recently_used_goes() {
    let (mut desk, [first, second]) = two_pools();
    let effects = read(&mut desk, &[(first, 500), (second, 501)]);
    assert_eq!(retired(&effects), [second]);
    assert_eq!(desk.core.counts().held_kib, 500);
    // It is made anew when it is called.
    let ask = Ask { program: ProgramId(2), key: Some(other_key(2)), ..Ask::default() };
    let (call, effects) = desk.call_as(ask);
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
}

#[test]
fn a_running_calls_memory_is_its_own() {
    let (mut desk, [first, second]) = two_pools();
    let (_, worker) = desk.given();
    let effects = read(&mut desk, &[(first, 500), (second, 500), (worker, 1_000_000)]);
    assert_eq!(retired(&effects), []);
    assert_eq!(desk.core.counts().held_kib, 1000);
}

#[test]
fn a_pool_in_use_keeps_its_zygote_and_loses_its_copies() {
    let (mut desk, zygote, copies) = Desk::with_copies(3, |limits| limits.budget_kib = 1000);
    let (_, worker) = desk.given();
    assert_eq!(worker, copies[2]);
    let readings = [(zygote, 400), (copies[0], 300), (copies[1], 301)];
    // Alone over the budget, it would go altogether; so another program shares it.
    let other = desk.start_pool(ProgramId(2), other_key(2));
    desk.zygote_is_ready(other);
    let less = [readings[0], (copies[0], 250), (copies[1], 250), (other, 200)];
    let effects = read(&mut desk, &less);
    assert_eq!(retired(&effects), [other]);
    let effects = read(&mut desk, &readings);
    assert_eq!(retired(&effects), copies[..2]);
    assert_eq!(desk.finished(worker, OK).len(), 1);
}

#[test]
fn a_program_over_the_budget_by_itself_runs_cold_for_a_while() {
    let (mut desk, zygote) = Desk::with_zygote(|limits| {
        limits.budget_kib = 1000;
        limits.calls_max = 1;
    });
    desk.given();
    let (waits, _) = desk.call();
    let effects = read(&mut desk, &[(zygote, 1001)]);
    assert_eq!(cold(&effects, waits), Some(ColdReason::Memory));
    assert_eq!(desk.core.pools(), []);
    desk.turn(desk.limits.memory_wait_us - 1);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Memory));
    desk.turn(1);
    let (call, effects) = desk.call();
    assert_eq!(cold(&effects, call), Some(ColdReason::Warming));
}

#[test]
fn a_copy_that_would_not_fit_is_not_made() {
    for (zygote_kib, made) in [(500, 1), (501, 0)] {
        let (mut desk, zygote, copies) = Desk::with_copies(2, |limits| limits.budget_kib = 1000);
        read(&mut desk, &[(zygote, zygote_kib), (copies[0], 250), (copies[1], 249)]);
        let (_, worker) = desk.given();
        assert_eq!(worker, copies[1]);
        desk.finished(worker, OK);
        desk.gone(worker, OK);
        read(&mut desk, &[(copies[0], 250)]);
        let effects = desk.turn(100_000);
        assert_eq!(forked(&effects, Pages::Paid).len(), made, "{zygote_kib}");
    }
}

#[test]
fn a_copy_counts_before_it_is_read() {
    let (mut desk, zygote, copies) = Desk::with_copies(3, |limits| limits.budget_kib = 1000);
    read(&mut desk, &[(zygote, 100), (copies[0], 225), (copies[1], 225), (copies[2], 225)]);
    for worker in [0; 3].map(|_| desk.given().1) {
        desk.finished(worker, OK);
        desk.gone(worker, OK);
    }
    read(&mut desk, &[(zygote, 400)]);
    // What its last one occupied fits twice.
    let mut made = forked(&desk.turn(100_000), Pages::Paid);
    assert_eq!(made.len(), 1);
    let copy = made.remove(0);
    assert_eq!(desk.pool().kib, 625);
    assert_eq!(forked(&desk.ready(copy), Pages::Paid).len(), 1);
    let second = hob_core::ids::WorkerId(copy.0 + 1);
    assert_eq!(forked(&desk.ready(second), Pages::Paid), []);
}
