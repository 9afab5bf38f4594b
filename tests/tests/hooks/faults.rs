//! What goes wrong with hooks: a clear line each, nothing lost, nothing left behind.

use std::os::unix::fs::PermissionsExt;

use hob_tests::bytes::contains;
use hob_tests::{End, leftovers, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::{Hooks, each, wrote};

#[test]
fn a_hook_that_cannot_be_started_is_a_system_error_with_a_line() {
    let check = |text: &[u8], trouble: &str, line: &str| {
        let hooks = Hooks::of(&[("2", ":")]);
        hooks.world.executable("d/1", text);
        let (outcome, set) = hooks.json(&[]);
        let hook = &set["hooks"][0];
        assert_eq!((outcome.end, &hook["trouble"]), (End::Code(5), &trouble.into()), "{set}");
        assert_eq!((&hook["outcome"], &set["not_run"][0]), (&"system-error".into(), &"2".into()));
        let plain = hooks.run(&[]).go();
        assert!(contains(&plain.err, line.as_bytes()), "{plain:?}");
    };
    check(b"#!/no/such/interpreter\n", "no-interpreter", "1: system error: could not be started");
    check(b"echo no first line\n", "format", "a script begins with \"#!\"");
    check(b"", "format", "1: system error");
    check(b"#!/etc/passwd\n", "permission", "1: system error");
}

#[test]
fn with_others_at_work_a_hook_that_cannot_be_started_says_the_same() {
    for text in [&b"#!/no/such/interpreter\n"[..], b"echo no first line\n", b"#!/etc/passwd\n"] {
        let hooks = four_at_once();
        hooks.world.executable("d/2", text);
        let plain = |mut hook: serde_json::Value| {
            for time in ["at_us", "wall_us"] {
                assert!(hook.as_object_mut().unwrap().remove(time).is_some(), "{hook}");
            }
            hook
        };
        let records: Vec<_> = at_once(&hooks, End::Code(5))
            .into_iter()
            .map(|set| {
                assert_eq!(set["not_run"], serde_json::json!(["3"]), "{set}");
                plain(set["hooks"][1].clone())
            })
            .collect();
        std::fs::remove_file(hooks.world.path("work/d/1")).unwrap();
        let (_, alone) = hooks.json(&["--isolation", "spawn"]);
        assert_eq!(records, vec![plain(alone["hooks"][0].clone()); 4]);
    }
}

#[test]
fn with_others_at_work_a_busy_file_is_tried_again_until_it_is_free() {
    use rustix::fs::inotify;

    let hooks = four_at_once();
    let path = hooks.hook("2", "echo ran");
    let held = std::fs::File::options().append(true).open(&path).unwrap();
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, &path, inotify::WatchFlags::OPEN).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each try opens it: one of the four has been tried three times.
            let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
            let mut tries = inotify::Reader::new(&watch, &mut buffer);
            for _ in 0..12 {
                tries.next().unwrap();
            }
            drop(held);
        });
        let mut retries = 0;
        for set in at_once(&hooks, End::Code(0)) {
            assert_eq!(each(&set, "outcome"), ["ok", "ok", "ok"], "{set}");
            assert_eq!(wrote(&set["hooks"][1], "stdout"), "ran\n", "{set}");
            retries += set["hooks"][1]["retries"].as_u64().unwrap();
        }
        assert!(retries > 0);
    });
}

/// Hooks `1` and `3`: the first waits until it runs for all four targets.
fn four_at_once() -> Hooks {
    let wait = "echo >>begun; until [ \"$(wc -l <begun)\" -ge 4 ]; do sleep 0.01; done";
    let hooks = Hooks::of(&[("1", wait), ("3", ":")]);
    hooks.world.file("t.csv", "HOST\na\nb\nc\nd\n");
    hooks
}

/// Each hook spawned for four targets at once; their records.
fn at_once(hooks: &Hooks, end: End) -> Vec<serde_json::Value> {
    let words =
        ["--isolation", "spawn", "--for-each", "t.csv", "--jobs", "4", "--report", "r.json"];
    let outcome = hooks.run(&words).go();
    assert_eq!(outcome.end, end, "{outcome:?}");
    let report: serde_json::Value = serde_json::from_str(&hooks.text("r.json")).unwrap();
    report["targets"].as_array().unwrap().iter().map(|target| target["set"].clone()).collect()
}

#[test]
fn a_hook_that_an_earlier_one_deletes_is_a_system_error() {
    let hooks = Hooks::of(&[("1", "rm d/2"), ("2", ":"), ("3", ":")]);
    let (outcome, set) = hooks.json(&[]);
    assert_eq!(outcome.end, End::Code(5), "{set}");
    assert_eq!(each(&set, "outcome"), ["ok", "system-error"]);
    assert_eq!(set["hooks"][1]["trouble"], "gone");
}

