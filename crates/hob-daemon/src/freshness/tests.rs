//! Every way in which loaded code can change, with the watch and without it, on a real tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};

use super::fingerprint::{Change, Fingerprint, NotYet, Presence, Sources, Verdict};
use super::listing::What;
use super::watch::{self, Watch};
use super::{Before, Freshness, Suspicion};

/// How long a fingerprint may take to become possible after the last write.
const PATIENCE: Duration = Duration::from_secs(10);

struct Tree {
    root: tempfile::TempDir,
}

/// Code as it is spread in real life: a script's directory with a linked file, a library with a
/// package and a hard-linked file, site-packages with path configuration, a versioned directory
/// behind a link, directories that do not exist or hold nothing.
fn tree() -> Tree {
    let tree = Tree { root: tempfile::tempdir().unwrap() };
    for path in ["lib/a.py", "lib/h.py", "lib/pkg/__init__.py", "site/b.py", "site/y.pth"] {
        tree.write(path, "one");
    }
    for path in [
        "v1/c.py",
        "v2/c.py",
        "shared/l.py",
        "script/main.py",
        "script/old.txt",
        "venv/x",
        "plugins/p",
        "spare/log",
    ] {
        tree.write(path, "one");
    }
    fs::create_dir(tree.path("other")).unwrap();
    fs::create_dir(tree.path("empty")).unwrap();
    fs::hard_link(tree.path("lib/h.py"), tree.path("other/h.py")).unwrap();
    symlink("v1", tree.path("current")).unwrap();
    symlink("v1", tree.path("aside")).unwrap();
    symlink("../shared/l.py", tree.path("script/l.py")).unwrap();
    tree
}

const FILES: [&str; 6] =
    ["lib/a.py", "lib/h.py", "lib/pkg/__init__.py", "site/b.py", "current/c.py", "script/l.py"];
const CANDIDATES: [&str; 1] = ["venv/pyvenv.cfg"];
const DIRECTORIES: [&str; 7] = ["script", "lib", "lib/pkg", "site", "current", "gone", "empty"];
const WHOLE: [&str; 1] = ["plugins"];
const NAMES: [&str; 7] = ["a", "b", "c", "h", "l", "pkg.sub", "json"];

impl Tree {
    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        self.path(path).as_os_str().as_bytes().to_vec()
    }

    fn all(&self, paths: &[&str]) -> BTreeSet<Vec<u8>> {
        paths.iter().map(|path| self.bytes(path)).collect()
    }

    /// The fingerprint of the whole tree, taken at once.
    fn try_build(&self, started_at: SystemTime) -> Result<Fingerprint, NotYet> {
        self.build_after(&Before::default(), started_at)
    }

    /// What is there now of that which it will be made from.
    fn before(&self) -> Before {
        let (files, directories) = (self.all(&FILES), self.all(&DIRECTORIES));
        Before::look(files.iter(), directories.iter())
    }

    fn build_after(&self, before: &Before, started_at: SystemTime) -> Result<Fingerprint, NotYet> {
        let asked = [("spare/log", Presence::File), ("spare/no/such", Presence::Missing)];
        let asked = asked.map(|(path, presence)| (self.bytes(path), presence)).into();
        let links = [("aside", "v1"), ("lib/a.py", "")];
        let links =
            links.map(|(path, target)| (self.bytes(path), target.as_bytes().to_vec())).into();
        let candidates: Vec<_> = CANDIDATES.iter().map(|path| self.bytes(path)).collect();
        let sources = Sources {
            files: &self.all(&FILES),
            candidates: &candidates,
            directories: &self.all(&DIRECTORIES),
            names: &NAMES.iter().map(|name| name.as_bytes().to_vec()).collect(),
            whole: &self.all(&WHOLE),
            asked: &asked,
            links: &links,
        };
        Fingerprint::build(sources, before, started_at)
    }

    /// The fingerprint, as soon as what was written is old enough.
    fn build(&self) -> Fingerprint {
        patiently(|| self.try_build(SystemTime::now()))
    }

    /// Whether the kernel's word is enough in this tree (not so in a container's overlay).
    fn is_local(&self) -> bool {
        let path = std::ffi::CString::new(self.bytes("")).unwrap();
        watch::is_local(&path)
    }
}

