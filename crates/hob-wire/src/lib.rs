//! The bytes that hob's processes exchange. No I/O and no policy.
//!
//! Owns: the frame header, the sections inside each frame, the caps, and the exit codes of the
//! client. `docs/wire.md` and `docs/worker.md` are the same in words; `runtimes/golden/` holds
//! one file of bytes per frame that the tests of every runtime read.
//!
//! Invariants:
//! - argv, environment and paths are bytes, never text; what the OS passes as NUL-terminated
//!   strings stays so.
//! - every length is checked against a named cap before anything is allocated.
//! - decoding never panics, whatever the bytes (`fuzz/` and `tests/`).
//!
//! Deliberately not here: descriptors (they travel beside the bytes, see `hob-os`), and any
//! decision about what a frame means.
#![forbid(unsafe_code)]

pub mod call;
pub mod caller;
pub mod cursor;
pub mod exit;
pub mod frame;
pub mod hooks;
pub mod launch;
pub mod message;
pub mod reply;
pub mod strings;
pub mod worker;

pub use cursor::DecodeError;
pub use frame::{Header, Kind};
