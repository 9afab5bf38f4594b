//! What `hob verify` finds, and does not make up.

use std::os::unix::fs::PermissionsExt;

use hob_tests::bytes::contains;
use hob_tests::run::read;
use hob_tests::{End, Outcome, World, leftovers, wait};
use rustix::process::Signal;
use serde_json::Value;

/// A warm program has two descriptors more, which are hob's.
const COUNTS: &str = "import os\nprint('some text')\nprint(len(os.listdir('/proc/self/fd')))\n";

fn json(outcome: &Outcome) -> Value {
    serde_json::from_slice(&outcome.out).unwrap_or_else(|_| panic!("no JSON: {outcome:?}"))
}

fn verify(world: &World, words: &[&str]) -> (End, Value) {
    let outcome = world.hob(&[&["verify", "--worlds", "none", "--json"], words].concat()).go();
    let value = json(&outcome);
    assert_eq!(value["schema"], "hob.verify/1");
    (outcome.end, value)
}

fn aspect<'a>(verdict: &'a Value, name: &str) -> &'a Value {
    let aspects = verdict["aspects"].as_array().unwrap();
    let found = aspects.iter().find(|aspect| aspect["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {verdict}"))
}

#[test]
fn a_plain_program_is_the_same_and_its_verdict_holds_until_it_is_edited() {
    let world = World::started();
    world.file("hello.py", "import json, sys\nprint('hello', sys.argv)\nsys.exit(3)\n");
    let (end, verdict) = verify(&world, &["hello.py", "--", "--version"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(0), &"same".into()), "{verdict}");
    for name in ["stdout", "stderr", "exit", "files", "environment", "descriptors", "process"] {
        assert_eq!(aspect(&verdict, name)["verdict"], "same", "{verdict}");
    }
    assert_eq!(aspect(&verdict, "exit")["note"], "exited 3");
    let ours = aspect(&verdict, "descriptors")["note"].as_str().unwrap();
    assert!(ours.starts_with("hob's own: "), "{ours}");
    assert_eq!((&verdict["runs"]["cold"], &verdict["runs"]["warm"]), (&3.into(), &3.into()));
    assert_eq!(verdict["program"]["arguments"], 1);
    // The same id as in receipts.
    let outcome = world.hob(&["run", "hello.py"]).go();
    assert_eq!(world.record(outcome.pid)["program"]["id"], verdict["program"]["id"]);

    let listed = || json(&world.hob(&["verify", "--list", "--json"]).go());
    assert_eq!((&listed()["holds"], &listed()["verdict"]), (&true.into(), &"same".into()));
    world.file("hello.py", "print('other')\n");
    assert_eq!(listed()["holds"], false);
    let list = world.hob(&["verify", "--list"]).go().text();
    assert!(list.contains("hello.py") && list.contains("the script has changed"), "{list}");
}

/// A proof is no use: what it called is counted nowhere, listed only if asked for, and kept warm for
/// seconds.
#[test]
fn a_proof_leaves_no_trace_among_the_calls_that_were_used() {
    let world = World::started();
    world.file("plain.py", "import json\nprint(json.dumps(1))\n");
    let used = world.warmed(&["run", "plain.py"]);
    let before = (world.records(400), world.pools().len(), gained(&world));
    let worlds = "environment-added,directory,home-empty,link-moved";
    world.hob(&["verify", "--worlds", worlds, "plain.py"]).go_long().succeeded();
    assert_eq!(world.records(400), before.0);
    assert_eq!(gained(&world), before.2);
    assert_eq!(json(&world.hob(&["last", "--json"]).go())["caller_pid"], used.pid);
    let all = world.hob(&["log", "-n", "400", "--json", "--purpose", "all"]).go().text();
    let made = all.lines().filter(|line| line.contains("\"purpose\":\"verify\"")).count();
    assert!(made >= 15, "{all}");
    let only = world.hob(&["log", "-n", "400", "--json", "--purpose", "verify"]).go().text();
    assert_eq!(only.lines().count(), made);
    let log = world.hob(&["log"]).go().text();
    assert!(
        log.contains(&format!("left out: {made} calls that hob made to compare them")),
        "{log}"
    );
    let one = || (world.pools().len() <= before.1).then_some(());
    wait::until("the pools of the proof are given up", one);
    world.warmed(&["run", "plain.py"]);
}

fn gained(world: &World) -> Value {
    json(&world.hob(&["gain", "--json"]).go())["total"].clone()
}

