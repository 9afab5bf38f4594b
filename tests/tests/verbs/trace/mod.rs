//! `hob trace`: for whom a call waited, from rings that outlive who wrote them.

mod context;
mod push;
mod record;
mod ruby;
mod spans;

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use hob_tests::{World, wait};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::messages::{program, project};

/// A handler that goes on when its file says so, and says when it has begun.
const HANDLERS: &str = "import os, time\n\
     def handle(message, context):\n\
     \x20   open(message.decode() + '.begun', 'w').close()\n\
     \x20   while not os.path.exists(message.decode() + '.go'):\n\
     \x20       time.sleep(0.002)\n\
     \x20   return message\n";

fn traced(world: &World, words: &[&str]) -> Value {
    let outcome = world.hob(&["trace", "--json"]).args(words).go();
    outcome.succeeded();
    serde_json::from_slice(&outcome.out).unwrap()
}

fn rings(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.hob_dir()).into_iter().flatten().flatten();
    let rings = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("ring-"));
    rings.map(|entry| entry.path()).collect()
}

/// A world in which `second` has waited for `first`; the numbers of both.
fn one_after_the_other() -> (World, u64, u64) {
    let world = project(HANDLERS, &program("slow", "handle", "workers = 1"));
    let first = world.hob(&["ask", "slow", "first"]).start();
    let work = world.path("work");
    let is_there =
        |name: &'static str| move |work: &PathBuf| work.join(name).exists().then_some(());
    wait::until("the first has begun", || is_there("first.begun")(&work));
    let second = world.hob(&["ask", "slow", "second"]).start();
    wait::until("the second waits", || world.pools().into_iter().find(|it| it["queued"] == 1));
    world.file("first.go", "");
    wait::until("the second has begun", || is_there("second.begun")(&work));
    world.file("second.go", "");
    first.finish().succeeded();
    second.finish().succeeded();
    let calls: Vec<u64> = world.records(2).iter().filter_map(|it| it["call"].as_u64()).collect();
    (world, calls[0], calls[1])
}

#[test]
fn a_call_that_waited_says_for_whom_also_after_its_daemon_was_killed() {
    let (world, first, second) = one_after_the_other();
    let call = second.to_string();
    let trace = traced(&world, &[&call]);
    assert_eq!((&trace["schema"], &trace["coverage"]), (&"hob.trace/1".into(), &"whole".into()));
    let waited = &trace["spans"][0];
    assert_eq!(waited["name"], "waited");
    assert_eq!((&waited["phase"], &waited["of"]), (&"queue".into(), &1.into()));
    assert_eq!(waited["for"][0]["call"], first);
    let shown = world.hob(&["trace", &call]).go().text();
    assert!(shown.contains(&format!("for call {first} (")), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    for words in [&["last", "--call", &call][..], &["last", "1"]] {
        let shown = world.hob(words).go().text();
        assert!(shown.contains(&format!("for call {first} (")), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
    let page = world.hob(&["log", "--html"]).go().text();
    assert!(page.contains("· waited") && page.contains(&format!("for call {first} (")), "{page}");

    let daemon = world.daemon();
    let pid = i32::try_from(daemon).ok().and_then(Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    assert!(wait::ended(daemon, std::time::Duration::from_secs(20)));
    let holders = || traced(&world, &[&call])["spans"][0]["for"][0]["call"].clone();
    assert_eq!(holders(), first);
    // The next daemon leaves it there, and has a ring of its own.
    wait::until("the next daemon notes something", || {
        world.hob(&["run", "/bin/true"]).go().succeeded();
        (rings(&world).len() == 2).then_some(())
    });
    assert_eq!(holders(), first);
    world.hob(&["stop"]).go().succeeded();
    assert_eq!(rings(&world), Vec::<PathBuf>::new());
    assert_eq!(traced(&world, &[&call])["coverage"], "no-ring");
}

#[test]
fn rings_that_are_short_or_of_another_build_are_named_and_the_rest_is_shown() {
    let world = World::started();
    world.hob(&["run", "/bin/true"]).go().succeeded();
    let ring = rings(&world).pop().unwrap();
    let whole = std::fs::read(&ring).unwrap();
    for (name, bytes, why) in [
        ("ring-1-7", &whole[..5000], "cut short"),
        ("ring-1-8", &[b'x'; 8000][..], "another build"),
    ] {
        std::fs::write(world.hob_dir().join(name), bytes).unwrap();
        let shown = world.hob(&["trace"]).go();
        shown.succeeded();
        let shown = shown.text();
        assert!(shown.contains(name) && shown.contains(why), "{shown}");
    }
    assert_eq!(traced(&world, &[])["coverage"], "whole");
    // The records' count is far on: all that is there was overwritten meanwhile.
    let other = world.hob_dir().join("ring-1-9");
    std::fs::write(&other, &whole).unwrap();
    let file = std::fs::File::options().write(true).open(&other).unwrap();
    file.write_all_at(&u64::MAX.to_ne_bytes(), 64).unwrap();
    world.hob(&["trace"]).go().succeeded();
}

#[test]
fn without_a_ring_that_is_said() {
    let world = World::new();
    world.hob(&["start"]).env("HOB_RING", "0").go().succeeded();
    world.hob(&["run", "/bin/true"]).go().succeeded();
    assert_eq!(rings(&world), Vec::<PathBuf>::new());
    assert_eq!(traced(&world, &[])["coverage"], "no-ring");
    let shown = world.hob(&["trace", "--slowest"]).go().text();
    assert!(shown.contains("No spans are kept"), "{shown}");
    let missing = world.hob(&["trace", "4000000"]).go();
    assert_eq!(missing.end, hob_tests::End::Code(1));
}
