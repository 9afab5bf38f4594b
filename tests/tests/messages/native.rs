//! Native workers: a Rust program that is linked with `hob-worker` is lent like any other.

use hob_tests::{End, World, run, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::{ask, python, trusted};

/// A world with this program in it, under each of these names, and this `hob.toml`.
fn project(names: &[&str], programs: &str) -> World {
    let world = World::new();
    for name in names {
        build(&world, name, "first");
    }
    trusted(&world, programs);
    world
}

/// Puts a build of the program in its place, as a linker or an installer does.
fn build(world: &World, name: &str, build: &str) {
    let mut bytes = std::fs::read(env!("CARGO_BIN_EXE_native-worker")).unwrap();
    bytes.extend_from_slice(build.as_bytes());
    let new = world.executable(&format!("{name}.new"), bytes);
    std::fs::rename(new, world.path("work").join(name)).unwrap();
}

fn program(name: &str, handler: &str, more: &str) -> String {
    format!("[program.{name}]\nruntime = \"native\"\nhandler = \"{handler}\"\n{more}\n")
}

fn counts(text: &str) -> (u32, u32) {
    let (pid, count) = text.split_once(' ').unwrap();
    (pid.parse().unwrap(), count.parse().unwrap())
}

#[test]
fn a_native_program_answers_and_knows_of_its_message_what_was_declared() {
    let world = project(&["native"], &program("native", "native", "env = [\"MINE\"]"));
    assert_eq!(ask(&world, &["native", "echo as it is"]), "as it is");
    let bytes: Vec<u8> = b"echo ".iter().copied().chain((0..=255).cycle().take(900_000)).collect();
    let large = world.hob(&["ask", "native", "-"]).stdin(bytes.clone()).go();
    large.succeeded();
    assert!(large.out == bytes[5..], "{} bytes came back", large.out.len());
    let run = world.hob(&["ask", "native", "about", "--content-type", "text/x", "--timeout", "1m"]);
    let outcome = run.env("MINE", "1").env("TOKEN", "secret").go();
    outcome.succeeded();
    let about: Value = serde_json::from_slice(&outcome.out).unwrap();
    let cwd = world.path("work").canonicalize().unwrap();
    let want = serde_json::json!({
        "kind": "ask", "type": "text/x", "timed": true, "key": null, "cwd": cwd, "mine": "1",
        "token": null, "stdin": "",
    });
    assert_eq!(about, want);
    assert_eq!(ask(&world, &["native", "print aloud"]), "");
    let log = world.hob(&["log", "--output", "native"]).go().text();
    assert!(log.contains("printed aloud"), "{log}");
    let pool = &world.status()["pools"][0];
    assert_eq!((&pool["runtime"], &pool["isolation"]), (&"native".into(), &"prefork".into()));
    let record = world.records(1).pop().unwrap();
    assert_eq!(record["program"]["runtime"], "native", "{record}");
    assert_eq!(record["program"]["interpreter"], Value::Null, "{record}");
}

#[test]
fn an_actor_answers_with_what_it_asked_another_one() {
    let world = project(&["actor"], &program("double", "actor", "workers = 1"));
    assert_eq!(ask(&world, &["double", "21"]), "42 1 false");
    assert_eq!(ask(&world, &["double", "4", "--timeout", "1m"]), "8 2 true");
    let failed = world.hob(&["ask", "double", "x"]).go();
    assert_eq!(failed.end, End::Code(1), "{failed:?}");
    assert!(failed.complaint().contains("x: invalid digit"), "{failed:?}");
    let panicked = world.hob(&["ask", "double", "13"]).go();
    assert!(panicked.complaint().contains("panicked"), "{panicked:?}");
    assert_eq!(ask(&world, &["double", "1"]), "2 5 false", "the same process goes on");
}

#[test]
fn what_ends_a_message_is_told_and_ends_nothing_else() {
    let world = project(&["native"], &program("native", "native", "workers = 1"));
    let first = counts(&ask(&world, &["native", "count"])).0;
    for (how, code, words) in [
        ("fail twice", 1, "it said twice"),
        ("panic now", 1, "panicked: as asked: now"),
        ("huge", 1, "over the cap"),
        ("exit", 125, "its worker ended before it answered"),
        ("kill", 125, "its worker ended before it answered"),
    ] {
        let outcome = world.hob(&["ask", "native", how]).go();
        assert_eq!(outcome.end, End::Code(code), "{how}: {outcome:?}");
        assert!(outcome.complaint().contains(words), "{how}: {outcome:?}");
        let same = counts(&ask(&world, &["native", "count"])).0 == first;
        assert_eq!(same, code == 1, "{how}: only a process that ended is another one");
    }
}

#[test]
fn a_time_that_passes_ends_the_handler() {
    let world = project(&["native"], &program("native", "native", ""));
    let told = world.path("told");
    let hang = format!("hang {}", told.display());
    let outcome = world.hob(&["ask", "native", &hang, "--timeout", "2s"]).go();
    assert_eq!(outcome.end, End::Code(124), "{outcome:?}");
    let pid: u32 = std::fs::read_to_string(told).unwrap().parse().unwrap();
    wait::until("the handler's end", || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
}

#[test]
fn a_worker_that_is_killed_takes_its_message_with_it_and_no_other() {
    let world = project(&["native"], &program("native", "native", ""));
    let told = world.path("told");
    let asking = world.hob(&["ask", "native", &format!("hang {}", told.display())]).start();
    let pid: u32 = wait::until("its pid", || std::fs::read_to_string(&told).ok()?.parse().ok());
    run::kill(pid, Signal::KILL);
    let outcome = asking.finish();
    assert_eq!(outcome.end, End::Code(125), "{outcome:?}");
    assert_eq!(ask(&world, &["native", "echo on"]), "on");
}

#[test]
fn what_an_ask_sees_of_another_is_what_its_isolation_says() {
    let programs = program("kept", "native", "workers = 1")
        + &program("once", "native", "uses = 1")
        + &program("session", "native", "isolation = \"session\"");
    let world = project(&["native"], &programs);
    let mut pids = std::collections::BTreeSet::new();
    for turn in 1..=4 {
        assert_eq!(counts(&ask(&world, &["kept", "count"])).1, turn);
        let (pid, count) = counts(&ask(&world, &["once", "count"]));
        assert_eq!(count, 1, "each has a process of its own");
        pids.insert(pid);
        for key in ["a", "b"] {
            let answer = ask(&world, &["session", "count", "--key", key]);
            assert_eq!(counts(&answer).1, turn, "session {key}");
        }
    }
    assert_eq!(pids.len(), 4);
    world.file("hob.toml", program("kept", "native", "isolation = \"fork\""));
    let refused = world.hob(&["trust"]).go();
    assert_eq!(refused.end, End::Code(1), "{refused:?}");
    assert!(refused.complaint().contains("uses = 1"), "{refused:?}");
}

#[test]
fn another_build_or_another_file_that_it_reads_takes_effect_on_the_next_ask() {
    let world = project(&["native"], &program("native", "native", ""));
    assert_eq!(ask(&world, &["native", "build"]), "first");
    build(&world, "native", "other");
    assert_eq!(ask(&world, &["native", "build"]), "other");
    assert_eq!(ask(&world, &["native", "config"]), "");
    let before = ask(&world, &["native", "count"]);
    world.file("config", "there");
    let after = ask(&world, &["native", "count"]);
    assert_ne!(counts(&before).0, counts(&after).0, "what it read is another");
    assert_eq!(ask(&world, &["native", "config"]), "there");
    std::fs::remove_file(world.path("work/native")).unwrap();
    let gone = world.hob(&["ask", "native", "build"]).go();
    assert!(matches!(gone.end, End::Code(126 | 127)), "{gone:?}");
    build(&world, "native", "third");
    assert_eq!(ask(&world, &["native", "build"]), "third");
}

#[test]
fn another_build_between_two_asks_on_a_lane_takes_effect_on_the_second() {
    let world = project(&["native", "even", "odds"], &program("native", "native", ""));
    for name in ["even", "odds"] {
        build(&world, name, &format!("-{name}"));
    }
    let script = r"
import hob, os, shutil
for turn in range(12):
    build = ('even', 'odds')[turn % 2]
    shutil.copy(build, 'native.new')
    os.rename('native.new', 'native')
    for _ in range(4):
        answer = hob.ask('native', b'build').decode()
        assert answer == '-' + build, (turn, answer)
print('fresh')
";
    let outcome = python(&world, script).go();
    outcome.succeeded();
    assert_eq!(outcome.text(), "fresh\n");
    // A pool leaves one receipt each 10 ms: which of its messages it is about is chance.
    wait::until("a lane was lent", || {
        world.hob(&["ask", "native", "build", "--count", "500"]).go().succeeded();
        world.records(400).iter().any(|record| record["reason"] == "lane").then_some(())
    });
}

#[test]
fn a_lane_ends_with_the_uses_of_its_worker_and_survives_what_a_handler_says() {
    let world = project(&["native"], &program("native", "native", "workers = 1\nuses = 3"));
    let script = r"
import hob
for turn in range(30):
    pid, count = hob.ask('native', b'count').split()
    assert int(count) <= 3, count
try:
    hob.ask('native', b'panic there')
except hob.Raised as error:
    print(error)
";
    let outcome = python(&world, script).go();
    outcome.succeeded();
    assert!(outcome.text().contains("as asked: there"), "{outcome:?}");
}

#[test]
fn a_tell_is_kept_until_a_native_program_has_handled_it() {
    let world = project(&["native"], &program("native", "native", ""));
    let lines = world.path("lines");
    let append = format!("append {}", lines.display());
    let told = world.hob(&["tell", "native", &append]).go();
    told.succeeded();
    let read = || std::fs::read_to_string(&lines).ok().filter(|text| text.ends_with('\n'));
    let line = wait::until("the tell", read);
    assert_eq!(line, format!("{} Tell\n", told.text().trim()));
}

#[test]
fn what_is_no_native_worker_is_told_so() {
    let programs = program("script", "script", "")
        + &program("text", "text", "")
        + &program("none", "none", "");
    let world = project(&[], &programs);
    world.executable("script", "#!/bin/sh\necho no worker >&2\n");
    world.file("text", "no program\n");
    for (name, code, words) in [
        ("script", 126, "hob_worker::serve"),
        ("text", 2, "chmod +x"),
        ("none", 127, "none is not there"),
    ] {
        let outcome = world.hob(&["ask", name, "x"]).go();
        assert_eq!(outcome.end, End::Code(code), "{name}: {outcome:?}");
        assert!(outcome.complaint().contains(words), "{name}: {outcome:?}");
    }
    let python = program("python", "handlers.py", "").replace("native", "python");
    world.file("hob.toml", python);
    let refused = world.hob(&["trust"]).go();
    assert_eq!(refused.end, End::Code(1), "{refused:?}");
    assert!(refused.complaint().contains("runtime = \"native\""), "{refused:?}");
    let by_hand = world.run(&[env!("CARGO_BIN_EXE_native-worker")]).go();
    assert_eq!(by_hand.end, End::Code(1), "{by_hand:?}");
    assert!(by_hand.complaint().contains("hob did not start"), "{by_hand:?}");
}
