//! Asks that another host performs: what goes in, what comes out, what both receipts say.

use hob_tests::teller::Reply;
use hob_tests::{End, World, wait};

use super::many::teller;
use super::{Server, ask, connected, host, offered, project, receipt};

const HANDLERS: &str = r#"
import os, time

def echo(payload, message):
    return payload

def about(payload, message):
    return "%s %s %s" % (message.key, message.content_type, message.remaining is not None)

def raises(payload, message):
    raise ValueError("no such name")

def holds(payload, message):
    open("held-" + payload.decode(), "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    return "gone"

def large(payload, message):
    return b"x" * (1040000)
"#;

/// A host that offers programs, and one that has none.
fn two(server: &Server, programs: &str) -> (World, World) {
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, programs);
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    (web, desk)
}

#[test]
fn a_program_that_another_host_offers_answers_and_both_have_its_receipt() {
    let server = Server::start("");
    let (web, desk) = two(&server, &offered("greeter", "echo", ""));
    let answer = ask(&desk, &["greeter", "world"]);
    answer.succeeded();
    assert_eq!(answer.text(), "world");
    let here = receipt(&desk, |receipt| receipt["message"]["host"].is_string());
    assert_eq!(here["program"]["name"], "greeter");
    assert_eq!((&here["reason"], &here["warm"]), (&"other-host".into(), &false.into()), "{here}");
    assert_eq!(here["outcome"]["kind"], "answered");
    let number = here["call"].as_u64().unwrap();
    let there = receipt(&web, |receipt| receipt["message"]["asked_by"].is_string());
    assert_eq!(there["message"]["asked_by"], format!("desk/{number}"), "{there}");
    assert_eq!(there["message"]["bytes"], 5);
    let number = there["call"].as_u64().unwrap();
    assert_eq!(here["message"]["host"], format!("web-1/{number}"), "{here}");
    assert!(here["message"]["host_us"].as_u64() <= here["total_us"].as_u64(), "{here}");
    assert_eq!(there["warm"], true, "{there}");
}

#[test]
fn bytes_a_key_and_a_type_come_as_they_are_and_the_time_goes_with_them() {
    let server = Server::start("");
    let programs = offered("echo", "echo", "") + &offered("about", "about", "");
    let (_web, desk) = two(&server, &programs);
    let bytes: Vec<u8> = (0..=255).cycle().take(900_000).collect();
    desk.file("payload", &bytes);
    let answer = ask(&desk, &["echo", "@payload"]);
    answer.succeeded();
    assert!(answer.out == bytes, "{} bytes came back", answer.out.len());
    assert_eq!(ask(&desk, &["echo"]).out, b"");
    let words = ["about", "x", "--key", " a%20\u{e9}b ", "--content-type", "text/x; a=b"];
    let answer = ask(&desk, &words);
    assert_eq!(answer.text(), " a%20\u{e9}b  text/x; a=b True", "{answer:?}");
}

#[test]
fn without_a_host_that_offers_it_nothing_is_given_and_the_next_ask_may_find_one() {
    let server = Server::start("");
    let desk = host("desk", &server.url(), "");
    let none = desk.hob(&["ask", "greeter", "x"]).go();
    assert_eq!(none.end, End::Code(125), "{none:?}");
    assert!(none.complaint().contains("greeter: no program of this host"), "{none:?}");
    let record = receipt(&desk, |receipt| receipt["program"]["name"] == "greeter");
    assert_eq!(
        (&record["reason"], &record["outcome"]["kind"]),
        (&"no-host".into(), &"no-host".into())
    );
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &(offered("greeter", "echo", "") + &offered("other", "echo", "")));
    ask(&desk, &["greeter", "x"]).succeeded();
    // What is not offered any more is not asked, and what still is goes on.
    web.file("hob.toml", offered("other", "echo", ""));
    web.hob(&["trust"]).go().succeeded();
    wait::until("greeter is withdrawn", || {
        (desk.hob(&["ask", "greeter", "x"]).go().end == End::Code(125)).then_some(())
    });
    ask(&desk, &["other", "x"]).succeeded();
    // An edit that nobody has looked at is not performed for others either.
    web.file("hob.toml", offered("other", "echo", "# more"));
    let edited = ask(&desk, &["other", "x"]);
    assert_eq!(edited.end, End::Code(2), "{edited:?}");
    assert!(edited.complaint().contains("other on web-1: "), "{edited:?}");
    web.hob(&["trust"]).go().succeeded();
    ask(&desk, &["other", "x"]).succeeded();
}

