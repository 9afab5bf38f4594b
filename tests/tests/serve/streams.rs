//! Answers in pieces, and files as answers: what a client sees of them and when, and what becomes of
//! an app whose client, or of a client whose app, does not stay to the end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use hob_tests::site::Site;
use hob_tests::{World, wait};
use rustix::process::{Pid, Signal};

const WSGI: &str = r#"
import os, time

def wait(name):
    while not os.path.exists(name):
        time.sleep(0.002)

class Body:
    def __init__(self, parts):
        self.parts = parts
    def __iter__(self):
        return self.parts
    def close(self):
        open("closed", "a").close()

def parts(path):
    if path == "/two":
        yield b"first %d;" % os.getpid()
        wait("go")
        yield b"second"
    elif path == "/long":
        for _ in range(800):
            yield bytes(65536)
    elif path == "/endless":
        while True:
            yield b"more %d;" % os.getpid()
            time.sleep(0.002)
    elif path == "/raise":
        yield b"some;"
        wait("go")
        raise RuntimeError("a secret of the app")
    elif path == "/length":
        yield b"1234"
        yield b"56"

def application(environ, start):
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    headers = [("Content-Length", query)] if query else []
    status = {"/204": "204 No Content", "/304": "304 Not Modified"}.get(path, "200 OK")
    write = start(status, headers)
    if path == "/write":
        write(b"first %d;" % os.getpid())
        wait("go")
        return [b"second"]
    if path == "/file":
        file = open("file", "rb")
        file.read(1)
        return environ["wsgi.file_wrapper"](file)
    if path == "/":
        return [b"here"]
    if path in ("/204", "/304"):
        return Body(iter([b"a", b"b"]))
    return Body(parts(path))
"#;

const ASGI: &str = r#"
import asyncio, os

async def wait(name):
    while not os.path.exists(name):
        await asyncio.sleep(0.002)