fn patiently(build: impl Fn() -> Result<Fingerprint, NotYet>) -> Fingerprint {
    let begin = Instant::now();
    loop {
        match build() {
            Ok(fingerprint) => return fingerprint,
            Err(_) if begin.elapsed() < PATIENCE => std::thread::yield_now(),
            Err(error) => panic!("no fingerprint: {error}"),
        }
    }
}

/// Makes a change and expects this verdict, and no other before; with the watch and without.
#[track_caller]
fn check(change: impl Fn(&Tree), want: Option<(&str, What)>) {
    for watch in [Watch::new(), Watch::none()] {
        let tree = tree();
        let mut freshness = Freshness::with(watch);
        let id = freshness.keep(tree.build());
        for _ in 0..2 {
            assert_eq!(freshness.verdict(id), Verdict::Fresh, "before any change");
        }
        change(&tree);
        let want = match want {
            None => Verdict::Fresh,
            Some((path, what)) => Verdict::Stale(Change { path: tree.bytes(path), what }),
        };
        // Twice, since a change must not be forgotten once it is told.
        for _ in 0..2 {
            assert_eq!(freshness.verdict(id), want);
        }
    }
}

fn set_times(path: &Path, modified: SystemTime) {
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let time = Timespec {
        tv_sec: since.as_secs().try_into().unwrap(),
        tv_nsec: since.subsec_nanos().into(),
    };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
}

/// An edit after which size and modification time are what they were.
fn edit_unseen(path: &Path, text: &str) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, text).unwrap();
    set_times(path, modified);
}

#[test]
fn an_edited_file_is_noticed_whatever_the_edit_preserves() {
    let edited = Some(("lib/a.py", What::Edited));
    check(|tree| tree.write("lib/a.py", "longer than before"), edited);
    check(|tree| tree.write("lib/a.py", "two"), edited);
    check(|tree| edit_unseen(&tree.path("lib/a.py"), "two"), edited);
    check(
        |tree| {
            tree.write("lib/.a.py.swp", "two");
            fs::rename(tree.path("lib/.a.py.swp"), tree.path("lib/a.py")).unwrap();
        },
        edited,
    );
    check(
        |tree| tree.write("lib/pkg/__init__.py", "two"),
        Some(("lib/pkg/__init__.py", What::Edited)),
    );
    let closed = fs::Permissions::from_mode(0o000);
    check(|tree| fs::set_permissions(tree.path("lib/a.py"), closed.clone()).unwrap(), edited);
}

#[test]
fn an_edit_under_another_name_is_noticed() {
    check(|tree| tree.write("other/h.py", "two"), Some(("lib/h.py", What::Edited)));
    check(|tree| tree.write("shared/l.py", "two"), Some(("script/l.py", What::Edited)));
    check(|tree| tree.write("v1/c.py", "two"), Some(("current/c.py", What::Edited)));
}

#[test]
fn an_edit_under_a_name_that_came_later_is_noticed() {
    let edit = |tree: &Tree| {
        fs::hard_link(tree.path("lib/a.py"), tree.path("other/later.py")).unwrap();
        tree.write("other/later.py", "two");
    };
    check(edit, Some(("lib/a.py", What::Edited)));
}

#[test]
fn a_listed_directory_is_compared_with_all_its_entries() {
    check(|tree| tree.write("plugins/new", ""), Some(("plugins", What::Edited)));
    let gone = |tree: &Tree| fs::remove_file(tree.path("plugins/p")).unwrap();
    check(gone, Some(("plugins", What::Edited)));
    check(|tree| tree.write("plugins/p", "two"), None);
}

