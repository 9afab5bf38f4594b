//! What whoever runs a site can ask it: health, readiness, metrics, and what was counted.

use std::io::{Read, Write};
use std::net::TcpStream;

use hob_tests::site::{Site, response};
use hob_tests::{World, wait};
use serde_json::Value;

const APP: &str = r#"
import os, time

def application(environ, start):
    path = environ["PATH_INFO"]
    if path == "/pieces":
        time.sleep(0.03)
    if path == "/raise":
        raise ValueError("as asked")
    if path == "/end":
        os._exit(3)
    if path == "/wait":
        open("waiting", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.01)
    start("200 OK", [])
    if path == "/pieces":
        return (part for part in [b"abc", b"def"])
    return [b"hello"]
"#;

fn site(world: &World, more: &str) -> Site {
    world.file("wsgi.py", APP);
    world.file("public/a.txt", "a file");
    let mounts = "[mount.\"/app\"]\nwsgi = \"wsgi.py\"\n[mount.\"/files\"]\nstatic = \"public\"\n";
    world.file("hob.toml", format!("[serve]\n{more}\n{mounts}"));
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn counted(world: &World) -> Value {
    let status = world.hob(&["serve", "status", "--json"]).go();
    let status: Value = serde_json::from_str(&status.text()).expect("it is JSON");
    status["sites"][0]["front"].clone()
}

#[test]
fn requests_are_counted_where_they_belong_and_everywhere_alike() {
    let world = World::new();
    let site = site(&world, "");
    for (path, status) in [
        ("/app/", 200),
        ("/app/pieces", 200),
        ("/app/raise", 500),
        ("/app/end", 502),
        ("/files/a.txt", 200),
        ("/files/b.txt", 404),
        ("/elsewhere", 404),
    ] {
        assert_eq!(site.get(path).status, status, "{path}");
    }
    // Broken in its head: it has no path.
    assert_eq!(response(&site.raw(b"GET / HTTP/1.1\r\nA : b\r\n\r\n")).status, 400);
    let found = wait::until("every request is counted", || {
        let found = counted(&world);
        (found["mounts"][0]["requests"] == 4).then_some(found)
    });
    let [app, files, nowhere] = [0, 1, 2].map(|at| found["mounts"][at].clone());
    assert_eq!(app["path"], "/app");
    assert_eq!(app["statuses"], serde_json::json!({ "200": 2, "500": 1, "502": 1 }));
    assert_eq!(app["failures"], serde_json::json!({ "raised": 1, "lost": 1 }));
    assert!(app["max_us"].as_u64() >= app["p99_us"].as_u64(), "{app}");
    assert!(app["p99_us"].as_u64() >= app["p50_us"].as_u64(), "{app}");
    // The app sleeps for as long in its slowest request.
    assert!(app["max_us"].as_u64() >= Some(30_000), "{app}");
    assert_eq!(files["statuses"], serde_json::json!({ "200": 1, "404": 1 }));
    assert_eq!((&nowhere["path"], &nowhere["requests"]), (&Value::from(""), &Value::from(1)));
    assert_eq!(found["refused_heads"], serde_json::json!({ "400": 1 }));

    let metrics = site.control(&world, "/metrics");
    let plain = Some("text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(metrics.header("content-type"), plain);
    let text = metrics.text();
    for line in [
        "hob_http_requests_total{mount=\"/app\",status=\"200\"} 2",
        "hob_http_failures_total{mount=\"/app\",reason=\"lost\"} 1",
        "hob_http_refused_heads_total{status=\"400\"} 1",
        "hob_http_request_duration_seconds_count{mount=\"/app\"} 4",
        "hob_http_request_duration_seconds_bucket{mount=\"/app\",le=\"+Inf\"} 4",
        "hob_http_active{mount=\"/app\"} 0",
        "hob_http_accepts 1",
        "hob_queued{mount=\"/app\"} 0",
    ] {
        assert!(text.lines().any(|each| each == line), "{line}\n{text}");
    }
    let shown = world.hob(&["serve", "status"]).go().text();
    assert!(shown.contains("failed: lost 1, raised 1"), "{shown}");
    assert!(shown.contains("refused before their path was known: 400 1"), "{shown}");

    let bytes = 5 + 6 + app_text_bytes(&site);
    assert!(
        text.contains(&format!("hob_http_sent_bytes_total{{mount=\"/app\"}} {bytes}")),
        "{text}"
    );

    site.stop();
}

/// The bodies of the two answers that are hob's own.
fn app_text_bytes(site: &Site) -> usize {
    ["/app/raise", "/app/end"].map(|path| site.get(path).body.len()).iter().sum()
}

#[test]
fn a_site_is_ready_until_it_stops_and_alive_to_its_end() {
    let world = World::new();
    let site = site(&world, "");
    assert_eq!(site.control(&world, "/ready").text(), "ready\n");
    assert_eq!(site.control(&world, "/health").text(), "alive\n");
    assert_eq!(site.control(&world, "/other").status, 404);
    let mut stream = TcpStream::connect(site.address()).unwrap();
    let request = "GET /app/wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    wait::until("the app waits", || world.path("work/waiting").exists().then_some(()));
    assert_eq!(counted(&world)["mounts"][0]["active"], 1);
    hob_tests::run::kill(site.pid(), rustix::process::Signal::TERM);
    wait::until("it is not ready any more", || {
        let ready = site.control(&world, "/ready");
        (ready.status == 503).then(|| assert_eq!(ready.text(), "the site stops\n"))
    });
    world.file("go", "");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    site.stopped();
}

#[test]
fn an_address_is_opened_only_for_who_asks_for_one() {
    let world = World::new();
    let asked = site(&world, "control = \"127.0.0.1:0\"");
    let out = wait::until("the control's address", || {
        let out = asked.out();
        out.contains("control at").then_some(out)
    });
    let (_, rest) = out.split_once("control at http://").unwrap();
    let (address, _) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("alive\n"), "{answer}");
    // No part of what is served.
    assert_eq!(asked.get("/metrics").status, 404);
    let again = World::new();
    again.file("public/a.txt", "");
    let text = format!("[serve]\ncontrol = \"{address}\"\n[mount.\"/\"]\nstatic = \"public\"\n");
    again.file("hob.toml", text);
    again.hob(&["trust"]).go().succeeded();
    let said = again.hob(&["serve", ".", "--listen", "0"]).go().complaint();
    assert!(said.contains("`control` in hob.toml names another address"), "{said}");
    asked.stop();
}

#[test]
fn a_log_of_json_tells_each_request_with_its_times() {
    let world = World::new();
    let site = site(&world, "log = \"json\"");
    for path in ["/app/pieces", "/app/end", "/files/a.txt", "/else%22where"] {
        let _ = site.get(path);
    }
    let out = String::from_utf8(site.stop().out).expect("it is text");
    let lines: Vec<Value> =
        out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(lines.len(), 4, "{out}");
    let of = |target: &str| lines.iter().find(|line| line["target"] == target).expect(target);
    let pieces = of("/app/pieces");
    assert_eq!((&pieces["status"], &pieces["bytes"]), (&200.into(), &6.into()), "{pieces}");
    assert_eq!(pieces["mount"], "/app");
    // The app sleeps for as long before its answer begins.
    assert!(pieces["app_us"].as_u64() >= Some(30_000), "{pieces}");
    assert!(pieces["total_us"].as_u64() >= pieces["app_us"].as_u64(), "{pieces}");
    let parts = ["body_us", "app_us", "write_us"];
    assert!(parts.iter().all(|part| pieces[part].is_u64()), "{pieces}");
    assert_eq!(
        (&of("/app/end")["status"], &of("/app/end")["failure"]),
        (&502.into(), &"lost".into())
    );
    assert!(of("/files/a.txt").get("app_us").is_none());
    assert_eq!(of("/else%22where")["mount"], "");
}

#[test]
fn a_site_may_keep_no_log() {
    let world = World::new();
    let site = site(&world, "log = \"none\"");
    assert_eq!(site.get("/app/pieces").status, 200);
    let out = String::from_utf8(site.stop().out).expect("it is text");
    assert!(!out.contains("GET"), "{out}");
}
