//! A host whose network is cut: one way, the other way, and both.

mod proxy;

use std::collections::{BTreeMap, BTreeSet};

use hob_tests::teller::Reply;
use hob_tests::{World, wait};
use serde_json::Value;

use super::many::{Ended, HANDLERS, all_true, performed, teller};
use super::{Server, ask, connected, host, offered, project};
use proxy::{Cut, Proxy};

/// The server finds out soon that a host is gone.
const PINGS: &str = "ping_interval: \"1s\"\nping_max: 1";
const ASKS: u64 = 400;
const WINDOW: usize = 16;
const WITHIN_US: u64 = 4_000_000;
/// When the cut begins, and when it is over.
const CUT_AT: u64 = 100;
const OVER_AT: u64 = 300;

fn web(name: &str, url: &str) -> World {
    let world = host(name, url, "");
    let programs = offered("plain", "notes", "") + &offered("claimed", "notes", "claimed = true");
    project(&world, HANDLERS, &programs);
    connected(&world, 2);
    world
}

/// Whether this host says what it offers.
fn is_seen(desk: &World, name: &str) -> Option<()> {
    let outcome = desk.hob(&["hosts", "--json"]).go();
    let value: Value = serde_json::from_slice(&outcome.out).ok()?;
    value["programs"].as_array()?.iter().any(|each| each["host"] == name).then_some(())
}

#[test]
fn asks_are_answered_lost_or_not_given_while_a_hosts_network_is_cut() {
    let server = Server::start(PINGS);
    let proxy = Proxy::start(server.port());
    let webs = [web("left", &proxy.url()), web("right", &server.url())];
    let desk = host("desk", &server.url(), "");
    for program in ["plain", "claimed"] {
        ask(&desk, &[program, "ready"]).succeeded();
    }
    let mut teller = teller(&desk);
    let mut ended = BTreeMap::new();
    let mut sent = 0;
    for cut in [Cut::ToHost, Cut::FromHost, Cut::Both] {
        let first = sent;
        let mut open = BTreeSet::new();
        while sent - first < ASKS || !open.is_empty() {
            while sent - first < ASKS && open.len() < WINDOW {
                sent += 1;
                let program = if sent % 2 == 0 { "plain" } else { "claimed" };
                teller.ask_within(sent, program, sent.to_string().as_bytes(), WITHIN_US).unwrap();
                open.insert(sent);
                match sent - first {
                    CUT_AT => proxy.cut(Some(cut)),
                    OVER_AT => proxy.cut(None),
                    _ => {}
                }
            }
            teller.flush().unwrap();
            let (number, how) = match teller.reply().unwrap().unwrap() {
                Reply::Answered(number, _) => (number, Ended::Answered),
                Reply::Failed(number, "lost" | "timed-out", _) => (number, Ended::Lost),
                Reply::Failed(number, "no-host" | "busy" | "stopping", _) => {
                    (number, Ended::NotGiven)
                }
                other @ (Reply::Failed(..) | Reply::Accepted(..)) => panic!("{cut:?}: {other:?}"),
            };
            assert!(open.remove(&number), "{cut:?}: {number} has two outcomes");
            ended.insert(number, how);
        }
        let is_lost = |(number, how): &(&u64, &Ended)| **number > first && **how == Ended::Lost;
        let lost: Vec<u64> = ended.iter().filter(is_lost).map(|(number, _)| *number).collect();
        let claimed = lost.iter().filter(|number| *number % 2 == 1).count();
        assert!(claimed <= WINDOW, "{cut:?}: of claimed ones no more than were open: {lost:?}");
        // The host comes back by itself.
        wait::until("the host that was cut off", || is_seen(&desk, "left"));
    }
    connected(&webs[0], 2);
    all_true(&ended, &performed(&webs));
    let count = ended.values().filter(|how| **how == Ended::Answered).count();
    assert!(count as u64 > 3 * ASKS * 8 / 10, "{count} answered");
    drop(server);
}
