//! No server, a server that is none, credentials that are wrong, a connection that is cut.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hob_tests::{End, World, wait};

use super::{Server, ask, configured, connected, host, offered, project, receipt};

const HANDLERS: &str = r#"
import os, time

def echo(payload, message):
    return payload

def holds(payload, message):
    open("held", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    return "gone"
"#;

/// A user's seed and public key, as the documentation of NATS has them; and another seed.
const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
const OTHER: &str = "SUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM";

fn said(world: &World, code: u8, words: &[&str]) {
    let outcome = world.hob(&["ask", "greeter", "x"]).go();
    assert_eq!(outcome.end, End::Code(i32::from(code)), "{outcome:?}");
    for word in words {
        assert!(outcome.complaint().contains(word), "{word:?} is not in {outcome:?}");
    }
    assert_eq!(outcome.complaint().trim_end().lines().count(), 1, "{outcome:?}");
}

/// A server that says this to everybody, and then nothing.
fn speaks(text: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(text);
            open.push(stream);
        }
    });
    format!("nats://127.0.0.1:{port}")
}

#[test]
fn a_configuration_that_came_after_the_daemon_is_told_of() {
    let world = hob_tests::World::started();
    super::configured(&world, "[nats]\nurl = \"nats://127.0.0.1:1\"\nhost = \"desk\"\n");
    let doctor = world.hob(&["doctor"]).go().text();
    assert!(doctor.contains("began before [nats] was in"), "{doctor}");
    assert!(doctor.contains("fix: hob restart"), "{doctor}");
    assert!(world.hob(&["hosts"]).go().text().contains("hob restart"));
    world.hob(&["restart"]).go().succeeded();
    assert!(!world.hob(&["doctor"]).go().text().contains("began before"));
}

