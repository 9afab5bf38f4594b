//! `isolation = "session"`: a worker for each client, known by a cookie.

use std::io::{Read, Write};
use std::net::TcpStream;

use hob_tests::site::{Response, Site, response};
use hob_tests::{World, wait};
use serde_json::Value;

/// Counts its requests in memory; `/hold` answers once there is a file `go`.
const WSGI: &str = r#"
import os, time
count = 0

def application(environ, start):
    global count
    count += 1
    mine = count
    if environ["PATH_INFO"] == "/hold":
        with open("../held", "a") as file:
            file.write("held\n")
        while not os.path.exists("../go"):
            time.sleep(0.01)
    start("200 OK", [("Cache-Control", "public, max-age=60")])
    return [f"{mine} {os.getpid()}".encode()]
"#;

const ASGI: &str = r#"
import os
count = 0

async def application(scope, receive, send):
    global count
    if scope["type"] == "lifespan":
        return
    count += 1
    body = f"{count} {os.getpid()}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"#;

const RACK: &str = r##"
$count = 0
run lambda { |env| [200, {}, ["#{$count += 1} #{Process.pid}"]] }
"##;

fn site(world: &World, more: &str) -> Site {
    world.file("app/wsgi.py", WSGI);
    world.file("app/asgi.py", ASGI);
    world.file("app/config.ru", RACK);
    let mount = |path: &str, what: &str| {
        format!("[mount.\"{path}\"]\n{what}\nisolation = \"session\"\n{more}\n")
    };
    let toml = [
        mount("/wsgi", "wsgi = \"app/wsgi.py\""),
        mount("/asgi", "asgi = \"app/asgi.py\""),
        mount("/rack", "rack = \"app/config.ru\""),
    ];
    world.file("hob.toml", toml.concat());
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

/// The cookie that an answer tells, as a client sends it.
fn told(answer: &Response) -> String {
    let cookie = answer.header("set-cookie").expect("a cookie");
    format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
}

fn words(answer: &Response) -> (u32, u32) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.text();
    let (count, pid) = text.split_once(' ').expect("two words");
    (count.parse().unwrap(), pid.parse().unwrap())
}

fn begin(site: &Site, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address()).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn end(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    response(&bytes)
}

#[test]
fn each_client_has_a_worker_of_its_own_that_keeps_its_state() {
    let world = World::new();
    let site = site(&world, "");
    for path in ["/wsgi", "/asgi", "/rack"] {
        let first = site.get(path);
        let (count, pid) = words(&first);
        assert_eq!(count, 1, "{path}");
        let cookie = first.header("set-cookie").unwrap();
        assert!(cookie.ends_with(&format!("; Path={path}; HttpOnly; SameSite=Lax")), "{cookie}");
        assert_eq!(first.header("cache-control"), Some("no-store"), "{path}");
        let other = site.get(path);
        let (count, other_pid) = words(&other);
        assert_eq!(count, 1, "{path}");
        assert_ne!(pid, other_pid, "{path}");
        for times in 2..5 {
            for (cookie, pid) in [(told(&first), pid), (told(&other), other_pid)] {
                let again = site.ask("GET", path, &cookie, b"");
                assert_eq!(words(&again), (times, pid), "{path}");
                assert_eq!(again.header("set-cookie"), None, "{path}");
            }
        }
    }
    site.stop();
}

#[test]
fn requests_of_one_client_come_one_after_another_and_others_do_not_wait() {
    let world = World::new();
    let site = site(&world, "");
    let cookie = told(&site.get("/wsgi"));
    let held = begin(&site, "/wsgi/hold", &cookie);
    wait::until("it is given", || world.path("work/held").exists().then_some(()));
    let behind = begin(&site, "/wsgi/", &cookie);
    assert_eq!(words(&site.get("/wsgi")).0, 1);
    world.file("go", "");
    assert_eq!(words(&end(held)).0, 2);
    assert_eq!(words(&end(behind)).0, 3);
    site.stop();
}

#[test]
fn more_clients_than_workers_are_refused_and_those_who_are_known_are_not() {
    let world = World::new();
    let site = site(&world, "workers = 2");
    let known = told(&site.get("/rack"));
    assert_eq!(site.get("/rack").status, 200);
    let refused = site.get("/rack");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert_eq!(refused.header("set-cookie"), None);
    assert_eq!(words(&site.ask("GET", "/rack", &known, b"")).0, 2);
    site.stop();
    let is_refused = |receipt: &&Value| receipt["reason"] == "sessions";
    assert_eq!(world.records(4).iter().filter(is_refused).count(), 1);
}

#[test]
fn a_session_that_rests_or_whose_worker_died_begins_anew() {
    let world = World::new();
    let site = site(&world, "idle = \"300ms\"");
    let first = site.get("/wsgi");
    let (_, pid) = words(&first);
    wait::until("its worker has ended", || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    let again = site.ask("GET", "/wsgi", &told(&first), b"");
    let (count, other) = words(&again);
    assert_eq!(count, 1);
    assert_ne!(pid, other);
    site.stop();
}

#[test]
fn an_edit_ends_what_was_kept() {
    let world = World::new();
    let site = site(&world, "");
    let cookie = told(&site.get("/wsgi"));
    world.file("app/wsgi.py", WSGI.replace("{mine}", "{mine + 100}"));
    assert_eq!(words(&site.ask("GET", "/wsgi", &cookie, b"")).0, 101);
    site.stop();
}
