//! `hob trace record`: what is noted of calls, kept in files.

use std::path::PathBuf;

use hob_tests::{End, World, leftovers, wait};
use rustix::process::{Pid, Signal};
use serde_json::Value;

fn listed(world: &World) -> Vec<Value> {
    let outcome = world.hob(&["trace", "record", "list", "--json"]).go();
    outcome.succeeded();
    outcome.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The one of this name, as it is listed.
fn one(world: &World, name: &str) -> Value {
    listed(world).into_iter().find(|it| it["name"] == name).unwrap_or_default()
}

fn kept(world: &World, name: &str) -> PathBuf {
    PathBuf::from(one(world, name)["file"].as_str().unwrap_or_default())
}

fn go(world: &World, words: &[&str]) {
    world.hob(words).go().succeeded();
}

/// The last call of a recording, as `hob trace --json` has it.
fn traced(world: &World, file: &std::path::Path) -> Value {
    let outcome = world.hob(&["trace", "--json", "--file"]).args(&[file]).go();
    outcome.succeeded();
    serde_json::from_slice(&outcome.out).unwrap()
}

fn refused(world: &World, words: &[&str], why: &str) {
    let outcome = world.hob(words).go();
    assert_ne!(outcome.end, End::Code(0), "{words:?}");
    assert!(outcome.complaint().contains(why), "{words:?}: {outcome:?}");
}

#[test]
fn a_recording_has_what_came_while_it_went_on_after_the_daemon_and_its_ring_are_gone() {
    let world = World::started();
    go(&world, &["run", "/bin/true"]);
    let before = world.records(1)[0]["call"].as_u64().unwrap();
    go(&world, &["trace", "record", "start", "one"]);
    assert_eq!(one(&world, "one")["state"], "records");
    refused(&world, &["trace", "record", "start", "one"], "goes on");
    go(&world, &["run", "/bin/true"]);
    go(&world, &["trace", "record", "dump", "one", "-o", "so-far"]);
    go(&world, &["trace", "record", "stop", "one"]);
    refused(&world, &["trace", "record", "stop", "one"], "no recording one goes on");
    go(&world, &["stop"]);
    let state = one(&world, "one");
    assert_eq!((&state["state"], &state["gone"]), (&"stopped".into(), &0.into()), "{state}");
    let call = before + 1;
    for file in [kept(&world, "one"), world.path("work/so-far")] {
        let trace = traced(&world, &file);
        assert_eq!((&trace["call"], &trace["coverage"]), (&call.into(), &"whole".into()));
        let earlier = world.hob(&["trace", &before.to_string(), "--file"]).args(&[&file]).go();
        assert_eq!(earlier.end, End::Code(1), "it came before: {earlier:?}");
    }
    let exported = world.hob(&["trace", "export", "otlp", "--recording", "one"]).go();
    exported.succeeded();
    let exported = String::from_utf8(exported.out).unwrap();
    let number = format!("\"hob.call\",\"value\":{{\"intValue\":\"{call}\"}}");
    assert_eq!(exported.matches(&number).count(), 1, "{exported}");
    assert!(exported.contains("\"hob.spans\",\"value\":{\"stringValue\":\"whole\"}"));
}

#[test]
fn what_is_noted_is_written_at_any_time_and_files_that_are_none_are_said() {
    let world = World::started();
    go(&world, &["run", "/bin/true"]);
    go(&world, &["trace", "record", "dump", "-o", "now"]);
    let file = world.path("work/now");
    assert_eq!(traced(&world, &file)["coverage"], "whole");
    let whole = std::fs::read(&file).unwrap();
    let text = String::from_utf8_lossy(&whole);
    let newer = text.replacen("hob.recording/1", "hob.recording/2", 1);
    for (bytes, why) in [
        (&whole[..whole.len() - 1], "cut short"),
        (&whole[..whole.len() / 2], "cut short"),
        (&whole[..10], "no recording"),
        (b"", "no recording"),
        (b"hello\n", "no recording"),
        (newer.as_bytes(), "another build"),
    ] {
        world.file("broken", bytes);
        refused(&world, &["trace", "--file", "broken"], why);
        refused(&world, &["trace", "export", "otlp", "--file", "broken"], why);
    }
    refused(&world, &["trace", "--file", "nowhere"], "No such file");
    refused(&world, &["trace", "--file", "."], "not a file");
    refused(&world, &["trace", "export", "otlp", "--recording", "nowhere"], "No such file");
    refused(&world, &["trace", "record", "dump", "nowhere", "-o", "x"], "no recording nowhere");
    refused(&world, &["trace", "record", "dump", "-o", "/dev/full"], "No space left");
    refused(&world, &["trace", "record", "start", "../up"], "a name has");
    refused(&world, &["trace", "record", "start", "x", "--keep", "5"], "a size is");
    refused(&world, &["trace", "record", "start", "x", "--when", "never"], "slower=TIME");
}

#[test]
fn a_recording_ends_by_its_time_and_with_the_call_that_it_waits_for() {
    let world = World::started();
    go(&world, &["trace", "record", "start", "failed", "--when", "failed"]);
    go(&world, &["trace", "record", "start", "slow", "--when", "slower=1h"]);
    go(&world, &["trace", "record", "start", "brief", "--after", "1ms", "--for", "1ms"]);
    go(&world, &["run", "/bin/true"]);
    assert_eq!(world.hob(&["run", "/bin/false"]).go().end, End::Code(1));
    let is = |name: &'static str, state: &'static str| {
        let world = &world;
        move || (one(world, name)["state"] == state).then_some(())
    };
    wait::until("the failure ends it", is("failed", "met"));
    wait::until("its time ends it", is("brief", "time"));
    assert_eq!(traced(&world, &kept(&world, "failed"))["receipt"]["outcome"]["code"], 1);
    assert_eq!(one(&world, "slow")["state"], "records");
    go(&world, &["trace", "record", "stop", "slow", "--drop"]);
    assert_eq!(one(&world, "slow"), Value::Null);
}

#[test]
fn recordings_end_with_the_daemon_and_are_written_where_that_was_asked_for() {
    let world = World::started();
    go(&world, &["trace", "record", "start", "kept"]);
    go(&world, &["trace", "record", "start", "elsewhere", "--on-exit", "at-exit"]);
    go(&world, &["trace", "record", "start", "full", "--on-exit", "/dev/full"]);
    go(&world, &["trace", "record", "start", "later", "--after", "1h"]);
    go(&world, &["run", "/bin/true"]);
    // Its receipt is written before the daemon is killed.
    assert_eq!(world.records(1).len(), 1);
    let pid = i32::try_from(world.daemon()).ok().and_then(Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    wait::until("they have ended", || {
        let states = listed(&world);
        let has_ended = |it: &Value| it["state"] == "daemon-ended";
        (states.len() == 3 && states.iter().all(has_ended)).then_some(())
    });
    for file in [kept(&world, "kept"), world.path("work/at-exit"), kept(&world, "full")] {
        assert_eq!(traced(&world, &file)["coverage"], "whole");
    }
    assert_eq!(one(&world, "elsewhere"), Value::Null);

    go(&world, &["start"]);
    go(&world, &["trace", "record", "start", "last"]);
    go(&world, &["stop"]);
    assert_eq!(one(&world, "last")["state"], "daemon-ended", "stop waits for it");
    let left = leftovers::files(&world.hob_dir());
    assert!(!left.iter().any(|file| file.to_string_lossy().contains("record-")), "{left:?}");
}

#[test]
fn ten_go_on_at_once_and_there_is_a_bound() {
    let world = World::started();
    let names: Vec<_> = (0..10).map(|number| format!("r{number}")).collect();
    let started: Vec<_> =
        names.iter().map(|name| world.hob(&["trace", "record", "start", name]).start()).collect();
    started.into_iter().for_each(|one| one.finish().succeeded());
    go(&world, &["run", "/bin/true"]);
    let call = world.records(1)[0]["call"].clone();
    for name in &names {
        go(&world, &["trace", "record", "stop", name]);
        assert_eq!(traced(&world, &kept(&world, name))["call"], call);
    }
    assert!(listed(&world).iter().all(|one| one["state"] == "stopped"));
    // One that was killed is none, and its name is free again.
    go(&world, &["trace", "record", "start", "b0"]);
    let recorder = leftovers::processes(&world.path("")).into_iter();
    let mut recorder = recorder.filter(|(_, line)| line.contains("record keep"));
    let pid = recorder.next().and_then(|(pid, _)| Pid::from_raw(i32::try_from(pid).ok()?)).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    wait::until("it is none", || one(&world, "b0").is_null().then_some(()));
    for number in 0..16 {
        go(&world, &["trace", "record", "start", &format!("b{number}"), "--after", "1h"]);
    }
    refused(&world, &["trace", "record", "start", "more"], "16 recordings go on");
}
