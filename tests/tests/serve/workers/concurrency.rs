//! Several requests at one time in one worker of an ASGI app: what each sees of the others' ends.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::Scope;

use hob_tests::site::{Response, Site};
use hob_tests::{World, wait};
use rustix::process::{Pid, Signal, kill_process};

const ASGI: &str = r#"
import asyncio, os, time

async def until(name):
    while not os.path.exists("seen/" + name):
        await asyncio.sleep(0.002)

def mark(name):
    open("seen/" + name, "a").close()

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (event := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": event["text"] + " back"})
        return
    path = scope["path"]
    with open("seen/ran", "a") as ran:
        ran.write(path + "\n")
    if path.startswith("/hold"):
        mark("held-" + path[6:])
        try:
            await until("go")
        except asyncio.CancelledError:
            mark("left-" + path[6:])
            raise
    if path == "/block":
        mark("blocked")
        time.sleep(600)
    body = b""
    while (event := await receive()).get("more_body"):
        body += event["body"]
    body += event.get("body", b"")
    text = b"%s %d pid=%d" % (path.encode(), len(body), os.getpid())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})
"#;

fn serve(world: &World, terms: &str) -> Site {
    world.file("asgi.py", ASGI);
    world.file("seen/none", "");
    world.file("hob.toml", format!("[mount.\"/\"]\nasgi = \"asgi.py\"\n{terms}\n"));
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn is_there(world: &World, name: &str) {
    let path = world.path("work/seen").join(name);
    wait::until(name, || path.exists().then_some(()));
}

fn pid(answer: &Response) -> i32 {
    let text = answer.text();
    let number = text.split_once("pid=").and_then(|(_, pid)| pid.parse().ok());
    number.unwrap_or_else(|| panic!("{answer:?}"))
}

/// Requests that are held, each in a thread; returns when the app has all of them.
fn hold<'s>(
    scope: &'s Scope<'s, '_>,
    (world, site): (&World, &'s Site),
    count: usize,
) -> Vec<std::thread::ScopedJoinHandle<'s, Response>> {
    let ask = |number: usize| scope.spawn(move || site.get(&format!("/hold/{number}")));
    let asked: Vec<_> = (0..count).map(ask).collect();
    (0..count).for_each(|number| is_there(world, &format!("held-{number}")));
    asked
}

/// How many requests receipts tell of with this outcome, when the site has ended.
fn told(world: &World, outcome: &str) -> u64 {
    let records = world.records(1000);
    let of = records.iter().filter(|record| record["outcome"]["kind"] == outcome);
    of.map(|record| record["message"]["stands_for"].as_u64().unwrap()).sum()
}

#[test]
fn twenty_requests_that_await_are_in_one_worker_and_end_together() {
    for terms in ["workers = 1", "workers = 1\nrecycle = { requests = 20 }"] {
        let world = World::new();
        let site = serve(&world, &format!("{terms}\nconcurrency = 20"));
        let pids: BTreeSet<i32> = std::thread::scope(|scope| {
            // Each has seen its turn before the first may end.
            let asked = hold(scope, (&world, &site), 20);
            world.file("seen/go", "");
            asked.into_iter().map(|asked| pid(&asked.join().unwrap())).collect()
        });
        assert_eq!(pids.len(), 1);
        // A body that comes in a file is its own request's.
        assert!(
            site.ask("POST", "/large", "", &[b'x'; 300_000]).text().starts_with("/large 300000")
        );
        site.stop();
        assert_eq!(told(&world, "answered"), 21);
    }
}

#[test]
fn a_websocket_that_is_open_holds_up_no_request() {
    // A WebSocket is a session of its own.
    for (isolation, workers) in [("prefork", 1), ("session", 2)] {
        let world = World::new();
        let site = serve(
            &world,
            &format!("isolation = \"{isolation}\"\nworkers = {workers}\nconcurrency = 2"),
        );
        let mut socket = TcpStream::connect(site.address()).unwrap();
        let head = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        socket.write_all(head.as_bytes()).unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
        assert!(seen.starts_with(b"HTTP/1.1 101"), "{isolation}");
        for _ in 0..5 {
            // Of one client, where each has a worker.
            let cookie = "Cookie: hob-session=00000000000000000000000000000000\r\n";
            assert_eq!(site.ask("GET", "/", cookie, b"").status, 200, "{isolation}");
            // A text of two bytes, with a mask of zeros.
            socket.write_all(b"\x81\x82\0\0\0\0hi").unwrap();
            let mut frame = [0; 9];
            socket.read_exact(&mut frame).unwrap();
            assert_eq!(&frame, b"\x81\x07hi back");
        }
        drop(socket);
        site.stop();
    }
}