async def application(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("no lifespan")
    path, query = scope["path"][len(scope["root_path"]):], scope["query_string"]
    status = {"/204": 204, "/304": 304}.get(path, 200)
    headers = [(b"content-length", query)] if query else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    async def body(data, more=True):
        await send({"type": "http.response.body", "body": data, "more_body": more})
    try:
        if path == "/two":
            await body(b"first %d;" % os.getpid())
            await wait("go")
            await body(b"second", False)
        elif path == "/long":
            for _ in range(800):
                await body(bytes(65536))
            await body(b"", False)
        elif path == "/endless":
            while True:
                await body(b"more %d;" % os.getpid())
                await asyncio.sleep(0.002)
        elif path == "/behind":
            await body(b"here", False)
            await wait("go")
        elif path == "/told":
            await body(b"more %d;" % os.getpid())
            await receive()
            event = await receive()
            open(event["type"], "w").close()
        elif path == "/raise":
            await body(b"some;")
            await wait("go")
            raise RuntimeError("a secret of the app")
        elif path == "/length":
            await body(b"1234")
            await body(b"56", False)
        elif path == "/file":
            await send({"type": "http.response.pathsend", "path": os.path.abspath("file")})
        elif path in ("/204", "/304"):
            await body(b"a")
            await body(b"b", False)
        else:
            await body(b"here", False)
    finally:
        open("closed", "a").close()
"#;

const RACK: &str = r##"
class Body
  def initialize(path) = @path = path
  def close = File.write("closed", "", mode: "a")
  def wait(name) = (sleep 0.002 until File.exist?(name))
  def each
    case @path
    when "/two"
      yield "first #{Process.pid};"
      wait("go")
      yield "second"
    when "/long" then 800.times { yield "\0" * 65_536 }
    when "/endless"
      loop do
        yield "more #{Process.pid};"
        sleep 0.002
      end
    when "/raise"
      yield "some;"
      wait("go")
      raise "a secret of the app"
    when "/length"
      yield "1234"
      yield "56"
    else
      yield "a"
      yield "b"
    end
  end
end

class OfFile < Body
  def to_path = File.expand_path("file")
end

run lambda { |env|
  path, query = env["PATH_INFO"], env["QUERY_STRING"]
  headers = query.empty? ? {} : { "content-length" => query }
  case path
  when "/" then [200, headers, ["here"]]
  when "/204", "/304" then [path[1..].to_i, headers, Body.new(path)]
  when "/file" then [200, headers, OfFile.new(path)]
  when "/write"
    body = lambda do |stream|
      stream << "first #{Process.pid};"
      Body.new(path).wait("go")
      stream.write("second")
      stream.close
    end
    [200, headers, body]
  else [200, headers, Body.new(path)]
  end
}
"##;

/// One kind of app under one isolation, with one worker at most where it goes on.
fn serve(world: &World, (interface, isolation): (&str, &str), more: &str) -> Site {
    let (file, text) = match interface {
        "wsgi" => ("wsgi.py", WSGI),
        "asgi" => ("asgi.py", ASGI),
        _ => ("config.ru", RACK),
    };
    world.file(file, text);
    world.file("file", "xof the file\n".repeat(100_000));
    let workers = if isolation == "prefork" { "workers = 1" } else { "" };
    world.file(
        "hob.toml",
        format!("{more}\n[mount.\"/app\"]\n{interface} = \"{file}\"\nisolation = \"{isolation}\"\n{workers}\n"),
    );
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

/// The same app, of which its mount says more.
fn serve_again(world: &World, more: &str) -> Site {
    let toml = std::fs::read_to_string(world.path("work/hob.toml")).unwrap();
    world.file("hob.toml", format!("{toml}{more}\n"));
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

/// Does the same for each kind of app under two isolations.
fn each(test: impl Fn(&World, (&str, &str))) {
    for interface in ["wsgi", "asgi", "rack"] {
        for isolation in ["fork", "prefork"] {
            test(&World::new(), (interface, isolation));
        }
    }
}

/// A client that reads as far as it is told.
struct Client {
    stream: TcpStream,
    come: Vec<u8>,
}

impl Client {
    fn ask(site: &Site, line: &str) -> Client {
        let mut stream = TcpStream::connect(site.address()).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let head = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        Client { stream, come: Vec::new() }
    }

    /// Reads until this has come; what has come then.
    fn until(&mut self, word: &str) -> String {
        let mut piece = [0; 4096];
        while !self.text().contains(word) {
            let count = read(&mut self.stream, &mut piece);
            assert!(count > 0, "{word} never came: {}", self.text());
            self.come.extend_from_slice(&piece[..count]);
        }
        self.text()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.come).into_owned()
    }

    /// Reads to the end of the connection, however that ends.
    fn rest(mut self) -> String {
        let _ = self.stream.read_to_end(&mut self.come);
        self.text()
    }
}

/// Reads what has come, once; 0 at the end.
fn read(stream: &mut TcpStream, piece: &mut [u8]) -> usize {
    loop {
        match stream.read(piece) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.unwrap(),
        }
    }
}

/// The number behind the first `word`, as an app that says its process has it.
fn pid(text: &str, word: &str) -> i32 {
    let from = text.split(word).nth(1).unwrap();
    from.split(';').next().unwrap().trim().parse().unwrap()
}

fn await_file(path: &Path) {
    wait::until(&format!("{}", path.display()), || path.exists().then_some(()));
}

#[test]
fn a_piece_is_there_before_the_app_makes_the_next() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        for path in if kind.0 == "asgi" { &["/two"][..] } else { &["/two", "/write"] } {
            let mut client = Client::ask(&site, &format!("GET /app{path}"));
            let head = client.until(";");
            assert!(head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
            assert!(!head.contains("second"), "{head}");
            world.file("go", "");
            let whole = client.rest();
            assert!(whole.ends_with("6\r\nsecond\r\n0\r\n\r\n"), "{kind:?} {path}: {whole}");
            std::fs::remove_file(world.path("work/go")).unwrap();
        }
        let log = String::from_utf8(site.stop().out).unwrap();
        assert!(log.contains("\"GET /app/two HTTP/1.1\" 200 1"), "{log}");
    });
}

fn kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_long_answer_waits_for_its_reader_and_not_in_memory() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        let _ = site.get("/app/");
        let before = kib(site.pid(), "VmRSS:");
        let mut client = Client::ask(&site, "GET /app/long?52428800");
        client.until("\r\n\r\n");
        let (mut left, mut piece) = (50 << 20, vec![0; 256 << 10]);
        left -= client.come.len() - client.text().find("\r\n\r\n").unwrap() - 4;
        while left > 0 {
            let count = read(&mut client.stream, &mut piece);
            assert!(count > 0, "{kind:?}: {left} bytes are missing");
            left -= count;
            // Slower than the app, which finds no room.
            std::thread::yield_now();
        }
        assert_eq!(read(&mut client.stream, &mut piece), 0);
        let grown = kib(site.pid(), "VmHWM:").saturating_sub(before);
        assert!(grown < 16 << 10, "{kind:?}: the site has grown by {grown} KiB");
        site.stop();
    });
}

