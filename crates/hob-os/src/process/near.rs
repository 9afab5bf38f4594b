//! Where a thread waits: on the processor of whom it served last.
//!
//! A thread that is woken from another processor is put where it ran before, if that is idle, and
//! an idle processor of a virtual machine is halted: waking it takes as long as the work
//! (`docs/why/handover.md`). So one that serves one caller at a time waits, for a while, where that
//! caller ran, and is restricted to it only while it waits: what it starts inherits nothing.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock;
use crate::process::processors::Processors;

/// How long a caller's processor is waited on: beyond it, nobody knows where the next one runs.
const NEAR_NS: u64 = 1_000_000_000;

/// What one thread knows of whom it served last. Shared by who notes it and who waits.
#[derive(Debug, Default)]
pub struct Near {
    /// The processor's number plus one; 0: none is known.
    at: AtomicU32,
    /// When it was noted, on the monotonic clock.
    noted_ns: AtomicU64,
    /// While the thread waits: what it may run on otherwise, and what it waits on.
    held: Mutex<Option<(Processors, Processors)>>,
}

impl Near {
    /// Notes on which processor a caller ran.
    pub fn note(&self, processor: u32) {
        self.at.store(processor.saturating_add(1), Ordering::Relaxed);
        self.noted_ns.store(clock::now_ns(), Ordering::Relaxed);
    }

    /// Forgets it: where others are served too, the kernel knows better.
    pub fn forget(&self) {
        self.at.store(0, Ordering::Relaxed);
    }

    /// Before the thread waits.
    pub fn wait_begins(&self) {
        let Some(at) = self.at.load(Ordering::Relaxed).checked_sub(1) else { return };
        let noted_ns = self.noted_ns.load(Ordering::Relaxed);
        if clock::now_ns().saturating_sub(noted_ns) > NEAR_NS {
            return self.forget();
        }
        // As it is now: whoever restricts this thread means it.
        let Ok(own) = Processors::own() else { return };
        if let Some(alone) = own.only(at)
            && alone != own
            && alone.take().is_ok()
        {
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some((own, alone));
        }
    }

    /// After it has waited. What somebody else has restricted it to meanwhile stays.
    pub fn wait_ended(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((own, alone)) = held
            && Processors::own().is_ok_and(|now| now == alone)
        {
            let _ = own.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::processors;

    #[test]
    fn a_thread_waits_where_it_was_told_and_runs_anywhere() {
        let all = Processors::own().unwrap();
        let near = Near::default();
        near.wait_begins();
        assert_eq!(Processors::own().unwrap(), all, "nothing was noted");
        near.note(processors::current());
        near.wait_begins();
        let waits = Processors::own().unwrap();
        assert_eq!(waits.to_bytes().iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        near.wait_ended();
        assert_eq!(Processors::own().unwrap(), all);
        near.forget();
        near.wait_begins();
        assert_eq!(Processors::own().unwrap(), all);
        // None has these numbers.
        near.note(1023);
        near.note(u32::MAX);
        near.wait_begins();
        assert_eq!(Processors::own().unwrap(), all);
    }

    #[test]
    fn what_others_restrict_a_thread_to_while_it_waits_stays() {
        let all = Processors::own().unwrap();
        let near = Near::default();
        near.note(processors::current());
        near.wait_begins();
        all.take().unwrap();
        near.wait_ended();
        assert_eq!(Processors::own().unwrap(), all);
    }
}
