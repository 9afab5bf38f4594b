//! Static files: what is found, what is not, and that nothing outside the folder is.

use std::io::{Read, Write};

use hob_tests::site::Site;
use hob_tests::{World, wait};

fn world() -> World {
    let world = World::new();
    world.file("public/index.html", "<p>home</p>");
    world.file("public/a b.txt", "0123456789");
    world.file("public/deep/page.css", "p {}");
    world.file("secret", "not yours");
    std::os::unix::fs::symlink(world.path("work/secret"), world.path("work/public/out")).unwrap();
    std::fs::create_dir(world.path("work/public/linked")).unwrap();
    let index = world.path("work/public/linked/index.html");
    std::os::unix::fs::symlink(world.path("work/secret"), index).unwrap();
    std::os::unix::fs::symlink("deep/page.css", world.path("work/public/in.css")).unwrap();
    world
}

#[test]
fn a_folder_is_served_with_its_index_types_and_ranges() {
    let world = world();
    let site = Site::serve(&world, &["."]);
    let home = site.get("/");
    assert_eq!((home.status, home.text().as_str()), (200, "<p>home</p>"));
    assert_eq!(home.header("content-type"), Some("text/html"));
    assert_eq!(site.get("/deep/page.css").header("content-type"), Some("text/css"));
    assert_eq!(site.get("/in.css").text(), "p {}");
    let part = site.ask("GET", "/a%20b.txt", "Range: bytes=2-4\r\n", b"");
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    let tag = format!("If-None-Match: {}\r\n", home.header("etag").unwrap());
    assert_eq!(site.ask("GET", "/", &tag, b"").status, 304);
    let head = site.ask("HEAD", "/a%20b.txt", "", b"");
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("10"), 0));
    assert_eq!(site.ask("POST", "/", "", b"x").status, 405);
    let log = String::from_utf8(site.stop().out).unwrap();
    assert!(log.contains("\"GET /a%20b.txt HTTP/1.1\" 206 3 "), "{log}");
}

#[test]
fn files_with_a_dot_at_their_begin_are_served_only_where_they_are_named() {
    let world = world();
    for name in [".env", ".git/config", ".well-known/security.txt", "deep/.ssh/key"] {
        world.file(&format!("public/{name}"), "not yours");
    }
    world.file("public/.well-known/.env", "not yours");
    std::os::unix::fs::symlink(".env", world.path("work/public/env.txt")).unwrap();
    let hidden = [
        "/.env",
        "/%2eenv",
        "/%2Eenv",
        "/.git/config",
        "/.git/",
        "/.git",
        "/x/../.git/config",
        "/deep/.ssh/key",
        "/deep/%2essh/key",
        "/.well-known/.env",
    ];
    let nothing = |site: &Site, target: &str| {
        let answer = site.get(target);
        assert_eq!((answer.status, answer.text().as_str()), (404, "not found\n"), "{target}");
    };
    let site = Site::serve(&world, &["."]);
    hidden.iter().for_each(|target| nothing(&site, target));
    nothing(&site, "/.well-known/security.txt");
    assert_eq!(site.get("/env.txt").status, 200, "a link names it");
    site.stop();

    let mount = "[serve]\nlisten = \"127.0.0.1:0\"\n[mount.\"/\"]\nstatic = \"public\"\n";
    let trusted = |more: &str| {
        world.file("hob.toml", format!("{mount}{more}"));
        world.hob(&["trust"]).go()
    };
    trusted("dot_files = [\".well-known\"]\n").succeeded();
    let site = Site::serve(&world, &["--config", "hob.toml"]);
    hidden.iter().for_each(|target| nothing(&site, target));
    assert_eq!(site.get("/.well-known/security.txt").text(), "not yours");
    site.stop();

    for wrong in ["\"env\"", "\"../x\"", "\"..\"", "\".\"", "\"\"", "\".a/b\""] {
        let said = trusted(&format!("dot_files = [{wrong}]\n"));
        assert!(said.complaint().contains("dot_files: "), "{wrong}: {said:?}");
    }
    let said = trusted("fallback = \".well-known/security.txt\"\n");
    assert!(said.complaint().contains("name it in `dot_files`"), "{said:?}");
}

#[test]
fn nothing_outside_the_folder_is_reached() {
    let world = world();
    let site = Site::serve(&world, &["."]);
    for (target, status) in [
        ("/out", 404),
        ("/linked/", 404),
        ("/linked/index.html", 404),
        ("/../secret", 400),
        ("/%2e%2e/secret", 400),
        ("/deep/../../secret", 400),
        ("/deep/..%2f..%2fsecret", 400),
        ("/%00", 400),
        ("/nothing", 404),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, status, "{target}: {answer:?}");
        assert!(!answer.text().contains("not yours"), "{target}");
    }
    site.stop();
}

