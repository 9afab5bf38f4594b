//! One process that performs calls, or that is forked for them: its states, and what may happen to
//! it in each.
//!
//! ```text
//!              Ready                Give
//!  Starting ───────────▶ Ready ───────────────▶ Busy(call)
//!   │ │  ▲                │ ▲     GiveUndone     │ │ │
//!   │ │  │                │ └────────────────────┘ │ │
//!   │ │  │ Finished, with uses left               │ │
//!   │ │  └────────────────────────────────────────┘ │
//!   │ └────────── Give (a copy that does not pay:    │
//!   │              the call waits) ────────▶ Busy    │
//!   │ Retire              │ Retire                   │ Finished, Retire
//!   ▼                     ▼                          ▼
//!  Retiring ◀─────────────┴──────────────────────────┘
//!   │
//!   │ Gone (from every state)
//!   ▼
//!  Gone
//! ```
//!
//! Started is not ready: a worker is given a call only when it said so itself, but for a copy that
//! does not pay for its pages: nothing but its fork is missing. What cannot happen in a state is ignored and counted
//! by the supervisor: it is a late message about a worker that was ended meanwhile. A zygote is
//! never `Busy`.

use crate::event::Pages;
use crate::ids::{CallId, PoolId, ProgramId, Time, WorkerId};
use crate::isolation::Recipe;

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The process was asked for, and has not said that it is ready.
    Starting,
    /// It waits for a call (a zygote: to be forked).
    Ready,
    /// It has a call.
    Busy(CallId),
    /// It was told to end, or ends by itself after its last call.
    Retiring,
    /// Its process has ended.
    Gone,
}

/// Something that happens to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// It said that it is ready.
    Ready,
    /// It is given a call.
    Give(CallId),
    /// The call did not reach it, and it is as before.
    GiveUndone,
    /// It reported its call's exit and performs another call after this one.
    FinishedUse,
    /// It reported its call's exit, and that was its last call.
    FinishedLast,
    /// It is told to end.
    Retire,
    /// Its process has ended.
    Gone,
}

/// What cannot happen in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal;

impl State {
    /// The state after `input`.
    ///
    /// # Errors
    /// [`Illegal`] if that cannot happen in this state.
    pub fn after(self, input: Input) -> Result<State, Illegal> {
        match (self, input) {
            (State::Starting, Input::Ready) | (State::Busy(_), Input::GiveUndone) => {
                Ok(State::Ready)
            }
            (State::Starting | State::Ready, Input::Give(call)) => Ok(State::Busy(call)),
            (State::Busy(_), Input::FinishedUse) => Ok(State::Starting),
            (State::Busy(_), Input::FinishedLast)
            | (State::Starting | State::Ready | State::Busy(_), Input::Retire) => {
                Ok(State::Retiring)
            }
            (State::Starting | State::Ready | State::Busy(_) | State::Retiring, Input::Gone) => {
                Ok(State::Gone)
            }
            (State::Starting, Input::GiveUndone | Input::FinishedUse | Input::FinishedLast)
            | (
                State::Ready,
                Input::Ready | Input::GiveUndone | Input::FinishedUse | Input::FinishedLast,
            )
            | (State::Busy(_), Input::Ready | Input::Give(_))
            | (
                State::Retiring,
                Input::Ready
                | Input::Give(_)
                | Input::GiveUndone
                | Input::FinishedUse
                | Input::FinishedLast
                | Input::Retire,
            )
            | (
                State::Gone,
                Input::Ready
                | Input::Give(_)
                | Input::GiveUndone
                | Input::FinishedUse
                | Input::FinishedLast
                | Input::Retire
                | Input::Gone,
            ) => Err(Illegal),
        }
    }
}

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Is forked; performs no calls. `copies` of it live: it is not told to end before they have,
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
    pub(crate) program: ProgramId,
    /// Its pool, which may be gone while the worker ends.
    pub(crate) pool: PoolId,
    pub(crate) recipe: Recipe,
    pub(crate) role: Role,
    pub(crate) state: State,
    /// Whether it paid (or pays) for its pages.
    pub(crate) pages: Pages,
    pub(crate) asked_at: Time,
    /// Calls that it was given.
    pub(crate) used: u32,
    /// Its last memory reading; 0 before the first.
    pub(crate) kib: u64,
}

impl Worker {
    /// Whether it uses a processor to become ready, off any call's path.
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

    const CALL: CallId = CallId(7);
    const STATES: [State; 5] =
        [State::Starting, State::Ready, State::Busy(CALL), State::Retiring, State::Gone];
    const INPUTS: [Input; 7] = [
        Input::Ready,
        Input::Give(CALL),
        Input::GiveUndone,
        Input::FinishedUse,
        Input::FinishedLast,
        Input::Retire,
        Input::Gone,
    ];

    #[test]
    fn the_table_is_the_diagram() {
        let table: Vec<String> = STATES
            .iter()
            .map(|state| {
                INPUTS
                    .iter()
                    .map(|input| match state.after(*input) {
                        Ok(State::Starting) => 'S',
                        Ok(State::Ready) => 'R',
                        Ok(State::Busy(_)) => 'B',
                        Ok(State::Retiring) => 'E',
                        Ok(State::Gone) => 'G',
                        Err(Illegal) => '.',
                    })
                    .collect()
            })
            .collect();
        // Columns: Ready, Give, GiveUndone, FinishedUse, FinishedLast, Retire, Gone.
        assert_eq!(table, ["RB...EG", ".B...EG", "..RSEEG", "......G", "......."]);
    }
}
