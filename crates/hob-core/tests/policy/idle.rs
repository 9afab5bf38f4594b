//! What is given up when nothing is called.

use hob_core::event::{Effect, Pages};
use hob_core::outcome::ColdReason;

use crate::desk::{Ask, Desk, OK, cold, forked, retired};

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
