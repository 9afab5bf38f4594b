//! Foreign text commands no terminal: wherever a name, a value, an error or a line of somebody
//! else's file reaches a person, what a terminal would obey arrives as an escape.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hob_os::say::is_obeyed;
use hob_tests::{End, Outcome, Run, Terminal, World, wait};
use rustix::process::Signal;

/// Conceals, names the window, clears the screen (as an escape and as C1), turns the direction,
/// has a colour that hob does not use, and goes back to the line's begin.
const HOSTILE: &str = "a\u{1b}[8m\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{1b}[35mb\rc\u{7f}";
/// How its beginning or its end is shown: to a person, and in JSON.
const SHOWN: [&str; 3] = ["a\\u{1b}[8m", "\\u{1b}[35mb", "a\\u001b[8m"];

/// hob's own colours; it also draws a line over itself.
const COLOURS: [&str; 8] = ["0", "1", "2", "7", "31", "32", "33", "36"];

/// Nothing of it is what a terminal obeys.
fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).expect("what is shown is UTF-8");
    let obeyed = text.find(|each| is_obeyed(each) && !"\n\t".contains(each));
    assert_eq!(obeyed, None, "{text:?}");
    text
}

/// Neither stream holds what a terminal obeys, and the hostile text is told all the same.
fn told(outcome: &Outcome) {
    is_told(&harmless(&[&outcome.out[..], &outcome.err].concat()));
}

fn is_told(text: &str) {
    assert!(SHOWN.iter().any(|shown| text.contains(shown)), "it is not told: {text}");
}

/// The same in a terminal that has colours, and without one.
fn told_everywhere(run: &Run) {
    told(&run.go());
    told_in_a_terminal(run);
}

fn told_in_a_terminal(run: &Run) {
    let (_, shown) = Terminal::open(&run.clone().env("TERM", "xterm-256color")).finish();
    let shown = String::from_utf8(shown).expect("what is shown is UTF-8").replace("\r\n", "\n");
    let shown = shown.replace("\r\u{1b}[K", "");
    let plain = COLOURS.iter().fold(shown, |text, own| text.replace(&format!("\u{1b}[{own}m"), ""));
    is_told(&harmless(plain.as_bytes()));
}

/// The text within quotes, as TOML, JSON and Python read it.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|each| match is_obeyed(each) {
        true => format!("\\u{:04x}", u32::from(each)),
        false => each.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// A folder of this name in the work folder.
