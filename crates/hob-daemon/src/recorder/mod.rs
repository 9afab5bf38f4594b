//! The recorder: the only part of hob that writes receipts.
//!
//! ```text
//!   a settled call ─record()─▶ buffer (bounded) ─▶ writer thread ─▶ segments on disk ─▶ reader
//!      < 3 µs, no wake           writer.rs  │         format.rs        store.rs        reader.rs
//!                                          ├─▶ sums per program and day: gain.rs, days.rs
//!                                          └─▶ a collector, if one is configured: push/
//! ```
//! Invariants:
//! - recording never fails and never delays a call: what cannot be written is dropped and counted;
//! - everything is bounded: the buffer, a line, a segment, the number of segments;
//! - files are ours alone (0600 in 0700), and no link is followed to them;
//! - environment values and argument texts are not in a receipt, so they are not on the disk.
//!
//! It does not decide what is in a receipt (`hob_core::receipt`), and it does not show one (the
//! `hob` crate's `show`). It keeps no index: the newest receipts are at the end, and that is what
//! people ask for. The sums are what stays when the ring has forgotten.

pub mod days;
pub mod export;
pub mod format;
pub mod gain;
pub mod place;
pub mod push;
pub mod reader;
pub mod recording;
pub(crate) mod ring;
pub mod spans;
mod store;
mod writer;

pub(crate) use place::{Missing, open_place};
pub use place::{PlaceError, make_place, state_dir};
pub(crate) use store::is_our_file;
pub use store::{SEGMENT_BYTES_MAX, SEGMENTS_MAX};
pub use writer::{Flushed, QUEUE_RECEIPTS_MAX, Recorder};
