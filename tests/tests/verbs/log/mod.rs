//! `hob log --daemon`: what the daemon and a site decide, line by line, with categories that are turned
//! on while they run.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use hob_tests::site::Site;
use hob_tests::{World, leftovers, wait};
use serde_json::Value;

/// A world with a handler, trusted.
fn world() -> World {
    let world = World::new();
    world.file("greet.py", "def handle(payload, message):\n    if payload == b'no':\n        raise ValueError('of-the-message')\n    return payload\n");
    world.file("hob.toml", "[program.greet]\nhandler = \"greet.py:handle\"\ntries = 2\n");
    world.hob(&["trust"]).go().succeeded();
    world
}

/// The log's lines as `hob` prints them.
fn lines(world: &World, words: &[&str]) -> Vec<String> {
    let outcome = world.hob(&["log", "--daemon", "-n", "10000"]).args(words).go();
    outcome.succeeded();
    outcome.text().lines().map(str::to_owned).collect()
}

fn turn(world: &World, words: &[&str]) -> Value {
    let outcome = world.hob(&["log", "--daemon", "--json"]).args(words).go();
    outcome.succeeded();
    serde_json::from_slice(&outcome.out).unwrap()
}

fn on(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["schema"], "hob.log.categories/1");
    let all = answer["categories"].as_array().unwrap().iter();
    all.filter(|each| each["on"] == true).map(|each| each["name"].as_str().unwrap()).collect()
}