#[test]
fn a_client_that_takes_it_gets_what_was_compressed_before() {
    let world = world();
    world.file("public/app.js", "plain text");
    world.file("public/app.js.gz", "as gzip");
    world.file("public/app.js.br", "as brotli");
    std::os::unix::fs::symlink(world.path("work/secret"), world.path("work/public/a b.txt.gz"))
        .unwrap();
    let site = Site::serve(&world, &["."]);
    for (takes, body, coding) in [
        ("gzip, br", "as brotli", Some("br")),
        ("gzip", "as gzip", Some("gzip")),
        ("zstd", "plain text", None),
        ("identity", "plain text", None),
    ] {
        let answer = site.ask("GET", "/app.js", &format!("Accept-Encoding: {takes}\r\n"), b"");
        assert_eq!((answer.text().as_str(), answer.header("content-encoding")), (body, coding));
        assert_eq!(answer.header("content-type"), Some("text/javascript"), "{takes}");
        assert_eq!(answer.header("vary"), Some("accept-encoding"), "{takes}");
    }
    // A variant that leads out of the folder is none.
    let answer = site.ask("GET", "/a%20b.txt", "Accept-Encoding: gzip\r\n", b"");
    assert_eq!(answer.text(), "0123456789");
    site.stop();
}

#[test]
fn caches_are_told_what_the_mount_says_and_nothing_of_what_is_not_there() {
    let world = world();
    let toml = "[mount.\"/\"]\nstatic = \"public\"\ncache_control = \"public, max-age=60\"\n";
    world.file("hob.toml", toml);
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &[]);
    assert_eq!(site.get("/in.css").header("cache-control"), Some("public, max-age=60"));
    let tag = format!("If-None-Match: {}\r\n", site.get("/").header("etag").unwrap());
    let same = site.ask("GET", "/", &tag, b"");
    assert_eq!((same.status, same.header("cache-control")), (304, Some("public, max-age=60")));
    assert_eq!(site.get("/nothing").header("cache-control"), None);
    site.stop();
}

#[test]
fn what_is_no_file_is_not_there_and_large_files_come_whole() {
    let world = world();
    let pipe = world.path("work/public/pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let large: String = ('a'..='z').cycle().take(3_000_017).collect();
    world.file("public/large", &large);
    let site = Site::serve(&world, &["."]);
    assert_eq!(site.get("/pipe").status, 404);
    assert!(site.get("/large").text() == large);
    let part = site.ask("GET", "/large", "Range: bytes=1000000-2999999\r\n", b"");
    assert!(part.status == 206 && part.text() == large[1_000_000..3_000_000]);
    // The folder is what has its name at each request.
    std::fs::rename(world.path("work/public"), world.path("work/old")).unwrap();
    assert_eq!(site.get("/large").status, 404);
    world.file("public/large", "new");
    assert_eq!(site.get("/large").text(), "new");
    site.stop();
}

#[test]
fn a_fallback_answers_for_what_is_not_there() {
    let world = world();
    world.file("hob.toml", "[mount.\"/app\"]\nstatic = \"public\"\nfallback = \"index.html\"\n");
    world.hob(&["trust"]).go().succeeded();
    let site = Site::serve(&world, &[]);
    assert_eq!(site.get("/app/some/route").text(), "<p>home</p>");
    assert_eq!(site.get("/app").text(), "<p>home</p>");
    let folder = site.get("/app/deep");
    assert_eq!((folder.status, folder.header("location")), (307, Some("/app/deep/")));
    for outside in ["/", "/apple", "/ap"] {
        assert_eq!(site.get(outside).status, 404, "{outside}");
    }
    site.stop();
}

#[test]
fn a_large_file_lasts_until_its_client_has_it() {
    let world = World::new();
    world.file("public/large.bin", vec![b'x'; 40_000_000]);
    let site = Site::serve(&world, &["."]);
    let mut slow = std::net::TcpStream::connect(site.address()).unwrap();
    slow.write_all(b"GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut first = [0; 4096];
    assert!(slow.read(&mut first).unwrap() > 0);
    let begun = std::time::Instant::now();
    // sleeps: it is the length of this pause that the log is to tell.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let pause = begun.elapsed();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    let line = wait::until("its line", || {
        let log = world.hob(&["log", "--http", "--json"]).go().text();
        serde_json::from_str::<serde_json::Value>(log.lines().next()?).ok()
    });
    assert_eq!(line["bytes"], 40_000_000);
    assert!(u128::from(line["total_us"].as_u64().unwrap()) >= pause.as_micros(), "{line}");
    site.stop();
}