#[test]
fn an_app_whose_client_leaves_is_closed_and_its_worker_is_free_again() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        let mut client = Client::ask(&site, "GET /app/endless");
        client.until(";");
        drop(client);
        await_file(&world.path("work/closed"));
        assert_eq!(site.get("/app/").text(), "here", "{kind:?}");
        site.stop();
        let outcomes: Vec<_> =
            world.records(2).into_iter().map(|one| one["outcome"]["kind"].clone()).collect();
        assert_eq!(outcomes, ["cancelled", "answered"], "{kind:?}");
    });
}

#[test]
fn an_asgi_app_is_told_that_its_client_has_left() {
    let world = World::new();
    let site = serve(&world, ("asgi", "prefork"), "");
    let mut client = Client::ask(&site, "GET /app/told");
    client.until(";");
    drop(client);
    await_file(&world.path("work/http.disconnect"));
    assert_eq!(site.get("/app/").text(), "here");
    site.stop();
}

#[test]
fn a_client_does_not_wait_for_what_an_asgi_app_does_behind_its_answer() {
    let world = World::new();
    let site = serve(&world, ("asgi", "prefork"), "");
    let whole = Client::ask(&site, "GET /app/behind").rest();
    assert!(whole.ends_with("4\r\nhere\r\n0\r\n\r\n"), "{whole}");
    assert!(!world.path("work/closed").exists());
    world.file("go", "");
    await_file(&world.path("work/closed"));
    assert_eq!(site.get("/app/").text(), "here");
    site.stop();
    let outcomes = world.records(2).into_iter().map(|one| one["outcome"]["kind"].clone());
    assert!(outcomes.into_iter().all(|outcome| outcome == "answered"));
}

#[test]
fn a_worker_that_ends_in_the_middle_cuts_its_client_off_and_is_told_as_lost() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        let mut client = Client::ask(&site, "GET /app/two");
        let worker = Pid::from_raw(pid(&client.until(";"), "first ")).unwrap();
        rustix::process::kill_process(worker, Signal::KILL).unwrap();
        let whole = client.rest();
        assert!(!whole.ends_with("0\r\n\r\n"), "{kind:?}: {whole}");
        assert_eq!(site.get("/app/").text(), "here");
        site.stop();
        assert_eq!(world.records(2)[0]["outcome"]["kind"], "lost", "{kind:?}");
    });
}

#[test]
fn an_app_that_raises_in_the_middle_cuts_its_client_off() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        let mut client = Client::ask(&site, "GET /app/raise");
        client.until("some;");
        world.file("go", "");
        let whole = client.rest();
        assert!(whole.contains("some;") && !whole.ends_with("0\r\n\r\n"), "{kind:?}: {whole}");
        await_file(&world.path("work/closed"));
        assert_eq!(site.get("/app/").text(), "here");
        wait::until("the log", || site.err().contains("a secret of the app").then_some(()));
        site.stop();
        assert!(!whole.contains("secret"), "{kind:?}: {whole}");
    });
}

#[test]
fn a_body_that_has_not_the_length_it_said_is_never_whole() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        for (length, whole) in [(6, true), (5, false), (4, false), (9, false)] {
            let text = Client::ask(&site, &format!("GET /app/length?{length}")).rest();
            let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
            let is_whole = head.starts_with("HTTP/1.1 200") && body.len() == length;
            assert_eq!(is_whole, whole, "{kind:?} {length}: {text}");
        }
        assert_eq!(site.get("/app/").text(), "here");
        site.stop();
    });
}

#[test]
fn answers_that_have_no_body_are_sent_none() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        for line in ["HEAD /app/length", "HEAD /app/endless", "GET /app/204", "GET /app/304"] {
            let text = Client::ask(&site, line).rest();
            assert!(text.ends_with("\r\n\r\n"), "{kind:?} {line}: {text}");
            assert!(!text.contains("chunked"), "{kind:?} {line}: {text}");
        }
        assert_eq!(site.get("/app/").text(), "here");
        site.stop();
    });
}

