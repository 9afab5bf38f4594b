//! What the loop notes of calls besides their receipts: spans, in the ring of its thread.
//!
//! A note is a few stores into memory that the process shares with a file of the runtime directory,
//! so that `hob trace` finds it after a `kill -9`. Where there is no ring, nothing is noted and
//! nothing else changes.

use std::path::Path;

use hob_core::ids::CallId;
use hob_core::phase::Mark;
use hob_core::span::{self, Holder, Kind, OWN_MAX, Own, Record};
use hob_wire::worker::Spans;

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

/// What a call's program says that it did, up to [`OWN_MAX`] spans of it. What is no span is left
/// out: a worker runs code that is not hob's.
pub(crate) fn own(said: &Spans) {
    let call = CallId(said.call);
    for (number, words) in (0..=u8::MAX).zip(said.spans.iter()) {
        let Some(span) = Own::parse(number, words) else { continue };
        span.records(call).for_each(|record| hob_os::ring::record(record.words()));
    }
    let over = said.spans.len().saturating_sub(OWN_MAX) as u64;
    let dropped = u64::from(said.dropped).saturating_add(over);
    if dropped > 0 {
        note(Kind::OwnDropped, call, dropped, 0);
    }
}