#[test]
fn what_was_only_asked_for_is_compared_by_whether_it_is_there() {
    check(|tree| tree.write("spare/log", "longer than before"), None);
    let gone = |tree: &Tree| fs::remove_file(tree.path("spare/log")).unwrap();
    check(gone, Some(("spare/log", What::Removed)));
    let comes = |tree: &Tree| fs::create_dir_all(tree.path("spare/no/such")).unwrap();
    check(comes, Some(("spare/no/such", What::Appeared)));
    check(|tree| fs::create_dir_all(tree.path("spare/no/other")).unwrap(), None);
    let other = |tree: &Tree| {
        fs::remove_file(tree.path("spare/log")).unwrap();
        fs::create_dir(tree.path("spare/log")).unwrap();
    };
    check(other, Some(("spare/log", What::Edited)));
    let moved = |tree: &Tree| {
        symlink("v2", tree.path("next")).unwrap();
        fs::rename(tree.path("next"), tree.path("aside")).unwrap();
    };
    check(moved, Some(("aside", What::Edited)));
}

#[test]
fn a_searched_directory_with_its_old_time_back_is_noticed() {
    let add = |tree: &Tree| {
        let modified = fs::metadata(tree.path("lib")).unwrap().modified().unwrap();
        tree.write("lib/lazy.py", "");
        set_times(&tree.path("lib"), modified);
    };
    check(add, Some(("lib", What::Edited)));
}

#[test]
fn what_is_replaced_above_everything_is_noticed() {
    // The directories above the tree are watched too: nothing is looked at from the outside.
    let above = |tree: &Tree| {
        fs::rename(tree.path("site"), tree.path("site.old")).unwrap();
        tree.write("site/y.pth", "one");
        tree.write("site/b.py", "one");
    };
    check(above, Some(("site/b.py", What::Edited)));
}

#[test]
fn a_file_that_comes_earlier_on_the_path_is_noticed() {
    check(|tree| tree.write("script/a.py", "two"), Some(("script/a.py", What::Appeared)));
    check(|tree| tree.write("script/json/x.py", "two"), Some(("script/json", What::Appeared)));
    check(
        |tree| tree.write("empty/a.cpython-311.so", ""),
        Some(("empty/a.cpython-311.so", What::Appeared)),
    );
    check(|tree| tree.write("lib/pkg/sub.py", ""), Some(("lib/pkg/sub.py", What::Appeared)));
    check(
        |tree| tree.write("lib/sitecustomize.py", ""),
        Some(("lib/sitecustomize.py", What::Appeared)),
    );
    check(|tree| tree.write("gone/a.py", ""), Some(("gone", What::Appeared)));
    check(|tree| tree.write("venv/pyvenv.cfg", ""), Some(("venv/pyvenv.cfg", What::Appeared)));
    let link = |tree: &Tree| symlink("nowhere", tree.path("script/json.py")).unwrap();
    check(link, Some(("script/json.py", What::Appeared)));
}

#[test]
fn what_goes_is_noticed() {
    check(
        |tree| fs::remove_file(tree.path("site/b.py")).unwrap(),
        Some(("site/b.py", What::Removed)),
    );
    check(|tree| fs::remove_dir(tree.path("empty")).unwrap(), Some(("empty", What::Removed)));
    let gone = |tree: &Tree| fs::rename(tree.path("lib"), tree.path("lib.old")).unwrap();
    check(gone, Some(("lib/a.py", What::Removed)));
}

#[test]
fn what_is_installed_or_configured_is_noticed() {
    check(|tree| tree.write("site/x.pth", ""), Some(("site/x.pth", What::Appeared)));
    check(|tree| edit_unseen(&tree.path("site/y.pth"), "two"), Some(("site/y.pth", What::Edited)));
    let installed = |tree: &Tree| tree.write("site/new-1.0.dist-info/METADATA", "");
    check(installed, Some(("site/new-1.0.dist-info", What::Appeared)));
}

