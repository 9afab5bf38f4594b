//! Every probe, cold and through hob until it was warm. Each call on the way must be equal: the
//! one that is learned from and those that come while the zygote is made, too.

use hob_tests::{End, World, is_warm, probe};

/// How many shares the probes are divided into; each has its own hob.
const SHARES: usize = 4;
/// There must be at least so many, or the matrix has shrunk.
const PROBES_MIN: usize = 30;
/// Calls until a probe must have been warm.
const CALLS_MAX: usize = 150;

/// These print what was loaded before their own first line, or what a module saw when it was
/// loaded; a warm call has loaded its modules before. Their cold calls must be equal all the same.
const SEES_THE_PRELOAD: [&str; 3] = ["module_exit", "modules_unloaded", "threads"];
/// These do not compile: their workers execute them cold, each time, and receipts say so.
const NOT_COMPILED: [&str; 3] = ["indentation_error", "syntax_error", "syntax_error_encoding"];

#[test]
fn a_first_share_of_the_probes_is_the_same_cold_and_warm() {
    check_share(0);
}

#[test]
fn a_second_share_of_the_probes_is_the_same_cold_and_warm() {
    check_share(1);
}

#[test]
fn a_third_share_of_the_probes_is_the_same_cold_and_warm() {
    check_share(2);
}

#[test]
fn a_fourth_share_of_the_probes_is_the_same_cold_and_warm() {
    check_share(3);
}

fn check_share(share: usize) {
    let world = World::started();
    let folder = world.path("work/probes");
    probe::copy_to(&folder);
    let version = python_version(&world);
    let only = std::env::var("HOB_PROBES").ok();
    let chosen =
        |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    let probes = probe::all();
    assert!(probes.len() >= PROBES_MIN, "only {} probes are left", probes.len());
    let mut failures = Vec::new();
    let of_share = probes.iter().enumerate().filter(|(index, _)| index % SHARES == share);
    for (_, probe) in of_share {
        if chosen(&probe.name)
            && probe.runs_on(version)
            && let Err(failure) = check(&world, probe, &folder)
        {
            failures.push(format!("{}: {failure}", probe.name));
        }
    }
    assert!(failures.is_empty(), "{} probes differ\n{}", failures.len(), failures.join("\n\n"));
}

fn check(world: &World, probe: &probe::Probe, folder: &std::path::Path) -> Result<(), String> {
    let run = probe.through_hob(world, folder);
    let cold = probe.go(&probe.cold(world, folder));
    if matches!(cold.end, End::Code(125..=127)) {
        return Err(format!("does not run cold: {cold:?}"));
    }
    let mut reasons = Vec::new();
    for _ in 0..CALLS_MAX {
        let outcome = probe.go(&run);
        let record = world.record(outcome.pid);
        let reason = record["reason"].as_str().unwrap_or("none").to_owned();
        let warm = is_warm(&record);
        if outcome != cold && !(warm && SEES_THE_PRELOAD.contains(&probe.name.as_str())) {
            return Err(format!("{reason}: through hob\n{outcome:?}\ncold\n{cold:?}"));
        }
        let is_executed_cold = reason == "not-as-loaded";
        if warm || (is_executed_cold && NOT_COMPILED.contains(&probe.name.as_str())) {
            return Ok(());
        }
        reasons.push(reason);
    }
    reasons.dedup();
    Err(format!("never warm: {reasons:?}"))
}

/// The version of the Python that the probes run on.
fn python_version(world: &World) -> (u32, u32) {
    let code = "import sys; print(*sys.version_info[:2])";
    let text = world.run(&["python3", "-c", code]).go().text();
    let (major, minor) = text.trim().split_once(' ').expect("two numbers are printed");
    (major.parse().expect("a number"), minor.parse().expect("a number"))
}
