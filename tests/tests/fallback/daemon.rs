//! A daemon that does not answer, is another build, or says what is not hob's.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use hob_tests::run::{kill, read, state};
use hob_tests::{End, World, wait};
use rustix::process::Signal;

/// Leaves a trace for each time that it runs.
const COUNTS: &str = "open('runs', 'a').write('x')\nprint('hello')\n";

#[test]
fn a_stopped_daemon_costs_little_and_runs_nothing_a_second_time() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    world.warmed(&["run", "counts.py"]);
    let _ = fs::remove_file(world.path("work/runs"));
    let daemon = world.daemon();
    kill(daemon, Signal::STOP);
    wait::until("the daemon is stopped", || (state(daemon) == Some('T')).then_some(()));
    let mut calls = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        let outcome = world.hob(&["run", "counts.py"]).go();
        assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()));
        // The budgets are 10 and 50 ms; the rest is Python, on a busy machine.
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        calls.push(outcome.pid);
    }
    kill(daemon, Signal::CONT);
    // The records of a call: the client's own line, and what the daemon made of what it found.
    let records = world.records(400);
    for pid in calls {
        let of_call = |reason: &str| {
            records.iter().any(|one| one["caller_pid"] == pid && one["reason"] == reason)
        };
        assert!(of_call("no-answer"), "{pid}: {records:?}");
        let ran = |one: &serde_json::Value| one["caller_pid"] == pid && one["warm"] == true;
        assert!(!records.iter().any(ran), "{pid} was given: {records:?}");
    }
    world.stop();
    assert_eq!(read(world.path("work/runs")), b"xxxxx", "each call ran once");
}

#[test]
fn another_build_is_replaced_and_no_call_is_lost() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    world.warmed(&["run", "counts.py"]);
    let first = world.daemon();
    let mut bytes = fs::read(world.binary()).unwrap();
    let at = build_id_at(&bytes);
    bytes[at] ^= 0xff;
    let other = world.path("other-hob");
    {
        let _alone = hob_tests::alone();
        fs::write(&other, bytes).unwrap();
    }
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let call = world.run(&[&other]).args(&["run", "counts.py"]).go();
    assert_eq!((call.end, call.text()), (End::Code(0), "hello\n".to_owned()), "{call:?}");
    assert_eq!(world.reason(call.pid), "other-build");
    let second =
        wait::until("the other build serves", || world.daemon_if_any().filter(|pid| *pid != first));
    assert!(wait::ended(first, wait::LONG), "the first build's daemon ends");
    world.warm(&world.run(&[&other]).args(&["run", "counts.py"]), |outcome| {
        assert_eq!(outcome.text(), "hello\n");
    });
    assert_eq!(world.daemon(), second);
    let other_stop = world.run(&[&other]).args(&["stop"]).go();
    other_stop.succeeded();
}

/// Where the build id lies in an executable: behind its note's name.
fn build_id_at(bytes: &[u8]) -> usize {
    let note = b"\x03\0\0\0GNU\0";
    bytes.windows(note.len()).position(|window| window == note).expect("there is a build id")
        + note.len()
}

#[test]
fn a_listener_that_says_nothing_or_nonsense_costs_its_budget_only() {
    let world = World::new();
    world.file("counts.py", COUNTS);
    fs::create_dir(world.hob_dir()).unwrap();
    fs::set_permissions(world.hob_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    let run = world.hob(&["run", "counts.py"]);
    let answers: [(&[u8], &str); 4] = [
        (b"", "daemon-closed"),
        (b"GET / HTTP/1.1\r\n\r\n", "protocol"),
        (b"hob\x01\x12\0\0\0\xff\xff\xff\xff", "protocol"),
        (b"hob\x01\x12\0\0", "daemon-closed"),
    ];
    for (answer, reason) in answers {
        let _ = fs::remove_file(world.path("work/runs"));
        let listener = UnixListener::bind(world.hob_dir().join("socket")).unwrap();
        let running = run.start();
        let (mut stream, _) = listener.accept().unwrap();
        let mut some = [0; 64];
        let _ = stream.read(&mut some).unwrap();
        stream.write_all(answer).unwrap();
        drop(stream);
        let outcome = running.finish();
        assert_eq!(
            (outcome.end, outcome.text()),
            (End::Code(0), "hello\n".to_owned()),
            "{outcome:?}"
        );
        assert_eq!(read(world.path("work/runs")), b"x");
        drop(listener);
        fs::remove_file(world.hob_dir().join("socket")).unwrap();
        // `hob log` finds nobody to ask, and reads the disk.
        assert_eq!(world.reason(outcome.pid), reason, "{answer:?}");
    }
    let listener = UnixListener::bind(world.hob_dir().join("socket")).unwrap();
    let start = Instant::now();
    let outcome = run.go();
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(listener);
    fs::remove_file(world.hob_dir().join("socket")).unwrap();
    assert_eq!(world.reason(outcome.pid), "no-answer");
}

#[test]
fn a_daemon_survives_the_end_of_a_terminal_with_its_calls() {
    let world = World::started();
    world
        .file("waits.py", "import sys\nprint('begun', flush=True)\nprint(len(sys.stdin.read()))\n");
    world.file("signals.py", "print([l for l in open('/proc/self/status') if l[:6] in ('SigIgn', 'SigBlk', 'SigCgt')])\n");
    world.warm(&world.hob(&["run", "waits.py"]).stdin("four"), |outcome| {
        assert_eq!(outcome.text(), "begun\n4\n");
    });
    let daemon = world.daemon();
    let mut running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
    running.expect("begun");
    kill(daemon, Signal::HUP);
    // Another answer: the daemon has had the signal, and goes on.
    assert_eq!(world.daemon(), daemon);
    drop(running.take_stdin());
    let outcome = running.finish();
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "begun\n0\n".to_owned()));
    assert_eq!(world.record(outcome.pid)["warm"], true);
    assert_eq!(world.daemon(), daemon);
    // What it ignores is its own business.
    world.warm_as_cold(&world.hob(&["run", "signals.py"]));
}
