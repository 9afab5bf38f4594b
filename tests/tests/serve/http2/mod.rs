//! HTTP/2 without TLS, by clients that know beforehand: what apps and clients see of it.

mod client;
mod ends;
mod limits;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use hob_tests::World;
use hob_tests::site::Site;

use client::Client;

const WSGI: &str = r#"
import os, signal, time

def pieces():
    while True:
        yield b"x" * 16384
        open("made", "a").close()

def application(environ, start):
    path = environ["PATH_INFO"]
    with open("given", "a") as file:
        file.write(path + "\n")
    while path == "/hold" and not os.path.exists("go"):
        time.sleep(0.005)
    if path == "/die":
        os.kill(os.getpid(), signal.SIGKILL)
    start("200 OK", [("Content-Type", "text/plain")])
    if path == "/endless":
        return pieces()
    if path == "/environ":
        names = ("SERVER_PROTOCOL", "REQUEST_URI", "HTTP_HOST", "HTTP_COOKIE", "HTTP_A_B",
                 "CONTENT_LENGTH", "wsgi.url_scheme")
        return [repr([environ.get(name) for name in names]).encode()]
    if path == "/large":
        return [b"x" * 900_000]
    body = environ["wsgi.input"].read()
    return [path.encode() + b" %d" % len(body)]
"#;