#[test]
fn what_leads_elsewhere_is_noticed() {
    let retarget = |tree: &Tree| {
        symlink("v2", tree.path("next")).unwrap();
        fs::rename(tree.path("next"), tree.path("current")).unwrap();
    };
    check(retarget, Some(("current/c.py", What::Edited)));
    let relink = |tree: &Tree| {
        fs::remove_file(tree.path("script/l.py")).unwrap();
        symlink("../lib/a.py", tree.path("script/l.py")).unwrap();
    };
    check(relink, Some(("script/l.py", What::Edited)));
    let replace = |tree: &Tree| {
        fs::rename(tree.path("v1"), tree.path("v0")).unwrap();
        tree.write("v1/c.py", "one");
    };
    check(replace, Some(("current/c.py", What::Edited)));
}

#[test]
fn what_no_import_finds_changes_nothing() {
    check(|tree| tree.write("script/output.json", "{}"), None);
    check(|tree| tree.write("script/old.txt", "two"), None);
    check(|tree| fs::remove_file(tree.path("script/old.txt")).unwrap(), None);
    check(|tree| tree.write("lib/__pycache__/a.cpython-311.pyc", ""), None);
    check(|tree| tree.write("lib/pkg/__pycache__/sub.cpython-311.pyc", ""), None);
    check(|tree| tree.write("lib/.a.py.swp", ""), None);
    check(|tree| tree.write("script/main.py", "two"), None);
}

#[test]
fn a_directory_replaced_by_an_equal_one_is_still_searched() {
    for watch in [Watch::new(), Watch::none()] {
        let tree = tree();
        let mut freshness = Freshness::with(watch);
        let id = freshness.keep(tree.build());
        assert_eq!(freshness.verdict(id), Verdict::Fresh);
        fs::rename(tree.path("empty"), tree.path("was-empty")).unwrap();
        fs::create_dir(tree.path("empty")).unwrap();
        assert_eq!(freshness.verdict(id), Verdict::Fresh);
        tree.write("empty/json.py", "");
        let appeared = Change { path: tree.bytes("empty/json.py"), what: What::Appeared };
        assert_eq!(freshness.verdict(id), Verdict::Stale(appeared));
    }
}

#[test]
fn what_is_younger_than_the_zygote_has_no_fingerprint() {
    let tree = tree();
    let started = SystemTime::now();
    let young = tree.try_build(started).unwrap_err();
    assert_eq!(young.change.what, What::Edited);
    drop(tree.build());

    let started = SystemTime::now();
    tree.write("script/json.py", "");
    let young = tree.try_build(started).unwrap_err();
    assert_eq!(young.change, Change { path: tree.bytes("script/json.py"), what: What::Appeared });
    fs::remove_file(tree.path("script/json.py")).unwrap();
    // An unrelated young file in a searched directory is no reason to wait.
    tree.write("script/output.txt", "");
    drop(tree.try_build(started).unwrap());

    fs::remove_file(tree.path("lib/a.py")).unwrap();
    let gone = tree.try_build(SystemTime::now()).unwrap_err();
    assert_eq!(gone.change, Change { path: tree.bytes("lib/a.py"), what: What::Removed });
}

/// Puts something else where a tree has something.
type Switch<'a> = &'a dyn Fn(&Tree);

