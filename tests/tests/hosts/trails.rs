//! Asks that are asked on: one trace, and a count of hosts that ends what goes in a circle.

use std::collections::BTreeSet;

use hob_tests::{End, World, wait};
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
    })
}

/// What another host asked of this one.
fn answered(world: &World, hops: u64) -> Value {
    receipt(world, |receipt| {
        receipt["message"]["hops"] == hops && receipt["message"]["asked_by"].is_string()
    })
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
    let trace = here["trace"]["id"].as_str().unwrap();
    assert_eq!(trace.len(), 32, "{here}");
    assert!(here["trace"]["parent"].is_null(), "it begins the trace: {here}");
    assert_eq!(there["trace"]["id"], trace, "{there}");
    assert_eq!(there["trace"]["parent"], here["trace"]["span"], "{here} {there}");
    assert_eq!((&here["message"]["hops"], &there["message"]["hops"]), (&1.into(), &1.into()));
    let shown = desk.hob(&["last"]).go();
    assert!(shown.text().contains(" there, ") && shown.text().contains(" on the way"), "{shown:?}");

    let outcome = ask(&desk, &["ping", "x"]);
    outcome.succeeded();
    assert!(outcome.text().contains("it has come over too many hosts"), "{outcome:?}");
    let first = wait::until("the receipt of the second ask", || {
        desk.records(10).into_iter().rev().find(|receipt| receipt["program"]["name"] == "ping")
    });
    // Each ask, and what it was on the host that had it, down to the fourth.
    let way = [
        first,
        answered(&worlds[0], 1),
        asked(&worlds[0], 2),
        answered(&worlds[1], 2),
        asked(&worlds[1], 3),
        answered(&worlds[0], 3),
        asked(&worlds[0], 4),
        answered(&worlds[1], 4),
        asked(&worlds[1], 5),
    ];
    let traces: BTreeSet<&str> =
        way.iter().map(|each| each["trace"]["id"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1, "{way:?}");
    for pair in way.windows(2) {
        assert_eq!(pair[1]["trace"]["parent"], pair[0]["trace"]["span"], "{pair:?}");
    }
    assert!(!traces.contains(trace), "two asks of a person's are two traces");
    let none = asked(&worlds[1], 5);
    assert!(none["message"]["host"].as_str().unwrap().starts_with("left/"), "{none}");
}

#[test]
fn an_ask_of_another_host_stands_in_the_trace_of_its_caller() {
    let server = Server::start("");
    let there = host("there", &server.url(), "");
    let desk = host("desk", &server.url(), "");
    let says = "def says(payload, message):\n    return message.traceparent\n";
    project(&there, says, &offered("says", "says", ""));
    connected(&there, 1);
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let run = desk.hob(&["ask", "says", "x"]);
    let run = run.env("TRACEPARENT", format!("00-{id}-00f067aa0ba902b7-01"));
    let outcome = wait::until("the program is offered", || {
        Some(run.go()).filter(|outcome| outcome.end == End::Code(0))
    });
    let here = receipt(&desk, |receipt| receipt["message"]["host"].is_string());
    let asked = receipt(&there, |receipt| receipt["message"]["asked_by"].is_string());
    assert_eq!((&here["trace"]["id"], &asked["trace"]["id"]), (&id.into(), &id.into()));
    assert_eq!(here["trace"]["parent"], "00f067aa0ba902b7");
    assert_eq!(asked["trace"]["parent"], here["trace"]["span"]);
    let span = asked["trace"]["span"].as_str().unwrap();
    assert_eq!(outcome.text().trim_end(), format!("00-{id}-{span}-01"));
}
