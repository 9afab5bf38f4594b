//! Spans that programs make themselves (`hob.span`), as `hob trace` has them.

use hob_tests::site::Site;
use hob_tests::{World, wait};
use serde_json::{Value, json};

use crate::messages::{ask, program, project, trusted};

const CLIENT: &[u8] = include_bytes!("../../../../clients/python/hob.py");
/// It does what its words say.
const SCRIPT: &str = "import os, sys, threading, time\n\
     import hob\n\
     @hob.span('decorated')\n\
     def decorated(): pass\n\
     def named(name):\n\
     \x20   with hob.span(name): decorated()\n\
     for word in sys.argv[1:]:\n\
     \x20   if word == 'many':\n\
     \x20       for _ in range(1_000_000):\n\
     \x20           with hob.span('x'): pass\n\
     \x20   elif word == 'fork':\n\
     \x20       with hob.span('forked'):\n\
     \x20           if not os.fork(): named('of the child'); os._exit(0)\n\
     \x20           os.wait()\n\
     \x20   elif word == 'thread':\n\
     \x20       with hob.span('main'):\n\
     \x20           thread = threading.Thread(target=named, args=('of the thread',))\n\
     \x20           thread.start(); thread.join()\n\
     \x20   elif word == 'odd':\n\
     \x20       for name in ('', '\\0 \\x1b[31m<b>\\udcff', b'\\xff\\xfe', 7, 'ä' * 1000): named(name)\n\
     \x20   elif word == 'open': hob.span('left open').__enter__()\n\
     \x20   elif word == 'raise':\n\
     \x20       with hob.span('raises'): raise SystemExit(3)\n\
     \x20   elif word == 'finalise':\n\
     \x20       hob.kept = type('Kept', (), {'__del__': lambda self: os.write(1, b'ended')})()\n\
     \x20   elif word == 'spoil': hob._SPANS_OF_THIS_CALL[:] = [7]\n\
     \x20   else: named(word)\n";

pub(super) fn trace(world: &World) -> Value {
    let outcome = world.hob(&["trace", "--json"]).go();
    outcome.succeeded();
    serde_json::from_slice(&outcome.out).unwrap()
}

/// The program's own spans: name, depth, and whether it was open; each lies within its call.
pub(super) fn own(trace: &Value) -> Vec<Value> {
    let whole_us = trace["receipt"]["total_us"].as_u64().unwrap();
    let spans = trace["spans"].as_array().unwrap().iter().filter(|span| span["own"].is_u64());
    let brief = spans.map(|span| {
        let (start, us) = (span["start_us"].as_u64().unwrap(), span["us"].as_u64().unwrap());
        assert!(start + us <= whole_us && span["phase"] == "main", "{span} of {whole_us}");
        json!([span["name"], span["depth"], span["open"]])
    });
    brief.collect()
}

/// A world in which the script is warm.
fn warm() -> World {
    let world = World::started();
    world.file("hob.py", CLIENT);
    world.file("s.py", SCRIPT);
    wait::until("the script is warm with what it loads", || {
        world.hob(&["run", "s.py", "first"]).go().succeeded();
        (own(&trace(&world)) == [json!(["first", 0, false]), json!(["decorated", 1, false])])
            .then_some(())
    });
    world
}

fn spans_of(world: &World, words: &[&str]) -> (Vec<Value>, u64) {
    let run = world.warm(&world.hob(&["run", "s.py"]).args(words), |_| {});
    assert_eq!(run.complaint(), "");
    let trace = trace(world);
    assert_eq!(trace["receipt"]["warm"], true, "{trace}");
    (own(&trace), trace["dropped"].as_u64().unwrap())
}

