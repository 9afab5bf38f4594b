//! The access log as a file, and `hob log --http`.

mod hostile;

use hob_tests::site::Site;
use hob_tests::{End, World, wait};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::Value;

/// A world that serves a folder with one file, with these words in `[serve]`.
fn world(keys: &str) -> World {
    let world = World::new();
    world.file("public/a.txt", "hello\n");
    world.file("hob.toml", format!("[serve]\n{keys}\n[mount.\"/\"]\nstatic = \"public\"\n"));
    world
}

fn serve(world: &World) -> Site {
    world.hob(&["trust", "."]).go().succeeded();
    Site::serve(world, &["."])
}

/// A request whose answer does not matter.
fn ask(site: &Site, target: &str) {
    assert_ne!(site.get(target).status, 0, "{target}");
}

/// Every line of a log, each of which is JSON.
fn read(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// How many requests a log has, and how many it says are missing.
fn counted(text: &str) -> (u64, u64) {
    let lines = read(text);
    let missing = lines.iter().filter_map(|line| line["dropped"].as_u64());
    let requests = lines.iter().filter(|line| line["status"].is_u64());
    (requests.count() as u64, missing.sum())
}

/// What `hob log --http` prints with these words, once it has so many lines.
fn logged(world: &World, words: &[&str], lines: usize) -> String {
    let words = [&["log", "--http"], words].concat();
    wait::until("the log", || {
        let outcome = world.hob(&words).go();
        outcome.succeeded();
        Some(outcome.text()).filter(|text| text.lines().count() >= lines)
    })
}

/// A front writes lines together: who looks has them written.
#[test]
fn a_request_that_was_answered_is_listed_at_once() {
    let world = world("");
    let site = serve(&world);
    for number in 0..10 {
        ask(&site, &format!("/nope?q={number}"));
        let newest = world.hob(&["log", "--http", "-n", "1"]).go().text();
        assert!(newest.trim_end().ends_with(&format!("/nope?q={number}")), "{newest}");
    }
    site.stop().succeeded();
}

#[test]
fn requests_are_listed_while_a_site_runs_and_when_it_has_stopped() {
    let world = world("log = \"combined\"");
    let nothing = world.hob(&["log", "--http"]).go();
    assert!(nothing.text().contains("hob serve DIR"), "{}", nothing.text());
    let site = serve(&world);
    assert_eq!(site.get("/a.txt").status, 200);
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    assert_eq!(site.ask("GET", "/nope?q=1", trace, b"").status, 404);
    assert_eq!(site.ask("POST", "/a.txt", "User-Agent: a\"b\r\n", b"").status, 405);
    let text = logged(&world, &[], 3);
    let targets: Vec<_> = text.lines().map(|line| line.split("  ").last().unwrap()).collect();
    assert_eq!(targets, ["/a.txt", "/nope?q=1", "/a.txt"], "{text}");
    let found = read(&logged(&world, &["--json", "--where", "status>=404 and path~nope"], 1));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["schema"], "hob.access/1");
    assert_eq!(found[0]["trace"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert!(found[0]["total_us"].is_u64());
    let out = site.stop().out;
    // What standard output had is what is kept.
    let combined = logged(&world, &["--format", "combined"], 3);
    assert!(String::from_utf8(out).unwrap().ends_with(&combined), "{combined}");
    assert!(combined.contains("\"a\\\"b\""), "{combined}");
    let here = logged(&world, &["--site", ".", "-n", "1"], 1);
    assert!(here.lines().count() == 1 && here.contains("405"), "{here}");
    let none = world.hob(&["log", "--http", "--failed"]).go();
    assert!(none.text().contains("no request that is kept"), "{}", none.text());
}

#[test]
fn what_is_asked_wrongly_is_told_with_what_is_possible() {
    let world = world("");
    for (words, said) in [
        (&["--http", "--where", "stauts>5"][..], "there is no field stauts; there is status"),
        (&["--http", "--where", "total>5"], "a time needs a unit"),
        (&["--where", "status>5"], "--http"),
        (&["--follow"], "--http"),
        (&["--http", "--cold"], "--cold"),
        (&["--http", "--site", "nowhere"], "nowhere"),
        (&["--http", "--site", "."], "no access log is kept"),
    ] {
        let outcome = world.hob(&[&["log"], words].concat()).go();
        assert!(!matches!(outcome.end, End::Code(0)), "{words:?}");
        assert!(outcome.complaint().contains(said), "{words:?}: {}", outcome.complaint());
    }
}

#[test]
fn a_log_is_followed_from_site_to_site() {
    let world = world("log = \"none\"");
    // A site without a log has none that is kept.
    let site = serve(&world);
    ask(&site, "/a.txt");
    site.stop();
    assert!(world.hob(&["log", "--http"]).go().text().contains("no requests are logged"));
    let words = ["log", "--http", "--follow", "--json", "--where", "status=404"];
    let follows = world.hob(&words).start();
    world.file("hob.toml", "[mount.\"/\"]\nstatic = \"public\"\n");
    let site = serve(&world);
    for target in ["/a.txt", "/one", "/a.txt", "/two"] {
        ask(&site, target);
    }
    follows.expect("/two");
    let found = read(&String::from_utf8(follows.out()).unwrap());
    let targets: Vec<_> = found.iter().map(|line| line["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["/one", "/two"]);
    follows.signal(Signal::INT);
    let _ = follows.finish();
    site.stop();
}

#[test]
fn a_file_of_the_users_is_written_whole_lines_and_begun_again_when_it_was_renamed() {
    let world = world("log = \"logs/access.ndjson\"");
    // Somebody's words without a line end are not glued to a line.
    let file = world.file("logs/access.ndjson", "not a line of ours");
    let site = serve(&world);
    ask(&site, "/a.txt");
    let text = || std::fs::read_to_string(&file).unwrap_or_default();
    wait::until("a line", || text().ends_with("}\n").then_some(()));
    assert!(text().starts_with("not a line of ours\n{"), "{}", text());
    let outcome = world.hob(&["log", "--http", "--json"]).go();
    assert_eq!(read(&outcome.text()).len(), 1);
    assert!(outcome.complaint().contains("1 line is none of an access log"));
    std::fs::rename(&file, world.path("work/logs/old")).unwrap();
    ask(&site, "/b");
    wait::until("a new file", || text().ends_with("}\n").then_some(()));
    assert_eq!(read(&text())[0]["target"], "/b");
    std::fs::remove_file(&file).unwrap();
    ask(&site, "/c");
    wait::until("another", || text().ends_with("}\n").then_some(()));
    assert_eq!(read(&logged(&world, &["--json"], 1))[0]["target"], "/c");
    let out = String::from_utf8(site.stop().out).unwrap();
    assert!(!out.contains("GET"), "{out}");
}

#[test]
fn a_log_that_cannot_be_written_stops_no_request_and_is_told() {
    let world = world("log = \"/dev/full\"");
    let site = serve(&world);
    for _ in 0..3 {
        assert_eq!(site.get("/a.txt").status, 200);
    }
    wait::until("a word about it", || site.err().contains("No space left").then_some(()));
    let status = wait::until("the count", || {
        let text = world.hob(&["serve", "status"]).go().text();
        text.contains("3 lines of the log dropped").then_some(text)
    });
    assert!(status.contains("the access log: /dev/full: No space left"), "{status}");
    assert_eq!(site.err().matches("No space left").count(), 1, "it is said once");
    site.stop();
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_lines_and_halves_none() {
    let world = world("log = \"access.ndjson\"");
    world.hob(&["trust", "."]).go().succeeded();
    let site = Site::serve(&world, &["."]);
    // Its loop answers, and so has written its own files.
    world.hob(&["serve", "status"]).go().succeeded();
    let small = Rlimit { current: Some(4096), maximum: None };
    prlimit(Pid::from_raw(site.pid().try_into().unwrap()), Resource::Fsize, small).unwrap();
    let file = world.path("work/access.ndjson");
    let text = || std::fs::read_to_string(&file).unwrap_or_default();
    for _ in 0..60 {
        ask(&site, "/a.txt");
    }
    wait::until("a full disk", || site.err().contains("File too large").then_some(()));
    let dropped = || {
        let status = world.hob(&["serve", "status", "--json"]).go().text();
        let status: Value = serde_json::from_str(&status).unwrap();
        status["sites"][0]["front"]["lines_dropped"].as_u64().unwrap()
    };
    let full = wait::until("all lines, written or not", || {
        let full = text();
        let whole = full.ends_with("}\n") && !full.is_empty();
        (whole && counted(&full).0 + dropped() == 60).then(text)
    });
    // Somebody makes room: the next line says how many are missing.
    std::fs::write(&file, "").unwrap();
    ask(&site, "/after");
    wait::until("a line", || text().contains("/after").then_some(()));
    let ((written, told), (after, told_after)) = (counted(&full), counted(&text()));
    assert_eq!((written + told + told_after, after), (60, 1), "{full}{}", text());
    assert!(site.err().contains("is written again"), "{}", site.err());
    site.stop();
}