/// The category and text of a line, which has the form that the docs promise.
fn read(line: &str) -> (&str, &str, &str) {
    let mut words = line.splitn(5, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (at, level, thread, category, text) = (word(), word(), word(), word(), word());
    let shape: String =
        at.chars().map(|each| if each.is_ascii_digit() { '0' } else { each }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000000Z", "{line}");
    assert!(["ERROR", "WARN", "INFO", "DEBUG"].contains(&level), "{line}");
    assert!(!thread.is_empty() && !text.is_empty(), "{line}");
    assert!(category.chars().all(|each| each.is_ascii_lowercase()), "{line}");
    assert!(!line.chars().any(char::is_control), "{line:?}");
    (level, category, text)
}

#[test]
fn a_category_writes_while_it_is_on_and_no_longer() {
    let world = world();
    let ask = |payload: &str| world.hob(&["ask", "greet", payload]).go();
    ask("first").succeeded();
    let silent = lines(&world, &[]);
    assert!(silent.iter().all(|line| read(line).0 != "DEBUG"), "{silent:?}");
    assert_eq!(on(&turn(&world, &["--on", "pool,asks,files"])), ["pool", "files", "asks"]);
    ask("no");
    world.file("greet.py", "def handle(payload, message):\n    return b'other'\n");
    assert_eq!(ask("second").text(), "other");
    let told = lines(&world, &[]);
    let of = |category: &str| {
        let of = told.iter().map(|line| read(line)).filter(|line| line.1 == category);
        of.map(|line| line.2).collect::<Vec<_>>()
    };
    // It is told at each look, until the new code is there.
    let files = of("files");
    assert!(!files.is_empty() && files.iter().all(|text| *text == "greet is not what was loaded"));
    assert!(of("pool").iter().any(|text| text.ends_with("is started for greet")), "{told:?}");
    assert!(of("asks").iter().any(|text| text.ends_with("has no answer: raised")), "{told:?}");
    assert!(of("zygote").is_empty(), "{told:?}");
    // What a message holds, and what a handler makes of it, is its asker's.
    assert!(!told.concat().contains("of-the-message"), "{told:?}");
    let status = world.status();
    assert_eq!(status["log"]["on"], serde_json::json!(["pool", "files", "asks"]));
    assert!(world.hob(&["status"]).go().text().contains("on: pool, files, asks"));
    assert_eq!(on(&turn(&world, &["--off", "all"])), [""; 0]);
    world.file("greet.py", "def handle(payload, message):\n    return b'third'\n");
    assert_eq!(ask("third").text(), "third");
    let after = lines(&world, &[]);
    let more: Vec<_> = after[told.len()..].iter().map(|line| read(line)).collect();
    assert!(more.iter().all(|line| line.0 == "INFO" && line.1 == "daemon"), "{more:?}");
    let wrong = world.hob(&["log", "--daemon", "--on", "pools"]).go();
    assert!(wrong.complaint().contains("no category `pools`"), "{wrong:?}");
    let json = world.hob(&["log", "--daemon", "-n", "1", "--json"]).go();
    let line: Value = serde_json::from_slice(&json.out).unwrap();
    assert_eq!((&line["schema"], &line["category"]), (&"hob.log.line/1".into(), &"daemon".into()));
}

#[test]
fn an_odd_name_stays_in_its_line() {
    let world = World::started();
    turn(&world, &["--on", "all"]);
    let odd = "a\nb\r\u{1b}[31m\u{202e} INFO main pool x.py";
    world.file(odd, "print('hello')\n");
    let mut run = world.hob(&["run", odd]);
    run = run.stdin("");
    world.warm(&run, |outcome| outcome.succeeded());
    let told = lines(&world, &[]);
    let started: Vec<_> = told.iter().map(|line| read(line)).collect();
    let want = "is started for a\\nb\\r\\u{1b}[31m\\u{202e} INFO main pool x.py";
    assert!(started.iter().any(|line| line.1 == "pool" && line.2.ends_with(want)), "{told:?}");
}

#[test]
fn tells_are_followed_from_their_outbox_to_their_end() {
    let world = world();
    let followed = world.hob(&["log", "--daemon", "--on", "tells", "--follow"]);
    world.hob(&["start"]).go().succeeded();
    let followed = followed.start();
    wait::until("tells are on", || (world.status()["log"]["on"][0] == "tells").then_some(()));
    world.hob(&["tell", "greet", "yes"]).go().succeeded();
    followed.expect("is done");
    world.hob(&["tell", "greet", "no"]).go().succeeded();
    followed.expect("is tried again later: raised");
    followed.expect("is dead: raised");
    let told = String::from_utf8(followed.out()).unwrap();
    assert!(!told.contains("of-the-message"), "{told}");
    followed.signal(rustix::process::Signal::INT);
    let _ = followed.finish();
}

#[test]
fn the_configuration_turns_categories_on_from_the_start() {
    let world = world();
    let config = |text: &str| {
        let path = world.path("home/.config/hob/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    config("[log]\non = [\"zygote\"]\n");
    world.hob(&["ask", "greet", "x"]).go().succeeded();
    let told = lines(&world, &[]);
    assert!(told.iter().any(|line| read(line).1 == "zygote"), "{told:?}");
    assert_eq!(on(&turn(&world, &["--categories"])), ["zygote"]);
    let doctor = world.hob(&["doctor"]).go().text();
    assert!(doctor.contains("daemon.log; on: zygote"), "{doctor}");
    // A word that is none keeps no daemon from its work, and is told.
    config("[log]\non = [\"zygotes\"]\n");
    world.hob(&["restart"]).go().succeeded();
    world.hob(&["ask", "greet", "x"]).go().succeeded();
    let told = lines(&world, &[]);
    let warned = |line: &String| read(line).0 == "WARN" && line.contains("no category `zygotes`");
    assert!(told.iter().any(warned), "{told:?}");
    let doctor = world.hob(&["doctor"]).go().text();
    assert!(doctor.contains("no category `zygotes`"), "{doctor}");
}

#[test]
fn a_log_that_cannot_be_written_holds_no_call_up() {
    let world = world();
    // Folders are in the places of the log and of the one before it.
    let (log, older) = (world.hob_dir().join("daemon.log"), world.hob_dir().join("daemon.log.1"));
    for folder in [world.hob_dir(), log.clone(), older.join("kept")] {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
    }
    world.hob(&["start"]).go().succeeded();
    let answer = turn(&world, &["--on", "all"]);
    let lost = answer["lost"].as_u64().unwrap();
    assert!(lost > 0 && answer["written"] == 0, "{answer}");
    assert_eq!(world.hob(&["ask", "greet", "hello"]).go().text(), "hello");
    let answer = turn(&world, &["--categories"]);
    assert!(answer["lost"].as_u64().unwrap() > lost && answer["written"] == 0, "{answer}");
    assert!(world.hob(&["status"]).go().text().contains("not written"));
    assert!(world.hob(&["doctor"]).go().text().contains("lines that were not written"));
    std::fs::remove_dir_all(log).unwrap();
    world.hob(&["ask", "greet", "again"]).go().succeeded();
    std::fs::remove_dir_all(older).unwrap();
    assert!(!lines(&world, &[]).is_empty(), "it goes on where it can");
}

#[test]
fn what_a_killed_daemon_wrote_is_kept_by_the_next_and_goes_with_a_stop() {
    let world = World::started();
    turn(&world, &["--on", "all"]);
    let (before, daemon) = (lines(&world, &[]), world.daemon());
    hob_tests::run::kill(daemon, rustix::process::Signal::KILL);
    assert!(wait::ended(daemon, std::time::Duration::from_secs(10)));
    assert_eq!(lines(&world, &[]), before);
    world.hob(&["start"]).go().succeeded();
    let after = lines(&world, &[]);
    assert_eq!(after[..before.len()], before);
    assert!(after[before.len()].contains(" daemon hob "), "{after:?}");
    world.stop();
    let left: Vec<_> = leftovers::files(&world.hob_dir());
    assert!(left.is_empty(), "{left:?}");
    let none = world.hob(&["log", "--daemon"]).go();
    assert!(none.complaint().contains("no daemon is running"), "{none:?}");
}

#[test]
fn a_site_has_a_log_of_its_own() {
    let world = World::new();
    world.file(
        "wsgi.py",
        "def application(environ, start):\n    start('200 OK', [])\n    return [b'hello']\n",
    );
    let site = Site::serve(&world, &[]);
    let port = site.address().port().to_string();
    let of_site = |words: &[&str]| {
        let outcome =
            world.hob(&["log", "--daemon", "--site", &port, "-n", "1000"]).args(words).go();
        outcome.succeeded();
        outcome.text()
    };
    of_site(&["--on", "front,pool"]);
    assert_eq!(site.get("/").text(), "hello");
    assert!(site.raw(b"no request\r\n\r\n").starts_with(b"HTTP/1.1 400"));
    let told = wait::until("the refused head is told", || {
        let told = of_site(&[]);
        told.contains("a request's head is refused with 400").then_some(told)
    });
    for line in told.lines() {
        read(line);
    }
    assert!(told.contains(" hob-loop pool "), "{told}");
    assert!(world.hob(&["log", "--daemon"]).go().complaint().contains("no daemon is running"));
    site.stop().succeeded();
}
