//! The client's path of a call, from argv to the end of this process: what is built for speed, and
//! is all of hob that a warm call pays for.
//!
//! ```text
//! run, or a shim by argv[0] ──▶ options ─▶ call ─▶ (daemon) ─▶ exit code, or death by the same signal
//!                                 └──────▶ cold ─▶ the program itself
//! ```
//! Invariants: nothing of the daemon, no parser of arguments, no async runtime, no serializer; only
//! `cold` executes the caller's program. What else a call asks of hob, it asks by [`Rest`].
//! Other verbs speak with the daemon by [`connection`], which no call does.

#![forbid(unsafe_code)]

mod around;
mod beyond;
pub mod call;
pub mod caller;
pub mod cold;
pub mod connect;
pub mod connection;
pub mod fallback;
pub mod hook;
mod line;
pub mod options;

pub use hob_os::say;

use hob_os::start::Start;
use hob_runtimes::Sessions;

/// What a call asks of the rest of hob where it is no warm call: a function for each, since this
/// crate knows no verb.
#[derive(Debug, Clone, Copy)]
pub struct Rest {
    /// Runs a verb other than a call; returns the exit code.
    pub verb: fn(&Start) -> u8,
    /// The line for an option that `hob run` does not have, by its place in argv.
    pub no_option: fn(&Start, usize) -> String,
    /// The next step, to stand behind why this program was not run; empty where none is sure to
    /// help. The number is the exit code.
    pub hint: fn(&Start, &[u8], u8) -> String,
    /// The call that is meant where another command launches the program, from this place in argv
    /// on; `None`: it is what it says. An error has been said, and is the exit code.
    pub meant: fn(&Start, &'static Sessions, usize) -> Result<Option<Start>, u8>,
    /// A length of time in milliseconds, or what is wrong with it.
    pub milliseconds: options::Milliseconds,
}
