//! Asks where the kernel refuses what a daemon waits by: they are refused, and why is found.

use hob_tests::{End, Run, World};

const HANDLER: &str = "def f(payload, message):\n    return payload\n";

/// It says itself what it does.
const REFUSES: &str = include_str!("refuses.py");

fn world() -> World {
    let world = World::new();
    world.file("a.py", HANDLER);
    world.file("hob.toml", "[program.a]\nhandler = \"a.py:f\"\n");
    world.file("refuses.py", REFUSES);
    world.hob(&["trust"]).go().succeeded();
    world
}

/// hob, to which, and to whose daemon, a system call is refused.
fn refused(world: &World, number: u32, words: &[&str]) -> Run {
    let number = number.to_string();
    let python = world.run(&["python3", "refuses.py", &number]);
    python.args(&[world.binary()]).args(words)
}

#[test]
fn an_ask_that_no_daemon_can_take_leads_to_the_system_call_that_is_refused() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    for (name, number) in [("eventfd2", 290), ("epoll_create1", 291)] {
        let world = world();
        let outcome = refused(&world, number, &["ask", "a", "x"]).go();
        assert_eq!(outcome.end, End::Code(125), "{name}: {outcome:?}");
        assert!(outcome.complaint().contains("`hob start` says why"), "{name}: {outcome:?}");
        let outcome = refused(&world, number, &["daemon"]).go();
        assert!(outcome.complaint().contains("refuses epoll or eventfd"), "{name}: {outcome:?}");
        let doctor = refused(&world, number, &["doctor"]).go().text();
        assert!(doctor.contains(&name[..5]), "{name}: {doctor}");
    }
}
