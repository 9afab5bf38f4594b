//! Tells that fail: dead letters that a person sees, and tells that are held until their program
//! can be had.

use hob_tests::{End, World, run, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::{program, project, trusted};

/// Notes each message, and raises as long as there is no file `good`.
const HANDLERS: &str = r"
import os

def picky(payload, message):
    with open('notes', 'ab', buffering=0) as file:
        file.write(payload + b'\n')
    if not os.path.exists('good'):
        raise ValueError('not good')
";

fn tell(world: &World, payload: &str) -> String {
    let outcome = world.hob(&["tell", "picky", payload]).go();
    outcome.succeeded();
    outcome.text().trim_end().to_owned()
}

fn json(world: &World, words: &[&str]) -> Value {
    let outcome = world.hob(&["dead"]).args(words).args(&["--json"]).go();
    outcome.succeeded();
    let answer: Value = serde_json::from_slice(&outcome.out).unwrap();
    assert_eq!(answer["schema"], "hob.dead/1");
    answer
}

fn until_dead(world: &World, count: u64) -> Value {
    wait::until("dead letters", || Some(json(world, &[])).filter(|dead| dead["total"] == count))
}

fn notes(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("work/notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_dead_letter_is_listed_and_retried_after_its_handler_was_repaired() {
    let world = project(HANDLERS, &program("picky", "picky", "tries = 1"));
    assert_eq!(world.hob(&["dead"]).go().text(), "there are no dead letters\n");
    let id = tell(&world, "first");
    let dead = until_dead(&world, 1);
    let letter = &dead["letters"][0];
    assert_eq!((&letter["id"], &letter["program"]), (&id.as_str().into(), &"picky".into()));
    assert_eq!((&letter["tries"], &letter["bytes"]), (&1.into(), &5.into()));
    let why = letter["why"].as_str().unwrap();
    assert!(why.starts_with("raised: ") && why.contains("not good"), "{why}");
    let listed = world.hob(&["dead", "list"]).go().text();
    assert!(listed.contains(&id) && listed.contains("not good"), "{listed}");
    assert_eq!(world.status()["messages"]["dead"], 1);
    let status = world.hob(&["status"]).go().text();
    assert!(status.contains("1 dead letter (`hob dead`)"), "{status}");
    // It is there for the next daemon, too.
    run::kill(world.daemon(), Signal::KILL);
    let after = wait::until("another daemon", || {
        let outcome = world.hob(&["dead", "--json"]).go();
        (outcome.end == End::Code(0)).then_some(outcome)
    });
    assert!(after.text().contains(&id), "{}", after.text());

    world.file("good", "");
    assert_eq!(world.hob(&["dead", "retry", &id]).go().text(), "hob: 1 tried again\n");
    wait::until("a second try", || (notes(&world) == ["first", "first"]).then_some(()));
    wait::until("nothing left", || {
        let messages = &world.status()["messages"];
        (messages["waiting"] == 0 && messages["dead"] == 0).then_some(())
    });
    assert_eq!(json(&world, &["list"])["letters"], Value::Array(Vec::new()));
}

#[test]
fn dead_letters_are_seen_and_dropped_without_a_daemon() {
    let fresh = World::new();
    assert_eq!(fresh.hob(&["dead"]).go().text(), "there are no dead letters\n");
    let none = fresh.hob(&["dead", "retry", "--all"]).go();
    assert_eq!((none.end, none.text().as_str()), (End::Code(0), "hob: 0 tried again\n"));
    assert!(!fresh.hob_dir().exists() && !fresh.path("state/hob/outbox").exists());

    let world = project(HANDLERS, &program("picky", "picky", "tries = 1"));
    let (first, second) = (tell(&world, "first"), tell(&world, "second"));
    let listed = until_dead(&world, 2);
    world.hob(&["stop"]).go().succeeded();
    assert_eq!(json(&world, &[]), listed, "the same is said without a daemon");
    let drop = world.hob(&["dead", "drop", &first]).go();
    assert_eq!(drop.text(), "hob: 1 dropped\n");
    assert_eq!(json(&world, &["list"])["letters"][0]["id"], second.as_str());
    let unknown = world.hob(&["dead", "retry", &first]).go();
    assert!(unknown.complaint().contains("no dead letter has this id"), "{unknown:?}");
    assert_eq!(world.daemon_if_any(), None, "a daemon was started");
    // What is to be tried again needs a daemon.
    world.file("good", "");
    world.hob(&["dead", "retry", &second]).go().succeeded();
    wait::until("it is delivered", || (notes(&world).len() == 3).then_some(()));
    assert!(world.daemon_if_any().is_some());
}

#[test]
fn dead_letters_are_dropped_by_id_or_all_and_an_unknown_id_is_said() {
    let world = project(HANDLERS, &program("picky", "picky", "tries = 1"));
    let ids = ["a", "b", "c"].map(|payload| tell(&world, payload));
    until_dead(&world, 3);
    let strange = "01a201a7-5638-7000-a94f-b9f9a45ebdaf";
    for unknown in [strange, "nonsense"] {
        let outcome = world.hob(&["dead", "drop", unknown]).go();
        assert_eq!((outcome.end, outcome.text().as_str()), (End::Code(1), ""));
        assert!(outcome.complaint().contains("no dead letter has this id"), "{unknown}");
    }
    let mixed = world.hob(&["dead", "drop", &ids[1], strange]).go();
    assert_eq!((mixed.end, mixed.text().as_str()), (End::Code(1), "hob: 1 dropped\n"));
    assert!(mixed.complaint().contains(strange), "{}", mixed.complaint());
    let left = json(&world, &[]);
    let left: Vec<_> = left["letters"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(left, [ids[0].as_str(), ids[2].as_str()]);
    assert_eq!(json(&world, &["drop", "--all"])["changed"], 2);
    assert_eq!(json(&world, &[])["total"], 0);
    // Which ones must be said.
    assert_eq!(world.hob(&["dead", "drop"]).go().end, End::Code(2));
}

#[test]
fn a_tell_waits_without_a_try_while_its_program_is_not_trusted_or_not_loadable() {
    let sections = program("picky", "picky", "tries = 100");
    let world = project(HANDLERS, &sections);
    let held = |reason: &str| {
        wait::until(reason, || {
            let messages = world.status()["messages"].clone();
            let why = messages["held_why"].as_str().unwrap_or_default().to_owned();
            (messages["held"] == 1 && why.starts_with(reason)).then_some(())
        });
    };
    tell(&world, "kept");
    wait::until("a try", || (!notes(&world).is_empty()).then_some(()));
    // It comes again by itself, and finds a file that nobody has looked at.
    world.file("hob.toml", format!("{sections}# edited\n"));
    held("untrusted: ");
    let tries = notes(&world).len();
    // With the trust it comes at once: and finds a handler that cannot be loaded.
    world.file("handlers.py", "this is no Python");
    trusted(&world, &format!("{sections}# edited again\n"));
    held("not-loaded: ");
    assert_eq!(notes(&world).len(), tries);
    world.file("good", "");
    world.file("handlers.py", HANDLERS);
    wait::until("all done", || (world.status()["messages"]["waiting"] == 0).then_some(()));
    assert_eq!(notes(&world).len(), tries + 1);
    assert_eq!(json(&world, &[])["total"], 0);
}
