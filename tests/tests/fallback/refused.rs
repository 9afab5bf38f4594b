//! Where the kernel refuses a system call, as containers and older kernels do: whatever still runs
//! without hob runs through it, and is warm but for what `COLD` names.

use std::collections::{BTreeMap, BTreeSet};

use hob_tests::World;
use serde_json::Value;

/// `refused.py` says what it does.
const DRIVER: &str = include_str!("refused.py");
/// How many of them share the work. Most of their time they wait for what does not answer.
const DRIVERS: usize = 6;
/// System calls that no client makes, and those that no daemon, no Python and no warm copy makes
/// either: with fewer the filters are not what they should be. A client does make some.
const UNMADE: std::ops::RangeInclusive<u64> = 250..=350;
const UNMADE_WARM_MIN: u64 = 200;
/// Pairs of an error and a system call that is made under which a program runs and is compared, and
/// those of them under which Python's calls are warm: with fewer, nothing was compared.
const PAIRS_MIN: u64 = 100;
const WARM_MIN: u64 = 25;
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
/// Of these at least one call was found cold each time that this was looked at.
const FOUND: [u64; 3] = [39, 434, 435];
/// Where these are refused, which the kernel never does, a build with checks on ends itself.
const CHECKED: [u64; 2] = [102, 107];
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
        return hob_tests::skipped("the filters name the system calls of x86-64");
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
    let has_checks = world.binary().parent().is_some_and(|folder| folder.ends_with("quick"));
    let (mut counts, mut worse, mut cold) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for driver in drivers {
        let outcome = driver.finish_within(60 * hob_tests::wait::LONG);
        outcome.succeeded();
        for line in outcome.text().lines() {
            let told: Value = serde_json::from_str(line).expect("each line is JSON");
            let Some(number) = told["number"].as_u64() else {
                for (name, count) in told.as_object().expect("counts have names") {
                    *counts.entry(name.clone()).or_insert(0) += count.as_u64().unwrap_or(0);
                }
                continue;
            };
            let is_check = has_checks && CHECKED.contains(&number) && told["got"] == "(6, b'')";
            if is_known(number, told["cold"].as_str()) {
                cold.insert(number);
            } else if !is_check {
                worse.insert(format!("{number} {}: {told}", names(number)));
            }
        }
    }
    assert!(worse.is_empty(), "{} runs: {worse:#?}", worse.len());
    assert!(UNMADE.contains(&counts["unmade"]), "{counts:?}");
    assert!(counts["unmade_warm"] >= UNMADE_WARM_MIN, "{counts:?}");
    assert!(counts["pairs"] >= PAIRS_MIN && counts["warm"] >= WARM_MIN, "{counts:?}");
    assert!(FOUND.iter().all(|number| cold.contains(number)), "found cold: {cold:?}");
}

/// Whether it is known that no call is warm without this system call, for this reason.
fn is_known(number: u64, cold: Option<&str>) -> bool {
    let is_told = |reason| number < NEWEST && reason != NO_RECORD;
    cold.is_some_and(|reason| is_told(reason) || COLD.contains(&(number, reason)))
}
