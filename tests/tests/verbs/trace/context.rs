//! The trace of a caller: in by environment, message and header; out by message and header.

use hob_tests::World;
use hob_tests::site::Site;
use serde_json::Value;

use crate::messages;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SHELL: &str = "00f067aa0ba902b7";

/// A program that a shell calls: it asks a handler, and runs another program.
const OUTER: &str = r#"import os, subprocess, sys
hob = sys.argv[1]
print("outer", os.environ.get("TRACEPARENT"), flush=True)
subprocess.run([hob, "ask", "middle", hob], check=True)
"#;
/// Its handler, which runs a program in its own place of the trace.
const HANDLERS: &str = r#"import os, subprocess
def middle(payload, message):
    own = os.environ.get("TRACEPARENT")
    world = dict(os.environ, TRACEPARENT=message.traceparent)
    subprocess.run([payload.decode(), "run", "python3", "inner.py"], env=world, check=True)
    return "middle %s %s" % (own, message.traceparent)
"#;

/// The receipt of the program or handler whose name has this part.
fn receipt(world: &World, name: &str) -> Value {
    let log = world.hob(&["log", "--json", "-n", "100"]).go().text();
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_it = |one: &Value| {
        let program = &one["program"];
        [&program["name"], &program["target"]]
            .iter()
            .any(|text| text.as_str().is_some_and(|text| text.contains(name)))
    };
    all.rev().find(is_it).unwrap_or_else(|| panic!("no receipt of {name}: {log}"))
}

#[test]
fn from_the_shell_to_the_daemon_to_a_worker_to_its_child_a_trace_is_one_tree() {
    let world = messages::project(HANDLERS, &messages::program("middle", "middle", ""));
    world.file("outer.py", OUTER);
    world.file("inner.py", "import os\nassert os.environ['TRACEPARENT']\n");
    let hob = world.binary().to_str().unwrap().to_owned();
    // Without a trace nothing is in one, and a handler is told of none.
    world.hob(&["run", "python3", "inner.py"]).env("TRACEPARENT", "00-none").go().succeeded();
    assert_eq!(receipt(&world, "inner")["trace"], Value::Null);

    let shell = format!("00-{TRACE}-{SHELL}-01");
    let run = world.hob(&["run", "python3", "outer.py", &hob]).env("TRACEPARENT", &shell);
    let outcome = world.in_time(&run);
    outcome.succeeded();
    let text = outcome.text();
    let lines: Vec<&str> = text.lines().collect();
    // The environment of a program is its caller's, and that of a handler has nothing of it.
    assert_eq!(lines[0], format!("outer {shell}"));
    let [outer, middle, inner] = ["outer", "middle", "inner"].map(|name| receipt(&world, name));
    for one in [&outer, &middle, &inner] {
        assert_eq!(one["trace"]["id"], TRACE, "{one}");
    }
    // The message's sender has its own caller's environment: that is its parent.
    assert_eq!(
        (&outer["trace"]["parent"], &middle["trace"]["parent"]),
        (&SHELL.into(), &SHELL.into())
    );
    let own = middle["trace"]["span"].as_str().unwrap();
    assert_eq!(lines[1], format!("middle None 00-{TRACE}-{own}-01"));
    assert_eq!(inner["trace"]["parent"], own);

    let export: Value =
        serde_json::from_slice(&world.hob(&["trace", "export", "otlp"]).go().out).unwrap();
    let mut spans = Vec::new();
    for resource in export["resourceSpans"].as_array().unwrap() {
        spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().iter());
    }
    let spans: Vec<_> = spans.into_iter().filter(|span| span["traceId"] == TRACE).collect();
    let known = |id: &Value| *id == SHELL || spans.iter().any(|span| span["spanId"] == *id);
    assert!(spans.len() > 3 && spans.iter().all(|span| known(&span["parentSpanId"])), "{spans:?}");
}

#[test]
fn a_handler_in_ruby_is_told_of_its_trace_and_of_none() {
    let world = World::new();
    world.file("told.rb", "def told(payload, message)\n  message.traceparent.inspect\nend\n");
    messages::trusted(&world, "[program.told]\nhandler = \"told.rb:told\"\n");
    assert_eq!(messages::ask(&world, &["told", "x"]), "nil");
    let ask = world.hob(&["ask", "told", "x"]).env("TRACEPARENT", format!("00-{TRACE}-{SHELL}-00"));
    let outcome = ask.go();
    outcome.succeeded();
    let own = receipt(&world, "told")["trace"]["span"].as_str().unwrap().to_owned();
    assert_eq!(outcome.text(), format!("\"00-{TRACE}-{own}-00\""));
}

/// Says what it is asked with.
const APP: &str = r#"
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ.get("HTTP_TRACEPARENT", "none").encode()]
"#;

#[test]
fn a_request_stands_in_its_clients_trace_and_its_app_below_it() {
    let world = World::new();
    world.file("wsgi.py", APP);
    let site = Site::serve(&world, &["."]);
    // The first request of an app has a receipt of its own; a later one may be stood for by another.
    let header = format!("Traceparent: 00-{TRACE}-{SHELL}-01\r\nX-Other: yes\r\n");
    let seen = site.ask("GET", "/", &header, b"").text();
    let own = seen.strip_prefix(&format!("00-{TRACE}-")).and_then(|own| own.strip_suffix("-01"));
    let own = own.unwrap_or_else(|| panic!("{seen}"));
    assert!(own.len() == 16 && own != SHELL, "{own}");
    assert_eq!(site.get("/").text(), "none");
    // What is none goes on as it came, and is in no trace.
    let odd = site.ask("GET", "/", "Traceparent: 00-none\r\n", b"").text();
    assert_eq!(odd, "00-none");
    site.stop();
    let log = world.hob(&["log", "--json", "-n", "100"]).go().text();
    let receipts = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let traced: Vec<Value> = receipts.filter(|one| one["trace"] != Value::Null).collect();
    let [one] = &traced[..] else { panic!("{log}") };
    let trace = serde_json::json!({ "id": TRACE, "parent": SHELL, "span": own });
    assert_eq!(one["trace"], trace);
}
