//! What the daemon tells the core, and what the core asks of the daemon.
//!
//! ```text
//!   a caller         Arrived ─────────────▶ ┌────────────┐ ──▶ RunCold | Refuse | Queue
//!                    CallerGone, ColdEnded ▶│            │ ──▶ Give ──▶ (worker performs)
//!   a learning run   Learned ──────────────▶│ Supervisor │ ──▶ StartZygote, StartStandby, Fork
//!   a zygote         ZygoteReady, ...Gone ─▶│            │ ──▶ Retire, Signal, Overstays, Recall
//!   a worker         Ready, Finished, Gone ▶│            │ ──▶ Settle, Loaded, Forget
//!   the clock        Tick ─────────────────▶└────────────┘ next_deadline()
//! ```
//!
//! Both enums are closed. An effect is performed in the order in which it was returned; what
//! comes of it returns as an event, never as a return value.
//!
//! The daemon keeps this order among events about the same process: a `GiveFailed` or `ForkFailed`
//! comes before anything else that happened to it after the effect; `Finished` before `Gone`; a
//! zygote's `Gone` before those of the copies that ended with it. Of a worker, `Gone` or
//! `ForkFailed` is the last event.

mod pools;
pub mod requests;

use crate::ids::{CallId, PoolId, ProgramId, Work, WorkerId};
use crate::isolation::Recipe;
use crate::key::Key;
use crate::outcome::{ColdReason, Outcome, RefuseReason};
use crate::plan::Facts;
use hob_wire::exit::Exit;

pub use pools::{Cause, ForkFailure, Loaded, Pages, Serves};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A call was received, resolved, and its warm state checked for freshness.
    Arrived(Arrival),
    /// A learning run ended; what it left.
    Learned {
        /// The program that was learned.
        program: ProgramId,
        /// What the run left.
        lesson: Lesson,
        /// The key of the learning call's own environment: its pool is warmed at once, so that the
        /// second call can be warm. The same event may come again with another key, after a
        /// lesson was amended.
        key: Option<Key>,
    },
    /// A program's warm state no longer equals what a cold start would load (or its resolution
    /// changed). All its pools retire, and it is unlearned. The daemon tells this *before* the
    /// `Arrived` of the call that found it.
    Stale {
        /// The program.
        program: ProgramId,
    },
    /// What is loaded ahead of a program's calls is to be another from now on, and what was learned
    /// of it still holds. All its pools retire.
    LoadsAnew {
        /// The program.
        program: ProgramId,
    },
    /// A zygote has preloaded and can be forked.
    ZygoteReady {
        /// The zygote.
        zygote: WorkerId,
        /// Its tasks in `/proc`; more than one and it is never forked.
        threads: u32,
        /// Whether its preload matched the lesson it was made from.
        preload: Preload,
    },
    /// A zygote cannot fork: `threads` appeared, or the system refused.
    ForkFailed {
        /// The worker that was to be forked.
        worker: WorkerId,
        /// Why.
        why: ForkFailure,
    },
    /// A copy or standby says that it can perform a call. Started is not ready.
    Ready {
        /// The worker.
        worker: WorkerId,
        /// Its tasks in `/proc` (informative for a standby).
        threads: u32,
    },
    /// The worker reported the call's exit; it is now tearing down.
    Finished {
        /// The worker.
        worker: WorkerId,
        /// What the program did.
        exit: Exit,
    },
    /// An error that nobody caught ends the program that the worker performs.
    Uncaught {
        /// The worker.
        worker: WorkerId,
    },
    /// The worker cannot take its call on: it executes the program cold in its own place.
    Executes {
        /// The worker.
        worker: WorkerId,
        /// What it could not take on.
        reason: ColdReason,
    },
    /// A zygote's, copy's or standby's process has ended. The last event about it.
    Gone {
        /// The process.
        worker: WorkerId,
        /// What it did.
        exit: Exit,
    },
    /// A give did not reach the worker.
    GiveFailed {
        /// The call.
        call: CallId,
        /// The worker that it was meant for.
        worker: WorkerId,
        /// Why.
        why: GiveFailure,
    },
    /// The caller's connection ended. After settling: the caller has its answer. Before: it left.
    CallerGone {
        /// The call.
        call: CallId,
    },
    /// A call that was to run cold had been taken back: its caller waited long enough, and runs the
    /// program by itself, so that nothing was sent and nothing is learned from it.
    TakenBack {
        /// The call.
        call: CallId,
    },
    /// A cold run that the client supervises has ended.
    ColdEnded {
        /// The call.
        call: CallId,
        /// What the process did.
        exit: Exit,
        /// Whether `--timeout` ended it.
        timing: ColdTiming,
    },
    /// A call ended by itself, and took so long from its first mark to its last. Calls that were
    /// watched to be learned are not told: watching takes time.
    Measured {
        /// The program.
        program: ProgramId,
        /// How long, and how.
        took: Took,
    },
    /// Memory readings: PSS in KiB per process.
    Memory {
        /// One reading per living process of ours.
        readings: Vec<(WorkerId, u64)>,
    },
    /// Something that is about requests alone.
    Request(requests::Event),
    /// Somebody other than a caller relies on the daemon: it does not leave for idleness yet.
    Active,
    /// The time that [`crate::supervisor::Supervisor::next_deadline`] named has come.
    Tick,
    /// Stop: take no new call warm, let running calls end, retire everything.
    Drain,
}

