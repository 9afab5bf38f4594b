//! Repositories that are broken, hostile, or not what they seem.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use hob_git::{Failure, Terms};

use crate::repository::{Place, bytes, usual};

const ABSENT: Failure = Failure::Absent("project");

#[test]
fn nothing_outside_the_root_is_a_project() {
    let place = Place::new();
    place.commit("acme", &[("f", b"1")]);
    let outside = place.dir.path().join("outside");
    std::fs::rename(place.root().join("acme"), &outside).expect("moved");
    symlink(&outside, place.root().join("link")).expect("a link");
    std::fs::create_dir(place.root().join("file")).expect("a folder");
    let text = format!("gitdir: {}/.git\n", outside.display());
    std::fs::write(place.root().join("file/.git"), text).expect("written");
    std::fs::create_dir(place.root().join("half")).expect("a folder");
    symlink(outside.join(".git"), place.root().join("half/.git")).expect("a link");
    let mut reader = place.reader(usual());
    for project in ["link", "file", "half", "absent"] {
        assert_eq!(bytes(&mut reader, project, "main", "f"), Err(ABSENT), "{project}");
    }
    assert!(matches!(bytes(&mut reader, "../outside", "main", "f"), Err(Failure::Name(_))));
}

#[test]
fn what_is_checked_out_is_no_repository() {
    let place = Place::new();
    place.commit("other", &[("f", b"of the other")]);
    place.commit("acme", &[("f", b"its own")]);
    for name in ["HEAD", "objects", "refs", "config"] {
        let copied = Command::new("cp")
            .arg("-a")
            .arg(place.root().join("other/.git").join(name))
            .arg(place.root().join("acme"))
            .status();
        assert!(copied.expect("cp runs").success(), "{name}");
    }
    let mut reader = place.reader(usual());
    assert_eq!(bytes(&mut reader, "acme", "main", "f"), Ok(b"its own".to_vec()));
}

#[test]
fn a_file_over_the_limit_is_refused_before_it_is_read() {
    let place = Place::new();
    place.commit("acme", &[("large", &[b'x'; 5000]), ("small", b"1")]);
    for packed in [false, true] {
        if packed {
            place.git("acme", &["gc", "--quiet"]);
        }
        let mut reader = place.reader(Terms { blob_bytes: 4999, ..usual() });
        let failure = Failure::TooLarge { bytes: 5000, most: 4999 };
        assert_eq!(bytes(&mut reader, "acme", "main", "large"), Err(failure));
        assert_eq!(bytes(&mut reader, "acme", "main", "small"), Ok(b"1".to_vec()));
    }
}

/// The path of a loose object.
fn loose(place: &Place, at: &str, what: &str) -> (String, std::path::PathBuf) {
    let id = place.line(at, &["rev-parse", what]);
    let path = place.root().join(at).join(".git/objects").join(&id[..2]).join(&id[2..]);
    (id, path)
}

