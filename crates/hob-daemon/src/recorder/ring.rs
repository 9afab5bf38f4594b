//! What the loop notes of calls besides their receipts: spans, in the ring of its thread.
//!
//! A note is a few stores into memory that the process shares with a file of the runtime directory,
//! so that `hob trace` finds it after a `kill -9`. Where there is no ring, nothing is noted and
//! nothing else changes.

use std::path::Path;

use hob_core::ids::CallId;
use hob_core::phase::Mark;
use hob_core::span::{self, Holder, Kind, Record};

/// From now on the threads of this process note spans, in this directory.
pub(crate) fn begin(directory: &Path) {
    hob_os::ring::begin(directory);
}

/// A call has passed a mark.
#[inline]
pub(crate) fn edge(call: CallId, mark: Mark, at_ns: u64) {
    hob_os::ring::record(Record::edge(call, mark, at_ns).words());
}

/// Something has happened, to a call or to none (0).
#[inline]
pub(crate) fn note(kind: Kind, call: CallId, a: u64, b: u64) {
    hob_os::ring::record(Record::new(kind, call, a, b).words());
}

/// A call begins to wait, for these.
pub(crate) fn waits(call: CallId, holders: &[Holder]) {
    span::waits(call, holders).for_each(|record| hob_os::ring::record(record.words()));
}
