//! Files of Hurl's, as a person writes them, and what is refused of them.

use hob_http::client::{Answer, Url};

use super::super::answer::Seen;
use super::super::secrets::Secrets;
use super::*;

fn given(text: &str) -> Result<File, String> {
    read(text.as_bytes(), &[("host".to_owned(), "http://h:1".to_owned())], &[])
}

fn checks(text: &str) -> Vec<(String, Check)> {
    let mut all: Vec<_> = given(text).unwrap().check.into_iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    all.into_iter().map(|(name, check)| (name.into_inner(), check)).collect()
}

fn abouts(check: &Check) -> Vec<&str> {
    check.asserts.iter().map(|one| one.about.as_str()).collect()
}

/// What an answer has that is not as this check wants it.
fn faults(check: &Check, body: &[u8]) -> Vec<String> {
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    let answer = Answer {
        status: 200,
        headers: vec![
            header("content-type", "application/json"),
            header("x-a", "1"),
            header("x-a", "2"),
            header("set-cookie", "sid=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=60"),
            header("set-cookie", "theme=dark"),
        ],
        body: body.to_vec(),
        cut: false,
        took: Duration::ZERO,
    };
    let url = Url::parse("http://h:1/items?a=b").unwrap();
    let seen = Seen { answer: &answer, url: &url, took_ms: 12 };
    let secrets = Secrets::default();
    check.asserts.iter().filter_map(|one| one.fault(seen, &secrets)).collect()
}

const WHOLE: &str = r#"# A login, and what it opens.
POST {{host}}/login?next=%2F # twice a day
Accept: text/plain
[Form]
user: alice
word: a b&c \# d
HTTP 303
Location: /home

GET {{host}}/api/items
[Query]
type: a b
[BasicAuth]
bob: secret-word
[Cookies]
theme: dark
[Options]
location: true
max-time: 3s
repeat: 2
HTTP/1.1 *
[Asserts]
status >= 200
status < 300
header "Content-Type" contains "json"
jsonpath "$.items" count == 3
jsonpath "$.items" exists
body contains "alice"
duration < 800

PUT {{host}}/api/items/1
{
  "name": "{{host}}",
  "sizes": [1, 2]
}
HTTP 204

DELETE {{host}}/api/items/1
```
why not
```
"#;

#[test]
fn a_whole_file_is_checks_one_after_another() {
    let checks = checks(WHOLE);
    let names: Vec<_> = checks.iter().map(|(name, _)| name.as_str()).collect();
    let expected =
        ["1 POST /login", "2 GET /api/items", "3 PUT /api/items/1", "4 DELETE /api/items/1"];
    assert_eq!(names, expected);
    let [(_, login), (_, items), (_, put), (_, delete)] = &checks[..] else { panic!() };

    assert_eq!(login.post.as_deref(), Some("http://h:1/login?next=%2F"));
    let body = login.body.as_ref().and_then(Value::as_str);
    assert_eq!(body, Some("user=alice&word=a%20b%26c%20%23%20d"));
    assert_eq!(login.status, Some(Value::Array(vec![303.into()])));
    assert_eq!(abouts(login), ["header location"]);
    assert!(login.after.is_empty());

    assert_eq!(items.get.as_deref(), Some("http://h:1/api/items?type=a%20b"));
    let headers = items.headers.as_ref().unwrap();
    assert_eq!(headers["Authorization"], "Basic Ym9iOnNlY3JldC13b3Jk");
    assert_eq!(headers["Cookie"], "theme=dark");
    assert_eq!((items.redirects, items.times), (Some(20), Some(2)));
    assert_eq!(items.timeout.map(|length| length.0), Some(Duration::from_secs(3)));
    assert_eq!(items.within.map(|length| length.0), Some(Duration::from_millis(800)));
    assert_eq!(items.status.as_ref().and_then(Value::as_array).map(Vec::len), Some(100));
    let all = ["header content-type", "$.items count", "$.items", "the body"];
    assert_eq!(abouts(items), all);
    assert_eq!(items.after, ["1 POST /login"]);

    let body = put.body.as_ref().and_then(Value::as_str).unwrap();
    assert!(body.contains("\"name\": \"http://h:1\"") && body.ends_with('}'), "{body}");
    assert_eq!(put.headers.as_ref().unwrap()["Content-Type"], "application/json");
    // Nothing is said of its answer.
    assert_eq!(delete.status.as_ref().and_then(Value::as_array).map(Vec::len), Some(500));
    assert_eq!(delete.body, Some("why not\n".into()));
}

