//! What a worker cannot take on: a caller who is elsewhere, or is somebody else, goes cold, does
//! what it does without hob, and is told why. What can be taken on stays warm.

use hob_tests::{Run, World};

/// Shows what the tests change.
const SHOWS: &str = "\
import os, socket, time
print(socket.gethostname(), os.getuid(), os.getgid(), os.getgroups(), os.stat('/').st_ino)
for line in open('/proc/self/status'):
    if line.startswith(('Cap', 'NoNew', 'Seccomp:', 'Groups')):
        print(line.strip())
for name in sorted(os.listdir('/proc/self/ns')):
    print(name)
print(open('/proc/self/personality').read())
";

/// A world in which the script above is warm.
fn warmed() -> World {
    let world = World::started();
    world.file("shows.py", SHOWS);
    world.warmed(&["run", "shows.py"]);
    world
}

/// The reason of the newest call. Not by its process, whose number is another one to itself when
/// it is in a pid namespace of its own.
fn newest(world: &World) -> (bool, String) {
    let records = world.records(1);
    let record = records.last().expect("the call left a record");
    (hob_tests::is_warm(record), record["reason"].as_str().unwrap_or("none").to_owned())
}

/// Checks that a caller of this shape goes cold for `reason`, and that everybody else is warm.
/// Where the system does not permit the shape, says so and checks nothing.
fn goes_cold(world: &World, reason: &str, shape: impl Fn(Run) -> Run) {
    let trial = shape(world.run(&["true"])).go();
    if trial.end != hob_tests::End::Code(0) {
        hob_tests::skipped(&format!("not permitted here: {trial:?}"));
        return;
    }
    let cold = shape(world.run(&["python3", "shows.py"])).go();
    cold.succeeded();
    let outcome = world.in_time(&shape(world.hob(&["run", "shows.py"])));
    assert_eq!(outcome, cold);
    assert_eq!(newest(world), (false, reason.to_owned()));
    world.warmed(&["run", "shows.py"]);
}

#[test]
fn a_caller_in_another_namespace_goes_cold() {
    let world = warmed();
    let kinds: [&[&str]; 12] = [
        &["--mount"],
        &["--pid", "--fork"],
        &["--pid", "--fork", "--mount-proc"],
        &["--net"],
        &["--ipc"],
        &["--uts"],
        &["--cgroup"],
        &["--time"],
        &["--time", "--monotonic", "1000000"],
        &["--user", "--map-root-user"],
        &["--user", "--map-current-user"],
        &["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"],
    ];
    for kind in kinds {
        goes_cold(&world, "context", |run| run.under(&["unshare"]).under(kind));
    }
}

#[test]
fn a_caller_with_another_root_goes_cold() {
    let world = World::new();
    // In a namespace with its daemon, so that nothing but the root differs.
    let script = "set -e; mkdir root; mount --rbind / root; $HOB start >&2\n\
        for i in $(seq 100); do $HOB run shows.py >warm; sleep 0.01; done\n\
        $HOB log -n 1 --json; /usr/sbin/chroot root sh -c \"cd $PWD; $HOB run shows.py\" >cold\n\
        $HOB log -n 1 --json; $HOB stop >&2";
    world.file("shows.py", SHOWS);
    let outcome = world
        .run(&["unshare", "--mount", "--propagation", "private", "sh", "-c", script])
        .env("HOB", world.binary())
        .go();
    if outcome.text().is_empty() {
        hob_tests::skipped(&format!("not permitted here: {outcome:?}"));
        return;
    }
    let text = outcome.text();
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    assert_eq!(records[0]["warm"], true, "{text}");
    assert_eq!(records[1]["reason"], "context", "{text}");
    let content = |name: &str| std::fs::read_to_string(world.path("work").join(name)).unwrap();
    assert_eq!(content("warm"), content("cold"));
}

#[test]
fn a_caller_with_other_groups_or_capabilities_goes_cold() {
    let world = warmed();
    let kinds: [&[&str]; 6] = [
        &["--regid", "1000", "--keep-groups"],
        &["--groups", "1000,1001"],
        &["--bounding-set", "-net_raw"],
        &["--inh-caps", "+net_raw"],
        &["--inh-caps", "+net_raw", "--ambient-caps", "+net_raw"],
        &["--no-new-privs"],
    ];
    for kind in kinds {
        goes_cold(&world, "context", |run| run.under(&["setpriv"]).under(kind));
    }
}

#[test]
fn a_caller_under_a_filter_of_system_calls_goes_cold() {
    let world = warmed();
    // One instruction: allow.
    let filter = "import ctypes, os, struct, sys\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))\n\
        program = struct.pack('HxxxxxxP', 1, ctypes.addressof(code))\n\
        assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())\n\
        os.execvp(sys.argv[1], sys.argv[1:])\n";
    let filter = world.file("filter.py", filter).to_string_lossy().into_owned();
    goes_cold(&world, "context", |run| run.under(&["python3", &filter]));
}

