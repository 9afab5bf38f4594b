//! What is read is what git reads, by every way that a file may be asked for.

use hob_git::{Failure, Pattern, Terms};

use crate::repository::{Place, bytes, get, usual};

/// All files of all commits of a repository, beside `git cat-file blob`.
fn compare(place: &Place, at: &str, rev: &str) -> usize {
    let mut reader = place.reader(usual());
    let listing = place.git(at, &["ls-tree", "-r", "-z", "--full-tree", rev]);
    let mut count = 0;
    for line in listing.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|byte| *byte == b'\t').expect("a tab");
        let words = String::from_utf8(line[..tab].to_vec()).expect("text");
        let mut words = words.split(' ');
        let (mode, kind, id) = (words.next(), words.next(), words.next().expect("an id"));
        let found = get(&mut reader, at, rev, &line[tab + 1..]);
        if kind != Some("blob") {
            let failure = Failure::NoFile { kind: "submodule", id: id.to_owned() };
            assert_eq!(found.map(|_| ()), Err(failure));
            continue;
        }
        let (located, blob) = found.expect("a file");
        assert_eq!(*blob.bytes, place.git(at, &["cat-file", "blob", id]), "{line:?}");
        assert_eq!((Some(&*format!("{:o}", located.mode)), &*located.oid), (mode, id));
        count += 1;
    }
    count
}

fn files() -> Vec<(&'static str, &'static [u8])> {
    vec![
        ("a.xml", b"<a/>\n"),
        ("deep/er/and/deeper/b", b"\0\xff binary"),
        ("empty", b""),
        ("name with spaces", b"1"),
        ("line\nend", b"2"),
        ("gr\u{fc}n/\u{1f33f}", b"3"),
        ("-n", b"4"),
        ("a", b"sorted before a.xml and a-b"),
        ("a-b/c", b"5"),
        ("...", b"6"),
    ]
}

