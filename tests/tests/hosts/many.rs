//! Ten thousand asks, while hosts and the server are killed: each has one outcome, and it is true.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hob_tests::run::kill;
use hob_tests::teller::{Reply, Teller};
use hob_tests::{World, wait};
use rustix::process::Signal;

use super::{Server, ask, connected, host, offered, project};

pub(super) const HANDLERS: &str = r#"
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
pub(super) enum Ended {
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

/// A sender in this host's working folder.
pub(super) fn teller(world: &World) -> Teller {
    let environment: Vec<Vec<u8>> = world
        .environment()
        .into_iter()
        .map(|(name, value)| [name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat())
        .collect();
    let folder = world.path("work").canonicalize().unwrap();
    let variables = environment.iter().map(Vec::as_slice);
    Teller::connect(&world.hob_dir(), &folder, variables).unwrap()
}

/// That what each asker was told is what the hosts have performed.
pub(super) fn all_true(ended: &BTreeMap<u64, Ended>, performed: &BTreeMap<u64, u32>) {
    for (number, how) in ended {
        let count = performed.get(number).copied().unwrap_or(0);
        let is_true = match how {
            Ended::Answered => count == 1,
            Ended::NotGiven => count == 0,
            Ended::Lost => count <= 1,
        };
        assert!(is_true, "{number}: {how:?}, and performed {count} times");
    }
}

/// How often each was performed.
pub(super) fn performed(worlds: &[World]) -> BTreeMap<u64, u32> {
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
    let mut teller = teller(&desk);
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
    all_true(&ended, &performed(&webs));
    let count = |how| ended.values().filter(|each| **each == how).count();
    assert!(count(Ended::Answered) > 9_000, "{} answered", count(Ended::Answered));
    drop(server);
}

/// So often a host is stopped, with asks on their way to it.
const STOPS: usize = 40;
/// The asks that are answered between two stops.
const BETWEEN: usize = 200;

#[test]
fn no_ask_that_reaches_a_host_in_the_moment_it_stops_is_lost() {
    let server = Server::start("");
    let webs = [web("left", &server), web("right", &server)];
    let desk = host("desk", &server.url(), "");
    for program in ["plain", "claimed"] {
        ask(&desk, &[program, "ready"]).succeeded();
    }
    let mut teller = teller(&desk);
    let (mut sent, mut open) = (0, 0);
    for stop in 0..STOPS {
        let world = &webs[stop % 2];
        let (mut stopping, mut left) = (None, BETWEEN);
        loop {
            // Asks go on until the host has left, and then those that are open are waited for.
            let is_gone = |(_, ended): &(_, _)| wait::readable(ended, Duration::ZERO);
            while open < WINDOW && !stopping.as_ref().is_some_and(is_gone) {
                sent += 1;
                let program = if sent % 2 == 0 { "plain" } else { "claimed" };
                teller.ask_within(sent, program, b"x", WITHIN_US).unwrap();
                open += 1;
            }
            if open == 0 {
                break;
            }
            teller.flush().unwrap();
            if left == 0 && stopping.is_none() {
                let stop = world.hob(&["stop"]).start();
                let ended = wait::pidfd(stop.pid()).unwrap();
                stopping = Some((stop, ended));
            }
            match teller.reply().unwrap().unwrap() {
                Reply::Answered(..) => left = left.saturating_sub(1),
                Reply::Failed(_, "busy" | "stopping", _) => {}
                other @ (Reply::Failed(..) | Reply::Accepted(..)) => panic!("{stop}: {other:?}"),
            }
            open -= 1;
        }
        stopping.unwrap().0.finish().succeeded();
        world.hob(&["start"]).go().succeeded();
        connected(world, 2);
    }
    drop(server);
}
