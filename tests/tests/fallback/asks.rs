//! Asks where the kernel refuses a system call, or `/proc` is for reading only: they go on where
//! there is another way, and else say what is refused.

use hob_tests::{End, Outcome, Run, World};

const HANDLER: &str = "def f(payload, message):\n    return payload\n";

/// It says itself what it does.
const REFUSES: &str = include_str!("refuses.py");

fn world() -> World {
    let world = World::new();
    world.file("a.py", HANDLER);
    world.file("b.rb", "def f(payload, message) = payload\n");
    world
        .file("hob.toml", "[program.a]\nhandler = \"a.py:f\"\n[program.b]\nhandler = \"b.rb:f\"\n");
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

fn answered(outcome: &Outcome) {
    outcome.succeeded();
    assert_eq!(outcome.text(), "x", "{outcome:?}");
}

#[test]
fn an_ask_goes_on_or_says_which_system_call_is_refused() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    // A file without a name has another way.
    let memfd_create = world();
    for program in ["a", "b"] {
        for _ in 0..2 {
            answered(&refused(&memfd_create, 319, &["ask", program, "x"]).go());
        }
    }
    let pidfd_open = world();
    let outcome = refused(&pidfd_open, 434, &["ask", "a", "x"]).go();
    assert_eq!(outcome.end, End::Code(126), "{outcome:?}");
    assert!(outcome.complaint().contains("pidfd_open: "), "{outcome:?}");
    // Without these no daemon waits for anything.
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

#[test]
fn an_ask_goes_on_where_proc_is_for_reading_only() {
    let world = world();
    let hob = world.binary().display();
    let script = format!(
        "set -e\nmount -o remount,ro,bind /proc || mount -t proc -o ro proc /proc\n\
         echo mounted >&2\n{hob} ask a x\n{hob} ask b x\n{hob} stop >&2"
    );
    let outcome = world.run(&["unshare", "--mount", "bash", "-c", &script]).go();
    if outcome.complaint().contains("mounted") {
        outcome.succeeded();
        assert_eq!(outcome.text(), "xx", "{outcome:?}");
    }
}
