//! Tells with a key, to a program whose hosts keep their order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_tests::teller::Reply;
use hob_tests::{World, wait};
use tempfile::TempDir;

use super::{Store, crash, empty, json, two};
use crate::hosts::many::teller;
use crate::hosts::{Server, connected, host, offered, project};

/// All hosts write into one file, so that what one began before another is seen in it.
#[derive(Debug)]
pub(in crate::hosts) struct Log(TempDir);

impl Log {
    pub(in crate::hosts) fn new() -> Log {
        Log(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// `notes` of a host; it fails for a payload that is there.
    pub(in crate::hosts) fn handlers(&self) -> String {
        let (log, bad) = (self.path(), self.bad());
        format!(
            r#"
import os
import time

LOG = os.open({log:?}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def notes(payload, message):
    word = payload.decode()
    os.write(LOG, f"begin {{message.key or '-'}} {{word}}\n".encode())
    if os.path.exists({bad:?} + word):
        raise ValueError("not yet")
    # So that who is killed has something open.
    time.sleep(0.01)
    os.write(LOG, f"end {{message.key or '-'}} {{word}} {{os.getcwd()}}\n".encode())
"#
        )
    }

    fn bad(&self) -> String {
        format!("{}/bad-", self.0.path().display())
    }

    /// What was begun and ended, in its order: a word, a key and a number.
    pub(in crate::hosts) fn lines(&self) -> Vec<(bool, String, u64)> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let line = |line: &str| {
            let mut words = line.split(' ');
            let is_end = words.next() == Some("end");
            let (key, number) = (words.next().unwrap().to_owned(), words.next().unwrap());
            (is_end, key, number.parse().unwrap())
        };
        whole.lines().map(line).collect()
    }

    /// In whose folder each key was performed since so many lines.
    fn places(&self, since: usize) -> BTreeMap<String, BTreeSet<String>> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in text.lines().skip(since) {
            if let ["end", key, _, place] = line.split(' ').collect::<Vec<_>>()[..] {
                all.entry(key.to_owned()).or_default().insert(place.to_owned());
            }
        }
        all
    }

    /// What was performed, by keys.
    pub(in crate::hosts) fn performed(&self) -> BTreeMap<String, BTreeSet<u64>> {
        let mut all: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for (_, key, number) in self.lines().into_iter().filter(|(is_end, ..)| *is_end) {
            all.entry(key).or_default().insert(number);
        }
        all
    }

    /// That of one key nothing began before the one that was told before it had ended.
    pub(in crate::hosts) fn in_order(&self) {
        let mut ended: BTreeMap<String, u64> = BTreeMap::new();
        for (is_end, key, number) in self.lines() {
            let last = ended.entry(key.clone()).or_insert(0);
            // One whose host was killed comes again.
            let is_next = number == *last + 1 || number == *last;
            assert!(is_next, "{key}: {number} behind {last}");
            if is_end {
                *last = number;
            }
        }
    }
}

const PARTITIONED: &str = "partitions = 4\ntries = 8";
const KEYS: u64 = 20;
const OF_EACH: u64 = 60;

/// Tells these numbers of each of so many keys, and waits until all are kept.
pub(in crate::hosts) fn tells(
    world: &World,
    program: &str,
    keys: u64,
    numbers: RangeInclusive<u64>,
) {
    let mut teller = teller(world);
    for number in numbers {
        for key in 0..keys {
            let (name, payload) = (format!("key.{key}"), number.to_string());
            let (name, payload) = (name.as_bytes(), payload.as_bytes());
            teller.tell_by_key(number * keys + key, program, name, payload).unwrap();
        }
        teller.flush().unwrap();
        for _ in 0..keys {
            let reply = teller.reply().unwrap().unwrap();
            assert!(matches!(reply, Reply::Accepted(..)), "{reply:?}");
        }
    }
}

fn of_all(log: &Log, to: u64) -> bool {
    let performed = log.performed();
    performed.len() as u64 == KEYS && performed.values().all(|all| all.len() as u64 == to)
}

#[test]
fn a_tell_with_a_key_waits_for_a_host_that_keeps_their_order_and_holds_up_no_other() {
    let (store, log) = (Store::new(), Log::new());
    let server = Server::start(&store.config());
    let web = host("web-1", &server.url(), "");
    project(&web, &log.handlers(), &offered("notes", "notes", ""));
    connected(&web, 1);
    let desk = host("desk", &server.url(), "");
    desk.hob(&["tell", "notes", "1", "--key", "a.b"]).go().succeeded();
    wait::until("why it waits", || {
        let why = desk.status()["messages"]["held_why"].clone();
        why.as_str().is_some_and(|why| why.contains("with `partitions`")).then_some(())
    });
    desk.hob(&["tell", "notes", "7"]).go().succeeded();
    wait::until("the one without a key", || {
        log.lines().contains(&(true, "-".to_owned(), 7)).then_some(())
    });
    assert_eq!(desk.status()["messages"]["waiting"], 1);
    web.file("hob.toml", offered("notes", "notes", PARTITIONED));
    web.hob(&["trust"]).go().succeeded();
    wait::until("the one with a key", || log.performed().contains_key("a.b").then_some(()));
    empty(&desk);
    let seen = json(&desk, &["hosts"]);
    assert_eq!(seen["programs"][0]["partitions"], 4, "{seen}");
    // Another number is not taken while the stream has this one: what it has would lose its order.
    web.file("hob.toml", offered("notes", "notes", "partitions = 8"));
    web.hob(&["trust"]).go().succeeded();
    wait::until("the new number", || {
        (json(&desk, &["hosts"])["programs"][0]["partitions"] == 8).then_some(())
    });
    wait::until("what is told of it", || {
        let why = web.status()["hosts"]["tells_why"].clone();
        why.as_str().is_some_and(|why| why.contains("has 4 partitions")).then_some(())
    });
    desk.hob(&["tell", "notes", "2", "--key", "a.b"]).go().succeeded();
    wait::until("one more", || log.performed()["a.b"].contains(&2).then_some(()));
}

#[test]
fn one_that_fails_holds_back_those_of_its_key_until_it_is_done_or_dead() {
    let (store, log) = (Store::new(), Log::new());
    let server = Server::start(&store.config());
    let web = host("web-1", &server.url(), "");
    let programs = offered("notes", "notes", "partitions = 4\ntries = 2");
    project(&web, &log.handlers(), &programs);
    connected(&web, 1);
    let desk = host("desk", &server.url(), "");
    std::fs::write(Path::new(&(log.bad() + "2")), b"").unwrap();
    for number in ["1", "2", "3"] {
        desk.hob(&["tell", "notes", number, "--key", "k"]).go().succeeded();
    }
    wait::until("the last", || {
        log.performed().get("k").is_some_and(|all| all.contains(&3)).then_some(())
    });
    let begun: Vec<u64> = log
        .lines()
        .into_iter()
        .filter(|(is_end, ..)| !is_end)
        .map(|(_, _, number)| number)
        .collect();
    assert_eq!(begun, [1, 2, 2, 3]);
    let letters = json(&web, &["dead"]);
    assert_eq!((&letters["total"], &letters["letters"][0]["key"]), (&1.into(), &"k".into()));
}

#[test]
fn a_key_stays_at_its_host_until_that_stops_or_another_one_comes() {
    let (store, log) = (Store::new(), Log::new());
    let server = Server::start(&store.config());
    let hosts = two(&server, &log.handlers(), &offered("notes", "notes", PARTITIONED));
    hosts[1].hob(&["stop"]).go().succeeded();
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    let mut to = 0;
    // Tells some more of each key, and says where they were performed, if each key had one place.
    let mut performed = || {
        let since = log.lines().len();
        tells(&desk, "notes", KEYS, to + 1..=to + 3);
        to += 3;
        wait::until("all of them", || of_all(&log, to).then_some(()));
        let places = log.places(since);
        let is_one = places.values().all(|places| places.len() == 1);
        is_one.then(|| places.into_values().flatten().collect::<BTreeSet<String>>())
    };
    assert_eq!(performed().unwrap().len(), 1);
    // One that comes has its share after a while. A key is in two places when it goes from one to the
    // other, and in hardly any round where hosts do not keep theirs.
    hosts[1].hob(&["start"]).go().succeeded();
    connected(&hosts[1], 1);
    wait::until("a share of another host", || performed().filter(|places| places.len() == 2));
    hosts[0].hob(&["stop"]).go().succeeded();
    let there = hosts[1].path("work").canonicalize().unwrap();
    assert_eq!(performed(), Some(BTreeSet::from([there.to_str().unwrap().to_owned()])));
    log.in_order();
}

/// `kill -9` of the server, of the teller's daemon and of a host, and a host that stops.
#[test]
fn of_twelve_hundred_tells_by_twenty_keys_none_is_lost_or_passes_another_whoever_is_killed() {
    let (store, log) = (Store::new(), Log::new());
    let mut server = Server::start(&store.config());
    let hosts = two(&server, &log.handlers(), &offered("notes", "notes", PARTITIONED));
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    let part = OF_EACH / 4;
    for number in 0..4 {
        tells(&desk, "notes", KEYS, number * part + 1..=(number + 1) * part);
        match number {
            0 => {
                let port = server.kill();
                server = Server::at(port, &store.config());
            }
            1 => {
                crash(&desk);
                desk.hob(&["start"]).go().succeeded();
            }
            2 => hosts[0].hob(&["stop"]).go().succeeded(),
            _ => {
                hosts[0].hob(&["start"]).go().succeeded();
                connected(&hosts[0], 1);
                crash(&hosts[1]);
            }
        }
    }
    let is_all = wait::look(Duration::from_secs(180), || of_all(&log, OF_EACH).then_some(()));
    let counts: Vec<usize> = log.performed().values().map(BTreeSet::len).collect();
    assert!(is_all.is_some(), "performed of each key: {counts:?}");
    empty(&desk);
    log.in_order();
    hosts[1].hob(&["start"]).go().succeeded();
    drop(server);
}
