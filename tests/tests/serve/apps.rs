//! Apps: what they are asked, what they answer, what one request may see of another, and what
//! becomes of an app that fails.

use hob_tests::site::Site;
use hob_tests::{World, wait};
use serde_json::Value;

const APP: &str = r#"
import os, sys, time, random

COUNT = 0

def application(environ, start_response):
    global COUNT
    COUNT += 1
    path = environ["PATH_INFO"]
    if path == "/raise":
        raise RuntimeError("a secret of the app")
    if path == "/exit":
        os._exit(3)
    if path == "/sleep":
        time.sleep(60)
    if path == "/split":
        start_response("200 OK", [("X-A", "b\r\nX-C: d")])
        return [b""]
    if path == "/echo":
        body = environ["wsgi.input"].read()
        start_response("200 OK", [("Content-Type", "application/octet-stream")])
        return [body]
    names = ("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "REQUEST_METHOD", "HTTP_X_A",
             "HTTP_X_B", "HTTP_PROXY", "SERVER_PROTOCOL", "CONTENT_LENGTH")
    text = "".join("%s=%s\n" % (name, environ.get(name)) for name in names)
    text += "pid=%d\ncount=%d\nrandom=%r\n" % (os.getpid(), COUNT, random.random())
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [text.encode("latin-1")]
"#;

fn mount(path: &str, more: &str) -> String {
    format!("[mount.\"{path}\"]\nwsgi = \"wsgi.py\"\n{more}\n")
}

fn site(world: &World, mounts: &[String]) -> Site {
    world.file("wsgi.py", APP);
    world.file("hob.toml", mounts.concat());
    world.hob(&["trust"]).go().succeeded();
    Site::serve(world, &[])
}

fn field(text: &str, name: &str) -> String {
    let prefix = format!("{name}=");
    let line = text.lines().find(|line| line.starts_with(&prefix));
    line.unwrap_or_else(|| panic!("{name} is not in {text:?}"))[prefix.len()..].to_owned()
}

#[test]
fn a_directory_with_an_app_is_served_without_a_word() {
    let world = World::new();
    world.file("wsgi.py", APP);
    world.file("public/style.css", "p {}");
    let site = Site::serve(&world, &["."]);
    let answer = site.get("/x?y=z");
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.text();
    for (name, value) in [("SCRIPT_NAME", ""), ("PATH_INFO", "/x"), ("QUERY_STRING", "y=z")] {
        assert_eq!(field(&text, name), value, "{name}");
    }
    assert_eq!(site.get("/public/style.css").text(), "p {}");
    let out = String::from_utf8(site.stop().out).unwrap();
    assert!(out.contains("wsgi") && out.contains("prefork") && out.contains("public"), "{out}");
}

