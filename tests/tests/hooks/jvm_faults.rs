//! Hooks run from a JVM, when something ends, is full, or is not as it should be.

use hob_tests::run::kill;
use hob_tests::{World, wait};
use rustix::process::Signal;

use super::caller::{Jvm, hooks, pid, stays};

#[test]
fn the_sets_of_a_jvm_that_was_killed_are_ended_and_reported() {
    let world = World::new();
    let (one, other) = (stays(&world, "one.pid"), stays(&world, "other.pid"));
    let one = hooks(&world, "one", &[("10-a", &one), ("20-b", "touch ran-on")]);
    // It ends neither by itself nor by SIGTERM, and has a child.
    let other = format!("trap '' TERM; sleep 100000 & {other}");
    let other = hooks(&world, "other", &[("10-a", &other)]);
    let mut jvm = Jvm::start(&world);
    jvm.say(&format!("run one {one}"));
    jvm.say(&format!("run other {other}"));
    let pids = [pid(&world, "one.pid"), pid(&world, "other.pid")];
    kill(jvm.pid(), Signal::KILL);
    for pid in pids {
        assert!(wait::ended(pid, wait::LONG));
    }
    let records = wait::until("both receipts", || {
        let records = world.records(10);
        (records.len() == 2).then_some(records)
    });
    for record in records {
        assert_eq!(record["outcome"]["kind"], "cancelled", "{record}");
        assert_eq!(record["reason"], "caller-left", "{record}");
    }
    assert!(!world.path("work/ran-on").exists());
}

#[test]
fn after_a_daemon_was_killed_it_is_known_what_ran_and_nothing_runs_again() {
    let world = World::new();
    let stays = stays(&world, "stays.pid");
    let scripts = [
        ("10-a", "echo a >>ran"),
        ("20-b", &*format!("echo b >>ran; {stays}")),
        ("30-c", "echo c >>ran"),
        ("40-d", "echo d >>ran"),
    ];
    let dir = hooks(&world, "set", &scripts);
    let mut jvm = Jvm::start(&world);
    jvm.say(&format!("run set {dir}"));
    let hook = pid(&world, "stays.pid");
    kill(world.daemon(), Signal::KILL);
    let told = jvm.told("set");
    assert!(told.starts_with("Lost ran=10-a/OK/exit0// running=20-b notrun=30-c,40-d "), "{told}");
    // The hook went with the daemon, and nobody ran it, or what comes after it, again.
    assert!(wait::ended(hook, wait::LONG));
    let quick = hooks(&world, "quick", &[("10-a", "echo a")]);
    assert!(jvm.run("next", &quick).starts_with("Ok "), "the next set starts a daemon");
    assert_eq!(std::fs::read_to_string(world.path("work/ran")).unwrap(), "a\nb\n");
    jvm.finish();
}

#[test]
fn a_daemon_that_was_stopped_ends_its_sets_and_the_next_one_is_started() {
    let world = World::new();
    let stays = stays(&world, "stays.pid");
    let dir = hooks(&world, "set", &[("10-a", "echo a"), ("20-b", &stays), ("30-c", "echo c")]);
    let mut jvm = Jvm::start(&world);
    jvm.say(&format!("run set {dir}"));
    let hook = pid(&world, "stays.pid");
    world.hob(&["stop"]).go().succeeded();
    let told = jvm.told("set");
    assert!(told.starts_with("Cancelled ran=10-a/OK/"), "{told}");
    assert!(told.contains(",20-b/CANCELLED/signal15/") && told.contains("notrun=30-c "), "{told}");
    assert!(wait::ended(hook, wait::LONG));
    // The connection that it had is of no use any more; a set that was not given finds another.
    let quick = hooks(&world, "quick", &[("10-a", "echo a")]);
    assert!(jvm.run("next", &quick).starts_with("Ok "));
    // Two daemons write them: the one that ends may be the later.
    let records = wait::until("both receipts", || {
        let records = world.records(10);
        (records.len() == 2).then_some(records)
    });
    assert!(records.iter().any(|one| one["reason"] == "stopping"), "{records:?}");
    jvm.finish();
}

