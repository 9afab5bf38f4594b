//! `kill -9` of everything, in every state.

use std::path::Path;

use hob_tests::bytes::contains;
use hob_tests::chaos::draw::Draw;
use hob_tests::run::{kill, read};
use hob_tests::{End, Running, World, leftovers, wait};
use rustix::process::Signal;

/// Counts its run, says that it runs, and by whom, then waits to be killed: who has read what it
/// says finds the run counted.
const WAITS: &str = "import os, sys, time\nopen('runs', 'a').write('x')\nprint('pid', os.getpid(), os.getppid(), flush=True)\nsys.stdin.read()\nprint('ended')\n";

/// A warm call that has begun; the worker's and the zygote's process ids.
fn begun(world: &World) -> (Running, u32, u32) {
    world.file("waits.py", WAITS);
    world.warmed(&["run", "waits.py"]);
    let _ = std::fs::remove_file(world.path("work/runs"));
    let running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
    running.expect("\n");
    let text = String::from_utf8(running.out()).unwrap();
    let mut numbers = text.split_whitespace().skip(1).map(|number| number.parse().unwrap());
    let (worker, zygote) = (numbers.next().unwrap(), numbers.next().unwrap());
    assert_ne!(worker, running.pid(), "the call is warm");
    (running, worker, zygote)
}

/// How often the program ran.
fn runs(world: &World) -> usize {
    read(world.path("work/runs")).len()
}

fn one_line_of_loss(err: &str, phase: &str) {
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.starts_with("hob: waits.py: lost: ") && err.contains(phase), "{err}");
    assert!(err.ends_with("Without hob: env HOB=0 hob run waits.py\n"), "{err}");
}

#[test]
fn a_killed_client_takes_its_worker_with_it() {
    let world = World::started();
    let (mut running, worker, _) = begun(&world);
    // It stays open, or the program would end by it.
    let _stdin = running.take_stdin();
    running.signal(Signal::KILL);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Signal(9));
    assert!(wait::ended(worker, wait::LONG), "the worker outlives its caller");
    let record = world.record(outcome.pid);
    assert_eq!(
        (&record["outcome"]["kind"], &record["warm"]),
        (&"cancelled".into(), &true.into()),
        "{record}"
    );
    world.warmed(&["run", "waits.py"]);
}

#[test]
fn a_killed_client_of_a_cold_run_takes_the_program_with_it() {
    let world = World::started();
    world.file("waits.py", WAITS);
    let running = world.hob(&["run", "--cold", "waits.py"]).stdin_pipe().start();
    running.expect("\n");
    let text = String::from_utf8(running.out()).unwrap();
    let program: u32 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    running.signal(Signal::KILL);
    assert_eq!(running.finish().end, End::Signal(9));
    assert!(wait::ended(program, wait::LONG), "the program outlives its caller");
}

