//! Who may see what: asked of a program or an address, kept for seconds, and refused in doubt.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hob_tests::World;
use hob_tests::site::secure::Secure;
use hob_tests::site::{Response, Site};
use hob_tests::wait;

use super::{commit, git, serve};

/// Answers as the file `answer` beside it says, after a line in the file `asked`.
const PROGRAM: &str = r#"
import json, os, time
HERE = os.path.dirname(os.path.abspath(__file__))
def handle(payload, message):
    with open(os.path.join(HERE, "asked"), "a") as asked:
        asked.write(payload.decode() + "\n")
    with open(os.path.join(HERE, "answer.py")) as file:
        return eval(file.read(), {"q": json.loads(payload), "os": os, "time": time, "HERE": HERE})
"#;

/// A world with two projects, whose rights the program says.
fn world(answer: &str, keys: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(world.path("work/srv")).unwrap();
    world.file(
        "hob.toml",
        format!(
            "[serve]\nlog = \"json\"\n[program.rights]\nhandler = \"rights.py:handle\"\n\
             [mount.\"/git\"]\ngit = \"srv\"\n[mount.\"/git\".rights]\nask = \"rights\"\n{keys}\
             [mount.\"/files\"]\nstatic = \"public\"\nrights = \"rights\"\n"
        ),
    );
    world.file("public/page", "a page");
    world.file("rights.py", PROGRAM);
    world.file("answer.py", answer);
    world.file("asked", "");
    commit(&world, "acme", &[("f", b"of acme")]);
    commit(&world, "shop", &[("f", b"of shop")]);
    world
}

