//! Refs in tables: as git made them, amid its changes, and broken.

use std::path::{Path, PathBuf};

use hob_git::{Failure, Reader};

use crate::repository::{Place, bytes, series, usual};

/// A repository `acme.git` that has the tables which are stored beside these tests, and the objects
/// that they name; the refs that git says it has, with their ids.
fn stored(kind: &str) -> (Place, PathBuf, Vec<(String, String)>) {
    let place = Place::new();
    place.git("acme.git", &["init", "--quiet", "--bare", "--object-format", kind]);
    let commit = |text: &str, parent: &[&str]| {
        place.write("text", text.as_bytes());
        let blob = place.line("acme.git", &["hash-object", "-w", "../text"]);
        place.git("acme.git", &["update-index", "--add", "--cacheinfo", "100644", &blob, "f"]);
        let tree = place.line("acme.git", &["write-tree"]);
        place.line("acme.git", &[&["commit-tree", "-m", text], parent, &[&*tree]].concat())
    };
    let old = commit("old", &[]);
    commit("new", &["-p", &old]);
    place.git("acme.git", &["tag", "--annotate", "--message", "tag", "v1", &old]);
    place.git("acme.git", &["config", "core.repositoryFormatVersion", "1"]);
    place.git("acme.git", &["config", "extensions.refStorage", "reftable"]);
    let tables = place.root().join("acme.git/reftable");
    std::fs::create_dir(&tables).expect("a folder");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(kind);
    for each in std::fs::read_dir(&from).expect("stored tables") {
        let each = each.expect("a table");
        std::fs::copy(each.path(), tables.join(each.file_name())).expect("copied");
    }
    let refs = std::fs::read_to_string(from.join("refs")).expect("the refs");
    let pairs = refs.lines().map(|line| line.split_once(' ').expect("a name and an id"));
    let pairs = pairs.map(|(name, id)| (name.to_owned(), id.to_owned())).collect();
    (place, tables, pairs)
}

fn id(reader: &mut Reader, rev: &str) -> Result<String, Failure> {
    let asked = hob_git::Asked { project: b"acme", rev: rev.as_bytes(), path: b"f" };
    reader.locate(&asked).map(|located| located.commit.expect("a commit"))
}

#[test]
fn each_ref_is_what_git_says_it_is() {
    for (kind, count) in [("sha1", 300), ("sha256", 40)] {
        let (place, _, refs) = stored(kind);
        // One topic was deleted; a branch, a tag and a symbolic ref came.
        assert_eq!(refs.len(), count + 2);
        let mut reader = place.reader(usual());
        let old = id(&mut reader, "refs/heads/topic/1").expect("a topic");
        for (name, expected) in &refs {
            let expected = if name == "refs/tags/v1" { &old } else { expected };
            assert_eq!(id(&mut reader, name).as_ref(), Ok(expected), "{name}");
        }
        for (name, text) in [("HEAD", "new"), ("current", "new"), ("topic/8", "old"), ("v1", "old")]
        {
            assert_eq!(bytes(&mut reader, "acme", name, "f"), Ok(text.into()), "{name}");
        }
        for absent in ["topic/7", "topic/0", "topic/301", "a", "zzz", "refs/heads/topic"] {
            let found = bytes(&mut reader, "acme", absent, "f");
            assert_eq!(found, Err(Failure::Absent("revision")), "{absent}");
        }
    }
}