#[test]
fn a_program_whose_learning_calls_are_killed_is_warm_in_the_end() {
    let world = World::started();
    world.file("waits.py", WAITS);
    let run = world.hob(&["run", "waits.py"]);
    let mut learned = 0;
    // So many leave nothing before a program counts as one that never does, and one more.
    for _ in 0..100 {
        if learned == 3 {
            break;
        }
        let running = run.clone().stdin_pipe().start();
        running.expect("\n");
        running.signal(Signal::KILL);
        let outcome = running.finish();
        assert_eq!(outcome.end, End::Signal(9));
        let record = world.record(outcome.pid);
        if record["warm"] == true {
            break;
        }
        learned += u32::from(record["reason"] == "learning");
    }
    assert!(learned >= 2, "it is warm after {learned} killed calls");
    world.warm(&run, |outcome| assert!(outcome.text().ends_with("ended\n"), "{outcome:?}"));
    let left = std::fs::read_dir(world.hob_dir()).unwrap();
    let left = left.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert_eq!(left.filter(|name| name.starts_with("notes-")).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_killed_worker_is_a_program_that_was_killed() {
    let world = World::started();
    let (running, worker, _) = begun(&world);
    kill(worker, Signal::KILL);
    let outcome = running.finish();
    assert_eq!((outcome.end, outcome.complaint()), (End::Signal(9), String::new()));
    let record = world.record(outcome.pid);
    assert_eq!(
        (&record["outcome"]["kind"], &record["outcome"]["signal"]),
        (&"exited".into(), &9.into()),
        "{record}"
    );
    assert_eq!(runs(&world), 1);
    world.warmed(&["run", "waits.py"]);
}

#[test]
fn the_outcome_line_of_a_call_whose_daemon_died_says_what_is_not_known() {
    let world = World::started();
    let (first, ..) = begun(&world);
    let words = ["run", "--status-fd", "9", "waits.py"];
    let running = world.hob(&words).after("exec 9>line").stdin_pipe().start();
    running.expect("\n");
    kill(world.daemon(), Signal::KILL);
    assert_eq!(running.finish().end, End::Code(125));
    assert_eq!(first.finish().end, End::Code(125));
    let line: serde_json::Value = serde_json::from_slice(&read(world.path("work/line"))).unwrap();
    let (warm, reason) = (&line["warm"], &line["reason"]);
    assert!(line["outcome"] == "lost" && warm.is_null() && reason.is_null(), "{line}");
    assert_eq!(line["call"], 0, "{line}");
    world.warmed(&["run", "waits.py"]);
}

#[test]
fn a_killed_zygote_loses_its_calls_with_one_line_and_is_made_anew() {
    let world = World::started();
    let (running, worker, zygote) = begun(&world);
    kill(zygote, Signal::KILL);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(125), "{outcome:?}");
    one_line_of_loss(&outcome.complaint(), "main");
    assert!(wait::ended(worker, wait::LONG), "the worker outlives its zygote");
    assert_eq!(runs(&world), 1);
    assert_eq!(world.record(outcome.pid)["outcome"]["kind"], "lost");
    world.warmed(&["run", "waits.py"]);
}

#[test]
fn a_zygote_that_was_killed_idle_is_made_anew() {
    let world = World::started();
    let (running, _, zygote) = begun(&world);
    drop(running);
    kill(zygote, Signal::KILL);
    assert!(wait::ended(zygote, wait::LONG));
    world.warm(&world.hob(&["run", "waits.py"]), |outcome| assert_eq!(outcome.end, End::Code(0)));
}

#[test]
fn a_waiting_copy_that_was_killed_is_not_missed() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let copies = wait::until("copies wait", || {
        let name = world.path("work/hello.py");
        let name = name.to_str().unwrap().to_owned();
        let found: Vec<u32> = leftovers::processes(&world.path("run"))
            .into_iter()
            .filter(|(_, command)| command.contains(&name) || command.contains(" hello.py"))
            .map(|(pid, _)| pid)
            .collect();
        (!found.is_empty()).then_some(found)
    });
    for copy in copies {
        kill(copy, Signal::KILL);
        assert!(wait::ended(copy, wait::LONG));
    }
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_daemon_that_is_killed_in_a_call_loses_it_with_one_line() {
    let world = World::started();
    let (running, worker, zygote) = begun(&world);
    let daemon = world.daemon();
    kill(daemon, Signal::KILL);
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(125), "{outcome:?}");
    one_line_of_loss(&outcome.complaint(), "phase");
    for process in [worker, zygote] {
        assert!(wait::ended(process, wait::LONG), "{process} outlives the daemon");
    }
    assert_eq!(runs(&world), 1, "it was not run again");
    world.warmed(&["run", "waits.py"]);
    assert_ne!(world.daemon(), daemon);
}

#[test]
fn a_daemon_that_was_killed_idle_is_started_by_the_next_call() {
    let world = World::started();
    world.file("hello.py", "print('hello')\n");
    world.warmed(&["run", "hello.py"]);
    let daemon = world.daemon();
    kill(daemon, Signal::KILL);
    assert!(wait::ended(daemon, wait::LONG));
    world.warm(&world.hob(&["run", "hello.py"]), |outcome| assert_eq!(outcome.text(), "hello\n"));
    assert_ne!(world.daemon(), daemon);
}

#[test]
fn a_daemon_that_was_killed_in_a_cold_run_costs_it_nothing() {
    let world = World::started();
    world.file("waits.py", WAITS);
    let mut running = world.hob(&["run", "--cold", "waits.py"]).stdin_pipe().start();
    running.expect("\n");
    kill(world.daemon(), Signal::KILL);
    drop(running.take_stdin());
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(0), "{outcome:?}");
    assert!(outcome.text().ends_with("ended\n"));
    world.warmed(&["run", "waits.py"]);
}

#[test]
fn stopping_lets_a_running_call_end_and_then_leaves_nothing() {
    let world = World::started();
    let (mut running, ..) = begun(&world);
    let stop = world.hob(&["stop"]).start();
    wait::until("nobody listens", || world.daemon_if_any().is_none().then_some(()));
    drop(running.take_stdin());
    let outcome = running.finish();
    assert_eq!(
        (outcome.end, outcome.text().ends_with("ended\n")),
        (End::Code(0), true),
        "{outcome:?}"
    );
    stop.finish().succeeded();
    world.nothing_is_left();
}

/// Its end is the last that the daemon hears: it does not hear the caller leave.
#[test]
fn a_cold_call_that_ends_while_its_daemon_stops_has_its_receipt() {
    let world = World::started();
    world.file("waits.py", WAITS);
    let daemon = world.daemon();
    let mut running = world.hob(&["run", "--cold", "waits.py"]).stdin_pipe().start();
    running.expect("\n");
    let stop = world.hob(&["stop"]).start();
    wait::until("nobody listens", || world.daemon_if_any().is_none().then_some(()));
    drop(running.take_stdin());
    let outcome = running.finish();
    assert_eq!(outcome.end, End::Code(0), "{outcome:?}");
    stop.finish().succeeded();
    assert!(wait::ended(daemon, wait::LONG), "it has written all that it will");
    let records = world.records(9);
    let of_call = records.iter().find(|record| record["caller_pid"] == outcome.pid);
    let record = of_call.unwrap_or_else(|| panic!("no receipt: {records:?}"));
    assert_eq!((&record["reason"], &record["outcome"]["code"]), (&"asked".into(), &0.into()));
    assert!(record["usage"]["peak_kib"].as_u64() > Some(0), "{record}");
}

