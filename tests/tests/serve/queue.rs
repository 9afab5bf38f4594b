//! Requests that wait for a worker: how many there may be, and what becomes of those whose client
//! does not wait.

use std::io::{Read, Write};
use std::net::TcpStream;

use hob_tests::site::{Site, response};
use hob_tests::{World, wait};
use serde_json::Value;

/// Notes each request that it is given; `/hold` answers once there is a file `go`.
const APP: &str = r#"
import os, time

def application(environ, start):
    path = environ["PATH_INFO"]
    with open("given", "a") as file:
        file.write(path + "\n")
    while path == "/hold" and not os.path.exists("go"):
        time.sleep(0.01)
    start("200 OK", [])
    return [path.encode()]
"#;

fn site(world: &World, isolation: &str) -> Site {
    world.file("wsgi.py", APP);
    let more = "workers = 1\nqueue = 1";
    world.file(
        "hob.toml",
        format!("[mount.\"/\"]\nwsgi = \"wsgi.py\"\nisolation = \"{isolation}\"\n{more}\n"),
    );
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn begin(site: &Site, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address()).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn end(mut stream: TcpStream) -> hob_tests::site::Response {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    response(&bytes)
}

fn given(world: &World) -> String {
    std::fs::read_to_string(world.path("work/given")).unwrap_or_default()
}

/// Waits until the front has that many requests that are not answered.
fn until_active(world: &World, site: &Site, count: u64) {
    wait::until("so many requests are there", || {
        let line = format!("hob_http_active{{mount=\"/\"}} {count}\n");
        site.control(world, "/metrics").text().contains(&line).then_some(())
    });
}

#[test]
fn more_than_may_wait_are_refused_at_once_and_those_that_wait_are_answered() {
    for isolation in ["prefork", "fork", "standby"] {
        let world = World::new();
        let site = site(&world, isolation);
        let held = begin(&site, "/hold");
        wait::until("it is given", || given(&world).contains("/hold").then_some(()));
        let waits = begin(&site, "/waits");
        until_active(&world, &site, 2);
        let refused = site.get("/refused");
        assert_eq!(refused.status, 503, "{isolation}: {refused:?}");
        assert_eq!(refused.header("retry-after"), Some("1"));
        world.file("go", "");
        assert_eq!(end(held).text(), "/hold");
        assert_eq!(end(waits).text(), "/waits");
        assert_eq!(given(&world), "/hold\n/waits\n", "{isolation}");
        site.stop();
        let is_refused = |receipt: &Value| receipt["reason"] == "queue";
        let refused = world.records(3).into_iter().filter(is_refused);
        let told: Vec<_> =
            refused.map(|receipt| receipt["message"]["stands_for"].clone()).collect();
        assert_eq!(told, [1], "{isolation}");
    }
}

#[test]
fn a_request_whose_client_left_while_it_waited_is_never_given() {
    for isolation in ["prefork", "fork", "standby"] {
        let world = World::new();
        let site = site(&world, isolation);
        let held = begin(&site, "/hold");
        wait::until("it is given", || given(&world).contains("/hold").then_some(()));
        let left = begin(&site, "/left");
        until_active(&world, &site, 2);
        drop(left);
        until_active(&world, &site, 1);
        // Its place is free again.
        let next = begin(&site, "/next");
        until_active(&world, &site, 2);
        world.file("go", "");
        assert_eq!(end(held).text(), "/hold");
        assert_eq!(end(next).text(), "/next");
        assert_eq!(given(&world), "/hold\n/next\n", "{isolation}");
        site.stop();
    }
}
