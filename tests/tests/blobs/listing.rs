//! The same file of many projects, a line each.

use std::io::{Read as _, Write as _};

use serde_json::Value;

use super::{commit, serve, world};

/// The lines of a body that came in chunks.
fn lines(mut body: &[u8]) -> Vec<Value> {
    let mut text = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            break;
        }
        text.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn lines_come_in_the_order_asked_for_whatever_is_missing() {
    let world = world("jobs = 3\n");
    let one = commit(&world, "one", &[("f", b"text\n")]);
    commit(&world, "two", &[("f", b"\0\x01\x02")]);
    commit(&world, "three", &[("g", b"x")]);
    let site = serve(&world);
    let answer = site.get(
        "/git/blobs?rev=main&path=f&project=two&project=gone&project=one&project=three&project=..%2Fx",
    );
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let lines = lines(&answer.body);
    let told: Vec<_> =
        lines.iter().map(|line| (line["project"].clone(), line["status"].clone())).collect();
    let expected = [("two", 200), ("gone", 404), ("one", 200), ("three", 404), ("../x", 400)];
    assert_eq!(told, expected.map(|(project, status)| (project.into(), status.into())));
    assert_eq!((&lines[0]["base64"], &lines[0]["bytes"]), (&"AAEC".into(), &3.into()));
    assert_eq!((&lines[2]["text"], &lines[2]["commit"]), (&"text\n".into(), &one.into()));
    assert!(lines[1]["error"].is_string() && lines[1].get("oid").is_none());
    site.stop();
}

#[test]
fn a_thousand_projects_are_one_request_and_more_are_refused() {
    let world = world("");
    commit(&world, "acme", &[("f", b"1")]);
    let site = serve(&world);
    let target = "/git/blobs?rev=main&path=f".to_owned() + &"&project=acme".repeat(1000);
    let answer = site.get(&target);
    let lines = lines(&answer.body);
    assert_eq!(lines.len(), 1000);
    assert!(lines.iter().all(|line| line["status"] == 200), "{:?}", lines[0]);
    assert_eq!(site.get(&(target + "&project=acme")).status, 400);
    let head = site.ask("HEAD", "/git/blobs?rev=main&path=f&project=acme", "", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    site.stop();
}

#[test]
fn a_client_that_leaves_ends_its_listing() {
    let world = world("jobs = 1\n");
    commit(&world, "acme", &[("f", &[b'x'; 1 << 20])]);
    let site = serve(&world);
    let target = "/git/blobs?rev=main&path=f".to_owned() + &"&project=acme".repeat(1000);
    let mut stream = std::net::TcpStream::connect(site.address()).unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut begun = [0; 512];
    stream.read_exact(&mut begun).unwrap();
    drop(stream);
    // A gigabyte would be read before this one, if it were not ended.
    let answer = site.get("/git/blob/acme/main?path=f");
    assert_eq!((answer.status, answer.body.len()), (200, 1 << 20));
    let out = site.stop();
    assert!(String::from_utf8_lossy(&out.out).contains("/blobs?"), "its line is in the log");
}
