//! The binary of hob, as a library: for its own entry point, and for `xtask`, which makes the man
//! pages and completions.
//!
//! ```text
//! main ─ run, or a shim by argv[0] ──▶ options ─▶ client ─▶ (daemon) ─▶ exit code, or death by the same signal
//!   │                          └────▶ cold ─▶ the program itself
//!   ├── daemon ──▶ hob_daemon::run
//!   └── anything else ──▶ verbs ─▶ show
//! ```
//! Invariants: the `run` path uses no argument parser and no async runtime; only `cold` executes
//! the caller's program; only `show` and `verbs` print.

#![forbid(unsafe_code)]

mod around;
mod beyond;
pub mod client;
pub mod cold;
pub mod connect;
pub mod fallback;
pub mod hook;
pub mod options;
pub mod say;
pub mod show;
mod spread;
pub mod verbs;

pub use hob_daemon::durations;

use hob_os::start::Start;
use hob_wire::exit::ExitCode;
use options::CalledAs;

/// hob lends nobody rights, and so takes none: what it would run, start and write down would be
/// its owner's doing at the wish of whoever called.
#[cold]
fn refuse_lent_rights() -> u8 {
    say::line(
        b"started with rights that are not its caller's (a set-user-ID or set-group-ID file, or \
          capabilities): nothing is run; take them away (`chmod u-s,g-s`, `setcap -r`)",
    );
    ExitCode::NotExecutable as u8
}

/// Runs hob with the process's argv and environment; returns its exit code.
#[must_use]
pub fn main(start: &Start, begun_ns: u64) -> u8 {
    if hob_os::start::has_lent_rights() {
        return refuse_lent_rights();
    }
    if CalledAs::of(start) == CalledAs::Shim {
        return match hook::start_of_interpreter(start) {
            Some(interpreter) => client::run_hook(&interpreter, begun_ns),
            None => client::run_as_shim(start, begun_ns),
        };
    }
    match start.argv.get(1).map(|verb| verb.to_bytes()) {
        Some(b"run") => client::run(start, begun_ns),
        Some(b"daemon") => verbs::daemon::run(start),
        Some(_) | None => verbs::run(start),
    }
}
