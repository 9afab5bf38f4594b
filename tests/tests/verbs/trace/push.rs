//! Receipts that are pushed to a collector: the user's configuration asks for it, and no collector
//! holds a call up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;

use hob_tests::site::Site;
use hob_tests::{End, World, wait};
use serde_json::{Value, json};

/// What a collector was sent.
struct Posted {
    /// The request's line, and its headers with small names.
    head: Vec<String>,
    body: Value,
}

/// What a collector answers to one post.
#[derive(Clone, Copy)]
enum Says {
    /// These bytes, and it closes.
    Bytes(&'static str),
    /// A head, and a body without an end.
    Endless,
    /// Nothing, until the test has ended.
    Nothing,
}

const TAKEN: Says = Says::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");

/// A collector. It answers post after post as it is told, the last way for ever.
struct Collector {
    url: String,
    posted: mpsc::Receiver<Posted>,
}

impl Collector {
    fn start(says: &'static [Says]) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (told, posted) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut answers, mut held) = (says.iter(), Vec::new());
            let mut next = TAKEN;
            while let Ok((stream, _)) = listener.accept() {
                let Some((posted, stream)) = read(stream) else { continue };
                next = answers.next().copied().unwrap_or(next);
                if told.send(posted).is_err() {
                    return;
                }
                held.extend(answer(stream, next));
            }
        });
        Collector { url, posted }
    }

    fn next(&self) -> Posted {
        self.posted.recv_timeout(wait::LONG).expect("a post comes")
    }
}

fn read(stream: TcpStream) -> Option<(Posted, TcpStream)> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).ok()?;
    Some((Posted { head, body }, reader.into_inner()))
}

/// Answers; what is to stay open is returned.
fn answer(mut stream: TcpStream, says: Says) -> Option<TcpStream> {
    match says {
        Says::Bytes(bytes) => stream.write_all(bytes.as_bytes()).ok().and(None),
        Says::Endless => {
            let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while sent.is_ok() {
                sent = stream.write_all(&[b'x'; 4096]);
            }
            None
        }
        Says::Nothing => Some(stream),
    }
}

/// Writes the user's configuration.
fn configured(world: &World, text: &str) {
    let directory = world.path("home").join(".config/hob");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), text).unwrap();
}

/// A world whose receipts are pushed there, with a daemon.
fn pushing(url: &str) -> World {
    let world = World::new();
    configured(&world, &format!("[export]\notlp = \"{url}\"\n"));
    world.hob(&["start"]).go().succeeded();
    world
}

fn calls(world: &World, count: usize) {
    let run = world.hob(&["run", "/bin/true"]);
    (0..count).for_each(|_| world.in_time(&run).succeeded());
}

/// The numbers of the calls that were posted, in their order.
fn numbers(posts: &[Posted]) -> Vec<u64> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let resources = posts.iter().flat_map(|posted| list(&posted.body["resourceSpans"]));
    let spans = resources.flat_map(|resource| list(&resource["scopeSpans"][0]["spans"]));
    let calls = spans.filter(|span| span["parentSpanId"].is_null());
    let number = |span: Value| {
        let attributes = list(&span["attributes"]);
        let call = attributes.iter().find(|each| each["key"] == "hob.call").unwrap();
        call["value"]["intValue"].as_str().unwrap().parse().unwrap()
    };
    calls.map(number).collect()
}

/// What `hob doctor` finds of it.
fn found(world: &World) -> (Value, End) {
    let outcome = world.hob(&["doctor", "--json"]).go();
    let report: Value = serde_json::from_slice(&outcome.out).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let own = checks.iter().find(|check| check["check"] == "export").cloned();
    (own.unwrap_or_default(), outcome.end)
}

/// Waits until the daemon says this of what it pushes.
fn until(world: &World, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    wait::until(what, || Some(world.status()["push"].take()).filter(&is))
}

/// Whether the daemon has a thread that pushes.
fn has_thread(world: &World) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", world.daemon())).unwrap();
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    names.filter_map(Result::ok).any(|name| name == "hob-push\n")
}

#[test]
fn without_a_configuration_nothing_of_it_is_there() {
    let world = World::started();
    calls(&world, 1);
    assert!(!has_thread(&world));
    assert!(world.status().get("push").is_none());
    assert_eq!(found(&world).0, Value::Null);
    // A project asks for nothing of the kind.
    world.file("hob.toml", "[export]\notlp = \"http://127.0.0.1:1\"\n");
    let trusted = world.hob(&["trust"]).go();
    assert!(trusted.end != End::Code(0), "{trusted:?}");
    assert!(trusted.complaint().contains("export"), "{trusted:?}");
}

