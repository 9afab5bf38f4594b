//! `--report FILE.jsonl`: a line for each target as it ends, whoever reads it.

use std::os::unix::fs::symlink;

use hob_tests::{End, World, wait};
use serde_json::Value;

use super::{hooks, noting, open_gate, ran, resume_file, waiting};

fn text(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path("work").join(name)).unwrap()
}

fn lines(world: &World, name: &str) -> Vec<Value> {
    let text = text(world, name);
    assert!(text.is_empty() || text.ends_with('\n'), "a line is torn: {text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The targets of the lines, with what became of them.
fn told(lines: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    lines
        .iter()
        .map(|one| word(&one["set"]["target"]) + " " + &word(&one["set"]["outcome"]))
        .collect()
}

#[test]
fn each_target_has_its_line_when_it_ends_with_what_the_other_report_says() {
    let world = noting();
    world.file("t.csv", "HOST,WAIT\na,\nx-bad,\nb,1\nc,\n");
    world.file("r.jsonl", "of another run\n");
    let words = ["--for-each", "t.csv", "--jobs", "1", "--report", "r.jsonl", "--report", "r.json"];
    let running = hooks(&world, &words).start();
    waiting(&world);
    // The hook of `b` waits: what ended before comes, and nothing else.
    wait::until("two lines", || (text(&world, "r.jsonl").lines().count() > 1).then_some(()));
    assert_eq!(told(&lines(&world, "r.jsonl")), ["a ok", "x-bad error"]);
    open_gate(&world);
    assert_eq!(running.finish().end, End::Code(1));
    let mut lines = lines(&world, "r.jsonl");
    let mut report: Value = serde_json::from_str(&text(&world, "r.json")).unwrap();
    let begun = report["sittings"][0]["at"].as_str().unwrap().to_owned();
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        assert_eq!(line.remove("schema").unwrap(), "hob.hooks-target/1");
        let at = line.remove("at").unwrap();
        assert!(at.as_str().unwrap() > &begun[..19], "{at} is after {begun}");
    }
    for hook in report["targets"].as_array_mut().unwrap() {
        let hook = hook["set"]["hooks"][0].as_object_mut().unwrap();
        assert!(hook.remove("stdout").is_some() && hook.remove("stderr").is_some());
    }
    assert_eq!(Value::Array(lines), report["targets"]);
}

#[test]
fn a_resumed_run_writes_the_lines_of_all_attempts() {
    let world = noting();
    world.file("t.csv", "HOST\na\nx-bad\nb\n");
    let words = ["--for-each", "t.csv", "--jobs", "1", "--report", "r.ndjson"];
    let halted = hooks(&world, &words).args(&["--halt", "1"]).go();
    assert_eq!(halted.end, End::Code(1), "{halted:?}");
    assert_eq!(told(&lines(&world, "r.ndjson")), ["a ok", "x-bad error"]);
    std::fs::remove_file(world.path("work/r.ndjson")).unwrap();
    let rest = hooks(&world, &words).args(&["--resume"]).go();
    assert_eq!(rest.end, End::Code(1), "{rest:?}");
    let resumed = lines(&world, "r.ndjson");
    assert_eq!(told(&resumed), ["a ok", "x-bad error", "b ok"]);
    let sittings: Vec<&Value> = resumed.iter().map(|line| &line["sitting"]).collect();
    assert_eq!(sittings, [0, 0, 1]);
    world.executable("hooks.d/10-note", "#!/bin/sh\n");
    hooks(&world, &words).args(&["--resume=failed"]).go().succeeded();
    assert_eq!(told(&lines(&world, "r.ndjson")), ["a ok", "b ok", "x-bad ok"]);
}

#[test]
fn a_reader_that_leaves_and_a_full_disk_keep_no_target_from_running() {
    let world = noting();
    world.file("t.csv", "HOST,WAIT\na,\nb,1\nc,\n");
    world.run(&["mkfifo", "pipe.jsonl"]).go().succeeded();
    let reader = world.run(&["sh", "-c", "read -r line < pipe.jsonl; echo \"$line\""]).start();
    let words = ["--for-each", "t.csv", "--jobs", "1", "--report"];
    let running = hooks(&world, &words).args(&["pipe.jsonl"]).start();
    waiting(&world);
    let read = reader.finish();
    let line: Value = serde_json::from_slice(&read.out).unwrap();
    assert_eq!(line["set"]["target"], "a");
    open_gate(&world);
    let outcome = running.finish();
    outcome.succeeded();
    assert_eq!(ran(&world), ["a", "b", "c"]);
    world.file("t.csv", "HOST\na\nb\n");
    symlink("/dev/full", world.path("work/full.jsonl")).unwrap();
    let full = hooks(&world, &words).args(&["full.jsonl"]).go();
    assert_eq!((full.end, ran(&world).len()), (End::Code(5), 5), "{full:?}");
    let said = full.complaint();
    assert!(said.contains("--report full.jsonl: No space left on device"), "{said}");
    assert!(said.contains("the same command with --resume writes it from"), "{said}");
    hooks(&world, &words).args(&["r.jsonl", "--resume"]).go().succeeded();
    assert_eq!(told(&lines(&world, "r.jsonl")), ["a ok", "b ok"]);
    assert_eq!((ran(&world).len(), resume_file(&world)), (5, None), "nothing ran again");
    // One target, without a file of them; and what cannot be written is said before anything runs.
    hooks(&world, &["--report", "one.jsonl"]).go().succeeded();
    assert_eq!(told(&lines(&world, "one.jsonl")), ["hooks.d ok"]);
    let refused = hooks(&world, &["--report", "no/r.jsonl"]).go();
    assert_eq!((refused.end, ran(&world).len()), (End::Code(5), 6), "{refused:?}");
}
