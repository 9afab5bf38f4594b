//! A program runs on its caller's processors, however its worker came to be.

use hob_tests::World;

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
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.daemon())).unwrap();
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = |text: &str| {
        text.lines().find(|line| line.starts_with("Cpus_allowed_list:")).map(str::to_owned)
    };
    assert_eq!(allowed(&status), allowed(&own));
}