#[test]
fn a_password_is_hidden_and_so_is_what_is_given_as_a_secret() {
    let secrets = [("token".to_owned(), "abc".to_owned())];
    let text = "GET http://h/{{token}}\n[BasicAuth]\nbob: {{token}}\n";
    let file = read(text.as_bytes(), &[], &secrets).unwrap();
    let hidden: Vec<_> = file.hidden.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(hidden, ["abc", "Ym9iOmFiYw==", "abc"]);
}

#[test]
fn what_is_not_known_is_named_with_its_line() {
    let check = |text: &str, said: &str| {
        let wrong = given(text).unwrap_err();
        assert!(wrong.starts_with(said), "{wrong:?} of {text:?}, expected {said:?}");
    };
    check("\n# x\nFETCH http://h\n", "line 3: `FETCH` is no request");
    check("GET\n", "line 1: an address is missing");
    check("GET http://h/{{id}}\n", "line 1: no variable `id`");
    check("GET http://h\nHTTP/2 200\n", "line 2: hob asks by HTTP/1.1");
    check("GET http://h\nHTTP 2x0\n", "line 2: `2x0` is no status");
    let captures = |lines: &str| format!("GET http://h\nHTTP 200\n[Captures]\n{lines}\n");
    check(&captures("a: xpath \"//a\""), "line 4: `xpath` of an answer is not known here");
    check(&captures("a: body\na: status"), "line 5: `a` is taken twice");
    check("GET http://h\n[Captures]\na: status\n", "line 2: [Captures] before HTTP");
    // Only what comes behind has it, whatever else has the same name.
    check(
        &captures("host: status\n[Asserts]\njsonpath \"$.a\" == {{ host }}"),
        "line 6: `host` is taken here",
    );
    check(
        &format!("GET http://h/{{{{a}}}}\n\n{}", captures("a: status")),
        "line 1: no variable `a`",
    );
    check(
        &format!("{}GET http://h\n[Options]\nrepeat: {{{{a}}}}\n", captures("a: status")),
        "line 6: repeat: `{{a}}` is no number",
    );
    check("GET http://h\n[Asserts]\nstatus == 200\n", "line 2: [Asserts] before HTTP");
    check("GET http://h\n[Multipart]\na: b\n", "line 2: [Multipart] is not known");
    check("GET http://h\n[Options]\n\nretry: 3\n", "line 2: the option `retry: 3`");
    check("GET http://h\n[Options]\ninsecure: true\n", "line 2: the option `insecure: true`");
    check(
        "GET http://h\nHTTP 200\n[Asserts]\n# x\nxpath \"//a\" exists\n",
        "line 5: `xpath` of an answer",
    );
    check("GET http://h\nHTTP 200\n[Asserts]\nstatus == 201\n", "line 5: no status is as all");
    check("GET http://h\nA: b\na word\n", "line 3: `a word` is no request, no `key: value`");
    check("GET http://h\nA: b\nA: c\n", "line 4: the header A twice");
    check("POST http://h\n{\"a\": \n", "line 2: a body that begins as JSON");
    check("POST http://h\n```\nx\n", "line 2: a text without its end");
    check("POST http://h\nfile,x.json;\n", "line 2: a body by `file,`");
    check("POST http://h\n[Form]\na: b\n`x`\n", "line 5: a form and a body");
    assert!(read(b"\xff", &[], &[]).is_err());
    assert!(given("").unwrap().check.is_empty());
}

#[test]
fn no_text_is_too_odd_to_be_read() {
    // Each beginning of a file, and each line twice: an error or a file, and never a panic.
    for at in 0..=WHOLE.len() {
        if let Some(part) = WHOLE.get(..at) {
            let _ = given(part);
        }
    }
    let lines: Vec<&str> = WHOLE.lines().collect();
    for at in 0..lines.len() {
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        let _ = given(&twice.join("\n"));
        twice.remove(at);
        twice.remove(at);
        let _ = given(&twice.join("\r\n"));
    }
}

