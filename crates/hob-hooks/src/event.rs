//! What a runner tells whoever drives it.

use std::time::Duration;

use hob_core::hooks::{Bytes, HookRecord, SetRecord};

/// A set's number, unique in its runner, and in its parallel runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetId(pub u64);

/// What has happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A set's directory was listed; its first hook is next.
    SetStarted {
        /// Which.
        set: SetId,
        /// For whom.
        target: &'a Bytes,
        /// How many hooks it has.
        hooks: usize,
        /// Their names, in order.
        names: &'a [Vec<u8>],
    },
    /// A hook's process was started. That its file could not be executed may be told by its end.
    HookStarted {
        /// Its set.
        set: SetId,
        /// Its file's name.
        name: &'a Bytes,
        /// Its process id.
        pid: u32,
    },
    /// A hook has written this; what is kept of it is bounded, and this is all of it.
    Output {
        /// Its set.
        set: SetId,
        /// To which of its streams.
        stream: Stream,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A hook has run for longer than was asked to be warned of, and goes on.
    HookSlow {
        /// Its set.
        set: SetId,
        /// Its file's name.
        name: &'a Bytes,
        /// What it may take before that is told.
        after: Duration,
    },
    /// A hook ended, or could not be started.
    HookEnded {
        /// Its set.
        set: SetId,
        /// Its record, which is in the set's record later.
        record: &'a HookRecord,
    },
    /// A set ended. Exactly one for each that was submitted.
    SetEnded(SetRecord),
    /// A descriptor given to [`crate::Runner::watch`] under this number is readable.
    Ready(u32),
}

/// One of a hook's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Its stdout.
    Out,
    /// Its stderr.
    Err,
}
