//! `hob warm`: what would perform a program is made ready, and nothing is performed.

use hob_tests::run::{kill, state};
use hob_tests::{End, World, wait};
use rustix::process::Signal;
use serde_json::Value;

/// A script that leaves a line for each run.
const COUNTS: &str = "import json\nopen('ran', 'a').write('x')\nprint('ran')\n";

fn told(outcome: &hob_tests::Outcome) -> Value {
    serde_json::from_slice(&outcome.out).unwrap_or_else(|why| panic!("{why}: {outcome:?}"))
}

fn runs(world: &World) -> usize {
    std::fs::read(world.path("work/ran")).map_or(0, |bytes| bytes.len())
}

#[test]
fn the_next_call_finds_a_process_that_waits_and_nothing_was_run() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    world.warmed(&["run", "counts.py"]);
    let before = runs(&world);
    let told = told(&world.hob(&["warm", "--json", "--isolation", "standby", "counts.py"]).go());
    assert_eq!(
        (&told["ready"], &told["reason"], &told["program"]),
        (&true.into(), &Value::Null, &"counts.py".into()),
        "{told}"
    );
    assert_eq!(runs(&world), before);
    let run = world.hob(&["run", "--isolation", "standby", "counts.py"]).go();
    run.succeeded();
    assert_eq!(world.reason(run.pid), "standby-ready");
    assert_eq!(runs(&world), before + 1);
    // It has left no receipt: there is one for each run.
    assert_eq!(world.records(100).len(), before + 1);
}

#[test]
fn what_stays_cold_says_why_and_is_not_run() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    let cold = world.hob(&["warm", "counts.py"]).go();
    assert_eq!(cold.end, End::Code(1), "{cold:?}");
    assert!(cold.complaint().contains("(learning: "), "{cold:?}");
    assert_eq!(runs(&world), 0);
    // The learning run is still the first call's.
    let first = world.hob(&["run", "counts.py"]).go();
    assert_eq!(world.reason(first.pid), "learning");

    let exec = world.hob(&["warm", "true"]).go();
    assert!(exec.end == End::Code(1) && exec.complaint().contains("(not-hosted: "), "{exec:?}");
    let none = world.hob(&["warm", "no-such-program"]).go();
    assert!(none.end == End::Code(127) && none.complaint().contains("not found"), "{none:?}");
    for words in
        [&["warm"][..], &["warm", "--ahead", "0", "x"], &["warm", "--timeout", "soon", "x"]]
    {
        assert_eq!(world.hob(words).go().end, End::Code(2), "{words:?}");
    }
}

#[test]
fn who_waits_for_a_daemon_that_stands_still_leaves_in_time_and_is_not_owed_anything() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    world.warmed(&["run", "counts.py"]);
    let daemon = world.daemon();
    kill(daemon, Signal::STOP);
    wait::until("the daemon is stopped", || (state(daemon) == Some('T')).then_some(()));
    let late = world.hob(&["warm", "--timeout", "300ms", "counts.py"]).go();
    kill(daemon, Signal::CONT);
    assert_eq!(late.end, End::Code(124), "{late:?}");
    assert!(late.complaint().contains("not ready after"), "{late:?}");
    let status = world.status();
    assert_eq!(status["calls"]["running"], 0, "{status}");
    world.hob(&["warm", "counts.py"]).go().succeeded();
}