fn folder(world: &World, name: &str) -> PathBuf {
    let dir = world.path("work").join(name);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn a_project_that_nobody_trusts_yet() {
    let hostile = quoted(HOSTILE);
    let name = hostile.trim_matches('"');
    for text in [
        format!("[program.{hostile}]\nhandler = \"a.py:f\"\n"),
        format!("[program.a]\nhandler = {hostile}\n"),
        format!("[program.a]\nhandler = \"{name}.py:f\"\n"),
        format!("[program.a]\nhandler = \"a.py:f\"\nisolation = {hostile}\n"),
        format!("[program.a]\nhandler = \"a.py:f\"\n{hostile} = 1\n"),
        format!("[{hostile}]\nx = 1\n"),
        format!("[mount.\"/{name}\"]\nstatic = {hostile}\n"),
        format!("[mount.\"/\"]\nwsgi = \"{name}.py:app\"\n"),
    ] {
        let world = World::new();
        world.file("project/a.py", "def f(payload, message):\n    return payload\n");
        world.file("project/hob.toml", &text);
        for words in [["trust", "project"], ["trust", "--list"], ["serve", "project"]] {
            let outcome = world.hob(&words).go();
            harmless(&[&outcome.out[..], &outcome.err].concat());
        }
        told_everywhere(&world.hob(&["trust", "project"]));
    }
}

#[test]
fn what_handlers_raise_print_and_leave_undone() {
    let world = World::new();
    let raises = format!(
        "import sys\ndef f(payload, message):\n    print({0}, flush=True)\n    raise ValueError({0})\n",
        quoted(HOSTILE)
    );
    world.file("a.py", raises);
    world.file("hob.toml", "[program.a]\nhandler = \"a.py:f\"\ntries = 1\n");
    world.hob(&["trust"]).go().succeeded();
    told_everywhere(&world.hob(&["ask", "a", "x"]));
    told_everywhere(&world.hob(&["log", "--output", "a"]));
    let raw = world.hob(&["log", "--output", "a", "--raw"]).go();
    assert!(raw.text().contains(HOSTILE), "as it was printed: {raw:?}");
    told_everywhere(&world.hob(&["ask", "a", "x", "--count", "2"]));
    told_everywhere(&world.hob(&["ask", HOSTILE, "x"]));
    told_everywhere(&world.hob(&["log", "--output", HOSTILE]));
    world.hob(&["tell", "a", "x"]).go().succeeded();
    wait::until("the dead letter", || {
        let listed = world.hob(&["dead"]).go();
        listed.text().contains("raised").then_some(())
    });
    told_everywhere(&world.hob(&["dead"]));
    told_everywhere(&world.hob(&["dead", "--json"]));
}

#[test]
fn an_answer_is_raw_where_no_person_reads_it() {
    let world = World::new();
    world.file("a.py", "def f(payload, message):\n    return payload\n");
    world.file("hob.toml", "[program.a]\nhandler = \"a.py:f\"\n");
    world.hob(&["trust"]).go().succeeded();
    let run = world.hob(&["ask", "a", HOSTILE]);
    assert_eq!(run.go().out, HOSTILE.as_bytes(), "bytes for a program");
    told_in_a_terminal(&run);
}

#[test]
fn a_program_of_a_hostile_name_in_all_that_lists_it() {
    let world = World::started();
    let script = format!("{HOSTILE}\n.py");
    world.executable(&script, "#!/usr/bin/env python3\nimport sys\nsys.exit(3)\n");
    let path = world.path("work").join(&script);
    for _ in 0..3 {
        harmless(&world.hob(&["run"]).args(&[&path]).go().err);
    }
    for words in [
        &["last"][..],
        &["last", "--json"],
        &["log"],
        &["log", "--json"],
        &["log", "--daemon"],
        &["trace"],
        &["trace", "--json"],
        &["status"],
        &["status", "--json"],
        &["top", "--once"],
        &["gain"],
    ] {
        let outcome = world.hob(words).go();
        assert_eq!(outcome.end, End::Code(0), "{words:?}: {outcome:?}");
        let text = harmless(&[&outcome.out[..], &outcome.err].concat());
        if words.contains(&"--json") {
            for line in text.lines() {
                serde_json::from_str::<serde_json::Value>(line).expect(line);
            }
        }
        if words[0] != "gain" && words[0] != "log" {
            is_told(&text);
        }
    }
    told_everywhere(&world.hob(&["why"]).args(&[&path]).args(&["--runs", "1"]));
    told_everywhere(&world.hob(&["warm"]).args(&[&path]));
    told_everywhere(&world.hob(&["run", HOSTILE]));
    told_everywhere(&world.hob(&["run"]).args(&[&format!("--{HOSTILE}"), "x"]));
    told_everywhere(&world.hob(&[HOSTILE]));
    told_everywhere(&world.hob(&["session", "eval", "-s", HOSTILE, "1"]));
    told_everywhere(&world.hob(&["shim", "add", &HOSTILE.replace('/', "")]));
    let late = world.hob(&["run", "--timeout", "1ms"]).args(&[&path]).go();
    harmless(&late.err);
}

#[test]
fn a_site_in_a_folder_of_a_hostile_name() {
    let world = World::new();
    let dir = folder(&world, HOSTILE);
    std::fs::write(dir.join("index.html"), "x").unwrap();
    std::fs::write(dir.join("hob.toml"), "[mount.\"/\"]\nstatic = \".\"\n").unwrap();
    told_everywhere(&world.hob(&["trust"]).args(&[&dir]));
    told_everywhere(&world.hob(&["ask", "none"]).within(&dir));
    told_everywhere(&world.hob(&["serve", &format!("gone-{HOSTILE}")]));
    told_everywhere(&world.hob(&["serve", "--listen", HOSTILE]).within(&dir));
    let socket = format!("unix:{HOSTILE}.sock");
    let site = world.hob(&["serve", "--listen", &socket]).within(&dir).start();
    site.expect("static");
    told_everywhere(&world.hob(&["serve", "status"]));
    told_everywhere(&world.hob(&["serve", "status", "--json"]));
    site.signal(Signal::TERM);
    told(&site.finish());
}

#[test]
fn hooks_and_their_targets() {
    let world = World::new();
    let dir = folder(&world, "hooks.d");
    world.executable(Path::new("hooks.d").join(HOSTILE).to_str().unwrap(), "#!/bin/sh\nexit 1\n");
    told_everywhere(&world.hob(&["hooks", "list"]).args(&[&dir]));
    told_everywhere(&world.hob(&["hooks", "run"]).args(&[&dir]));
    told_everywhere(&world.hob(&["hooks", "run", "--dry-run"]).args(&[&dir]));
    world.file("t.csv", format!("HOST\n{}\n", HOSTILE.replace('\r', "")));
    let each = world.hob(&["hooks", "run", "--for-each", "t.csv"]).args(&[&dir]);
    told(&each.go());
    told_everywhere(&each.clone().args(&["--dry-run"]));
    told_everywhere(&world.hob(&["hooks", "run", HOSTILE]));
}

#[test]
fn what_a_server_answers_and_a_file_of_checks_says() {
    let world = World::new();
    let (server, address) = closed_port();
    drop(server);
    world.file("a.hurl", format!("GET http://{address}/{}\nHTTP 200\n", HOSTILE.replace('\r', "")));
    harmless(&world.hob(&["check", "a.hurl"]).go().err);
    world.file("b.hurl", format!("{HOSTILE}\n"));
    told_everywhere(&world.hob(&["check", "b.hurl"]));
    told_everywhere(&world.hob(&["check", HOSTILE]));
}

/// An address where nobody listens once the listener is dropped.
fn closed_port() -> (std::net::TcpListener, std::net::SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn the_users_own_config_and_place() {
    let world = World::new();
    let dir = folder(&world, HOSTILE);
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    told_everywhere(&world.hob(&["start"]).env("HOB_DIR", &dir));
    told(&world.hob(&["run", "true"]).env("HOB_DIR", &dir).go());
    world.file("../home/.config/hob/config.toml", format!("{} = 1\n", quoted(HOSTILE)));
    for words in [&["doctor"][..], &["hosts"], &["status"]] {
        let outcome = world.hob(words).go();
        harmless(&[&outcome.out[..], &outcome.err].concat());
    }
}
