//! The binary of hob, as a library: for its own entry point, and for `xtask`, which makes the man
//! pages and completions.
//!
//! ```text
//! main ─ run, or a shim by argv[0] ──▶ hob_client ─▶ exit code, or death by the same signal
//!   ├── daemon ──▶ hob_daemon::run
//!   └── anything else ──▶ cli ─▶ verbs ─▶ show
//! ```
//! Invariants: the client's path is a crate of its own (`hob-client`); text reaches a person by `say`
//! alone.

#![forbid(unsafe_code)]

pub mod cli;
pub mod failure;
mod output;
pub mod show;
mod spread;
pub mod verbs;

pub use hob_client::{call, cold, connect, connection, fallback, hook, options, say};
pub use hob_daemon::durations;

use hob_client::Rest;
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

/// What a call asks of the verbs.
pub(crate) static REST: Rest = Rest {
    verb: cli::run,
    no_option: cli::no_option_of_run,
    hint: cli::hint,
    meant: verbs::session::launch::meant,
    milliseconds: |text| durations::milliseconds(text).map_err(durations::Wrong::text),
};

/// Runs hob with the process's argv and environment; returns its exit code.
#[must_use]
pub fn main(start: &Start, begun_ns: u64) -> u8 {
    if hob_os::start::has_lent_rights() {
        return refuse_lent_rights();
    }
    if CalledAs::of(start) == CalledAs::Shim {
        return match hook::start_of_interpreter(start) {
            Some(interpreter) => call::run_hook(&interpreter, begun_ns, &REST),
            None => call::run_as_shim(start, begun_ns, &REST),
        };
    }
    match start.argv.get(1).map(|verb| verb.to_bytes()) {
        Some(b"run") => call::run(start, begun_ns, &REST),
        Some(b"daemon") => verbs::daemon::run(start),
        Some(_) | None => cli::run(start),
    }
}