#[test]
fn an_app_gets_its_prefix_apart_and_headers_that_cannot_be_mistaken() {
    let world = World::new();
    let site = site(&world, &[mount("/shop", ""), mount("/", "")]);
    let headers = "X-A: one\r\nx-a: two\r\nX_B: merged\r\nProxy: http://evil\r\n";
    let text = site.ask("GET", "/shop/%41/b?c=%20d", headers, b"").text();
    for (name, value) in [
        ("SCRIPT_NAME", "/shop"),
        ("PATH_INFO", "/A/b"),
        ("QUERY_STRING", "c=%20d"),
        ("HTTP_X_B", "None"),
        ("HTTP_PROXY", "None"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
    ] {
        assert_eq!(field(&text, name), value, "{name}");
    }
    assert_eq!(field(&text, "HTTP_X_A").replace(' ', ""), "one,two");
    for (target, prefix, path) in [
        ("/shop", "/shop", ""),
        ("/shop/", "/shop", "/"),
        ("/shopx", "", "/shopx"),
        ("/shop/../x", "", "/x"),
        ("/a/./%2e%2e/shop/y", "/shop", "/y"),
    ] {
        let text = site.get(target).text();
        assert_eq!(field(&text, "SCRIPT_NAME"), prefix, "{target}");
        assert_eq!(field(&text, "PATH_INFO"), path, "{target}");
    }
    site.stop();
}

#[test]
fn a_body_comes_whole_and_goes_back_whole() {
    let world = World::new();
    let site = site(&world, &[mount("/", "")]);
    let body: Vec<u8> = (0..=255).cycle().take(900_000).collect();
    let back = site.ask("POST", "/echo", "", &body);
    assert!(back.status == 200 && back.body == body, "{} bytes came back", back.body.len());
    let chunked = b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
        Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(hob_tests::site::response(&site.raw(chunked)).text(), "abcde");
    let head = site.ask("HEAD", "/", "", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    site.stop();
}

#[test]
fn requests_see_of_each_other_what_their_mount_says() {
    let world = World::new();
    let site = site(
        &world,
        &[
            mount("/fork", "isolation = \"fork\""),
            mount("/standby", "isolation = \"standby\""),
            mount("/spawn", "isolation = \"spawn\""),
            mount("/prefork", "isolation = \"prefork\"\nworkers = 1\nrecycle = { requests = 5 }"),
        ],
    );
    for alone in ["/fork", "/standby", "/spawn"] {
        let texts: Vec<String> = (0..4).map(|_| site.get(alone).text()).collect();
        let mut seen: Vec<String> = texts.iter().map(|text| field(text, "random")).collect();
        assert!(texts.iter().all(|text| field(text, "count") == "1"), "{alone}: {texts:?}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 4, "{alone}: a random number came twice");
    }
    let counts: Vec<String> =
        (0..12).map(|_| field(&site.get("/prefork").text(), "count")).collect();
    assert_eq!(counts[..5], ["1", "2", "3", "4", "5"]);
    assert_eq!(counts[5..10], ["1", "2", "3", "4", "5"]);
    site.stop();
}

#[test]
fn an_app_that_fails_is_told_apart_and_harms_no_other_request() {
    let world = World::new();
    let site = site(&world, &[mount("/", "workers = 2"), mount("/slow", "timeout = \"300ms\"")]);
    let raised = site.get("/raise");
    assert_eq!(raised.status, 500);
    assert!(!raised.text().contains("secret"), "{raised:?}");
    assert_eq!(site.get("/exit").status, 502);
    assert_eq!(site.get("/split").status, 500);
    assert_eq!(site.get("/slow/sleep").status, 504);
    assert_eq!(site.get("/").status, 200);
    let outcome = site.stop();
    let told = String::from_utf8_lossy(&outcome.err).into_owned();
    assert!(told.contains("a secret of the app"), "{told}");
}

#[test]
fn an_edit_is_in_the_next_answer_and_one_that_does_not_load_is_told() {
    let world = World::new();
    let site = site(&world, &[mount("/", "")]);
    assert_eq!(site.get("/").status, 200);
    let app = |text: &str| {
        format!(
            "def application(environ, start):\n    start('200 OK', [])\n    return [b'{text}']\n"
        )
    };
    for text in ["second", "third"] {
        world.file("wsgi.py", app(text));
        assert_eq!(site.get("/").text(), text);
    }
    world.file("wsgi.py", "import nothing_of_this_name\n");
    assert_eq!(site.get("/").text(), "third");
    world.file("wsgi.py", app("mended"));
    assert_eq!(site.get("/").text(), "mended");
    let outcome = site.stop();
    let told = String::from_utf8_lossy(&outcome.err).into_owned();
    assert!(told.contains("nothing_of_this_name"), "{told}");
}

#[test]
fn an_app_that_never_loaded_is_502_until_it_is_mended() {
    let world = World::new();
    world.file("wsgi.py", "import nothing_of_this_name\n");
    world.file("hob.toml", mount("/", ""));
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &[]);
    assert_eq!(site.get("/").status, 502);
    world.file("wsgi.py", APP);
    assert_eq!(site.get("/").status, 200);
    site.stop();
}

#[test]
fn requests_have_receipts() {
    let world = World::new();
    let site = site(&world, &[mount("/shop", "isolation = \"fork\"")]);
    assert_eq!(site.get("/shop/x").status, 200);
    site.stop();
    let receipt: Value = world.records(1).remove(0);
    assert_eq!(receipt["program"]["name"], "/shop");
    assert_eq!(receipt["isolation"], "fork");
    assert_eq!(receipt["outcome"]["kind"], "answered");
    assert!(receipt["total_us"].as_u64().unwrap() > 0, "{receipt}");
    let phases: Vec<&str> = receipt["phases"].as_array().unwrap().iter().map(name).collect();
    assert!(phases.starts_with(&["head", "body", "send"]), "{phases:?}");
    assert!(phases.ends_with(&["settle", "write"]), "{phases:?}");
    assert_eq!(receipt["message"]["protocol"], "HTTP/1.1");
}

#[test]
fn status_tells_workers_by_generation_and_what_was_recycled_lost_and_limited() {
    let world = World::new();
    let more = "workers = { min = 1, max = 1 }\nrecycle = { requests = 2 }\n\
        limits = { body = \"1KiB\" }";
    let site = site(&world, &[mount("/", more), mount("/other", "")]);
    for _ in 0..4 {
        assert_eq!(site.get("/").status, 200);
    }
    assert_eq!(site.get("/exit").status, 502);
    assert_eq!(site.ask("POST", "/", "", &[0; 2000]).status, 413);
    let status = || -> Value {
        let told = world.hob(&["serve", "status", "--json"]).go().text();
        serde_json::from_str::<Value>(&told).unwrap()["sites"][0].clone()
    };
    let first = wait::until("the next worker is ready", || {
        let pool = status()["status"]["pools"][0].clone();
        let there = ["ready", "busy"].map(|state| pool["workers"][0][state] == 1);
        there.contains(&true).then_some(pool)
    });
    assert!(first["recycled"].as_u64().unwrap() >= 1, "{first}");
    let counts = status()["front"]["mounts"][0].clone();
    assert_eq!(
        (&counts["failures"]["lost"], &counts["limits"]["limits.body"]),
        (&1.into(), &1.into())
    );
    let before = first["workers"][0]["generation"].as_u64().unwrap();
    world.hob(&["serve", "reload", "/"]).go().succeeded();
    wait::until("a worker of the next generation", || {
        let pool = status()["status"]["pools"][0].clone();
        (pool["workers"][0]["generation"].as_u64() > Some(before)).then_some(())
    });
    let shown = world.hob(&["serve", "status"]).go().text();
    assert!(shown.contains("generation ") && shown.contains(" recycled"), "{shown}");
    assert!(shown.contains("limits reached: limits.body 1"), "{shown}");
    site.stop();
}

fn name(phase: &Value) -> &str {
    phase["name"].as_str().unwrap()
}

#[test]
fn many_at_once_are_all_answered_once_while_workers_are_replaced() {
    let world = World::new();
    let site = site(&world, &[mount("/", "workers = 3\nrecycle = { requests = 7 }")]);
    let failed: usize = std::thread::scope(|scope| {
        let ask = || (0..40).filter(|_| site.get("/").status != 200).count();
        let askers: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        askers.into_iter().map(|asker| asker.join().unwrap()).sum()
    });
    assert_eq!(failed, 0);
    // The log is whole when the site has ended.
    let log = String::from_utf8(site.stop().out).unwrap();
    assert_eq!(log.matches("\"GET / HTTP/1.1\" 200 ").count(), 320);
}

#[test]
fn a_killed_site_leaves_no_process_and_its_place_can_be_taken() {
    let world = World::new();
    let first = site(&world, &[mount("/", "")]);
    assert_eq!(first.get("/").status, 200);
    let address = first.address();
    first.kill();
    let folder = world.path("work").parent().unwrap().to_path_buf();
    wait::until("the end of all of it", || {
        hob_tests::leftovers::processes(&folder).is_empty().then_some(())
    });
    let again = world.hob(&["serve", "--listen", &address.to_string()]).start();
    again.expect("hob: serving http://");
    again.signal(rustix::process::Signal::TERM);
    assert_eq!(again.finish().end, hob_tests::End::Code(0));
}

#[test]
fn what_apps_print_and_raise_is_on_standard_error_and_not_in_the_access_log() {
    let world = World::new();
    world.file(
        "wsgi.py",
        "import sys\n\ndef application(environ, start):\n    print('by print')\n    \
         print('by stderr', file=sys.stderr)\n    environ['wsgi.errors'].write('by wsgi\\n')\n    \
         if environ['PATH_INFO'] == '/raise':\n        raise ValueError('as asked')\n    \
         start('200 OK', [])\n    return [b'']\n",
    );
    world.file(
        "config.ru",
        "run(lambda do |env|\n  puts 'by puts'\n  warn 'by warn'\n  \
         env['rack.errors'].puts 'by rack'\n  [200, {}, []]\nend)\n",
    );
    let mut mounts = String::new();
    for isolation in ["fork", "prefork"] {
        for (kind, file) in [("wsgi", "wsgi.py"), ("rack", "config.ru")] {
            mounts += &format!(
                "[mount.\"/{kind}-{isolation}\"]\n{kind} = \"{file}\"\nisolation = \"{isolation}\"\n"
            );
        }
    }
    world.file("hob.toml", mounts);
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &[]);
    for isolation in ["fork", "prefork"] {
        for (kind, words) in
            [("wsgi", "by print,by stderr,by wsgi"), ("rack", "by puts,by warn,by rack")]
        {
            let before: Vec<usize> =
                words.split(',').map(|word| site.err().matches(word).count()).collect();
            assert_eq!(site.get(&format!("/{kind}-{isolation}/")).status, 200);
            wait::until("all of it is printed", || {
                let err = site.err();
                let mut pairs = words.split(',').zip(&before);
                pairs.all(|(word, count)| err.matches(word).count() == count + 1).then_some(())
            });
        }
        assert_eq!(site.get(&format!("/wsgi-{isolation}/raise")).status, 500);
        wait::until("the traceback", || {
            let err = site.err();
            (err.contains("wsgi.py\", line 8, in application")
                && err.contains("ValueError: as asked"))
            .then_some(())
        });
    }
    let out = String::from_utf8(site.stop().out).unwrap();
    assert!(!out.contains("by "), "{out}");
}
