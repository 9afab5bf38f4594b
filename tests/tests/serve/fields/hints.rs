//! Early hints: a client has them before the answer, and never behind it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hob_tests::World;
use hob_tests::site::{Site, response};

/// Apps that hint twice, wait for a file if they are asked to, and try it again behind their status.
const RACK: &str = r##"
run lambda { |env|
  hint = env["rack.early_hints"]
  if hint
    hint.call("link" => "</a.css>; rel=preload", "content-length" => "7")
    hint.call("link" => ["</b.js>", "</c.js>"])
    hint.call("link" => "a\r\nHTTP/1.1 200 OK") if env["PATH_INFO"] == "/bad"
  end
  sleep 0.01 until env["PATH_INFO"] != "/wait" || File.exist?("go")
  body = Enumerator.new do |out|
    out << "first,"
    hint.call("link" => "</late>") if hint
    out << (hint ? "hinted" : "none")
  end
  [200, { "content-type" => "text/plain" }, body]
}
"##;
const ASGI: &str = r#"
import asyncio, os

HINT = "http.response.early_hint"

async def application(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    hinted = HINT in scope["extensions"]
    if hinted:
        await send({"type": HINT, "links": [b"</a.css>; rel=preload"]})
        await send({"type": HINT, "links": [b"</b.js>", b"</c.js>"]})
        if scope["path"].endswith("/bad"):
            await send({"type": HINT, "links": [b"a\r\nHTTP/1.1 200 OK"]})
    while scope["path"].endswith("/wait") and not os.path.exists("go"):
        await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = b"hinted" if hinted else b"none"
    await send({"type": "http.response.body", "body": b"first," + body})
"#;
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n\
                     HTTP/1.1 103 Early Hints\r\nlink: </b.js>\r\nlink: </c.js>\r\n\r\n";

fn serve(world: &World) -> (Site, Vec<String>) {
    let (mut mounts, mut prefixes) = (String::new(), Vec::new());
    for (interface, file, text) in [("rack", "config.ru", RACK), ("asgi", "app.py", ASGI)] {
        world.file(file, text);
        for isolation in ["prefork", "fork", "spawn"] {
            let prefix = format!("/{interface}/{isolation}");
            mounts += &format!(
                "[mount.\"{prefix}\"]\n{interface} = \"{file}\"\nisolation = \"{isolation}\"\n"
            );
            prefixes.push(prefix);
        }
    }
    world.file("hob.toml", mounts);
    world.hob(&["trust"]).go().succeeded();
    (Site::serve(world, &[]), prefixes)
}

fn get(target: &str, version: &str) -> String {
    format!("GET {target} HTTP/{version}\r\nHost: a\r\nConnection: close\r\n\r\n")
}

#[test]
fn hints_are_there_before_the_answer_and_the_answer_is_whole() {
    let world = World::new();
    let (site, prefixes) = serve(&world);
    // Once by the loop and, where there are lanes, once by those.
    for prefix in prefixes.iter().chain(&prefixes) {
        let mut client = TcpStream::connect(site.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.write_all(get(&format!("{prefix}/wait"), "1.1").as_bytes()).unwrap();
        let mut hints = vec![0; HINTS.len()];
        client.read_exact(&mut hints).unwrap();
        assert_eq!(String::from_utf8_lossy(&hints), HINTS, "{prefix}");
        let go = world.file("go", "");
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        std::fs::remove_file(go).unwrap();
        let text = String::from_utf8_lossy(&rest);
        assert!(!text.contains("103") && !text.contains("late"), "{prefix}: {text}");
        assert_eq!(response(&rest).status, 200, "{prefix}: {text}");
        assert!(text.contains("first,") && text.contains("hinted"), "{prefix}: {text}");
        let is_whole = text.ends_with("0\r\n\r\n") || text.ends_with("\r\n\r\nfirst,hinted");
        assert!(is_whole, "{prefix}: {text}");
    }
    site.stop();
}

#[test]
fn a_client_of_http_1_0_is_sent_none_and_its_app_finds_none() {
    let world = World::new();
    let (site, prefixes) = serve(&world);
    for prefix in prefixes {
        let answer = site.raw(get(&prefix, "1.0").as_bytes());
        assert!(answer.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&answer));
        assert_eq!(response(&answer).text(), "first,none", "{prefix}");
    }
    site.stop();
}

#[test]
fn hints_cannot_split_an_answer_and_go_to_their_own_request_alone() {
    let world = World::new();
    let (site, prefixes) = serve(&world);
    for prefix in prefixes {
        let answer = site.raw(get(&format!("{prefix}/bad"), "1.1").as_bytes());
        let text = String::from_utf8_lossy(&answer);
        // A hint that has not gone out by then may be dropped.
        assert!(text.contains("HTTP/1.1 500 ") && !text.contains("200 OK"), "{prefix}: {text}");
        // Of requests in a row each answer is whole, with its own hints or none before it.
        let one = format!("GET {prefix} HTTP/1.1\r\nHost: a\r\n\r\n");
        let bytes = one.repeat(20) + &get(&prefix, "1.1");
        let text = String::from_utf8(site.raw(bytes.as_bytes())).unwrap();
        let finals = text.matches("HTTP/1.1 200 OK\r\n").count();
        assert_eq!((finals, text.matches("hinted").count()), (21, 21), "{prefix}: {text}");
        for part in text.split("HTTP/1.1 200 OK\r\n") {
            let hinted = part.matches("HTTP/1.1 103 Early Hints\r\nlink: </a.css>").count();
            assert!(hinted <= 1, "{prefix}: {text}");
        }
        assert!(!text.contains("late"), "{prefix}: {text}");
    }
    site.stop();
}