#[test]
fn what_is_switched_while_a_zygote_loads_has_no_fingerprint() {
    let old = |tree: &Tree| drop(tree.build());
    let switches: [(&str, Switch<'_>); 4] = [
        ("current", &|tree| {
            fs::remove_file(tree.path("current")).unwrap();
            symlink("v2", tree.path("current")).unwrap();
        }),
        ("current", &|tree| fs::rename(tree.path("next"), tree.path("current")).unwrap()),
        ("lib", &|tree| {
            fs::rename(tree.path("lib"), tree.path("gone-lib")).unwrap();
            fs::rename(tree.path("new-lib"), tree.path("lib")).unwrap();
        }),
        ("script/l.py", &|tree| {
            fs::remove_file(tree.path("script/l.py")).unwrap();
            symlink("../lib/a.py", tree.path("script/l.py")).unwrap();
        }),
    ];
    for (at, switch) in switches {
        let tree = tree();
        for path in ["new-lib/a.py", "new-lib/h.py", "new-lib/pkg/__init__.py"] {
            tree.write(path, "two");
        }
        symlink("v2", tree.path("next")).unwrap();
        old(&tree);
        let (before, started) = (tree.before(), SystemTime::now());
        switch(&tree);
        let path = tree.bytes(at);
        // By the age of the step alone, and by what was there before however old the step is.
        let young = tree.try_build(started).unwrap_err();
        assert_eq!(young.change, Change { path: path.clone(), what: What::Edited }, "{at}");
        let later = patiently_none(&tree, &before);
        assert!(later.change.path.starts_with(&path), "{at}: {later}");
    }
}

/// Why there is no fingerprint, when all that there is has become old enough.
fn patiently_none(tree: &Tree, before: &Before) -> NotYet {
    drop(tree.build());
    tree.build_after(before, SystemTime::now()).unwrap_err()
}

#[test]
fn entries_that_come_while_a_zygote_loads_are_no_switch() {
    let tree = tree();
    drop(tree.build());
    let (before, started) = (tree.before(), SystemTime::now());
    tree.write("lib/output.txt", "");
    tree.write("lib/__pycache__/a.pyc", "");
    drop(tree.build_after(&before, started).unwrap());
}

#[test]
fn what_lies_in_an_archive_is_the_archive() {
    let tree = Tree { root: tempfile::tempdir().unwrap() };
    tree.write("lib.zip", "PK");
    let build = || {
        let none = BTreeSet::new();
        let sources = Sources {
            files: &tree.all(&["lib.zip/pkg/mod.py"]),
            candidates: &[],
            directories: &tree.all(&["lib.zip", "lib.zip/pkg"]),
            names: &none,
            whole: &none,
            asked: &BTreeMap::new(),
            links: &BTreeMap::new(),
        };
        Fingerprint::build(sources, &Before::default(), SystemTime::now())
    };
    let mut freshness = Freshness::new();
    let id = freshness.keep(patiently(build));
    assert_eq!(freshness.verdict(id), Verdict::Fresh);
    tree.write("lib.zip", "KP");
    let edited = Change { path: tree.bytes("lib.zip"), what: What::Edited };
    assert_eq!(freshness.verdict(id), Verdict::Stale(edited));
}

#[test]
fn what_concerns_no_import_raises_no_suspicion() {
    let tree = tree();
    if !tree.is_local() {
        println!("skipped: this file system is always compared");
        return;
    }
    let mut freshness = Freshness::new();
    let id = freshness.keep(tree.build());
    let suspicion = |freshness: &Freshness| freshness.kept[&id].suspicion;
    assert_eq!(suspicion(&freshness), Suspicion::Touched);
    assert_eq!(freshness.verdict(id), Verdict::Fresh);
    assert_eq!(suspicion(&freshness), Suspicion::Clear);
    tree.write("script/output.txt", "");
    tree.write("lib/__pycache__/a.pyc", "");
    freshness.drain();
    assert_eq!(suspicion(&freshness), Suspicion::Clear);
    tree.write("lib/a.py", "one");
    freshness.drain();
    assert_eq!(suspicion(&freshness), Suspicion::Touched);
}

#[test]
fn watches_are_shared_and_end_with_the_last_fingerprint() {
    let tree = tree();
    let mut freshness = Freshness::new();
    let first = freshness.keep(tree.build());
    let alone = freshness.watch.len();
    let second = freshness.keep(tree.build());
    assert_eq!(freshness.watch.len(), alone);
    freshness.forget(first);
    assert_eq!(freshness.watch.len(), alone);
    assert_eq!(freshness.verdict(second), Verdict::Fresh);
    tree.write("lib/a.py", "two");
    assert_ne!(freshness.verdict(second), Verdict::Fresh);
    freshness.forget(second);
    assert_eq!(freshness.watch.len(), 0);
    assert_ne!(freshness.verdict(second), Verdict::Fresh, "what is forgotten is not fresh");
}

#[test]
fn an_event_lost_in_the_crowd_is_not_missed() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    if limit > 100_000 {
        println!("skipped: the queue holds {limit} events");
        return;
    }
    let tree = tree();
    let mut freshness = Freshness::new();
    let id = freshness.keep(tree.build());
    assert_eq!(freshness.verdict(id), Verdict::Fresh);
    for round in 0..limit {
        // Each of the two makes at least one event that cannot be merged with the one before.
        fs::write(tree.path(if round % 2 == 0 { "script/x" } else { "script/y" }), "").unwrap();
    }
    tree.write("lib/a.py", "two");
    let edited = Change { path: tree.bytes("lib/a.py"), what: What::Edited };
    assert_eq!(freshness.verdict(id), Verdict::Stale(edited));
}

