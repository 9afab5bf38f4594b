//! Links to peers: other processes on this machine, with actors that are used like local ones.
//!
//! ```text
//!   actor ──tell, ask──▶ shard ──Edge::send──▶ links ──frame──▶ socket ──▶ the peer's links
//!   actor ◀──message──── shard ◀──deliver───── receive ◀──────────────── (the same the other way)
//! ```
//! - `wire`: how values become bytes and back; `bytes`: header and payload, and the bytes on
//!   both sides of a socket, gathered and written once a turn;
//! - `table`: which messages travel, and what both ends agree on first; `names`: how actors are
//!   named between processes; `open`: what waits for its end;
//! - `links`: the seam to a shard (`remote.rs`): what goes out; `receive`: what comes in; `one`: one
//!   link; `ways`: how links begin and end; `commands`: what other threads want of them; `process`:
//!   worker processes;
//! - `rings`: the same bytes by shared memory instead, where that was asked for; `ringed`: how a
//!   link gets there.
//!
//! All but `process`, `rings` and the system calls of `links` and `ways` is pure.

mod bytes;
pub(crate) mod commands;
pub(crate) mod links;
mod names;
mod one;
mod open;
mod process;
mod receive;
mod ringed;
mod rings;
pub(crate) mod run;
mod table;
mod ways;
mod wire;

use bytes::{buffers, frame};
use open::{calls, tokens};

pub(crate) use links::Links;
pub(crate) use names::Names;
pub(crate) use process::inherited;
pub use process::{Ended, Program};
pub use table::{HelloError, Messages};
pub use wire::{Decoder, Encoder, Schema, Wire, WireError};
