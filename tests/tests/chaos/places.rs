//! The daemon's directory taken from under it, and disks that are full.

use std::fs;

use hob_tests::run::read;
use hob_tests::{End, Outcome, Run, World, wait};

/// Leaves a trace for each time that it runs.
const COUNTS: &str = "open('runs', 'a').write('x')\nprint('hello')\n";

/// The call did what it does without hob, once.
fn once(world: &World, outcome: &Outcome) {
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()), "{outcome:?}");
    assert_eq!(read(world.path("work/runs")), b"x", "it ran once");
    fs::remove_file(world.path("work/runs")).unwrap();
}

fn counting(world: &World) -> Run {
    world.file("counts.py", COUNTS);
    let run = world.hob(&["run", "counts.py"]);
    warm_once(world, &run);
    run
}

fn warm_once(world: &World, run: &Run) {
    let _ = fs::remove_file(world.path("work/runs"));
    world.warm(run, |outcome| once(world, outcome));
}

#[test]
fn a_socket_that_was_removed_is_made_anew_by_the_daemon_that_lives() {
    let world = World::started();
    let run = counting(&world);
    let daemon = world.daemon();
    fs::remove_file(world.hob_dir().join("socket")).unwrap();
    once(&world, &run.go());
    wait::until("the daemon is found again", || {
        world.daemon_if_any().filter(|found| *found == daemon)
    });
    warm_once(&world, &run);
}

#[test]
fn a_daemon_whose_directory_was_removed_ends_and_leaves_the_new_one_alone() {
    let world = World::started();
    let run = counting(&world);
    let old = world.daemon();
    fs::remove_dir_all(world.hob_dir()).unwrap();
    once(&world, &run.go());
    let new = wait::until("a new daemon", || world.daemon_if_any().filter(|pid| *pid != old));
    assert!(wait::ended(old, wait::LONG), "a daemon that nobody finds lives on");
    warm_once(&world, &run);
    assert_eq!(world.daemon(), new, "the old daemon's end took the new one's socket");
}

#[test]
fn a_call_that_runs_while_the_directory_is_removed_ends_as_it_would() {
    let world = World::started();
    world.file(
        "waits.py",
        "import sys\nprint('begun', flush=True)\nsys.stdin.read()\nprint('ended')\n",
    );
    world.warmed(&["run", "waits.py"]);
    let old = world.daemon();
    let mut running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
    running.expect("begun");
    fs::remove_dir_all(world.hob_dir()).unwrap();
    drop(running.take_stdin());
    let outcome = running.finish();
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "begun\nended\n".to_owned()));
    assert!(wait::ended(old, wait::LONG), "a daemon that nobody finds lives on");
}

#[test]
fn a_daemon_whose_directory_was_removed_writes_no_log_into_the_one_that_is_there_now() {
    let world = World::started();
    world.file("waits.py", "import sys\nprint('begun', flush=True)\nsys.stdin.read()\n");
    world.warmed(&["run", "waits.py"]);
    world.hob(&["log", "--daemon", "--on", "all"]).go().succeeded();
    let old = world.daemon();
    let mut running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
    running.expect("begun");
    fs::remove_dir_all(world.hob_dir()).unwrap();
    world.hob(&["start"]).go().succeeded();
    world.hob(&["stop"]).go().succeeded();
    // It tells much as it ends.
    drop(running.take_stdin());
    running.finish().succeeded();
    assert!(wait::ended(old, wait::LONG), "a daemon that nobody finds lives on");
    world.nothing_is_left();
}

#[test]
fn a_runtime_that_was_tidied_away_is_put_back() {
    let world = World::started();
    counting(&world);
    fs::remove_file(world.hob_dir().join("worker.py")).unwrap();
    world.file("other.py", COUNTS);
    warm_once(&world, &world.hob(&["run", "other.py"]));
}

