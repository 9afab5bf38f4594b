//! One process that performs requests, or that is forked for them: its states, and what may happen
//! to it in each.
//!
//! ```text
//!              Ready                 Give                       Give, while a slot is free
//!  Starting ───────────▶ Ready ───────────────▶ Busy(1) ──────▶ Busy(2) ...
//!   │ ▲  │               │ ▲ │  Done, Undone     │  ▲              │ Done, Undone
//!   │ │  │ Give          │ └─┼───────────────────┤  └──────────────┘
//!   │ │  └──▶ Busy(1)    │   │                   │
//!   │ └──────────────────┼───┼──── DoneRenew ────┤
//!   │                    │   │ Lend              │ DoneLast
//!   │                    │   └──▶ Lent ── Recall ┼──▶ Recalled
//!   │                    │         └── Back ─▶ Ready ◀── Back ─┘
//!   │ Retire             │ Retire                ▼
//!   └──────────▶ Retiring ◀──────────────────────┘          every state ── Gone ──▶ Gone
//! ```
//!
//! Started is not ready: a worker is given a request only when it said so itself, but for a copy
//! that does not pay for its pages: nothing but its fork is missing. What cannot happen in a state
//! is ignored and counted: it is a late event about a worker that was ended meanwhile. A zygote is
//! never `Busy`.

use crate::event::{Pages, Serves};
use crate::ids::{CallId, LaneId, PoolId, Time, WorkerId};
use crate::isolation::Recipe;

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The process was asked for, and has not said that it is ready.
    Starting,
    /// It waits for a request (a zygote: to be forked).
    Ready,
    /// So many of its slots have a request.
    Busy(u32),
    /// One sender speaks to it directly.
    Lent(LaneId),
    /// Nothing more comes on its lane: it is back when what it has is done.
    Recalled(LaneId),
    /// It was told to end, or ends by itself after its last request.
    Retiring,
    /// Its process has ended.
    Gone,
}

impl State {
    /// Whether it has nothing to do, now or as soon as it is there.
    pub(crate) fn waits(self) -> bool {
        matches!(self, State::Starting | State::Ready)
    }

    /// Whether it has something to do.
    pub(crate) fn is_at_work(self) -> bool {
        matches!(self, State::Busy(_) | State::Lent(_) | State::Recalled(_))
    }
}

/// Something that happens to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// It said that it is ready.
    Ready,
    /// It is given a request.
    Give,
    /// A request did not reach it, and it is as before.
    Undone,
    /// It has performed a request, and is ready for others.
    Done,
    /// It has performed its only request, and says when it is ready for others.
    DoneRenew,
    /// It has performed its only request, and that was its last one.
    DoneLast,
    /// It is lent to one sender.
    Lend(LaneId),
    /// Its lane is shut.
    Recall,
    /// Its lane is over.
    Back,
    /// It is told to end.
    Retire,
    /// Its process has ended.
    Gone,
}

/// What cannot happen in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal;

impl State {
    /// The state after `input`, of a worker with so many slots.
    ///
    /// # Errors
    /// [`Illegal`] if that cannot happen in this state.
    pub fn after(self, input: Input, slots: u32) -> Result<State, Illegal> {
        match (self, input) {
            (State::Starting, Input::Ready)
            | (State::Busy(1), Input::Undone | Input::Done)
            | (State::Lent(_) | State::Recalled(_), Input::Back) => Ok(State::Ready),
            (State::Starting | State::Ready, Input::Give) => Ok(State::Busy(1)),
            (State::Busy(open), Input::Give) if open < slots => Ok(State::Busy(open + 1)),
            (State::Busy(open), Input::Undone | Input::Done) => Ok(State::Busy(open - 1)),
            (State::Busy(1), Input::DoneRenew) => Ok(State::Starting),
            (State::Ready, Input::Lend(lane)) => Ok(State::Lent(lane)),
            (State::Lent(lane), Input::Recall) => Ok(State::Recalled(lane)),
            (State::Busy(1), Input::DoneLast)
            | (
                State::Starting
                | State::Ready
                | State::Busy(_)
                | State::Lent(_)
                | State::Recalled(_),
                Input::Retire,
            ) => Ok(State::Retiring),
            (
                State::Starting
                | State::Ready
                | State::Busy(_)
                | State::Lent(_)
                | State::Recalled(_)
                | State::Retiring,
                Input::Gone,
            ) => Ok(State::Gone),
            (
                State::Starting
                | State::Ready
                | State::Busy(_)
                | State::Lent(_)
                | State::Recalled(_)
                | State::Retiring
                | State::Gone,
                _,
            ) => Err(Illegal),
        }
    }
}

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Is forked; performs nothing. `copies` of it live: it is not told to end before they have,
    /// since they end with it.
    Zygote { copies: u32 },
    /// A fork of a zygote.
    Copy { zygote: WorkerId },
    /// A preloaded process of its own.
    Standby,
}