fn asked(world: &World) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(world.path("work/asked")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn get(site: &Site, user: &str, target: &str) -> Response {
    let field = if user.is_empty() { String::new() } else { format!("Authorization: {user}\r\n") };
    site.ask("GET", target, &field, b"")
}

/// All of an answer but its date.
fn whole(response: &Response) -> (String, Vec<u8>) {
    let lines = response.head.lines().filter(|line| !line.starts_with("date:"));
    (lines.collect::<Vec<_>>().join("\n"), response.body.clone())
}

const ACME: &str = "/git/blob/acme/main?path=f";

#[test]
fn who_may_sees_it_and_to_others_it_is_not_there() {
    let world = world("q['user'] == 'alice' and q['project'] == 'acme'", "");
    let site = serve(&world);
    let seen = get(&site, "alice", ACME);
    assert_eq!((seen.status, seen.text().as_str()), (200, "of acme"));
    assert_eq!(seen.header("cache-control"), Some("private, no-cache"));
    let absent = get(&site, "bob", "/git/blob/absent/main?path=f");
    assert_eq!(absent.status, 404);
    for denied in [
        get(&site, "bob", ACME),
        get(&site, "", ACME),
        get(&site, "", "/git/blob/shop/main?path=f"),
    ] {
        assert_eq!(whole(&denied), whole(&absent));
    }
    assert_eq!(get(&site, "alice", "/git/blob/shop/main?path=f").status, 404);
    let questions = asked(&world);
    let first = serde_json::json!({
        "user": "alice", "verb": "read", "project": "acme", "path": "f", "method": "GET"
    });
    assert_eq!(questions[0], first);
    assert!(questions.iter().any(|question| question["user"].is_null()), "nobody is a user");
    // What was asked is kept, for each user alone.
    assert_eq!(get(&site, "alice", ACME).status, 200);
    let before = asked(&world).len();
    for _ in 0..5 {
        assert_eq!(get(&site, "alice", ACME).status, 200);
    }
    assert_eq!(asked(&world).len(), before);
    let outcome = site.stop();
    let log = String::from_utf8(outcome.out).unwrap() + &String::from_utf8_lossy(&outcome.err);
    assert!(!log.contains("alice") && !log.contains("bob"), "no credential is told: {log}");
    assert!(log.contains("\"rights\":\"asked\"") && log.contains("\"rights\":\"kept\""), "{log}");
}

#[test]
fn what_is_forgotten_is_asked_again_at_once() {
    let world = world("os.path.exists(os.path.join(HERE, 'may'))", "");
    world.file("may", "");
    let site = serve(&world);
    assert_eq!((get(&site, "alice", ACME).status, get(&site, "bob", ACME).status), (200, 200));
    std::fs::remove_file(world.path("work/may")).unwrap();
    let forgotten = world.hob(&["serve", "rights", "forget", "alice"]).go();
    forgotten.succeeded();
    assert!(forgotten.text().contains("this user are forgotten, at 2 mounts"), "{forgotten:?}");
    assert_eq!((get(&site, "alice", ACME).status, get(&site, "bob", ACME).status), (404, 200));
    world.hob(&["serve", "rights", "forget"]).go().succeeded();
    assert_eq!(get(&site, "bob", ACME).status, 404);
    // It cannot be asked of what others reach.
    assert_eq!(site.ask("POST", "/rights/forget", "", b"").status, 404);
    site.stop();
    let none = world.hob(&["serve", "rights", "forget"]).go();
    assert!(none.complaint().contains("no such site runs"), "{none:?}");
}

/// What the new code has not been asked yet is asked of it; what the old one said has its end.
#[test]
fn edited_meanwhile_the_new_code_is_asked() {
    let world = world("True", "");
    let site = serve(&world);
    assert_eq!(get(&site, "alice", ACME).status, 200);
    world.file("rights.py", "def handle(payload, message):\n    return False\n");
    assert_eq!(get(&site, "bob", ACME).status, 404);
    let denied = wait::until("the kept answer's end", || {
        Some(get(&site, "alice", ACME)).filter(|answer| answer.status != 200)
    });
    assert_eq!(denied.status, 404);
    site.stop();
}

/// A slow load stands for a busy machine: it is no slow answer, also where the worker is there with
/// too little left of the question's time.
#[test]
fn a_question_waits_for_its_program_to_be_loaded_for_longer_than_for_its_answer() {
    for load in ["0.5", "1.5"] {
        let world = world("time.sleep(0.7) or True", "within = \"1s\"\n");
        // sleeps: it is the length of this load that no answer may take.
        world.file("rights.py", format!("import time\ntime.sleep({load})\n{PROGRAM}"));
        let site = serve(&world);
        assert_eq!(get(&site, "alice", ACME).status, 200, "{load}: {}", site.err());
        world.file("answer.py", "time.sleep(600)");
        let slow = get(&site, "bob", ACME);
        assert!(slow.status == 503 && slow.text().contains("rights-failed"), "{slow:?}");
        site.stop();
    }
}

#[test]
fn in_doubt_it_is_refused_and_nothing_is_kept() {
    let world = world("True", "within = \"500ms\"\n");
    let site = serve(&world);
    for answer in [
        "1 / 0",
        "'yes'",
        "1",
        "None",
        "{'allow': ['everything']}",
        "'x' * 1000000",
        "time.sleep(600)",
        "os._exit(1)",
    ] {
        world.file("answer.py", answer);
        let refused = get(&site, answer, ACME);
        let text = refused.text();
        assert_eq!(
            (refused.status, text.contains("rights-failed")),
            (503, true),
            "{answer}: {text}"
        );
        assert_eq!(refused.header("retry-after"), Some("1"), "{answer}");
        world.file("answer.py", "True");
        let allowed = wait::until("a worker that answers", || {
            Some(get(&site, answer, ACME)).filter(|answer| answer.status != 503)
        });
        assert_eq!(allowed.status, 200, "{answer}: {}", site.err());
    }
    assert_eq!(site.ask("GET", ACME, "Authorization: a\r\nAuthorization: b\r\n", b"").status, 400);
    site.stop();
}

#[test]
fn all_that_a_user_may_do_is_one_answer() {
    // A no is kept from the moment at which it was asked for: not while a worker is loaded.
    let world = world("{'allow': ['read:shop', 'write:*']}", "keep_no = \"5s\"\n");
    let site = serve(&world);
    assert_eq!(get(&site, "bob", "/git/blob/shop/main?path=f").text(), "of shop");
    world.file("asked", "");
    let listing =
        get(&site, "alice", "/git/blobs?rev=main&path=f&project=shop&project=acme&project=gone");
    let text = listing.text();
    assert!(text.contains("of shop") && !text.contains("of acme"), "{text}");
    let line = |project: &str| {
        let line =
            text.lines().find(|line| line.contains(&format!("\"project\":\"{project}\""))).unwrap();
        line.replace(project, "PROJECT")
    };
    assert_eq!(line("acme"), line("gone"));
    assert_eq!(asked(&world).len(), 1, "the first answer says it of all");
    site.stop();
}

#[test]
fn many_who_wait_are_one_question() {
    let answer = "next(True for _ in iter(int, 1) if os.path.exists(os.path.join(HERE, 'go')) or time.sleep(0.01))";
    let world = world(answer, "within = \"5s\"\n");
    let site = serve(&world);
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..40).map(|_| scope.spawn(|| get(&site, "alice", ACME).status)).collect();
        wait::until("the question", || (!asked(&world).is_empty()).then_some(()));
        // Those who come now find it asked.
        let late: Vec<_> =
            (0..20).map(|_| scope.spawn(|| get(&site, "alice", ACME).status)).collect();
        wait::until("all who ask", || {
            let status: serde_json::Value =
                serde_json::from_str(&site.control(&world, "/status").text()).unwrap();
            (status["mounts"][1]["active"] == 60).then_some(())
        });
        world.file("go", "");
        for caller in callers.into_iter().chain(late) {
            assert_eq!(caller.join().unwrap(), 200);
        }
    });
    assert_eq!(asked(&world).len(), 1);
    site.stop();
}

