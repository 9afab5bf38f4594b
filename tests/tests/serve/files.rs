//! Static files: what is found, what is not, and that nothing outside the folder is.

use hob_tests::World;
use hob_tests::site::Site;

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
