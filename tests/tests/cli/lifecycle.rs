//! Start, stop, restart, and what is left afterwards.

use hob_tests::{End, World, leftovers, wait};

#[test]
fn start_stop_and_restart_may_be_repeated() {
    let world = World::new();
    let stop = world.hob(&["stop"]).go();
    assert_eq!((stop.end, stop.text()), (End::Code(0), "hob: no daemon was running\n".to_owned()));
    world.hob(&["start"]).go().succeeded();
    let first = world.daemon();
    let again = world.hob(&["start"]).go();
    again.succeeded();
    assert_eq!(again.text(), format!("hob: already running (pid {first})\n"));
    world.hob(&["restart"]).go().succeeded();
    assert_ne!(world.daemon(), first);
    assert!(wait::ended(first, wait::LONG));
    world.stop();
    world.stop();
    world.hob(&["restart"]).go().succeeded();
}

#[test]
fn stopping_an_idle_daemon_is_answered_every_time() {
    let world = World::new();
    for _ in 0..20 {
        world.hob(&["start"]).go().succeeded();
        let stop = world.hob(&["stop"]).go();
        assert!(stop.text().starts_with("hob: stopped (pid "), "{stop:?}");
    }
}

#[test]
fn many_that_start_at_once_start_one() {
    let world = World::new();
    let starts: Vec<_> = (0..12).map(|_| world.hob(&["start"]).start()).collect();
    for start in starts {
        start.finish().succeeded();
    }
    let daemon = world.daemon();
    let others = hob_tests::leftovers::processes(&world.path("run"))
        .into_iter()
        .filter(|(pid, _)| *pid != daemon)
        .collect::<Vec<_>>();
    // Those that came second leave on their own.
    for (pid, command) in others {
        assert!(wait::ended(pid, wait::LONG), "{pid}: {command}");
    }
}

/// A daemon that was killed can be connected to, and holds its lock, until the kernel has cleared
/// it away.
#[test]
fn a_daemon_that_was_killed_a_moment_ago_is_started_anew() {
    let world = World::started();
    for _ in 0..12 {
        let killed = world.daemon();
        hob_tests::run::kill(killed, rustix::process::Signal::KILL);
        world.hob(&["start"]).go().succeeded();
        assert_ne!(world.daemon(), killed);
    }
    hob_tests::run::kill(world.daemon(), rustix::process::Signal::KILL);
    world.hob(&["stop"]).go().succeeded();
    // What it left is cleared away by the next one.
    world.hob(&["start"]).go().succeeded();
}

/// Nobody finds it, and it holds the lock until it has made its socket anew.
#[test]
fn a_daemon_whose_socket_was_removed_is_found_again_by_start() {
    let world = World::started();
    let daemon = world.daemon();
    std::fs::remove_file(world.hob_dir().join("socket")).expect("it has a socket");
    world.hob(&["start"]).go().succeeded();
    assert_eq!(world.daemon(), daemon);
}

#[test]
fn a_first_call_needs_no_start() {
    let world = World::new();
    world.file("hello.py", "print('hello')\n");
    let outcome = world.hob(&["run", "hello.py"]).go();
    assert_eq!((outcome.end, outcome.text()), (End::Code(0), "hello\n".to_owned()));
    world.warmed(&["run", "hello.py"]);
}

#[test]
fn an_idle_daemon_ends_on_its_own_and_leaves_nothing() {
    let world = World::new();
    world.hob(&["start"]).env("HOB_IDLE_EXIT_S", "1").go().succeeded();
    world.file("hello.py", "print('hello')\n");
    let daemon = world.daemon();
    let _ = world.hob(&["run", "hello.py"]).go();
    assert!(wait::ended(daemon, wait::LONG), "it did not end");
    world.nothing_is_left();
}

#[test]
fn a_daemon_does_not_hold_its_starters_terminal_or_directory() {
    let world = World::started();
    let daemon = world.daemon();
    let link = |name: &str| std::fs::read_link(format!("/proc/{daemon}/{name}")).unwrap();
    assert_eq!(link("cwd"), std::path::Path::new("/"));
    for fd in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(link(fd), std::path::Path::new("/dev/null"), "{fd}");
    }
    // As text, and not by getsid(2): where a session's leader is in an outer pid namespace, as in
    // some containers, its number is 0.
    let session_and_terminal = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(3);
        (fields.next().unwrap().to_owned(), fields.next().unwrap().to_owned())
    };
    let (session, terminal) = session_and_terminal(&daemon.to_string());
    assert_ne!(session, session_and_terminal("self").0, "it is in a session of its own");
    assert_eq!(terminal, "0", "it has no terminal");
}

#[test]
fn asking_without_a_daemon_says_so() {
    let world = World::new();
    let status = world.hob(&["status"]).go();
    assert_eq!(status.end, End::Code(1));
    assert!(status.complaint().contains("no daemon is running"), "{status:?}");
    for words in [&["last"][..], &["log"], &["log", "--json"]] {
        let outcome = world.hob(words).go();
        assert!(matches!(outcome.end, End::Code(0 | 1)), "{words:?}: {outcome:?}");
        assert!(outcome.complaint().lines().count() <= 1, "{words:?}: {outcome:?}");
    }
    assert!(!world.hob_dir().exists(), "no daemon was started");
}

/// One in the foreground has what a shell had open: a pipe of its caller's would stay open in copies
/// that wait for as long as these do.
#[test]
fn what_a_daemon_starts_holds_nothing_that_its_starter_had_open() {
    let world = World::new();
    world.file("hello.py", "print('hello')\n");
    world.file("hello.rb", "puts :hello\n");
    let script = r#"exec 9>held; exec "$@""#;
    let hob = world.binary().to_string_lossy().into_owned();
    let daemon = world.run(&["sh", "-c", script, "sh", &hob, "daemon"]).start();
    let held = world.path("work/held");
    let holders = || {
        let pids = leftovers::all().into_iter();
        let holds = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/fd/9")).is_ok_and(|file| file == held)
        };
        pids.filter(holds).collect::<Vec<u32>>()
    };
    wait::until("a daemon", || world.daemon_if_any());
    for name in ["hello.py", "hello.rb"] {
        // A caller that has the same number open may be warm.
        let run = world.run(&["sh", "-c", script, "sh", &hob, "run", name]);
        world.warm(&run, |outcome| outcome.succeeded());
    }
    assert_eq!(holders(), [daemon.pid()]);
    world.hob(&["stop"]).go().succeeded();
    daemon.finish().succeeded();
}