#[test]
fn files_have_rights_by_their_path() {
    let world = world("q['user'] == 'alice' and q['path'] == '/page'", "");
    world.file("public/other", "another");
    let site = serve(&world);
    let page = get(&site, "alice", "/files/page");
    assert_eq!(page.text(), "a page");
    assert_eq!(page.header("cache-control"), Some("private, no-cache"));
    let other = get(&site, "alice", "/files/other");
    let absent = get(&site, "alice", "/files/absent");
    assert_eq!((other.status, whole(&other)), (404, whole(&absent)));
    assert_eq!(get(&site, "bob", "/files/page").status, 404);
    let question = &asked(&world)[0];
    assert!(question["project"].is_null() && question["path"] == "/page", "{question}");
    site.stop();
}

/// What one thing may be called by several names is asked for by one, so that a program that knows
/// that one cannot be passed by.
#[test]
fn another_spelling_is_the_same_question() {
    let world = world("q['project'] not in ('acme', 'shop') and q['path'] != '/page'", "");
    git(&world, "", &["clone", "--quiet", "--bare", "shop", "bare.git"]);
    std::fs::rename(world.path("work/srv/shop"), world.path("work/gone")).unwrap();
    std::fs::rename(world.path("work/srv/bare.git"), world.path("work/srv/shop.git")).unwrap();
    let site = serve(&world);
    for target in [
        "/git/blob/acme/main?path=f",
        "/git/blob/%61cme/main?path=f",
        "/git/blob/shop/main?path=f",
        "/git/blob/shop.git/main?path=f",
        "/git/blob/shop%2egit/main?path=f",
        "/files/page",
        "/files/%70age",
        "/files//page",
        "/files/x/../page",
        "/files/%70%61%67%65",
    ] {
        assert_eq!(get(&site, "alice", target).status, 404, "{target}: {:?}", asked(&world).last());
    }
    site.stop();
}

/// What was asked of an address, and what it answers: a status for each cookie.
struct Address {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
    status: Arc<AtomicUsize>,
}

fn address() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/auth", listener.local_addr().unwrap());
    let (heads, status) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(AtomicUsize::new(200)));
    let (of_heads, of_status) = (Arc::clone(&heads), Arc::clone(&status));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let status =
                if head.contains("cookie: bob") { 403 } else { of_status.load(Ordering::SeqCst) };
            of_heads.lock().unwrap().push(head);
            if status > 0 {
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nLocation: /in\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    Address { url, heads, status }
}

