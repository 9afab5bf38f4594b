//! Asks and tells while the daemon stops, starts, restarts and is killed: none is refused, and none
//! that was given is given again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hob_tests::restarts::{handled, run, settle, until_more_is_handled, world};
use hob_tests::run::kill;
use hob_tests::world::binary;
use hob_tests::{End, World};
use rustix::process::Signal;

const MESSAGES: usize = 400;
/// How many messages meet a trouble at least, and how often it is done at least.
const MET_MIN: usize = 40;
const TROUBLES_MIN: usize = 4;

#[test]
fn a_restart_refuses_no_ask_and_no_tell_and_doubles_none() {
    let report = run(&binary(), MESSAGES, Duration::from_millis(300));
    assert_eq!(report.sent, MESSAGES);
    assert!(report.restarts > 1, "{report:?}");
    assert!(report.refused.is_empty(), "{report:#?}");
    assert!(report.lost.is_empty() && report.doubled.is_empty(), "{report:#?}");
}

/// Sends by the command, in turn, while `trouble` is done again and again; returns the payloads.
fn sent_meanwhile(world: &World, verbs: &[&str], mut trouble: impl FnMut()) -> BTreeSet<String> {
    let (over, times) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let goes_on =
                |number: &usize| *number < MET_MIN || times.load(Ordering::Relaxed) < TROUBLES_MIN;
            let sent = (0..MESSAGES).take_while(goes_on).map(|number| {
                let (verb, payload) = (verbs[number % verbs.len()], format!("e-{number}"));
                let sent = world.hob(&[verb, "note", &payload]).go();
                assert_eq!(sent.end, End::Code(0), "{verb} {payload}: {sent:?}");
                payload
            });
            let sent = sent.collect();
            over.store(true, Ordering::Relaxed);
            sent
        });
        while !over.load(Ordering::Relaxed) && !sender.is_finished() {
            trouble();
            times.fetch_add(1, Ordering::Relaxed);
        }
        let times = times.load(Ordering::Relaxed);
        assert!(times >= TROUBLES_MIN, "only {times} times");
        sender.join().expect("all are sent")
    })
}

#[test]
fn a_stop_and_a_start_refuse_none_either() {
    let world = world(binary());
    let sent = sent_meanwhile(&world, &["ask", "tell"], || {
        // Whoever sends may have started one this moment.
        let _ = world.hob(&["stop"]).go();
        let _ = world.hob(&["start"]).go();
        until_more_is_handled(&world);
    });
    world.hob(&["start"]).go().succeeded();
    settle(&world, &sent);
    let handled = handled(&world);
    assert_eq!(handled.keys().cloned().collect::<BTreeSet<_>>(), sent);
    assert!(handled.values().all(|ids| ids.len() == 1), "{handled:?}");
}

/// A sender whose daemon was killed before its word came sends the same tell again.
#[test]
fn a_tell_is_kept_once_however_often_its_daemon_is_killed() {
    let world = world(binary());
    world.hob(&["start"]).go().succeeded();
    let sent = sent_meanwhile(&world, &["tell"], || {
        if let Some(daemon) = world.daemon_if_any() {
            kill(daemon, Signal::KILL);
        }
        until_more_is_handled(&world);
    });
    world.hob(&["start"]).go().succeeded();
    settle(&world, &sent);
    let handled = handled(&world);
    assert_eq!(handled.keys().cloned().collect::<BTreeSet<_>>(), sent);
    for (payload, ids) in handled {
        let ids: BTreeSet<_> = ids.into_iter().collect();
        assert_eq!(ids.len(), 1, "{payload} was kept more than once");
    }
}

/// Where none can start, none is waited for; and one that stands still is not waited for any longer.
#[test]
fn a_message_waits_no_longer_than_its_time_says() {
    let world = world(binary());
    let below = world.file("file", "").join("run");
    for verb in ["ask", "tell"] {
        let sent = world.hob(&[verb, "note", "x"]).env("HOB_DIR", &below).go();
        assert_eq!(sent.end, End::Code(125), "{sent:?}");
        assert!(sent.complaint().contains("no daemon can be reached"), "{sent:?}");
    }
    world.hob(&["start"]).go().succeeded();
    let daemon = world.daemon();
    kill(daemon, Signal::STOP);
    let told = world.hob(&["tell", "note", "x", "--timeout", "200ms"]).go();
    assert_eq!(told.end, End::Code(124), "{told:?}");
    assert!(told.complaint().contains("the time passed"), "{told:?}");
    kill(daemon, Signal::CONT);
}
