//! Runs of `hob check` beside those before: what is kept, what is found, and what a gate says.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use hob_tests::{End, World};
use serde_json::Value;

use super::Server;

/// Seven that only read, and one that changes something.
const FILE: &str = r#"
times = 3
[profile.support]
basic = { user = "support", password = "env:PASSWORD" }
[check.a]
get = "/work/a"
[check.b]
get = "/work/b"
[check.c]
get = "/work/c?token=env"
query = { token = "env:PASSWORD" }
[check.d]
get = "/work/d"
[check.e]
get = "/work/e"
[check.f]
get = "/work/f"
[check.g]
get = "/work/g"
[check.changes]
post = "/work/changes"
times = 1
"#;

fn stored(world: &World) -> Vec<PathBuf> {
    let place = world.path("state/hob/checks");
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Writes what the runs before took, by the name of the check.
fn rewrite(world: &World, took_us: impl Fn(&str) -> u64) {
    let [path] = &stored(world)[..] else { panic!("{:?}", stored(world)) };
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| {
        let mut run: Value = serde_json::from_str(line).unwrap();
        for cell in run["cells"].as_array_mut().unwrap() {
            let took_us = took_us(cell["check"].as_str().unwrap());
            cell["took_us"].as_array_mut().unwrap().fill(took_us.into());
        }
        format!("{run}\n")
    });
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

fn notes(found: &Value) -> String {
    found["earlier"]["notes"].to_string()
}

#[test]
fn what_is_slower_than_in_the_runs_before_is_asked_again_and_named() {
    let world = World::new();
    let server = Server::start(&world);
    let (end, found) = server.check(FILE, &["--gate", "10%"]);
    assert_eq!(end, End::Code(3), "nothing to compare with decides nothing: {found}");
    assert!(notes(&found).contains("cannot be decided"), "{found}");
    for number in 2..=3 {
        let (end, found) = server.check(FILE, &[]);
        assert_eq!((end, &found["earlier"]["run"]), (End::Code(0), &number.into()), "{found}");
        assert_eq!(found["earlier"]["compared"], 0, "{found}");
    }
    // Two checks took a microsecond in the runs before, all others a millisecond: what a busy machine
    // does to the times of this run moves the others too, and makes up for no factor of hundreds.
    rewrite(&world, |check| if ["a", "changes"].contains(&check) { 1 } else { 1000 });
    let before = server.asked().len();
    let (end, found) = server.check(FILE, &["--gate", "10%"]);
    assert_eq!(end, End::Code(4), "{found}");
    let earlier = &found["earlier"];
    assert_eq!((&earlier["run"], &earlier["compared"]), (&4.into(), &8.into()), "{found}");
    let off = earlier["off"].as_array().unwrap();
    let of = |check: &str| off.iter().find(|off| off["check"] == check).unwrap();
    assert_eq!((&of("a")["sure"], &of("a")["again"]), (&true.into(), &true.into()), "{found}");
    assert!(of("a")["ratio"].as_f64().unwrap() > 2.0, "{found}");
    // What changes something is not done 30 times because hob wants to be sure.
    assert_eq!(of("changes")["again"], false, "{found}");
    let asked = server.asked().split_off(before);
    let count = |path: &str| asked.iter().filter(|line| line.contains(path)).count();
    assert_eq!((count("POST /work/changes"), count("GET /work/a ")), (1, 3 + 31), "{asked:?}");

    let outcome = server.run(FILE, &["--report", "r.html", "--report", "r.md"]);
    assert_eq!(outcome.end, End::Code(0), "without a gate it is no failure: {outcome:?}");
    let text = outcome.text();
    assert!(text.contains("since runs 1 to 4") && text.contains("run 5"), "{text}");
    let page = std::fs::read_to_string(world.path("work/r.html")).unwrap();
    assert_eq!(page.matches("<rect class=\"ok\" width=\"18\"").count(), 5, "{page}");
    assert_eq!(page.matches("<rect class=\"last\"").count(), 8, "{page}");
}

#[test]
fn runs_are_kept_in_their_order_without_secrets_and_other_builds_keep_theirs() {
    let world = World::new();
    let server = Server::start(&world);
    for _ in 0..3 {
        server.check(FILE, &[]);
    }
    let [path] = &stored(&world)[..] else { panic!("{:?}", stored(&world)) };
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(path).unwrap();
    for secret in ["hunter2", "127.0.0.1", "token", "/work"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    // The clock was years ahead, and has gone back since: the order is that of the lines.
    let lines: Vec<&str> = text.lines().collect();
    let mut newest: Value = serde_json::from_str(lines[2]).unwrap();
    newest["at"] = "2099-01-01T00:00:00Z".into();
    let newer = "{\"schema\":\"hob.check-run/2\",\"number\":\"xii\"}";
    let all =
        format!("{}\n{newer}\n{}\nno JSON at all\n{newest}\n{{\"schema\":", lines[0], lines[1]);
    std::fs::write(path, all).unwrap();
    let (end, found) = server.check(FILE, &[]);
    assert_eq!((end, &found["earlier"]["run"]), (End::Code(0), &4.into()), "{found}");
    assert_eq!(found["earlier"]["runs"], serde_json::json!([1, 2, 3]), "{found}");
    assert_eq!(found["earlier"]["compared"], 8, "{found}");
    assert!(notes(&found).contains("3 of the runs before are of another build"), "{found}");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(newer) && text.lines().count() == 7, "{text}");

    // Another number at one time, another base: other runs.
    let (_, found) = server.check(FILE, &["--jobs", "1"]);
    assert!(notes(&found).contains("4 of the runs before had other `jobs` than 1"), "{found}");
    assert_eq!(found["earlier"]["compared"], 0, "{found}");
    let other = server.base.replace("127.0.0.1", "localhost");
    let words = ["check", "--json", "site.check.toml", "--base", &other];
    let outcome = world.hob(&words).env("PASSWORD", "hunter2").go_long();
    let found: Value = serde_json::from_slice(&outcome.out).unwrap();
    assert_eq!(found["earlier"]["run"], 1, "{found}");
    assert_eq!(stored(&world).len(), 2);

    // Twenty are kept.
    let line = text.lines().next().unwrap();
    std::fs::write(path, format!("{line}\n").repeat(50)).unwrap();
    server.check(FILE, &[]);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 20);
}

#[test]
fn a_run_that_cannot_be_kept_says_so_and_is_no_failure() {
    let world = World::empty();
    let server = Server::start(&world);
    std::fs::write(world.path("state/hob"), "no directory").unwrap();
    let (end, found) = server.check(FILE, &[]);
    assert_eq!((end, &found["earlier"]["run"]), (End::Code(0), &Value::Null), "{found}");
    assert!(notes(&found).contains("not kept: state-dir-not-a-directory"), "{found}");
}