#[test]
fn a_daemon_that_another_build_replaces_lets_its_sets_come_to_their_end() {
    let world = World::new();
    // It goes on when the file is there.
    let waits = "touch begun; until [ -e go ]; do sleep 0.01; done; echo went";
    let dir = hooks(&world, "set", &[("10-a", waits), ("20-b", "echo b")]);
    let quick = hooks(&world, "quick", &[("10-a", "echo a")]);
    let mut jvm = Jvm::start(&world);
    jvm.say(&format!("run set {dir}"));
    wait::until("the hook", || world.path("work/begun").exists().then_some(()));
    let old = world.daemon();
    let image = std::fs::read(world.binary()).unwrap();
    let build = world.status()["build"].as_str().unwrap().to_owned();
    let id: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&build[2 * at..2 * at + 2], 16).unwrap()).collect();
    let at = image.windows(16).position(|part| part == id).expect("the id is in the file");
    let mut image = image;
    image[at] ^= 1;
    let other = world.executable("hob-other", image);
    // The next call of another build runs cold and replaces the daemon.
    world.run(&[&other]).args(&["run", "true"]).go().succeeded();
    let new = wait::until("the new daemon", || world.daemon_if_any().filter(|pid| *pid != old));
    // The old one takes nothing new; its caller goes to the new one by itself.
    assert!(jvm.run("next", &quick).starts_with("Ok "));
    world.file("go", "");
    let told = jvm.told("set");
    assert!(told.starts_with("Ok ran=10-a/OK/exit0/77656e740a/,20-b/OK/exit0/620a/"), "{told}");
    assert!(wait::ended(old, wait::LONG));
    assert_eq!(world.daemon(), new);
    jvm.finish();
    world.run(&[&other]).args(&["stop"]).go().succeeded();
}

#[test]
fn more_sets_than_may_be_open_are_told_that_hob_is_busy() {
    let world = World::new();
    let dir = hooks(&world, "stays", &[("10-a", "exec sleep 100000")]);
    let mut jvm = Jvm::start(&world);
    for number in 0..1100 {
        jvm.say(&format!("run n{number} {dir}"));
    }
    wait::until("what is too much", || {
        (jvm.count("NotRun/BUSY ran= running=- notrun= because=1024 sets are open") == 76)
            .then_some(())
    });
    assert_eq!(jvm.count(": "), 76);
    // The daemon answers others meanwhile, and what waits ends with its caller.
    assert!(world.status()["pid"].is_u64());
    kill(jvm.pid(), Signal::KILL);
    wait::until("every receipt", || {
        (world.records(2000).iter().filter(|one| one["reason"] == "caller-left").count() == 1024)
            .then_some(())
    });
}

#[test]
fn what_cannot_be_reached_or_be_equal_is_said() {
    let world = World::new();
    let dir = hooks(&world, "set", &[("10-a", "echo a")]);
    let mut nobody = Jvm::with(&world, |run| run.env("HOB_BIN", "/nonexistent/hob"));
    let told = nobody.run("set", &dir);
    assert!(told.starts_with("NotRun/NO_DAEMON ran= "), "{told}");
    assert!(told.contains("cannot start /nonexistent/hob"), "{told}");
    nobody.finish();
    world.hob(&["start"]).go().succeeded();
    let mut lower = Jvm::with(&world, |run| run.under(&["prlimit", "--core=1000:1000"]));
    let told = lower.run("set", &dir);
    assert!(told.starts_with("NotRun/CONTEXT ran= "), "{told}");
    assert!(told.contains("limit of core size is 1000 of 1000, the daemon's "), "{told}");
    lower.finish();
    let mut nicer = Jvm::with(&world, |run| run.under(&["nice", "-n", "5"]));
    let told = nicer.run("set", &dir);
    assert!(told.contains("has another priority than the daemon"), "{told}");
    nicer.finish();
}
