//! A caller whose world a worker could not take on.

use hob_tests::{End, World, wait};

const HELLO: &str = "print('hello')\n";

#[test]
fn a_traced_caller_goes_cold() {
    let world = World::started();
    world.file("hello.py", HELLO);
    world.warmed(&["run", "hello.py"]);
    // Where there is no strace, a tracer of ten lines does.
    let tracer = "import ctypes, os, sys\nlibc = ctypes.CDLL(None)\npid = os.fork()\nif pid == 0:\n    libc.ptrace(0, 0, 0, 0)\n    os.execv(sys.argv[1], sys.argv[1:])\nos.waitpid(pid, 0)\nwhile True:\n    libc.ptrace(7, pid, 0, 0)\n    _, status = os.waitpid(pid, 0)\n    if os.WIFEXITED(status):\n        break\nprint(pid)\n";
    world.file("tracer.py", tracer);
    let traced = world
        .run(&["python3", "tracer.py"])
        .args(&[world.binary()])
        .args(&["run", "hello.py"])
        .go();
    let text = traced.text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("hello"), "{traced:?}");
    let pid = lines.next().unwrap().parse().unwrap();
    assert_eq!(world.reason(pid), "traced");
}

#[test]
fn what_is_too_large_for_a_frame_goes_cold_and_runs() {
    let world = World::started();
    world.file("counts.py", "import sys, os\nprint(len(sys.argv), sum(map(len, sys.argv[1:])), len(os.environ.get('BIG', '')))\n");
    world.warmed(&["run", "counts.py"]);
    let many: Vec<String> = (0..12).map(|_| "x".repeat(100_000)).collect();
    let outcome = world.in_time(&world.hob(&["run", "counts.py"]).args(&many));
    assert_eq!(outcome.text(), "13 1200000 0\n");
    assert_eq!(world.reason(outcome.pid), "too-large");
    let mut run = world.hob(&["run", "counts.py"]).env("BIG", "y".repeat(100_000));
    for number in 0..11 {
        run = run.env(format!("BIG{number}"), "y".repeat(100_000));
    }
    let outcome = world.in_time(&run);
    assert_eq!(outcome.text(), "1 0 100000\n");
    assert_eq!(world.reason(outcome.pid), "too-large");
    // Much, but not too much.
    let run = world.hob(&["run", "counts.py"]).args(&many[..6]);
    let outcome = world.warm(&run, |outcome| assert_eq!(outcome.text(), "7 600000 0\n"));
    assert_eq!(outcome.end, End::Code(0));
}

#[test]
fn a_caller_with_higher_limits_than_the_daemons_goes_cold() {
    let world = World::new();
    world.hob(&["start"]).under(&["prlimit", "--nofile=256:512"]).go().succeeded();
    world.file("limit.py", "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))\n");
    let limited = world.hob(&["run", "limit.py"]).under(&["prlimit", "--nofile=100:512"]);
    world.warm(&limited, |outcome| assert_eq!(outcome.text(), "(100, 512)\n"));
    let cold = world.run(&["python3", "limit.py"]).go();
    // One that is also above the daemon in everything would start another in its place.
    let nicer = world.hob(&["run", "limit.py"]).under(&["nice", "-n", "1"]);
    let outcome = world.in_time(&nicer);
    assert_eq!(outcome, cold);
    assert_eq!(world.reason(outcome.pid), "limits");
    world.hob(&["restart"]).go().succeeded();
    world.warm(&world.hob(&["run", "limit.py"]), |outcome| assert_eq!(outcome, &cold));
}

#[test]
fn a_caller_with_other_rights_goes_cold() {
    let world = World::started();
    world.file(
        "rights.py",
        "print([l for l in open('/proc/self/status') if l.startswith('NoNewPrivs')])\n",
    );
    world.warmed(&["run", "rights.py"]);
    let run = world.hob(&["run", "rights.py"]).under(&["setpriv", "--no-new-privs"]);
    let outcome = world.in_time(&run);
    assert_eq!(outcome.text(), "['NoNewPrivs:\\t1\\n']\n");
    assert_eq!(world.reason(outcome.pid), "context");
}

