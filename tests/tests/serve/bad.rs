//! What no site takes: requests that break a rule, and sites that cannot be served.

use hob_tests::site::{Site, response};
use hob_tests::{End, World};

#[test]
fn a_request_that_breaks_a_rule_is_refused_and_nothing_behind_it_is_answered() {
    let world = World::new();
    world.file("public/index.html", "home");
    let site = Site::serve(&world, &["."]);
    let behind = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for head in [
        "GET / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n",
        "GET /../x HTTP/1.1\r\nHost: a\r\n",
    ] {
        let bytes = site.raw(format!("{head}\r\n{behind}").as_bytes());
        let answer = response(&bytes);
        assert_eq!(answer.status, 400, "{head:?}: {answer:?}");
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{head:?}: {text}");
    }
    for (line, status) in [
        ("GET / HTTP/1.2", 505),
        ("GET / HTTP/2.0", 505),
        ("GET / HTTP/0.9", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET / a HTTP/1.1", 400),
        ("G:T / HTTP/1.1", 400),
        ("GET /", 400),
    ] {
        let bytes = site.raw(format!("{line}\r\nHost: a\r\n\r\n{behind}").as_bytes());
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(
            (response(&bytes).status, text.matches("HTTP/1.1 ").count()),
            (status, 1),
            "{text}"
        );
    }
    site.stop();
}

#[test]
fn limits_are_told_and_reached() {
    let world = World::new();
    world.file("public/index.html", "home");
    let limits = world.hob(&["serve", "status", "--limits", "--json"]).go();
    limits.succeeded();
    let limits: serde_json::Value = serde_json::from_slice(&limits.out).unwrap();
    assert_eq!(limits["schema"], "hob.serve.limits/1");
    let site = Site::serve(&world, &["."]);
    let long = format!("/{}", "a".repeat(9 * 1024));
    assert_eq!(site.get(&long).status, 414);
    let many = "X-A: b\r\n".repeat(120);
    assert_eq!(site.ask("GET", "/", &many, b"").status, 431);
    site.stop();
}

#[test]
fn a_site_that_cannot_be_served_says_why_and_starts_nothing() {
    let world = World::new();
    let complaint = |words: &[&str]| {
        let run = world.hob(words).go();
        assert_eq!(run.end, End::Code(1), "{run:?}");
        run.complaint()
    };
    let nothing = complaint(&["serve", "."]);
    assert!(nothing.contains("config.ru") && nothing.contains("public"), "{nothing}");
    world.file("public/index.html", "home");
    world.file("hob.toml", "[mount.\"/\"]\nstatic = \"public\"\n");
    let untrusted = complaint(&["serve"]);
    assert!(untrusted.contains("hob trust"), "{untrusted}");
    for (table, word) in [
        ("[mount.\"/\"]\nstatik = \"public\"\n", "statik"),
        ("[mount.\"/\"]\nisolation = \"fork\"\n", "serves nothing"),
        ("[mount.\"/\"]\nrack = \"config.ru\"\n", "is not there"),
        ("[mount.\"/\"]\nstatic = \"gone\"\n", "gone is no folder"),
        ("[mount.\"/\"]\nstatic = \"public\"\nworkers = 2\n", "`cache_control` and `dot_files`"),
        ("[mount.\"/\"]\nstatic = \"public\"\nqueue = 9\n", "`cache_control` and `dot_files`"),
        ("[serve]\nlog = \"xml\"\n[mount.\"/\"]\nstatic = \"public\"\n", "xml"),
        ("[mount.\"/\"]\nstatic = \"public\"\ncache_control = \"a\\nb\"\n", "cache_control"),
        ("[mount.\"x\"]\nstatic = \"public\"\n", "/"),
        ("[serve]\nport = 1\n", "port"),
    ] {
        world.file("hob.toml", table);
        // It is said before it is trusted, and so it is never served.
        let said = complaint(&["trust"]);
        assert!(said.contains(word) && said.contains("nothing was trusted"), "{table}: {said}");
        let said = complaint(&["serve", "--listen", "0"]);
        assert!(said.contains("hob trust"), "{table}: {said}");
    }
    world.file("hob.toml", "[mount.\"/\"]\nstatic = \"public\"\n");
    world.hob(&["trust"]).go().succeeded();
    // What was there when it was trusted may be gone.
    std::fs::rename(world.path("work/public"), world.path("work/aside")).unwrap();
    let said = complaint(&["serve", "--listen", "0"]);
    assert!(said.contains("public is no folder"), "{said}");
    std::fs::rename(world.path("work/aside"), world.path("work/public")).unwrap();
    let site = Site::serve(&world, &[]);
    let taken = complaint(&["serve", "--listen", &site.address().to_string()]);
    assert!(taken.contains("--listen"), "{taken}");
    let status = world.hob(&["serve", "status", "--json"]).go();
    let status: serde_json::Value = serde_json::from_slice(&status.out).unwrap();
    assert_eq!(status["sites"][0]["port"], site.address().port());
    world.hob(&["serve", "stop"]).go().succeeded();
    site.stopped();
    let status = world.hob(&["serve", "status"]).go();
    assert!(status.complaint().contains("no site runs"), "{status:?}");
}

#[test]
fn a_slow_head_or_body_is_ended_and_others_do_not_notice() {
    let world = World::new();
    world.file("public/index.html", "home");
    world
        .file("app.py", "def app(environ, start):\n    start('200 OK', [])\n    return [b'app']\n");
    world.file(
        "hob.toml",
        "[serve]\ntimeouts = { head = \"300ms\", body = \"300ms\" }\n\
         [mount.\"/\"]\nstatic = \"public\"\n[mount.\"/app\"]\nwsgi = \"app.py\"\n",
    );
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &[]);
    let slow = std::thread::scope(|scope| {
        let head = scope.spawn(|| site.raw(b"GET / HTTP/1.1\r\nHost: a\r\n"));
        let body = scope
            .spawn(|| site.raw(b"POST /app HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
        for _ in 0..5 {
            assert_eq!(site.get("/app").text(), "app");
        }
        (head.join().unwrap(), body.join().unwrap())
    });
    assert!(!String::from_utf8_lossy(&slow.0).contains("200"), "{slow:?}");
    assert_eq!(response(&slow.1).status, 408, "{slow:?}");
    site.stop();
}

#[test]
fn a_log_that_nobody_reads_stops_no_request() {
    let world = World::new();
    world.file("public/index.html", "home");
    let flags = rustix::pipe::PipeFlags::CLOEXEC;
    let (reader, writer) = rustix::pipe::pipe_with(flags).unwrap();
    let mut site = std::process::Command::new(world.binary())
        .args(["serve", ".", "--listen", "0"])
        .env_clear()
        .envs(world.environment())
        .current_dir(world.path("work"))
        .stdout(writer)
        .spawn()
        .unwrap();
    let mut first = Vec::new();
    while !first.ends_with(b"public\n") {
        let mut byte = [0];
        assert_eq!(rustix::io::read(&reader, &mut byte).unwrap(), 1);
        first.push(byte[0]);
    }
    let text = String::from_utf8(first).unwrap();
    let address = text.split("http://").nth(1).unwrap().split('/').next().unwrap();
    // More than a pipe holds, and more lines than wait.
    let head =
        format!("GET /{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "a".repeat(4000));
    for _ in 0..60 {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(response(&answer).status, 404);
    }
    let pid = rustix::process::Pid::from_child(&site);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(site.wait().unwrap().code(), Some(0), "it ends with its log unread");
    drop(reader);
}
