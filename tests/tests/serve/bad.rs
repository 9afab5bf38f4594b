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
        ("[mount.\"/\"]\nstatic = \"public\"\nworkers = 2\n", "no workers"),
        ("[mount.\"x\"]\nstatic = \"public\"\n", "/"),
        ("[serve]\nport = 1\n", "port"),
    ] {
        world.file("hob.toml", table);
        world.hob(&["trust"]).go().succeeded();
        let said = complaint(&["serve", "--listen", "0"]);
        assert!(said.contains(word), "{table}: {said}");
    }
    world.file("hob.toml", "[mount.\"/\"]\nstatic = \"public\"\n");
    world.hob(&["trust"]).go().succeeded();
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
