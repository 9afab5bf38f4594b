//! A job: the one record of a piece of work, from its arrival until its receipt.

use std::sync::Arc;

use bytes::Bytes;
use hob_core::hosts::Published;
use hob_core::ids::{CallId, PoolId, Time, WorkerId};
use hob_core::phase::{Mark, Marks};
use hob_core::receipt::trace::Trace;
use hob_core::receipt::{ProgramPart, WorkerPart};
use hob_core::requests::Found;
use hob_os::clock;
use hob_wire::message::{Judged, Manner, Passed, Protocol};
use rustix::fd::OwnedFd;

use super::origin::Origin;
use crate::workers::processes::Process;

/// A piece of work.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) origin: Origin,
    pub(crate) performer: Arc<Performer>,
    /// Its number; what is known only as one of many has none until it has a receipt.
    pub(crate) call: Option<CallId>,
    /// The process that asks for it; 0 where none of this host's does.
    pub(crate) pid: u32,
    pub(crate) at: jiff::Timestamp,
    pub(crate) marks: Marks,
    /// Where it stands in its sender's trace.
    pub(crate) trace: Option<Trace>,
    /// The hosts that it has come over.
    pub(crate) hops: u64,
    /// The bytes of its payload.
    pub(crate) bytes: usize,
    pub(crate) work: Work,
    pub(crate) front: Front,
    pub(crate) ended: Ended,
}

/// Who performs jobs of one kind, as their receipts say it of all of them.
#[derive(Debug)]
pub(crate) struct Performer {
    pub(crate) kind: Kind,
    pub(crate) program: ProgramPart,
    pub(crate) isolation: &'static str,
}

impl Performer {
    /// The one of a pool of which nothing is known.
    pub(crate) fn unknown(pool: PoolId) -> Performer {
        let program = ProgramPart::named("?".to_owned(), "exec");
        Performer { kind: Kind::Pool(pool), program, isolation: "none" }
    }
}

/// What jobs have in common that stand for one another in a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A pool performs them.
    Pool(PoolId),
    /// Other hosts perform them: the program, as it is asked.
    Elsewhere(String),
    /// A stream takes them: their address.
    Stream(Arc<[u8]>),
    /// A front answers them: the mount. None stands for another here, the front has counted them.
    Front,
}

/// What is left to be done.
#[derive(Debug)]
pub(crate) enum Work {
    /// A worker of this host's performs it.
    Here(Asked),
    /// Another host does.
    Elsewhere(Away),
    /// Nothing: it has its outcome.
    Done,
}

/// What a worker is asked, and what it has said.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) manner: Manner,
    pub(crate) pool: PoolId,
    pub(crate) key: Vec<u8>,
    pub(crate) content_type: Vec<u8>,
    pub(crate) message_id: Vec<u8>,
    /// A part of the frame that it came in.
    pub(crate) payload: Bytes,
    /// What comes behind the payload, until it is given.
    pub(crate) file: Option<OwnedFd>,
    pub(crate) deadline: Option<Time>,
    pub(crate) given: Option<Given>,
    pub(crate) said: Option<Said>,
}

/// A message that a worker has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) at: Time,
    pub(crate) worker: WorkerId,
    pub(crate) found: Found,
    /// Whether the worker was known not to have what would be loaded now.
    pub(crate) is_old: bool,
}

/// What a worker says of its message.
#[derive(Debug)]
pub(crate) enum Said {
    Answer {
        content_type: Vec<u8>,
        payload: Vec<u8>,
    },
    Raised {
        text: Vec<u8>,
    },
    /// Whoever was to have the rest of the answer has left.
    Left,
}

/// What is asked of other hosts.
#[derive(Debug)]
pub(crate) struct Away {
    /// The program, as it is asked.
    pub(crate) program: String,
    /// When its sender no longer waits.
    pub(crate) deadline: Option<Time>,
    /// The last attempt to have it performed.
    pub(crate) attempts: u32,
    /// Whether it goes to the host that has answered the one before with its key.
    pub(crate) by_affinity: bool,
    /// The sender's key.
    pub(crate) key: Vec<u8>,
    /// What is asked, as long as it may go to another host.
    pub(crate) message: Option<Published>,
    /// Whether somebody else's trace goes on in it, who looks for its receipt.
    pub(crate) is_followed: bool,
}

/// What a front has said of a request.
#[derive(Debug)]
pub(crate) struct Front {
    /// It is done with the request, and says no more.
    pub(crate) is_done: bool,
    /// What its client speaks.
    pub(crate) protocol: Option<Protocol>,
    /// Where the answer about its rights came from.
    pub(crate) judged: Judged,
    /// The status of an answer that it gave itself.
    pub(crate) status: Option<u16>,
}