#[test]
fn a_file_holds_no_worker_while_its_client_reads() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        let mut client = Client::ask(&site, "GET /app/file");
        client.until("\r\n\r\n");
        // More than sockets hold is not sent yet.
        assert_eq!(site.get("/app/").text(), "here");
        let whole = client.rest();
        let body = whole.split_once("\r\n\r\n").unwrap().1;
        // What was read of a WSGI app's file is not sent again.
        let want = "xof the file\n".repeat(100_000)[usize::from(kind.0 == "wsgi")..].to_owned();
        assert!(body == want, "{kind:?}: {} bytes, not {}", body.len(), want.len());
        let head = site.ask("HEAD", "/app/file", "", b"");
        assert_eq!((head.status, head.body.len()), (200, 0), "{kind:?}");
        site.stop();
    });
}

#[test]
fn a_slow_client_holds_no_worker_and_gets_all_of_its_answer() {
    each(|world, kind| {
        let site = serve(world, kind, "");
        let mut client = Client::ask(&site, "GET /app/long?52428800");
        client.until("\r\n\r\n");
        // The app has made all of it, though its client has read the head.
        await_file(&world.path("work/closed"));
        assert_eq!(site.get("/app/").text(), "here", "{kind:?}");
        let whole = client.rest();
        let body = whole.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body.len(), 50 << 20, "{kind:?}");
        assert!(body.bytes().all(|byte| byte == 0));
        assert_eq!(kept(site.pid()), 0, "{kind:?}");
        site.stop();
    });
}

#[test]
fn an_app_waits_for_a_client_where_more_waits_than_may() {
    each(|world, kind| {
        let _ = serve(world, kind, "").stop();
        let site = serve_again(world, "limits = { answer = \"1MiB\" }");
        let mut client = Client::ask(&site, "GET /app/long?52428800");
        client.until("\r\n\r\n");
        let mut sent = 0;
        wait::until("nothing more is made", || {
            let before = std::mem::replace(&mut sent, kept(site.pid()));
            (sent > 0 && sent == before).then_some(())
        });
        assert!(sent < 3 << 20, "{kind:?}: {sent}");
        assert!(!world.path("work/closed").exists(), "{kind:?}");
        let whole = client.rest();
        assert_eq!(whole.split_once("\r\n\r\n").unwrap().1.len(), 50 << 20, "{kind:?}");
        site.stop();
    });
}

/// Bytes in large files without a name that a process has open; small ones are the loop's.
fn kept(pid: u32) -> u64 {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let files = open.filter_map(|one| {
        let path = one.ok()?.path();
        let name = std::fs::read_link(&path).ok()?;
        name.to_string_lossy().ends_with(" (deleted)").then_some(path)
    });
    files
        .filter_map(|file| Some(std::fs::metadata(file).ok()?.len()))
        .filter(|bytes| *bytes > 64 << 10)
        .sum()
}

#[test]
fn a_client_that_reads_nothing_is_cut_off_and_its_app_is_closed() {
    each(|world, kind| {
        let _ = serve(world, kind, "[serve]\ntimeouts = { write = \"200ms\" }").stop();
        let site = serve_again(world, "limits = { answer = \"1MiB\" }");
        let client = Client::ask(&site, "GET /app/long");
        await_file(&world.path("work/closed"));
        assert_eq!(site.get("/app/").text(), "here", "{kind:?}");
        let _ = client.rest();
        let shown = world.hob(&["serve", "status"]).go().text();
        assert!(shown.contains("limits reached: timeouts.write 1"), "{kind:?}: {shown}");
        site.stop();
    });
}

#[test]
fn an_app_that_makes_no_more_of_its_answer_is_ended() {
    each(|world, (interface, isolation)| {
        let _ = serve(world, (interface, isolation), "").stop();
        let site = serve_again(world, "timeout = \"2s\"");
        let whole = Client::ask(&site, "GET /app/two").rest();
        assert!(whole.contains("first ") && !whole.contains("second"), "{whole}");
        assert!(!whole.ends_with("0\r\n\r\n"), "{whole}");
        assert_eq!(site.get("/app/").text(), "here", "{interface} {isolation}");
        let told = String::from_utf8(site.stop().err).unwrap();
        assert!(told.contains("it made no more of its answer in time"), "{told}");
    });
}
