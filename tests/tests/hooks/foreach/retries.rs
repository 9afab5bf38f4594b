//! `--retries`: what failed is tried again, in its place, and what is known of it then.

use std::collections::BTreeMap;
use std::path::Path;

use hob_tests::{End, Terminal, World};
use serde_json::Value;

use super::{open_gate, ran, resume_file, summary, waiting};

/// Notes the target and its try. `late` is well in the third, `slow` in the second, and `bad` never.
const FLAKY: &str = "#!/bin/sh\necho \"$HOST $HOB_TRY\" >> ran\n\
    if [ \"$WAIT$HOB_TRY\" = 11 ]; then echo $$ > waits; read line < gate; fi\n\
    case $HOST in\n\
    late) [ $HOB_TRY -ge 3 ] || { echo \"no $HOST\" >&2; exit 7; };;\n\
    slow) if [ $HOB_TRY = 1 ]; then read line < gate; fi;;\n\
    *bad) exit 3;; stop) exit 100;; warn) exit 40;;\n\
    esac\n";

fn world(targets: &str) -> World {
    let world = World::new();
    world.executable("hooks.d/10-flaky", FLAKY);
    world.run(&["mkfifo", "gate"]).go().succeeded();
    world.file("t.csv", targets);
    world
}

const WORDS: [&str; 5] = ["hooks", "run", "hooks.d", "--for-each", "t.csv"];

/// How often each target was tried, by what its hook saw: the tries are 1, 2 and so on.
fn tried(world: &World) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    for line in ran(world) {
        let (name, number) = line.split_once(' ').unwrap();
        let last: &mut u32 = all.entry(name.to_owned()).or_default();
        *last += 1;
        assert_eq!(number, last.to_string(), "{line}");
    }
    all
}

fn json(world: &World, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(world.path("work").join(name)).unwrap()).unwrap()
}

#[test]
fn what_ended_in_error_or_timeout_is_tried_again_and_nothing_else() {
    let world = world("HOST\nwell\nlate\nslow\nwarn\nstop\nbad\n");
    let words = ["--retries", "2", "--kill-after", "2s", "--jobs", "3"];
    let reports = ["--report", "r.json", "--report", "r.xml", "--report", "r.html"];
    let outcome = world.hob(&WORDS).args(&words).args(&reports).go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    let all = ["bad 3", "late 3", "slow 2", "stop 1", "warn 1", "well 1"];
    let seen: Vec<String> = tried(&world).iter().map(|(name, n)| format!("{name} {n}")).collect();
    assert_eq!(seen, all);
    let text = outcome.text();
    assert!(text.starts_with("6 targets · 3 ok · 1 warning · 1 interrupt · 1 error"), "{text}");
    assert!(text.contains("3 needed more than one try · 6 hooks in "), "{text}");
    assert!(text.contains("error bad (line 7): 10-flaky, exit code 3, after "), "{text}");
    assert!(text.contains(", in try 3\n") && !text.contains("no late"), "{text}");
    let report = json(&world, "r.json");
    assert_eq!((&report["retried"], &report["ended"]), (&3.into(), &6.into()));
    let record = |target: &Value| {
        format!("{} {}", target["set"]["target"].as_str().unwrap(), target["tries"])
    };
    let mut records: Vec<String> =
        report["targets"].as_array().unwrap().iter().map(record).collect();
    records.sort();
    assert_eq!(records, all);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks/junit.xsd");
    let words = ["xmllint", "--noout", "--schema", schema.to_str().unwrap(), "r.xml"];
    world.run(&words).go().succeeded();
    let read = |name: &str| std::fs::read_to_string(world.path("work").join(name)).unwrap();
    let (xml, html) = (read("r.xml"), read("r.html"));
    for part in ["message=\"exit code 3, in try 3\"", "[late, in try 3]\n", "[slow, in try 2]\n"] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    assert!(html.contains("needed more than one try") && html.contains("ok, in try 3"), "{html}");
}

#[test]
fn a_target_is_tried_again_before_others_begin_and_few_are_held() {
    let rows: String = (0..200).map(|n| format!("{n}-bad\n")).collect();
    let world = world(&format!("HOST\n{rows}"));
    let outcome = world.hob(&WORDS).args(&["--retries", "2", "--jobs", "2", "--json"]).go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    let summary = summary(&outcome);
    assert_eq!((&summary["ended"], &summary["retried"]), (&200.into(), &200.into()));
    let ran = ran(&world);
    assert_eq!(ran.len(), 600);
    let place = |line: &str| ran.iter().position(|one| one == line).unwrap();
    for n in 0..200 {
        let between = place(&format!("{n}-bad 3")) - place(&format!("{n}-bad 1"));
        assert!(between < 20, "{between} others began before the last try of {n}");
    }
}

#[test]
fn a_limit_of_failures_counts_targets_after_their_last_try() {
    let rest: String = (0..40).map(|n| format!("{n}\n")).collect();
    let world = world(&format!("HOST\nlate\na-bad\nb\nc-bad\n{rest}"));
    let words = ["--retries", "2", "--halt", "2", "--jobs", "1"];
    let halted = world.hob(&WORDS).args(&words).go();
    assert_eq!(halted.end, End::Code(1), "{halted:?}");
    assert!(halted.complaint().contains("--halt: 2 failed; no further target"), "{halted:?}");
    let seen = tried(&world);
    assert_eq!((seen["late"], seen["a-bad"], seen["b"], seen["c-bad"]), (3, 3, 1, 3));
    assert!(!seen.contains_key("39"), "{seen:?}");
    // Those that have ended keep their tries.
    std::fs::remove_file(world.path("work/ran")).unwrap();
    let words = ["--resume", "--retries", "2", "--report", "r.json"];
    assert_eq!(world.hob(&WORDS).args(&words).go().end, End::Code(1));
    assert!(!ran(&world).is_empty() && !tried(&world).contains_key("late"), "{:?}", ran(&world));
    let report = json(&world, "r.json");
    assert_eq!((&report["ended"], &report["retried"]), (&44.into(), &3.into()));
}

#[test]
fn what_waits_for_another_try_when_a_run_ends_is_run_by_resume() {
    let world = world("HOST,WAIT\nlate,1\nb,\n");
    let words = ["--retries", "2", "--jobs", "1"];
    let run = world.hob(&WORDS).args(&words).env("TERM", "xterm");
    let mut terminal = Terminal::open(&run);
    waiting(&world);
    terminal.keys("\x03");
    terminal.expect("ending: ^C again ends at once");
    open_gate(&world);
    terminal.expect("2 targets have not ended; the same command with --resume runs them");
    assert_eq!(terminal.finish().0, End::Signal(2));
    assert_eq!(ran(&world), ["late 1"]);
    assert!(resume_file(&world).is_some());
    std::fs::remove_file(world.path("work/ran")).unwrap();
    let rest = world.hob(&WORDS).args(&words).args(&["--resume"]).start();
    waiting(&world);
    open_gate(&world);
    let rest = rest.finish();
    rest.succeeded();
    assert!(rest.text().starts_with("2 targets · 2 ok · 1 needed more than one try"), "{rest:?}");
    assert_eq!(tried(&world)["late"], 3);
}