#[test]
fn an_interpreter_that_changes_rights_is_executed() {
    let world = warmed();
    std::fs::create_dir(world.path("work/bin")).expect("a folder can be made");
    let python = world.path("work/bin/python3.11");
    let name = python.to_string_lossy().into_owned();
    let real = world.run(&["python3", "-c", "import sys; print(sys.executable)"]).go();
    let copy = format!("cp \"$(realpath {})\" {name}", real.text().trim());
    world.run(&["sh", "-c", &copy]).go().succeeded();
    for rights in [format!("chmod 4755 {name}"), format!("chmod 755 {name}; chmod 2755 {name}")] {
        world.run(&["sh", "-c", &rights]).go().succeeded();
        let outcome = world.hob(&["run", &name, "shows.py"]).go();
        assert_eq!(newest(&world), (false, "not-hosted".to_owned()), "{outcome:?}");
    }
    let set = format!("chmod 755 {name} && /usr/sbin/setcap cap_net_raw+ep {name}");
    if world.run(&["sh", "-c", &set]).go().end != hob_tests::End::Code(0) {
        hob_tests::skipped(&format!("not permitted here: {set}"));
        return;
    }
    let outcome = world.hob(&["run", &name, "shows.py"]).go();
    assert_eq!(newest(&world), (false, "not-hosted".to_owned()), "{outcome:?}");
}

#[test]
fn a_caller_with_another_personality_goes_cold() {
    let world = warmed();
    goes_cold(&world, "context", |run| run.under(&["setarch", "-R"]));
}

#[test]
fn a_caller_above_the_daemons_priority_goes_cold() {
    let world = World::new();
    world.file("shows.py", SHOWS);
    world.hob(&["start"]).go().succeeded();
    // Absolute values: who runs the tests may have lowered itself.
    let at = |nice: i8, oom: i16| {
        format!("echo {oom} >/proc/$$/oom_score_adj && renice -n {nice} $$ >/dev/null 2>&1")
    };
    for (nice, oom) in [(6, 400), (5, 300)] {
        world.warm(&world.hob(&["run", "shows.py"]).after(&at(nice, oom)), |_| {});
    }
    // Each is above in one thing and below in another, or is of a rank that no daemon is to have.
    let above: [(String, &[&str]); 3] = [
        (at(-1, 400), &[]),
        (at(5, 300), &["ionice", "-c1", "-n4"]),
        (at(5, 300), &["chrt", "--fifo", "1"]),
    ];
    for (commands, under) in above {
        let shape = |run: Run| run.after(&format!("{{ {commands}; }} >&2")).under(under);
        if shape(world.run(&["true"])).go().end != hob_tests::End::Code(0) {
            hob_tests::skipped(&format!("not permitted here: {commands}"));
            continue;
        }
        let cold = shape(world.run(&["python3", "shows.py"])).go();
        let outcome = world.in_time(&shape(world.hob(&["run", "shows.py"])));
        assert_eq!(outcome, cold);
        assert_eq!(newest(&world), (false, "priority".to_owned()), "{commands} {under:?}");
    }
}

/// What the first caller has lowered for itself is not for those after it.
#[test]
fn a_daemon_that_a_lowered_caller_starts_is_an_ordinary_one_where_it_may() {
    let world = World::new();
    world.file("shows.py", SHOWS);
    let lowered = "echo 300 >/proc/$$/oom_score_adj; renice -n 10 $$ >/dev/null";
    let first = world.hob(&["run", "shows.py"]).under(&["ionice", "-c3"]).after(lowered);
    first.go().succeeded();
    if !rustix::process::geteuid().is_root() {
        hob_tests::skipped("not permitted here: only root may raise itself");
        return;
    }
    let daemon = world.daemon();
    world.warm(&world.hob(&["run", "shows.py"]), |_| {});
    assert_eq!(world.daemon(), daemon, "the same one");
    let doctor = world.hob(&["doctor"]);
    assert!(doctor.go().text().contains("no faults"), "{}", doctor.go().text());
    // A caller above what is ordinary is told so; and above one thing only, it does not replace it.
    let above = doctor.after("echo 400 >/proc/$$/oom_score_adj; renice -n -1 $$ >/dev/null");
    let said = above.go().text();
    assert!(said.contains("nice -1 here, 0 there") && said.contains("hob restart"), "{said}");
}

#[test]
fn a_daemon_that_may_not_raise_itself_gives_way_to_a_better_caller() {
    let world = World::new();
    world.file("shows.py", SHOWS);
    // As anybody but root is.
    let plain = ["setpriv", "--bounding-set", "-sys_nice,-sys_resource"];
    if world.run(&["true"]).under(&plain).go().end != hob_tests::End::Code(0) {
        hob_tests::skipped("not permitted here: the bounding set cannot be lowered");
        return;
    }
    world.hob(&["start"]).under(&plain).under(&["nice", "-n", "10"]).go().succeeded();
    gives_way(&world, "priority", &plain);
}