#[test]
fn every_file_is_equal_to_gits_loose_and_packed() {
    let place = Place::new();
    place.commit("acme", &files());
    std::os::unix::fs::symlink("/etc/passwd", place.root().join("acme/link")).expect("a link");
    place.write("acme/run.sh", b"#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.root().join("acme/run.sh"), mode).expect("a mode");
    place.commit("below", &[("x", b"x")]);
    place.git("acme", &["submodule", "--quiet", "add", "../below", "module"]);
    for version in 0..60 {
        let text: String = (0..400).map(|line| format!("line {line} of {version}\n")).collect();
        place.write("acme/long.txt", text.replace("line 7 ", "a change ").as_bytes());
        place.git("acme", &["add", "--all"]);
        place.git("acme", &["commit", "--quiet", "--message", "more"]);
    }
    assert_eq!(compare(&place, "acme", "main"), files().len() + 4);
    place.git("acme", &["gc", "--quiet", "--aggressive"]);
    assert_eq!(compare(&place, "acme", "main"), files().len() + 4);
    let old = place.line("acme", &["rev-parse", "HEAD~50"]);
    compare(&place, "acme", &old);
    place.git("acme", &["multi-pack-index", "write"]);
    compare(&place, "acme", "HEAD");
    let mut reader = place.reader(usual());
    let (link, text) = get(&mut reader, "acme", "main", b"link").expect("a link");
    assert_eq!((link.mode, &*text.bytes), (0o120_000, &b"/etc/passwd"[..]));
}

#[test]
fn sha256_is_read_alike() {
    let place = Place::new();
    place.git("acme", &["init", "--quiet", "--object-format=sha256"]);
    let id = place.commit("acme", &files());
    assert_eq!(id.len(), 64);
    assert_eq!(compare(&place, "acme", "main"), files().len());
    place.git("acme", &["gc", "--quiet"]);
    assert_eq!(compare(&place, "acme", &id), files().len());
}

#[test]
fn bare_repositories_and_alternates_below_the_root_are_read() {
    let place = Place::new();
    place.commit("base", &[("f", b"1")]);
    place.git("", &["clone", "--quiet", "--bare", "base", "bare.git"]);
    place.git("", &["clone", "--quiet", "--bare", "--shared", "base", "shared.git"]);
    let mut reader = place.reader(usual());
    for project in ["base", "bare", "bare.git", "shared"] {
        assert_eq!(bytes(&mut reader, project, "main", "f"), Ok(b"1".to_vec()), "{project}");
    }
    let outside = place.dir.path().join("outside");
    std::fs::rename(place.root().join("base"), &outside).expect("moved");
    let alternates = place.root().join("shared.git/objects/info/alternates");
    std::fs::write(alternates, format!("{}/.git/objects\n", outside.display())).expect("written");
    assert_eq!(
        bytes(&mut reader, "shared", "main", "f"),
        Err(Failure::Repository("its alternates lie outside the root"))
    );
}

#[test]
fn a_revision_is_found_as_it_is_said() {
    let place = Place::new();
    let first = place.commit("acme", &[("f", b"first")]);
    place.git("acme", &["tag", "--annotate", "v1", "--message", "a tag"]);
    place.git("acme", &["tag", "--annotate", "v1-again", "v1", "--message", "a tag of a tag"]);
    place.git("acme", &["tag", "of-a-file", "HEAD:f"]);
    place.git("acme", &["tag", "of-a-folder", "HEAD^{tree}"]);
    place.git("acme", &["branch", "both"]);
    place.git("acme", &["tag", "both"]);
    place.git("acme", &["branch", "with/a/slash"]);
    place.git("acme", &["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    place.git("acme", &["symbolic-ref", "refs/heads/round", "refs/heads/trip"]);
    place.git("acme", &["symbolic-ref", "refs/heads/trip", "refs/heads/round"]);
    place.git("acme", &["update-ref", "refs/secret/x", "HEAD"]);
    place.git("acme", &["symbolic-ref", "refs/heads/way-in", "refs/secret/x"]);
    let second = place.commit("acme", &[("f", b"second")]);
    place.git("acme", &["branch", "differ"]);
    place.git("acme", &["tag", "differ", &first]);
    for packed in [false, true] {
        if packed {
            place.git("acme", &["pack-refs", "--all"]);
        }
        let mut reader = place.reader(usual());
        let mut text = |rev: &str| {
            bytes(&mut reader, "acme", rev, "f")
                .map(|bytes| String::from_utf8(bytes).expect("text"))
        };
        for rev in ["v1", "v1-again", "of-a-folder", "both", "with/a/slash", "refs/tags/v1", &first]
        {
            assert_eq!(text(rev).as_deref(), Ok("first"), "{rev}");
        }
        for rev in ["main", "HEAD", "alias", "refs/heads/main", &second] {
            assert_eq!(text(rev).as_deref(), Ok("second"), "{rev}");
        }
        assert_eq!(text("differ"), Err(Failure::Ambiguous));
        assert_eq!(text("refs/tags/differ").as_deref(), Ok("first"));
        for rev in ["absent", "refs/secret/x", "way-in", "secret/x", "heads/main", &second[..7]] {
            assert_eq!(text(rev), Err(Failure::Absent("revision")), "{rev}");
        }
        assert_eq!(text("of-a-file"), Err(Failure::Absent("revision with files")));
        assert!(matches!(text("round"), Err(Failure::Repository(_))));
        let missing = "1".repeat(40);
        assert_eq!(text(&missing), Err(Failure::Object { id: missing, what: "missing" }));
    }
}

#[test]
fn only_refs_that_are_allowed_are_named() {
    let place = Place::new();
    let id = place.commit("acme", &[("f", b"1")]);
    place.git("acme", &["branch", "open/one"]);
    place.git("acme", &["tag", "v1"]);
    let refs = Some(vec![Pattern::new("refs/heads/open/*").expect("a pattern")]);
    let mut reader = place.reader(Terms { refs: refs.clone(), ..usual() });
    assert_eq!(bytes(&mut reader, "acme", "open/one", "f"), Ok(b"1".to_vec()));
    for rev in ["main", "HEAD", "v1", "refs/heads/main"] {
        let absent = Err(Failure::Absent("revision"));
        assert_eq!(bytes(&mut reader, "acme", rev, "f"), absent, "{rev}");
    }
    assert_eq!(bytes(&mut reader, "acme", &id, "f"), Err(Failure::Ids));
    let mut reader = place.reader(Terms { refs, oids: Some(true), ..usual() });
    assert_eq!(bytes(&mut reader, "acme", &id, "f"), Ok(b"1".to_vec()));
}

#[test]
fn replacements_and_grafts_are_not_followed() {
    let place = Place::new();
    let first = place.commit("acme", &[("f", b"first")]);
    let second = place.commit("acme", &[("f", b"second")]);
    place.git("acme", &["replace", &second, &first]);
    let replaced = place.line("acme", &["rev-parse", "HEAD:f"]);
    let other = place.line("acme", &["rev-parse", &format!("{first}:f")]);
    place.git("acme", &["replace", &replaced, &other]);
    let mut reader = place.reader(usual());
    assert_eq!(bytes(&mut reader, "acme", "main", "f"), Ok(b"second".to_vec()));
    assert_eq!(bytes(&mut reader, "acme", &second, "f"), Ok(b"second".to_vec()));
}
