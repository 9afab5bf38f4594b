//! Adopted hooks in real commits: git sets variables anew for each, and the third one is warm.

use hob_tests::{World, wait};

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

fn commit(world: &World) {
    let words = ["git", "-C", "repo", "commit", "-q", "--allow-empty", "-m", "more"];
    world.run(&words).go().succeeded();
}

/// Commits three times; the last must have run its hook warm.
fn third_is_warm(world: &World) {
    commit(world);
    warmed(world);
    commit(world);
    for _ in 0..10 {
        warmed(world);
        commit(world);
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
    third_is_warm(&world);
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
    third_is_warm(&world);
}
