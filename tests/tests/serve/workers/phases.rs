//! What receipts of requests that go past the loop tell of their clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hob_tests::site::Site;
use hob_tests::{World, wait};
use serde_json::Value;

const WSGI: &str = r#"
def long():
    for _ in range(800):
        yield bytes(65536)

def application(environ, start):
    start("200 OK", [])
    environ["wsgi.input"].read()
    return long() if environ["PATH_INFO"] == "/long" else [b"here"]
"#;

/// A client that takes its time takes so much of it.
const PAUSE: Duration = Duration::from_millis(60);

fn serve(world: &World) -> Site {
    world.file("wsgi.py", WSGI);
    world.file("hob.toml", "[mount.\"/\"]\nwsgi = \"wsgi.py\"\nworkers = 1\n");
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(world, &[]);
    // Behind the first answer the worker is lent.
    for _ in 0..2 {
        assert_eq!(site.get("/").status, 200);
    }
    site
}

/// Waits until the site has read all that this client has sent, and longer. Returns how long at
/// least it was idle.
fn pause(site: &Site, client: &TcpStream) -> Duration {
    let hex = |address: SocketAddr| format!("0100007F:{:04X}", address.port());
    let (theirs, ours) = (hex(site.address()), hex(client.local_addr().unwrap()));
    wait::until("the site has read it", || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let queue = lines.find(|line| line[1] == theirs && line[2] == ours)?[4].to_owned();
        queue.ends_with(":00000000").then_some(())
    });
    // That it has looked at its clock, too, it tells nobody.
    idle(PAUSE / 4);
    idle(PAUSE)
}

/// Reads a long answer when its worker has answered another, and tells how long it waited.
fn read_slowly(site: &Site) -> Duration {
    let mut answer = [0; 4096];
    let mut slow = TcpStream::connect(site.address()).unwrap();
    slow.write_all(b"GET /long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    assert!(slow.read(&mut answer).unwrap() > 0);
    assert_eq!(site.get("/").status, 200);
    let write = idle(PAUSE);
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    assert!(rest.len() > 800 * 65536);
    write
}

/// Takes its time, and tells how much.
fn idle(time: Duration) -> Duration {
    let begun = Instant::now();
    // sleeps: it is the length of this pause that a receipt is to tell.
    std::thread::sleep(time);
    begun.elapsed()
}

fn phase(receipt: &Value, name: &str) -> Option<u64> {
    let phases = receipt["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["name"] == name).map(|phase| phase["us"].as_u64().unwrap())
}

/// The receipt whose phase is the longest.
fn longest(world: &World, name: &str) -> Value {
    let receipts = world.records(100);
    receipts.into_iter().max_by_key(|receipt| phase(receipt, name)).unwrap()
}

#[test]
fn a_request_past_the_loop_has_the_phases_of_its_client() {
    let world = World::new();
    let site = serve(&world);
    // Of those of one lane one is told in a while.
    idle(PAUSE);
    assert_eq!(site.get("/").status, 200);
    site.stop();
    let receipts = world.records(100);
    let of_lanes = receipts.iter().filter(|receipt| receipt["reason"] == "lane");
    let told: Vec<&Value> =
        of_lanes.filter(|receipt| receipt["message"]["protocol"] == "HTTP/1.1").collect();
    assert!(!told.is_empty(), "{receipts:?}");
    for receipt in told {
        let phases = receipt["phases"].as_array().unwrap();
        let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
        assert!(names.starts_with(&["head", "body", "queue"]), "{names:?}");
        assert!(names.contains(&"main") && names.ends_with(&["write"]), "{names:?}");
    }
}

#[test]
fn a_client_that_sends_slowly_or_reads_slowly_is_told_from_its_app() {
    let world = World::new();
    let site = serve(&world);
    // Its head comes in two parts, on a connection that was used before.
    let mut client = TcpStream::connect(site.address()).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = [0; 4096];
    assert!(client.read(&mut answer).unwrap() > 0);
    pause(&site, &client);
    client.write_all(b"POST / HTTP/1.1\r\nHo").unwrap();
    let head = pause(&site, &client);
    client.write_all(b"st: a\r\nContent-Length: 2\r\n\r\n1").unwrap();
    let body = pause(&site, &client);
    client.write_all(b"2").unwrap();
    assert!(client.read(&mut answer).unwrap() > 0);
    // Where its app was loaded anew meanwhile, its lane has ended, and nobody is told of its client.
    let write = (0..5).find_map(|_| {
        let write = read_slowly(&site);
        let told = || phase(&longest(&world, "write"), "write").map_or(0, u128::from);
        let is_told = wait::look(PAUSE * 30, || (told() >= write.as_micros()).then_some(()));
        is_told.map(|()| write)
    });
    site.stop();
    let write = write.expect("the receipt of a client that reads slowly");
    for (name, least) in [("head", head), ("body", body), ("write", write)] {
        let receipt = longest(&world, name);
        let us = u128::from(phase(&receipt, name).unwrap_or(0));
        assert!(us >= least.as_micros(), "{name}: {us} of {least:?}: {receipt}");
        assert_eq!(receipt["message"]["protocol"], "HTTP/1.1", "{receipt}");
    }
}