/// What is loaded below a program, as a program of its own with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// The number that it has as a program.
    pub program: ProgramId,
    /// The key of its warm state.
    pub key: Key,
    /// What a call that a copy of it performs has found.
    pub found: Found,
}

/// A call that has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// Its number.
    pub call: CallId,
    /// Its program.
    pub program: ProgramId,
    /// What it has to do.
    pub work: Work,
    /// The key of its warm state: `None` while the program is not learned (the daemon knows no
    /// environment names to select by).
    pub key: Option<Key>,
    /// The layers below its own, of which a copy can perform and profile it, the highest first: of a
    /// call whose own warm state is not there, where its runtime has such copies.
    pub layers: Vec<Layer>,
    /// What the plan decides by.
    pub facts: Facts,
    /// `--ahead`, if given: how many copies are to wait.
    pub ahead: Option<u32>,
    /// `--timeout`, if given, in microseconds from the arrival.
    pub timeout_us: Option<u64>,
    /// Whether it is to be performed.
    pub aim: Aim,
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aim {
    /// The program is to be performed.
    #[default]
    Perform,
    /// What would perform it is to be made ready, and nothing is performed.
    Prepare,
    /// The program is to be performed to see what it does; nobody waits for the next call.
    Prove,
}

/// What became of a call that was to make something ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// The next call finds it.
    Ready,
    /// The next call runs cold, for this reason.
    Cold(ColdReason),
    /// Its caller left before that was known.
    Left,
}

/// What a learning run left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lesson {
    /// Notes that a zygote can be made from.
    Notes,
    /// Nothing (the program left without its exit hooks, or was killed).
    Nothing,
}

/// How long a call took, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    /// It was warm.
    Warm {
        /// The call.
        us: u64,
        /// The newest cold run of the program.
        cold_us: u64,
    },
    /// The client ran it.
    Cold {
        /// The call.
        us: u64,
    },
}

/// How a zygote's preload compares with the lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preload {
    /// As learned: the zygote is good for its key.
    AsLearned,
    /// It read variables, or met hazards, that the lesson did not have, or files changed
    /// meanwhile. The daemon has amended the lesson; this zygote is to be replaced. A bounded
    /// number of times, then the program goes cold for a while.
    Amended,
}

/// Why a give did not reach the worker. Either way nothing was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveFailure {
    /// The claim was gone: the caller runs the program itself.
    CallerLeft,
    /// The worker's channel was closed; the claim was put back.
    WorkerClosed,
    /// The worker ended with the call unread in its channel, some time after it was sent. The
    /// claim stays taken: the caller waits, and is told to run the program itself.
    Unread,
}