/// One process.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) serves: Serves,
    /// Its pool, which may be gone while the worker ends.
    pub(crate) pool: PoolId,
    /// Which of its pool's contents it has; an older one is given nothing.
    pub(crate) generation: u64,
    pub(crate) recipe: Recipe,
    pub(crate) role: Role,
    pub(crate) state: State,
    /// What it performs.
    pub(crate) work: Vec<CallId>,
    /// The session that it belongs to.
    pub(crate) key: Option<Vec<u8>>,
    /// Whether it paid (or pays) for its pages.
    pub(crate) pages: Pages,
    pub(crate) asked_at: Time,
    /// Requests that it was given.
    pub(crate) used: u32,
    /// Its last memory reading; 0 before the first.
    pub(crate) kib: u64,
    /// What it was given did not reach it: it was dying when it was told to end.
    pub(crate) unreached: bool,
}

impl Worker {
    pub(crate) fn is_zygote(&self) -> bool {
        matches!(self.role, Role::Zygote { .. })
    }

    /// Whether it was given something before it said that it is ready, if anything.
    pub(crate) fn is_new(&self) -> bool {
        let unpaid = matches!(self.pages, Pages::Unpaid | Pages::Plain);
        matches!(self.role, Role::Copy { .. }) && unpaid && self.used <= 1
    }

    /// Whether it uses a processor to become ready, off every caller's path.
    pub(crate) fn is_paying(&self) -> bool {
        self.state == State::Starting
            && self.pages == Pages::Paid
            && self.used == 0
            && matches!(self.role, Role::Copy { .. })
    }

    /// Whether it is an interpreter that starts.
    pub(crate) fn is_starting(&self) -> bool {
        self.state == State::Starting
            && self.used == 0
            && matches!(self.role, Role::Zygote { .. } | Role::Standby)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: LaneId = LaneId(7);
    const STATES: [State; 8] = [
        State::Starting,
        State::Ready,
        State::Busy(1),
        State::Busy(2),
        State::Lent(LANE),
        State::Recalled(LANE),
        State::Retiring,
        State::Gone,
    ];
    const INPUTS: [Input; 11] = [
        Input::Ready,
        Input::Give,
        Input::Undone,
        Input::Done,
        Input::DoneRenew,
        Input::DoneLast,
        Input::Lend(LANE),
        Input::Recall,
        Input::Back,
        Input::Retire,
        Input::Gone,
    ];

    fn table(slots: u32) -> Vec<String> {
        let letter = |state: &State, input: &Input| match state.after(*input, slots) {
            Ok(State::Starting) => 'S',
            Ok(State::Ready) => 'R',
            Ok(State::Busy(1)) => 'B',
            Ok(State::Busy(_)) => '2',
            Ok(State::Lent(_)) => 'L',
            Ok(State::Recalled(_)) => 'C',
            Ok(State::Retiring) => 'E',
            Ok(State::Gone) => 'G',
            Err(Illegal) => '.',
        };
        let row = |state| INPUTS.iter().map(|input| letter(state, input)).collect();
        STATES.iter().map(row).collect()
    }

    #[test]
    fn the_table_is_the_diagram() {
        // Columns: Ready, Give, Undone, Done, DoneRenew, DoneLast, Lend, Recall, Back, Retire, Gone.
        let expected = [
            "RB.......EG",
            ".B....L..EG",
            ".2RRSE...EG",
            "..BB.....EG",
            ".......CREG",
            "........REG",
            "..........G",
            "...........",
        ];
        assert_eq!(table(2), expected);
        // With one slot, a worker that has a request is given no other.
        let busy = table(1)[2].clone();
        assert_eq!(busy, "..RRSE...EG");
    }
}
