//! Hooks whose interpreter hob keeps warm: the same ends and the same output, by the daemon.

use hob_tests::{End, Run, World, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::set_of;

/// How often a set may run until all of its hooks are warm.
const WARMING_MAX: usize = 200;

fn world(hooks: &[(&str, &str)]) -> World {
    let world = World::new();
    for (name, body) in hooks {
        world.executable(&format!("d/{name}"), format!("#!/usr/bin/env python3\n{body}\n"));
    }
    world
}

fn run(world: &World) -> Run {
    world.hob(&["hooks", "run", "d", "--json"])
}

/// Runs until every hook that ran was warm; each run must end so.
fn warm(world: &World, run: &Run, end: End) -> Value {
    for _ in 0..WARMING_MAX {
        let outcome = run.go();
        assert_eq!(outcome.end, end, "{outcome:?}");
        let set = set_of(&outcome);
        if super::each(&set, "way").iter().all(|way| way == "warm") {
            return set;
        }
    }
    panic!("never warm; {:?}", world.hob(&["status"]).go())
}

#[test]
fn python_hooks_run_warm_with_what_is_around_them() {
    let body = "import json, os, sys\nprint(json.dumps([sys.argv, os.environ['X'], os.getcwd(), sys.stdin.read()]))\nprint('err', file=sys.stderr)";
    let world = world(&[("1", body), ("2", body)]);
    let run = run(&world).env("X", "caller").args(&["--set", "X=mine"]);
    let set = warm(&world, &run, End::Code(0));
    let work = std::fs::canonicalize(world.path("work")).unwrap();
    for (at, name) in [(0, "1"), (1, "2")] {
        let hook = &set["hooks"][at];
        let want = format!("[[\"d/{name}\"], \"mine\", \"{}\", \"\"]\n", work.display());
        assert_eq!(super::wrote(hook, "stdout"), want);
        assert_eq!(super::wrote(hook, "stderr"), "err\n");
    }
    let plain = run.args(&["--isolation", "spawn"]).go();
    assert_eq!(super::each(&set_of(&plain), "reason"), ["spawn-asked", "spawn-asked"]);
}

#[test]
fn the_end_of_a_warm_hook_means_what_it_does_of_any() {
    let world =
        world(&[("1", "raise SystemExit(40)"), ("2", "raise SystemExit(3)"), ("3", "pass")]);
    let set = warm(&world, &run(&world), End::Code(1));
    assert_eq!(super::each(&set, "outcome"), ["warning", "error"]);
    assert_eq!(set["not_run"][0], "3");
}

#[test]
fn a_warm_hook_out_of_time_is_ended() {
    let body = "import os, time\nwhile os.environ.get('SLOW'): time.sleep(0.05)";
    let world = world(&[("1", body)]);
    let _ = warm(&world, &run(&world), End::Code(0));
    let outcome = run(&world).env("SLOW", "1").args(&["--kill-after", "2s"]).go();
    assert_eq!(outcome.end, End::Code(4), "{outcome:?}");
}

#[test]
fn without_a_daemon_a_hook_is_spawned_and_says_why() {
    let world = world(&[("1", "print('ran')")]);
    let outcome = run(&world).env("HOB_DIR", world.file("no-directory", "")).go();
    let set = set_of(&outcome);
    assert_eq!((outcome.end, super::wrote(&set["hooks"][0], "stdout")), (End::Code(0), "ran\n"));
    assert_eq!(super::each(&set, "reason"), ["no-daemon"]);
}

#[test]
fn a_daemon_that_is_killed_under_a_hook_loses_it_and_nothing_runs_again() {
    let body = "import os, time\nopen('count', 'a').write('x')\nprint('ready', flush=True)\nwhile os.environ.get('SLOW'): time.sleep(0.05)";
    let world = world(&[("1", body), ("2", "pass")]);
    let _ = warm(&world, &run(&world), End::Code(0));
    std::fs::remove_file(world.path("work/count")).unwrap();
    let running = world.hob(&["hooks", "run", "d"]).env("SLOW", "1").start();
    running.expect("ready\n");
    let status = world.hob(&["status", "--json"]).go();
    let status: Value = serde_json::from_slice(&status.out).unwrap();
    let pid = status["daemon"]["pid"]
        .as_i64()
        .or(status["pid"].as_i64())
        .unwrap_or_else(|| panic!("{status}"));
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(5), "{outcome:?}");
    assert!(hob_tests::bytes::contains(&outcome.err, b"lost"), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(world.path("work/count")).unwrap(), "x"); // The next daemon clears away what was left of that one.
    world.hob(&["start"]).go().succeeded();
}

#[test]
fn a_daemon_that_stands_still_holds_up_no_hook_and_no_reader() {
    let world = world(&[("1", "print('ran')")]);
    let run = run(&world);
    let _ = warm(&world, &run, End::Code(0));
    let daemon = world.daemon();
    hob_tests::run::kill(daemon, Signal::STOP);
    let reader = run.under(&["bash", "-c", "\"$@\" | cat", "bash"]).start();
    let outcome = reader.finish_if_within(wait::LONG);
    let stands = hob_tests::run::state(daemon);
    hob_tests::run::kill(daemon, Signal::CONT);
    let outcome = outcome.expect("the set ends while the daemon stands still");
    assert_eq!((outcome.end, stands), (End::Code(0), Some('T')), "{outcome:?}");
    assert_eq!(super::wrote(&set_of(&outcome)["hooks"][0], "stdout"), "ran\n");
}

#[test]
fn hooks_of_many_targets_are_warm_too_and_each_run_has_one_receipt() {
    let world = world(&[("1", "import os\nprint(os.environ['NAME'])")]);
    world.executable("d/2", "#!/bin/sh\nexit 0\n");
    world.file("targets.ndjson", "{\"NAME\":\"a\"}\n{\"NAME\":\"b\"}\n{\"NAME\":\"c\"}\n");
    let words = ["hooks", "run", "d", "--for-each", "targets.ndjson", "--jobs", "1", "--json"];
    let receipts = || {
        let log = world.hob(&["log", "--json", "-n", "200"]).go();
        let text = String::from_utf8_lossy(&log.out).into_owned();
        let receipts = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        receipts.filter(|receipt| receipt["reason"] == "hooks").collect::<Vec<_>>()
    };
    for run in 1..=WARMING_MAX {
        let outcome = world.hob(&words).go();
        assert_eq!(outcome.end, End::Code(0), "{outcome:?}");
        // Whoever asks for the last receipt means the run's, though those of its hooks come late.
        let last = world.hob(&["last", "--json"]).go();
        let last: Value = serde_json::from_slice(&last.out).unwrap();
        assert_eq!(last["reason"], "hooks", "{last}");
        let receipts = receipts();
        assert_eq!(receipts.len(), run);
        let newest = receipts.last().unwrap();
        let hooks = &newest["hooks"];
        let count = |way: &str| hooks[way].as_u64().unwrap();
        assert_eq!((&hooks["targets"], &hooks["failed"]), (&3.into(), &0.into()));
        assert_eq!(count("spawned") + count("prestarted") + count("forked") + count("warm"), 6);
        assert_eq!(
            (&newest["program"]["name"], &newest["outcome"]["code"]),
            (&"d".into(), &0.into())
        );
        if count("warm") == 3 {
            return;
        }
    }
    panic!("never warm; {:?}", world.hob(&["status"]).go())
}