#[test]
fn what_an_answer_says_is_filled_in_where_it_is_used() {
    let text = r#"POST {{host}}/login
HTTP 200
[Captures]
token: jsonpath "$.token" redact
next: header "Location"
id: jsonpath "$.id"
name: jsonpath "$.name"

GET {{next}}?x={{id}}
Authorization: Bearer {{token}}
HTTP 200
[Asserts]
jsonpath "$.id" == {{id}}
jsonpath "$.name" == "u-{{id}}"
jsonpath "$.items" count == {{id}}
jsonpath "$.name" startsWith {{name}}
status == {{id}}

GET {{host}}/plain
"#;
    let checks = checks(text);
    let [(_, login), (name, next), (_, plain)] = &checks[..] else { panic!() };
    assert_eq!(
        login.captures.iter().map(|each| each.is_secret).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    assert!(login.late.is_none() && plain.late.is_none());
    // Before it is known the name itself is there: of the check, and in the address.
    assert_eq!(name, "2 GET {{next}}");
    assert_eq!(next.get.as_deref(), Some("{{next}}?x={{id}}"));

    let values = [
        ("token", "t-1".into()),
        ("next", "/next".into()),
        ("id", 200.into()),
        ("name", "u".into()),
    ];
    let values = values.map(|(name, value): (_, serde_json::Value)| (name.to_owned(), value));
    let filled = (next.late.as_ref().unwrap().0)(&values.clone().into()).unwrap().check;
    assert_eq!(filled.get.as_deref(), Some("/next?x=200"));
    assert_eq!(filled.headers.as_ref().unwrap()["Authorization"], "Bearer t-1");
    assert_eq!(filled.status, Some(Value::Array(vec![200.into()])));
    let found = faults(&filled, br#"{"id": 200, "name": "u-200", "items": [1]}"#);
    assert_eq!(found, ["$.items count is 1, expected 200"]);

    // Only what fits is taken; the line is that of the file.
    let mut wrong = std::collections::BTreeMap::from(values);
    wrong.insert("name".to_owned(), 5.into());
    let wrong = (next.late.as_ref().unwrap().0)(&wrong).unwrap_err();
    assert_eq!(wrong, "line 16: `startsWith` of such a value is not known here");
}

const JSON: &str = r#"{"a": 1, "b": [1, 2, 3], "s": "Hello World", "n": null, "t": true, "f": 1.5,
"o": {"k": "v", "x-y": "z"}, "e": [], "es": "", "neg": -3, "dup": [{"id": 1, "n": "x"},
{"id": 2, "n": "y"}], "date": "2026-01-02T03:04:05Z", "url": "a%20b", "b64": "aGVsbG8=",
"html": "&lt;a&gt;", "num": "42", "ip": "::1", "id": "936da01f-9abd-4d9d-80c7-02af85c822a8"}"#;

/// Asserts of which Hurl 7.0.0 says that such an answer is so.
const SO: &[&str] = &[
    "jsonpath \"$.a\" == 1",
    "jsonpath \"$.a\" != \"1\"",
    "jsonpath \"$.n\" == null",
    "jsonpath \"$.n\" exists",
    "jsonpath \"$.missing\" not exists",
    "jsonpath \"$.missing\" not == 1",
    "jsonpath \"$.e\" isEmpty",
    "jsonpath \"$.es\" isEmpty",
    "jsonpath \"$.a\" isInteger",
    "jsonpath \"$.f\" isFloat",
    "jsonpath \"$.f\" not isInteger",
    "jsonpath \"$.t\" isBoolean",
    "jsonpath \"$.s\" isString",
    "jsonpath \"$.o\" isCollection",
    "jsonpath \"$.date\" isIsoDate",
    "jsonpath \"$.ip\" isIpv6",
    "jsonpath \"$.ip\" not isIpv4",
    "jsonpath \"$.id\" isUuid",
    "jsonpath \"$.o.x-y\" == \"z\"",
    "jsonpath \"$.b\" contains 2",
    "jsonpath \"$.b\" includes 2",
    "jsonpath \"$.b\" not includes 9",
    "jsonpath \"$..id\" includes 2",
    "jsonpath \"$.dup[?(@.id == 2)].n\" nth 0 == \"y\"",
    "jsonpath \"$.neg\" < 0",
    "jsonpath \"$.f\" > 1",
    "jsonpath \"$.s\" matches /World$/",
    "jsonpath \"$.s\" not matches \"xyz\"",
    "jsonpath \"$.s\" split \" \" count == 2",
    "jsonpath \"$.s\" replace \"World\" \"You\" == \"Hello You\"",
    "jsonpath \"$.s\" regex \"H(.*) \" == \"ello\"",
    "jsonpath \"$.num\" toInt == 42",
    "jsonpath \"$.num\" toFloat == 42.0",
    "jsonpath \"$.a\" toString == \"1\"",
    "jsonpath \"$.url\" urlDecode == \"a b\"",
    "jsonpath \"$.b64\" base64Decode == hex,68656c6c6f;",
    "jsonpath \"$.b64\" base64Decode decode \"utf-8\" == \"hello\"",
    "jsonpath \"$.html\" htmlUnescape == \"<a>\"",
    "header \"X-A\" count == 2",
    "header \"X-A\" includes \"2\"",
    "cookie \"sid\" == \"abc\"",
    "cookie \"sid[Path]\" == \"/\"",
    "cookie \"sid[HttpOnly]\" exists",
    "cookie \"sid[Secure]\" not exists",
    "cookie \"sid[Max-Age]\" == 60",
    "cookie \"nope\" not exists",
    "body startsWith \"{\"",
    "body endsWith \"}\"",
    "bytes startsWith hex,7b22;",
    "bytes contains base64,SGVsbG8=;",
    "url endsWith \"?a=b\"",
    "version == \"1.1\"",
    "regex \"Hello (.)\" == \"W\"",
];

/// Asserts of which it says that such an answer is not so.
const NOT_SO: &[&str] = &[
    "jsonpath \"$.a\" == \"1\"",
    "jsonpath \"$.a\" == 1.0",
    "jsonpath \"$.t\" == \"true\"",
    "jsonpath \"$.o\" == \"v\"",
    "jsonpath \"$.missing\" == 1",
    "jsonpath \"$.missing\" != 1",
    "jsonpath \"$.missing\" count == 0",
    "jsonpath \"$.dup[?(@.id == 2)].n\" == \"y\"",
    "jsonpath \"$.s\" > 3",
    "jsonpath \"$.s\" not > 3",
    "jsonpath \"$.a\" contains 1",
    "jsonpath \"$.a\" not matches /x/",
    "jsonpath \"$.s\" count == 11",
    "jsonpath \"$.s\" toInt == 1",
    "jsonpath \"$.b\" nth 9 == 1",
    "header \"X-A\" == \"1\"",
    "body == \"{\"",
    "bytes == hex,7b;",
    "bytes startsWith \"{\"",
    "sha256 == hex,00;",
    "md5 == hex,00;",
];

#[test]
fn each_assert_is_judged_as_hurl_judges_it() {
    let all = SO.iter().map(|line| (line, true)).chain(NOT_SO.iter().map(|line| (line, false)));
    for (line, passes) in all {
        let text = format!("GET http://h\nHTTP 200\n[Asserts]\n{line}\n");
        let (_, check) = checks(&text).remove(0);
        let found = faults(&check, JSON.as_bytes());
        assert_eq!(found.is_empty(), passes, "{line}: {found:?}");
    }
}

#[test]
fn digests_headers_of_one_name_and_whole_bodies_are_compared() {
    let check = |text: &str, body: &[u8], want: &[&str]| {
        let (_, check) = checks(text).remove(0);
        assert_eq!(faults(&check, body), want, "{text}");
    };
    let sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    check(&format!("GET http://h\nHTTP 200\n[Asserts]\nsha256 == hex,{sha};\n"), b"hello", &[]);
    let md5 = "5d41402abc4b2a76b9719d911017c592";
    check(&format!("GET http://h\nHTTP 200\n[Asserts]\nmd5 == hex,{md5};\n"), b"hello", &[]);
    check("GET http://h\nHTTP 200\nX-A: 1\nX-A: 2\n", b"", &[]);
    let other = ["header x-a is [\"1\",\"2\"], expected \"3\""];
    check("GET http://h\nHTTP 200\nX-A: 3\n", b"", &other);
    check("GET http://h\nHTTP 200\n{\"a\": 1}\n", b"{\"a\": 1}", &[]);
    let other = ["the body is \"{\\\"a\\\":1}\", expected \"{\\\"a\\\": 1}\""];
    check("GET http://h\nHTTP 200\n{\"a\": 1}\n", b"{\"a\":1}", &other);
    check("GET http://h\nHTTP 200\n```\none\ntwo\n```\n", b"one\ntwo\n", &[]);
}
