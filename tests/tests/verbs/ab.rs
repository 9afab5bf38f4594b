//! What `hob ab` says of two commands, and what it does not compare.

use std::process::Command;

use hob_tests::{End, Outcome, World};
use rustix::process::Signal;
use serde_json::Value;

/// A program that computes for as long as it is told.
const COMPUTES: &str = "import sys\nsum(range(int(sys.argv[1])))\nprint('done')\n";

fn json(outcome: &Outcome) -> Value {
    let value: Value =
        serde_json::from_slice(&outcome.out).unwrap_or_else(|_| panic!("no JSON: {outcome:?}"));
    assert_eq!(value["schema"], "hob.ab/1");
    value
}

/// How often a comparison is asked for that finds its machine at fault.
const AGAIN: usize = 6;

/// Compares. On a busy machine A may differ from A, and then there is no verdict: it is tried again.
fn ab(world: &World, words: &[&str]) -> (End, Value) {
    let mut tries = 0;
    loop {
        let outcome = world.hob(&[&["ab", "--json"], words].concat()).go_long();
        let found = json(&outcome);
        let why = found["why_none"].as_str().unwrap_or_default();
        tries += 1;
        if tries == AGAIN || !why.starts_with("A differs from itself") {
            return (outcome.end, found);
        }
    }
}

#[test]
fn three_times_the_work_is_slower_and_fails_the_gate_by_either_metric() {
    let world = World::started();
    world.file("computes.py", COMPUTES);
    for metric in ["wall", "cpu"] {
        let words = ["--metric", metric, "--gate", "10%", "python3 computes.py 100"];
        let (end, found) = ab(&world, &[&words[..], &["python3 computes.py 20000000"]].concat());
        assert_eq!((end, &found["verdict"]), (End::Code(1), &"slower".into()), "{found}");
        assert_eq!(
            (&found["gate"]["verdict"], &found["same_output"]),
            (&"failed".into(), &true.into())
        );
        assert!(found[metric]["low"].as_f64().unwrap() > 1.1, "{found}");
    }
    let (end, found) =
        ab(&world, &["--gate", "10%", "python3 computes.py 20000000", "python3 computes.py 100"]);
    assert_eq!((end, &found["verdict"]), (End::Code(0), &"faster".into()), "{found}");
    assert_eq!(found["gate"]["verdict"], "passed");
}

#[test]
fn what_is_plain_tells_each_interval_in_words() {
    let world = World::new();
    let words = ["ab", "--plain", "--pairs", "10", "true", "sleep 0.01"];
    let outcome = world.hob(&words).env("TERM", "xterm").go_long();
    let text = outcome.text();
    for name in ["wall ", "cpu ", "A and A "] {
        let mut lines = text.lines();
        let is_told = |line: &str| line.starts_with(name) && line.contains(", surely ");
        assert!(lines.any(is_told), "{name}: {outcome:?}");
    }
}

#[test]
fn what_is_to_be_the_same_and_takes_far_longer_fails() {
    let world = World::started();
    world.file("computes.py", COMPUTES);
    let words = ["--same", "python3 computes.py 100", "python3 computes.py 20000000"];
    let (end, found) = ab(&world, &words);
    assert_eq!((end, &found["gate"]["verdict"]), (End::Code(1), &"failed".into()), "{found}");
    assert_eq!(
        (&found["gate"]["same_within"], &found["gate"]["share"]),
        (&0.02.into(), &Value::Null)
    );
    let words = ["--same=500%", "--gate", "900%", "true", "true"];
    assert_eq!(ab(&world, &words).0, End::Code(0), "what surely lies within both passes");
}

