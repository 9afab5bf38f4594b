//! Programs and callers without measure: forks, output, memory, callers. hob stays as it is.

use std::process::{Command, Stdio};

use hob_tests::run::{kill, read};
use hob_tests::{End, Running, World, leftovers, wait};
use rustix::process::Signal;

const HELLO: &str = "print('hello')\n";

/// Peak memory of a process, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let text = String::from_utf8(read(format!("/proc/{pid}/status"))).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_thousand_callers_at_once_all_get_their_answer() {
    let world = World::started();
    world.file("echo.py", "import sys\nprint(sys.argv[1])\nopen('runs', 'a').write('x')\n");
    world.warmed(&["run", "echo.py", "0"]);
    std::fs::remove_file(world.path("work/runs")).unwrap();
    let daemon = world.daemon();
    let out = |n: usize| world.path(format!("out-{n}"));
    let start = |n: usize| {
        let mut hob = Command::new(world.binary());
        hob.args(["run", "echo.py", &n.to_string()]).env_clear().envs(world.environment());
        let file = std::fs::File::create(out(n)).unwrap();
        hob.current_dir(world.path("work")).stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
        let _alone = hob_tests::alone();
        hob.spawn().unwrap()
    };
    let mut calls: Vec<_> = (0..1000).map(start).collect();
    for (number, call) in calls.iter_mut().enumerate() {
        assert!(wait::ended(call.id(), wait::LONG), "caller {number} hangs");
        assert_eq!(call.wait().unwrap().code(), Some(0), "caller {number}");
        assert_eq!(read(out(number)), format!("{number}\n").as_bytes());
    }
    assert_eq!(read(world.path("work/runs")).len(), 1000, "each ran once");
    assert_eq!(world.daemon(), daemon, "the daemon is the same");
    wait::until("nothing runs", || (world.status()["calls"]["running"] == 0).then_some(()));
    wait::until("the callers' descriptors are closed", || {
        let own = leftovers::processes(&world.path("")).len();
        (leftovers::descriptors(daemon) <= 64 + 2 * own).then_some(())
    });
    // In such a crowd a call may well have been slower warm than cold: it is served either way.
    assert_eq!(world.hob(&["run", "echo.py", "again"]).go().text(), "again\n");
    world.file("other.py", "print('other')\n");
    world.warm(&world.hob(&["run", "other.py"]), |other| assert_eq!(other.text(), "other\n"));
}

#[test]
fn a_fork_bomb_is_its_callers_own_and_hob_serves_others_meanwhile() {
    let world = World::started();
    world.file("hello.py", HELLO);
    // Each child lives until the file is there: bounded, and all at once.
    let bomb = "import os, sys, time\nfor _ in range(200):\n    if os.fork() == 0:\n        while not os.path.exists('over'): time.sleep(0.02)\n        os._exit(0)\nprint('forked', flush=True)\nsys.stdin.read()\nprint('ended')\n";
    world.file("bomb.py", bomb);
    world.file("over", "");
    world.warmed(&["run", "bomb.py"]);
    world.warmed(&["run", "hello.py"]);
    std::fs::remove_file(world.path("work/over")).unwrap();
    let mut running = world.hob(&["run", "bomb.py"]).stdin_pipe().start();
    running.expect("forked");
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
    drop(running.take_stdin());
    let outcome = running.finish();
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "forked\nended\n".to_owned()));
    let children = || leftovers::processes(&world.path("work")).len();
    assert!(children() >= 200, "they live on, as they do cold");
    world.file("over", "");
    wait::until("the children have ended", || (children() < 20).then_some(()));
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn hundreds_of_megabytes_pass_by_hob_to_a_slow_reader_and_to_none() {
    let world = World::started();
    world.file(
        "flood.py",
        "import sys\nfor _ in range(3000):\n    sys.stdout.write('x' * 100000)\n",
    );
    world.warm(&world.hob(&["run", "flood.py"]).stdout("/dev/null"), |_| {});
    let (daemon, hob) = (world.daemon(), world.binary().display().to_string());
    let before = peak_kib(daemon);
    let slow = format!("{hob} run flood.py | (read -n 1 first; cat) | wc -c");
    assert_eq!(world.run(&["bash", "-c", &slow]).go().text().trim(), "299999999");
    let none = "\"$@\" | head -c 5; echo \" ${PIPESTATUS[0]}\"";
    let to_none = |run: hob_tests::Run| run.under(&["bash", "-c", none, "bash"]).go();
    let cold = to_none(world.hob(&["run", "flood.py"]).env("HOB", "0"));
    for _ in 0..5 {
        let warm = to_none(world.hob(&["run", "flood.py"]));
        assert_eq!(cold, warm);
    }
    assert!(peak_kib(daemon) < before + 20_000, "output went through the daemon");
}

/// A process that a program left behind with its caller's stdout.
fn holder(running: &Running) -> u32 {
    let mut pid = None;
    wait::until("the child says who it is", || {
        let text = String::from_utf8(running.out()).ok()?;
        pid = text.lines().find_map(|line| line.strip_prefix("child ")?.parse().ok());
        pid
    })
}

