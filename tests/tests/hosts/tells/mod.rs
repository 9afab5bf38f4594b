//! Tells to programs of other hosts: kept here, then by their stream, then performed.

pub(super) mod keys;
mod receipts;

use std::collections::BTreeSet;
use std::time::Duration;

use hob_tests::run::kill;
use hob_tests::teller::Reply;
use hob_tests::{End, World, wait};
use rustix::process::Signal;
use tempfile::TempDir;

use super::many::teller;
use super::{Server, connected, host, offered, project};

const HANDLERS: &str = r#"
def notes(payload, message):
    with open("performed", "ab") as file:
        file.write(payload + b" " + message.id.encode() + b"\n")

def raises(payload, message):
    raise ValueError("not this one")
"#;

/// A store of a server's, that is longer there than the server.
struct Store(TempDir);

impl Store {
    fn new() -> Store {
        Store(tempfile::tempdir().unwrap())
    }

    fn config(&self) -> String {
        format!("jetstream: {{ store_dir: \"{}\" }}", self.0.path().display())
    }
}

/// Two hosts that offer this.
fn two(server: &Server, handlers: &str, programs: &str) -> [World; 2] {
    ["left", "right"].map(|name| {
        let world = host(name, &server.url(), "");
        project(&world, handlers, programs);
        connected(&world, 1);
        world
    })
}

/// What a host has performed: words and ids.
fn performed(world: &World) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(world.path("work").join("performed")).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let pair = |line: &str| line.split_once(' ').map(|(word, id)| (word.to_owned(), id.to_owned()));
    whole.lines().filter_map(pair).collect()
}

fn words(all: &[(String, String)]) -> BTreeSet<String> {
    all.iter().map(|(word, _)| word.clone()).collect()
}

fn tell(world: &World, word: &str) {
    world.hob(&["tell", "notes", word]).go().succeeded();
}

/// `kill -9` of the daemon.
fn crash(world: &World) {
    let daemon = world.daemon();
    kill(daemon, Signal::KILL);
    assert!(wait::ended(daemon, wait::LONG));
}

/// What a command says as JSON.
fn json(world: &World, words: &[&str]) -> serde_json::Value {
    let outcome = world.hob(words).args(&["--json"]).go();
    outcome.succeeded();
    serde_json::from_slice(&outcome.out).unwrap()
}

/// Waits until nothing is kept here.
fn empty(world: &World) {
    wait::until("an empty outbox", || (world.status()["messages"]["waiting"] == 0).then_some(()));
}

#[test]
fn a_tell_waits_for_a_host_that_takes_it_and_is_performed_once_with_its_id() {
    let store = Store::new();
    let server = Server::start(&store.config());
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    connected(&desk, 0);
    let told = desk.hob(&["tell", "notes", "early"]).go();
    told.succeeded();
    wait::until("why it waits", || {
        let why = desk.status()["messages"]["held_why"].clone();
        why.as_str().is_some_and(|why| why.contains("no host has offered it yet")).then_some(())
    });
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("notes", "notes", ""));
    connected(&web, 1);
    empty(&desk);
    for number in 0..20 {
        tell(&desk, &number.to_string());
    }
    let all = wait::until("all of them", || Some(performed(&web)).filter(|all| all.len() >= 21));
    assert_eq!((all.len(), words(&all).len()), (21, 21));
    // Several are performed at once, so the first that was told need not be the first line.
    let (_, id) = all.iter().find(|(word, _)| word == "early").unwrap();
    assert!(told.text().contains(id), "{id} is not {told:?}");
    let there = super::receipt(&web, |receipt| receipt["program"]["name"] == "notes");
    assert!(there["message"]["asked_by"].as_str().unwrap().starts_with("desk/"), "{there}");
    // What is offered here is told here, from any folder.
    let elsewhere = web.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    web.hob(&["tell", "notes", "own"]).within(&elsewhere).go().succeeded();
    wait::until("its own", || words(&performed(&web)).contains("own").then_some(()));
    assert!(web.status()["hosts"]["tells_why"].is_null());
}

