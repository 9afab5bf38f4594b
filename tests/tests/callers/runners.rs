//! What runs many commands for its user: GNU parallel, just, pre-commit.

use std::ffi::OsString;

use hob_tests::{End, World, is_warm, wait};

use super::{had, receipts, until_warm, with_shim};

#[test]
fn parallel_has_each_answer_and_each_exit_code() {
    let (world, path) = with_shim();
    if had(&world, "parallel").is_none() {
        return;
    }
    let text = "import sys\nprint('answer', sys.argv[1])\nsys.exit(int(sys.argv[1]) % 10 == 0)\n";
    world.file("job.py", text);
    let numbers: Vec<String> = (1..=60).map(|number| number.to_string()).collect();
    let jobs = |command: &str| {
        let words = ["parallel", "--will-cite", "--jobs", "8", "--keep-order", command, ":::"];
        world.run(&words).args(&numbers).env("PATH", &path).go()
    };
    let plain = jobs("python3 job.py");
    // It ends with the number of jobs that failed.
    assert_eq!(plain.end, End::Code(6), "{plain:?}");
    // The first jobs are learned from; and on a busy machine many may be late.
    wait::until("a warm job", || {
        let through = jobs("hob run job.py");
        assert_eq!((through.end, through.text()), (plain.end, plain.text()));
        let kept = receipts(&world, "job.py", 60);
        let failed = kept.iter().filter(|record| record["outcome"]["code"] == 1).count();
        assert_eq!((kept.len(), failed), (60, 6));
        kept.iter().any(is_warm).then_some(())
    });
}

#[test]
fn justs_recipe_calls_a_shim_warm() {
    let (world, path) = with_shim();
    let Some(just) = had(&world, "just") else { return };
    world.file("justfile", "format:\n    @printf 'b\\na\\n' | tidy-lines\n");
    let run = world.run(&[just.as_os_str(), "format".as_ref()]).env("PATH", path);
    let check = || assert_eq!(run.go().text(), "a\nb\n");
    until_warm(&world, "tidy-lines", &run, check);
}

/// A commit of one more line that has a `TODO` or none, through pre-commit's own hook.
fn commit(world: &World, path: &OsString, line: &str) -> hob_tests::Outcome {
    let does = "echo \"$0\" >>file; git add file; git commit -q -m more";
    let run = world.run(&["sh", "-ec", does, line]).within(world.path("work/repo"));
    run.env("PATH", path).go()
}

#[test]
fn pre_commit_calls_its_checks_through_hob() {
    let (world, path) = with_shim();
    let Some(pre_commit) = had(&world, "pre-commit") else { return };
    let check = "import sys\nfor name in sys.argv[1:]:\n    \
                 if 'TODO' in open(name).read():\n        sys.exit(f'{name}: a TODO')\n";
    world.file("repo/check.py", check);
    let config = "repos:\n- repo: local\n  hooks:\n  - id: no-todo\n    name: no todo\n    \
                  language: system\n    entry: hob run check.py\n    files: ^file$\n";
    world.file("repo/.pre-commit-config.yaml", config);
    let words = [
        &["git", "init", "-q"][..],
        &["git", "config", "user.email", "a@b"],
        &["git", "config", "user.name", "n"],
        &["git", "add", ".pre-commit-config.yaml", "check.py"],
        &["git", "commit", "-q", "-m", "first"],
    ];
    let within = world.path("work/repo");
    for words in words {
        world.run(words).within(&within).go().succeeded();
    }
    let install = world.run(&[pre_commit.as_os_str(), "install".as_ref()]);
    install.within(&within).env("PATH", &path).go().succeeded();
    hob_tests::wait::until("a check that is warm", || {
        commit(&world, &path, "line").succeeded();
        let newest = receipts(&world, "check.py", 1).pop()?;
        hob_tests::is_warm(&newest).then_some(())
    });
    let refused = commit(&world, &path, "TODO");
    assert!(refused.end == End::Code(1) && refused.complaint().contains("a TODO"), "{refused:?}");
}
