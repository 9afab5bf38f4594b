//! The messages that have come over hosts and are performed now: by which worker, and their ways.

use std::collections::HashMap;

use hob_core::hosts::trail::Trail;
use hob_core::ids::{CallId, WorkerId};
use hob_os::process;

use crate::ctx::Ctx;

/// How far from a handler's process one may be that asks in its name.
const ANCESTORS_MAX: usize = 16;

/// Their ways.
#[derive(Debug, Default)]
pub(crate) struct Trails(HashMap<CallId, (WorkerId, Trail)>);

impl Trails {
    /// A worker has a message that has come this way.
    pub(crate) fn given(&mut self, call: CallId, worker: WorkerId, trail: Trail) {
        self.0.insert(call, (worker, trail));
    }

    /// It has its outcome.
    pub(crate) fn ended(&mut self, call: CallId) {
        self.0.remove(&call);
    }

    /// The way of what this process is asked, or one that it was started by: what it asks goes on
    /// with that. Where a worker performs several at one time, the longest way counts.
    pub(crate) fn of(&self, ctx: &Ctx<'_>, pid: u32) -> Option<Trail> {
        if self.0.is_empty() {
            return None;
        }
        // One that was forked may have its number only after it was given something.
        let pids: HashMap<WorkerId, u32> = ctx.processes.pids().into_iter().collect();
        let mut next = Some(pid);
        for _ in 0..ANCESTORS_MAX {
            let pid = next.filter(|pid| *pid > 1)?;
            let of_this = self.0.values().filter(|(worker, _)| pids.get(worker) == Some(&pid));
            if let Some((_, trail)) = of_this.max_by_key(|(_, trail)| trail.hops) {
                return Some(*trail);
            }
            next = process::parent_of(pid);
        }
        None
    }
}
