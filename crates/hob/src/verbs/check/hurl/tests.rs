//! Files of Hurl's, as a person writes them, and what is refused of them.

use super::*;

fn given(text: &str) -> Result<File, String> {
    read(text.as_bytes(), &[("host".to_owned(), "http://h:1".to_owned())], &[])
}

fn checks(text: &str) -> Vec<(String, Check)> {
    let mut all: Vec<_> = given(text).unwrap().check.into_iter().collect();
    all.sort_by_key(|(name, _)| name.span().start);
    all.into_iter().map(|(name, check)| (name.into_inner(), check)).collect()
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
    assert_eq!(login.header, [("Location".to_owned(), "== '/home'".into())]);
    assert!(login.after.is_empty());

    assert_eq!(items.get.as_deref(), Some("http://h:1/api/items?type=a%20b"));
    let headers = items.headers.as_ref().unwrap();
    assert_eq!(headers["Authorization"], "Basic Ym9iOnNlY3JldC13b3Jk");
    assert_eq!(headers["Cookie"], "theme=dark");
    assert_eq!((items.redirects, items.times), (Some(20), Some(2)));
    assert_eq!(items.timeout.map(|length| length.0), Some(Duration::from_secs(3)));
    assert_eq!(items.within.map(|length| length.0), Some(Duration::from_millis(800)));
    assert_eq!(items.status.as_ref().and_then(Value::as_array).map(Vec::len), Some(100));
    let json: Vec<_> = items.json.iter().map(|(_, test)| test.as_str().unwrap()).collect();
    assert_eq!(json, ["count == 3", "exists"]);
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
    check(&captures("a: xpath \"//a\""), "line 4: a capture of `xpath` is not known here");
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
    check(
        &format!(
            "{}GET http://h\nHTTP 200\n[Asserts]\nstatus == {{{{a}}}}\n",
            captures("a: status")
        ),
        "line 8: a whole number is missing",
    );
    check("GET http://h\n[Asserts]\nstatus == 200\n", "line 2: [Asserts] before HTTP");
    check("GET http://h\n[Multipart]\na: b\n", "line 2: [Multipart] is not known");
    check("GET http://h\n[Options]\n\nretry: 3\n", "line 2: the option `retry: 3`");
    check("GET http://h\n[Options]\ninsecure: true\n", "line 2: the option `insecure: true`");
    check("GET http://h\nHTTP 200\n[Asserts]\n# x\nxpath \"//a\" exists\n", "line 5: an assert of");
    check("GET http://h\nHTTP 200\n{\"a\": 1}\n", "line 4: a whole body is not compared");
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

GET {{next}}?x={{id}}
Authorization: Bearer {{token}}
HTTP 200
[Asserts]
jsonpath "$.id" == {{id}}
jsonpath "$.name" == "u-{{id}}"
jsonpath "$.items" count == {{id}}

GET {{host}}/plain
"#;
    let checks = checks(text);
    let [(_, login), (name, next), (_, plain)] = &checks[..] else { panic!() };
    assert_eq!(
        login.captures.iter().map(|each| each.is_secret).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert!(login.late.is_none() && plain.late.is_none());
    // Before it is known the name itself is there: of the check, and in the address.
    assert_eq!(name, "2 GET {{next}}");
    assert_eq!(next.get.as_deref(), Some("{{next}}?x={{id}}"));

    let values = [("token", "t-1".into()), ("next", "/next".into()), ("id", 7.into())];
    let values = values.map(|(name, value): (_, serde_json::Value)| (name.to_owned(), value));
    let filled = (next.late.as_ref().unwrap().0)(&values.clone().into()).unwrap().check;
    assert_eq!(filled.get.as_deref(), Some("/next?x=7"));
    assert_eq!(filled.headers.unwrap()["Authorization"], "Bearer t-1");
    let json: Vec<_> = filled.json.iter().map(|(_, test)| test.as_str().unwrap()).collect();
    assert_eq!(json, ["== 7", "== 'u-7'", "count == 7"]);

    // Only what fits is taken; the line is that of the file.
    let mut wrong = std::collections::BTreeMap::from(values);
    wrong.insert("id".to_owned(), "many".into());
    let wrong = (next.late.as_ref().unwrap().0)(&wrong).unwrap_err();
    assert_eq!(wrong, "line 14: a whole number is missing");
}