#[test]
fn a_collector_has_each_call_once_with_the_headers_that_the_user_names() {
    let collector = Collector::start(&[TAKEN]);
    let world = World::new();
    let headers = world.file("headers", "Authorization: Bearer hunter2\n");
    std::fs::set_permissions(&headers, PermissionsExt::from_mode(0o600)).unwrap();
    let config = format!("[export]\notlp = \"{}\"\nheaders = {headers:?}\n", collector.url);
    configured(&world, &config);
    assert!(found(&world).0["text"].as_str().unwrap().contains("none runs"));
    world.hob(&["start"]).go().succeeded();
    assert!(has_thread(&world));
    calls(&world, 3);
    let mut posts = vec![collector.next()];
    let head = &posts[0].head;
    assert_eq!(head[0], "POST /v1/traces HTTP/1.1");
    for line in ["content-type: application/json", "authorization: Bearer hunter2"] {
        assert!(head.iter().any(|one| one == line), "{line}: {head:?}");
    }
    let sent = until(&world, "it is taken", |push| push["waiting"] == 0);
    assert_eq!((&sent["dropped"], &sent["why"]), (&json!(0), &Value::Null), "{sent}");
    let (own, end) = found(&world);
    assert_eq!((&own["level"], end), (&json!("fine"), End::Code(0)), "{own}");
    assert!(![own, world.status()].iter().any(|said| said.to_string().contains("hunter2")));
    let metrics = world.hob(&["trace", "export", "prometheus"]).go();
    assert!(metrics.text().contains(&format!("hob_export_sent_total {}\n", sent["sent"])));
    assert!(world.hob(&["status"]).go().text().contains(&format!("to {}", collector.url)));
    calls(&world, 2);
    let kept: Vec<_> = world.records(100);
    let of_daemon = kept.iter().filter(|record| record["schema"] == "hob.receipt/1");
    let mut want: Vec<_> = of_daemon.filter_map(|record| record["call"].as_u64()).collect();
    let all = want.len() as u64;
    until(&world, "all are taken", |push| push["sent"].as_u64() >= Some(all));
    world.stop();
    posts.extend(collector.posted.try_iter());
    let mut got = numbers(&posts);
    want.sort_unstable();
    got.sort_unstable();
    assert_eq!(got, want);
}

#[test]
fn a_collector_that_does_not_answer_holds_no_call_up() {
    let collector = Collector::start(&[Says::Nothing]);
    let world = pushing(&collector.url);
    calls(&world, 1);
    let first = collector.next();
    // It has the batch and says nothing: calls go on, and so does the end of the daemon.
    let posted = numbers(&[first]).len() as u64;
    calls(&world, 20);
    let waits = until(&world, "others wait", |push| push["waiting"].as_u64() >= Some(posted + 20));
    assert_eq!((&waits["sent"], &waits["dropped"]), (&json!(0), &json!(0)));
    world.stop();
}

#[test]
fn what_a_collector_says_is_not_believed_and_not_feared() {
    let collector = Collector::start(&[
        Says::Bytes("\0\x7f no HTTP at all\r\n\r\n"),
        Says::Bytes(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        ),
        Says::Bytes("HTTP/1.1 429 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"),
        Says::Bytes(
            "HTTP/1.1 200 OK\r\n\r\n\
             {\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"\\u001b[31m old\"}}",
        ),
        Says::Endless,
    ]);
    let world = pushing(&collector.url);
    calls(&world, 1);
    let first = numbers(&[collector.next()]);
    // The first was no answer: the same is posted again. Where it is sent elsewhere, it is not.
    assert_eq!(numbers(&[collector.next()]), first);
    let refused = until(&world, "it is dropped", |push| push["dropped"].as_u64() > Some(0));
    assert!(refused["why"].as_str().unwrap().contains("302"), "{refused}");
    assert_eq!(found(&world).0["level"], "warning");
    calls(&world, 1);
    let second = numbers(&[collector.next()]);
    assert_eq!(numbers(&[collector.next()]), second);
    let partial = until(&world, "it is taken", |push| push["sent"].as_u64() > Some(0));
    assert_eq!(partial["rejected_spans"], 2, "{partial}");
    let shown = world.hob(&["status"]).go();
    assert!(shown.text().contains("old") && !shown.text().contains('\u{1b}'), "{shown:?}");
    calls(&world, 1);
    collector.next();
    let sent = partial["sent"].as_u64();
    until(&world, "an answer without an end is cut", |push| push["sent"].as_u64() > sent);
    calls(&world, 1);
}

#[test]
fn plain_text_is_not_sent_to_another_machine_and_an_absent_collector_is_said() {
    let world = pushing("http://192.0.2.1:4318");
    assert!(!has_thread(&world));
    calls(&world, 2);
    let dropped = until(&world, "they are dropped", |push| push["dropped"].as_u64() > Some(0));
    assert!(dropped["why"].as_str().unwrap().contains("this machine only"), "{dropped}");
    let (own, end) = found(&world);
    assert_eq!((&own["level"], end), (&json!("fault"), End::Code(1)), "{own}");
    world.stop();
    // A port where nothing listens any more.
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let world = pushing(&url);
    calls(&world, 1);
    let absent = until(&world, "it is found out", |push| !push["why"].is_null());
    assert!(absent["why"].as_str().unwrap().contains("cannot connect"), "{absent}");
    assert_eq!((&absent["waiting"], &absent["dropped"]), (&json!(1), &json!(0)), "{absent}");
    calls(&world, 1);
}

#[test]
fn a_site_pushes_its_requests_each_below_its_callers_span() {
    const APP: &str = "def application(environ, start_response):\n    \
        start_response('200 OK', [('Content-Type', 'text/plain')])\n    return [b'fine']\n";
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SHELL: &str = "00f067aa0ba902b7";
    let collector = Collector::start(&[TAKEN]);
    let world = World::new();
    configured(&world, &format!("[export]\notlp = \"{}\"\n", collector.url));
    world.file("wsgi.py", APP);
    let site = Site::serve(&world, &["."]);
    let header = format!("Traceparent: 00-{TRACE}-{SHELL}-01\r\n");
    assert_eq!(site.ask("GET", "/", &header, b"").text(), "fine");
    let posted = collector.next().body.to_string();
    site.stop();
    assert!(posted.contains(&format!("\"parentSpanId\":\"{SHELL}\"")), "{posted}");
    assert!(posted.contains(&format!("\"traceId\":\"{TRACE}\"")), "{posted}");
}
