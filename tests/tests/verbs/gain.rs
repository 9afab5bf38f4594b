//! What being warm has gained and lost is kept, and shown; what is slower warm goes cold.

use std::time::Duration;

use hob_tests::{World, leftovers, wait};
use serde_json::Value;

fn gain(world: &World) -> Value {
    let shown = world.hob(&["gain", "--json"]).go();
    shown.succeeded();
    serde_json::from_slice(&shown.out).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What the sums on disk say, read without asking anybody to write them.
fn warm_on_disk(world: &World) -> u64 {
    let files = leftovers::files(&world.path("state/hob/gain"));
    let lines = files.iter().filter(|file| file.extension().is_some_and(|end| end == "ndjson"));
    let text: String = lines.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    text.lines().map(|line| number(&serde_json::from_str::<Value>(line).unwrap()["warm"])).sum()
}

#[test]
fn the_gain_is_the_sum_of_the_receipts() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    for _ in 0..10 {
        world.hob(&["run", "hello.py"]).go().succeeded();
    }
    world.hob(&["run", "--cold", "hello.py"]).go().succeeded();
    for _ in 0..5 {
        world.hob(&["run", "hello.py"]).go().succeeded();
    }
    world.hob(&["run", "true"]).go().succeeded();
    let gain = gain(&world);
    let records = world.records(400);
    let of = |warm: bool| records.iter().filter(move |record| record["warm"] == warm);
    assert_eq!(gain["schema"], "hob.gain/1");
    assert_eq!(number(&gain["total"]["warm"]), of(true).count() as u64);
    let cold = number(&gain["total"]["cold"]) + number(&gain["total"]["fallback"]);
    // A caller that a daemon found gone, because it was late, has run the program by itself.
    let ran_cold = of(false).filter(|record| record["reason"] != "caller-left");
    assert_eq!(cold, ran_cold.count() as u64);
    let part = |record: &Value, name: &str| record["gain"][name].as_u64().unwrap_or(0);
    let sum = |name: &str| of(true).map(|record| part(record, name)).sum::<u64>();
    for name in ["saved_us", "most_us", "lost_us"] {
        assert_eq!(number(&gain["total"][name]), sum(name), "{name}");
    }
    assert!(sum("saved_us") > 0, "nothing was saved: {records:?}");
    let programs = gain["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2, "{gain}");
    assert_eq!(programs[0]["name"], "hello.py");
    assert_eq!(gain["days"].as_array().unwrap().last().unwrap()["programs"][0]["name"], "hello.py");
    let text = world.hob(&["gain"]).go().text();
    assert!(text.contains("hello.py") && text.lines().all(|line| line.len() <= 80), "{text}");
}

/// It waits as long as a file says, and as long as its argument does.
const WAITS: &str = "\
import sys, time
time.sleep(float(open('pause').read()) + float(sys.argv[1]))
print('waited')
";

/// The newest warm call of these words, the daemon having nothing else to do.
fn gain_of(world: &World, words: &[&str]) -> Value {
    wait::until("a call that can be compared", || {
        let call = world.warmed(words);
        let record = world.record(call.pid);
        record["gain"].is_object().then_some(record)
    })
}

#[test]
fn what_is_saved_is_start_up_and_never_the_work_of_another_call() {
    let world = World::started();
    world.file("waits.py", WAITS);
    world.file("pause", "0");
    // A cold run of three seconds, and warm calls of none: nothing is sure of them.
    world.hob(&["run", "--cold", "waits.py", "3"]).go().succeeded();
    let other = gain_of(&world, &["run", "waits.py", "0"]);
    let gain = &other["gain"];
    // Only where the machine was slow enough for a second cold run, that one is a measure.
    assert!(number(&gain["saved_us"]) < 1_000_000, "{other}");
    assert!(number(&gain["most_us"]) < 1_000_000, "{other}");
    // The same arguments, but the cold run waited: that is no start-up either.
    world.file("pause", "2");
    let cold = wait::until("a cold run that had the machine to itself", || {
        let outcome = world.hob(&["run", "--cold", "waits.py", "0.001"]).go();
        let record = world.record(outcome.pid);
        record["usage"].is_object().then_some(record)
    });
    world.file("pause", "0");
    let same = gain_of(&world, &["run", "waits.py", "0.001"]);
    let usage = &cold["usage"];
    let worked = number(&usage["user_us"]) + number(&usage["system_us"]);
    assert!(number(&same["gain"]["cold_runs"]) >= 1, "{same}");
    assert!(number(&same["gain"]["saved_us"]) <= worked, "{same} against {cold}");
    let shown = world.hob(&["last"]).go().text();
    assert!(shown.contains("of start-up"), "{shown}");
    let text = world.hob(&["gain"]).go().text();
    assert!(text.contains("It rests on"), "{text}");
}

#[test]
fn calls_with_others_beside_them_count_for_nothing() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.file("waits.py", "import sys\nprint('begun', flush=True)\nsys.stdin.read()\n");
    world.warmed(&["run", "hello.py"]);
    world.hob(&["run", "--cold", "hello.py"]).go().succeeded();
    let mut running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
    running.expect("begun\n");
    let beside = world.warmed(&["run", "hello.py"]);
    let record = world.record(beside.pid);
    assert!(record["gain"].is_null(), "{record}");
    drop(running.take_stdin());
    let others = running.finish();
    let record = world.record(others.pid);
    assert!(record["gain"].is_null(), "{record}");
    let alone = gain_of(&world, &["run", "hello.py"]);
    assert!(number(&alone["gain"]["cold_runs"]) >= 1, "{alone}");
}