#[test]
fn a_call_that_is_learned_from_does_not_need_its_runtimes_name_any_more() {
    let world = World::new();
    // The interpreter takes the directory away before it opens the file that it is to run.
    let site = "import os, shutil\nshutil.rmtree(os.environ['HOB_DIR'], ignore_errors=True)\n";
    world.file("site/sitecustomize.py", site);
    world.file("fds.py", "import os\nprint(len(os.listdir('/proc/self/fd')), __file__)\n");
    let run = world.hob(&["run", "fds.py"]).env("PYTHONPATH", world.path("work/site"));
    let cold = run.clone().env("HOB", "0").go();
    for _ in 0..3 {
        world.hob(&["start"]).go().succeeded();
        let daemon = world.daemon();
        assert_eq!(run.go(), cold);
        assert!(wait::ended(daemon, wait::LONG), "a daemon that nobody finds lives on");
    }
}

#[test]
fn a_state_directory_that_cannot_be_written_loses_receipts_and_nothing_else() {
    let world = World::started();
    counting(&world);
    world.stop();
    // Nobody, not even root, makes a directory below a file.
    fs::remove_dir_all(world.path("state")).unwrap();
    fs::write(world.path("state"), "").unwrap();
    let run = world.hob(&["run", "counts.py"]);
    for _ in 0..20 {
        once(&world, &run.go());
    }
    let status = world.status();
    assert!(status["calls"]["warm_total"].as_u64() > Some(0), "{status}");
    fs::remove_file(world.path("state")).unwrap();
}

#[test]
fn a_full_disk_loses_receipts_and_nothing_else() {
    // All in one mount namespace of its own: what is mounted there ends with it.
    let world = World::new();
    let world_path = world.path("");
    let (work, hob) = (world_path.display(), world.binary().display());
    world.file("counts.py", COUNTS);
    let script = format!(
        "set -e\nmount -t tmpfs -o size=64k,mode=700 tmpfs {work}/state\n\
         for n in 1 2 3 4 5 6 7 8 9 10; do {hob} run counts.py; done\n\
         dd if=/dev/zero of={work}/state/fills bs=4k 2>/dev/null || true\n\
         echo full >&2\n\
         for n in $(seq 30); do {hob} run counts.py; done\n\
         {hob} status --json >&2\n{hob} log -n 3 >&2 || true\n{hob} stop"
    );
    let outcome = world.run(&["unshare", "--mount", "bash", "-c", &script]).go();
    if outcome.end != End::Code(0) && !outcome.complaint().contains("full") {
        return hob_tests::skipped(&format!(
            "no mount of one's own here: {}",
            outcome.complaint().trim()
        ));
    }
    assert_eq!(outcome.end, End::Code(0), "{outcome:?}");
    assert!(outcome.text().starts_with(&"hello\n".repeat(40)), "{outcome:?}");
    assert_eq!(read(world.path("work/runs")), b"x".repeat(40), "each ran once");
    let said = outcome.complaint();
    let status =
        said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
    let status: serde_json::Value = serde_json::from_str(status).unwrap();
    assert!(status["calls"]["warm_total"].as_u64() > Some(0), "none was warm: {status}");
}

#[test]
fn a_full_runtime_directory_sends_calls_cold_or_warm_and_each_runs_once() {
    let world = World::new();
    let (folder, hob) = (world.path(""), world.binary().display());
    let folder = folder.display();
    world.file("counts.py", COUNTS);
    let script = format!(
        "set -e\nmkdir -m 700 {folder}/run\nmount -t tmpfs -o size=16k,mode=700 tmpfs {folder}/run\n\
         echo full >&2\n\
         for n in $(seq 10); do {hob} run counts.py; done\n{hob} stop || true"
    );
    let outcome = world.run(&["unshare", "--mount", "bash", "-c", &script]).go();
    if !outcome.complaint().contains("full") {
        return hob_tests::skipped(&format!(
            "no mount of one's own here: {}",
            outcome.complaint().trim()
        ));
    }
    assert_eq!(outcome.end, End::Code(0), "{outcome:?}");
    assert!(outcome.text().starts_with(&"hello\n".repeat(10)), "{outcome:?}");
    assert_eq!(read(world.path("work/runs")), b"x".repeat(10), "each ran once");
}
