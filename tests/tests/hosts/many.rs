//! Ten thousand asks, while hosts and the server are killed: each has one outcome, and it is true.

use std::collections::{BTreeMap, BTreeSet};

use hob_tests::run::kill;
use hob_tests::teller::{Reply, Teller};
use hob_tests::{World, wait};
use rustix::process::Signal;

use super::{Server, ask, connected, host, offered, project};

const HANDLERS: &str = r#"
import os

OUT = os.open("performed", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def notes(payload, message):
    os.write(OUT, payload + b"\n")
    return payload
"#;

const ASKS: u64 = 10_000;
const WINDOW: usize = 32;
/// What a killed host has is not heard of any more.
const WITHIN_US: u64 = 10_000_000;

/// What became of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    Answered,
    NotGiven,
    Lost,
}

fn web(name: &str, server: &Server) -> World {
    let world = host(name, &server.url(), "");
    let programs = offered("plain", "notes", "") + &offered("claimed", "notes", "claimed = true");
    project(&world, HANDLERS, &programs);
    connected(&world, 2);
    world
}

fn crash(world: &World) {
    let daemon = world.daemon();
    kill(daemon, Signal::KILL);
    assert!(wait::ended(daemon, wait::LONG));
}

/// How often each was performed.
fn performed(worlds: &[World]) -> BTreeMap<u64, u32> {
    let mut all = BTreeMap::new();
    for world in worlds {
        let text = std::fs::read_to_string(world.path("work").join("performed")).unwrap();
        for number in text.lines().filter_map(|line| line.parse().ok()) {
            *all.entry(number).or_default() += 1;
        }
    }
    all
}

#[test]
fn of_ten_thousand_asks_each_is_answered_lost_or_not_given_and_none_is_performed_twice() {
    let mut server = Server::start("");
    let webs = [web("left", &server), web("right", &server)];
    let desk = host("desk", &server.url(), "");
    for program in ["plain", "claimed"] {
        ask(&desk, &[program, "ready"]).succeeded();
    }
    let environment: Vec<Vec<u8>> = desk
        .environment()
        .into_iter()
        .map(|(name, value)| [name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat())
        .collect();
    let folder = desk.path("work").canonicalize().unwrap();
    let variables = environment.iter().map(Vec::as_slice);
    let mut teller = Teller::connect(&desk.hob_dir(), &folder, variables).unwrap();
    let mut ended = BTreeMap::new();
    let (mut sent, mut open) = (0, BTreeSet::new());
    let mut faults = [1_500, 3_000, 5_000, 7_000, 8_500].into_iter().peekable();
    while sent < ASKS || !open.is_empty() {
        while sent < ASKS && open.len() < WINDOW {
            sent += 1;
            let program = if sent % 2 == 0 { "plain" } else { "claimed" };
            teller.ask_within(sent, program, sent.to_string().as_bytes(), WITHIN_US).unwrap();
            open.insert(sent);
        }
        teller.flush().unwrap();
        // With asks open: some of them are lost.
        if faults.next_if(|at| sent >= *at).is_some() {
            match faults.len() {
                3 => {
                    let port = server.kill();
                    server = Server::at(port, "");
                    webs.iter().for_each(|world| connected(world, 2));
                }
                left => {
                    let world = &webs[left % 2];
                    crash(world);
                    world.hob(&["start"]).go().succeeded();
                    connected(world, 2);
                }
            }
        }
        let (number, how) = match teller.reply().unwrap().unwrap() {
            Reply::Answered(number, answer) => {
                assert_eq!(answer, number.to_string().into_bytes());
                (number, Ended::Answered)
            }
            Reply::Failed(number, "lost" | "timed-out", _) => (number, Ended::Lost),
            Reply::Failed(number, "no-host" | "busy" | "stopping", _) => (number, Ended::NotGiven),
            other @ (Reply::Failed(..) | Reply::Accepted(..)) => panic!("{other:?}"),
        };
        assert!(open.remove(&number), "{number} has two outcomes, or was never asked");
        ended.insert(number, how);
        if how == Ended::NotGiven {
            connected(&desk, 0);
        }
    }
    assert_eq!(ended.len() as u64, ASKS);
    let performed = performed(&webs);
    for (number, how) in &ended {
        let count = performed.get(number).copied().unwrap_or(0);
        let is_true = match how {
            Ended::Answered => count == 1,
            Ended::NotGiven => count == 0,
            Ended::Lost => count <= 1,
        };
        assert!(is_true, "{number}: {how:?}, and performed {count} times");
    }
    let count = |how| ended.values().filter(|each| **each == how).count();
    assert!(count(Ended::Answered) > 9_000, "{} answered", count(Ended::Answered));
    drop(server);
}
