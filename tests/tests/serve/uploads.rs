//! Bodies of requests that are larger than a frame.

use std::io::{Read, Write};
use std::net::TcpStream;

use hob_tests::World;
use hob_tests::site::{Site, response};
use serde_json::Value;

/// Apps that answer what they were sent: its length, its digest, and what more of it there was.
const WSGI: &str = r#"
import hashlib

def application(environ, start):
    body, digest, size = environ["wsgi.input"], hashlib.sha256(), 0
    while True:
        data = body.read(100_000)
        if not data:
            break
        size += len(data)
        digest.update(data)
    start("200 OK", [])
    return [("%d %s %s" % (size, digest.hexdigest(), environ.get("CONTENT_LENGTH"))).encode()]
"#;
const ASGI: &str = r#"
import hashlib

async def application(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    digest, size, more = hashlib.sha256(), 0, True
    while more:
        event = await receive()
        size += len(event["body"])
        digest.update(event["body"])
        more = event["more_body"]
    told = dict(scope["headers"]).get(b"content-length", b"None").decode()
    body = ("%d %s %s" % (size, digest.hexdigest(), told)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"#;
const RACK: &str = r##"
require "digest"

run lambda { |env|
  digest = Digest::SHA256.new
  size = 0
  while (data = env["rack.input"].read(100_000))
    size += data.bytesize
    digest << data
  end
  [200, {}, ["#{size} #{digest.hexdigest} #{env["CONTENT_LENGTH"] || "None"}"]]
}
"##;
const INTERFACES: [(&str, &str, &str); 3] =
    [("wsgi", "app_wsgi.py", WSGI), ("asgi", "app_asgi.py", ASGI), ("rack", "config.ru", RACK)];

/// Each app at `/INTERFACE/ISOLATION`.
fn site(world: &World, isolations: &[&str], apps: [&str; 3], more: &str) -> Site {
    let mut mounts = String::new();
    for ((interface, file, _), text) in INTERFACES.iter().zip(apps) {
        world.file(file, text);
        for isolation in isolations {
            mounts += &format!(
                "[mount.\"/{interface}/{isolation}\"]\n{interface} = \"{file}\"\n\
                 isolation = \"{isolation}\"\nworkers = 2\n{more}\n"
            );
        }
    }
    world.file("hob.toml", mounts);
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn echoes(world: &World, more: &str) -> Site {
    site(world, &["fork", "prefork"], [WSGI, ASGI, RACK], more)
}

fn mounts() -> impl Iterator<Item = String> {
    let mount = |(interface, ..): (&str, &str, &str)| {
        ["fork", "prefork"].map(|isolation| format!("/{interface}/{isolation}"))
    };
    INTERFACES.into_iter().flat_map(mount)
}

fn digest(body: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_upload_of_any_size_reaches_every_kind_of_app_whole() {
    let world = World::new();
    let site = echoes(&world, "");
    // Round the size from which on a body travels as a file, and far above a frame.
    for size in [0, 1, 65_536, 65_537, 8 << 20] {
        let body: Vec<u8> = (0..size).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
        let told = if size == 0 { "None".to_owned() } else { size.to_string() };
        let want = format!("{size} {} {told}", digest(&body));
        for mount in mounts() {
            let answer = site.ask("POST", &mount, "", &body);
            assert_eq!((answer.status, answer.text()), (200, want.clone()), "{mount}: {size}");
        }
    }
    let chunk = vec![b'c'; 100_000];
    let mut bytes = b"POST /wsgi/prefork HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
        Transfer-Encoding: chunked\r\n\r\n"
        .to_vec();
    for _ in 0..3 {
        bytes.extend(b"186a0\r\n");
        bytes.extend(&chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    let want = format!("300000 {} 300000", digest(&chunk.repeat(3)));
    assert_eq!(response(&site.raw(&bytes)).text(), want);
    site.stop();
}

#[test]
fn an_upload_over_the_limit_of_its_mount_is_refused_and_others_are_not() {
    let world = World::new();
    let site = echoes(&world, "limits = { body = \"100KiB\" }");
    for mount in mounts() {
        let fits = site.ask("POST", &mount, "", &vec![1; 100 << 10]);
        assert_eq!(fits.status, 200, "{mount}: {fits:?}");
        assert_eq!(site.ask("POST", &mount, "", &vec![1; (100 << 10) + 1]).status, 413, "{mount}");
    }
    // Of a body in chunks nobody knows the length before it has come.
    let mut bytes = b"POST /wsgi/fork HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
        Transfer-Encoding: chunked\r\n\r\n20000\r\n"
        .to_vec();
    bytes.extend(vec![b'c'; 0x20000]);
    bytes.extend(b"\r\n0\r\n\r\n");
    assert_eq!(response(&site.raw(&bytes)).status, 413);
    site.stop();
    let receipts = world.records(40);
    let of = |receipt: &&Value| receipt["reason"] == "limits.body";
    let stands = |receipt: &Value| receipt["message"]["stands_for"].as_u64().unwrap();
    let refused: u64 = receipts.iter().filter(of).map(stands).sum();
    // The others are longer than any mount takes, so that their heads were refused.
    assert_eq!(refused, 1, "{receipts:?}");
    // One that says nothing takes 10 MiB, which is told.
    let site = echoes(&world, "");
    assert_eq!(site.ask("POST", "/rack/fork", "", &vec![1; (10 << 20) + 1]).status, 413);
    site.stop();
}

#[test]
fn a_client_that_waits_is_told_to_go_on_only_if_its_body_is_wanted() {
    let world = World::new();
    let site = echoes(&world, "limits = { body = \"100KiB\" }");
    let head = |mount: &str, length: usize| {
        format!(
            "POST {mount} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    for mount in mounts() {
        let mut stream = TcpStream::connect(site.address()).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream.write_all(head(&mount, 5).as_bytes()).unwrap();
        let mut told = [0; 25];
        stream.read_exact(&mut told).unwrap();
        assert_eq!(told, *b"HTTP/1.1 100 Continue\r\n\r\n", "{mount}");
        stream.write_all(b"words").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = response(&answer);
        let want = format!("5 {} 5", digest(b"words"));
        assert_eq!((answer.status, answer.text()), (200, want), "{mount}");
    }
    // Nothing of these is waited for.
    for (mount, length, status) in
        [("/wsgi/fork", (100 << 10) + 1, 413), ("/wsgi/fork", 1 << 40, 413), ("/none", 5, 404)]
    {
        assert_eq!(response(&site.raw(head(mount, length).as_bytes())).status, status, "{mount}");
    }
    site.stop();
}
