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
        ("xpath \"//a\" exists", "site.hurl: line 5: `xpath` of an answer is not known here"),
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

const CAPTURES: &str = r#"POST {{base}}/items
HTTP 201
[Captures]
id: jsonpath "$.id"
token: jsonpath "$.token" redact
name: jsonpath "$.name"
more: regex "\"more\": \"(.*?)\""
next: header "Location"
cart: cookie "cart"
code: status

PUT {{base}}/echo?id={{id}}
Authorization: Bearer {{token}}
X-More: {{more}}
[Cookies]
own: {{code}}-{{cart}}
{ "name": "{{name}}", "id": {{id}}, "more": "{{more}}" }
HTTP 200
[Captures]
number: regex /"id": (\d+)/ toInt
[Asserts]
body contains "\"name\": \"a \\\"b\\\"\", \"id\": {{id}}, \"more\": \"env:HOME\""
body contains "?id={{id}}"

GET {{base}}{{next}}
X-Number: {{number}}
HTTP 200
"#;

#[test]
fn what_an_answer_says_goes_into_the_entries_behind_it_and_a_secret_is_never_shown() {
    let world = World::new();
    let server = Server::start(&world);
    world.file("site.hurl", CAPTURES);
    let base = format!("base={}", server.base);
    let right = world.hob(&words(&base, &["--jobs", "4"])).go();
    right.succeeded();
    assert!(right.text().contains("3 of 3 passed"), "{}", right.text());
    let log = std::fs::read_to_string(world.path("work/port.log")).unwrap();
    let [made, put, next] = log.lines().collect::<Vec<_>>()[..] else { panic!("{log}") };
    assert!(made.starts_with("POST /items None None"), "{made}");
    let id = put.split(['=', ' ']).nth(2).unwrap();
    assert!(id.parse::<u64>().is_ok_and(|id| id > 1000), "{put}");
    let sent = format!(
        "PUT /echo?id={id} Bearer token-{id} cart=full; own=201-full \
         {{ \"name\": \"a \\\"b\\\"\", \"id\": {id}, \"more\": \"env:HOME\" }}"
    );
    assert_eq!(put, sent);
    assert!(next.starts_with(&format!("GET /items/{id}?a=b None cart=full")), "{next}");

    // One that fails shows what was sent, but no secret.
    let failing = CAPTURES.replace("?id={{id}}\"", "?id=none {{token}}\"");
    world.file("site.hurl", failing);
    let wrong = world.hob(&words(&base, &["--report", "r.html", "--report", "r.json"])).go();
    assert_eq!(wrong.end, End::Code(1), "{}", wrong.complaint());
    let log = std::fs::read_to_string(world.path("work/port.log")).unwrap();
    let put = log.lines().last().unwrap();
    assert!(put.starts_with("PUT"), "what comes behind was asked: {log}");
    let id = put.split(['=', ' ']).nth(2).unwrap();
    let text = wrong.text();
    assert!(text.contains("expected contains \"?id=none [token]\""), "{text}");
    assert!(text.contains("-H 'Authorization: Bearer [token]'"), "{text}");
    assert!(text.contains(&format!("/echo?id={id}'")), "{text}");
    let page = std::fs::read_to_string(world.path("work/r.html")).unwrap();
    let json = std::fs::read_to_string(world.path("work/r.json")).unwrap();
    for text in [&text, &page, &json] {
        assert!(!text.contains(&format!("token-{id}")), "{text}");
    }

    // A name that was given as a secret is one.
    world
        .file("site.hurl", CAPTURES.replace(" redact", "").replace("?id={{id}}\"", "{{token}}!\""));
    let wrong = world.hob(&words(&base, &["--secret", "token=none"])).go();
    assert!(wrong.text().contains("Bearer [token]'"), "{}", wrong.text());
    assert!(!wrong.text().contains("token-"), "{}", wrong.text());
}

#[test]
fn what_is_not_in_an_answer_is_a_failure_of_its_entry() {
    let world = World::new();
    let server = Server::start(&world);
    let base = format!("base={}", server.base);
    let capture = |line: &str| {
        let text = format!("POST {{{{base}}}}/items\nHTTP 201\n[Captures]\n{line}\n\n");
        world.file("site.hurl", text + "GET {{a}}\n");
        let wrong = world.hob(&words(&base, &[])).go();
        assert_eq!(wrong.end, End::Code(1), "{line}: {}", wrong.complaint());
        wrong.text()
    };
    let text = capture("a: jsonpath \"$.none\"");
    assert!(text.contains("capture a: nothing is found"), "{text}");
    assert!(text.contains("`1 POST /items` failed"), "{text}");
    // What cannot be asked was not sent anywhere, and no address is made up for it.
    let text = capture("a: jsonpath \"$.name\"");
    assert!(text.contains("2 GET {{a}}") && !text.contains("curl -sS -i 'http"), "{text}");
    assert!(!text.contains("invalid/"), "{text}");
}
