//! `kill -9` of daemon, zygote and worker while a call is held at a phase: processes are stopped,
//! so that a call waits where it is, and then killed.
//!
//! Before a call is given, the caller's program runs once, as without hob. A call that was given
//! and not read may run once, or is lost with one line. `deaths.rs` has the phase main.

use hob_tests::run::{kill, read, state};
use hob_tests::{End, Outcome, Run, Running, World, leftovers, wait};
use rustix::process::Signal;
use serde_json::Value;

/// How many calls may be late, one after another.
const LATE_CALLS_MAX: usize = 20;

/// Leaves a trace for each time that it runs, and tells its parent: a warm one's is its zygote.
const COUNTS: &str = "import os\nopen('zygote', 'w').write(str(os.getppid()))\nopen('runs', 'a').write('x')\nprint('hello')\n";

/// A world in which the program is warm, and the run that calls it.
fn counting() -> (World, Run) {
    let world = World::started();
    world.file("counts.py", COUNTS);
    let run = world.hob(&["run", "counts.py"]);
    world.warm(&run, |_| {});
    let _ = std::fs::remove_file(world.path("work/runs"));
    (world, run)
}

fn runs(world: &World) -> usize {
    read(world.path("work/runs")).len()
}

fn ran_once(world: &World, outcome: &Outcome) {
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()), "{outcome:?}");
    assert_eq!(runs(world), 1);
}

fn lost_with_one_line(world: &World, outcome: &Outcome) {
    assert_eq!((outcome.end, outcome.text()), (End::Code(125), String::new()), "{outcome:?}");
    let said = outcome.complaint();
    assert!(said.starts_with("hob: counts.py: lost: ") && said.lines().count() == 1, "{said}");
    assert_eq!(runs(world), 0, "nothing ran, and nothing was run again");
}

fn stop(pid: u32) {
    kill(pid, Signal::STOP);
    wait::until("it is stopped", || matches!(state(pid), Some('T' | 'Z') | None).then_some(()));
}

/// The processes that were forked from this one, which need not have a name of their own yet.
fn children(of: u32) -> Vec<u32> {
    leftovers::all().into_iter().filter(|pid| leftovers::parent(*pid) == Some(of)).collect()
}

/// The zygote whose copies wait for a call: the program's own, which has performed its last call, and
/// no layer's.
fn waiting(world: &World) -> u32 {
    let zygote = String::from_utf8(read(world.path("work/zygote"))).unwrap_or_default();
    let zygote: u32 = zygote.parse().expect("a warm call has told its zygote");
    let found = wait::look(wait::LONG, || {
        let ready = world.pools().first()?["ready"].as_u64().filter(|ready| *ready > 0)?;
        (children(zygote).len() as u64 == ready).then_some(zygote)
    });
    let processes = || leftovers::processes(&world.path(""));
    found.unwrap_or_else(|| panic!("no copies wait: {} {:?}", world.status(), processes()))
}

/// A call that was given to a copy which does not read it, with that copy's zygote stopped, so
/// that nothing else moves: the call, the copies, the zygote.
fn given_and_unread(world: &World, run: &Run) -> (Running, Vec<u32>, u32) {
    let zygote = waiting(world);
    stop(zygote);
    // One more may have been forked meanwhile; from here on none is.
    let copies = children(zygote);
    copies.iter().for_each(|copy| stop(*copy));
    let busy = |_: &Value| world.pools().iter().filter_map(|pool| pool["busy"].as_u64()).sum();
    let running = arrived(world, run, busy);
    (running, copies, zygote)
}

/// A call that the daemon has, as a number in its status says. One that it was not given in time,
/// as happens where a machine stands still for a moment, has run cold: then another one.
fn arrived(world: &World, run: &Run, number: impl Fn(&Value) -> u64) -> Running {
    for _ in 0..LATE_CALLS_MAX {
        let running = run.start();
        let there = wait::until("the call has arrived, or has run cold", || {
            if number(&world.status()) > 0 {
                return Some(true);
            }
            matches!(state(running.pid()), Some('Z') | None).then_some(false)
        });
        if there {
            return running;
        }
        let outcome = running.finish();
        ran_once(world, &outcome);
        assert_eq!(world.record(outcome.pid)["warm"], false, "{outcome:?}");
        std::fs::remove_file(world.path("work/runs")).expect("it has run");
    }
    panic!("{LATE_CALLS_MAX} calls were late");
}