#[test]
fn requests_of_one_session_interleave_in_its_worker() {
    let world = World::new();
    let site = serve(&world, "isolation = \"session\"\nworkers = 1\nconcurrency = 3");
    let cookie = "Cookie: hob-session=00000000000000000000000000000000\r\n";
    let pids: BTreeSet<i32> = std::thread::scope(|scope| {
        let site = &site;
        let ask = |number| move || site.ask("GET", &format!("/hold/{number}"), cookie, b"");
        let asked: Vec<_> = (0..3).map(|number| scope.spawn(ask(number))).collect();
        (0..3).for_each(|number| is_there(&world, &format!("held-{number}")));
        world.file("seen/go", "");
        asked.into_iter().map(|asked| pid(&asked.join().unwrap())).collect()
    });
    assert_eq!(pids.len(), 1);
    site.stop();
}

#[test]
fn a_worker_that_is_killed_amid_its_requests_loses_each_once() {
    let world = World::new();
    let site = serve(&world, "workers = 1\nconcurrency = 10");
    let worker = Pid::from_raw(pid(&site.get("/"))).unwrap();
    std::thread::scope(|scope| {
        let asked = hold(scope, (&world, &site), 5);
        kill_process(worker, Signal::KILL).unwrap();
        for asked in asked {
            assert_eq!(asked.join().unwrap().status, 502);
        }
    });
    world.file("seen/go", "");
    assert_eq!(site.get("/hold/again").status, 200);
    site.stop();
    let ran = std::fs::read_to_string(world.path("work/seen/ran")).unwrap();
    let mut lines: Vec<&str> = ran.lines().collect();
    lines.sort_unstable();
    let held: Vec<String> = (0..5).map(|number| format!("/hold/{number}")).collect();
    let mut want: Vec<&str> = held.iter().map(String::as_str).collect();
    want.insert(0, "/");
    want.push("/hold/again");
    assert_eq!(lines, want, "none was run twice");
    assert_eq!((told(&world, "lost"), told(&world, "answered")), (5, 2));
}

#[test]
fn workers_that_have_done_enough_end_behind_what_they_have() {
    let world = World::new();
    let site = serve(&world, "workers = 2\nrecycle = { requests = 7 }\nconcurrency = 3");
    let pids: BTreeSet<i32> = std::thread::scope(|scope| {
        let site = &site;
        let ask = move || (0..20).map(|_| pid(&site.get("/"))).collect::<Vec<i32>>();
        let askers: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect()
    });
    assert!(pids.len() >= 120 / 7, "{pids:?}");
    site.stop();
    assert_eq!(told(&world, "answered"), 120);
}

#[test]
fn a_client_that_leaves_and_one_that_waits_too_long_end_their_own_requests_alone() {
    let world = World::new();
    let site = serve(&world, "workers = 1\ntimeout = \"2s\"\nconcurrency = 4");
    let worker = pid(&site.get("/"));
    let mut leaves = TcpStream::connect(site.address()).unwrap();
    leaves.write_all(b"GET /hold/leaves HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    is_there(&world, "held-leaves");
    std::thread::scope(|scope| {
        let late = scope.spawn(|| site.get("/hold/late"));
        is_there(&world, "held-late");
        drop(leaves);
        is_there(&world, "left-leaves");
        assert_eq!(pid(&site.get("/")), worker);
        assert_eq!(late.join().unwrap().status, 504);
        is_there(&world, "left-late");
        let stays = scope.spawn(|| site.get("/hold/stays"));
        is_there(&world, "held-stays");
        world.file("seen/go", "");
        assert_eq!(pid(&stays.join().unwrap()), worker);
    });
    site.stop();
    let counts = ["answered", "cancelled", "timed-out"].map(|outcome| told(&world, outcome));
    assert_eq!(counts, [3, 1, 1]);
}

#[test]
fn a_worker_that_lets_go_of_nothing_ends_and_others_are_lost_once() {
    let world = World::new();
    let site = serve(&world, "workers = 1\ntimeout = \"20s\"\nconcurrency = 4");
    let worker = pid(&site.get("/"));
    std::thread::scope(|scope| {
        let held = hold(scope, (&world, &site), 1);
        let mut blocks = TcpStream::connect(site.address()).unwrap();
        blocks.write_all(b"GET /block HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        is_there(&world, "blocked");
        drop(blocks);
        for held in held {
            assert_eq!(held.join().unwrap().status, 502);
        }
    });
    assert_ne!(pid(&site.get("/")), worker);
    site.stop();
}

#[test]
fn what_has_one_request_at_a_time_has_no_concurrency() {
    let world = World::new();
    world.file("asgi.py", ASGI);
    world.file("wsgi.py", "def application(environ, start): pass\n");
    for (mount, why) in [
        ("wsgi = \"wsgi.py\"\nconcurrency = 2", "wsgi has one request at a time"),
        ("asgi = \"asgi.py\"\nisolation = \"fork\"\nconcurrency = 2", "only prefork and session"),
        ("asgi = \"asgi.py\"\nconcurrency = 0", "between 1 and 1000"),
    ] {
        world.file("hob.toml", format!("[mount.\"/\"]\n{mount}\n"));
        let refused = world.hob(&["trust"]).go();
        let err = String::from_utf8_lossy(&refused.err).into_owned();
        assert!(err.contains(why), "{mount}: {err}");
    }
}
