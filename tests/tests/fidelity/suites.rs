//! A sample of the suites of `bench/worlds`: their harness works, and finds nothing where nothing
//! is known to be wrong. All of it is `make bench-worlds`, `bench-moments` and `bench-ends`.

use std::path::PathBuf;

use hob_tests::suites::{self, Spot, Under};
use hob_tests::{World, world};

fn under(only: &[&str], spots: &'static [Spot]) -> Under {
    let place = World::new();
    let asked = place
        .run(&["python3", "-c", "import os, sys; print(os.path.realpath(sys.executable), end='')"])
        .go();
    asked.succeeded();
    Under {
        hob: world::binary(),
        python: PathBuf::from(asked.text()),
        every: 1,
        only: only.iter().map(ToString::to_string).collect(),
        spots,
        seed: 1,
        part: (1, 1),
        worlds: Vec::new(),
    }
}

#[test]
fn questions_of_modules_are_answered_as_cold_in_every_world() {
    let questions = [
        "os.environ.get(\"APP_MODE\")",
        "os.path.exists(COMES)",
        "os.getcwd()",
        "sys.argv[1:]",
        "os.path.abspath(\"relative\")",
        "os.getpgid(0) == os.getpid()",
    ];
    let mut told = Vec::new();
    let report = suites::worlds::run(&under(&questions, &[Spot::Import]), |what| {
        if let suites::worlds::Told::Different(one) = what {
            told.push(one.to_string());
        }
    });
    let known = |one: &&suites::worlds::Difference| one.known.is_some();
    // The group of a warm program is its own by what docs/fidelity.md says; a harness that does
    // not see that sees nothing.
    assert!(report.different.iter().any(|one| known(&one)), "{told:#?}");
    assert_eq!(report.different.iter().filter(|one| !known(one)).count(), 0, "{told:#?}");
    assert!(report.questions >= questions.len() && report.warm > 0, "{report:?}");
    assert!(report.telling >= questions.len() - 1, "the worlds look alike: {report:?}");
}

#[test]
fn things_of_the_moment_that_modules_keep_do_not_repeat() {
    let things = ["uuid.uuid4().hex", "time.time_ns()", "os.getpid()", "os.urandom(8)"];
    let report = suites::moments::run(&under(&things, &[Spot::Import]), |_, _| {});
    let of_posix = |one: &&suites::moments::Repeated| one.thing.contains("posix");
    let faults: Vec<_> = report.repeated.iter().filter(|one| !of_posix(one)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(report.unique >= things.len() && report.cold.is_empty(), "{report:?}");
}

#[test]
fn what_objects_do_when_they_end_is_done_as_cold() {
    let programs = [
        "gzip_file | script",
        "finalizer_that_writes | module",
        "generator_in_generator | script",
        "database_committed | builtins",
        "weak_finalize | class",
        "warnings_of_files | function",
    ];
    let mut told = Vec::new();
    let report = suites::ends::run(&under(&programs, &[]), |what| {
        if let suites::ends::Told::Different(one) = what {
            told.push(one.to_string());
        }
    });
    assert!(report.different.is_empty(), "{told:#?}");
    assert!(report.programs >= programs.len() && report.warm > 0, "{report:?}");
}
