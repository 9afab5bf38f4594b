//! What is no name, what is not there, what is too large, and tables that say nothing sensible.

use hob_tests::run::End;
use hob_tests::site::Site;
use hob_tests::wait;

use super::{commit, git, serve, world};

fn status(site: &Site, target: &str) -> u16 {
    site.get(&format!("/git{target}")).status
}

#[test]
fn what_is_no_name_is_refused_before_it_is_looked_for() {
    let world = world("");
    let id = commit(&world, "acme", &[("f", b"1"), ("d/g", b"2"), (".gitignore", b"3")]);
    git(&world, "acme", &["tag", "both"]);
    let newer = commit(&world, "acme", &[("f", b"4")]);
    git(&world, "acme", &["branch", "both"]);
    let site = serve(&world);
    for (rev, expected) in [
        ("main", 200),
        ("--output=/tmp/x", 400),
        (":/text", 400),
        ("a..b", 400),
        ("a%5E%7B/x%7D", 400),
        ("@%7B-1%7D", 400),
        ("HEAD~1", 400),
        ("main%00", 400),
        ("main.lock", 400),
        ("a//b", 400),
        ("", 400),
        ("%FF%FE", 404),
        ("%252F", 404),
        ("both", 409),
        (&id[..39], 404),
        (&newer, 200),
        (&"1".repeat(40), 422),
    ] {
        assert_eq!(status(&site, &format!("/blob/acme/{rev}?path=f")), expected, "{rev}");
    }
    assert_eq!(status(&site, &format!("/blob/acme/{}?path=f", "x".repeat(2000))), 400);
    assert_eq!(status(&site, &format!("/blob/acme/{}?path=f", "x".repeat(65_536))), 414);
    for (path, expected) in [
        (".gitignore", 200),
        ("..", 400),
        ("../x", 400),
        ("/etc/passwd", 400),
        ("", 400),
        ("d//g", 400),
        ("d/", 400),
        (".git/config", 400),
        ("d/.GIT/x", 400),
        ("f%00", 400),
        ("d", 409),
        ("f/g", 404),
        ("absent", 404),
    ] {
        assert_eq!(status(&site, &format!("/blob/acme/main?path={path}")), expected, "{path}");
    }
    for (project, expected) in [
        ("absent", 404),
        (".git", 400),
        ("-x", 400),
        ("a%2Fb", 400),
        ("a%0Ab", 400),
        ("%2E%2E", 404),
    ] {
        assert_eq!(status(&site, &format!("/blob/{project}/main?path=f")), expected, "{project}");
    }
    for target in ["", "/", "/blob", "/blob/acme", "/other", "/tree/acme/main?path=f"] {
        assert_eq!(status(&site, target), 404, "{target}");
    }
    assert_eq!(status(&site, "/blob/acme/main"), 400);
    assert_eq!(site.ask("POST", "/git/blob/acme/main?path=f", "", b"x").status, 405);
    site.stop();
}

#[test]
fn limits_and_refs_that_may_be_named_are_kept() {
    let world = world("blob_mb = 1\nrefs = [\"refs/heads/open/*\"]\n");
    let id = commit(&world, "acme", &[("large", &vec![b'x'; (1 << 20) + 1]), ("f", b"1")]);
    git(&world, "acme", &["branch", "open/one"]);
    let site = serve(&world);
    assert_eq!(status(&site, "/blob/acme/open/one?path=f"), 200);
    assert_eq!(status(&site, "/blob/acme/open/one?path=large"), 413);
    assert_eq!(status(&site, "/blob/acme/main?path=f"), 404);
    assert_eq!(status(&site, &format!("/blob/acme/{id}?path=f")), 403);
    // What may not be named is not told from what is not there.
    let [denied, absent] = ["main", "gone"].map(|rev| {
        let answer = site.get(&format!("/git/blob/acme/{rev}?path=f"));
        let head = answer.head.lines().filter(|line| !line.starts_with("date:"));
        (head.map(str::to_owned).collect::<Vec<_>>(), answer.body)
    });
    assert_eq!(denied, absent);
    site.stop();
}

/// What the system lacks is no fault of the repository's, and no file is absent for it.
#[test]
fn a_site_without_descriptors_says_neither_absent_nor_broken() {
    let world = world("jobs = 1\n");
    commit(&world, "acme", &[("d/f", b"1")]);
    let site = serve(&world);
    // A site answers for repositories before its loop is up, which opens descriptors until then.
    wait::until("the loop answers", || {
        (site.control(&world, "/ready").status == 200).then_some(())
    });
    let mut kept = site.keep();
    assert_eq!(kept.get("/git/blob/gone/main?path=d/f").status, 404);
    let pid = rustix::process::Pid::from_raw(site.pid().cast_signed());
    let open = std::fs::read_dir(format!("/proc/{}/fd", site.pid())).unwrap().count() as u64;
    let limit = |most: u64| {
        let limit = rustix::process::Rlimit { current: Some(most), maximum: Some(4096) };
        rustix::process::prlimit(pid, rustix::process::Resource::Nofile, limit).unwrap();
    };
    let mut statuses = Vec::new();
    for spare in 0..8 {
        limit(open + spare);
        statuses.push(kept.get("/git/blob/acme/main?path=d/f").status);
    }
    assert!(statuses.starts_with(&[500]) && statuses.ends_with(&[200]), "{statuses:?}");
    assert!(statuses.iter().all(|status| [500, 200].contains(status)), "{statuses:?}");
    limit(1024);
    drop(kept);
    site.stop();
}

#[test]
fn nothing_is_written() {
    let world = world("");
    commit(&world, "acme", &[("f", b"1")]);
    // What git itself would run.
    git(&world, "acme", &["config", "core.fsmonitor", "touch ran"]);
    git(&world, "acme", &["config", "core.alternateRefsCommand", "touch ran"]);
    let listing = || {
        let mut all = Vec::new();
        let mut left = vec![world.path("work/srv")];
        while let Some(dir) = left.pop() {
            for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    left.push(entry.path());
                }
                let seen = entry.metadata().unwrap();
                all.push((entry.path(), seen.len(), seen.modified().unwrap()));
            }
        }
        all.sort();
        all
    };
    let before = listing();
    let site = serve(&world);
    assert_eq!(status(&site, "/blob/acme/main?path=f"), 200);
    assert_eq!(status(&site, "/blob/acme/gone?path=f"), 404);
    site.stop();
    assert_eq!(listing(), before);
}

#[test]
fn tables_that_make_no_sense_are_refused_with_what_to_write() {
    for (keys, told) in [
        ("jobs = 0\n", "jobs = 0: it is 1 to 256"),
        ("blob_mb = 0\n", "blob_mb = 0: it is 1 to 65536 mebibytes"),
        ("refs = [\"heads/*\"]\n", "write it as \"refs/heads/*\""),
        ("refs = []\n", "refs: it names no ref"),
        ("owners = [\"no such user\"]\n", "there is no user `no such user` here"),
        ("isolation = \"fork\"\n", "git takes `refs`"),
        ("branch = \"x\"\n", "unknown key `branch`"),
    ] {
        let world = world(keys);
        let trusted = world.hob(&["trust", "."]).go();
        let served = world.hob(&["serve", ".", "--listen", "0"]).go();
        let text = trusted.complaint() + &served.complaint();
        assert!(text.contains(told) && served.end != End::Code(0), "{keys}: {text}");
    }
    let world = world("");
    std::fs::remove_dir(world.path("work/srv")).unwrap();
    let trusted = world.hob(&["trust", "."]).go();
    assert!(trusted.complaint().contains("is no folder"), "{trusted:?}");
}