#[test]
fn the_sums_and_the_cold_time_outlive_every_death_of_the_daemon() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    for _ in 0..6 {
        world.warmed(&["run", "hello.py"]);
    }
    // Nobody asks for it: the sums get there by themselves.
    wait::until("sums on disk", || (warm_on_disk(&world) >= 6).then_some(()));
    let before = gain(&world);
    let cold_us = before["programs"][0]["cold_us"].clone();
    let daemon = world.daemon();
    world.run(&["kill", "-9", &daemon.to_string()]).go().succeeded();
    wait::until("the daemon's end", || world.daemon_if_any().is_none().then_some(()));
    let after = gain(&world);
    assert_eq!(after["total"], before["total"]);
    world.hob(&["start"]).go().succeeded();
    let first = world.hob(&["run", "hello.py"]).go();
    let record = world.record(first.pid);
    assert_eq!((&record["warm"], &record["cold_us"]), (&false.into(), &cold_us), "{record}");
    let again = world.warmed(&["run", "hello.py"]);
    assert!(world.record(again.pid)["cold_us"].as_u64().is_some());
}

#[test]
fn calls_that_no_daemon_took_count_too() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let odd = world.in_time(
        &world
            .hob(&["run", "hello.py"])
            .after("for n in {10..74}; do eval \"exec $n</dev/null\"; done"),
    );
    assert_eq!(world.reason(odd.pid), "descriptors");
    let gain = gain(&world);
    assert!(number(&gain["programs"][0]["fallback"]) >= 1, "{gain}");
    assert!(number(&gain["total"]["reasons"]["descriptors"]) >= 1, "{gain}");
}

#[test]
fn bad_options_of_gain_get_one_line_that_names_them() {
    let world = World::new();
    for words in [&["gain", "--days", "0"][..], &["gain", "--days", "93"], &["gain", "black"]] {
        let outcome = world.hob(words).go();
        assert_eq!(outcome.end, hob_tests::End::Code(2), "{words:?}: {outcome:?}");
    }
    let empty = world.hob(&["gain"]).go();
    empty.succeeded();
    assert!(empty.text().starts_with("no calls since "), "{empty:?}");
}

/// Dozens of calls that take their time, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn a_program_that_is_slower_warm_goes_cold_by_itself_and_is_tried_again() {
    let world = World::new();
    world.hob(&["start"]).env("HOB_SLOWER_RETRY_S", "6").go().succeeded();
    // Whoever was forked takes longer.
    let tells =
        "import os\nFORKED = []\nos.register_at_fork(after_in_child=lambda: FORKED.append(1))\n";
    world.file("tells.py", tells);
    world.file(
        "scan.py",
        "import tells, time\nif tells.FORKED: time.sleep(0.3)\nprint('scanned')\n",
    );
    let run = world.hob(&["run", "scan.py"]);
    world.warm(&run, |_| {});
    world.hob(&["run", "--cold", "scan.py"]).go().succeeded();
    let reason = |outcome: &hob_tests::Outcome| world.reason(outcome.pid);
    let mut warm = 0;
    let slower = wait::look(PATIENCE, || {
        let outcome = run.go();
        assert_eq!(outcome.text(), "scanned\n");
        let record = world.record(outcome.pid);
        warm += u64::from(record["warm"] == true);
        (record["reason"] == "slower-warm").then_some(outcome)
    });
    let slower = slower.expect("a call that is cold because it was slower warm");
    assert!(warm + 1 >= 20, "after {warm} warm calls");
    assert_eq!(reason(&slower), "slower-warm");
    // A few cold runs decide; then its pool is given up.
    let dropped = wait::look(PATIENCE, || {
        run.go().succeeded();
        let status = world.status();
        let mut pools = status["pools"].as_array().unwrap().iter();
        pools.all(|pool| pool["program"] != "scan.py").then_some(())
    });
    dropped.expect("the end of its pool");
    assert_eq!(reason(&run.go()), "slower-warm");
    let shown = gain(&world);
    assert_eq!(shown["programs"][0]["slower_warm"], true, "{shown}");
    assert!(number(&shown["programs"][0]["lost_us"]) > 0, "{shown}");
    assert!(number(&shown["programs"][0]["reasons"]["slower-warm"]) >= 5, "{shown}");
    let text = world.hob(&["gain"]).go().text();
    assert!(text.contains("slower warm"), "{text}");
    // It is verified warm all the same.
    let words = ["verify", "--worlds", "none", "-n", "1", "--json", "scan.py"];
    let verdict = world.hob(&words).go();
    let verdict: Value = serde_json::from_slice(&verdict.out).unwrap();
    assert_eq!((&verdict["verdict"], &verdict["runs"]["warm"]), (&"same".into(), &1.into()));
    // Whoever asks for an isolation gets it; and after a while it is warm without being asked.
    world.warm(&world.hob(&["run", "--isolation", "fork", "scan.py"]), |_| {});
    let warm = wait::look(PATIENCE, || {
        let outcome = run.go();
        (hob_tests::is_warm(&world.record(outcome.pid))).then_some(())
    });
    warm.expect("another try");
}