#[test]
fn broken_tables_are_refused_and_never_another_revision() {
    let (place, tables, _) = stored("sha1");
    let list = std::fs::read_to_string(tables.join("tables.list")).expect("the list");
    let table = tables.join(list.lines().next().expect("a table"));
    let whole = std::fs::read(&table).expect("a table");
    let refused = |why: &str| {
        let found = bytes(&mut place.reader(usual()), "acme", "topic/9", "f");
        assert!(matches!(found, Err(Failure::Repository(_))), "{why}: {found:?}");
    };
    for length in [0, 3, 23, 27, 28, 90, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&table, &whole[..length]).expect("written");
        refused("truncated");
    }
    for at in [0, 4, 6, whole.len() - 1, whole.len() - 60] {
        let mut other = whole.clone();
        other[at] ^= 0x41;
        std::fs::write(&table, other).expect("written");
        refused("head or foot");
    }
    std::fs::write(&table, &whole).expect("written");
    for text in ["../../secret.ref\n", "x/y\n", "absent.ref\n", ".\n", "\n", "\u{0}\n"] {
        std::fs::write(tables.join("tables.list"), text).expect("written");
        refused(text);
    }
    // A table of a repository that names its objects otherwise.
    std::fs::write(tables.join("tables.list"), &list).expect("written");
    let (_other, elsewhere, _) = stored("sha256");
    let name = std::fs::read_to_string(elsewhere.join("tables.list")).expect("the list");
    std::fs::copy(elsewhere.join(name.lines().next().expect("a table")), &table).expect("copied");
    refused("another kind");
    // What says that there are no tables has no refs.
    std::fs::remove_file(tables.join("tables.list")).expect("removed");
    let found = bytes(&mut place.reader(usual()), "acme", "main", "f");
    assert_eq!(found, Err(Failure::Absent("revision")));
}

/// Each byte between head and foot is changed in turn: what is read then is a ref's real value, or
/// refused, or absent, or another id, of which there is no object; never does it fail otherwise.
#[test]
fn a_changed_byte_ends_in_an_answer() {
    let (place, tables, _) = stored("sha1");
    let list = std::fs::read_to_string(tables.join("tables.list")).expect("the list");
    let table = tables.join(list.lines().next().expect("a table"));
    let whole = std::fs::read(&table).expect("a table");
    let mut refused = 0;
    for at in (24..whole.len() - 68).step_by(7) {
        let mut other = whole.clone();
        other[at] = other[at].wrapping_add(131);
        std::fs::write(&table, other).expect("written");
        let mut reader = place.reader(usual());
        for name in ["topic/9", "topic/299", "v1"] {
            match bytes(&mut reader, "acme", name, "f") {
                Ok(text) => assert_eq!(text, b"old"),
                Err(Failure::Repository(_)) => refused += 1,
                Err(Failure::Absent(_) | Failure::Object { .. }) => {}
                Err(other) => panic!("{at}: {other:?}"),
            }
        }
    }
    assert!(refused > 0);
}

/// Pushes, force pushes, deletions and packing of a git that keeps refs in tables, between two
/// requests, in the order of a fixed series.
#[test]
fn no_answer_is_older_than_its_request() {
    let Some(place) = Place::with_reftables() else {
        println!("no git here keeps refs in tables: it is not seen at work");
        return;
    };
    place.git("acme", &["init", "--quiet", "--ref-format=reftable"]);
    place.git("acme", &["commit", "--quiet", "--allow-empty", "--message", "start"]);
    let mut reader = place.reader(usual());
    for (round, state) in series().take(120).enumerate() {
        let text = format!("round {round}");
        place.write("acme/f", text.as_bytes());
        place.git("acme", &["add", "f"]);
        let amend: &[&str] = if state >> 62 == 0 { &["--amend"] } else { &[] };
        place.git("acme", &[&["commit", "--quiet", "--all", "--message", "x"], amend].concat());
        match (state >> 33) % 5 {
            0 => drop(place.git("acme", &["pack-refs", "--all", "--prune"])),
            1 => drop(place.git("acme", &["branch", "--force", "side"])),
            2 => {
                place.git("acme", &["reflog", "expire", "--expire=now", "--all"]);
                place.git("acme", &["gc", "--quiet", "--prune=now"]);
            }
            3 if bytes(&mut reader, "acme", "side", "f").is_ok() => {
                place.git("acme", &["branch", "--delete", "--force", "--quiet", "side"]);
                let found = bytes(&mut reader, "acme", "side", "f");
                assert_eq!(found, Err(Failure::Absent("revision")), "round {round}");
            }
            _ => {}
        }
        assert_eq!(bytes(&mut reader, "acme", "main", "f"), Ok(text.clone().into_bytes()));
        assert_eq!(bytes(&mut reader, "acme", "HEAD", "f"), Ok(text.into_bytes()));
    }
}
