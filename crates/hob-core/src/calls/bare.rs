//! A call whose own warm state is not there, in a copy of its bare interpreter.
//!
//! The interpreter with its options and its start-up code, and nothing of any program, is a program
//! of its own with a pool of its own. A copy of it is told what to run, imports all of it in the
//! call, and records what it loads: it takes the place of the cold profiling run, without the time
//! that an interpreter takes to start. So the call is right by construction: nothing of the program
//! was loaded before it came.
//!
//! Only a copy that is there, or that can be forked at once, is taken. Else the call runs cold as
//! ever; and when it has ended, off its path, the bare interpreter's pool begins, if at most half of
//! the pools that there may be are there.

use crate::event::{Arrival, Found, Learning};
use crate::ids::{CallId, ProgramId, WorkerId};
use crate::isolation::{Name, Origin};
use crate::key::Key;
use crate::plan::Terminal;
use crate::pool::State;
use crate::pool::engine::{Engine, Stage};
use crate::pool::terms::Terms;

use super::Calls;
use super::tables::{LessonState, Wish};

impl Calls {
    /// Gives an open call that is to be profiled to a copy of its bare interpreter; `false` if it
    /// runs cold after all.
    pub(super) fn place_in_bare(&mut self, engine: &mut Engine, arrival: &Arrival) -> bool {
        let Some((bare, key)) = arrival.bare else {
            return false;
        };
        let forks = matches!(arrival.facts.isolation, None | Some(Name::Fork));
        if !forks || arrival.facts.terminal == Terminal::Unreached {
            return false;
        }
        if let Some((worker, found)) = self.bare_worker(engine, arrival, (bare, key)) {
            if let Some(entry) = self.calls.get_mut(&arrival.call) {
                entry.learning = Learning::Yes;
            }
            self.give(engine, arrival.call, worker, found);
            return true;
        }
        if let Some(entry) = self.calls.get_mut(&arrival.call) {
            entry.bare = Some((bare, key));
        }
        false
    }

    fn bare_worker(
        &mut self,
        engine: &mut Engine,
        arrival: &Arrival,
        (bare, key): (ProgramId, Key),
    ) -> Option<(WorkerId, Found)> {
        let terms = self.bare_terms(engine, bare)?;
        let pool = engine.known_pool(key, &terms)?;
        if !matches!(engine.pools.get(&pool)?.state, State::Ready(_)) {
            return None;
        }
        self.remember_program(engine, bare);
        self.note_arrival(engine, pool, None);
        self.find_worker(engine, arrival.call, pool)
    }

    /// The terms of a bare interpreter's pool; `None` while it cannot be forked.
    fn bare_terms(&self, engine: &Engine, bare: ProgramId) -> Option<Terms> {
        let recipe = self.recipe(engine, bare, Wish::default());
        (recipe.origin == Origin::Fork).then(|| Terms::of_calls(recipe, &engine.limits))
    }

    /// Begins the bare interpreter's pool of a call that has ended.
    pub(super) fn begin_bare(&mut self, engine: &mut Engine, call: CallId) {
        let bare = self.calls.get(&call).and_then(|entry| entry.bare);
        let (Some((bare, key)), Stage::Open) = (bare, engine.stage) else {
            return;
        };
        self.remember_program(engine, bare);
        if let Some(program) = self.programs.get_mut(&bare) {
            if program.failed_until.is_some_and(|until| until > engine.now) {
                return;
            }
            program.lesson = LessonState::Learned(Wish::default());
        }
        // It takes no room that pools of programs may need.
        let open = u32::try_from(engine.pools.len()).unwrap_or(u32::MAX);
        if open < engine.limits.pools_max.div_ceil(2)
            && let Some(terms) = self.bare_terms(engine, bare)
            && let Some(pool) = engine.pool_for(bare, key, terms)
        {
            engine.try_again(pool);
            engine.begin_pool(pool, None);
        }
    }
}