#[test]
fn a_tell_that_fails_too_often_is_a_dead_letter_of_the_host_that_tried_it_last() {
    let store = Store::new();
    let server = Server::start(&store.config());
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("raises", "raises", "tries = 2"));
    connected(&web, 1);
    let desk = host("desk", &server.url(), "");
    let told = desk.hob(&["tell", "raises", "bad"]).go();
    told.succeeded();
    let letters = wait::until("a dead letter", || {
        let outcome = web.hob(&["dead", "--json"]).go();
        let value: serde_json::Value = serde_json::from_slice(&outcome.out).ok()?;
        let letters = value["letters"].as_array()?.clone();
        (!letters.is_empty()).then_some(letters)
    });
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert!(told.text().contains(letters[0]["id"].as_str().unwrap()), "{letters:?}");
    assert_eq!((&letters[0]["tries"], &letters[0]["program"]), (&2.into(), &"raises".into()));
    assert!(letters[0]["why"].as_str().unwrap().contains("not this one"), "{letters:?}");
    empty(&desk);
    // Who tells sees at which host to look.
    let seen = desk.hob(&["hosts", "--json"]).go();
    let seen: serde_json::Value = serde_json::from_slice(&seen.out).unwrap();
    assert_eq!(
        (&seen["programs"][0]["host"], &seen["programs"][0]["dead"]),
        (&"web-1".into(), &1.into())
    );
    // And which it is; of what that host does not offer nothing is said.
    let own = "[program.own]\nhandler = \"handlers.py:raises\"\ntries = 1\n";
    web.file("hob.toml", offered("raises", "raises", "tries = 2") + own);
    web.hob(&["trust"]).go().succeeded();
    web.hob(&["tell", "own", "x"]).go().succeeded();
    wait::until("its own letter", || (json(&web, &["dead"])["total"] == 2).then_some(()));
    let all = json(&desk, &["dead"]);
    assert_eq!((&all["total"], &all["hosts"][0]["host"]), (&0.into(), &"web-1".into()), "{all}");
    assert_eq!(all["hosts"][0]["letters"], serde_json::Value::Array(letters.clone()), "{all}");
    assert_eq!((&all["hosts"][0]["total"], &all["silent"]), (&1.into(), &serde_json::Value::Null));
    assert_eq!(json(&desk, &["dead", "--here"])["hosts"], serde_json::Value::Null);
    let shown = desk.hob(&["dead"]).go();
    assert!(shown.text().contains("no dead letters at this host\n\nat web-1\n"), "{shown:?}");
    let elsewhere = desk.hob(&["dead", "retry", letters[0]["id"].as_str().unwrap()]).go();
    assert_eq!(elsewhere.end, End::Code(1), "{elsewhere:?}");
    assert!(elsewhere.complaint().contains("its host is web-1: run"), "{elsewhere:?}");
    // Repaired, it is performed where it lies.
    web.file(
        "handlers.py",
        HANDLERS.replace("def raises", "def unused").replace("notes", "raises"),
    );
    web.hob(&["dead", "retry", letters[0]["id"].as_str().unwrap()]).go().succeeded();
    wait::until("it is performed", || words(&performed(&web)).contains("bad").then_some(()));
}

#[test]
fn without_streams_a_tell_waits_and_both_sides_say_why() {
    let server = Server::start("");
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("notes", "notes", ""));
    connected(&web, 1);
    wait::until("why nothing comes", || {
        (web.status()["hosts"]["tells_why"] == "JetStream is off").then_some(())
    });
    let desk = host("desk", &server.url(), "");
    tell(&desk, "x");
    wait::until("why it waits", || {
        let why = desk.status()["messages"]["held_why"].clone();
        why.as_str().is_some_and(|why| why.contains("JetStream is off")).then_some(())
    });
    // Asks go on.
    super::ask(&desk, &["notes", "y"]).succeeded();
    assert_eq!(words(&performed(&web)).into_iter().collect::<Vec<_>>(), ["y"]);
}