/// Whether a cold run's own deadline ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColdTiming {
    /// It ended by itself.
    InTime,
    /// The client ended it at `--timeout`.
    TimedOut,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Tell the client to run the program in its own place. The call stays open until
    /// `ColdEnded`, `TakenBack` or `CallerGone`.
    RunCold {
        /// The call.
        call: CallId,
        /// Why not warm.
        reason: ColdReason,
        /// Whether to record what it loads.
        learning: Learning,
    },
    /// Tell the client that the program cannot be run. Settles the call.
    Refuse {
        /// The call.
        call: CallId,
        /// Why.
        reason: RefuseReason,
    },
    /// Tell the client whether what it wants is ready. Closes the call, which leaves no receipt.
    Prepared {
        /// The call.
        call: CallId,
        /// What became of it.
        prepared: Prepared,
    },
    /// Tell the client that the call waits.
    Queue {
        /// The call.
        call: CallId,
    },
    /// Start a zygote for this key from the program's lesson.
    StartZygote {
        /// The pool.
        pool: PoolId,
        /// Whom it is for.
        serves: Serves,
        /// The zygote's number.
        zygote: WorkerId,
        /// Its key.
        key: Key,
    },
    /// Start a preloaded process that will perform one call.
    StartStandby {
        /// The pool.
        pool: PoolId,
        /// Whom it is for.
        serves: Serves,
        /// The worker's number.
        worker: WorkerId,
        /// Its key.
        key: Key,
    },
    /// Fork a copy off the zygote.
    Fork {
        /// The zygote.
        zygote: WorkerId,
        /// The copy's number.
        worker: WorkerId,
        /// Whether it pays for its pages first.
        pages: Pages,
    },
    /// Give the call to the worker: claim, send. To an unpaid copy this follows its `Fork` at
    /// once; the call waits in the copy's channel.
    Give {
        /// The call.
        call: CallId,
        /// The worker.
        worker: WorkerId,
        /// What the worker is told before.
        told: Told,
    },
    /// Send a signal to the worker's process.
    Signal {
        /// The worker.
        worker: WorkerId,
        /// The signal's number.
        signal: u8,
    },
    /// Close the process's channel: an idle copy, standby or zygote ends by that. A zygote ends
    /// when its last copy has.
    Retire {
        /// The process.
        worker: WorkerId,
    },
    /// Say that the process has not ended in the time that it had. It is killed next.
    Overstays {
        /// The process.
        worker: WorkerId,
    },
    /// Let nothing more onto the worker's lane: it comes back when what it has is done.
    Recall {
        /// The worker.
        worker: WorkerId,
    },
    /// There are too many pools, and this one of requests, which has nothing to do, is no longer
    /// known: whoever wants it again opens another.
    Forget {
        /// The pool.
        pool: PoolId,
    },
    /// A pool of requests was loaded, or could not be.
    Loaded {
        /// The pool.
        pool: PoolId,
        /// What became of it.
        loaded: Loaded,
    },
    /// The call has its one outcome. The daemon answers the client (unless the worker has) and
    /// completes the receipt.
    Settle {
        /// The call.
        call: CallId,
        /// What became of it.
        outcome: Outcome,
        /// How it was performed.
        how: Performed,
    },
    /// Something that is about requests alone.
    Request(requests::Effect),
    /// All is retired after [`Event::Drain`], or the daemon has been idle for long enough: exit.
    Exit,
}

/// Whether a run is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learning {
    /// Run under the recorder.
    Yes,
    /// Run as it is.
    No,
}

/// How a call was performed, for its receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Performed {
    /// By a worker of this recipe.
    Warm {
        /// The recipe.
        recipe: Recipe,
        /// The worker.
        worker: WorkerId,
        /// What the call found waiting.
        found: Found,
    },
    /// By the client, for this reason.
    Cold(ColdReason),
    /// By a worker that executed the program cold in its own place, for this reason.
    InPlace(ColdReason),
    /// Not at all.
    Not,
}

/// What a worker is told before it is given a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Nothing: it is one of the call's own program.
    Nothing,
    /// The program: it is a copy of a layer.
    Program,
    /// The same, and what it records of what it loads is the program's profile.
    Profiled,
}

/// What a warm call found when it arrived: the reason code of a warm receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A paid copy waited (`copy-ready`).
    CopyReady,
    /// A standby waited (`standby-ready`).
    StandbyReady,
    /// A copy was forked for it (`forked-on-demand`).
    ForkedOnDemand,
    /// It waited for a worker of others, or for one that was being started (`queued`).
    Queued,
    /// A copy of its bare interpreter performed and profiled it (`bare-interpreter`).
    Bare,
    /// A copy with its installed packages did (`installed-packages`).
    Installed,
}