#[test]
fn files_that_appear_while_a_set_runs_do_not_join_it() {
    let hooks = Hooks::of(&[("1", "cp d/1 d/2; echo x"), ("3", ":")]);
    let (_, set) = hooks.json(&[]);
    assert_eq!(each(&set, "name"), ["1", "3"]);
}

#[test]
fn a_busy_file_is_tried_again_until_it_is_free() {
    use rustix::fs::inotify;

    let hooks = Hooks::of(&[("1", ":"), ("2", "echo ran")]);
    let path = hooks.world.path("work/d/2");
    let held = std::fs::File::options().append(true).open(&path).unwrap();
    // Each try opens it. A way that is asked first does so too, so that some more are waited for.
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, &path, inotify::WatchFlags::OPEN).unwrap();
    let running = hooks.run(&["--json"]).start();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut tries = inotify::Reader::new(&watch, &mut buffer);
    for _ in 0..6 {
        tries.next().unwrap();
    }
    drop(held);
    let outcome = running.finish();
    let json: serde_json::Value = serde_json::from_slice(&outcome.out).unwrap();
    let hook = &json["set"]["hooks"][1];
    assert_eq!((&hook["outcome"], wrote(hook, "stdout")), (&"ok".into(), "ran\n"), "{json}");
    assert!(hook["retries"].as_u64().unwrap() > 0, "{json}");
}

#[test]
fn a_background_process_is_reported_and_not_waited_for() {
    let hooks = Hooks::of(&[("1", "sleep 600 & echo $! >child; echo out"), ("2", "echo next")]);
    let outcome = hooks.run(&[]).go();
    outcome.succeeded();
    assert_eq!(outcome.text(), "out\nnext\n");
    assert!(contains(&outcome.err, b"1: it left a process behind"), "{outcome:?}");
    let child: i32 = hooks.text("child").trim().parse().unwrap();
    assert!(!wait::ended(child.unsigned_abs(), std::time::Duration::ZERO), "it is the user's");
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, Signal::KILL).unwrap();
}

#[test]
fn a_gigabyte_of_output_is_counted_and_not_kept() {
    let hooks = Hooks::of(&[("1", "head -c 1073741824 /dev/zero; echo; echo end")]);
    let run = hooks.run(&["--json"]).under(&["prlimit", "--as=400000000"]);
    let outcome = run.go();
    let set = super::set_of(&outcome);
    let stdout = &set["hooks"][0]["stdout"];
    assert_eq!(
        (set["outcome"].as_str(), &stdout["total"]),
        (Some("ok"), &1_073_741_829_u64.into())
    );
    assert!(stdout["tail"].as_str().unwrap().ends_with("\nend\n"));
}

#[test]
fn hooks_that_change_themselves_or_remove_their_directory_run_as_they_were_listed() {
    let hooks = Hooks::of(&[
        ("1", "printf '#!/bin/sh\\necho rewritten\\n' >new; chmod +x new; mv new d/2"),
        ("2", "echo first"),
        ("3", "rm -rf d; echo gone"),
        ("4", ":"),
    ]);
    let (outcome, set) = hooks.json(&[]);
    assert_eq!(each(&set, "outcome"), ["ok", "ok", "ok", "system-error"], "{set}");
    // What an earlier hook did is seen by a later one, and said.
    assert_eq!(wrote(&set["hooks"][1], "stdout"), "rewritten\n", "{set}");
    assert_eq!(each(&set, "changed")[..3], ["false", "true", "false"]);
    assert_eq!(outcome.end, End::Code(5));
}

#[test]
fn a_hook_that_loses_its_right_to_run_is_a_system_error() {
    let hooks = Hooks::of(&[("1", "chmod 644 d/2"), ("2", ":")]);
    let (_, set) = hooks.json(&[]);
    assert_eq!(set["hooks"][1]["trouble"], "permission", "{set}");
}

#[test]
fn a_hook_that_is_killed_says_by_what() {
    let hooks = Hooks::of(&[("1", "kill -SEGV $$"), ("2", ":")]);
    let outcome = hooks.run(&[]).go();
    assert_eq!(outcome.end, End::Code(1));
    assert!(contains(&outcome.err, b"1: error (ended by SIGSEGV)"), "{outcome:?}");
    assert!(contains(&outcome.err, b"not run: 2"), "{outcome:?}");
}

