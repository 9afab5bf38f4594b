//! The bounds of a connection, each reached.

use hob_tests::World;

use super::client::Client;
use super::site;

#[test]
fn so_many_requests_may_be_open_as_is_listed() {
    let world = World::new();
    let site = site(&world, "", "workers = 1");
    let client = Client::connect(&site, 65_535);
    let listed = world.hob(&["serve", "status", "--limits"]).go();
    let listed = String::from_utf8_lossy(&listed.out).into_owned();
    let words: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let most = client.most().to_string();
    assert!(words.iter().any(|line| line[..2] == ["streams", &most]), "{most}: {listed}");
    site.stop();
}

#[test]
fn who_takes_back_request_after_request_is_cut_off() {
    let world = World::new();
    // Each costs a worker, as it does in HTTP/1; there it costs its client a connection too.
    let site = site(&world, "", "isolation = \"prefork\"\nworkers = 1\nqueue = 10");
    let mut client = Client::connect(&site, 65_535);
    // Those that were answered are no reason.
    for _ in 0..3 {
        assert_eq!(client.get("/").status, 200);
    }
    let mut sent = 0;
    while let Ok(asked) = client.ask(("GET", "/hold"), &[], None) {
        asked.reset();
        sent += 1;
        assert!(sent < 100_000, "it is never cut off");
    }
    assert!(sent > 100, "it is cut off after {sent}");
    let _cut = client.ended();
    world.file("go", "");
    assert_eq!(site.get("/next").text(), "/next 0");
    site.stop();
}

#[test]
fn who_takes_nothing_of_an_answer_loses_that_answer_alone() {
    let world = World::new();
    let site = site(&world, "timeouts = { write = \"1s\" }", "workers = 1");
    let client = Client::connect(&site, 20_000);
    for path in ["/files/big.bin", "/endless"] {
        let asked = client.ask(("GET", path), &[], None).unwrap();
        let mut body = client.begun(asked).unwrap().into_body();
        let error = loop {
            match client.piece(&mut body, false) {
                Some(Ok(_)) => {}
                Some(Err(error)) => break error,
                None => panic!("{path} ended"),
            }
        };
        assert!(error.is_reset(), "{path}: {error}");
        assert_eq!(client.get("/next").body, "/next 0");
    }
    let shown = world.hob(&["serve", "status", "--json"]).go().text();
    let told: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let mounts = told["sites"][0]["front"]["mounts"].as_array().unwrap();
    let of = |path: &str| mounts.iter().find(|mount| mount["path"] == path).unwrap();
    for path in ["/files", "/"] {
        assert_eq!(of(path)["limits"]["timeouts.write"], 1, "{path}: {shown}");
    }
    site.stop();
}

#[test]
fn a_connection_without_requests_ends() {
    let world = World::new();
    let site = site(&world, "timeouts = { head = \"1s\" }", "workers = 1");
    let mut client = Client::connect(&site, 65_535);
    assert_eq!(client.get("/").status, 200);
    client.ended().expect("it is told");
    site.stop();
}

#[test]
fn a_body_and_a_head_have_the_bounds_of_http_1() {
    let world = World::new();
    let site =
        site(&world, "timeouts = { body = \"1s\" }", "workers = 1\nlimits = { body = \"1KiB\" }");
    let client = Client::connect(&site, 65_535);
    let large = client.ask(("POST", "/"), &[], Some(&[b'x'; 1025])).unwrap();
    assert_eq!(client.answer(large).unwrap().status, 413);
    let told = client.ask(("POST", "/"), &[("content-length", "1025")], Some(&[b'x'; 1025]));
    assert_eq!(client.answer(told.unwrap()).unwrap().status, 413);
    let fits = client.ask(("POST", "/"), &[], Some(&[b'x'; 1024])).unwrap();
    assert_eq!(client.answer(fits).unwrap().body, "/ 1024");
    let long = format!("/{}", "x".repeat(8192));
    assert_eq!(client.get(&long).status, 414);
    let many: Vec<(String, &str)> = (0..101).map(|number| (format!("h{number}"), "v")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&name[..], *value)).collect();
    let many = client.ask(("GET", "/"), &many, None).unwrap();
    assert_eq!(client.answer(many).unwrap().status, 431);
    let value = "v".repeat(4096);
    for (count, status) in [(7, 200), (9, 431), (30, 431)] {
        let headers: Vec<(String, &str)> =
            (0..count).map(|number| (format!("h{number}"), &value[..])).collect();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (&name[..], *value)).collect();
        let asked = client.ask(("GET", "/"), &headers, None).unwrap();
        assert_eq!(client.answer(asked).unwrap().status, status, "{count} headers");
    }
    let stops = client.begin(("POST", "/")).unwrap();
    assert_eq!(client.answer(stops).unwrap().status, 408);
    site.stop();
}
