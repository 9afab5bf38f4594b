//! A program runs on its caller's processors, however its worker came to be.

use hob_tests::{World, leftovers, wait};

const SCRIPT: &str = "import os\nprint(sorted(os.sched_getaffinity(0)))\n";

/// One of the processors that this test may use.
fn one() -> String {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).find(|at| allowed.is_set(*at)).unwrap().to_string()
}

#[test]
fn a_program_runs_on_its_callers_processors_and_the_next_one_on_its_own() {
    let world = World::started();
    world.file("processors.py", SCRIPT);
    let narrow = one();
    for ahead in ["1", "0"] {
        for words in [&["taskset", "-c", &narrow][..], &["env"]] {
            let cold = world.run(&["python3", "processors.py"]).under(words).go();
            let run = world.hob(&["run", "--ahead", ahead, "processors.py"]).under(words);
            world.warm(&run, |outcome| assert_eq!(&cold, outcome, "{words:?}"));
        }
    }
}

#[test]
fn a_daemon_that_was_started_on_one_processor_serves_callers_on_all() {
    let world = World::new();
    world.file("processors.py", SCRIPT);
    world.hob(&["start"]).under(&["taskset", "-c", &one()]).go().succeeded();
    let cold = world.run(&["python3", "processors.py"]).go();
    let run = world.hob(&["run", "processors.py"]);
    world.warm(&run, |outcome| assert_eq!(&cold, outcome));
    waits_on(&world, &allowed("self"));
}

/// What a process's first thread may run on, as the kernel writes it.
fn allowed(process: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_owned()
}

/// Waits until the daemon, while it waits, may run on these and no others.
fn waits_on(world: &World, processors: &str) {
    let daemon = world.daemon().to_string();
    wait::until(&format!("the daemon waits on {processors}"), || {
        // Asking wakes it, so that it looks again where to wait.
        let _ = world.status();
        (allowed(&daemon) == processors).then_some(())
    });
}

#[test]
fn a_daemon_waits_where_its_last_lone_caller_ran_and_what_it_starts_runs_on_all() {
    let world = World::started();
    let all = allowed("self");
    world.file("processors.py", SCRIPT);
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let numbers = (0..rustix::thread::CpuSet::MAX_CPU).filter(|at| set.is_set(*at));
    let daemon = world.daemon().to_string();
    for number in numbers.take(2) {
        let number = number.to_string();
        let narrow = world.hob(&["run", "processors.py"]).under(&["taskset", "-c", &number]);
        world.warm(&narrow, |outcome| assert_eq!(outcome.text(), format!("[{number}]\n")));
        wait::until("the daemon waits where its caller ran", || {
            world.warm(&narrow, |_| {});
            (allowed(&daemon) == number).then_some(())
        });
        // What is started right after it has waited there.
        world.file(&format!("starts{number}.py"), SCRIPT);
        let cold = world.run(&["python3", "processors.py"]).go();
        for words in
            [&["run", &format!("starts{number}.py")][..], &["run", "--cold", "processors.py"]]
        {
            let outcome = world.hob(words).go();
            assert_eq!(outcome.text(), cold.text(), "{words:?}");
        }
        world.warm(&world.hob(&["run", &format!("starts{number}.py")]), |outcome| {
            assert_eq!(outcome.text(), cold.text());
        });
        for zygote in leftovers::all() {
            if leftovers::parent(zygote).is_some_and(|parent| parent.to_string() == daemon) {
                let its = allowed(&zygote.to_string());
                // One that has ended meanwhile says nothing.
                assert!(its.is_empty() || its == all, "a zygote of {daemon}: {its}");
            }
        }
    }
    // Some time after the last call it waits anywhere.
    waits_on(&world, &all);
}
