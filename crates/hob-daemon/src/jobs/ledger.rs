//! The jobs without an outcome.

use std::collections::HashMap;

use hob_core::ids::{CallId, WorkerId};
use hob_core::phase::Mark;
use hob_core::supervisor::Supervisor;
use hob_wire::message::Manner;

use super::job::{Asked, Away, Job, Work};
use crate::recorder::ring;

/// Payloads of messages that are open at one time.
pub(crate) const OPEN_BYTES_MAX: usize = 64 << 20;

/// The open jobs, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    jobs: HashMap<CallId, Job>,
    bytes: usize,
    /// What has come since the core was last asked.
    came: Vec<CallId>,
    /// Tells of which the core has not said yet whether it takes them.
    undecided: Vec<CallId>,
}

impl Ledger {
    /// Takes a job in.
    pub(crate) fn open(&mut self, call: CallId, mut job: Job) {
        job.call = Some(call);
        if let Some(asked) = job.asked() {
            ring::edge(call, Mark::Received, job.received().0);
            self.came.push(call);
            if asked.manner != Manner::Ask && job.origin.sender().is_some() {
                self.undecided.push(call);
            }
        }
        self.put_back(call, job);
    }

    /// Takes a job in that was taken out, and goes on.
    pub(crate) fn put_back(&mut self, call: CallId, job: Job) {
        self.bytes += job.bytes;
        self.jobs.insert(call, job);
    }

    /// Takes a job out, which has its outcome.
    pub(crate) fn close(&mut self, call: CallId) -> Option<Job> {
        let job = self.jobs.remove(&call)?;
        self.bytes -= job.bytes;
        Some(job)
    }

    /// Whether so many more bytes may be open.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= OPEN_BYTES_MAX
    }

    pub(crate) fn get(&self, call: CallId) -> Option<&Job> {
        self.jobs.get(&call)
    }

    pub(crate) fn get_mut(&mut self, call: CallId) -> Option<&mut Job> {
        self.jobs.get_mut(&call)
    }

    /// A job that is this worker's, and what the worker was asked.
    pub(crate) fn of_worker(&mut self, call: CallId, worker: WorkerId) -> Option<&mut Asked> {
        let asked = self.jobs.get_mut(&call)?.asked_mut()?;
        (asked.worker() == Some(worker)).then_some(asked)
    }

    /// What other hosts are asked for a job that is theirs.
    pub(crate) fn away(&mut self, call: CallId) -> Option<&mut Away> {
        match &mut self.jobs.get_mut(&call)?.work {
            Work::Elsewhere(away) => Some(away),
            Work::Here(_) | Work::Done => None,
        }
    }

    /// After the core has decided: what came and was not given waits, and is noted with what it
    /// waits for.
    pub(crate) fn note_waits(&mut self, core: &Supervisor) {
        for call in self.came.drain(..) {
            let asked = self.jobs.get(&call).and_then(Job::asked);
            if asked.is_some_and(|asked| asked.given.is_none()) {
                ring::waits(call, &core.holders(call));
            }
        }
    }

    /// After the core has decided: the tells that it did not refuse.
    pub(crate) fn take_undecided(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.undecided)
    }
}