/// A real-time caller's daemon would be no other caller's.
#[test]
fn a_daemon_that_starts_under_another_policy_serves_ordinary_callers() {
    let world = World::new();
    world.file("shows.py", SHOWS);
    for policy in ["--fifo", "--batch"] {
        let under = ["chrt", policy, if policy == "--fifo" { "1" } else { "0" }];
        if world.run(&["true"]).under(&under).go().end != hob_tests::End::Code(0) {
            hob_tests::skipped(&format!("not permitted here: {policy}"));
            continue;
        }
        world.hob(&["start"]).under(&under).go().succeeded();
        let daemon = world.daemon();
        world.warm(&world.hob(&["run", "shows.py"]), |_| {});
        assert_eq!(world.daemon(), daemon, "{policy}");
        world.stop();
    }
}

/// Where it may not, it gives way to one of a caller that is worse in nothing.
#[test]
fn a_daemon_that_has_less_than_its_caller_gives_way_to_a_better_one() {
    let world = World::new();
    world.file("shows.py", SHOWS);
    world.hob(&["start"]).after("ulimit -n 256; umask 777; ulimit -St 1").go().succeeded();
    gives_way(&world, "limits", &[]);
    // And a caller with less is performed there, as it is.
    let less = world.hob(&["run", "shows.py"]).after("ulimit -n 256");
    let plain = less.clone().env("HOB", "0").go();
    world.warm(&less, |outcome| assert_eq!(outcome, &plain));
}

#[test]
fn a_daemon_in_a_control_group_with_a_limit_gives_way_to_a_caller_outside() {
    let Some(group) = Group::make("outside") else {
        hob_tests::skipped("not permitted here: no control group can be made");
        return;
    };
    let world = World::new();
    world.file("shows.py", SHOWS);
    std::fs::write(group.0.join("pids.max"), "500").expect("a limit can be set");
    let enter = format!("echo $$ >{}/cgroup.procs", group.0.display());
    world.hob(&["start"]).after(&enter).go().succeeded();
    let said = world.hob(&["doctor"]).go().text();
    assert!(said.contains("a control group's limit") && said.contains("1 fault"), "{said}");
    gives_way(&world, "cgroup", &[]);
    assert!(world.hob(&["doctor"]).go().text().contains("no faults"));
}

/// Checks that the next call runs cold for this reason, as without hob, that a daemon of its
/// caller's takes the place of this one, and that calls are warm there.
fn gives_way(world: &World, reason: &str, under: &[&str]) {
    let daemon = world.daemon();
    let run = world.hob(&["run", "shows.py"]).under(under);
    let cold = run.clone().env("HOB", "0").go();
    let outcome = world.in_time(&run);
    assert_eq!(outcome, cold);
    let other = || world.daemon_if_any().filter(|pid| *pid != daemon);
    hob_tests::wait::until("another daemon is there", other);
    // The one before it has written its receipt when it has left.
    assert_eq!(world.reason(outcome.pid), reason);
    world.warm(&run, |outcome| assert_eq!(outcome, &cold));
}

#[test]
fn a_control_group_with_a_limit_goes_cold_and_one_without_does_not() {
    let world = warmed();
    let Some(group) = Group::make("inside") else {
        hob_tests::skipped("not permitted here: no control group can be made");
        return;
    };
    let enter = |run: Run| run.after(&format!("echo $$ >{}/cgroup.procs", group.0.display()));
    let inside = enter(world.hob(&["run", "shows.py"]));
    let plain = world.run(&["python3", "shows.py"]).go();
    let warm = inside.go();
    assert_eq!(warm, plain);
    assert!(newest(&world).0, "{:?}", newest(&world));
    std::fs::write(group.0.join("pids.max"), "500").expect("a limit can be set");
    assert_eq!(inside.go(), plain);
    assert_eq!(newest(&world), (false, "cgroup".to_owned()));
    std::fs::write(group.0.join("pids.max"), "max").expect("a limit can be taken away");
    world.warm(&inside, |outcome| assert_eq!(outcome, &plain));
}

/// A control group of the pids controller, without a limit. Removed at its end.
struct Group(std::path::PathBuf);

impl Group {
    fn make(name: &str) -> Option<Group> {
        let name = format!("hob-test-{name}-{}", std::process::id());
        ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].into_iter().find_map(|root| {
            let group = Group(std::path::Path::new(root).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            group.0.join("pids.max").exists().then_some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it may take a moment to leave.
        let removed = || std::fs::remove_dir(&self.0).ok();
        hob_tests::wait::look(std::time::Duration::from_secs(5), removed);
    }
}