#[test]
fn nothing_is_asked_of_others_without_a_configuration() {
    let world = World::new();
    let outcome = world.hob(&["ask", "greeter", "x"]).go();
    assert_eq!(outcome.end, End::Code(127), "{outcome:?}");
    assert!(world.status()["hosts"].is_null());
    let threads = format!("/proc/{}/task", world.daemon());
    for task in std::fs::read_dir(threads).unwrap() {
        let name = std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default();
        assert_ne!(name.trim(), "hosts");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_says_why_and_keeps_nothing_else_from_working() {
    let world = World::new();
    configured(&world, "[nats]\nurl = \"nats://192.0.2.1\"\n");
    said(&world, 2, &["config.toml", "plain text", "tls://192.0.2.1"]);
    project(&world, HANDLERS, &offered("local", "echo", ""));
    world.hob(&["ask", "local", "x"]).go().succeeded();
    assert!(world.status()["hosts"]["why"].as_str().unwrap().contains("plain text"));
    world.stop();
    configured(&world, "[nats]\nurl = \"nats://localhost\"\nhots = \"a\"\n");
    said(&world, 2, &["line 3", "hots"]);
}

#[test]
fn without_a_server_or_with_one_that_is_none_an_ask_is_not_given() {
    // The port of a socket that is connected: nobody listens there, and nobody else gets it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let closed = held.local_addr().unwrap().port();
    let servers = [
        (format!("nats://127.0.0.1:{closed}"), "cannot be reached"),
        (speaks(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "cannot be reached"),
        (speaks(b"\0\xff\xfe\r\n\r\n"), "cannot be reached"),
        (speaks(b"INFO {\"server_id\":\"half"), "did not speak NATS"),
        (speaks(b"INFO {}\r\n"), "nats://"),
        (speaks(b""), "did not speak NATS"),
    ];
    for (url, word) in &servers {
        let world = host("desk", url, "");
        said(&world, 125, &[url, word]);
        let record = receipt(&world, |receipt| receipt["program"]["name"] == "greeter");
        assert_eq!(record["reason"], "no-host", "{record}");
    }
}

/// Writes credentials, for us alone.
fn credentials(world: &World, text: &str) -> std::path::PathBuf {
    let path = world.path("home").join("creds");
    std::fs::write(&path, text).unwrap();
    mode(&path, 0o600);
    path
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn credentials_are_accepted_or_the_ask_is_not_given_and_they_are_written_nowhere() {
    let server = Server::start(&format!("authorization: {{ users: [ {{ nkey: {PUBLIC} }} ] }}"));
    let none = host("desk", &server.url(), "");
    said(&none, 125, &["wants credentials", "creds"]);
    let world = World::new();
    let path = credentials(&world, OTHER);
    let config = format!(
        "[nats]\nurl = \"{}\"\nhost = \"desk\"\ncreds = \"{}\"\n",
        server.url(),
        path.display()
    );
    configured(&world, &config);
    said(&world, 125, &["does not accept the credentials in", "creds"]);
    world.stop();
    credentials(&world, "not a seed\n");
    said(&world, 125, &["creds"]);
    world.stop();
    credentials(&world, SEED);
    mode(&path, 0o640);
    said(&world, 2, &["creds", "chmod 600"]);
    world.stop();
    mode(&path, 0o600);
    project(&world, HANDLERS, &offered("greeter", "echo", ""));
    connected(&world, 1);
    let web = World::new();
    credentials(&web, SEED);
    let config = config.replace("desk", "web").replace(
        &path.display().to_string(),
        &web.path("home").join("creds").display().to_string(),
    );
    configured(&web, &config);
    let answer = ask(&web, &["greeter", "x"]);
    answer.succeeded();
    world.hob(&["last"]).go().succeeded();
    for folder in ["run", "state"] {
        let found = std::process::Command::new("grep")
            .args(["-rla", "-e", SEED, "-e", OTHER])
            .arg(world.path(folder))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    }
}

#[test]
fn an_ask_whose_connection_is_cut_is_lost_and_the_next_finds_the_server_again() {
    let server = Server::start("");
    let web = host("web", &server.url(), "");
    project(&web, HANDLERS, &(offered("holds", "holds", "") + &offered("greeter", "echo", "")));
    let desk = host("desk", &server.url(), "");
    ask(&desk, &["greeter", "x"]).succeeded();
    let held = desk.hob(&["ask", "holds", "x"]).start();
    wait::until("it is performed", || web.path("work").join("held").exists().then_some(()));
    let port = server.kill();
    let lost = held.finish();
    assert_eq!(lost.end, End::Code(125), "{lost:?}");
    assert!(lost.complaint().contains("may have performed it"), "{lost:?}");
    let record = receipt(&desk, |receipt| receipt["program"]["name"] == "holds");
    assert_eq!(record["outcome"]["kind"], "lost", "{record}");
    said(&desk, 125, &["no other can be asked"]);
    web.file("go", "");
    let _again = Server::at(port, "");
    connected(&web, 2);
    connected(&desk, 0);
    ask(&desk, &["greeter", "x"]).succeeded();
    // What had been sent before the cut is not performed a second time.
    let there = receipt(&web, |receipt| receipt["program"]["name"] == "holds");
    let count = web.records(100).iter().filter(|each| each["program"]["name"] == "holds").count();
    assert_eq!(count, 1, "{there}");
}

#[test]
fn a_host_that_stops_answers_what_it_has_and_takes_nothing_new() {
    let server = Server::start("");
    let web = host("web", &server.url(), "");
    project(&web, HANDLERS, &(offered("holds", "holds", "") + &offered("greeter", "echo", "")));
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    connected(&desk, 0);
    connected(&web, 2);
    let held = desk.hob(&["ask", "holds", "x"]).start();
    wait::until("it is performed", || web.path("work").join("held").exists().then_some(()));
    let stopping = web.hob(&["stop"]).start();
    wait::until("nothing is offered any more", || {
        let outcome = desk.hob(&["ask", "greeter", "y"]).go();
        outcome.complaint().contains("no other host offers it").then_some(())
    });
    web.file("go", "");
    let outcome = held.finish();
    outcome.succeeded();
    assert_eq!(outcome.text(), "gone");
    assert_eq!(stopping.finish().end, End::Code(0));
}
