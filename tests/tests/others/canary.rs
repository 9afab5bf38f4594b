//! What one caller has in its environment is found nowhere else: not in another process's memory,
//! not in `/proc`, not on the disk.

use std::fs::File;

use hob_tests::bytes::{contains, in_memory};
use hob_tests::run::read;
use hob_tests::{World, leftovers, wait};

/// Long enough that no memory holds it by chance, and unlike what any other test uses.
fn canary(name: &str) -> String {
    format!("canary-{name}-{:08x}-sings", std::process::id())
}

/// What is found of the canary in the processes and files of this world.
fn found(world: &World, canary: &str) -> Vec<String> {
    let canary = canary.as_bytes();
    let mut places = Vec::new();
    for (pid, command) in leftovers::processes(&world.path("")) {
        if contains(&read(format!("/proc/{pid}/environ")), canary) {
            places.push(format!("environ of {pid}: {command}"));
        }
        if let Some(region) = in_memory(pid, canary) {
            places.push(format!("memory of {pid} at {region}: {command}"));
        }
    }
    for folder in ["run", "state", "home"] {
        for file in leftovers::files(&world.path(folder)) {
            let named = contains(file.as_os_str().as_encoded_bytes(), canary);
            if named || contains(&read(&file), canary) {
                places.push(format!("file {}", file.display()));
            }
        }
    }
    places
}

/// Whether this process may read the memory of its like: Yama may forbid it.
fn may_look(world: &World) -> bool {
    File::open(format!("/proc/{}/mem", world.daemon())).is_ok()
}

fn nothing_sings(world: &World, canary: &str) {
    wait::until("nothing runs", || (world.status()["calls"]["running"] == 0).then_some(()));
    // The last worker may be ending, and the daemon's task with it.
    let silent = wait::look(wait::LONG / 3, || found(world, canary).is_empty().then_some(()));
    assert!(silent.is_some(), "found: {:#?}", found(world, canary));
}

#[test]
fn a_secret_of_one_caller_is_found_nowhere_after_its_call() {
    let world = World::started();
    if !may_look(&world) {
        return hob_tests::skipped("the memory of other processes cannot be read here");
    }
    let secret = canary("plain");
    world.file(
        "waits.py",
        "import sys, os\nprint(len(os.environ['TOKEN']), flush=True)\nsys.stdin.read()\n",
    );
    let run = world.hob(&["run", "waits.py"]).env("TOKEN", &secret);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), format!("{}\n", secret.len())));
    // While a call runs, its worker has it: so that the search is known to find.
    let mut running = run.clone().stdin_pipe().start();
    running.expect("\n");
    let places = found(&world, &secret);
    assert!(places.iter().any(|place| place.starts_with("memory of")), "{places:#?}");
    drop(running.take_stdin());
    running.finish().succeeded();
    nothing_sings(&world, &secret);
}

#[test]
fn a_secret_of_a_cold_refused_lost_or_timed_out_call_is_found_nowhere_either() {
    let world = World::started();
    if !may_look(&world) {
        return hob_tests::skipped("the memory of other processes cannot be read here");
    }
    let secret = canary("ends");
    world.file(
        "ends.py",
        "import os, sys, time\nif 'sleep' in sys.argv:\n    time.sleep(1000)\nos.abort()\n",
    );
    let run = |words: &[&str]| world.hob(&["run"]).args(words).env("TOKEN", &secret);
    world.warm(&run(&["ends.py"]), |_| {});
    let _ = run(&["--timeout", "100ms", "ends.py", "sleep"]).go();
    let _ = run(&["--cold", "ends.py"]).go();
    let _ = run(&["/nonexistent/program"]).go();
    let _ = run(&["sh", "-c", "exit 3"]).go();
    drop(run(&["ends.py", "sleep"]).start());
    nothing_sings(&world, &secret);
}

#[test]
fn a_large_secret_environment_is_found_nowhere_after_its_call() {
    let world = World::started();
    if !may_look(&world) {
        return hob_tests::skipped("the memory of other processes cannot be read here");
    }
    let secret = canary("large");
    world.file("hello.py", "print('hello')\n");
    let mut run = world.hob(&["run", "hello.py"]);
    for number in 0..300 {
        run = run.env(format!("TOKEN_{number}"), format!("{secret}{}", "x".repeat(1000)));
    }
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
    nothing_sings(&world, &secret);
}

#[test]
fn an_argument_of_one_call_is_found_nowhere_after_it() {
    let world = World::started();
    if !may_look(&world) {
        return hob_tests::skipped("the memory of other processes cannot be read here");
    }
    let secret = canary("argument");
    let flag = format!("--token={secret}");
    world.file("counts.py", "import sys\nprint(len(sys.argv))\n");
    // Its imports ask how many arguments there are, and for the first of them.
    world.file("asks.py", "import sys\nWORDS = len(sys.argv), sys.argv[0]\n");
    world.file("asked.py", "import asks\nprint(asks.WORDS[0])\n");
    world.executable("native.sh", "#!/bin/sh\necho $#\n");
    // Calls that are learned from, cold while it warms up, and warm.
    for script in ["counts.py", "asked.py"] {
        let run = world.hob(&["run", script, &secret, &flag]);
        world.warm(&run, |outcome| assert_eq!(outcome.text(), "3\n"));
    }
    // Each twice: what is asked a second time is remembered.
    let cold: [&[&str]; 6] = [
        &["/bin/echo", &flag],
        &["./native.sh", &secret],
        &["python3", "-c", "import sys", &secret],
        &["python3", "--cold", &secret],
        &["--cold", "counts.py", &secret],
        &["/nonexistent/program", &secret],
    ];
    for words in cold {
        for _ in 0..3 {
            let _ = world.hob(&["run"]).args(words).go();
        }
    }
    nothing_sings(&world, &secret);
}