#[test]
fn a_background_process_of_the_program_outlives_it_and_not_hob() {
    let world = World::started();
    world.file(
        "forks.py",
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        open('child', 'w').write(str(os.getpid()))\n        time.sleep(1000)\n    os._exit(0)\nos.wait()\nprint('done')\n",
    );
    let run = world.hob(&["run", "forks.py"]);
    let kill_child = |path: &Path| {
        let child: u32 =
            wait::until("the child's pid", || std::str::from_utf8(&read(path)).ok()?.parse().ok());
        assert!(Path::new(&format!("/proc/{child}")).exists(), "it lives on, as it does cold");
        assert!(!holds_sockets(child), "it holds a socket of hob's");
        kill(child, Signal::KILL);
        let _ = std::fs::remove_file(path);
    };
    let path = world.path("work/child");
    world.warm(&run, |outcome| {
        assert_eq!(outcome.text(), "done\n");
        kill_child(&path);
    });
}

/// Whether a process has a socket open: a test's programs make none.
fn holds_sockets(pid: u32) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().any(|entry| {
        std::fs::read_link(entry.path())
            .is_ok_and(|target| contains(target.as_os_str().as_encoded_bytes(), b"socket:"))
    })
}

/// Kills its whole process group when it is told to, as tools do that end what they have started.
const CLEARS_ITS_GROUP: &str = "import os, signal, sys\nos.write(1, b'begun\\n')\nif sys.stdin.read():\n    os.killpg(os.getpgrp(), signal.SIGKILL)\n";

#[test]
fn a_program_that_signals_its_group_ends_no_other_call_and_no_zygote() {
    let world = World::started();
    world.file("clears.py", CLEARS_ITS_GROUP);
    world.warmed(&["run", "clears.py"]);
    let call = || {
        let running = world.hob(&["run", "clears.py"]).in_own_group().stdin_pipe().start();
        running.expect("begun\n");
        running
    };
    let (mut one, mut other) = (call(), call());
    let mut stdin = one.take_stdin();
    std::io::Write::write_all(&mut stdin, b"now").unwrap();
    drop(stdin);
    assert_eq!(one.finish().end, End::Signal(9));
    drop(other.take_stdin());
    let outcome = other.finish();
    outcome.succeeded();
    assert_eq!(world.record(outcome.pid)["warm"], true);
}

#[test]
fn a_program_may_begin_a_session_of_its_own() {
    let world = World::started();
    let text = "import os, resource\nos.setsid()\nprint(os.getsid(0) == os.getpid())\n\
        print(resource.getrusage(resource.RUSAGE_CHILDREN))\n";
    world.file("session.py", text);
    world.warm_as_cold(&world.hob(&["run", "session.py"]));
    // Also where it is forked for its call.
    world.warm_as_cold(&world.hob(&["run", "--ahead", "0", "session.py"]));
}

/// What the daemon has started, and their copies.
fn processes_of(world: &World) -> Vec<u32> {
    let daemon = world.daemon();
    let parent = |pid: &u32| leftovers::parent(*pid).unwrap_or(0);
    let of = |pid: &u32| parent(pid) == daemon || parent(&parent(pid)) == daemon;
    leftovers::all().into_iter().filter(of).collect()
}

#[test]
fn calls_between_which_warm_processes_are_killed_are_performed_and_warm_again_at_once() {
    for isolation in ["fork", "standby"] {
        let world = World::started();
        world.file("hello.py", "print('hello')\n");
        let words = ["run", "--isolation", isolation, "hello.py"];
        world.warmed(&words);
        let mut draw = Draw::of_round(46, isolation.len());
        let mut killed = 0;
        for round in 0..12 {
            // Many deaths in a row with no process ready between say that it dies of what it loads.
            if round % 2 == 0 {
                world.warmed(&words);
            }
            let mut there = processes_of(&world);
            for _ in 0..=draw.below(4) {
                if there.is_empty() {
                    break;
                }
                let at = usize::try_from(draw.below(there.len() as u64)).unwrap();
                let pid = there.swap_remove(at);
                kill(pid, Signal::KILL);
                assert!(wait::ended(pid, wait::LONG));
                killed += 1;
            }
            let outcome = world.hob(&words).go();
            assert_eq!(outcome.text(), "hello\n", "{isolation}, {round}: {outcome:?}");
        }
        assert!(killed >= 6, "{isolation}: {killed} killed");
        let pools = world.pools();
        assert!(pools.iter().all(|pool| pool["state"] != "cold"), "{isolation}: {pools:?}");
        world.warmed(&words);
    }
}