/// hob's first call makes its places, here below the directory that is compared.
#[test]
fn what_hob_makes_in_a_fresh_home_is_no_file_of_the_programs() {
    for text in ["print(1)\n", "import json\nprint(json.dumps(2))\n", "import sys\nsys.exit(3)\n"] {
        let world = World::new();
        world.file("../home/plain.py", text);
        let run =
            world.hob(&["verify", "--worlds", "time,environment-usual", "--json", "plain.py"]);
        let state = world.path("home/.local/state");
        let outcome = run.within(world.path("home")).env("XDG_STATE_HOME", state).go();
        let verdict = json(&outcome);
        assert_eq!(verdict["verdict"], "same", "{text}: {verdict}");
        let files = aspect(&verdict, "files");
        assert_eq!((&files["verdict"], &files["note"]), (&"same".into(), &"none written".into()));
        assert!(world.path("home/.local/state/hob").exists(), "it was made below it");
    }
}

#[test]
fn a_program_that_is_otherwise_warm_differs_and_the_first_difference_is_shown() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    let (end, verdict) = verify(&world, &["counts.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(1), &"differs".into()), "{verdict}");
    let diff = &aspect(&verdict, "stdout")["diff"];
    assert_eq!(diff, &serde_json::json!(["@@ line 2 @@", " some text", "-4", "+6"]));
    assert_eq!(aspect(&verdict, "environment")["verdict"], "same");
    let shown = world.hob(&["verify", "--worlds", "none", "counts.py"]).go();
    assert_eq!(shown.end, End::Code(1));
    let text = shown.text();
    assert!(text.starts_with("counts.py: differs\n") && text.contains("\n    +6\n"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn what_varies_by_itself_is_left_out_and_what_does_not_is_compared() {
    let world = World::started();
    world.file("pid.py", "import os\nprint('pid', os.getpid())\nprint('steady')\n");
    let (end, verdict) = verify(&world, &["-n", "2", "pid.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(0), &"varies by itself".into()));
    let stdout = aspect(&verdict, "stdout");
    assert_eq!(stdout["verdict"], "varies by itself", "{verdict}");
    // A line that varies does not hide another one that differs.
    world.file("both.py", format!("import os\nprint('pid', os.getpid())\n{COUNTS}"));
    let (end, verdict) = verify(&world, &["-n", "2", "both.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(1), &"differs".into()));
    assert_eq!(aspect(&verdict, "stdout")["diff"][0], "@@ line 3 @@", "{verdict}");
}

#[test]
fn the_files_that_a_run_leaves_are_compared() {
    let world = World::started();
    let write =
        |what: &str| format!("import os\nwith open('out.txt', 'w') as f:\n    f.write({what})\n");
    world.file("same.py", write("'text'"));
    let (end, verdict) = verify(&world, &["same.py"]);
    let files = aspect(&verdict, "files");
    assert_eq!((end, &files["verdict"]), (End::Code(0), &"same".into()), "{verdict}");
    assert_eq!(files["note"], "1 written");
    world.file("counts.py", write("str(len(os.listdir('/proc/self/fd')))"));
    let (end, verdict) = verify(&world, &["counts.py"]);
    let files = aspect(&verdict, "files");
    assert_eq!((end, &files["verdict"]), (End::Code(1), &"differs".into()), "{verdict}");
    assert!(files["diff"][0].as_str().unwrap().starts_with("-out.txt file 0644 1 bytes"));
    // A file with another name each time is compared by what it is.
    let random = "import os\nopen(f'out.{os.getpid()}', 'w').write(TEXT)\n";
    world.file("named.py", random.replace("TEXT", "'text'"));
    let (end, named) = verify(&world, &["-n", "2", "named.py"]);
    assert_eq!((end, &named["verdict"]), (End::Code(0), &"varies by itself".into()), "{named}");
    world.file("odd.py", random.replace("TEXT", "str(len(os.listdir('/proc/self/fd')))"));
    let (end, odd) = verify(&world, &["-n", "2", "odd.py"]);
    assert_eq!((end, &odd["verdict"]), (End::Code(1), &"differs".into()), "{odd}");
    // Only what the program printed is its output: it printed nothing.
    assert_eq!(aspect(&verdict, "stdout")["verdict"], "same");
}

#[test]
fn in_a_copy_each_run_finds_the_directory_as_it_was_and_leaves_it_alone() {
    let world = World::started();
    world.file("log.txt", "first\n");
    let append = "import os\nold = open('log.txt').read()\nprint(old, end='')\n\
                  open('log.txt', 'a').write('more\\n')\nos.makedirs('new/deep')\n";
    world.file("append.py", append);
    let before = leftovers::files(&world.path("work"));
    let (end, verdict) = verify(&world, &["--copy", "./append.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(0), &"same".into()), "{verdict}");
    assert_eq!(aspect(&verdict, "files")["note"], "3 written");
    assert_eq!(read(world.path("work/log.txt")), b"first\n");
    assert_eq!(leftovers::files(&world.path("work")), before);
    // In place it finds what the run before left, and fails from the second run on.
    let (_, verdict) = verify(&world, &["./append.py"]);
    assert_eq!(aspect(&verdict, "files")["verdict"], "varies by itself", "{verdict}");
}

#[test]
fn what_cannot_be_warm_says_why() {
    let world = World::started();
    let (end, verdict) = verify(&world, &["true"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(3), &"never warm".into()));
    assert_eq!(verdict["reason"], "not-hosted");
    world.file("hello.py", "print('hello')\n");
    let many = "for n in {10..75}; do eval \"exec $n</dev/null\"; done";
    let odd = world.hob(&["verify", "--json", "hello.py"]).after(many).go();
    assert_eq!((odd.end, &json(&odd)["reason"]), (End::Code(3), &"descriptors".into()));
    let shown = world.hob(&["verify", "true"]).go();
    assert!(shown.text().starts_with("true: never warm\n  not-hosted: "), "{shown:?}");
}

#[test]
fn ends_by_signals_input_and_processes_that_stay_are_the_same() {
    let world = World::started();
    let input = world.file("input", "a line\n");
    world.file("dies.py", "import os, sys\nprint(input(), flush=True)\nos.kill(os.getpid(), 15)\n");
    let (end, verdict) = verify(&world, &["--stdin", input.to_str().unwrap(), "dies.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(0), &"same".into()), "{verdict}");
    assert_eq!(aspect(&verdict, "exit")["note"], "signal 15");
    world.file("sleeps.py", "import time\nprint('x', flush=True)\ntime.sleep(60)\n");
    let (end, verdict) = verify(&world, &["-n", "1", "--timeout", "500ms", "sleeps.py"]);
    assert_eq!((end, &verdict["verdict"]), (End::Code(0), &"same".into()), "{verdict}");
    assert_eq!(aspect(&verdict, "exit")["note"], "timed-out 124");
}

#[test]
fn a_kept_verdict_holds_no_text_of_the_program_or_of_its_caller() {
    let world = World::started();
    let canary = "canary-91b2";
    world.file("counts.py", format!("import os\nprint(os.environ['SECRET'])\n{COUNTS}"));
    let run = world.hob(&["verify", "counts.py", "canary-91b2-argument"]).env("SECRET", canary);
    let shown = run.go();
    assert_eq!(shown.end, End::Code(1), "{shown:?}");
    let kept = world.path("state/hob/verified.ndjson");
    let files = leftovers::files(&world.path("state"));
    assert!(files.contains(&kept), "{files:?}");
    for file in files.iter().filter(|file| file.is_file()) {
        assert!(!contains(&read(file), canary.as_bytes()), "{}", file.display());
        let mode = std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

#[test]
fn an_interrupted_verification_ends_its_run_and_clears_up() {
    let world = World::started();
    let mark = world.path("mark");
    let text = format!("import time\nopen({:?}, 'w').close()\ntime.sleep(60)\n", mark);
    world.file("sleeps.py", text);
    let temporary = world.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let run = world.hob(&["verify", "--copy", "sleeps.py"]).env("TMPDIR", &temporary);
    let running = run.start();
    wait::until("the program", || mark.exists().then_some(()));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
    running.signal(Signal::TERM);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(15), "{outcome:?}");
    assert_eq!(outcome.complaint(), "hob: interrupted: no verdict\n");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn bad_input_of_verify_gets_one_line() {
    let world = World::started();
    for (words, code) in [
        (&["verify"][..], 2),
        (&["verify", "-n", "0", "x.py"], 2),
        (&["verify", "--timeout", "soon", "true"], 2),
        (&["verify", "no-such-program"], 127),
        (&["verify", "--stdin", "no-such-file", "true"], 1),
    ] {
        let outcome = world.hob(words).go();
        assert_eq!(outcome.end, End::Code(code), "{words:?}: {outcome:?}");
        assert!(outcome.out.is_empty() && !outcome.err.is_empty(), "{outcome:?}");
        if code != 2 {
            assert_eq!(outcome.complaint().lines().count(), 1, "{outcome:?}");
        }
    }
    let list = world.hob(&["verify", "--list"]).go();
    list.succeeded();
    assert!(list.text().starts_with("no verdict is kept yet"), "{list:?}");
}
