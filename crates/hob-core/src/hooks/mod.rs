//! Hooks directories: which files of one run and in which order, what became of each, and what
//! that says of the whole. Pure, as all of this crate: listings and ends come in, records go out.
//!
//! A **hook** is one file of a hooks directory, a **set** one run of the whole directory for one
//! **target**. How hooks are started and watched is `hob-hooks`'; what people read is the verbs'.

mod account;
mod asked;
mod bytes;
pub mod glob;
mod limits;
mod outcome;
mod record;
mod select;

pub use account::Account;
pub use asked::{AnsweredSet, AskedSet};
pub use bytes::Bytes;
pub use limits::{LIMITS_SUFFIX, TimeLimits, Times};
pub use outcome::{End, HookOutcome, Trouble, signal_name};
pub use record::{Capture, Chunk, HookRecord, Reason, SetRecord, Way};
pub use select::{DEFAULT_IGNORED, Entry, Kind, Listed, Skipped, Suffix, select};
