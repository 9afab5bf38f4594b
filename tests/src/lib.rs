//! The harness of the whole-system tests: real processes, real interpreters, a real
//! pseudo-terminal, and nothing of ours replaced.
//!
//! Invariants: each test has a hob of its own (directory, state, home); nothing waits without a
//! bound, and nothing sleeps where it could wait for a mark; after a test no process and no file
//! of its hob is left, which is checked; on failure the test's folder is kept and named.
//!
//! Does not: know how hob works inside. What it knows comes from hob's documented output, from
//! `/proc`, and from `docs/wire.md`.

pub mod bytes;
pub mod chaos;
pub mod leftovers;
pub mod probe;
pub mod restarts;
pub mod run;
pub mod site;
pub mod socket;
pub mod suites;
pub mod teller;
pub mod terminal;
pub mod wait;
pub mod world;

pub use run::{End, Outcome, Run, Running};
pub use terminal::{Called, Terminal};
pub use world::{World, is_warm};

/// Held while a file is written and while a process is started. A process that another test
/// forks at that moment would hold the file open for writing until its own `exec`, and who
/// executes the file meanwhile would be told that it is busy.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Says to who reads the tests' output why a test shows nothing here.
#[expect(clippy::print_stderr, reason = "that is where it is read")]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