/// Tells of the test below, in parts of which each ends with a fault.
const TELLS: u64 = 10_000;
const PARTS: u64 = 5;
const ON_THEIR_WAY: u64 = 256;

/// Tells these, and waits until each is kept.
fn tells(world: &World, numbers: std::ops::Range<u64>) {
    let mut teller = teller(world);
    let (mut next, mut kept) = (numbers.start, numbers.start);
    while kept < numbers.end {
        while next < numbers.end && next - kept < ON_THEIR_WAY {
            teller.tell(next, "notes", next.to_string().as_bytes()).unwrap();
            next += 1;
        }
        teller.flush().unwrap();
        match teller.reply().unwrap().unwrap() {
            Reply::Accepted(..) => kept += 1,
            other @ (Reply::Answered(..) | Reply::Failed(..)) => panic!("{other:?}"),
        }
    }
}

/// `kill -9` of the server, of the teller's daemon and of a host, in the middle of tells.
#[test]
fn of_ten_thousand_tells_none_is_lost_when_its_server_its_teller_or_its_host_is_killed() {
    let store = Store::new();
    let mut server = Server::start(&store.config());
    let hosts = two(&server, HANDLERS, &offered("notes", "notes", ""));
    let desk = host("desk", &server.url(), "");
    tell(&desk, "0");
    for part in 0..PARTS {
        let one = TELLS / PARTS;
        tells(&desk, part * one + 1..(part + 1) * one + 1);
        match part {
            0 => {
                let port = server.kill();
                tell(&desk, "without-server");
                server = Server::at(port, &store.config());
            }
            1 => crash(&desk),
            2 => crash(&hosts[0]),
            3 => hosts[0].hob(&["start"]).go().succeeded(),
            _ => {}
        }
        if part == 1 {
            desk.hob(&["start"]).go().succeeded();
        }
    }
    let mut want: BTreeSet<String> = (0..=TELLS).map(|number| number.to_string()).collect();
    want.insert("without-server".to_owned());
    // What the killed host had is given to another one when it has been silent for long enough.
    let all = || [performed(&hosts[0]), performed(&hosts[1])].concat();
    let is_all = wait::look(Duration::from_secs(180), || (words(&all()) == want).then_some(()));
    let all = all();
    let done = words(&all);
    let lost: Vec<&String> = want.difference(&done).take(10).collect();
    assert!(is_all.is_some(), "{} of {}; lost: {lost:?}", done.len(), want.len());
    empty(&desk);
    // One that came twice came with one id.
    let ids: BTreeSet<&(String, String)> = all.iter().collect();
    assert_eq!(ids.len(), want.len());
    drop(server);
}

/// Tells of the test below: half of them before the server's store is gone, half while it is away.
const BEFORE: u64 = 500;

/// A server that comes back with nothing knows no stream and no host: both come back to it.
#[test]
fn a_server_with_an_empty_store_loses_no_tell_that_it_had_not_taken() {
    let store = Store::new();
    let server = Server::start(&store.config());
    let hosts = two(&server, HANDLERS, &offered("notes", "notes", ""));
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    let all = || words(&[performed(&hosts[0]), performed(&hosts[1])].concat());
    tells(&desk, 0..BEFORE);
    empty(&desk);
    wait::until("the first half", || (all().len() as u64 == BEFORE).then_some(()));
    let port = server.kill();
    tells(&desk, BEFORE..2 * BEFORE);
    let other = Store::new();
    let _server = Server::at(port, &other.config());
    let want: BTreeSet<String> = (0..2 * BEFORE).map(|number| number.to_string()).collect();
    let is_all = wait::look(Duration::from_secs(60), || (all() == want).then_some(()));
    let lost: Vec<String> = want.difference(&all()).take(10).cloned().collect();
    assert!(is_all.is_some(), "lost: {lost:?}");
    empty(&desk);
}