#[test]
fn a_daemon_of_the_programs_own_that_holds_stdout_does_not_hold_the_call() {
    let world = World::started();
    let holds = "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        print('child', os.getpid(), flush=True)\n        while not os.path.exists('over'): time.sleep(0.01)\n        print('late', flush=True)\n    os._exit(0)\nos.wait()\nprint('done')\n";
    world.file("holds.py", holds);
    world.file("over", "");
    world.warmed(&["run", "holds.py"]);
    std::fs::remove_file(world.path("work/over")).unwrap();
    let running = world.hob(&["run", "holds.py"]).start();
    let child = holder(&running);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(0));
    assert!(outcome.text().contains("done\n") && !outcome.text().contains("late"), "{outcome:?}");
    assert!(!wait::ended(child, std::time::Duration::ZERO), "its child lives on");
    // It outlives hob as well, and its reader sees its end.
    let hob = world.binary().display();
    let piped = world.run(&["bash", "-c", &format!("{hob} run holds.py | cat")]).start();
    let second = holder(&piped);
    world.hob(&["stop"]).go().succeeded();
    world.file("over", "");
    assert!(piped.finish().text().ends_with("late\n"), "what is written late arrives");
    assert!([child, second].iter().all(|pid| wait::ended(*pid, wait::LONG)));
}

#[test]
fn a_program_over_the_memory_budget_has_its_memory_and_the_others_stay_within_it() {
    let world = World::new();
    world.hob(&["start"]).env("HOB_MEMORY_MB", "60").go().succeeded();
    assert_eq!(world.status()["budget_kib"], 60 * 1024);
    let hog = "import sys\nblock = bytearray(b'x') * 200_000_000\nprint(len(block), flush=True)\nsys.stdin.read()\nprint(sum(block[::1_000_000]))\n";
    world.file("hog.py", hog);
    for n in 0..6 {
        world.file(&format!("p{n}.py"), HELLO);
    }
    let run = world.hob(&["run", "hog.py"]);
    let cold = run.clone().env("HOB", "0").go();
    world.warm(&run, |outcome| assert_eq!(cold, *outcome));
    let mut held = run.clone().stdin_pipe().start();
    held.expect("200000000\n");
    for _ in 0..4 {
        for n in 0..6 {
            let outcome = world.hob(&["run", &format!("p{n}.py")]).go();
            assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()));
        }
    }
    drop(held.take_stdin());
    assert_eq!(cold, held.finish());
    // Memory is read every few seconds; until then it is what it was.
    wait::until("within the budget", || {
        let status = world.status();
        (status["memory_kib"].as_u64() <= status["budget_kib"].as_u64()).then_some(())
    });
    let outcome = world.hob(&["run", "p0.py"]).go();
    assert_eq!(outcome.text(), "hello\n");
}

#[test]
fn a_bomb_whose_caller_is_killed_leaves_no_worker() {
    let world = World::started();
    world.file("spins.py", "import sys\nprint('spins', flush=True)\nwhile True:\n    pass\n");
    let learned = world.hob(&["run", "--timeout", "200ms", "spins.py"]).go();
    assert_eq!(learned.end, End::Code(124));
    wait::until("a worker whose caller was killed", || {
        let running = world.hob(&["run", "spins.py"]).start();
        running.expect("spins");
        kill(running.pid(), Signal::KILL);
        let record = world.record(running.finish().pid);
        hob_tests::is_warm(&record).then_some(())
    });
    wait::until("nothing runs", || (world.status()["calls"]["running"] == 0).then_some(()));
}

#[test]
fn a_worker_that_goes_on_after_it_has_told_its_end_is_killed() {
    let world = World::started();
    // A package without an end of directories: its runtime tells of those when the end is told.
    let spins = "import itertools, sys\nif sys.argv[1:]:\n    sys.modules['endless'] = endless = type(sys)('endless')\n    endless.__path__ = itertools.repeat('/')\nprint('done', flush=True)\n";
    world.file("spins.py", spins);
    world.warmed(&["run", "spins.py"]);
    let outcome = world.hob(&["run", "spins.py", "on"]).go();
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "done\n".to_owned()));
    let record = world.record(outcome.pid);
    assert_eq!(record["warm"], true, "{record}");
    let worker = record["worker"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let worker = worker.expect("a warm call has a worker");
    // Its receipt was written without it: it went on for a second at least.
    assert!(record["usage"].is_null(), "{record}");
    assert!(wait::ended(worker, wait::LONG), "it was not ended");
    let said =
        format!("of spins.py, pid {worker}, has not ended in the time that it had after call ");
    wait::until("a word in the log", || {
        let log = read(world.hob_dir().join("daemon.log"));
        let log = String::from_utf8(log).unwrap();
        let line = log.lines().find(|line| line.contains(&said))?;
        assert!(line.contains(" WARN ") && line.contains(" pool "), "{line}");
        assert!(line.ends_with(&format!(" {}: it is killed", record["call"])), "{line}");
        Some(())
    });
}
