//! WebSockets of ASGI apps, by a client that others wrote: the handshake, messages of every size,
//! who ends one and what the other learns, and who waits for whom.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_tests::site::{Site, response};
use hob_tests::{World, wait};
use rustix::process::Pid;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::client::Response;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::{Error, Message, WebSocket};

mod ends;

const APP: &str = r#"
import asyncio, os

def note(name, text=""):
    with open(name + ".new", "w") as file:
        file.write(text)
    os.rename(name + ".new", name)

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan")
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"here"})
        return
    path = scope["path"][len(scope["root_path"]):]
    assert await receive() == {"type": "websocket.connect"}
    async def text(data):
        await send({"type": "websocket.send", "text": data})
    if path == "/refuse":
        await send({"type": "websocket.close"})
        return
    if path == "/answer":
        headers = [(b"content-type", b"text/plain")]
        await send({"type": "websocket.http.response.start", "status": 418, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": b"a pot", "more_body": True})
        await send({"type": "websocket.http.response.body", "body": b" of tea"})
        return
    if path == "/early":
        raise RuntimeError("a secret of the app")
    if path == "/neither":
        return
    offered = scope["subprotocols"]
    headers = [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"upgrade", b"h2c")]
    chosen = offered[-1] if offered else None
    if path == "/other":
        chosen = "never offered"
    await send({"type": "websocket.accept", "subprotocol": chosen, "headers": headers})
    if path == "/scope":
        await text(repr(sorted(scope.items(), key=lambda pair: pair[0])))
    elif path == "/close":
        await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
        note("said", repr(await receive()))
        return
    elif path == "/return":
        return
    elif path == "/raise":
        await text("%d;" % os.getpid())
        await receive()
        raise RuntimeError("a secret of the app")
    elif path == "/flood":
        for _ in range(800):
            await send({"type": "websocket.send", "bytes": bytes(65536)})
    elif path == "/endless":
        try:
            while True:
                await text("%d;" % os.getpid())
                await asyncio.sleep(0.002)
        finally:
            note("gone", "")
    elif path == "/deaf":
        while not os.path.exists("go"):
            await asyncio.sleep(0.002)
        size = 0
        while size < 50 << 20:
            size += len((await receive())["bytes"])
        await text("all")
    elif path == "/impatient":
        # A message that is waited for in vain is not lost, and not half of one.
        tries = 0
        while True:
            try:
                event = await asyncio.wait_for(receive(), 0.001)
            except asyncio.TimeoutError:
                tries += 1
                if tries == 5:
                    await text("waiting")
                continue
            if event["type"] == "websocket.disconnect":
                return
            await text(str(len(event["text"])))
    await text("%d;" % os.getpid()) if path == "/pid" else None
    while True:
        event = await receive()
        if event["type"] == "websocket.disconnect":
            note("gone", "%s %s" % (event["code"], event["reason"]))
            return
        await send({**event, "type": "websocket.send"})
"#;

fn serve(world: &World, isolation: &str) -> Site {
    serve_with(world, isolation, ["", ""])
}

/// With more lines of the site, and of the app's mount.
fn serve_with(world: &World, isolation: &str, [more, of_mount]: [&str; 2]) -> Site {
    world.file("asgi.py", APP);
    world.file(
        "wsgi.py",
        "def application(environ, start):\n    start('200 OK', [])\n    return [b'as any other']\n",
    );
    let workers = if isolation == "prefork" { "workers = 1" } else { "" };
    world.file(
        "hob.toml",
        format!(
            "{more}\n[mount.\"/app\"]\nasgi = \"asgi.py\"\nisolation = \"{isolation}\"\n{workers}\n\
             {of_mount}\n[mount.\"/plain\"]\nwsgi = \"wsgi.py\"\n"
        ),
    );
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

/// Does the same under both isolations.
fn each(test: impl Fn(&World, &str)) {
    for isolation in ["prefork", "fork"] {
        test(&World::new(), isolation);
    }
}

/// A connection whose reads no signal ends: a socket with a time limit is not read again by the
/// kernel.
#[derive(Debug)]
struct Patient(TcpStream);

impl Read for Patient {
    fn read(&mut self, piece: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.0.read(piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

type Client = WebSocket<Patient>;

fn connect(site: &Site) -> Patient {
    let stream = TcpStream::connect(site.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Patient(stream)
}

fn opened(site: &Site, path: &str, headers: &[(&'static str, &str)]) -> (Client, Response) {
    let mut request = format!("ws://{}/app{path}", site.address()).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    tungstenite::client(request, connect(site)).unwrap()
}

fn open(site: &Site, path: &str) -> Client {
    opened(site, path, &[]).0
}

/// The answer to a client that was not let in: its status and body.
fn refused(site: &Site, path: &str) -> (u16, String) {
    let url = format!("ws://{}/app{path}", site.address());
    match tungstenite::client(url, connect(site)) {
        Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => {
            let body = response.body().clone().unwrap_or_default();
            (response.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
        }
        other => panic!("{path}: {other:?}"),
    }
}

fn text(client: &mut Client) -> String {
    let message = client.read().unwrap();
    assert!(message.is_text(), "{message:?} came, and no text");
    message.to_text().unwrap().to_owned()
}

/// Reads to the close, and past it to the connection's end.
fn closed(client: &mut Client) -> (u16, String) {
    let frame = loop {
        match client.read() {
            Ok(Message::Close(frame)) => break frame,
            Ok(_) => {}
            Err(error) => panic!("no close came: {error}"),
        }
    };
    assert!(matches!(client.read(), Err(Error::ConnectionClosed)), "more came behind the close");
    frame.map_or((1005, String::new()), |frame| (frame.code.into(), frame.reason.to_string()))
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.trim_end_matches(';').parse().unwrap()).unwrap()
}

/// What the app has noted, when it has.
fn noted(world: &World, name: &str) -> String {
    let path = world.path("work").join(name);
    wait::until(name, || std::fs::read_to_string(&path).ok())
}

fn forget(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

fn kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn messages_of_every_size_come_back_as_they_were() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        let (mut client, response) =
            opened(&site, "/echo", &[("sec-websocket-protocol", "one, two")]);
        let headers = response.headers();
        assert_eq!(headers["sec-websocket-protocol"], "two");
        assert_eq!(headers["upgrade"], "websocket");
        assert_eq!(headers.get_all("set-cookie").iter().count(), 2);
        let mib = 1 << 20;
        for size in [0, 1, 125, 126, 65_535, 65_536, mib - 2, mib - 1, mib, 5 * mib, 16 * mib] {
            let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
            client.send(Message::binary(bytes.clone())).unwrap();
            let mut back = client.read().unwrap();
            assert!(back.is_binary() && back.into_data() == bytes, "{size} bytes");
            // Of four bytes each: where a message is cut, a letter may be.
            let letters = "\u{1f980}".repeat(size / 4);
            client.send(Message::text(letters.clone())).unwrap();
            back = client.read().unwrap();
            assert!(back.is_text() && back.into_data() == letters.as_bytes(), "{size} in text");
        }
        // In pieces, with a ping between them.
        let piece = |text: &'static str, kind, last| {
            Message::Frame(Frame::message(text.as_bytes(), OpCode::Data(kind), last))
        };
        client.send(piece("a", Data::Text, false)).unwrap();
        client.send(Message::Ping("here?".into())).unwrap();
        client.send(piece("b", Data::Continue, false)).unwrap();
        client.send(piece("c", Data::Continue, true)).unwrap();
        assert_eq!(client.read().unwrap(), Message::Pong("here?".into()));
        assert_eq!(text(&mut client), "abc");
        client.close(None).unwrap();
        assert_eq!(closed(&mut client).0, 1005);
        assert_eq!(noted(world, "gone"), "1005 ");
        assert_eq!(site.get("/app/").text(), "here", "its worker is free");
        let log = String::from_utf8(site.stop().out).unwrap();
        assert!(log.contains("\"GET /app/echo HTTP/1.1\" 101 0"), "{log}");
        let outcomes = world.records(2).into_iter().map(|one| one["outcome"]["kind"].clone());
        assert!(outcomes.into_iter().all(|outcome| outcome == "answered"));
    });
}

#[test]
fn an_app_finds_its_prefix_and_what_the_client_asked_for() {
    let world = World::new();
    let site = serve(&world, "prefork");
    let protocols = [("sec-websocket-protocol", "one, two"), ("origin", "http://elsewhere.test")];
    let (mut client, _) = opened(&site, "/scope?a=%20b", &protocols);
    let scope = text(&mut client);
    for part in [
        "('path', '/app/scope')",
        "('query_string', b'a=%20b')",
        "('raw_path', b'/app/scope')",
        "('root_path', '/app')",
        "('scheme', 'ws')",
        "('subprotocols', ['one', 'two'])",
        "('type', 'websocket')",
        "(b'origin', b'http://elsewhere.test')",
    ] {
        assert!(scope.contains(part), "{part} is not in {scope}");
    }
    site.stop();
}

#[test]
fn an_app_that_does_not_accept_answers_as_it_says() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        assert_eq!(refused(&site, "/refuse").0, 403, "{isolation}");
        let head = "GET /app/answer HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\n\
                    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let answer = response(&site.raw(head.as_bytes()));
        assert_eq!(answer.status, 418, "{isolation}");
        assert!(answer.text().ends_with("a pot\r\n7\r\n of tea\r\n0\r\n\r\n"), "{isolation}");
        let (status, body) = refused(&site, "/early");
        assert!(status == 500 && !body.contains("secret"), "{isolation}: {status} {body}");
        assert_eq!(refused(&site, "/neither").0, 500, "{isolation}");
        assert_eq!(site.get("/app/").text(), "here");
        wait::until("the log", || site.err().contains("a secret of the app").then_some(()));
        site.stop();
    });
    let world = World::new();
    let site = serve(&world, "prefork");
    let protocol = ("sec-websocket-protocol", "one");
    let mut request = format!("ws://{}/app/other", site.address()).into_client_request().unwrap();
    request.headers_mut().insert(protocol.0, protocol.1.parse().unwrap());
    let answer = tungstenite::client(request, connect(&site)).unwrap_err();
    let tungstenite::HandshakeError::Failure(Error::Http(answer)) = answer else { panic!() };
    assert_eq!(answer.status(), 502);
    site.stop();
}

#[test]
fn a_bad_handshake_reaches_no_app() {
    let world = World::new();
    let site = serve(&world, "prefork");
    let head = |line: &str, headers: &[&str]| {
        let mut head = format!("{line}\r\nHost: a\r\n");
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        response(&site.raw(format!("{head}\r\n").as_bytes()))
    };
    let get = "GET /app/echo HTTP/1.1";
    let (upgrade, connection) = ("Upgrade: websocket", "Connection: Upgrade");
    let (version, key) =
        ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==");
    for (line, headers) in [
        (get, &[upgrade, version, key][..]),
        (get, &[upgrade, connection, version]),
        (get, &[upgrade, connection, version, "Sec-WebSocket-Key: short"]),
        (get, &[upgrade, connection, version, key, key]),
        ("PUT /app/echo HTTP/1.1", &[upgrade, connection, version, key]),
        ("GET /app/echo HTTP/1.0", &[upgrade, connection, version, key]),
        (get, &[upgrade, connection, version, key, "Content-Length: 1"]),
    ] {
        assert_eq!(head(line, headers).status, 400, "{line} {headers:?}");
    }
    let old = head(get, &[upgrade, connection, key, "Sec-WebSocket-Version: 8"]);
    assert_eq!((old.status, old.header("sec-websocket-version")), (426, Some("13")));
    // Where nothing speaks it, it is a request as any other.
    let close = "Connection: close, Upgrade";
    let plain = head("GET /plain/ HTTP/1.1", &[upgrade, close, version, key]);
    assert_eq!((plain.status, plain.text().as_str()), (200, "as any other"));
    site.stop();
    assert_eq!(world.records(1).len(), 1);
}

#[test]
fn who_does_not_read_is_waited_for_and_nothing_is_kept() {
    let world = World::new();
    let site = serve(&world, "prefork");
    let _ = site.get("/app/");
    let before = kib(site.pid(), "VmRSS:");
    let mut client = open(&site, "/flood");
    let mut left = 50 << 20;
    while left > 0 {
        left -= client.read().unwrap().len();
        // Slower than the app, which finds no room.
        std::thread::yield_now();
    }
    client.close(None).unwrap();
    closed(&mut client);

    let mut client = open(&site, "/deaf");
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let sender = std::thread::spawn(move || {
        for _ in 0..50 {
            client.send(Message::binary(vec![7; 1 << 20])).unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
        client
    });
    // As far as it gets.
    let (mut last, mut looks) = (usize::MAX, 0);
    wait::until("the client waits", || {
        let now = sent.load(Ordering::Relaxed);
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        (looks == 10).then_some(())
    });
    world.file("go", "");
    let mut client = sender.join().unwrap();
    assert_eq!(text(&mut client), "all");
    let grown = kib(site.pid(), "VmHWM:").saturating_sub(before);
    assert!(grown < 16 << 10, "the site has grown by {grown} KiB");
    client.close(None).unwrap();
    closed(&mut client);
    site.stop();
}

#[test]
fn an_app_may_stop_waiting_for_a_message_and_lose_none() {
    let world = World::new();
    let site = serve(&world, "prefork");
    let mut client = open(&site, "/impatient");
    assert_eq!(text(&mut client), "waiting");
    for size in [1, 70_000, 3 << 20, 7] {
        client.send(Message::text("a".repeat(size))).unwrap();
        assert_eq!(text(&mut client), size.to_string());
    }
    client.close(None).unwrap();
    closed(&mut client);
    site.stop();
}

#[test]
fn a_websocket_holds_its_worker_and_a_client_that_leaves_frees_it() {
    let world = World::new();
    let site = serve(&world, "prefork");
    let mut client = open(&site, "/pid");
    text(&mut client);
    let mut other = connect(&site);
    other.write_all(b"GET /app/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    client.send(Message::text("still here")).unwrap();
    assert_eq!(text(&mut client), "still here");
    client.close(None).unwrap();
    closed(&mut client);
    let mut answer = String::new();
    other.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("here"), "{answer}");
    site.stop();
}