#[test]
fn hob_0_bypasses_hob_wholly() {
    let world = World::empty();
    world.file("hello.py", HELLO);
    let outcome = world.hob(&["run", "hello.py"]).env("HOB", "0").go();
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()));
    assert!(!world.hob_dir().exists(), "no daemon was started");
    assert!(!world.path("state/hob").exists(), "nothing was recorded");
    wait::until("nothing runs", || world.daemon_if_any().is_none().then_some(()));
}

/// Limits of file sizes: nothing, and less than hob has written already.
const SMALL: [&str; 3] = ["ulimit -f 0", "ulimit -f 1", "ulimit -f 40"];

#[test]
fn a_limit_of_file_sizes_ends_neither_the_client_nor_the_daemon() {
    let world = World::empty();
    std::fs::create_dir(world.path("state/hob")).unwrap();
    std::fs::write(world.path("state/hob/fallbacks.ndjson"), "x\n".repeat(100_000)).unwrap();
    let run = world.hob(&["run", "/bin/true"]);
    for run in [&run.clone().env("HOB_DIR", "/dev/null/hob"), &run] {
        for limit in SMALL {
            let outcome = run.clone().after(limit).go();
            assert_eq!(outcome.end, End::Code(0), "{limit}: {outcome:?}");
        }
    }
    // A daemon that has no room says so, and is not killed. It has a directory of its own: one that
    // a call above was starting may still come up in the other.
    let alone = world.path("alone");
    let outcome = world.hob(&["daemon"]).env("HOB_DIR", &alone).after(SMALL[1]).go();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    assert!(outcome.complaint().contains("cannot run the daemon"), "{outcome:?}");
    // What was started under a limit is in nobody's way.
    world.file("hello.py", HELLO);
    world.hob(&["restart"]).go().succeeded();
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_daemon_that_has_no_room_for_receipts_lives_on() {
    let world = World::started();
    world.file("hello.py", HELLO);
    let run = world.hob(&["run", "hello.py"]);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
    world.stop();
    // Each segment is larger than the daemon may make a file.
    for file in hob_tests::leftovers::files(&world.path("state/hob")) {
        let mut text = std::fs::read(&file).unwrap_or_default();
        text.extend("{}\n".repeat(100_000).bytes());
        if file.is_file() {
            std::fs::write(&file, text).unwrap();
        }
    }
    world.hob(&["start"]).after("ulimit -f 250").go().succeeded();
    let daemon = world.daemon();
    for _ in 0..5 {
        let outcome = run.clone().after("ulimit -f 250").go();
        assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()));
        // It has tried to write what it had to.
        assert_eq!(world.daemon(), daemon);
        let _ = world.hob(&["log"]).go();
    }
    assert_eq!(world.daemon(), daemon);
}

#[test]
fn a_program_has_its_own_signal_of_a_file_that_is_too_large() {
    let world = World::started();
    let grows = "grep SigIgn /proc/self/status; head -c 5000 /dev/zero >grown; echo $?";
    let script = world.executable("grows.sh", format!("#!/bin/sh\n{grows}\n"));
    let script = script.to_string_lossy().into_owned();
    for before in ["ulimit -f 1", "trap '' XFSZ; ulimit -f 1"] {
        let cold = world.run(&[&script]).after(before).go();
        let signalled = before == "ulimit -f 1";
        assert_eq!(cold.text().contains("153"), signalled, "{cold:?}");
        let supervised = world.hob(&["run", &script]).after(before);
        assert_eq!(world.in_time(&supervised), cold, "{before}");
        let bypassed = world.hob(&["run", "--timeout", "1m", &script]).after(before);
        assert_eq!(bypassed.env("HOB", "0").go(), cold, "{before}");
        // What is said on the way, to a file that may not grow, changes nothing.
        let nowhere = supervised.env("HOB_DIR", "/dev/null/hob").go();
        assert_eq!((nowhere.end, nowhere.out), (cold.end, cold.out), "{before}");
    }
}
