//! What the daemon tells about requests, and what is asked of it for them. What happens to processes
//! is the same for all that is served ([`super::Event`]).
//!
//! ```text
//!   a sender    Opened, Arrived, WantLane ─▶ ┌──────────┐ ──▶ Give, Lend, NoLane
//!               SenderGone, LaneLeft ──────▶ │ requests │ ──▶ Settle
//!   a worker    Begun, Answered, Handled ──▶ │          │ ──▶ Cancel
//!               Unreached, Unsent ─────────▶ └──────────┘
//! ```

use crate::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use crate::key::Key;
use crate::terms::Terms;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A handler that was not known before, or whose configuration is another now.
    Opened {
        /// Its pool, by a number of [`crate::supervisor::Supervisor::new_pool`].
        pool: PoolId,
        /// What is loaded, and with what.
        key: Key,
        /// What it works by.
        terms: Terms,
    },
    /// What is warm of a pool is not what would be loaded now. Told before the `Arrived` that
    /// found it.
    Stale {
        /// The pool.
        pool: PoolId,
    },
    /// What is warm of a pool goes on, since what would be loaded now could not be; nothing has
    /// changed since.
    Again {
        /// The pool.
        pool: PoolId,
    },
    /// Somebody wants a pool to be loaded anew, whether anything has changed or not.
    Reload {
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
    /// A worker has answered its message, or said that its handler raised.
    Answered {
        /// The worker.
        worker: WorkerId,
        /// The message.
        call: CallId,
    },
    /// A worker has begun to answer its message, and goes on: whoever asked watches its time.
    Begun {
        /// The worker.
        worker: WorkerId,
        /// The message.
        call: CallId,
    },
    /// A message or a lane did not reach its worker, which is ending.
    Unreached {
        /// The worker.
        worker: WorkerId,
        /// The message that nobody has read, if it is one: another worker may have it.
        unread: Option<CallId>,
    },
    /// A message was not sent to the worker that it was given to: its process has ended.
    Unsent {
        /// The worker.
        worker: WorkerId,
        /// The message.
        call: CallId,
    },
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
    /// Send the message to the worker.
    Give {
        /// The message.
        call: CallId,
        /// The worker.
        worker: WorkerId,
        /// What it found.
        found: Found,
    },
    /// Tell the worker to end this message, whose outcome is known, and to go on with its others. It
    /// answers it when it has.
    Cancel {
        /// The message.
        call: CallId,
        /// The worker.
        worker: WorkerId,
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

/// What is said last of a message whose time has passed and that no worker had: nothing of it can
/// have run, and it may be sent again.
pub const WAITED: &str = "the time passed while it waited for a worker";

/// What is said last of a message whose handler had only what was left of its time: that it ran for
/// too long says nothing of how long it takes.
pub const RAN_LATE: &str = "the time passed while its handler ran, after it waited for a worker";

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
