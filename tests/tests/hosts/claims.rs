//! Programs that are claimed: a host takes an ask, and performs it after a word.

use hob_tests::run::kill;
use hob_tests::{End, World, wait};
use rustix::process::Signal;

use super::foreign::Client;
use super::{Server, ask, connected, host, offered, project, receipt};

const HANDLERS: &str = r#"
def notes(payload, message):
    with open("performed", "ab") as file:
        file.write(payload + b"\n")
    return payload
"#;

const CLAIMED: &str = "claimed = true";

/// What a host has performed, one word each.
fn performed(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("work").join("performed")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn claimed(name: &str, server: &Server) -> World {
    let world = host(name, &server.url(), "");
    project(&world, HANDLERS, &offered("notes", "notes", CLAIMED));
    connected(&world, 1);
    world
}

#[test]
fn one_of_two_hosts_that_stands_still_costs_no_ask_and_performs_nothing_later() {
    let server = Server::start("");
    let (left, right) = (claimed("left", &server), claimed("right", &server));
    let desk = host("desk", &server.url(), "");
    ask(&desk, &["notes", "first"]).succeeded();
    let stopped = left.daemon();
    kill(stopped, Signal::STOP);
    // Each goes to the one that stands still with a chance of one half.
    for number in 0..24 {
        let word = number.to_string();
        let outcome = desk.hob(&["ask", "notes", &word]).go();
        outcome.succeeded();
        assert_eq!(outcome.text(), word);
    }
    // An ask that has a time of its own, and nobody else to go to, was not given.
    let other = right.daemon();
    kill(other, Signal::STOP);
    let timed = desk.hob(&["ask", "notes", "timed", "--timeout", "400ms"]).go();
    assert_eq!(timed.end, End::Code(124), "{timed:?}");
    let none = desk.hob(&["ask", "notes", "none"]).go();
    assert_eq!(none.end, End::Code(125), "{none:?}");
    assert!(none.complaint().contains("do not take it"), "{none:?}");
    let record = receipt(&desk, |receipt| receipt["outcome"]["kind"] == "busy");
    assert_eq!(record["isolation"], "none", "{record}");
    kill(stopped, Signal::CONT);
    kill(other, Signal::CONT);
    // The host that goes on finds what it was asked, and no word to perform it.
    for number in 0..16 {
        ask(&desk, &["notes", &format!("after-{number}")]).succeeded();
    }
    for world in [&left, &right] {
        wait::until("nothing waits for a word", || {
            (world.status()["hosts"]["questions"] == 0).then_some(())
        });
    }
    let mut all = [performed(&left), performed(&right)].concat();
    all.sort();
    let mut want: Vec<String> = (0..24).map(|number| number.to_string()).collect();
    want.extend((0..16).map(|number| format!("after-{number}")));
    want.push("first".to_owned());
    want.sort();
    assert_eq!(all, want);
}

#[test]
fn a_host_that_goes_on_performs_nothing_that_came_while_it_stood_still() {
    let server = Server::start("");
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("notes", "notes", ""));
    connected(&web, 1);
    let desk = host("desk", &server.url(), "");
    ask(&desk, &["notes", "first"]).succeeded();
    let daemon = web.daemon();
    for turn in 0..5 {
        kill(daemon, Signal::STOP);
        let word = format!("gave-up-{turn}");
        let timed = desk.hob(&["ask", "notes", &word, "--timeout", "200ms"]).go();
        assert_eq!(timed.end, End::Code(124), "{timed:?}");
        kill(daemon, Signal::CONT);
        // What comes while it catches up is not given, and may be asked again.
        wait::until("an answer", || {
            let outcome = desk.hob(&["ask", "notes", &format!("after-{turn}")]).go();
            let is_busy = outcome.complaint().contains("stood still");
            assert!(is_busy || outcome.end == End::Code(0), "{outcome:?}");
            (outcome.end == End::Code(0)).then_some(())
        });
    }
    let mut want = vec!["first".to_owned()];
    want.extend((0..5).map(|turn| format!("after-{turn}")));
    assert_eq!(performed(&web), want);
}

#[test]
fn a_host_that_stood_still_long_ago_refuses_nothing() {
    let server = Server::start("");
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("notes", "notes", ""));
    connected(&web, 1);
    let desk = host("desk", &server.url(), "");
    web.hob(&["log", "--daemon", "--on", "hosts"]).go().succeeded();
    let daemon = web.daemon();
    for turn in 0..3 {
        kill(daemon, Signal::STOP);
        kill(daemon, Signal::CONT);
        // Nobody asks meanwhile: the host has to find out by itself.
        wait::until("it has caught up", || {
            let log = web.hob(&["log", "--daemon", "-n", "500"]).go().text();
            (log.matches("stood still has been seen").count() > turn).then_some(())
        });
        ask(&desk, &["notes", &turn.to_string()]).succeeded();
    }
    assert_eq!(performed(&web), ["0", "1", "2"]);
}

#[test]
fn what_is_taken_is_performed_after_a_word_and_once() {
    let server = Server::start("");
    let web = claimed("web-1", &server);
    let mut client = Client::connect(&server);
    // Whoever knows nothing of claims is answered as ever.
    let mut turn = 0;
    wait::until("a host that hears it", || {
        turn += 1;
        client.send(format!("PUB hob.ask.notes mine.a{turn} 1\r\na\r\n").as_bytes());
        let (head, payload) = client.reply(&format!("mine.a{turn}"));
        (!head.contains("503")).then(|| assert_eq!(payload, "a"))
    });
    for (number, subject) in ["hob.claim.notes", "hob.claims.notes"].into_iter().enumerate() {
        let to = format!("mine.{number}");
        client.send(format!("PUB {subject} {to} 1\r\nb\r\n").as_bytes());
        let (go, head, payload) = client.message(&to);
        assert!(go.starts_with("hob.go.") && head.contains("Hob-Taken: web-1"), "{go} {head}");
        assert_eq!(payload, "");
        assert_eq!(performed(&web).len(), 1 + number);
        client.send(format!("PUB {go} 0\r\n\r\nPUB {go} 0\r\n\r\n").as_bytes());
        assert_eq!(client.reply(&to).1, "b");
    }
    // A word for nothing, and words that are none.
    let go = format!("hob.go.{}", "x");
    client.send(format!("PUB {go}.1 0\r\n\r\nPUB {go} 0\r\n\r\n").as_bytes());
    // One whose time has passed when the word was said is not performed.
    client.send(b"PUB hob.claim.notes mine.late 1\r\nc\r\n");
    let (go, ..) = client.message("mine.late");
    let head = "NATS/1.0\r\nHob-Within: 0\r\n\r\n";
    client.send(format!("HPUB {go} {0} {0}\r\n{head}\r\n", head.len()).as_bytes());
    let (head, _) = client.reply("mine.late");
    assert!(head.contains("Hob-Reason: timed-out"), "{head}");
    // One for which no word comes is forgotten.
    client.send(b"PUB hob.claim.notes mine.none 1\r\nd\r\n");
    client.message("mine.none");
    wait::until("nothing waits for a word", || {
        (web.status()["hosts"]["questions"] == 0).then_some(())
    });
    assert_eq!(performed(&web), ["a", "b", "b"]);
}
