//! A caller in a sandbox, as agents and containers have them: where no Unix socket can be made or
//! connected, or hob's directory cannot be written in, the program runs in place, for that reason, and
//! nothing is tried that cannot succeed.

use hob_tests::{End, Run, World};

/// It says itself what it does.
const REFUSES: &str = include_str!("refuses.py");
/// What starts a process: a client that starts a daemon ends there.
const STARTS: &str = "56,57,58,435:KILL";
/// How sandboxes refuse: a filter `socket` or `connect`, and a list of allowed kinds.
const REFUSED: [&str; 5] = ["41:EPERM", "41:EACCES", "41:ENOSYS", "41:EAFNOSUPPORT", "42:EPERM"];

/// hob with these words, under each of these filters.
fn under(world: &World, filters: &[&str], words: &[&str]) -> Run {
    filtered(world, filters, world.hob(words))
}

fn filtered(world: &World, filters: &[&str], run: Run) -> Run {
    let refuses = world.file("refuses.py", REFUSES);
    filters.iter().fold(run, |run, filter| {
        run.under(&["python3".as_ref(), refuses.as_os_str(), filter.as_ref()])
    })
}

fn world() -> World {
    let world = World::new();
    world.file("hello.py", "print('hello')\n");
    world
}

#[test]
fn where_sockets_are_refused_a_call_runs_in_place_and_starts_nothing() {
    if !cfg!(target_arch = "x86_64") {
        return hob_tests::skipped("the filters name the system calls of x86-64");
    }
    let world = world();
    let run = ["run", "hello.py"];
    // The filter that ends a client which starts something does so.
    let started = under(&world, &[STARTS], &run).go();
    assert_eq!(started.end, End::Signal(31), "{started:?}");
    for with_daemon in [false, true] {
        for refused in REFUSED {
            let outcome = under(&world, &[STARTS, refused], &run).go();
            outcome.succeeded();
            assert_eq!(outcome.text(), "hello\n", "{refused}: {outcome:?}");
            assert_eq!(outcome.complaint(), "", "{refused}");
            assert_eq!(world.reason(outcome.pid), "sandbox", "{refused}");
        }
        if !with_daemon {
            assert!(!world.hob_dir().exists(), "a daemon was tried");
            world.hob(&["start"]).go().succeeded();
        }
    }
}

#[test]
fn a_sandbox_is_named_with_the_line_that_allows_sockets() {
    if !cfg!(target_arch = "x86_64") {
        return hob_tests::skipped("the filters name the system calls of x86-64");
    }
    let world = world();
    let doctor = under(&world, &["41:EPERM"], &["doctor"]);
    let agents = [
        ("CODEX_SANDBOX_NETWORK_DISABLED", "network_access = true"),
        ("CLAUDECODE", "\"allowAllUnixSockets\": true"),
        ("OTHER", "--security-opt seccomp="),
    ];
    for (variable, line) in agents {
        let outcome = doctor.clone().env(variable, "1").go();
        assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
        let text = outcome.text();
        assert!(text.contains("sandbox") && text.contains(line), "{variable}: {text}");
        assert!(text.contains("1 fault,"), "{variable}: {text}");
    }
    for verb in ["status", "start"] {
        let outcome = under(&world, &["41:EPERM"], &[verb]).go();
        assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
        assert!(outcome.complaint().contains("a sandbox refuses"), "{outcome:?}");
    }
}

#[test]
fn where_hobs_directory_is_read_only_a_call_runs_in_place_and_starts_nothing() {
    if !cfg!(target_arch = "x86_64") {
        return hob_tests::skipped("the filters name the system calls of x86-64");
    }
    let world = world();
    world.hob(&["start"]).go().succeeded();
    world.stop();
    let folder = world.hob_dir();
    for place in [folder.clone(), folder.join("below/it")] {
        let script =
            format!("mount -t tmpfs -o mode=700,ro none {} && exec \"$@\"", folder.display());
        let within = ["unshare", "--mount", "--propagation", "private", "bash", "-c", &script, "-"];
        if world.run(&["true"]).under(&within).go().end != End::Code(0) {
            return hob_tests::skipped("nothing can be mounted here");
        }
        let run = world.hob(&["run", "hello.py"]).under(&within).env("HOB_DIR", &place);
        let outcome = filtered(&world, &[STARTS], run).go();
        outcome.succeeded();
        assert_eq!(outcome.text(), "hello\n", "{outcome:?}");
        assert_eq!(world.reason(outcome.pid), "sandbox", "{place:?}");
    }
}

#[test]
fn a_daemon_in_another_pid_namespace_is_named() {
    let world = World::started();
    let within = ["unshare", "--pid", "--fork", "--mount-proc"];
    if world.run(&["true"]).under(&within).go().end != End::Code(0) {
        return hob_tests::skipped("no namespace can be made here");
    }
    let outcome = world.hob(&["doctor"]).under(&within).go();
    let text = outcome.text();
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    assert!(text.contains("another pid namespace") && text.contains("1 fault,"), "{text}");
}

#[test]
fn where_no_state_can_be_written_calls_are_warm_all_the_same() {
    let world = world();
    let state = world.path("state");
    let _ = std::fs::create_dir(&state);
    let script = format!(
        "mount -t tmpfs -o mode=700,ro none {} || exit 90\n\
         for call in $(seq 200); do\n\
         said=$(\"$@\" run --status-fd 3 hello.py 3>&1 >/dev/null) || exit 91\n\
         case $said in *'\"warm\":true'*) echo warm; break;; esac\n\
         done\n\"$@\" stop >&2",
        state.display()
    );
    let within = ["unshare", "--mount", "--propagation", "private", "bash", "-c", &script, "-"];
    let outcome = world.run(&[world.binary()]).under(&within).go();
    if outcome.end == End::Code(90) || outcome.complaint().contains("unshare:") {
        return hob_tests::skipped("nothing can be mounted here");
    }
    assert_eq!(outcome.text(), "warm\n", "{outcome:?}");
}
