//! Many callers at once, floods, and programs that do not end.

use std::time::Duration;

use hob_tests::{End, Run, World, leftovers, wait};

#[test]
fn two_hundred_callers_at_once_all_get_their_answer() {
    let world = World::started();
    world.file("echo.py", "import sys\nprint(sys.argv[1])\n");
    world.warmed(&["run", "echo.py", "0"]);
    let daemon = world.daemon();
    let before = leftovers::descriptors(daemon);
    let calls: Vec<_> =
        (0..200).map(|n| world.hob(&["run", "echo.py", &n.to_string()]).start()).collect();
    for (number, call) in calls.into_iter().enumerate() {
        let outcome = call.finish();
        assert_eq!(
            (outcome.end, outcome.text()),
            (End::Code(0), format!("{number}\n")),
            "{outcome:?}"
        );
    }
    assert_eq!(world.daemon(), daemon, "the daemon is the same");
    wait::until("nothing runs", || (world.status()["calls"]["running"] == 0).then_some(()));
    // Each waiting copy has a channel and a pidfd; there may be some more of them now.
    let after = wait::look(Duration::from_secs(10), || {
        let after = leftovers::descriptors(daemon);
        (after <= before + 16).then_some(after)
    });
    assert!(
        after.is_some(),
        "{before} descriptors before, {} after",
        leftovers::descriptors(daemon)
    );
}

#[test]
fn callers_that_leave_at_any_time_leave_nothing() {
    let world = World::started();
    world.file("slow.py", "import time\ntime.sleep(1000)\n");
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let learned = world.hob(&["run", "--timeout", "200ms", "slow.py"]);
    assert_eq!(learned.go().end, End::Code(124));
    for delay_us in (0..12_000).step_by(400) {
        let running = world.hob(&["run", "slow.py"]).start();
        // sleeps: not a wait for anything: each caller is to die at another point of its call.
        std::thread::sleep(Duration::from_micros(delay_us));
        drop(running);
    }
    wait::until("nothing runs", || (world.status()["calls"]["running"] == 0).then_some(()));
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_flood_of_output_reaches_a_slow_reader_whole() {
    let world = World::started();
    world
        .file("flood.py", "import sys\nfor _ in range(200):\n    sys.stdout.write('x' * 100000)\n");
    world.warm(&world.hob(&["run", "flood.py"]).stdout("/dev/null"), |_| {});
    let hob = world.binary().display();
    let count = format!("{hob} run flood.py | (read -n 1 first; cat) | wc -c");
    assert_eq!(world.run(&["bash", "-c", &count]).go().text().trim(), "19999999");
}

#[test]
fn a_program_that_ends_all_its_processes_and_limits_hits_only_itself() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let script = "import resource, os\nresource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))\nopened = []\ntry:\n    while True:\n        opened.append(os.open('/dev/null', os.O_RDONLY))\nexcept OSError as error:\n    print(error.errno, len(opened) > 3)\n";
    world.file("limited.py", script);
    let cold = world.run(&["python3", "limited.py"]).go();
    world.warm(&world.hob(&["run", "limited.py"]), |outcome| assert_eq!(&cold, outcome));
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn children_of_a_program_are_its_own() {
    let world = World::started();
    let script = "import os\nfor n in range(40):\n    if os.fork() == 0:\n        os._exit(n % 7)\ncodes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(40)]\nprint(sorted(codes) == sorted(n % 7 for n in range(40)))\ntry:\n    os.wait()\nexcept ChildProcessError:\n    print('none left')\n";
    world.file("children.py", script);
    world.warm(&world.hob(&["run", "children.py"]), |outcome| {
        assert_eq!(outcome.text(), "True\nnone left\n")
    });
}

fn timed(run: &Run) -> (End, Duration, String) {
    let start = std::time::Instant::now();
    let outcome = run.go();
    (outcome.end, start.elapsed(), outcome.complaint())
}

#[test]
fn a_timeout_ends_warm_and_cold_calls_alike() {
    let world = World::started();
    world.file("sleeps.py", "import time\ntime.sleep(1000)\n");
    // The second caller ignores SIGTERM, and so does its program.
    for (ignored, least_ms, most_ms) in [("USR1", 300, 2000), ("TERM", 2300, 8000)] {
        let run = world.hob(&["run", "--timeout", "300ms", "sleeps.py"]);
        let run = run.under(&["env".to_owned(), format!("--ignore-signal={ignored}")]);
        let check = |run: &Run| {
            let (end, took, complaint) = timed(run);
            assert_eq!(end, End::Code(124), "{complaint}");
            assert!(complaint.ends_with("hob: sleeps.py: timed out after 300 ms\n"), "{complaint}");
            assert!((least_ms..most_ms).contains(&took.as_millis()), "{ignored}: {took:?}");
        };
        check(&run);
        check(&run.clone().env("HOB", "0"));
        let warm = world.warm(&run, |outcome| assert_eq!(outcome.end, End::Code(124)));
        let record = world.record(warm.pid);
        assert_eq!(record["outcome"]["kind"], "timed-out");
        assert_eq!(record["outcome"]["phase"], "main");
        check(&run);
    }
}
