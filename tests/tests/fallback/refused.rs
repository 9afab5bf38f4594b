//! Where the kernel refuses a system call, as containers and older kernels do: whatever still runs
//! without hob runs through it, and is warm but for what `COLD` names.

use std::collections::BTreeSet;

use hob_tests::World;
use serde_json::Value;

/// `refused.py` says what it does.
const DRIVER: &str = include_str!("refused.py");
/// How many of them share the work.
const DRIVERS: usize = 4;
/// A program runs under nearly every filter: with fewer comparisons than this the filters are
/// not what they should be.
const PAIRS_MIN: u64 = 600;

/// Pairs under which Python's calls are to be warm, at least: with fewer, nothing warm was compared.
const WARM_MIN: u64 = 70;
/// From this number on an older kernel may not know a system call, and calls are warm without it but
/// for those that `COLD` names. One that every kernel knows is refused by a filter alone; then the
/// reason has to be told.
const NEWEST: u64 = 319;
/// The newest without which no call is warm, and the reason that is told then: `memfd_create` and
/// `pidfd_open`, which a zygote needs; `clone` or `clone3`, by its C library, which a daemon needs for
/// the thread of its records. Without `getpid` no record is found by its caller.
const COLD: [(u64, &str); 5] = [
    (39, NO_RECORD),
    (56, NO_RECORD),
    (319, "warm-failed"),
    (434, "warm-failed"),
    (435, NO_RECORD),
];
/// What `refused.py` says where there is none.
const NO_RECORD: &str = "no record";

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
    let (mut pairs, mut warm, mut worse) = (0, 0, BTreeSet::new());
    for driver in drivers {
        let outcome = driver.finish_within(60 * hob_tests::wait::LONG);
        outcome.succeeded();
        for line in outcome.text().lines() {
            let told: Value = serde_json::from_str(line).expect("each line is JSON");
            pairs += told["pairs"].as_u64().unwrap_or(0);
            warm += told["warm"].as_u64().unwrap_or(0);
            if let Some(number) = told["number"].as_u64()
                && !is_known(number, told["cold"].as_str())
            {
                worse.insert(format!("{number} {}: {told}", names(number)));
            }
        }
    }
    assert!(worse.is_empty(), "{} runs: {worse:#?}", worse.len());
    assert!(pairs >= PAIRS_MIN, "only {pairs} pairs could be compared");
    assert!(warm >= WARM_MIN, "only {warm} pairs were compared warm");
}

/// Whether it is known that no call is warm without this system call, for this reason.
fn is_known(number: u64, cold: Option<&str>) -> bool {
    let is_told = |reason| number < NEWEST && reason != NO_RECORD;
    cold.is_some_and(|reason| is_told(reason) || COLD.contains(&(number, reason)))
}

#[expect(clippy::print_stderr, reason = "who reads the tests' output sees what was not tested")]
pub(super) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