#[test]
fn a_warm_script_has_the_spans_that_it_made_whatever_they_are() {
    let world = warm();
    let (spans, _) = spans_of(&world, &["thread", "open"]);
    let expected = json!([
        ["main", 0, false],
        ["of the thread", 0, false],
        ["decorated", 1, false],
        ["left open", 0, true],
    ]);
    assert_eq!(json!(spans), expected);
    let shown = world.hob(&["trace"]).go().text();
    assert!(shown.contains("\n    decorated") && shown.contains("not ended before"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");

    let (spans, _) = spans_of(&world, &["odd"]);
    let names: Vec<_> = spans.iter().step_by(2).map(|span| span[0].as_str().unwrap()).collect();
    let cut = "\u{e4}".repeat(24);
    assert_eq!(names, ["", "  \u{1b}[31m<b>\\udcff", "\u{fffd}\u{fffd}", "7", &cut]);
    assert!(!world.hob(&["trace"]).go().text().contains('\u{1b}'));
    assert!(!world.hob(&["last", "--html"]).go().text().contains("31m<b>"));

    assert_eq!(json!(spans_of(&world, &["fork"]).0), json!([["forked", 0, false]]));
    let (spans, dropped) = spans_of(&world, &["many", "last"]);
    assert_eq!((spans.len(), dropped), (256, 1_000_000 - 256 + 2));
    let shown = world.hob(&["trace"]).go().text();
    assert!(shown.contains("more of the program's own") && shown.contains("999746"), "{shown}");
    // The interpreter itself ends such a call, and says nothing of its end.
    let finalised = [json!(["x", 0, false]), json!(["decorated", 1, false])];
    assert_eq!(spans_of(&world, &["x", "finalise"]), (finalised.to_vec(), 0));
    assert_eq!(spans_of(&world, &["spoil"]), (vec![], 0), "what is no list of spans is left");
    assert_eq!(spans_of(&world, &[]), (vec![], 0));
}

#[test]
fn a_span_ends_with_what_is_raised_in_it_and_without_hob_it_does_nothing() {
    let world = warm();
    let raises = world.hob(&["run", "s.py", "raise"]);
    world.warm(&raises, |run| assert_eq!(run.end, hob_tests::End::Code(3)));
    assert_eq!(own(&trace(&world)), [json!(["raises", 0, false])]);
    // As without hob: the same words, and nothing is gathered.
    world.run(&["python3", "s.py", "many", "odd", "open", "thread"]).go().succeeded();
    world.hob(&["run", "--cold", "s.py", "odd"]).go().succeeded();
    assert_eq!(own(&trace(&world)), Vec::<Value>::new());
}

#[test]
fn handlers_have_the_spans_of_the_messages_that_the_daemon_gave_them() {
    let handler = "import hob\n\
         def handle(message, context):\n\
         \x20   with hob.span('outer'):\n\
         \x20       with hob.span(message): return message\n";
    let world = project(handler, &program("spans", "handle", ""));
    for word in ["one", "two"] {
        assert_eq!(ask(&world, &["spans", word]), word);
        let expected = json!([["outer", 0, false], [word, 1, false]]);
        assert_eq!(json!(own(&trace(&world))), expected);
    }
}

/// What the requests of a site have said that they did, in the order of their names.
pub(super) fn of_requests(world: &World, count: usize) -> Vec<Value> {
    wait::until("each request has its receipt", || {
        // The first may not be written yet.
        let log = world.hob(&["log", "--json", "-n", "50"]).go().text();
        let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let calls: Vec<u64> = records.filter_map(|record| record["call"].as_u64()).collect();
        let spans =
            calls.iter().map(|call| json!(own(&super::traced(world, &[&call.to_string()]))));
        let mut spans: Vec<Value> = spans.filter(|spans| *spans != json!([])).collect();
        spans.sort_by_key(Value::to_string);
        (spans.len() >= count).then_some(spans)
    })
}

#[test]
fn requests_of_a_web_app_have_their_spans_also_those_that_one_process_has_at_one_time() {
    const WSGI: &str = "import hob\n\
        def application(environ, start_response):\n\
        \x20   with hob.span(environ['PATH_INFO']):\n\
        \x20       with hob.span('inner'): pass\n\
        \x20   start_response('200 OK', [('Content-Type', 'text/plain')])\n\
        \x20   return [b'fine']\n";
    // Each answers when both have come, and goes on with its span meanwhile.
    const ASGI: &str = "import asyncio\nimport hob\nCOME = []\n\
        @hob.span('inner')\n\
        async def both(path):\n\
        \x20   COME.append(path)\n\
        \x20   while len(COME) < 2: await asyncio.sleep(0.001)\n\
        async def application(scope, receive, send):\n\
        \x20   if scope['type'] != 'http': raise ValueError('no lifespan')\n\
        \x20   with hob.span(scope['path']): await both(scope['path'])\n\
        \x20   await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n\
        \x20   await send({'type': 'http.response.body', 'body': b'fine'})\n";
    let spans = |path: &str| json!([[path, 0, false], ["inner", 1, false]]);
    for (name, app, terms) in
        [("wsgi", WSGI, "isolation = \"fork\""), ("asgi", ASGI, "workers = 1\nconcurrency = 2")]
    {
        let world = World::new();
        world.file("hob.py", CLIENT);
        world.file(&format!("{name}.py"), app);
        trusted(&world, &format!("[mount.\"/\"]\n{name} = \"{name}.py\"\n{terms}\n"));
        let site = Site::serve(&world, &["."]);
        std::thread::scope(|scope| {
            for path in ["/a", "/b"] {
                let site = &site;
                scope.spawn(move || assert_eq!(site.get(path).text(), "fine"));
            }
        });
        assert_eq!(of_requests(&world, 2), [spans("/a"), spans("/b")], "{name}");
        site.stop();
    }
}

#[test]
fn a_program_in_rust_has_spans_too() {
    let world = World::new();
    world.executable("native", std::fs::read(env!("CARGO_BIN_EXE_native-worker")).unwrap());
    trusted(&world, "[program.native]\nruntime = \"native\"\nhandler = \"native\"\n");
    for word in ["one", "two"] {
        assert_eq!(ask(&world, &["native", &format!("span {word}")]), "");
        let expected = json!([["outer", 0, false], [word, 1, false]]);
        assert_eq!(json!(own(&trace(&world))), expected);
    }
    assert_eq!(ask(&world, &["native", "echo x"]), "x");
    assert_eq!(own(&trace(&world)), Vec::<Value>::new());
}