#[test]
fn each_run_is_told_its_order_by_a_coin() {
    let world = World::started();
    let (_, found) = ab(&world, &["--pairs", "40", "true", "true"]);
    let runs = found["runs"].as_array().unwrap();
    let pairs: Vec<_> = runs.iter().filter(|run| run["check"] == false).collect();
    assert_eq!((pairs.len(), &found["pairs"]), (80, &40.into()));
    let first_a = pairs.iter().filter(|run| run["first"] == true && run["side"] == "A").count();
    // That 40 fair coins lie so comes once in ten million times.
    assert!((4..=36).contains(&first_a), "{first_a} of 40");
    assert_eq!(runs.len() - pairs.len(), 40, "twenty pairs of A and A");
}

#[test]
fn what_is_not_alike_is_not_compared() {
    let world = World::started();
    world.file("one-in-ten.sh", "echo x >>count\ntest $(($(wc -l <count) % 10)) != 0\n");
    let check = |words: &[&str], why: &str| {
        let (end, found) = ab(&world, words);
        assert_eq!((end, &found["verdict"]), (End::Code(3), &Value::Null), "{found}");
        let said = found["why_none"].as_str().unwrap();
        assert!(said.contains(why), "{said}");
    };
    check(&["true", "false"], "exit code 0, and then exit code 1");
    check(&["echo a", "echo b"], "`a`, and then `b`");
    check(&["date +%N", "true"], "A is not like itself from run to run");
    check(&["true", "sh one-in-ten.sh"], "B is not like itself");
    check(&["--differ", "true", "sh one-in-ten.sh"], "exit code 0, and then exit code 1");
    world.file("dies.sh", "kill -9 $$\n");
    check(&["true", "sh dies.sh"], "ended by signal 9");
    check(&["--prepare", "exit 4", "true", "true"], "--prepare failed: exit code 4");
    let (end, found) =
        ab(&world, &["--differ", "--pairs", "10", "echo a", "sh -c 'echo b; exit 3'"]);
    assert_eq!((end, &found["same_output"]), (End::Code(0), &false.into()), "{found}");
    assert_eq!(
        (&found["a"]["end"], &found["b"]["end"]),
        (&"exit code 0".into(), &"exit code 3".into())
    );
}

#[test]
fn each_run_reads_the_whole_input_and_is_prepared_for() {
    let world = World::started();
    let text = "line\n".repeat(50_000);
    let run = world.hob(&[
        "ab",
        "--json",
        "--pairs",
        "10",
        "--prepare",
        "echo x >>prepared",
        "wc -c",
        "wc -c",
    ]);
    let outcome = run.stdin(text).go_long();
    assert_eq!(json(&outcome)["same_output"], true);
    let prepared = std::fs::read_to_string(world.path("work/prepared")).unwrap();
    assert_eq!(
        prepared.lines().count(),
        2 * 2 + 2 * 10 + 2 * 10,
        "of unmeasured runs, of pairs, of A and A"
    );
    // Without any it reads nothing, and does not wait for the terminal.
    let (end, found) = ab(&world, &["--pairs", "10", "cat", "cat"]);
    assert_eq!((end, &found["same_output"]), (End::Code(0), &true.into()));
}

#[test]
fn a_comparison_that_is_stopped_tells_its_pairs_as_unfinished() {
    let world = World::started();
    world.file("counts.sh", "echo x >>count\n");
    let lines =
        || std::fs::read_to_string(world.path("work/count")).map_or(0, |text| text.lines().count());
    let running = world.hob(&["ab", "--json", "--pairs", "10000", "true", "sh counts.sh"]).start();
    hob_tests::wait::until("some pairs", || (lines() > 30).then_some(()));
    running.signal(Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(2), "{outcome:?}");
    let found = json(&outcome);
    assert_eq!(found["unfinished"], true, "{found}");
    assert!(found["wall"]["ratio"].is_number(), "{found}");
}

