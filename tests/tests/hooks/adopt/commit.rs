//! Adopted hooks in real commits: git sets variables anew for each, and the third one is warm.

use std::path::PathBuf;

use hob_tests::{Run, World, wait};

use super::{generated, hook, hooks, repository};

/// What pre-commit does while it is imported: how much room the environment leaves for arguments.
const LIMITS: &str = "import os\nSIZE = 8 * len(os.environb)\n\
    for name, value in os.environb.items():\n    SIZE += len(name) + len(value) + 2\n\
    AT = os.environ.get('GIT_AUTHOR_DATE')\n";
/// Checks that what was kept at import is this call's own.
const MAIN: &str = "import argparse, json, os\nfrom pre_commit import limits\n\
    size = sum(len(n) + len(v) + 10 for n, v in os.environb.items())\n\
    assert limits.AT == os.environ.get('GIT_AUTHOR_DATE'), limits.AT\n\
    assert limits.SIZE == size, (limits.SIZE, size)\n";
/// Why a call of a busy machine may have been cold.
const LATE: [&str; 3] = ["no-answer", "connect-timeout", "caller-left"];

/// Waits until copies of some program wait.
fn warmed(world: &World) {
    wait::until("copies that wait", || {
        let pools = world.pools();
        pools.iter().any(|pool| pool["ready"].as_u64().unwrap_or(0) > 0).then_some(())
    });
}

/// A commit of one more line.
fn commit(world: &World) -> Run {
    world.run(&["sh", "-ec", "cd repo; echo line >>file; git add file; git commit -q -m more"])
}

/// Commits three times; the last must have run its hook warm.
fn third_is_warm(world: &World, commit: &Run) {
    commit.go().succeeded();
    warmed(world);
    commit.go().succeeded();
    for _ in 0..10 {
        warmed(world);
        commit.go().succeeded();
        let newest = world.records(1).pop().unwrap_or_default();
        if hob_tests::is_warm(&newest) {
            let pools = world.pools().len();
            assert_eq!(pools, 1, "{}", world.status());
            return;
        }
        let reason = newest["reason"].as_str().unwrap_or_default();
        assert!(LATE.contains(&reason), "{newest}");
    }
    panic!("every commit was late");
}

#[test]
fn pre_commits_hook_is_warm_in_the_third_commit() {
    let world = World::started();
    repository(&world);
    world.run(&["python3", "-m", "venv", "--without-pip", "venv"]).go().succeeded();
    let python = world.path("work/venv/bin/python").display().to_string();
    let show = "import site; print(site.getsitepackages()[0])";
    let folder = world.run(&[python.as_str(), "-c", show]).go().text();
    let module = std::path::Path::new(folder.trim()).join("pre_commit");
    std::fs::create_dir(&module).unwrap();
    for (name, text) in [("__init__.py", ""), ("__main__.py", MAIN), ("limits.py", LIMITS)] {
        std::fs::write(module.join(name), text).unwrap();
    }
    hook(&world, "pre-commit", generated(&python));
    hooks(&world, &["adopt", "pre-commit", "repo"]).succeeded();
    third_is_warm(&world, &commit(&world));
}

#[test]
fn a_hook_of_gits_that_reads_when_the_commit_is_made_is_warm_in_the_third_one() {
    let world = World::started();
    repository(&world);
    let folder = world.path("work/repo/.git/hooks");
    std::fs::write(folder.join("limits.py"), LIMITS).unwrap();
    let main = MAIN.replace("from pre_commit import limits", "import limits");
    hook(&world, "pre-commit", format!("#!/usr/bin/env python3\n{main}"));
    hooks(&world, &["adopt", "git", "repo"]).succeeded();
    third_is_warm(&world, &commit(&world));
}

/// Where `make test-deps` has put husky and lefthook, if it has.
#[expect(clippy::print_stderr, reason = "who reads the tests' output sees what was not tested")]
fn runners() -> Option<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/hooks/node_modules");
    let found = PathBuf::from(folder).canonicalize().ok();
    if found.is_none() {
        eprintln!("skipped: no husky and lefthook here: make test-deps");
    }
    found
}

/// A repository whose hooks a runner calls, which run a Python check through the hob on `PATH`; and
/// a commit in it.
fn with_runner(world: &World, install: &[&str], (file, text): (&str, &str)) -> Option<Run> {
    let folder = runners()?;
    repository(world);
    std::os::unix::fs::symlink(&folder, world.path("work/repo/node_modules")).unwrap();
    world.file("repo/.git/info/exclude", "node_modules\n");
    std::fs::create_dir(world.path("work/bin")).unwrap();
    std::os::unix::fs::symlink(world.binary(), world.path("work/bin/hob")).unwrap();
    world.file("repo/limits.py", LIMITS);
    world.file("repo/check.py", MAIN.replace("from pre_commit import limits", "import limits"));
    let usual = world.run(&["sh", "-c", "echo $PATH"]).go().text();
    let path = format!("{}:{}", world.path("work/bin").display(), usual.trim());
    let within = world.path("work/repo");
    world.file(&format!("repo/{file}"), text);
    world.run(install).within(within).env("PATH", &path).go().succeeded();
    Some(commit(world).env("PATH", path))
}

#[test]
fn huskys_hook_is_warm_in_the_third_commit() {
    let world = World::started();
    let hook = (".husky/pre-commit", "hob run check.py\n");
    let Some(commit) = with_runner(&world, &["node", "node_modules/husky/bin.js"], hook) else {
        return;
    };
    third_is_warm(&world, &commit);
}

/// It gives each command a terminal of its own, but for one that reads standard input.
#[test]
fn lefthooks_command_is_warm_in_the_third_commit() {
    let world = World::started();
    let text = "pre-commit:\n  jobs:\n    - run: hob run check.py\n      use_stdin: true\n";
    let install = ["node_modules/.bin/lefthook", "install"];
    let Some(commit) = with_runner(&world, &install, ("lefthook.yml", text)) else { return };
    third_is_warm(&world, &commit);
    let own = "pre-commit:\n  jobs:\n    - run: hob run check.py\n";
    world.file("repo/lefthook.yml", own);
    commit.go().succeeded();
    assert_eq!(world.records(1)[0]["reason"], "terminal");
}
