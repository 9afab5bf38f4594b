//! The bytes that hob's processes exchange. No I/O and no policy.
//!
//! Owns: the frame header, the schema of all frames (`frames/`), the
//! caps (`caps`), and the exit codes of the client. The tables of `docs/wire.md` and the constants of the
//! runtimes are written from the schema; `runtimes/golden/` holds one file of bytes per frame that
//! the tests of every runtime read.
//!
//! Invariants:
//! - argv, environment and paths are bytes, never text; what the OS passes as NUL-terminated
//!   strings stays so.
//! - times are nanoseconds of `CLOCK_MONOTONIC`, unless a field's name says otherwise.
//! - every length is checked against a named cap before anything is allocated.
//! - decoding never panics, whatever the bytes (`fuzz/` and `tests/`).
//!
//! Deliberately not here: descriptors (they travel beside the bytes, see `hob-os`), and any
//! decision about what a frame means.
#![forbid(unsafe_code)]

pub mod bencode;
pub mod caller;
pub mod caps;
mod codec;
pub mod cursor;
pub mod exit;
pub mod frame;
pub mod frames;
pub mod http;
pub mod schema;
pub mod strings;

pub use cursor::DecodeError;
pub use frame::{Header, Kind};
pub use frames::{call, hooks, launch, message, reply, session, worker};