#[test]
fn a_daemon_killed_with_a_call_in_its_socket_costs_the_call_nothing() {
    let (world, run) = counting();
    let daemon = world.daemon();
    stop(daemon);
    let running = run.start();
    // It has sent all, and waits; or it has waited long enough already.
    wait::until("the call is sent", || {
        matches!(state(running.pid()), Some('S' | 'Z') | None).then_some(())
    });
    kill(daemon, Signal::KILL);
    ran_once(&world, &running.finish());
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn callers_that_did_not_wait_for_a_daemon_teach_it_nothing() {
    let world = World::started();
    world.file("counts.py", COUNTS);
    let run = world.hob(&["run", "counts.py"]);
    let daemon = world.daemon();
    stop(daemon);
    // More than as many as leave nothing before a program counts as one that never does.
    let callers: Vec<u32> = (0..4)
        .map(|_| {
            let outcome = run.go();
            ran_once(&world, &outcome);
            let _ = std::fs::remove_file(world.path("work/runs"));
            outcome.pid
        })
        .collect();
    kill(daemon, Signal::CONT);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
    let records = world.records(400);
    for caller in callers {
        let of_it = records.iter().filter(|record| record["caller_pid"] == caller);
        let mut reasons: Vec<&str> = of_it.filter_map(|record| record["reason"].as_str()).collect();
        reasons.sort_unstable();
        assert_eq!(reasons, ["caller-left", "no-answer"], "{records:?}");
    }
}

#[test]
fn a_signal_that_was_passed_on_to_a_daemon_that_does_not_answer_is_not_lost() {
    let (world, run) = counting();
    world.file("waits.py", "import sys\nprint('begun', flush=True)\nsys.stdin.read()\n");
    world.warmed(&["run", "waits.py"]);
    let daemon = world.daemon();
    stop(daemon);
    for _ in 0..3 {
        let mut running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
        let stdin = running.take_stdin();
        wait::until("it waits for its answer", || {
            matches!(state(running.pid()), Some('S' | 'Z') | None).then_some(())
        });
        running.signal(Signal::TERM);
        assert_eq!(running.finish().end, End::Signal(15));
        drop(stdin);
    }
    kill(daemon, Signal::CONT);
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_worker_killed_before_it_has_read_its_call_costs_it_nothing() {
    let (world, run) = counting();
    let (running, copies, zygote) = given_and_unread(&world, &run);
    kill(zygote, Signal::CONT);
    copies.iter().for_each(|copy| kill(*copy, Signal::KILL));
    let outcome = running.finish();
    ran_once(&world, &outcome);
    assert_eq!(world.reason(outcome.pid), "worker-closed");
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_caller_that_interrupts_an_unread_call_is_not_answered_by_a_cold_run() {
    let (world, run) = counting();
    let (running, copies, zygote) = given_and_unread(&world, &run);
    running.signal(Signal::INT);
    wait::until("the signal reached a copy", || {
        copies.iter().any(|copy| pending(*copy)).then_some(())
    });
    kill(zygote, Signal::CONT);
    copies.iter().for_each(|copy| kill(*copy, Signal::KILL));
    let outcome = running.finish();
    assert_eq!((outcome.end, runs(&world)), (End::Signal(9), 0), "{outcome:?}");
}

/// Whether a stopped process has a signal waiting for it.
fn pending(pid: u32) -> bool {
    let text = String::from_utf8(read(format!("/proc/{pid}/status"))).unwrap_or_default();
    let mask = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    mask("ShdPnd:").is_some_and(|mask| mask != 0) || mask("SigPnd:").is_some_and(|mask| mask != 0)
}

#[test]
fn a_zygote_killed_while_a_copy_has_an_unread_call_loses_it_with_one_line() {
    let (world, run) = counting();
    let (running, copies, zygote) = given_and_unread(&world, &run);
    kill(zygote, Signal::KILL);
    lost_with_one_line(&world, &running.finish());
    assert!(
        copies.iter().all(|copy| wait::ended(*copy, wait::LONG)),
        "copies outlive their zygote"
    );
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_daemon_killed_while_a_copy_has_an_unread_call_loses_it_with_one_line() {
    let (world, run) = counting();
    let (running, copies, zygote) = given_and_unread(&world, &run);
    kill(world.daemon(), Signal::KILL);
    lost_with_one_line(&world, &running.finish());
    for process in copies.into_iter().chain([zygote]) {
        kill(process, Signal::CONT);
        assert!(wait::ended(process, wait::LONG), "{process} outlives the daemon");
    }
    assert_eq!(runs(&world), 0, "it was run after it was said to be lost");
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

#[test]
fn a_zygote_killed_before_it_forks_loses_or_runs_the_call_that_waits_for_it() {
    let (world, run) = counting();
    let zygote = waiting(&world);
    stop(zygote);
    // Takes no copy that waits: one is forked for it.
    let forking = world.hob(&["run", "--ahead", "0", "counts.py"]);
    let running = arrived(&world, &forking, |status| {
        let calls = &status["calls"];
        let of = |name: &str| calls[name].as_u64().unwrap_or(0);
        of("running") + of("queued")
    });
    kill(zygote, Signal::KILL);
    let outcome = running.finish();
    if outcome.end == End::Code(125) {
        lost_with_one_line(&world, &outcome);
    } else {
        ran_once(&world, &outcome);
    }
    world.warm(&run, |outcome| assert_eq!(outcome.text(), "hello\n"));
}

/// A call whose program has ended while its caller was stopped: the answer waits in its socket.
fn finished_and_unseen(world: &World) -> (Running, u32) {
    world.file(
        "waits.py",
        "import os, sys\nprint(os.getpid(), os.getppid(), flush=True)\nsys.stdin.read()\nopen('runs', 'a').write('x')\nprint('hello')\n",
    );
    world.warmed(&["run", "waits.py"]);
    let _ = std::fs::remove_file(world.path("work/runs"));
    for _ in 0..LATE_CALLS_MAX {
        let mut running = world.hob(&["run", "waits.py"]).stdin_pipe().start();
        running.expect("\n");
        let text = String::from_utf8(running.out()).unwrap();
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u32>().unwrap());
        let (worker, zygote) = (numbers.next().unwrap(), numbers.next().unwrap());
        // A cold run is the caller's own process.
        let late = worker == running.pid();
        if !late {
            stop(running.pid());
        }
        drop(running.take_stdin());
        if !late {
            assert!(wait::ended(worker, wait::LONG), "the worker waits for its caller");
            return (running, zygote);
        }
        let outcome = running.finish();
        assert_eq!(world.record(outcome.pid)["warm"], false, "{outcome:?}");
        let _ = std::fs::remove_file(world.path("work/runs"));
    }
    panic!("{LATE_CALLS_MAX} calls were late");
}

#[test]
fn what_is_killed_after_the_program_has_ended_changes_nothing_for_its_caller() {
    for daemon in [true, false] {
        let world = World::started();
        let (running, zygote) = finished_and_unseen(&world);
        let victim = if daemon { world.daemon() } else { zygote };
        kill(victim, Signal::KILL);
        assert!(wait::ended(victim, wait::LONG));
        running.signal(Signal::CONT);
        let outcome = running.finish();
        assert_eq!(outcome.end, End::Code(0), "{outcome:?}");
        assert!(outcome.text().ends_with("hello\n"), "{outcome:?}");
        assert_eq!(runs(&world), 1);
        world.warmed(&["run", "waits.py"]);
    }
}
