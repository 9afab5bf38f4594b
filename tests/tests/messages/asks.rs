//! Asks that are answered: what goes in, what comes out, who can see what of whom.

use hob_tests::{World, wait};
use serde_json::Value;

use super::{ask, program, project, python};

const HANDLERS: &str = r#"
import os

COUNT = 0

def echo(payload, message):
    return payload

def about(payload, message):
    return {"kind": message.kind, "key": message.key, "type": message.content_type,
            "timed": message.remaining is not None, "cwd": os.getcwd(),
            "mine": os.environ.get("MINE"), "token": os.environ.get("TOKEN")}

def nothing(payload, message):
    pass

def count(payload, message):
    global COUNT
    COUNT += 1
    return "%d %d" % (os.getpid(), COUNT)
"#;

fn counts(text: &str) -> (u32, u32) {
    let (pid, count) = text.split_once(' ').unwrap();
    (pid.parse().unwrap(), count.parse().unwrap())
}

#[test]
fn a_program_of_another_directory_is_asked_and_told_with_its_name() {
    let world = project(HANDLERS, &program("echo", "echo", ""));
    world.file("payload", "of a file");
    let from = |verb: &str, words: &[&str]| {
        let run = world.hob(&[&[verb, "-C", "work"], words].concat()).within(world.path(""));
        run.go()
    };
    assert_eq!(from("ask", &["echo", "a"]).text(), "a");
    assert_eq!(from("ask", &["echo", "@payload"]).text(), "of a file");
    from("tell", &["echo", "a"]).succeeded();
    let none = world.hob(&["ask", "-C", "nowhere", "echo"]).go();
    assert_eq!(none.end, hob_tests::End::Code(2));
    assert!(none.complaint().contains("-C nowhere: No such file"), "{none:?}");
}

