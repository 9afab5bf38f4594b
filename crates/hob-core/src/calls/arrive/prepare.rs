//! A call that performs nothing: what would perform it is made ready, and its caller is told when
//! that is so, or why it will not be.
//!
//! ```text
//!   arrives ─▶ planned cold ──────────────────────────▶ Cold(reason)
//!      └─────▶ planned warm ─▶ its pool begins ─▶ waits ─┬─▶ Ready, Cold(reason)
//!                                                        └─▶ Left
//! ```
//! Each such call has one [`Effect::Prepared`]. It is in no queue, is given to no worker, and holds
//! no pool: one that is dropped meanwhile ends its waiting.

use crate::event::{Arrival, Effect, Prepared};
use crate::ids::{CallId, PoolId};
use crate::isolation::Name;
use crate::key::Key;
use crate::outcome::ColdReason;
use crate::pool::State;
use crate::pool::engine::{Engine, Stage};

use crate::calls::Calls;
use crate::calls::tables::Wish;
use crate::terms::Terms;

impl Calls {
    /// Begins the pool of a call that the plan wants warm.
    pub(super) fn prepare(&mut self, engine: &mut Engine, arrival: &Arrival, key: Key) {
        let wish = Wish::of(arrival);
        let recipe = self.recipe(engine, arrival.program, wish);
        if recipe.name() == Name::Spawn {
            return self.prepared(engine, arrival.call, Prepared::Cold(ColdReason::SpawnAsked));
        }
        self.is_learned(arrival.program, wish);
        let terms = Terms::of_calls(recipe, &engine.limits);
        let Some(pool) = engine.pool_for(arrival.program, key, terms) else {
            return self.prepared(engine, arrival.call, Prepared::Cold(ColdReason::Busy));
        };
        engine.begin_pool(pool, arrival.ahead, arrival.aim);
        engine.try_again(pool);
        self.preparing.insert(arrival.call, pool);
    }

    /// Tells those that wait, where there is something to tell.
    pub(crate) fn serve_preparing(&mut self, engine: &mut Engine) {
        if self.preparing.is_empty() {
            return;
        }
        let told = |(call, pool): (&CallId, &PoolId)| Some((*call, state_of(engine, *pool)?));
        let told: Vec<(CallId, Prepared)> = self.preparing.iter().filter_map(told).collect();
        for (call, prepared) in told {
            self.preparing.remove(&call);
            self.prepared(engine, call, prepared);
        }
    }

    /// Whether the call was one that waited here; it does no more.
    pub(in crate::calls) fn leaves_preparing(&mut self, engine: &mut Engine, call: CallId) -> bool {
        let waited = self.preparing.remove(&call).is_some();
        if waited {
            self.prepared(engine, call, Prepared::Left);
        }
        waited
    }

    pub(super) fn prepared(&mut self, engine: &mut Engine, call: CallId, prepared: Prepared) {
        self.settled += 1;
        engine.out.push(Effect::Prepared { call, prepared });
    }
}

/// How the pool stands for who waits for it; nothing while it is being made.
fn state_of(engine: &Engine, pool: PoolId) -> Option<Prepared> {
    if engine.stage != Stage::Open {
        return Some(Prepared::Cold(ColdReason::Stopping));
    }
    let Some(pool) = engine.pools.get(&pool) else {
        // What it would load has changed, or others needed its room.
        return Some(Prepared::Cold(ColdReason::Warming));
    };
    match pool.state {
        State::Ready(_) => Some(Prepared::Ready),
        State::Standby if !pool.idle.is_empty() => Some(Prepared::Ready),
        State::Failed { .. } => Some(Prepared::Cold(ColdReason::WarmFailed)),
        State::Standby | State::Waiting | State::Warming(_) => None,
    }
}
