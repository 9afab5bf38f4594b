//! What `hob check` says of a server that is right, wrong, late, endless, or gone.

use hob_tests::{End, Outcome, Running, World, wait};
use rustix::process::Signal;
use serde_json::Value;

mod against;
mod earlier;
mod hurl;
mod reports;
mod tls;

/// A server with users: `/login` sets a cookie, `/secret` wants it or a password, and other paths
/// do what their name says. What it is asked goes to a file, a line each.
const SERVER: &str = r#"
import base64, http.server, os, sys, threading, time

GATE = threading.Event()

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        held = self.headers.get("Authorization"), self.headers.get("Cookie")
        with open(sys.argv[1] + ".log", "a") as log:
            log.write(f"{self.command} {self.path} {held[0]} {held[1]} {body}\n")
        path = self.path.split("?")[0]
        if path == "/login":
            if "hunter2" not in body:
                return self.answer(403, b"wrong password " + body.encode())
            return self.answer(204, Set_Cookie="session=alices-cookie; HttpOnly")
        if path == "/secret":
            right = "Basic " + base64.b64encode(b"support:hunter2").decode()
            if held[0] == right or "session=alices-cookie" in (held[1] or ""):
                return self.answer(200, b'{"entries": [1, 2], "name": "x"}', Content_Type="application/json")
            return self.answer(401, b"no " + str(held).encode())
        if path == "/endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                self.close_connection = True
            return
        if path == "/silent":
            GATE.wait()
        if path == "/gzip":
            return self.answer(200, b"\x1f\x8b bomb", Content_Encoding="gzip")
        if path == "/away":
            return self.answer(302, Location=f"http://localhost:{self.server.server_port}/secret")
        if path == "/here":
            return self.answer(302, Location="/secret")
        if path == "/items" and self.command == "POST":
            # What it makes is called otherwise each time.
            number = os.getpid() * 1000 + sum(1 for _ in open(sys.argv[1] + ".log"))
            made = b'{"id": %d, "token": "token-%d", "name": "a \\"b\\"", "more": "env:HOME"}'
            body = made % (number, number)
            return self.answer(201, body, Location=f"/items/{number}?a=b", Set_Cookie="cart=full")
        if path == "/echo":
            return self.answer(200, body.encode() + self.path.encode())
        if path == "/dies":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            self.close_connection = True
            return
        if path.startswith("/work/") and os.path.exists(sys.argv[1] + ".slow" + path[6:]):
            time.sleep(0.05)
        if path == "/script":
            return self.answer(500, b"<script>alert(1)</script>\x00\x1b")
        self.answer(200, b"fine")

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
server.daemon_threads = True
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
"#;

/// The server, until the test ends.
struct Server<'a> {
    world: &'a World,
    name: &'static str,
    _running: Running,
    base: String,
}

impl Server<'_> {
    fn start(world: &World) -> Server<'_> {
        Server::named(world, "port")
    }

    /// One of several; its name is that of its files.
    fn named<'a>(world: &'a World, name: &'static str) -> Server<'a> {
        world.file("server.py", SERVER);
        let running = world.run(&["python3", "server.py", name]).start();
        let port = wait::until("the server's port", || {
            std::fs::read_to_string(world.path("work").join(name)).ok()
        });
        Server { world, name, _running: running, base: format!("http://127.0.0.1:{port}") }
    }

    /// The requests that came.
    fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.world.path(format!("work/{}.log", self.name)))
            .unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn run(&self, file: &str, words: &[&str]) -> Outcome {
        self.world.file("site.check.toml", file);
        let all = [&["check", "site.check.toml", "--base", &self.base], words].concat();
        self.world.hob(&all).env("PASSWORD", "hunter2").go_long()
    }

    fn check(&self, file: &str, words: &[&str]) -> (End, Value) {
        let outcome = self.run(file, &[&["--json"], words].concat());
        let value: Value =
            serde_json::from_slice(&outcome.out).unwrap_or_else(|_| panic!("no JSON: {outcome:?}"));
        assert_eq!(value["schema"], "hob.check/1");
        (outcome.end, value)
    }
}

