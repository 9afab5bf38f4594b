//! `--retries N`: targets that failed wait here until they are tried again.
//!
//! Invariants: a target that has ended well, or that somebody ended, is not tried again, and neither
//! is one whose end nobody knows (a system error: another host may have run it). Those that wait have
//! left a place each, so there are never more of them than run at once.

use std::collections::VecDeque;
use std::ffi::CString;

use hob_core::hooks::HookOutcome;
use hob_hooks::Set;

use super::super::targets::Target;

/// What a hook sees of it, where hooks run on this host: `1` in the first try.
pub(super) const VARIABLE: &str = "HOB_TRY";

/// A target that was given to the performer.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) target: Target,
    pub(super) digest: String,
    pub(super) lane: Option<u32>,
    pub(super) set: Set,
    /// Which try it is.
    pub(super) tries: u32,
}

/// The targets that wait for another try.
#[derive(Debug)]
pub(super) struct Tries {
    retries: u32,
    waiting: VecDeque<Given>,
}

impl Tries {
    /// With so many after the first.
    pub(super) fn new(retries: u32) -> Tries {
        Tries { retries, waiting: VecDeque::new() }
    }

    /// The next one, with its next try.
    pub(super) fn next_one(&mut self) -> Option<Given> {
        let mut given = self.waiting.pop_front()?;
        given.tries += 1;
        given.lane = None;
        let name = format!("{VARIABLE}=");
        let tried = given.set.environment.iter().map(|entry| {
            if !entry.to_bytes().starts_with(name.as_bytes()) {
                return entry.clone();
            }
            CString::new(format!("{name}{}", given.tries)).unwrap_or_else(|_| entry.clone())
        });
        given.set.environment = tried.collect();
        Some(given)
    }

    /// Keeps one that ended so for another try; gives it back if this was its last.
    pub(super) fn keep(&mut self, given: Given, outcome: HookOutcome) -> Option<Given> {
        let again = match outcome {
            HookOutcome::Error | HookOutcome::Timeout => given.tries <= self.retries,
            HookOutcome::Ok
            | HookOutcome::Warning
            | HookOutcome::Interrupt
            | HookOutcome::SystemError
            | HookOutcome::Cancelled => false,
        };
        if !again {
            return Some(given);
        }
        self.waiting.push_back(given);
        None
    }
}
