//! Asks that are asked on: one trace, and a count of hosts that ends what goes in a circle.

use std::collections::BTreeSet;

use hob_tests::{World, wait};
use serde_json::Value;

use super::{Server, ask, connected, host, offered, project, receipt};

/// A handler that asks another program by `hob ask`, and answers with what comes of it.
fn asks(world: &World, program: &str) -> String {
    let text = |word: &std::ffi::OsStr| word.to_str().unwrap().to_owned();
    let env = world.environment().into_iter().map(|(name, value)| (text(&name), text(&value)));
    let env: serde_json::Map<String, Value> =
        env.map(|(name, value)| (name, value.into())).collect();
    format!(
        "import subprocess\n\
         ENV = {}\n\
         def on(payload, message):\n\
         \x20   asked = subprocess.run([{:?}, 'ask', '{program}', payload], env=ENV,\n\
         \x20       stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n\
         \x20   return asked.stdout + asked.stderr\n\
         def echo(payload, message):\n\
         \x20   return payload\n",
        Value::from(env),
        world.binary().display().to_string(),
    )
}

/// What this host has asked of others: its traces, and over how many hosts.
fn asked(world: &World, hops: u64) -> Value {
    receipt(world, |receipt| {
        receipt["message"]["hops"] == hops && receipt["message"]["asked_by"].is_null()
    })["message"]
        .clone()
}

#[test]
fn what_is_asked_on_belongs_to_one_trace_and_a_circle_ends_after_four_hosts() {
    let server = Server::start("");
    let worlds = ["left", "right"].map(|name| host(name, &server.url(), ""));
    let desk = host("desk", &server.url(), "");
    for (world, (own, other)) in worlds.iter().zip([("ping", "pong"), ("pong", "ping")]) {
        let programs = offered(own, "on", "workers = 4");
        project(
            world,
            &asks(world, other),
            &(programs + &offered(&format!("{own}-echo"), "echo", "")),
        );
        connected(world, 2);
    }
    let outcome = ask(&desk, &["ping-echo", "x"]);
    outcome.succeeded();
    let here = receipt(&desk, |receipt| receipt["message"]["host"].is_string());
    let there = receipt(&worlds[0], |receipt| receipt["message"]["asked_by"].is_string());
    let trace = here["message"]["trace"].as_str().unwrap();
    assert_eq!(trace.len(), 32, "{here}");
    assert_eq!(there["message"]["trace"], trace, "{there}");
    assert_eq!((&here["message"]["hops"], &there["message"]["hops"]), (&1.into(), &1.into()));
    let shown = desk.hob(&["last"]).go();
    assert!(shown.text().contains(" there, ") && shown.text().contains(" on the way"), "{shown:?}");

    let outcome = ask(&desk, &["ping", "x"]);
    outcome.succeeded();
    assert!(outcome.text().contains("it has come over too many hosts"), "{outcome:?}");
    let first = wait::until("the receipt of the second ask", || {
        desk.records(10).into_iter().rev().find(|receipt| receipt["program"]["name"] == "ping")
    });
    let all = [
        first["message"].clone(),
        asked(&worlds[0], 2),
        asked(&worlds[1], 3),
        asked(&worlds[0], 4),
        asked(&worlds[1], 5),
    ];
    let traces: BTreeSet<&str> = all.iter().map(|each| each["trace"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1, "{all:?}");
    assert!(!traces.contains(trace), "two asks of a person's are two traces");
    // A stranger that says another count is believed, and a trace that is none is passed over.
    let none = asked(&worlds[1], 5);
    assert!(none["host"].as_str().unwrap().starts_with("left/"), "{none}");
}
