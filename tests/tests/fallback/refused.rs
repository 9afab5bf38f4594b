//! Where the kernel refuses a system call, as containers and older kernels do: whatever still runs
//! without hob runs through it.

use std::collections::BTreeSet;

use hob_tests::World;
use serde_json::Value;

/// `refused.py` says what it does.
const DRIVER: &str = include_str!("refused.py");
/// How many of them share the work.
const DRIVERS: usize = 2;
/// A program runs under nearly every filter: with fewer comparisons than this the filters are
/// not what they should be.
const PAIRS_MIN: u64 = 600;

/// The names of those that have been worse, by number.
fn names(number: u64) -> &'static str {
    match number {
        5 => "fstat",
        14 => "rt_sigprocmask",
        39 => "getpid",
        57 => "fork",
        61 => "wait4",
        110 => "getppid",
        293 => "pipe2",
        434 => "pidfd_open",
        439 => "faccessat2",
        _ => "",
    }
}

#[test]
fn no_refused_system_call_makes_a_program_worse_than_without_hob() {
    if !cfg!(target_arch = "x86_64") {
        return skipped("the filters name the system calls of x86-64");
    }
    let world = World::started();
    let driver = world.file("refused.py", DRIVER).to_string_lossy().into_owned();
    // All of it takes some minutes: see CONTRIBUTING.md.
    let mode = std::env::var("HOB_REFUSED").unwrap_or_else(|_| "some".to_owned());
    let start = |number: usize| {
        let folder = world.path(format!("driver-{number}"));
        let run = world.run(&["python3", &driver]).args(&[world.binary(), &folder]);
        run.args(&[&number.to_string(), &DRIVERS.to_string(), &mode]).start()
    };
    let drivers: Vec<_> = (0..DRIVERS).map(start).collect();
    let (mut pairs, mut worse) = (0, BTreeSet::new());
    for driver in drivers {
        let outcome = driver.finish_within(60 * hob_tests::wait::LONG);
        outcome.succeeded();
        for line in outcome.text().lines() {
            let told: Value = serde_json::from_str(line).expect("each line is JSON");
            pairs += told["pairs"].as_u64().unwrap_or(0);
            if let Some(number) = told["number"].as_u64() {
                worse.insert(format!("{number} {}: {told}", names(number)));
            }
        }
    }
    assert!(worse.is_empty(), "{} runs: {worse:#?}", worse.len());
    assert!(pairs >= PAIRS_MIN, "only {pairs} pairs could be compared");
}

#[expect(clippy::print_stderr, reason = "who reads the tests' output sees what was not tested")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