#[test]
fn a_wrong_command_line_says_what_to_do() {
    let world = World::started();
    let check = |words: &[&str], says: &str| {
        let outcome = world.hob(&[&["ab"], words].concat()).go();
        assert_eq!(outcome.end, End::Code(2), "{outcome:?}");
        assert!(outcome.complaint().contains(says), "{says}: {}", outcome.complaint());
    };
    check(&["true"], "one command is not two");
    check(&["true", "true", "true"], "quotes");
    check(&["true", "true", "--json"], "options of hob come first");
    check(&["true", "no-such-command-at-all"], "no command `no-such-command-at-all` on PATH");
    check(&["true", "./absent"], "is no executable file");
    check(&["true", ""], "B is empty");
    for share in ["0%", "-1%", "NaN", "much"] {
        check(&[&format!("--gate={share}"), "true", "true"], "share");
    }
    check(&["--pairs", "9", "true", "true"], "9");
    check(&["--rev", "main", "--", "true"], "no git repository");
}

#[test]
fn a_revision_is_compared_with_what_is_here_and_its_worktree_goes() {
    let world = World::started();
    let git = |words: &[&str]| {
        let status = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"])
            .args(words)
            .current_dir(world.path("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", world.path("work"))
            .output()
            .unwrap();
        assert!(status.status.success(), "{words:?}: {status:?}");
        String::from_utf8(status.stdout).unwrap()
    };
    git(&["init", "-q"]);
    world.file("computes.py", COMPUTES);
    git(&["add", "computes.py"]);
    git(&["commit", "-q", "-m", "one"]);
    world.file("computes.py", COMPUTES.replace("range(int(", "range(400 * int("));
    let words =
        ["--rev", "main", "--build", "echo x >>built", "--", "python3", "computes.py", "50000"];
    let (end, found) = ab(&world, &words);
    assert_eq!((end, &found["verdict"]), (End::Code(0), &"slower".into()), "{found}");
    assert!(found["a"]["command"].as_str().unwrap().starts_with("main ("), "{found}");
    assert_eq!(std::fs::read_to_string(world.path("work/built")).unwrap(), "x\n", "once a place");
    assert_eq!(git(&["worktree", "list"]).lines().count(), 1);
    let outcome = world.hob(&["ab", "--rev", "no-such", "--", "true"]).go();
    assert_eq!(outcome.end, End::Code(2));
    assert!(outcome.complaint().contains("no such revision"), "{outcome:?}");
}

#[test]
fn warm_is_compared_with_cold_and_the_workers_time_is_part_of_it() {
    let world = World::started();
    world.file("computes.py", COMPUTES);
    let (end, found) = ab(&world, &["--warm", "computes.py", "3000000"]);
    assert_eq!(end, End::Code(0), "{found}");
    assert_eq!(found["b"]["warm_runs"], found["pairs"], "{found}");
    // The client alone takes next to nothing; the sum is the worker's.
    let cpu = |side: &str| found[side]["cpu_us"]["median"].as_f64().unwrap();
    assert!(cpu("b") > cpu("a") / 20.0, "{found}");
}

#[test]
fn where_both_have_receipts_it_says_which_phase_differs() {
    let world = World::started();
    world.file("computes.py", COMPUTES);
    world.warmed(&["run", "computes.py", "100"]);
    let hob = world.hob(&["x"]).command_line()[0].to_string_lossy().into_owned();
    let command = |count: &str| format!("{hob} run computes.py {count}");
    let outcome = world.hob(&["ab", &command("100"), &command("20000000")]).go_long();
    let text = outcome.text();
    assert!(text.contains("where    main +"), "{text}");
    assert!(text.contains("A        10 of 10 runs were warm"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_report_for_a_pull_request_is_markdown() {
    let world = World::started();
    let words = ["ab", "--markdown", "--pairs", "10", "printf 'a|b'", "printf 'a|b'"];
    let text = world.hob(&words).go_long().text();
    assert!(text.starts_with("**B takes "), "{text}");
    assert!(text.contains("| A | `printf 'a\\|b'` |"), "{text}");
    assert!(text.contains("| wall | "), "{text}");
}