fn replace(path: &std::path::Path, bytes: &[u8]) {
    std::fs::remove_file(path).expect("removed");
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn an_object_that_is_missing_or_broken_is_named() {
    let place = Place::new();
    place.commit("acme", &[("f", b"one"), ("g", b"two"), ("h", b"three")]);
    let object = |id: &str, what| Err(Failure::Object { id: id.to_owned(), what });
    let mut reader = place.reader(usual());
    let (id, path) = loose(&place, "acme", "HEAD:f");
    let whole = std::fs::read(&path).expect("an object");
    replace(&path, &whole[..whole.len() / 2]);
    assert_eq!(bytes(&mut reader, "acme", "main", "f"), object(&id, "broken"));
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(bytes(&mut reader, "acme", "main", "f"), object(&id, "missing"));
    // What is well-formed and has another content than its id says.
    let (id, path) = loose(&place, "acme", "HEAD:g");
    let (_, other) = loose(&place, "acme", "HEAD:h");
    replace(&path, &std::fs::read(other).expect("an object"));
    assert_eq!(bytes(&mut reader, "acme", "main", "g"), object(&id, "broken"));
    // Once it is there again it is read.
    replace(&path, &deflated(b"blob 3\0two"));
    assert_eq!(bytes(&mut reader, "acme", "main", "g"), Ok(b"two".to_vec()));
    let (id, path) = loose(&place, "acme", "HEAD^{tree}");
    std::fs::remove_file(path).expect("removed");
    let mut reader = place.reader(usual());
    assert_eq!(bytes(&mut reader, "acme", "main", "g"), object(&id, "missing"));
}

/// As zlib writes it, by the interpreter that the tests have at hand.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let code = "import sys,zlib; sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))";
    let mut child = Command::new("python3")
        .args(["-c", code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    output.stdout
}

#[test]
fn what_is_larger_than_it_says_is_broken() {
    let place = Place::new();
    place.commit("acme", &[("f", b"one")]);
    let (id, path) = loose(&place, "acme", "HEAD:f");
    replace(&path, &deflated(&[&b"blob 3\0"[..], &vec![0; 64 << 20]].concat()));
    let mut reader = place.reader(usual());
    let failure = Failure::Object { id, what: "broken" };
    assert_eq!(bytes(&mut reader, "acme", "main", "f"), Err(failure));
}

#[test]
fn a_broken_pack_breaks_what_is_in_it_and_nothing_else() {
    let place = Place::new();
    place.commit("acme", &[("f", &[b'x'; 3000])]);
    place.git("acme", &["gc", "--quiet"]);
    place.commit("acme", &[("g", b"loose")]);
    let packs = place.root().join("acme/.git/objects/pack");
    let pack = std::fs::read_dir(packs)
        .expect("a folder")
        .map(|each| each.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|end| end == "pack"))
        .expect("a pack");
    let whole = std::fs::read(&pack).expect("a pack");
    let mut broken = whole.clone();
    let middle = 12 + 40;
    broken[middle..whole.len() - 20].fill(0xff);
    replace(&pack, &broken);
    let mut reader = place.reader(usual());
    let found = bytes(&mut reader, "acme", "main", "f");
    assert!(matches!(found, Err(Failure::Object { .. })), "{found:?}");
    assert_eq!(bytes(&mut reader, "acme", "main", "g"), Ok(b"loose".to_vec()));
    replace(&pack, &whole);
    assert_eq!(bytes(&mut reader, "acme", "main", "f"), Ok(vec![b'x'; 3000]));
    // An index whose pack is gone.
    std::fs::remove_file(&pack).expect("removed");
    let mut reader = place.reader(usual());
    let found = bytes(&mut reader, "acme", "main", "f");
    assert!(matches!(found, Err(Failure::Object { .. })), "{found:?}");
}

#[test]
fn formats_that_are_not_known_are_refused_and_includes_are_not_followed() {
    let place = Place::new();
    place.commit("acme", &[("f", b"1")]);
    let config = place.root().join("acme/.git/config");
    let usual_text = std::fs::read_to_string(&config).expect("a configuration");
    let secret = place.dir.path().join("secret");
    std::fs::write(&secret, "[extensions]\n\tobjectformat = sha256\n").expect("written");
    let mut reader = place.reader(usual());
    let mut with = |text: &str| {
        std::fs::write(&config, text).expect("written");
        bytes(&mut reader, "acme", "main", "f")
    };
    assert_eq!(
        with(&format!("{usual_text}[include]\n\tpath = {}\n", secret.display())),
        Ok(b"1".to_vec())
    );
    let newer = usual_text.replace("repositoryformatversion = 0", "repositoryformatversion = 1");
    assert_eq!(with(&format!("{newer}[extensions]\n\tpartialClone = origin\n")), Ok(b"1".to_vec()));
    for wrong in [
        format!("{newer}[extensions]\n\trefStorage = other\n"),
        format!("{newer}[extensions]\n\tsomethingNew = true\n"),
        usual_text.replace("repositoryformatversion = 0", "repositoryformatversion = 2"),
        "[core\n".to_owned(),
        format!("{usual_text}# {}\n", "x".repeat(10 << 20)),
    ] {
        let found = with(&wrong);
        assert!(matches!(found, Err(Failure::Repository(_))), "{found:?}");
    }
    assert_eq!(with(&usual_text), Ok(b"1".to_vec()));
}

#[test]
fn a_ref_that_is_broken_is_no_other_revision() {
    let place = Place::new();
    place.commit("acme", &[("f", b"1")]);
    place.git("acme", &["pack-refs", "--all"]);
    let mut reader = place.reader(usual());
    for text in ["", "garbage\n", "ref: ../../x\n", "ref: HEAD\n", "1234\n"] {
        place.write("acme/.git/refs/heads/main", text.as_bytes());
        let found = bytes(&mut reader, "acme", "main", "f");
        assert!(matches!(found, Err(Failure::Repository(_))), "{text:?}: {found:?}");
    }
}

#[test]
fn a_long_chain_of_deltas_is_read() {
    let place = Place::new();
    place.git("acme", &["init", "--quiet"]);
    let mut stream = String::from("");
    for version in 0..1500 {
        let text: String =
            (0..50).map(|line| format!("line {line} {}\n", version.max(line))).collect();
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter A <a@example.org> {version} +0000\ndata 1\nx\n\
             M 100644 inline f\ndata {}\n{text}\n",
            text.len()
        ));
    }
    let mut child = Command::new("git")
        .args(["fast-import", "--quiet", "--depth=4000"])
        .current_dir(place.root().join("acme"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("git runs");
    child.stdin.take().expect("a pipe").write_all(stream.as_bytes()).expect("written");
    assert!(child.wait().expect("it ends").success());
    let mut reader = place.reader(usual());
    let first = place.line("acme", &["rev-list", "--max-parents=0", "main"]);
    for rev in ["main", &first] {
        let told = place.git("acme", &["cat-file", "blob", &format!("{rev}:f")]);
        assert_eq!(bytes(&mut reader, "acme", rev, "f"), Ok(told), "{rev}");
    }
}

#[test]
fn a_shallow_or_partial_clone_has_what_it_has() {
    let place = Place::new();
    let first = place.commit("base", &[("f", b"1")]);
    place.commit("base", &[("f", b"2")]);
    place.git("base", &["config", "uploadpack.allowFilter", "true"]);
    let base = format!("file://{}", place.root().join("base").display());
    place.git("", &["clone", "--quiet", "--bare", "--depth=1", &base, "shallow.git"]);
    place.git("", &["clone", "--quiet", "--bare", "--filter=blob:none", &base, "partial.git"]);
    let mut reader = place.reader(usual());
    assert_eq!(bytes(&mut reader, "shallow", "main", "f"), Ok(b"2".to_vec()));
    let missing = |id: String| Err(Failure::Object { id, what: "missing" });
    assert_eq!(bytes(&mut reader, "shallow", &first, "f"), missing(first));
    let blob = place.line("base", &["rev-parse", "main:f"]);
    assert_eq!(bytes(&mut reader, "partial", "main", "f"), missing(blob));
}
