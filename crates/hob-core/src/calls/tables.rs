//! What the supervisor remembers of a call and of a program. Data only; what happens to it is in
//! the files beside this one.

use super::differs::{Ends, Uncaught};
use super::pace::Pace;
use crate::event::{Aim, Arrival, Found, Layer, Learning};
use crate::ids::{CallId, PoolId, ProgramId, Time, Work, WorkerId};
use crate::isolation::{Name, Origin};
use crate::outcome::ColdReason;

/// A call that is not settled.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) program: ProgramId,
    pub(super) work: Work,
    pub(super) aim: Aim,
    pub(super) state: CallState,
    /// `--timeout`, as a moment.
    pub(super) deadline: Option<Time>,
    /// `--ahead 0`: it takes no copy that waits.
    pub(super) source: Source,
    /// How often it was given.
    pub(super) gives: u32,
    /// Why its worker executes the program cold in its own place, if it does.
    pub(super) executes: Option<ColdReason>,
    /// Whether its worker has told of an error that nobody caught.
    pub(super) uncaught: Uncaught,
    /// Whether the worker that it is given records what it loads.
    pub(super) learning: Learning,
    /// What it found, if the worker that it is given is a copy of a layer.
    pub(super) found: Option<Found>,
    /// The layers below its program, the highest first.
    pub(super) layers: Vec<Layer>,
    /// Whether it was to be performed by one: then the pools of those begin when it has ended, and the
    /// next one of its kind may find copies of them.
    pub(super) wants_layers: bool,
}

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallState {
    /// The client runs it. `since` orders it among the calls in flight.
    Cold { reason: ColdReason, since: Time },
    /// It waits in the queue of this pool until then.
    Queued { pool: PoolId, until: Time },
    /// A worker has it.
    Given { worker: WorkerId, found: Found, since: Time, ending: Ending },
}

/// How far the killing of a call that timed out has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It runs.
    Not,
    /// It has SIGTERM; SIGKILL follows.
    Terminated,
    /// It has SIGKILL; it is settled a moment later, whatever its process does.
    Killed,
}

/// Which copies a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// One that waits, if there is one.
    Waiting,
    /// One that is forked for it.
    OnDemand,
}

/// A program.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) lesson: LessonState,
    /// Learning runs that left nothing, in a row.
    pub(super) nothings: u32,
    /// Times in a row that its lesson was amended.
    pub(super) amended: u32,
    /// How often it was sent cold because amending did not end.
    pub(super) failures: u32,
    /// It is not warmed before this.
    pub(super) failed_until: Option<Time>,
    /// It is over the memory budget, and is not warmed before this.
    pub(super) memory_until: Option<Time>,
    /// How its warm calls compare with its cold ones.
    pub(super) pace: Pace,
    /// How its warm calls end where its cold ones succeed.
    pub(super) ends: Ends,
    /// Where its runtime's workers come from.
    pub(super) origin: Origin,
    /// What its newest call was for.
    pub(super) aim: Aim,
    /// Why it is not forked.
    pub(super) demoted: Option<Demotion>,
    pub(super) last_used: Time,
}

impl Program {
    pub(super) fn new(now: Time) -> Program {
        Program {
            lesson: LessonState::None,
            nothings: 0,
            amended: 0,
            failures: 0,
            failed_until: None,
            memory_until: None,
            pace: Pace::default(),
            ends: Ends::default(),
            origin: Origin::default(),
            aim: Aim::default(),
            demoted: None,
            last_used: now,
        }
    }
}

/// Where a program is with being learned.
///
/// ```text
///  None, Stale ── a call ──▶ Learning ── Learned{Notes}, or Nothing often enough ──▶ Learned
///       ▲                      │                                                        │
///       │   no notes in time   │                                                        │
///       └──────────────────────┘            Stale ◀── Event::Stale ─────────────────────┘
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LessonState {
    /// It was not learned.
    None,
    /// What was learned does not hold any more.
    Stale,
    /// A call learns it.
    Learning(LearningRun),
    /// It was learned.
    Learned(Wish),
}

/// A running or just ended learning run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LearningRun {
    pub(super) call: CallId,
    pub(super) since: Time,
    pub(super) wish: Wish,
}

/// What the learning call asked for: its pool is made so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wish {
    pub(super) isolation: Option<Name>,
    pub(super) ahead: Option<u32>,
}

impl Wish {
    pub(super) fn of(arrival: &Arrival) -> Wish {
        Wish { isolation: arrival.facts.isolation, ahead: arrival.ahead }
    }
}

/// Why a program is `standby` although `fork` would be faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demotion {
    /// Its zygote had so many threads; a fork would have only one of them.
    Threads(u32),
}

impl Demotion {
    /// The stable code, as in `hob status --json`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Demotion::Threads(_) => "threads",
        }
    }
}
