//! A call whose own warm state is not there, in a copy of what is loaded below its program.
//!
//! There are two such layers, each of which is a program of its own with a pool of its own. The lower
//! one is the interpreter with its options and its start-up code, and nothing of any program. The
//! other one has the installed packages, too, that the program loaded before it was edited. A copy is
//! told what to run, imports the rest in the call, and records what it loads: it takes the place of
//! the cold learning run, without the time that an interpreter and its packages take to start. So
//! the call is right by construction: nothing of the program itself was loaded before it came. Calls
//! that come while another is profiled, or while its own pool begins, are performed there as well.
//!
//! Only a copy that is there, or that can be forked at once, is taken. Else the call runs cold as
//! ever; and when it has ended, off its path, the layers' pools begin, if at most half of the pools
//! that there may be are there.

use crate::event::{Aim, Arrival, Found, Layer, Learning};
use crate::ids::{CallId, ProgramId, WorkerId};
use crate::isolation::{Name, Origin};
use crate::plan::Terminal;
use crate::pool::State;
use crate::pool::engine::{Engine, Stage};
use crate::terms::Terms;

use super::Calls;
use super::tables::{LessonState, Wish};

impl Calls {
    /// The layers that may perform a call.
    pub(super) fn layers_for(arrival: &Arrival) -> Vec<Layer> {
        let forks = matches!(arrival.facts.isolation, None | Some(Name::Fork));
        let may = forks && arrival.facts.terminal == Terminal::Reached;
        if may { arrival.layers.clone() } else { Vec::new() }
    }

    /// Gives an open call to a copy of a layer; `false` if it runs cold after all.
    pub(super) fn place_in_layer(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        learns: Learning,
    ) -> bool {
        let Some(entry) = self.calls.get_mut(&call) else {
            return false;
        };
        entry.wants_layers = true;
        let aim = entry.aim;
        for layer in entry.layers.clone() {
            if let Some((worker, found)) = self.worker_of(engine, call, aim, &layer) {
                if let Some(entry) = self.calls.get_mut(&call) {
                    entry.learning = learns;
                    entry.found = Some(layer.found);
                }
                self.give(engine, call, worker, found);
                return true;
            }
        }
        false
    }

    fn worker_of(
        &mut self,
        engine: &mut Engine,
        call: CallId,
        aim: Aim,
        layer: &Layer,
    ) -> Option<(WorkerId, Found)> {
        let terms = self.layer_terms(engine, layer.program)?;
        let pool = engine.known_pool(layer.key, &terms)?;
        if !matches!(engine.pools.get(&pool)?.state, State::Ready(_)) {
            return None;
        }
        self.remember_program(engine, layer.program);
        self.note_arrival(engine, pool, None, aim);
        self.find_worker(engine, call, pool)
    }

    /// The terms of a layer's pool; `None` while it cannot be forked.
    fn layer_terms(&self, engine: &Engine, layer: ProgramId) -> Option<Terms> {
        let recipe = self.recipe(engine, layer, Wish::default());
        (recipe.origin == Origin::Fork).then(|| Terms::of_calls(recipe, &engine.limits))
    }

    /// Begins the pools of a call's layers, now that it has ended.
    pub(super) fn begin_layers(&mut self, engine: &mut Engine, call: CallId) {
        let Some(entry) = self.calls.get_mut(&call) else {
            return;
        };
        if !entry.wants_layers || engine.stage != Stage::Open {
            return;
        }
        let aim = entry.aim;
        for layer in std::mem::take(&mut entry.layers) {
            self.begin_layer(engine, layer, aim);
        }
    }

    /// A layer has other keys from now on: no call that came before begins a pool of an older one,
    /// which no later call would find.
    pub(super) fn forget_layer(&mut self, layer: ProgramId) {
        for call in self.calls.values_mut() {
            call.layers.retain(|one| one.program != layer);
        }
    }

    fn begin_layer(&mut self, engine: &mut Engine, Layer { program, key, .. }: Layer, aim: Aim) {
        self.remember_program(engine, program);
        if let Some(known) = self.programs.get_mut(&program) {
            if known.failed_until.is_some_and(|until| until > engine.now) {
                return;
            }
            known.lesson = LessonState::Learned(Wish::default());
        }
        // It takes no room that pools of programs may need.
        let open = u32::try_from(engine.pools.len()).unwrap_or(u32::MAX);
        if open < engine.limits.pools_max.div_ceil(2)
            && let Some(terms) = self.layer_terms(engine, program)
            && let Some(pool) = engine.pool_for(program, key, terms)
        {
            engine.try_again(pool);
            engine.begin_pool(pool, None, aim);
        }
    }
}
