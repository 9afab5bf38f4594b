//! Jobs with an outcome: what their receipts wait for, and what they say.
//!
//! Which of them have a receipt of their own is `sampling`'s to say. That of a request is held until
//! its front is done with it: only then is known what its client took.

use std::collections::HashMap;

use hob_core::ids::Time;
use hob_core::receipt::{MessagePart, OutcomePart, Receipt};
use hob_os::clock;
use hob_wire::message::{Passed, Protocol};

use super::job::Job;
pub(crate) use super::sampling::{ANSWERED, EVERY_US};
use super::sampling::{Due, Sampling};
use crate::inputs::SenderId;
use crate::recorder::{Recorder, format};

/// Outcomes that wait for their fronts; above that receipts lack what the front would say.
const HELD_MAX: usize = 16_384;

/// The jobs that have their outcome, and no receipt yet.
#[derive(Debug)]
pub(crate) struct Receipts {
    sampling: Sampling,
    /// Those whose front has not said yet that it is done with them.
    held: HashMap<(SenderId, u64), Job>,
    /// The senders are a site's front, which says when it is done.
    of_front: bool,
}

impl Receipts {
    /// None yet; whether the senders are a site's front.
    pub(crate) fn new(of_front: bool) -> Receipts {
        Receipts { sampling: Sampling::default(), held: HashMap::new(), of_front }
    }

    /// A job has its outcome, of which its sender, if there is one still, has been told.
    pub(crate) fn settled(&mut self, recorder: &Recorder, job: Job, is_waited_for: bool) {
        let front = job.origin.sender().filter(|_| is_waited_for && self.of_front);
        match front {
            Some(number) if !job.front.is_done && self.held.len() < HELD_MAX => {
                self.held.insert(number, job);
            }
            Some(_) | None => self.leave(recorder, job, 1),
        }
    }

    /// A front is done with a request that has its outcome.
    pub(crate) fn passed(&mut self, recorder: &Recorder, sender: SenderId, passed: &Passed<'_>) {
        if let Some(mut job) = self.held.remove(&(sender, passed.id)) {
            job.passed(passed);
            self.leave(recorder, job, 1);
        }
    }

    /// Leaves what is held of a front that has left.
    pub(crate) fn sender_gone(&mut self, recorder: &Recorder, sender: SenderId) {
        let held: Vec<Job> =
            self.held.extract_if(|(id, _), _| *id == sender).map(|(_, job)| job).collect();
        held.into_iter().for_each(|job| self.leave(recorder, job, 1));
    }

    /// Leaves all that is held: no front says more.
    pub(crate) fn fronts_gone(&mut self, recorder: &Recorder) {
        let held = std::mem::take(&mut self.held);
        held.into_values().for_each(|job| self.leave(recorder, job, 1));
    }

    /// Leaves the receipt of so many jobs, of which this is the newest; or keeps it, for a later one
    /// to stand for them.
    pub(crate) fn leave(&mut self, recorder: &Recorder, job: Job, count: u64) {
        let due = self.sampling.take(Time(clock::now_ns()), job, count);
        due.into_iter().for_each(|due| write(recorder, due));
    }

    /// Takes in so many jobs of which a front may still tell more.
    pub(crate) fn hold(&mut self, job: Job, count: u64) {
        self.sampling.hold(Time(clock::now_ns()), job, count);
    }

    /// Tells more of a job that was taken in. Where its receipt has been left, another one tells of
    /// one that was `slow`, and stands for none.
    pub(crate) fn amend(&mut self, recorder: &Recorder, job: Job, slow: bool) {
        if let Some(job) = self.sampling.amend(job)
            && slow
        {
            self.leave(recorder, job, 0);
        }
    }

    /// When the next one is due.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.sampling.next_due()
    }

    /// Leaves the receipts that nothing has come to stand for in time.
    pub(crate) fn tick(&mut self, recorder: &Recorder) {
        let due = self.sampling.due(Time(clock::now_ns()));
        due.into_iter().for_each(|due| write(recorder, due));
    }

    /// Leaves all of them, due or not.
    pub(crate) fn leave_all(&mut self, recorder: &Recorder) {
        let all = self.sampling.all(Time(clock::now_ns()));
        all.into_iter().for_each(|due| write(recorder, due));
    }
}

/// Leaves the receipt of a job that has one for itself.
pub(crate) fn write_own(recorder: &Recorder, job: Job, stands_for: u64) {
    write(recorder, Due { job, stands_for });
}

fn write(recorder: &Recorder, Due { job, stands_for }: Due) {
    let call = job.call.map_or_else(|| recorder.next_call(), |call| call.0);
    let Job { origin, performer, pid, at, marks, trace, hops, bytes, front, ended, .. } = job;
    let (host, host_us) = ended.by.unzip();
    let outcome = OutcomePart::of(ended.outcome);
    let mut receipt = Receipt::new(call, format::moment(at), performer.program.clone(), outcome);
    receipt.time(&marks);
    (receipt.caller_pid, receipt.warm, receipt.worker) = (pid, ended.is_warm, ended.worker);
    ended.reason.clone_into(&mut receipt.reason);
    ended.isolation.clone_into(&mut receipt.isolation);
    receipt.trace = trace.map(|trace| trace.part());
    receipt.message = Some(MessagePart {
        bytes,
        stands_for,
        protocol: named(front.protocol),
        rights: front.judged.code().map(str::to_owned),
        status: front.status,
        host,
        host_us,
        asked_by: origin.asked_by().map(str::to_owned),
        hops: Some(hops).filter(|hops| *hops > 0),
    });
    recorder.record(receipt);
}

/// The name of what a client speaks, if its front has said.
fn named(protocol: Option<Protocol>) -> Option<String> {
    let protocol = protocol.filter(|protocol| *protocol != Protocol::Nothing)?;
    Some(protocol.name().to_owned())
}