#[test]
fn a_program_of_this_host_never_leaves_it() {
    let server = Server::start("");
    let (web, desk) = two(&server, &offered("greeter", "echo", ""));
    ask(&desk, &["greeter", "x"]).succeeded();
    let asked = || {
        let of_others = |record: &serde_json::Value| record["message"]["asked_by"].is_string();
        web.records(100).into_iter().filter(of_others).count()
    };
    receipt(&web, |receipt| receipt["message"]["asked_by"].is_string());
    let before = asked();
    let own = "def echo(payload, message):\n    return b'mine'\n";
    project(&desk, own, &offered("greeter", "echo", ""));
    connected(&desk, 1);
    assert_eq!(ask(&desk, &["greeter", "x"]).text(), "mine");
    // From a folder whose projects do not have it: it is offered here, so it is asked here.
    let elsewhere = desk.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let run = desk.hob(&["ask", "greeter", "x"]).within(&elsewhere);
    assert_eq!(run.go().text(), "mine");
    // Not even where it cannot be loaded.
    desk.file("handlers.py", "this is no program\n");
    let broken = desk.hob(&["ask", "greeter", "x"]).go();
    assert_eq!(broken.end, End::Code(126), "{broken:?}");
    std::fs::remove_file(desk.path("work").join("handlers.py")).unwrap();
    let missing = desk.hob(&["ask", "greeter", "x"]).go();
    assert_eq!(missing.end, End::Code(127), "{missing:?}");
    web.hob(&["log", "--json"]).go().succeeded();
    assert_eq!(asked(), before);
}

#[test]
fn a_file_that_appears_counts_for_the_next_ask_though_it_was_known_that_there_is_none() {
    let server = Server::start("");
    let (_web, desk) = two(&server, &offered("greeter", "echo", ""));
    ask(&desk, &["greeter", "x"]).succeeded();
    // One connection asks all of it: that nothing names the program is remembered from here on.
    let mut sender = teller(&desk);
    let mut asked = |number: u64| {
        sender.ask(number, "greeter", b"x").unwrap();
        sender.flush().unwrap();
        sender.reply().unwrap().unwrap()
    };
    let answered = |number| Reply::Answered(number, b"x".to_vec());
    for number in 1..50 {
        assert_eq!(asked(number), answered(number));
    }
    for round in 0..10 {
        let number = 100 + 10 * round;
        // In the directory itself and above it: nobody has trusted what stands there.
        let file = desk.path("work").join(if round % 2 == 0 { "hob.toml" } else { "../hob.toml" });
        std::fs::write(&file, offered("greeter", "echo", "")).unwrap();
        let refused = asked(number);
        assert!(matches!(refused, Reply::Failed(_, "untrusted", _)), "{round}: {refused:?}");
        // Without it any host may be asked again.
        std::fs::remove_file(&file).unwrap();
        assert_eq!(asked(number + 1), answered(number + 1), "{round}");
        assert_eq!(asked(number + 2), answered(number + 2), "{round}");
    }
}

#[test]
fn many_asks_leave_few_receipts_which_stand_for_all_of_them() {
    const ROUNDS: u64 = 10;
    const TOGETHER: u64 = 200;
    const ASKS: u64 = ROUNDS * TOGETHER;
    let server = Server::start("");
    let (_web, desk) = two(&server, &offered("greeter", "echo", ""));
    ask(&desk, &["greeter", "x"]).succeeded();
    let before = desk.records(100).len();
    let mut sender = teller(&desk);
    for round in 0..ROUNDS {
        for number in round * TOGETHER..(round + 1) * TOGETHER {
            sender.ask(number, "greeter", b"x").unwrap();
        }
        sender.flush().unwrap();
        for _ in 0..TOGETHER {
            let reply = sender.reply().unwrap().unwrap();
            assert!(matches!(reply, Reply::Answered(..)), "{reply:?}");
        }
    }
    let (all, stands_for) = wait::until("receipts of all of them", || {
        let all = desk.records(2200).split_off(before);
        let stand = |record: &serde_json::Value| record["message"]["stands_for"].as_u64();
        let stands_for: u64 = all.iter().filter_map(stand).sum();
        (stands_for >= ASKS).then_some((all, stands_for))
    });
    assert_eq!(stands_for, ASKS, "each is counted once");
    assert!(all.iter().all(|record| record["message"]["host"].is_string()), "{all:?}");
    assert!(all.len() < 1000, "{} receipts", all.len());
}