/// What became of a job, as far as its receipt says it.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) reason: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) isolation: &'static str,
    /// Whether a worker of this host's had it.
    pub(crate) is_warm: bool,
    pub(crate) worker: Option<WorkerPart>,
    /// The other host that has said it, and the time in µs that was spent there.
    pub(crate) by: Option<(String, u64)>,
}

impl Job {
    /// A job without a number, a process that asks or anything to do; it comes now.
    pub(crate) fn new(origin: Origin, performer: Arc<Performer>) -> Job {
        Job {
            origin,
            performer,
            call: None,
            pid: 0,
            at: jiff::Timestamp::now(),
            marks: Marks::default(),
            trace: None,
            hops: 0,
            bytes: 0,
            work: Work::Done,
            front: Front { is_done: false, protocol: None, judged: Judged::Not, status: None },
            ended: Ended::default(),
        }
    }

    /// A message for a pool, which came then and is planned now.
    pub(crate) fn message(
        origin: Origin,
        performer: Arc<Performer>,
        asked: Asked,
        received_ns: u64,
    ) -> Job {
        let mut job = Job::new(origin, performer);
        job.marks.stamp(Mark::Received, Time(received_ns));
        job.marks.stamp(Mark::Planned, Time(clock::now_ns()));
        job.bytes = asked.payload.len();
        job.work = Work::Here(asked);
        job
    }

    /// What a worker is asked, as long as it has no outcome.
    pub(crate) fn asked(&self) -> Option<&Asked> {
        match &self.work {
            Work::Here(asked) => Some(asked),
            Work::Elsewhere(_) | Work::Done => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn asked_mut(&mut self) -> Option<&mut Asked> {
        match &mut self.work {
            Work::Here(asked) => Some(asked),
            Work::Elsewhere(_) | Work::Done => None,
        }
    }

    /// When it came.
    pub(crate) fn received(&self) -> Time {
        self.marks.get(Mark::Received).unwrap_or_default()
    }

    /// A front is done with it, and says this.
    pub(crate) fn passed(&mut self, passed: &Passed<'_>) {
        self.front.is_done = true;
        (self.front.protocol, self.front.judged) = (Some(passed.protocol), passed.judged);
        self.trace = Trace::of(passed.trace);
        self.head(Head::of(passed));
        self.marks.stamp(Mark::Whole, Time(passed.whole_ns));
        self.marks.stamp(Mark::Passed, Time(passed.passed_ns));
    }

    /// When the head of its request came, and when its rights were judged. The head of HTTP/2 is not
    /// seen before it is whole.
    pub(crate) fn head(&mut self, head: Head) {
        let marks = &mut self.marks;
        if head.came_ns == 0 {
            marks.stamp(Mark::Start, Time(head.begun_ns));
        } else {
            marks.stamp(Mark::Start, Time(head.came_ns));
            marks.stamp(Mark::Parsed, Time(head.begun_ns));
        }
        if head.judged_ns > 0 {
            marks.stamp(Mark::Judged, Time(head.judged_ns));
        }
    }

    /// It came so long ago that this was then.
    pub(crate) fn began_at(&mut self, then_ns: u64) {
        let ago = clock::now_ns().saturating_sub(then_ns);
        let ago = jiff::SignedDuration::from_nanos(i64::try_from(ago).unwrap_or(0));
        self.at = jiff::Timestamp::now().checked_sub(ago).unwrap_or_default();
    }
}

/// When the head of a request came; 0: it was not seen, or its rights were not asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) came_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) judged_ns: u64,
}

impl Head {
    /// As a front says it of a request that an app was to answer.
    pub(crate) fn of(passed: &Passed<'_>) -> Head {
        let Passed { head_ns: came_ns, begun_ns, judged_ns, .. } = *passed;
        Head { came_ns, begun_ns, judged_ns }
    }
}

/// What a receipt says of a worker's process.
pub(crate) fn part_of(id: WorkerId, process: &Process) -> WorkerPart {
    WorkerPart { pid: process.pid, generation: process.zygote.unwrap_or(id).0 }
}

impl Asked {
    /// An empty message of this manner for this pool.
    pub(crate) fn new(manner: Manner, pool: PoolId) -> Asked {
        Asked {
            manner,
            pool,
            key: Vec::new(),
            content_type: Vec::new(),
            message_id: Vec::new(),
            payload: Bytes::new(),
            file: None,
            deadline: None,
            given: None,
            said: None,
        }
    }

    /// The worker that has it.
    pub(crate) fn worker(&self) -> Option<WorkerId> {
        self.given.map(|given| given.worker)
    }

    /// Whether its worker has answered, and not raised.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.said, Some(Said::Answer { .. }))
    }
}
