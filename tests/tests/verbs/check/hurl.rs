//! Files of Hurl's: what is asked of a real server, and what is refused before anything is asked.

use hob_tests::{End, World};

use super::Server;

const FILE: &str = r#"# A login, what it opens, and what echoes.
POST {{base}}/login
[Form]
user: alice
password: {{password}}
HTTP 204
[Asserts]
header "Set-Cookie" startsWith "session="

GET {{base}}/secret
[BasicAuth]
support: {{password}}
HTTP 200
Content-Type: application/json
[Asserts]
jsonpath "$.entries" count == 2
jsonpath "$.name" == "x"
jsonpath "$.name" matches /^[a-z]$/
duration < 20000

PUT {{base}}/echo?a=1
[Query]
b: c d
{ "id": "{{password}}" }
HTTP 200
[Asserts]
body contains "/echo?a=1&b=c%20d"

GET {{base}}/nowhere
"#;

fn words<'a>(server: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["check", "site.hurl", "--variable", server][..], more].concat()
}

#[test]
fn entries_are_asked_one_after_another_and_no_password_is_shown() {
    let world = World::new();
    let server = Server::start(&world);
    world.file("site.hurl", FILE);
    let base = format!("base={}", server.base);
    let secret = ["--secret", "password=hunter2"];
    let right = world.hob(&words(&base, &secret)).go();
    right.succeeded();
    for part in ["1 POST /login", "2 GET /secret", "3 PUT /echo", "4 of 4 passed"] {
        assert!(right.text().contains(part), "{part}: {}", right.text());
    }
    let log = std::fs::read_to_string(world.path("work/port.log")).unwrap();
    let paths: Vec<_> = log.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(paths, ["/login", "/secret", "/echo?a=1&b=c%20d", "/nowhere"]);
    assert!(log.contains("{ \"id\": \"hunter2\" }"), "{log}");

    // One that fails is shown without its secrets, and what comes behind it is not asked.
    world.file("site.hurl", FILE.replace("\"x\"", "\"y\""));
    let wrong = world.hob(&words(&base, &[&secret[..], &["--report", "r.html"]].concat())).go();
    assert_eq!(wrong.end, End::Code(1));
    assert!(wrong.text().contains("is \"x\", expected \"y\""), "{}", wrong.text());
    let page = std::fs::read_to_string(world.path("work/r.html")).unwrap();
    for text in [&wrong.text(), &page] {
        // The user and the password together, as a header has them.
        for hidden in ["hunter2", "c3VwcG9ydDpodW50ZXIy"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
    let log = std::fs::read_to_string(world.path("work/port.log")).unwrap();
    assert_eq!(log.lines().count(), 6, "{log}");
}

#[test]
fn what_hob_does_not_have_refuses_the_file_before_anything_is_asked() {
    let world = World::new();
    let server = Server::start(&world);
    let base = format!("base={}", server.base);
    for (line, said) in [
        ("xpath \"//a\" exists", "site.hurl: line 5: an assert of `xpath` is not known here"),
        ("jsonpath \"$.a\" == {{none}}", "line 5: no variable `none`: give it by --variable"),
    ] {
        world.file("site.hurl", format!("GET {{{{base}}}}/a\n\nHTTP 200\n[Asserts]\n{line}\n"));
        let refused = world.hob(&words(&base, &[])).go();
        assert_eq!(refused.end, End::Code(2), "{refused:?}");
        assert!(refused.complaint().contains(said), "{}", refused.complaint());
    }
    assert!(!world.path("work/port.log").exists(), "something was asked");
    let wrong = world.hob(&["check", "site.hurl", "--variable", "novalue"]).go();
    assert_eq!(wrong.end, End::Code(2));
    assert!(wrong.complaint().contains("NAME=VALUE"), "{}", wrong.complaint());
}
