//! Programs of other people that call commands for their users, each as it comes: editors, task
//! runners, runners of hooks. They see what they see without hob, and are answered warm.

mod editors;
mod runners;

use std::path::PathBuf;

use hob_tests::{Run, World};

/// A formatter in Python, which is on `PATH` behind its shim.
const TIDY_LINES: &str = "#!/usr/bin/env python3\nimport argparse, json, logging, sys\n\
    sys.stdout.writelines(sorted(sys.stdin))\n";

/// A world whose `PATH` begins with hob, the shim of `tidy-lines`, and the command itself.
fn with_shim() -> (World, std::ffi::OsString) {
    let world = World::started();
    world.executable("bin/tidy-lines", TIDY_LINES);
    std::os::unix::fs::symlink(world.binary(), world.path("work/bin/hob")).unwrap();
    let usual = world.run(&["sh", "-c", "echo $PATH"]).go().text();
    let shims = world.path("home/.local/share/hob/shims");
    let first = [shims, world.path("work/bin")];
    let usual: Vec<PathBuf> = std::env::split_paths(usual.trim()).collect();
    let path = std::env::join_paths(first.into_iter().chain(usual)).unwrap();
    world.hob(&["shim", "add", "tidy-lines"]).env("PATH", &path).go().succeeded();
    (world, path)
}

/// A command that `make test-deps` installs; `None` where it could not be had.
#[expect(clippy::print_stderr, reason = "who reads the tests' output sees what was not tested")]
fn had(world: &World, command: &str) -> Option<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/callers/bin");
    if let Ok(found) = PathBuf::from(own).join(command).canonicalize() {
        return Some(found);
    }
    let found = world.run(&["sh", "-c", &format!("command -v {command}")]).go().text();
    let found = Some(PathBuf::from(found.trim())).filter(|path| path.is_absolute());
    if found.is_none() {
        eprintln!("skipped: no {command} here: make test-deps");
    }
    found
}

/// The receipts of a program among the newest.
fn receipts(world: &World, program: &str, count: usize) -> Vec<serde_json::Value> {
    let records = world.records(count);
    records.into_iter().filter(|record| record["program"]["name"] == program).collect()
}

/// Calls again until the newest receipt of the program is a warm one.
fn until_warm(world: &World, program: &str, run: &Run, check: impl Fn()) {
    hob_tests::wait::until("a warm call", || {
        run.go().succeeded();
        check();
        let newest = receipts(world, program, 1).pop()?;
        hob_tests::is_warm(&newest).then_some(())
    });
}
