//! What comes: a pool is opened, a request is queued or refused, what is loaded becomes stale.

use crate::event::{Effect as Asked, Loaded, Serves};
use crate::ids::{CallId, PoolId};
use crate::key::Key;
use crate::pool::beside::WaitedFor;
use crate::pool::engine::{Engine, Stage};
use crate::pool::timers::Timer;
use crate::pool::{Pool, State};
use crate::terms::{Stale, Terms};

use super::{Effect, Refusal, Request, Requests, Settled};

impl Requests {
    /// A pool that was not known. With it there may be more than the bound: what it was opened for
    /// cannot run anywhere else.
    pub(super) fn opened(engine: &mut Engine, id: PoolId, key: Key, terms: Terms) {
        let most = usize::try_from(engine.limits.pools_max).unwrap_or(usize::MAX);
        while engine.pools.len() >= most && engine.make_room_for_a_pool(Some(id)) {}
        let mut pool = Pool::new(id, Serves::Handler(id), key, terms);
        // Nothing is made before the first request.
        pool.rests = true;
        engine.add_pool(pool);
    }

    pub(super) fn stale(&mut self, engine: &mut Engine, id: PoolId) {
        let waited_for = match engine.pools.get(&id).map(|pool| pool.terms.stale) {
            Some(Stale::Waits) => WaitedFor::Yes,
            Some(Stale::Serves | Stale::Ends) | None => WaitedFor::No,
        };
        if !engine.load_beside(id, waited_for) {
            engine.renew_pool(id);
        }
        self.touch(id);
    }

    /// Loads a pool anew, whether anything has changed or not: nobody waits for it who need not.
    pub(super) fn reload(&mut self, engine: &mut Engine, id: PoolId) {
        if engine.stage != Stage::Open {
            return;
        }
        let is_held = engine.pools.get(&id).is_some_and(Pool::is_held);
        let waited_for = if is_held { WaitedFor::Yes } else { WaitedFor::No };
        if !engine.load_beside(id, waited_for) {
            engine.renew_pool(id);
            Requests::is_used(engine, id);
            let loads = engine.pools.get(&id).is_some_and(|pool| {
                pool.state == State::Waiting && pool.wants_a_zygote(&engine.limits, engine.now)
            });
            if !loads {
                engine.tell_loaded(id, Loaded::Nothing);
            }
        }
        self.touch(id);
    }

    pub(super) fn arrived(&mut self, engine: &mut Engine, call: CallId, request: Request) {
        let id = request.pool;
        let refusal = match engine.pools.get(&id) {
            _ if engine.stage != Stage::Open => Some(Refusal::Stopping),
            None => Some(Refusal::NotLoaded),
            Some(pool) if pool.queue.len() >= pool.terms.queue_max as usize => {
                Some(Refusal::QueueFull)
            }
            Some(_) => None,
        };
        if let Some(refusal) = refusal {
            let outcome = Settled::Refused(refusal);
            engine.out.push(Asked::Request(Effect::Settle { call, outcome }));
            return;
        }
        engine.timers.set(Timer::Call(call), request.deadline);
        self.requests.insert(call, request);
        if let Some(pool) = engine.pools.get_mut(&id) {
            pool.queue.push_back(call);
            pool.requests += 1;
            pool.rests = false;
        }
        Requests::is_used(engine, id);
        engine.try_again(id);
        self.touch(id);
    }

    /// A pool is used now: it does not rest for a while.
    pub(super) fn is_used(engine: &mut Engine, id: PoolId) {
        if let Some(pool) = engine.pools.get_mut(&id) {
            pool.last_used = engine.now;
            let idle = engine.now.after_us(pool.terms.idle_us);
            engine.timers.set(Timer::Pool(id), Some(idle));
        }
    }
}
