//! What the daemon tells [`super::Messages`], and what that asks of the daemon.
//!
//! ```text
//!   a sender    Arrived, WantLane ─────────▶ ┌──────────┐ ──▶ Give, Lend, NoLane
//!               SenderGone, LaneLeft ──────▶ │ Messages │ ──▶ Settle
//!   a worker    Ready, Answered, LaneOver ─▶ │          │ ──▶ StartZygote, StartWorker, Fork
//!               ZygoteReady, Gone ─────────▶ │          │ ──▶ Recall, Retire, Kill
//!   the clock   Tick ──────────────────────▶ └──────────┘ next_deadline()
//! ```
//! Effects are performed in the order in which they were returned. Of a process, `Gone` or
//! `ForkFailed` is the last event, and a zygote's comes before those of the copies that end with
//! it.

use crate::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use crate::isolation::Recipe;

/// What a pool of handlers works by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Where workers come from, how many wait, and for how many messages each is good.
    pub recipe: Recipe,
    /// Whether a worker belongs to the key that it was first given, and performs it in order.
    pub affinity: Affinity,
    /// Workers at one time.
    pub workers_max: u32,
    /// Messages that wait at one time.
    pub queue_max: u32,
    /// Memory of a worker, in KiB, after which it is replaced.
    pub worker_kib: u64,
    /// After this without a message, a pool (or a session's worker) is retired.
    pub idle_us: u64,
}

/// Which worker a message may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// To any of its pool.
    Any,
    /// To the one of its key.
    Session,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A handler that was not known before, or whose configuration is another now.
    Opened {
        /// Its pool.
        pool: PoolId,
        /// What it works by.
        terms: Terms,
    },
    /// What is warm of a pool is not what would be loaded now. Told before the `Arrived` that
    /// found it.
    Stale {
        /// The pool.
        pool: PoolId,
    },
    /// A message has come.
    Arrived {
        /// Its number.
        call: CallId,
        /// Its pool.
        pool: PoolId,
        /// Its session.
        key: Vec<u8>,
        /// When its sender no longer waits.
        deadline: Option<Time>,
    },
    /// A message's sender took it back, or left.
    SenderGone {
        /// The message.
        call: CallId,
    },
    /// A sender wants to speak to a worker without the daemon between.
    WantLane {
        /// The lane's number.
        lane: LaneId,
        /// The pool.
        pool: PoolId,
    },
    /// A lane's sender has left it.
    LaneLeft {
        /// The lane.
        lane: LaneId,
    },
    /// A worker tells what it handled on its lane; it lives and is heard.
    Handled {
        /// The worker.
        worker: WorkerId,
        /// The lane.
        lane: LaneId,
        /// How many messages since the last report.
        count: u32,
        /// Whether the lane is over, and the worker here again.
        lane_over: Over,
    },
    /// A zygote has loaded its handler.
    ZygoteReady {
        /// The zygote.
        zygote: WorkerId,
        /// Its tasks; more than one and it is never forked.
        threads: u32,
    },
    /// A copy could not be forked.
    ForkFailed {
        /// The copy.
        worker: WorkerId,
    },
    /// A worker can be given messages.
    Ready {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker has answered its message, or said that its handler raised.
    Answered {
        /// The worker.
        worker: WorkerId,
        /// The message.
        call: CallId,
    },
    /// A message or a lane did not reach its worker, which is ending.
    Unreached {
        /// The worker.
        worker: WorkerId,
    },
    /// A process has ended.
    Gone {
        /// The process.
        worker: WorkerId,
    },
    /// PSS in KiB of processes, and what may wait from now on.
    Memory {
        /// One reading a process.
        readings: Vec<(WorkerId, u64)>,
        /// What all that waits may hold from now on: the budget, less what others hold of it.
        allowed_kib: u64,
    },
    /// The time of [`super::Messages::next_deadline`] has come.
    Tick,
    /// Take no new message, let open ones end, retire everything.
    Drain,
}

/// Whether a lane goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It does.
    No,
    /// It does not: the worker is the daemon's again.
    Yes,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Start a process that loads the handler and is forked.
    StartZygote {
        /// The pool.
        pool: PoolId,
        /// Its number.
        worker: WorkerId,
    },
    /// Start a process that loads the handler and performs messages itself.
    StartWorker {
        /// The pool.
        pool: PoolId,
        /// Its number.
        worker: WorkerId,
    },
    /// Fork a copy.
    Fork {
        /// The zygote.
        zygote: WorkerId,
        /// The copy's number.
        worker: WorkerId,
    },
    /// Send the message to the worker.
    Give {
        /// The message.
        call: CallId,
        /// The worker.
        worker: WorkerId,
        /// What it found.
        found: Found,
    },
    /// Connect the lane's sender with the worker.
    Lend {
        /// The lane.
        lane: LaneId,
        /// The worker.
        worker: WorkerId,
        /// How many messages it is good for.
        uses: u32,
    },
    /// There is no lane now: messages go by the daemon.
    NoLane {
        /// The lane that was wanted.
        lane: LaneId,
    },
    /// Let nothing more onto the worker's lane: it comes back when what it has is done.
    Recall {
        /// The worker.
        worker: WorkerId,
    },
    /// Close the process's channel: it ends by that.
    Retire {
        /// The process.
        worker: WorkerId,
    },
    /// There are too many pools, and this one, which has nothing to do, is no longer known: whoever
    /// wants it again opens another.
    Forget {
        /// The pool.
        pool: PoolId,
    },
    /// End the process by force.
    Kill {
        /// The process.
        worker: WorkerId,
    },
    /// The message has its one outcome.
    Settle {
        /// The message.
        call: CallId,
        /// What became of it.
        outcome: Settled,
    },
}

/// What a message found when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A worker waited.
    Waiting,
    /// It waited for a worker.
    Queued,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Its worker has answered, or said that the handler raised.
    Answered,
    /// Its worker ended before that.
    Lost,
    /// Its time passed: while it waited, or while its handler ran.
    TimedOut {
        /// Whether it had been given.
        given: Given,
    },
    /// Its sender left.
    Cancelled,
    /// It was never given.
    Refused(Refusal),
}

/// Whether a message had been given to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// It had not, and never will be.
    No,
    /// It had.
    Yes,
}

/// Why a message was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Too many messages wait.
    QueueFull,
    /// Too many sessions have a worker.
    SessionsFull,
    /// The handler cannot be loaded.
    NotLoaded,
    /// The daemon stops.
    Stopping,
}