#[test]
fn a_signal_to_hob_ends_the_hook_and_hob_dies_by_it() {
    let hooks = Hooks::of(&[
        ("1", "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done"),
        ("2", ":"),
    ]);
    let running = hooks.run(&[]).start();
    running.expect("ready\n");
    running.signal(Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(2), "{outcome:?}");
    assert_eq!(outcome.text(), "ready\nasked\n");
    assert!(contains(&outcome.err, b"1: cancelled"), "{outcome:?}");
    assert!(contains(&outcome.err, b"not run: 2"), "{outcome:?}");
}

#[test]
fn a_second_signal_kills_what_does_not_heed_the_first() {
    let hooks =
        Hooks::of(&[("1", "trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done")]);
    let running = hooks.run(&[]).start();
    running.expect("ready\n");
    running.signal(Signal::TERM);
    running.expect("no\n");
    running.signal(Signal::TERM);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(15), "{outcome:?}");
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let hooks = Hooks::of(&[("1", "echo ready; while [ ! -e go ]; do sleep 0.02; done; echo end")]);
    let running = hooks.run(&[]).after("trap '' HUP").start();
    running.expect("ready\n");
    running.signal(Signal::HUP);
    hooks.world.file("go", "");
    let outcome = running.finish();
    outcome.succeeded();
    assert_eq!(outcome.text(), "ready\nend\n");
}

#[test]
fn a_killed_hob_leaves_no_hook_behind_nor_one_that_is_held() {
    let hooks =
        Hooks::of(&[("1", "echo $$ >pid; echo ready; exec sleep 600"), ("2", ":"), ("3", ":")]);
    let running = hooks.run(&[]).start();
    running.expect("ready\n");
    running.signal(Signal::KILL);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(9));
    wait::until("nothing of the run to be left", || {
        leftovers::processes(&hooks.world.path("work")).is_empty().then_some(())
    });
}

#[test]
fn a_closed_stdin_and_a_reader_that_leaves_are_no_harm() {
    let hooks = Hooks::of(&[("1", "cat; echo one"), ("2", "echo two >>done")]);
    hooks.run(&[]).after("exec 0<&-").go().succeeded();
    let outcome = hooks.run(&[]).after("exec 1>&-").go();
    assert_ne!(outcome.end, End::Code(0), "what cannot be passed on is said: {outcome:?}");
    assert_eq!(hooks.text("done"), "two\ntwo\n", "and every hook ran");
}

#[test]
fn an_unreadable_directory_is_said() {
    let hooks = Hooks::of(&[("1", ":")]);
    let dir = hooks.world.path("work/d");
    let check = |what: &str| {
        let outcome = hooks.run(&[]).go();
        assert_eq!(outcome.end, End::Code(5), "{what}: {outcome:?}");
        assert!(contains(&outcome.err, b"cannot be listed"), "{what}: {outcome:?}");
    };
    if !rustix::process::geteuid().is_root() {
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o0)).unwrap();
        check("without rights");
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    }
    // What root cannot read either: a name that leads to itself.
    std::fs::rename(&dir, hooks.world.path("work/elsewhere")).unwrap();
    std::os::unix::fs::symlink("d", &dir).unwrap();
    check("a loop of names");
}

#[test]
fn what_hob_itself_cannot_do_is_not_taken_for_a_hooks_error() {
    let hooks = Hooks::of(&[("1", "echo said >> ran; echo said")]);
    hooks.world.file("t.csv", "HOST\na\n");
    let full = hooks.run(&[]).stdout("/dev/full").go();
    assert_eq!(full.end, End::Code(5), "{full:?}");
    assert!(contains(&full.err, b"cannot pass on what hooks write"), "{full:?}");
    let words = ["--for-each", "t.csv", "--report", "r.json"];
    let summary = hooks.run(&words).stdout("/dev/full").go();
    assert_eq!(summary.end, End::Code(5), "{summary:?}");
    let report: Value = serde_json::from_str(&hooks.text("r.json")).unwrap();
    assert_eq!(report["ended"], 1, "a summary that nobody can read is no reason to have no report");
    let ran = hooks.text("ran");
    for (words, why) in [
        (&["--report", "not/there.json"][..], "--report not/there.json: No such file"),
        (&["--resume"], "--resume: there is no resume file"),
    ] {
        let run = hooks.run(&["--for-each", "t.csv"]).args(words);
        let outcome = run.without("HOME").without("XDG_STATE_HOME").go();
        assert_eq!(outcome.end, End::Code(5), "{outcome:?}");
        assert!(outcome.complaint().contains(why), "{outcome:?}");
    }
    assert_eq!(hooks.text("ran"), ran, "nothing was run");
}
