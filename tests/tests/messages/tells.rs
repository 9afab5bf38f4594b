//! Tells: kept until they are handled, in spite of crashes, with the same id.

use std::collections::BTreeMap;

use hob_tests::{World, run, wait};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use super::{program, project};

const HANDLERS: &str = r"
import os, time

def note(payload, message):
    with open('notes', 'ab', buffering=0) as file:
        file.write(message.id.encode() + b' ' + payload + b'\n')

def slow(payload, message):
    note(payload, message)
    while not os.path.exists('go'):
        time.sleep(0.005)
    with open('done', 'ab', buffering=0) as file:
        file.write(message.id.encode() + b' ' + payload + b'\n')
";

fn tell(world: &World, words: &[&str]) -> String {
    let outcome = world.hob(&["tell"]).args(words).go();
    outcome.succeeded();
    outcome.text().trim_end().to_owned()
}

/// The payloads in a file of notes, each with the ids that it came with.
fn notes(world: &World, file: &str) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(world.path("work").join(file)).unwrap_or_default();
    let mut notes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((id, payload)) = line.split_once(' ') {
            notes.entry(payload.to_owned()).or_default().push(id.to_owned());
        }
    }
    notes
}

#[test]
fn a_tell_is_handled_with_the_id_that_its_sender_was_told() {
    let world = project(HANDLERS, &program("note", "note", ""));
    let kept = tell(&world, &["note", "kept"]);
    let once = tell(&world, &["note", "once", "--at-most-once"]);
    assert_eq!(tell(&world, &["note", "quiet", "--quiet"]), "");
    let all = wait::until("three notes", || {
        Some(notes(&world, "notes")).filter(|notes| notes.len() == 3)
    });
    assert_eq!((&all["kept"], &all["once"]), (&vec![kept], &vec![once]));
}

#[test]
fn a_daemon_that_is_killed_loses_no_tell_and_repeats_the_id() {
    let world = project(HANDLERS, &program("slow", "slow", "workers = 2"));
    let mut ids = BTreeMap::new();
    for number in 0..6 {
        let payload = number.to_string();
        ids.insert(payload.clone(), tell(&world, &["slow", &payload]));
    }
    // Two are with workers, four wait.
    wait::until("two that began", || (notes(&world, "notes").len() >= 2).then_some(()));
    run::kill(world.daemon(), Signal::KILL);
    world.file("go", "");
    // The next daemon finds them: whoever starts it.
    wait::until("a daemon", || {
        world.hob(&["start"]).go().end.eq(&hob_tests::End::Code(0)).then_some(())
    });
    let done = wait::until("all of them", || {
        Some(notes(&world, "done")).filter(|done| done.len() == ids.len())
    });
    for (payload, id) in &ids {
        assert!(done[payload].iter().all(|each| each == id), "{payload}: {done:?}");
    }
    let begun = notes(&world, "notes");
    let again = begun.values().filter(|ids| ids.len() > 1).count();
    assert!(again <= 2, "only what was with a worker came twice: {begun:?}");
}

#[test]
fn a_tell_whose_handler_raises_is_tried_again_and_one_that_is_cut_off_too() {
    let handlers = r"
import os
def flaky(payload, message):
    with open('notes', 'ab', buffering=0) as file:
        file.write(message.id.encode() + b' ' + payload + b'\n')
    if not os.path.exists(payload.decode()):
        open(payload.decode(), 'w').close()
        if payload == b'raise':
            raise RuntimeError('not yet')
        os._exit(1)
";
    let world = project(handlers, &program("flaky", "flaky", ""));
    let ids = ["raise", "exit"].map(|how| tell(&world, &["flaky", how]));
    let all = wait::until("each twice", || {
        Some(notes(&world, "notes"))
            .filter(|all| all.values().all(|ids| ids.len() == 2) && all.len() == 2)
    });
    assert_eq!(all["raise"], [ids[0].clone(), ids[0].clone()]);
    assert_eq!(all["exit"], [ids[1].clone(), ids[1].clone()]);
}

#[test]
fn tells_of_one_key_are_handled_in_their_order() {
    let world = project(HANDLERS, &program("note", "note", "isolation = \"session\""));
    let ids: Vec<String> = (0..12)
        .map(|number: u32| {
            let key = if number.is_multiple_of(2) { "even" } else { "odd" };
            tell(&world, &["note", &number.to_string(), "--key", key])
        })
        .collect();
    wait::until("all notes", || (notes(&world, "notes").len() == ids.len()).then_some(()));
    let text = std::fs::read_to_string(world.path("work/notes")).unwrap();
    let numbers: Vec<u32> =
        text.lines().map(|line| line.split_once(' ').unwrap().1.parse().unwrap()).collect();
    for rest in [0, 1] {
        let mine: Vec<_> = numbers.iter().filter(|number| **number % 2 == rest).collect();
        assert!(mine.is_sorted(), "{numbers:?}");
    }
}

/// Bounds the size of the files that a daemon may write.
fn bound_files(daemon: u32, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Pid::from_raw(daemon.try_into().unwrap()), Resource::Fsize, limit).unwrap();
}

/// A disk without room stands for one that is slow: meanwhile the next daemon would give it again.
#[test]
fn a_tell_that_was_handled_waits_until_that_is_on_the_disk() {
    let world = project(HANDLERS, &program("slow", "slow", ""));
    tell(&world, &["slow", "first"]);
    wait::until("it begins", || (!notes(&world, "notes").is_empty()).then_some(()));
    let daemon = world.daemon();
    bound_files(daemon, Some(4096));
    world.file("go", "");
    let pools_rest = |status: &serde_json::Value| {
        let pools = status["pools"].as_array().unwrap();
        !pools.is_empty() && pools.iter().all(|pool| pool["busy"] == 0)
    };
    let status = wait::until("its worker is free", || {
        Some(world.status()).filter(|status| pools_rest(status))
    });
    assert_eq!(notes(&world, "done").len(), 1);
    assert_eq!(status["messages"]["waiting"], 1, "{status}");
    bound_files(daemon, None);
    let forgotten = || (world.status()["messages"]["waiting"] == 0).then_some(());
    wait::until("its end is on the disk", forgotten);
    run::kill(daemon, Signal::KILL);
    assert!(wait::ended(daemon, wait::LONG), "it was killed");
    tell(&world, &["slow", "second"]);
    wait::until("the second is done", || (notes(&world, "done").len() == 2).then_some(()));
    wait::until("an empty outbox", forgotten);
    assert!(
        notes(&world, "notes").values().all(|ids| ids.len() == 1),
        "{:?}",
        notes(&world, "notes")
    );
}
