//! A lane: who holds it, and what its worker has counted.

use std::sync::Arc;

use hob_core::ids::{PoolId, Time, WorkerId};
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::WorkerPart;
use hob_os::clock;
use hob_os::tally::{self, Tally};
use hob_wire::message::{Passed, Reason};
use rustix::fd::OwnedFd;
use rustix::net::Shutdown;

use crate::ctx::Ctx;
use crate::inputs::SenderId;
use crate::jobs::job::{Job, Performer, part_of};
use crate::jobs::origin::Origin;
use crate::jobs::receipts::ANSWERED;

/// A lane that is lent.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) sender: SenderId,
    /// The sender's number of its request, until it is answered.
    pub(super) request: u64,
    pub(super) pool: PoolId,
    performer: Arc<Performer>,
    pid: u32,
    pub(super) worker: Option<WorkerId>,
    /// The worker's end, to shut.
    pub(super) end: Option<Arc<OwnedFd>>,
    /// What the worker counts in.
    pub(super) tally: Option<OwnedFd>,
    /// Messages that its reports name.
    pub(super) reported: Counts,
    /// The same of those that were counted: they have a receipt, or another stands for them.
    pub(super) counted: Counts,
    /// Its sender wants no more of it.
    pub(super) left: bool,
    /// Its worker's process, when that has ended.
    pub(super) ended: Option<WorkerPart>,
    /// When to look whether there was more after the last report.
    pub(super) look_at: Option<Time>,
}

/// Messages of a lane that were not counted before and have one outcome, with the times of the
/// newest.
pub(super) struct Newest {
    pub(super) count: u64,
    pub(super) outcome: &'static str,
    main_ns: u64,
    finished_ns: u64,
}

/// How many messages have ended on a lane, and how many of them raised.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) ended: u64,
    pub(super) raised: u64,
}

impl Lane {
    /// One that is wanted.
    pub(super) fn wanted(
        sender: SenderId,
        request: u64,
        pid: u32,
        pool: PoolId,
        performer: Arc<Performer>,
    ) -> Lane {
        Lane {
            sender,
            request,
            pool,
            performer,
            pid,
            worker: None,
            end: None,
            tally: None,
            reported: Counts::default(),
            counted: Counts::default(),
            left: false,
            ended: None,
            look_at: None,
        }
    }

    /// Lets nothing more onto the lane. What its worker has still to say goes out.
    pub(super) fn shut(&self) {
        if let Some(end) = &self.end {
            let _ = rustix::net::shutdown(&**end, Shutdown::Read);
        }
    }

    fn tally(&self) -> Tally {
        self.tally.as_ref().map(tally::read).unwrap_or_default()
    }

    /// What has ended and was not counted, and from now on is; by outcome.
    pub(super) fn count(&mut self) -> [Newest; 3] {
        let tally = self.tally();
        let ended = tally.ended.max(self.reported.ended);
        let raised = tally.raised.max(self.reported.raised);
        let all = ended.saturating_sub(self.counted.ended);
        let failed = raised.saturating_sub(self.counted.raised).min(all);
        // It was still handled, and nobody waited for the answer any more.
        let is_late = tally.begun == ended && is_late(&tally, tally.ended_ns);
        let late = u64::from(is_late && failed < all);
        self.counted = Counts { ended, raised };
        let newest = |count, outcome| Newest {
            count,
            outcome,
            // The one that is open now may have begun since.
            main_ns: if tally.begun == ended { tally.begun_ns } else { tally.ended_ns },
            finished_ns: tally.ended_ns,
        };
        [
            newest(all - failed - late, ANSWERED),
            newest(failed, Reason::Raised.code()),
            newest(late, Reason::TimedOut.code()),
        ]
    }

    /// The message that its worker has ended in, if it was in one. What it has not read its sender
    /// sends again by the daemon, where it is counted.
    pub(super) fn open(&self) -> Option<Newest> {
        let tally = self.tally();
        if tally.begun <= tally.ended {
            return None;
        }
        let now_ns = clock::now_ns();
        let reason = match self.left {
            true if is_late(&tally, now_ns) => Reason::TimedOut,
            true => Reason::Cancelled,
            false => Reason::Lost,
        };
        let (main_ns, outcome) = (tally.begun_ns, reason.code());
        Some(Newest { count: 1, outcome, main_ns, finished_ns: now_ns })
    }

    /// The message in which its worker has ended the lane, if it has: whoever was to have the rest of
    /// its answer has left.
    pub(super) fn cut_off(&self) -> Option<Newest> {
        let tally = self.tally();
        let (outcome, finished_ns) = (Reason::Cancelled.code(), clock::now_ns());
        let is_open = tally.begun > tally.ended;
        is_open.then_some(Newest { count: 1, outcome, main_ns: tally.begun_ns, finished_ns })
    }

    /// What a receipt says of what was handled.
    pub(super) fn job(&self, ctx: &Ctx<'_>, newest: &Newest) -> Job {
        let mut marks = Marks::default();
        marks.stamp(Mark::Given, Time(newest.main_ns));
        marks.stamp(Mark::Main, Time(newest.main_ns));
        marks.stamp(Mark::Finished, Time(newest.finished_ns));
        self.ended(ctx, newest.outcome, newest.main_ns, marks)
    }

    /// What a front tells of a request that was answered.
    pub(super) fn told_by_front(&self, ctx: &Ctx<'_>, passed: &Passed<'_>) -> Job {
        let tally = self.tally();
        let mut marks = Marks::default();
        marks.stamp(Mark::Queued, Time(passed.given_ns));
        let mut main_ns = passed.given_ns;
        if tally.ended == passed.id && tally.begun == passed.id {
            // Its worker has not gone on since, and knows better.
            main_ns = tally.begun_ns;
            marks.stamp(Mark::Given, Time(main_ns));
            marks.stamp(Mark::Main, Time(main_ns));
            marks.stamp(Mark::Finished, Time(tally.ended_ns));
            marks.stamp(Mark::Settled, Time(passed.ended_ns));
        } else {
            marks.stamp(Mark::Finished, Time(passed.ended_ns));
        }
        let mut job = self.ended(ctx, ANSWERED, main_ns, marks);
        job.passed(passed);
        job
    }

    /// A message that was begun then, and has ended so.
    fn ended(&self, ctx: &Ctx<'_>, outcome: &'static str, main_ns: u64, marks: Marks) -> Job {
        let mut job = Job::new(Origin::Lane, Arc::clone(&self.performer));
        job.began_at(main_ns);
        (job.pid, job.marks) = (self.pid, marks);
        let ended = &mut job.ended;
        (ended.reason, ended.outcome) = ("lane", outcome);
        (ended.is_warm, ended.isolation) = (true, self.performer.isolation);
        let part = |id| ctx.processes.look(id).map(|process| part_of(id, process));
        ended.worker = self.worker.and_then(part).or(self.ended);
        job
    }
}

fn is_late(tally: &Tally, at_ns: u64) -> bool {
    tally.deadline_ns != 0 && at_ns >= tally.deadline_ns
}
