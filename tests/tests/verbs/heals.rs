//! Programs that fail warm for a reason that hob cannot see, and succeed cold: they heal by
//! themselves.

use hob_tests::{End, Outcome, Run, World};

/// Loaded ahead. Its check tells a copy by its parent, which is an interpreter, once it is armed:
/// till then the program is learned.
const FAULTY: &str = "import os
def check():
    if os.path.exists('armed'):
        with open(f'/proc/{os.getppid()}/cmdline') as file:
            if 'start.py' in file.read(): FAULT
";
const USES_IT: &str = "import faulty\nfaulty.check()\nprint('fine')\n";

const WELL: End = End::Code(0);
const FAILED: End = End::Code(1);

/// A program that is warm, and a call of it with arguments that have not come before.
fn learned(world: &World, name: &str, text: &str) -> Run {
    world.file(name, text);
    world.warm(&world.hob(&["run", name]), |outcome| assert_eq!(outcome.end, WELL, "{outcome:?}"));
    world.file("armed", "");
    world.hob(&["run", name, "now"])
}

/// One whose module does `fault` in a copy.
fn faulty(world: &World, fault: &str) -> Run {
    world.file("faulty.py", FAULTY.replace("FAULT", fault));
    learned(world, "main.py", USES_IT)
}

/// Why it ran cold, if it did, and how it ended.
fn next(world: &World, run: &Run) -> (Option<String>, End) {
    let outcome = world.in_time(run);
    let record = world.record(outcome.pid);
    let reason = record["reason"].as_str().unwrap_or("none").to_owned();
    ((!hob_tests::is_warm(&record)).then_some(reason), outcome.end)
}

fn because(reason: &str) -> Option<String> {
    Some(reason.to_owned())
}

/// It fails warm, and was seen to succeed cold.
fn differs(world: &World, run: &Run, failed: End) {
    assert_eq!(next(world, run), (None, failed));
    assert_eq!(next(world, run), (because("compared"), WELL));
    assert_eq!(next(world, run), (because("differs"), WELL));
}

/// What `hob status` says of the one program.
fn why(world: &World) -> String {
    let pools = world.pools();
    assert_eq!(pools.len(), 1, "{pools:?}");
    pools[0]["why"].as_str().unwrap_or_default().to_owned()
}

fn ends_well(outcome: &Outcome) {
    assert_eq!(outcome.end, WELL, "{outcome:?}");
}

#[test]
fn a_program_that_raises_warm_and_succeeds_cold_runs_cold_until_its_file_is_edited() {
    let world = World::started();
    let run = faulty(&world, "raise RecursionError('deep')");
    differs(&world, &run, FAILED);
    for run in [run.clone(), run.clone().args(&["other"])] {
        assert_eq!(next(&world, &run), (because("differs"), WELL));
    }
    assert!(why(&world).starts_with("it ended with 1 warm and with 0 cold"), "{}", why(&world));
    let status = world.hob(&["status"]).go().text();
    assert!(status.contains("`hob warm`"), "{status}");
    let last = world.hob(&["last"]).go().text();
    assert!(last.contains("it fails warm and succeeds cold"), "{last}");

    world.file("main.py", "import faulty\nprint('edited')\n");
    assert_eq!(world.warm(&run, ends_well).text(), "edited\n");
    assert_eq!(why(&world), "");
}

#[test]
fn an_edit_of_what_is_loaded_ahead_has_it_tried_again() {
    let world = World::started();
    let run = faulty(&world, "os.kill(os.getpid(), 11)");
    differs(&world, &run, End::Signal(11));
    assert!(why(&world).starts_with("it ended by signal 11 warm"), "{}", why(&world));
    world.file("faulty.py", FAULTY.replace("FAULT", "print('mended')"));
    assert_eq!(world.warm(&run, ends_well).text(), "mended\nfine\n");
}

#[test]
fn who_asks_for_it_has_it_tried_again_and_who_verifies_does_not() {
    let world = World::started();
    let run = faulty(&world, "raise OSError");
    differs(&world, &run, FAILED);
    let verified = world.hob(&["verify", "--worlds", "none", "main.py", "now"]).go();
    assert_eq!(verified.end, FAILED, "{verified:?}");
    assert_eq!(next(&world, &run), (because("differs"), WELL));
    std::fs::remove_file(world.path("work/armed")).unwrap();
    assert_eq!(next(&world, &run), (because("differs"), WELL), "its person has not asked");
    world.hob(&["warm", "main.py"]).go().succeeded();
    assert_eq!(next(&world, &run), (None, WELL));
}

#[test]
fn hob_why_says_of_such_a_program_that_it_does_not_end_warm_as_it_does_cold() {
    let world = World::started();
    let _ = faulty(&world, "raise RecursionError('deep')");
    let said = world.hob(&["why", "main.py"]).go();
    assert!(said.text().contains("did not end as it does cold"), "{said:?}");
}

#[test]
fn a_program_that_raises_cold_too_stays_warm() {
    let world = World::started();
    let text = "import os\nif os.path.exists('armed'): raise ValueError\n";
    let run = learned(&world, "main.py", text);
    assert_eq!(next(&world, &run), (None, FAILED));
    assert_eq!(next(&world, &run), (because("compared"), FAILED));
    for _ in 0..3 {
        assert_eq!(next(&world, &run), (None, FAILED));
    }
}

/// What it checks is mended by it, as a hook mends files: it is no fault.
#[test]
fn a_hook_that_mends_what_it_fails_for_stays_warm() {
    let world = World::started();
    let text =
        "import os, sys\nif os.path.exists('armed'):\n    os.remove('armed')\n    sys.exit(1)\n";
    let run = learned(&world, "main.py", text);
    for _ in 0..2 {
        assert_eq!(next(&world, &run), (None, FAILED));
        assert_eq!(next(&world, &run), (None, WELL));
        world.file("armed", "");
    }
}

#[test]
fn a_ruby_program_heals_too() {
    let world = World::started();
    let text = "if File.exist?('armed') && File.read(\"/proc/#{Process.ppid}/cmdline\").include?('worker.rb')\n  raise 'deep'\nend\n";
    let run = learned(&world, "main.rb", text);
    differs(&world, &run, FAILED);
    world.file("main.rb", "puts 'edited'\n");
    assert_eq!(world.warm(&run, ends_well).text(), "edited\n");
}
