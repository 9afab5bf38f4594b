//! `hob check --against`: two servers at the same time.

use hob_tests::{End, World};
use serde_json::Value;

use super::Server;

const FILE: &str = r#"
[profile.alice]
login = "login"
[check.login]
post = "/login"
form = { password = "env:PASSWORD" }
status = 204
[check.a]
get = "/work/a"
[check.b]
get = "/work/b"
[check.secret]
get = "/secret"
[check.changes]
post = "/echo"
"#;

fn of<'a>(list: &'a Value, check: &str) -> Option<&'a Value> {
    list.as_array().unwrap().iter().find(|cell| cell["check"] == check)
}

#[test]
fn what_is_slower_than_at_the_other_server_is_named() {
    let world = World::new();
    let (this, that) = (Server::start(&world), Server::named(&world, "other"));
    world.file("port.slowa", "");
    let other = format!("base={}", that.base);
    let (end, found) = this.check(FILE, &["--against", &other, "--gate", "10%"]);
    assert_eq!(end, End::Code(4), "{found}");
    let against = &found["against"];
    assert_eq!((&against["pairs"], &against["gate"]), (&20.into(), &"failed".into()), "{found}");
    let a = of(&against["cells"], "a").unwrap();
    assert!(a["sure"] == true && a["low"].as_f64().unwrap() > 1.5, "{found}");
    assert_eq!(against["cells"].as_array().unwrap().len(), 3, "{found}");
    let why = &of(&against["left_out"], "changes").unwrap()["why"];
    assert!(why.as_str().unwrap().contains("changes something"), "{found}");
    assert_eq!(found["earlier"], Value::Null, "such a run is none to compare with: {found}");
    for server in [&this, &that] {
        let asked = server.asked();
        let count = |path: &str| asked.iter().filter(|line| line.contains(path)).count();
        // Once to see whether it is right, once for the connection, and twenty pairs.
        let found = ["GET /work/b ", "POST /echo", "POST /login"].map(count);
        assert_eq!(found, [22, 1, 1], "{asked:?}");
    }

    let outcome = this.run(FILE, &["--against", &other, "--report", "r.html", "--report", "r.md"]);
    assert_eq!(outcome.end, End::Code(0), "without a gate it is no failure: {outcome:?}");
    let text = outcome.text();
    assert!(text.contains(&format!("against {}/", that.base)), "{text}");
    for name in ["r.html", "r.md"] {
        let text = std::fs::read_to_string(world.path("work").join(name)).unwrap();
        assert!(text.contains("after 20 pairs of each, in random order"), "{name}: {text}");
    }
}

#[test]
fn a_server_against_itself_is_within_a_wide_gate_and_what_is_wrong_is_left_out() {
    let world = World::new();
    let (this, that) = (Server::start(&world), Server::named(&world, "other"));
    let itself = format!("base={}", this.base);
    let (end, found) = this.check(FILE, &["--against", &itself, "--gate", "900%"]);
    assert_eq!((end, &found["against"]["gate"]), (End::Code(0), &"passed".into()), "{found}");
    let there = format!("base={}/none", that.base);
    let file =
        "[check.a]\nget = '/secret'\nstatus = [401, 404]\n[check.b]\nget = '/away'\nstatus = 302\n";
    let (end, found) = this.check(file, &["--against", &there, "--gate", "900%"]);
    assert_eq!(end, End::Code(3), "the other answers otherwise, so nothing is decided: {found}");
    let why = &of(&found["against"]["left_out"], "b").unwrap()["why"];
    assert_eq!(why, "not as it should be at the other server only", "{found}");
    for wrong in ["http://h", "base=", "base=ftp://h"] {
        let outcome = this.run(file, &["--against", wrong]);
        assert_eq!(outcome.end, End::Code(2), "{wrong}: {outcome:?}");
    }
}