fn cell<'a>(found: &'a Value, check: &str, profile: &str) -> &'a Value {
    let cells = found["cells"].as_array().unwrap();
    let cell = cells.iter().find(|cell| cell["check"] == check && cell["profile"] == profile);
    cell.unwrap_or_else(|| panic!("no cell {check} as {profile}: {found}"))
}

fn causes(found: &Value, check: &str, profile: &str) -> String {
    cell(found, check, profile)["causes"].to_string()
}

const USERS: &str = r#"
times = 3
[profile.anonymous]
[profile.support]
basic = { user = "support", password = "env:PASSWORD" }
[profile.alice]
login = "login"

[check.login]
post = "/login"
form = { user = "alice", password = "env:PASSWORD" }
status = 204
[check."the secret"]
get = "/secret"
status = { anonymous = 401, else = 200 }
[check."the entries"]
get = "/secret"
profiles = ["support", "alice"]
header = { Content-Type = "contains json" }
json = { "$.entries" = "count >= 1", "$.name" = "x", "$.none" = "absent" }
contains = "entries"
"#;

#[test]
fn each_profile_is_asked_with_what_it_holds_and_sees_what_it_may() {
    let world = World::new();
    let server = Server::start(&world);
    let (end, found) = server.check(USERS, &[]);
    assert_eq!(end, End::Code(0), "{found}");
    let code = |check: &str, profile: &str| cell(&found, check, profile)["code"].clone();
    assert_eq!(
        ["anonymous", "support", "alice"].map(|who| code("the secret", who)),
        [401, 200, 200].map(Value::from)
    );
    assert_eq!(cell(&found, "the secret", "alice")["took_us"].as_array().unwrap().len(), 3);
    let logins = server.asked().iter().filter(|line| line.starts_with("POST /login")).count();
    assert_eq!(logins, 1, "a user logs in once");
    assert_eq!(server.asked().len(), 1 + 3 * 3 + 2 * 3);

    let outcome = server.run(USERS, &["--times", "1"]);
    let text = String::from_utf8_lossy(&outcome.out).into_owned();
    for part in ["3 checks as 3 profiles", "the secret", "401 ", "6 of 6 passed"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn what_is_wrong_is_told_with_its_cause_and_without_its_secret() {
    let world = World::new();
    let server = Server::start(&world);
    let file = r#"
[profile.support]
basic = { user = "support", password = "env:PASSWORD" }
[check.status]
get = "/secret"
status = 404
[check.json]
get = "/secret"
json = { "$.entries" = "count >= 5", "$.name" = "!= 'x'" }
[check.content]
get = "/"
contains = ["fine", "splendid"]
[check.sent]
post = "/echo"
query = { token = "env:PASSWORD" }
body = { password = "env:PASSWORD" }
contains = "nothing of it"
[check.script]
get = "/script"
"#;
    let (end, found) = server.check(file, &[]);
    assert_eq!(end, End::Code(1), "{found}");
    for (check, cause) in [
        ("status", "status 200, expected 404"),
        ("json", "$.entries counts 2, expected >= 5"),
        ("json", "$.name is \\\"x\\\", expected != \\\"x\\\""),
        ("content", "does not contain `splendid`"),
        ("script", "status 500, expected 200 to 299"),
    ] {
        let said = causes(&found, check, "support");
        assert!(said.contains(cause), "{check}: {said}");
    }
    assert!(server.asked().iter().any(|line| line.contains("hunter2")), "it was sent");
    let answer = &cell(&found, "sent", "support")["answer"];
    assert_eq!(answer, "{\"password\":\"[env:PASSWORD]\"}/echo?token=[env:PASSWORD]");
    let curl = found["failures"][0]["curl"].as_str().unwrap();
    assert!(curl.contains("-u \"support:$PASSWORD\""), "{curl}");
    let outcome = server.run(file, &[]);
    for bytes in [&outcome.out, &outcome.err, &found.to_string().into_bytes()] {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains("hunter2") && !text.contains("c3VwcG9ydDpodW50ZXIy"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn bodies_and_waits_have_an_end() {
    let world = World::new();
    let server = Server::start(&world);
    let file = r#"
[check.endless]
get = "/endless"
[check.silent]
get = "/silent"
timeout = "200ms"
[check.gzip]
get = "/gzip"
contains = "bomb"
[check.dies]
get = "/dies"
[check.fine]
get = "/"
[check.gone]
get = "http://127.0.0.1:1/"
[check.late]
get = "/"
within = "1us"
"#;
    let (end, found) = server.check(file, &[]);
    assert_eq!(end, End::Code(1), "{found}");
    for (check, cause) in [
        ("endless", "longer than 8 MiB"),
        ("silent", "no whole answer within 200ms"),
        ("gzip", "encoded as gzip"),
        ("dies", "end of file"),
        ("gone", "cannot connect to 127.0.0.1:1"),
        ("late", "at most"),
    ] {
        let said = causes(&found, check, "anonymous");
        assert!(said.contains(cause), "{check}: {said}");
    }
    assert_eq!(cell(&found, "fine", "anonymous")["state"], "passed");
    assert_eq!(cell(&found, "late", "anonymous")["state"], "slow");
}

#[test]
fn credentials_stay_at_their_origin() {
    let world = World::new();
    let server = Server::start(&world);
    let file = r#"
[profile.support]
basic = { user = "support", password = "env:PASSWORD" }
headers = { X-Token = "env:PASSWORD" }
[profile.alice]
login = "login"
[check.login]
post = "/login"
form = { password = "env:PASSWORD" }
[check.stays]
get = "/here"
status = 302
[check.here]
get = "/here"
redirects = 1
[check.away]
get = "/away"
redirects = 1
status = 401
"#;
    let (end, found) = server.check(file, &[]);
    assert_eq!(end, End::Code(0), "{found}");
    let secrets = server.asked();
    let reached: Vec<_> = secrets.iter().filter(|line| line.starts_with("GET /secret")).collect();
    let with = reached.iter().filter(|line| !line.starts_with("GET /secret None None")).count();
    assert_eq!((reached.len(), with), (4, 2), "{reached:?}");
}

#[test]
fn a_profile_whose_login_failed_is_not_run_and_nothing_is_concluded() {
    let world = World::new();
    let server = Server::start(&world);
    let file = r#"
[profile.alice]
login = "login"
[profile.bob]
[check.login]
post = "/login"
form = { password = "wrong" }
[check.a]
get = "/"
[check.b]
get = "/"
after = ["a"]
"#;
    let (end, found) = server.check(file, &[]);
    assert_eq!(end, End::Code(3), "{found}");
    assert_eq!(cell(&found, "a", "alice")["state"], "not-run");
    assert!(causes(&found, "a", "alice").contains("`login` failed"), "{found}");
    assert!(causes(&found, "b", "alice").contains("`a` was not run"), "{found}");
    assert_eq!(cell(&found, "b", "bob")["state"], "passed");
    let (end, found) = server.check(file, &["--profile", "bob", "--only", "b"]);
    assert_eq!(end, End::Code(0), "{found}");
    assert_eq!(found["cells"].as_array().unwrap().len(), 2, "and what it waits for: {found}");
    let (end, _) = server.check(file, &["--only", "nothing like it"]);
    assert_eq!(end, End::Code(1), "no sample is no success");
}

#[test]
fn a_file_that_is_wrong_is_refused_before_anything_is_asked() {
    let world = World::new();
    let server = Server::start(&world);
    for (file, part) in [
        ("[check.a]\ngett = '/'\n", "line 2: unknown key `gett`"),
        ("[check.a]\ngett = '/'\n", "did you mean `get`?"),
        ("[check.a]\nget = '/'\n[check.a]\nget = '/'\n", "line 3: duplicate key"),
        (
            "[check.a]\nget = '/'\nafter = ['b']\n[check.b]\nget = '/'\nafter = ['a']\n",
            "checks wait for one another: `a` after `b` after `a`",
        ),
        (
            "[check.a]\nget = '/'\nafter = ['bb']\n[check.b]\nget = '/'\n",
            "no check `bb`; did you mean `b`?",
        ),
        ("[check.a]\nget = '/'\nprofiles = ['x']\n", "no profile `x`"),
        (
            "[check.a]\nget = '/'\nheaders = { A = 'env:NOT_SET' }\n",
            "not set in the environment: NOT_SET",
        ),
        ("[check.a]\nget = 'gopher://h/'\n", "no scheme of the web"),
        ("[check.a]\nget = '/'\njson = { '$[' = 1 }\n", "json `$[`"),
        ("[check.a]\n", "does nothing"),
        ("[check.a]\nget = '/'\nrun = ['true']\n", "does two things"),
        ("", "holds no check"),
    ] {
        let outcome = server.run(file, &[]);
        let said = String::from_utf8_lossy(&outcome.err).into_owned();
        assert_eq!(outcome.end, End::Code(2), "{file}: {said}");
        assert!(said.contains(part), "{file}: {said}");
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[test]
fn a_command_is_a_check_too() {
    let world = World::started();
    let server = Server::start(&world);
    world.file("says.py", "import os, sys\nprint('{\"who\": \"' + os.environ['WHO'] + '\"}')\nsys.exit(int(sys.argv[1]))\n");
    world.file("floods.py", "while True: print('x' * 65536)\n");
    let file = r#"
[profile.alice]
env = { WHO = "alice" }
[check.says]
run = ["python3", "says.py", "3"]
exit = 3
json = { "$.who" = "alice" }
[check.fails]
run = ["python3", "says.py", "4"]
[check.floods]
run = ["python3", "floods.py"]
[check.waits]
run = ["sleep", "1000"]
timeout = "300ms"
"#;
    let (end, found) = server.check(file, &[]);
    assert_eq!(end, End::Code(1), "{found}");
    assert_eq!(cell(&found, "says", "alice")["state"], "passed", "{found}");
    for (check, cause) in [
        ("fails", "exit code 4, expected 0"),
        ("floods", "prints more than 8 MiB"),
        ("waits", "has not ended within 300ms"),
    ] {
        let said = causes(&found, check, "alice");
        assert!(said.contains(cause), "{check}: {said}");
    }
}

#[test]
fn a_run_that_is_stopped_tells_what_ran() {
    let world = World::new();
    let server = Server::start(&world);
    let file = "jobs = 1\n[check.a]\nget = '/'\n[check.b]\nget = '/silent'\nafter = ['a']\n[check.c]\nget = '/'\nafter = ['b']\n";
    world.file("site.check.toml", file);
    let words = ["check", "--json", "site.check.toml", "--base", &server.base];
    let running = world.hob(&words).start();
    wait::until("the request without an answer", || {
        server.asked().iter().any(|line| line.starts_with("GET /silent")).then_some(())
    });
    running.signal(Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(2));
    let found: Value = serde_json::from_slice(&outcome.out).unwrap();
    assert_eq!(found["interrupted"], true);
    assert_eq!(cell(&found, "a", "anonymous")["state"], "passed");
    assert!(causes(&found, "b", "anonymous").contains("interrupted"), "{found}");
    assert!(causes(&found, "c", "anonymous").contains("interrupted"), "{found}");
}

#[test]
fn a_hundred_thousand_checks_are_a_file_like_any_other() {
    let world = World::new();
    let server = Server::start(&world);
    let mut file = String::new();
    for at in 0..100_000 {
        file += &format!("[check.c{at}]\nget = '/'\n");
    }
    let (end, found) = server.check(&file, &["--only", "c99999"]);
    assert_eq!(end, End::Code(0), "{}", found["failures"]);
    assert_eq!(server.asked().len(), 1);
}