#[test]
fn what_another_host_says_instead_of_an_answer_has_the_code_that_it_has_here() {
    let server = Server::start("");
    let programs = offered("raises", "raises", "")
        + &offered("missing", "nothing", "")
        + &offered("holds", "holds", "workers = 1\nqueue = 1");
    let (web, desk) = two(&server, &programs);
    let raised = ask(&desk, &["raises", "x"]);
    assert_eq!(raised.end, End::Code(1), "{raised:?}");
    assert!(raised.complaint().contains("no such name"), "{raised:?}");
    let local = web.hob(&["ask", "raises", "x"]).go();
    assert_eq!(local.complaint(), raised.complaint());
    let missing = ask(&desk, &["missing", "x"]);
    assert_eq!(missing.end, End::Code(126), "{missing:?}");
    assert!(missing.complaint().contains("missing on web-1: "), "{missing:?}");
    // One is performed and one waits: the third is not given.
    let first = desk.hob(&["ask", "holds", "1"]).start();
    wait::until("the first is performed", || {
        web.path("work").join("held-1").exists().then_some(())
    });
    let second = desk.hob(&["ask", "holds", "2"]).start();
    wait::until("the second waits", || {
        let pools = web.pools();
        pools.iter().any(|pool| pool["program"] == "holds" && pool["queued"] == 1).then_some(())
    });
    let third = desk.hob(&["ask", "holds", "3"]).go();
    assert_eq!(third.end, End::Code(125), "{third:?}");
    assert!(third.complaint().contains("too many messages wait"), "{third:?}");
    // One whose time passes ends here and there.
    let timed = desk.hob(&["ask", "holds", "4", "--timeout", "100ms"]).go();
    assert!(matches!(timed.end, End::Code(124 | 125)), "{timed:?}");
    web.file("go", "");
    for running in [first, second] {
        let outcome = running.finish();
        outcome.succeeded();
        assert_eq!(outcome.text(), "gone");
    }
    assert!(!web.path("work").join("held-3").exists(), "what was not given was performed");
}

#[test]
fn the_time_of_an_ask_passes_at_its_host_too() {
    let server = Server::start("");
    let (web, desk) = two(&server, &(offered("holds", "holds", "") + &offered("echo", "echo", "")));
    ask(&desk, &["echo", "x"]).succeeded();
    let timed = desk.hob(&["ask", "holds", "1", "--timeout", "1s"]).go();
    assert_eq!(timed.end, End::Code(124), "{timed:?}");
    let there = receipt(&web, |receipt| receipt["program"]["name"] == "holds");
    assert_eq!(there["outcome"]["kind"], "timed-out", "{there}");
    assert_eq!(web.status()["hosts"]["questions"], 0);
    assert_eq!(desk.status()["hosts"]["asks"], 0);
}

#[test]
fn what_the_server_does_not_let_pass_is_said_at_once() {
    let server = Server::start("max_payload: 65536");
    let (_web, desk) =
        two(&server, &(offered("echo", "echo", "") + &offered("large", "large", "")));
    ask(&desk, &["echo", "x"]).succeeded();
    desk.file("payload", vec![b'x'; 100_000]);
    let large = desk.hob(&["ask", "echo", "@payload"]).go();
    assert_eq!(large.end, End::Code(2), "{large:?}");
    assert!(large.complaint().contains("65536"), "{large:?}");
    // It ran, and its answer cannot come: nobody is told that it may be asked again.
    let answer = desk.hob(&["ask", "large", "x"]).go();
    assert_eq!(answer.end, End::Code(125), "{answer:?}");
    assert!(answer.complaint().contains("its answer cannot be sent"), "{answer:?}");
}

#[test]
fn a_host_that_is_named_where_there_is_none_is_told_with_the_next_step() {
    let world = World::new();
    let asked = world.hob(&["ask", "greeter@web-1", "x"]).go();
    assert_eq!(asked.end, End::Code(125), "{asked:?}");
    let said = asked.complaint();
    assert!(said.contains("greeter is asked of the host web-1"), "{said}");
    assert!(said.contains("[nats] in your config.toml"), "{said}");
    let told = world.hob(&["tell", "greeter@web-1", "x"]).go();
    assert!(told.complaint().contains("leave out @web-1"), "{told:?}");
}

const WHO: &str = r#"
def who(payload, message):
    return open("name", "rb").read()
"#;

#[test]
fn a_key_stays_on_one_host_while_that_offers_the_program_and_then_goes_to_another() {
    let server = Server::start("");
    let names = ["web-1", "web-2"];
    let webs = names.map(|name| {
        let world = host(name, &server.url(), "");
        world.file("name", name);
        project(&world, WHO, &offered("who", "who", ""));
        connected(&world, 1);
        world
    });
    let desk = host("desk", &server.url(), "");
    let who = |words: &[&str]| {
        let answer = ask(&desk, &[&["who", "x"], words].concat());
        answer.succeeded();
        answer.text()
    };
    // Without a key the server chooses among both.
    wait::until("both of them", || (who(&[]) == names[0]).then_some(()));
    wait::until("both of them", || (who(&[]) == names[1]).then_some(()));
    let first = who(&["--key", "k"]);
    for _ in 0..12 {
        assert_eq!(who(&["--key", "k"]), first);
    }
    // Keys are not all on one host.
    let mut number = 0;
    wait::until("a key of the other host", || {
        number += 1;
        (who(&["--key", &number.to_string()]) != first).then_some(())
    });
    let at = names.iter().position(|name| *name == first).unwrap();
    webs[at].hob(&["stop"]).go().succeeded();
    for _ in 0..6 {
        assert_eq!(who(&["--key", "k"]), names[1 - at]);
    }
    // What was asked first of the host that has left has one receipt, with who answered.
    let record = receipt(&desk, |record| record["message"]["host"].is_string());
    assert!(record["message"]["host"].as_str().unwrap().starts_with(names[1 - at]), "{record}");
}