#[test]
fn a_payload_comes_as_it_is_from_a_word_a_file_or_standard_input() {
    let world = project(HANDLERS, &program("echo", "echo", ""));
    assert_eq!(ask(&world, &["echo", r#"{"name":"x"}"#]), r#"{"name":"x"}"#);
    let bytes: Vec<u8> = (0..=255).cycle().take(900_000).collect();
    world.file("payload", &bytes);
    let from_file = world.hob(&["ask", "echo", "@payload"]).go();
    from_file.succeeded();
    assert!(from_file.out == bytes, "{} bytes came back", from_file.out.len());
    let from_stdin = world.hob(&["ask", "echo", "-"]).stdin(b"a\0\xff\n".to_vec()).go();
    assert_eq!(from_stdin.out, b"a\0\xff\n");
    assert_eq!(ask(&world, &["echo"]), "");
    assert_eq!(ask(&world, &["echo", "x", "--quiet"]), "");
    world.file("large", vec![0; 1 << 20]);
    let large = world.hob(&["ask", "echo", "@large"]).go();
    assert_eq!(large.end, hob_tests::End::Code(2), "{large:?}");
    assert!(large.complaint().contains("bytes"), "{large:?}");
}

#[test]
fn a_handler_knows_of_its_message_and_of_its_sender_what_was_declared() {
    let more = "env = [\"MINE\"]";
    let world =
        project(HANDLERS, &(program("about", "about", more) + &program("no", "nothing", "")));
    let run = world.hob(&["ask", "about", "x", "--content-type", "text/x", "--timeout", "1m"]);
    let outcome = run.env("MINE", "1").env("TOKEN", "secret").go();
    outcome.succeeded();
    let about: Value = serde_json::from_slice(&outcome.out).unwrap();
    assert_eq!(about["kind"], "ask");
    assert_eq!(about["type"], "text/x");
    assert_eq!(about["key"], Value::Null);
    assert_eq!(about["timed"], true);
    assert_eq!(about["mine"], "1");
    assert_eq!(about["token"], Value::Null);
    assert_eq!(about["cwd"], world.path("work").canonicalize().unwrap().to_str().unwrap());
    // Another value is another handler's state.
    let outcome = world.hob(&["ask", "about"]).env("MINE", "2").go();
    let about: Value = serde_json::from_slice(&outcome.out).unwrap();
    assert_eq!(about["mine"], "2");
    assert_eq!(ask(&world, &["no"]), "");
}

#[test]
fn what_an_ask_sees_of_another_is_what_its_isolation_says() {
    let programs = program("forked", "count", "isolation = \"fork\"")
        + &program("kept", "count", "isolation = \"prefork\"\nworkers = 1")
        + &program("session", "count", "isolation = \"session\"");
    let world = project(HANDLERS, &programs);
    let (mut pids, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let (pid, count) = counts(&ask(&world, &["forked"]));
        assert_eq!(count, 1, "a fork sees a fresh copy");
        pids.push(pid);
        kept.push(counts(&ask(&world, &["kept"])).1);
    }
    pids.dedup();
    assert_eq!(pids.len(), 4, "each has a process of its own: {pids:?}");
    assert_eq!(kept, [1, 2, 3, 4]);
    for turn in 1..=3 {
        for key in ["a", "b"] {
            let (_, count) = counts(&ask(&world, &["session", "--key", key]));
            assert_eq!(count, turn, "session {key}");
        }
    }
    let record = world.records(50).into_iter().rfind(|one| one["program"]["name"] == "session");
    assert_eq!(record.unwrap()["isolation"], "session");
}

#[test]
fn a_prefork_worker_is_replaced_after_its_uses() {
    let more = "workers = 1\nahead = 0\nuses = 3";
    let world = project(HANDLERS, &program("kept", "count", more));
    let answers: Vec<_> = (0..9).map(|_| counts(&ask(&world, &["kept"]))).collect();
    assert!(answers.iter().all(|(_, count)| *count <= 3), "{answers:?}");
    let mut pids: Vec<u32> = answers.iter().map(|(pid, _)| *pid).collect();
    pids.dedup();
    assert!(pids.len() >= 3, "{answers:?}");
    // The same on a lane, which the worker itself ends.
    let answers =
        python(&world, "import hob\nfor _ in range(10): print(str(hob.ask('kept'), 'ascii'))\n")
            .go();
    answers.succeeded();
    assert!(answers.text().lines().all(|line| counts(line).1 <= 3), "{answers:?}");
}

fn summary(world: &World, words: &[&str]) -> Value {
    let outcome = world.hob(&["ask", "--json", "--count"]).args(words).go();
    outcome.succeeded();
    serde_json::from_slice(&outcome.out).unwrap()
}

/// The sum of what a program's receipts stand for.
fn stands_for(world: &World, name: &str) -> u64 {
    let records = world.records(400);
    let mine = records.iter().filter(|record| record["program"]["name"] == name);
    mine.map(|record| record["message"]["stands_for"].as_u64().unwrap()).sum()
}

#[test]
fn many_asks_are_all_answered_and_receipts_stand_for_them() {
    let programs = program("echo", "echo", "workers = 2") + &program("one", "count", "workers = 1");
    let world = project(HANDLERS, &programs);
    let told = summary(&world, &["1000", "--jobs", "8", "echo", "hello"]);
    assert_eq!((&told["answered"], &told["failed"]), (&1000.into(), &0.into()), "{told}");
    assert_eq!(told["jobs"], 8);
    assert!(told["p50_us"].as_f64().unwrap() <= told["p99_us"].as_f64().unwrap(), "{told}");
    // More senders than workers: no lane is lent of what others wait for.
    let told = summary(&world, &["300", "--jobs", "4", "one", "hello"]);
    assert_eq!(told["answered"], 300, "{told}");
    assert_eq!(summary(&world, &["100", "echo", "hello"])["answered"], 100);
    // All but those since each pool's newest receipt.
    let stood = stands_for(&world, "echo");
    assert!(stood > 0 && stood <= 1100, "{stood}");
    // A pool leaves one receipt each 10 ms: which of its messages it is about is chance.
    wait::until("a lane was lent", || {
        assert_eq!(summary(&world, &["100", "echo", "hello"])["answered"], 100);
        world.records(400).iter().any(|record| record["reason"] == "lane").then_some(())
    });
    let text = world.hob(&["ask", "--count", "5", "one"]).go();
    text.succeeded();
    assert!(text.text().starts_with("5 answered, 0 failed"), "{text:?}");
}

#[test]
fn a_status_shows_handlers() {
    let world = project(HANDLERS, &program("echo", "echo", ""));
    ask(&world, &["echo", "x"]);
    let status = world.status();
    let pool = &status["pools"][0];
    assert_eq!((&pool["program"], &pool["isolation"]), (&"echo".into(), &"prefork".into()));
    assert_eq!(pool["calls"], 1, "{status}");
    world.hob(&["status"]).go().succeeded();
    world.hob(&["last"]).go().succeeded();
    world.hob(&["log"]).go().succeeded();
}

#[test]
fn more_handlers_than_are_kept_are_answered_all_the_same() {
    // 64 of them are kept (`pools_max`).
    let programs: Vec<String> = (0..66).map(|number| format!("p{number}")).collect();
    let functions: String = programs
        .iter()
        .map(|name| format!("def {name}(payload, message): return payload\n"))
        .collect();
    let declared: String = programs.iter().map(|name| program(name, name, "")).collect();
    let world = project(&functions, &declared);
    for name in &programs {
        assert_eq!(ask(&world, &[name, name]), *name);
    }
    // The first ones were forgotten for the last ones, the second for the very last.
    for name in programs[..3].iter().rev() {
        assert_eq!(ask(&world, &[name, "again"]), "again");
    }
}