fn site(world: &World, serve: &str, mount: &str) -> Site {
    world.file("wsgi.py", WSGI);
    let app = "[mount.\"/\"]\nwsgi = \"wsgi.py\"";
    world.file(
        "hob.toml",
        format!("[serve]\n{serve}\n{app}\n{mount}\n[mount.\"/files\"]\nstatic = \"files\"\n"),
    );
    world.file("files/small.txt", "small");
    world.file("files/big.bin", vec![b'b'; 3_000_000]);
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

/// Runs curl, which has to get an answer.
fn curl(site: &Site, path: &str, words: &[&str], body: &[u8]) -> String {
    let url = format!("http://{}{path}", site.address());
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--http2-prior-knowledge"]).args(words).arg(url);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("curl is there");
    // It may not ask for a body at all.
    let _ = child.stdin.take().unwrap().write_all(body);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn curl_gets_from_apps_and_folders_what_it_asks_for() {
    let world = World::new();
    let site = site(&world, "", "workers = 2");
    let seen = curl(&site, "/environ?a=b", &["-H", "Cookie: a=b", "-H", "A-B: c"], b"");
    let host = site.address();
    assert_eq!(seen, format!("['HTTP/2', '/environ?a=b', '{host}', 'a=b', 'c', None, 'http']"));
    for size in [1, 70_000, 3_000_000] {
        let answer = curl(&site, "/echo", &["--data-binary", "@-"], &vec![b'x'; size]);
        assert_eq!(answer, format!("/echo {size}"));
    }
    assert_eq!(curl(&site, "/large", &[], b"").len(), 900_000);
    let head = curl(&site, "/large", &["--head"], b"");
    assert!(head.starts_with("HTTP/2 200") && head.contains("content-length: 900000"), "{head}");
    assert_eq!(curl(&site, "/files/small.txt", &[], b""), "small");
    assert_eq!(curl(&site, "/files/big.bin", &[], b"").len(), 3_000_000);
    assert_eq!(curl(&site, "/files/big.bin", &["-r", "0-9"], b"").len(), 10);
    let head = curl(&site, "/files/none", &["--head"], b"");
    assert!(head.starts_with("HTTP/2 404"), "{head}");
    assert!(site.out().contains("\"GET /environ?a=b HTTP/2\" 200"), "{}", site.out());
    let outcome = site.stop();
    let out = String::from_utf8_lossy(&outcome.out).into_owned();
    assert!(out.contains("\"GET /files/big.bin HTTP/2\" 200 3000000"), "{out}");
    let receipts = world.records(100);
    let (of_files, of_apps): (Vec<_>, Vec<_>) =
        receipts.iter().partition(|receipt| receipt["reason"] == "front");
    let is_of = |all: &[&serde_json::Value], name: &str| {
        !all.is_empty() && all.iter().all(|receipt| receipt["program"]["name"] == name)
    };
    assert!(is_of(&of_files, "/files") && is_of(&of_apps, "/"), "{receipts:?}");
    let told: Vec<&serde_json::Value> =
        of_apps.into_iter().filter(|receipt| receipt["message"]["protocol"].is_string()).collect();
    assert!(!told.is_empty());
    for receipt in told {
        assert_eq!(receipt["message"]["protocol"], "HTTP/2");
        assert_eq!(receipt["phases"][0]["name"], "body", "its head is not seen: {receipt}");
    }
}

#[test]
fn requests_of_one_connection_are_answered_each_by_itself() {
    let world = World::new();
    let site = site(&world, "", "workers = 2\nqueue = 200");
    let client = Client::connect(&site, 65_535);
    let ask = |number: usize| client.ask(("GET", &format!("/{number}")), &[], None).unwrap();
    let asked: Vec<_> = (0..100).map(ask).collect();
    for (number, asked) in asked.into_iter().enumerate() {
        let answer = client.answer(asked).unwrap();
        assert_eq!((answer.status, answer.body), (200, format!("/{number} 0")));
    }
    site.stop();
}

#[test]
fn a_request_is_judged_as_one_of_http_1() {
    let world = World::new();
    let site = site(&world, "", "workers = 1");
    let client = Client::connect(&site, 65_535);
    let host = site.address().to_string();
    let same = client.ask(("GET", "/environ"), &[("host", &host)], None).unwrap();
    assert_eq!(client.answer(same).unwrap().status, 200);
    let other = client.ask(("GET", "/"), &[("host", "other")], None).unwrap();
    let answer = client.answer(other).unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (400, "several Host\n"));
    let user = client.ask_of("user@a", ("GET", "/"), &[], None).unwrap();
    assert_eq!(client.answer(user).unwrap().body, "the Host is not valid\n");
    let dots = client.ask(("GET", "/x/../../y"), &[], None).unwrap();
    assert_eq!(client.answer(dots).unwrap().status, 400);
    let cookies = [("cookie", "a=b"), ("a_b", "merged"), ("cookie", "c=d")];
    let seen = client.ask(("GET", "/environ"), &cookies, None).unwrap();
    let seen = client.answer(seen).unwrap().body;
    assert!(seen.contains("'a=b; c=d', None, None"), "{seen}");
    // With no word of its length, and with none of it.
    let told = client.ask(("POST", "/environ"), &[], Some(b"123")).unwrap();
    let told = client.answer(told).unwrap().body;
    assert!(told.contains("None, '3', 'http'"), "{told}");
    assert_eq!(client.get("/").status, 200);
    site.stop();
}

#[test]
fn the_first_bytes_tell_the_protocol_however_they_come() {
    let world = World::new();
    let site = site(&world, "", "workers = 1");
    let mut stream = TcpStream::connect(site.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "it answers with its settings: {frame:?}");
    // A method that begins alike, and what is none of both.
    for (bytes, status) in [
        (&b"PRI /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"[..], " 200 "),
        (b"P", ""),
        (b"PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n", " 505 "),
        (b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", " 505 "),
    ] {
        let mut stream = TcpStream::connect(site.address()).unwrap();
        for byte in bytes {
            // It may have answered already.
            let _ = stream.write_all(&[*byte]);
        }
        if status.is_empty() {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let said = answer.strip_prefix("HTTP/1.1").unwrap_or_default();
        assert!(said.starts_with(status), "{:?}: {answer}", String::from_utf8_lossy(bytes));
        assert!(answer.matches("HTTP/1.1").count() <= 1, "one answer: {answer}");
    }
    // Who only offers it stays with HTTP/1.
    let offered = "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    assert!(site.ask("GET", "/", offered, b"").head.starts_with("HTTP/1.1 200"));
    site.stop();
}

#[test]
fn apps_are_offered_no_connection_and_no_hints() {
    let world = World::new();
    let told = "env['SERVER_PROTOCOL'], env['rack.hijack?'], env['rack.hijack'].nil?, \
                env['rack.early_hints'].nil?";
    world.file(
        "config.ru",
        format!(
            "run ->(env) {{\n  taken = env['PATH_INFO'] == '/take' ? {{ 'rack.hijack' => \
             ->(io) {{ io.close }} }} : {{}}\n  [200, taken, [[{told}].inspect]] }}\n"
        ),
    );
    world.file(
        "asgi.py",
        "async def application(scope, receive, send):\n    \
         text = repr([scope['http_version'], sorted(scope['extensions'])]).encode()\n    \
         await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n    \
         await send({'type': 'http.response.body', 'body': text})\n",
    );
    world.file(
        "hob.toml",
        "[mount.\"/rack\"]\nrack = \"config.ru\"\nworkers = 1\n\
         [mount.\"/asgi\"]\nasgi = \"asgi.py:application\"\nworkers = 1\n",
    );
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &[]);
    let client = Client::connect(&site, 65_535);
    assert_eq!(client.get("/rack").body, "[\"HTTP/2\", false, true, true]");
    assert_eq!(client.get("/rack/take").status, 500);
    assert_eq!(client.get("/asgi").body, "['2', ['http.response.pathsend']]");
    assert_eq!(site.get("/rack").text(), "[\"HTTP/1.1\", true, false, false]");
    site.stop();
}