#[test]
fn an_address_is_asked_as_nginx_asks_it() {
    let address = address();
    let world = super::world(&format!("rights = {{ url = \"{}\" }}\n", address.url));
    commit(&world, "acme", &[("f", b"of acme")]);
    let site = serve(&world);
    let ask = |fields: &str| site.ask("GET", ACME, fields, b"").status;
    assert_eq!(ask("Cookie: alice\r\nX-Original-URI: /forged\r\n"), 200);
    let head = address.heads.lock().unwrap()[0].clone();
    for line in [
        "get /auth http/1.1",
        "cookie: alice",
        "x-original-method: get",
        "x-original-uri: /git/blob/acme/main?path=f",
    ] {
        assert!(head.contains(&format!("{line}\r\n")), "{line}: {head}");
    }
    assert!(!head.contains("forged"), "{head}");
    assert_eq!(ask("Cookie: alice\r\nRange: bytes=0-1\r\n"), 206, "it is kept");
    assert_eq!(address.heads.lock().unwrap().len(), 1);
    assert_eq!(ask("Cookie: bob\r\n"), 404);
    // Neither yes nor no: a redirection, an error, a connection that ends.
    for (number, status) in [302, 500, 0].into_iter().enumerate() {
        address.status.store(status, Ordering::SeqCst);
        assert_eq!(ask(&format!("Cookie: c{number}\r\n")), 503, "{status}");
    }
    address.status.store(204, Ordering::SeqCst);
    assert_eq!(ask("Cookie: c0\r\n"), 200);
    let err = String::from_utf8_lossy(&site.stop().err).into_owned();
    assert!(err.contains("answered 500") && !err.contains("alice"), "{err}");
}

#[test]
fn an_address_may_be_asked_by_tls() {
    let world = World::new();
    let server = Secure::start(&world);
    let url = format!("https://localhost:{}/auth", server.port);
    world.file(
        "hob.toml",
        format!("[mount.\"/git\"]\ngit = \"srv\"\nrights = {{ url = \"{url}\" }}\n"),
    );
    commit(&world, "acme", &[("f", b"of acme")]);
    world.hob(&["trust"]).go().succeeded();
    let run = || world.hob(&["serve", ".", "--listen", "0"]);
    let site = Site::start(&run().env("SSL_CERT_FILE", &server.certificate));
    let ask = |site: &Site, fields: &str| site.ask("GET", ACME, fields, b"").status;
    assert_eq!((ask(&site, "Cookie: alice\r\n"), ask(&site, "Cookie: bob\r\n")), (200, 404));
    site.stop();
    let site = Site::start(&run());
    assert_eq!(ask(&site, "Cookie: alice\r\n"), 503);
    assert!(site.err().contains("by no authority that is trusted here"), "{}", site.err());
    site.stop();
    server.end();
}

#[test]
fn rights_that_make_no_sense_serve_nothing() {
    for (keys, told) in [
        ("rights = \"absent\"\n", "there is no [program.absent]"),
        ("rights = { url = \"ftp://x\" }\n", "is no scheme of the web"),
        ("rights = { url = \"http://x\", user = \"peer\" }\n", "`user` is of `ask`"),
        ("rights = { keep = \"1s\" }\n", "say one of `ask` and `url`"),
    ] {
        let world = super::world(keys);
        let trusted = world.hob(&["trust", "."]).go();
        let served = world.hob(&["serve", ".", "--listen", "0"]).go();
        let text = trusted.complaint() + &served.complaint();
        assert!(text.contains(told), "{keys}: {text}");
    }
}

/// Yes to the first project; to each other one when three of them have been asked.
const TOGETHER: &str = r#"
q["project"] == "acme" or (
    open(HERE + "/in-" + q["project"], "w").close(),
    [time.sleep(0.01) for _ in range(300)
     if sum(name.startswith("in-") for name in os.listdir(HERE)) < 3],
    sum(name.startswith("in-") for name in os.listdir(HERE)) == 3,
)[-1]
"#;

#[test]
fn the_projects_of_a_list_are_asked_for_together_behind_the_first() {
    let world = world(TOGETHER.trim(), "within = \"5s\"\nkeep = \"0s\"\nkeep_no = \"0s\"\n");
    for project in ["a", "b", "c"] {
        commit(&world, project, &[("f", project.as_bytes())]);
    }
    let site = serve(&world);
    // Workers that are to be started first may take longer than that.
    let list = (0..5).find_map(|_| {
        for project in ["a", "b", "c"] {
            let _ = std::fs::remove_file(world.path(format!("work/in-{project}")));
        }
        let target = "/git/blobs?rev=main&path=f&project=acme&project=a&project=b&project=c";
        let text = site.get(target).text();
        let lines = text.lines().map(serde_json::from_str::<serde_json::Value>);
        // Between them stand the lengths of chunks.
        let all: Vec<_> =
            lines.filter_map(|line| Some(line.ok()?["text"].as_str()?.to_owned())).collect();
        (all == ["of acme", "a", "b", "c"]).then_some(text)
    });
    assert!(list.is_some(), "{}", site.err());
    site.stop();
}
