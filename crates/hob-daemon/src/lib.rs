//! The hands of hob: everything that the core decides is done here.
//!
//! ```text
//!   callers ─▶ fronts/local ─┐                       ┌─▶ hands ─▶ zygotes, workers
//!   workers ─▶ channel ──────┼─▶ owner ─▶ hob-core ──┤
//!   the kernel (SIGCHLD) ────┤   (one loop)          ├─▶ callers (queued, run cold, ended)
//!   control ─────────────────┘                       └─▶ ledger ─▶ recorder
//! ```
//! Invariants: one thread runs the loop and owns all state, and never waits; the daemon never
//! forks without exec; no `waitpid(-1)`; only the recorder writes receipts; no front knows what
//! isolation is.
#![forbid(unsafe_code)]

mod around;
mod calls;
mod channel;
pub mod config;
mod ctx;
mod freshness;
mod fronts;
mod handlers;
pub mod hosts;
mod inputs;
mod jobs;
mod leases;
#[cfg(any(test, feature = "measure"))]
pub mod measure;
mod messages;
pub mod outbox;
pub mod project;
pub mod recorder;
#[cfg(test)]
mod recording;
mod run;
mod serve;
mod sessions;
mod sets;
mod socket;
mod tables;
mod tells;
pub mod trust;
mod user_config;
mod warm;
mod workers;

pub use around::are_bounded_alike;
pub use config::Config;
pub use hob_hooks::durations;
pub use run::log::{FILE as LOG_FILE, configured as log_configured};
pub use serve::{DaemonError, run};
pub use tells::dead::alone as dead_letters;
pub use warm::programs::program_id;
