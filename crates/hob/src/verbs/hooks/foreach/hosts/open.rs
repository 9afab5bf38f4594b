//! A set that a host has been given, and the record that becomes of it.

use std::collections::BTreeSet;

use hob_core::hooks::{AnsweredSet, HookOutcome, SetRecord};
use hob_hooks::Set;
use hob_os::clock;

/// A set that a host has been given.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) set: Set,
    pub(super) host: String,
    /// The daemons that the host had then.
    pub(super) ids: BTreeSet<String>,
    pub(super) sent_ns: u64,
    /// When one of them was last heard of.
    pub(super) heard_ns: u64,
}

impl Open {
    /// One that no host has.
    pub(super) fn nowhere(set: Set) -> Open {
        let now_ns = clock::now_ns();
        let (host, ids) = (String::new(), BTreeSet::new());
        Open { set, host, ids, sent_ns: now_ns, heard_ns: now_ns }
    }

    /// The record that its host has answered with, as one of this run, which began then.
    pub(super) fn record(&self, number: u64, payload: &[u8], begun_ns: u64) -> SetRecord {
        let Ok(AnsweredSet { set, .. }) = serde_json::from_slice(payload) else {
            let text = format!("{}: what it answered is no record of hooks", self.host);
            return self.ended((number, begun_ns), HookOutcome::SystemError, text);
        };
        let at_us = self.sent_ns.saturating_sub(begun_ns) / 1000;
        let theirs_us = set.at_us;
        let mut record = SetRecord {
            set: number,
            target: self.set.target.clone(),
            dir: self.set.dir.clone(),
            at_us,
            host: Some(self.host.clone()),
            ..set
        };
        for hook in &mut record.hooks {
            hook.at_us = at_us + hook.at_us.saturating_sub(theirs_us);
        }
        record
    }

    /// The record of one that has none of its host's.
    pub(super) fn ended(
        &self,
        (number, begun_ns): (u64, u64),
        outcome: HookOutcome,
        text: String,
    ) -> SetRecord {
        SetRecord {
            set: number,
            target: self.set.target.clone(),
            dir: self.set.dir.clone(),
            outcome,
            at_us: self.sent_ns.saturating_sub(begun_ns) / 1000,
            wall_us: clock::now_ns().saturating_sub(self.sent_ns) / 1000,
            hooks: Vec::new(),
            not_run: Vec::new(),
            message: Some(text),
            host: (!self.host.is_empty()).then(|| self.host.clone()),
        }
    }
}
