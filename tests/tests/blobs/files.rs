//! One file: its bytes, what is said of it, and what a client need not fetch again.

use hob_tests::World;

use super::{commit, git, serve, world};

#[test]
fn a_file_is_what_git_says_of_it() {
    let world = world("");
    let id =
        commit(&world, "acme", &[("a b/x.xml", b"<a/>\n"), ("bin", b"\0\xff"), ("run", b"#!")]);
    git(&world, "acme", &["update-index", "--chmod=+x", "run"]);
    git(&world, "acme", &["commit", "--quiet", "--message", "x"]);
    git(&world, "acme", &["branch", "fix/one", &id]);
    let head = git(&world, "acme", &["rev-parse", "HEAD"]);
    let site = serve(&world);
    let answer = site.get("/git/blob/acme/fix/one?path=a%20b/x.xml");
    assert_eq!((answer.status, answer.text().as_str()), (200, "<a/>\n"));
    let blob = git(&world, "acme", &["rev-parse", "main:a b/x.xml"]);
    for (name, value) in [
        ("etag", format!("\"{blob}\"").as_str()),
        ("hob-commit", &id),
        ("hob-mode", "100644"),
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", "5"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let plus = site.get("/git/blob/acme/fix%2Fone?path=a+b%2Fx.xml");
    assert_eq!((plus.status, plus.text().as_str()), (200, "<a/>\n"));
    let binary = site.get("/git/blob/acme.git/HEAD?path=bin");
    assert_eq!(binary.status, 404, "there is no acme.git");
    let binary = site.get("/git/blob/acme/HEAD?path=bin");
    assert_eq!((binary.status, &*binary.body), (200, &b"\0\xff"[..]));
    assert_eq!(binary.header("content-type"), Some("application/octet-stream"));
    let run = site.get(&format!("/git/blob/acme/{head}?path=run"));
    assert_eq!((run.status, run.header("hob-mode")), (200, Some("100755")));
    assert_eq!(run.header("cache-control"), Some("public, max-age=31536000, immutable"));
    let log = String::from_utf8(site.stop().out).unwrap();
    let line = log.lines().find(|line| line.contains("a+b%2Fx.xml")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["status"], &line["bytes"]), (&200.into(), &5.into()), "{line}");
    for phase in ["queue_us", "ref_us", "object_us"] {
        assert!(line[phase].is_u64(), "{phase}: {line}");
    }
}

#[test]
fn what_a_client_has_is_not_sent_again_until_its_branch_moves() {
    let world = world("");
    commit(&world, "acme", &[("f", b"0123456789")]);
    let site = serve(&world);
    let target = "/git/blob/acme/main?path=f";
    let first = site.get(target);
    let tag = first.header("etag").unwrap().to_owned();
    for has in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let answer = site.ask("GET", target, &format!("If-None-Match: {has}\r\n"), b"");
        assert_eq!((answer.status, answer.body.len()), (304, 0), "{has}");
        assert_eq!(answer.header("etag"), Some(&*tag));
    }
    // To know that it has not changed, its object is not read.
    let object = git(&world, "acme", &["rev-parse", "main:f"]);
    let object = world.path("work/srv/acme/.git/objects").join(&object[..2]).join(&object[2..]);
    let elsewhere = world.path("work/elsewhere");
    std::fs::rename(&object, &elsewhere).unwrap();
    let fresh = serve(&world);
    let has = format!("If-None-Match: {tag}\r\n");
    assert_eq!(fresh.ask("GET", target, &has, b"").status, 304);
    assert_eq!(fresh.get(target).status, 422);
    fresh.stop();
    std::fs::rename(&elsewhere, &object).unwrap();
    commit(&world, "acme", &[("f", b"new")]);
    let answer = site.ask("GET", target, &has, b"");
    assert_eq!((answer.status, answer.text().as_str()), (200, "new"));
    site.stop();
}

#[test]
fn one_range_of_bytes_is_sent_and_of_more_the_whole() {
    let world = world("");
    commit(&world, "acme", &[("f", b"0123456789"), ("empty", b"")]);
    let site = serve(&world);
    let target = "/git/blob/acme/main?path=f";
    let tag = site.get(target).header("etag").unwrap().to_owned();
    for (range, status, body, told) in [
        ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
        ("bytes=7-", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-2", 206, "89", Some("bytes 8-9/10")),
        ("bytes=8-99", 206, "89", Some("bytes 8-9/10")),
        ("bytes=10-", 416, "", Some("bytes */10")),
        ("bytes=0-1,3-4", 200, "0123456789", None),
        ("lines=1-2", 200, "0123456789", None),
    ] {
        let answer = site.ask("GET", target, &format!("Range: {range}\r\n"), b"");
        assert_eq!((answer.status, answer.text().as_str()), (status, body), "{range}");
        assert_eq!(answer.header("content-range"), told, "{range}");
    }
    for (tag, status) in [(tag.as_str(), 206), ("\"other\"", 200)] {
        let fields = format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n");
        assert_eq!(site.ask("GET", target, &fields, b"").status, status, "{tag}");
    }
    let head = site.ask("HEAD", target, "", b"");
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("10"), 0));
    let empty = site.get("/git/blob/acme/main?path=empty");
    assert_eq!((empty.status, empty.header("content-length")), (200, Some("0")));
    site.stop();
}

#[test]
fn a_branch_that_moves_moves_the_answer_in_the_same_moment() {
    let world = world("");
    let site = {
        commit(&world, "acme", &[("f", b"0")]);
        serve(&world)
    };
    let mut kept = site.keep();
    for round in 1..25 {
        let text = round.to_string();
        commit(&world, "acme", &[("f", text.as_bytes())]);
        if round % 5 == 0 {
            git(&world, "acme", &["gc", "--quiet", "--prune=now"]);
        }
        let answer = kept.get("/git/blob/acme/main?path=f");
        assert_eq!((answer.status, answer.text()), (200, text));
    }
    drop(kept);
    site.stop();
}

/// A symbolic link is its text, a pointer of Git LFS is as it is, and says what it points to.
#[test]
fn links_and_pointers_are_not_followed() {
    let world: World = world("");
    let oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
    let text =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12345\n");
    std::fs::create_dir_all(world.path("work/srv/acme")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.path("work/srv/acme/link")).unwrap();
    commit(&world, "acme", &[("pointer", text.as_bytes())]);
    let site = serve(&world);
    let link = site.get("/git/blob/acme/main?path=link");
    assert_eq!((link.status, link.text().as_str()), (200, "/etc/passwd"));
    assert_eq!(link.header("hob-mode"), Some("120000"));
    let pointer = site.get("/git/blob/acme/main?path=pointer");
    assert_eq!((pointer.status, pointer.text()), (200, text));
    assert_eq!(pointer.header("hob-lfs"), Some(format!("{oid} 12345").as_str()));
    site.stop();
}