#[test]
fn a_look_at_800_files_and_one_at_an_empty_queue_are_timed() {
    const FILES: usize = 800;
    let tree = Tree { root: tempfile::tempdir().unwrap() };
    let paths: Vec<String> =
        (0..FILES).map(|index| format!("site/d{}/m{index}.py", index % 96)).collect();
    for path in &paths {
        tree.write(path, "one");
    }
    let files: BTreeSet<Vec<u8>> = paths.iter().map(|path| tree.bytes(path)).collect();
    let packages = (0..96).map(|index| format!("site/d{index}"));
    let directories = packages.chain(["site".into()]).map(|path| tree.bytes(&path)).collect();
    let names = (0..FILES).map(|index| format!("m{index}").into_bytes()).collect();
    let none = BTreeSet::new();
    let build = || {
        let sources = Sources {
            files: &files,
            candidates: &[],
            directories: &directories,
            names: &names,
            whole: &none,
            asked: &BTreeMap::new(),
            links: &BTreeMap::new(),
        };
        Fingerprint::build(sources, &Before::default(), SystemTime::now())
    };
    let mut freshness = Freshness::new();
    let fingerprint = patiently(build);
    let begin = Instant::now();
    let id = freshness.keep(fingerprint);
    let kept = begin.elapsed();
    let time = |freshness: &mut Freshness| {
        let begin = Instant::now();
        assert_eq!(freshness.verdict(id), Verdict::Fresh);
        begin.elapsed()
    };
    let compared = time(&mut freshness);
    let untouched = time(&mut freshness);
    println!("{FILES} files: kept in {kept:?}, compared in {compared:?}, untouched {untouched:?}");
}

#[test]
fn a_writer_without_end_does_not_keep_the_loop() {
    let tree = tree();
    let mut watch = Freshness::new();
    let id = watch.keep(tree.build());
    assert_eq!(watch.verdict(id), Verdict::Fresh);
    let log = fs::File::create(tree.path("script/log")).unwrap();
    // Each look at the watch is answered by another event, as a busy log beside a script would.
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                (&log).write_all(b"x").unwrap();
            }
        });
        for _ in 0..100 {
            assert_eq!(watch.verdict(id), Verdict::Fresh);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_file_below_directories_that_do_not_exist_is_noticed_when_it_comes() {
    let tree = tree();
    let mut freshness = Freshness::new();
    let candidates = vec![tree.bytes("script/.venv/bin/python")];
    let none = BTreeSet::new();
    let sources = Sources {
        files: &none,
        candidates: &candidates,
        directories: &none,
        names: &none,
        whole: &none,
        asked: &BTreeMap::new(),
        links: &BTreeMap::new(),
    };
    let id =
        freshness.keep(Fingerprint::build(sources, &Before::default(), SystemTime::now()).unwrap());
    assert_eq!(freshness.verdict(id), Verdict::Fresh);
    assert_eq!(freshness.kept[&id].suspicion, Suspicion::Clear, "watched, not compared");
    // The way down appears step by step, with a look in between.
    fs::create_dir_all(tree.path("script/.venv/bin")).unwrap();
    assert_eq!(freshness.verdict(id), Verdict::Fresh);
    tree.write("script/.venv/bin/python", "new");
    assert!(matches!(freshness.verdict(id), Verdict::Stale(_)));
}
