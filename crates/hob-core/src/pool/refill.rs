//! What is started or forked ahead of calls, and when; what is given up when nothing is called.
//!
//! A copy that pays for its pages keeps a processor busy for milliseconds. So copies are made off
//! every call's path: when nothing was given or settled for a moment and no young call runs, one
//! at a time. A pool that has run out waits for quiet only so long. And while calls come faster
//! than copies can be made, none is made at all: copies forked for their call cost less in total.
//! There is one more: a caller whose calls come one directly after another (the hooks of a
//! set, a loop in a shell) leaves no quiet moment, and each call would wait for its own fork. So
//! such a pool's next copy is forked as soon as it is bare, without paying for anything: that is
//! the work that the call would have brought, done on another processor while the last one runs.
//!
//! ```text
//!   call ── given ── settled ─┬─ quiet_us ─┬─ pay ─ ready ┬─ pay ─ ready
//!                             └ wait       └ first copy   └ next copy, unless a call came
//! ```

use crate::event::{Effect, Pages, Serves};
use crate::ids::{PoolId, Time};
use crate::pool::engine::{Engine, Stage};
use crate::pool::timers::Timer;
use crate::pool::worker::{Role, State as WorkerState};
use crate::pool::{Pool, State};
use crate::terms::Refill;

impl Engine {
    /// Starts and forks what is wanted and may begin now; sets the timer for what may begin later.
    pub(crate) fn refill(&mut self) {
        if self.stage != Stage::Open {
            return;
        }
        let mut later = self.start_zygotes();
        self.note_bare_pools();
        let quiet = self.quiet_at();
        for (at, id) in self.wanting(quiet) {
            if at > self.now {
                later = Some(later.map_or(at, |later| later.min(at)));
            } else {
                self.refill_pool(id);
            }
        }
        self.timers.set(Timer::Refill, later);
    }

    /// Zygotes that are missing: calls run cold until they are there, so nothing is gained by
    /// waiting for quiet. The most recently used pool's is the first. Returns when the next one may
    /// be started, of those whose pool waits after a death.
    fn start_zygotes(&mut self) -> Option<Time> {
        let (due, later): (Vec<_>, Vec<_>) = self
            .pools
            .values()
            .filter_map(|pool| Some((self.zygote_from(pool)?, pool)))
            .partition(|(from, _)| *from <= self.now);
        let later = later.into_iter().map(|(from, _)| from).min();
        let mut waiting: Vec<(bool, Time, PoolId)> = due
            .into_iter()
            .map(|(_, pool)| (pool.is_waited_for(), pool.last_used, pool.id))
            .collect();
        waiting.sort_unstable_by(|one, two| two.cmp(one));
        for (_, _, id) in waiting {
            if self.pools.get(&id).is_some_and(|pool| self.may_start(pool)) {
                self.start_zygote(id);
            }
        }
        later
    }

    /// From when on a pool wants a zygote that it does not have, if it wants one.
    fn zygote_from(&self, pool: &Pool) -> Option<Time> {
        let is_missing = pool.state == State::Waiting;
        pool.wants_a_next().or_else(|| {
            let wants = is_missing && pool.wants_a_zygote(&self.limits, self.now);
            wants.then(|| pool.deaths.again_at())
        })
    }

    /// Whether one more interpreter may start for a pool. What a request waits for may start beside
    /// more others: a handler that is being loaded may itself wait for another one.
    fn may_start(&self, pool: &Pool) -> bool {
        let most = if pool.is_waited_for() {
            self.limits.starts_at_once.max(self.limits.starts_waited_for)
        } else {
            self.limits.starts_at_once
        };
        self.starting < most
    }

    fn start_zygote(&mut self, id: PoolId) {
        let Some(zygote) = self.new_worker(id, Role::Zygote { copies: 0 }, Pages::Unpaid) else {
            return;
        };
        let is_beside = self.is_started_beside(id, zygote);
        if let Some(pool) = self.pools.get_mut(&id) {
            if !is_beside {
                pool.state = State::Warming(zygote);
            }
            self.out.push(Effect::StartZygote {
                pool: id,
                serves: pool.serves,
                zygote,
                key: pool.key,
            });
        }
    }

    fn start_standby(&mut self, id: PoolId) {
        let Some(worker) = self.new_worker(id, Role::Standby, Pages::Unpaid) else {
            return;
        };
        if let Some(pool) = self.pools.get(&id) {
            self.out.push(Effect::StartStandby {
                pool: id,
                serves: pool.serves,
                worker,
                key: pool.key,
            });
        }
    }

    /// Notes since when pools have had nothing waiting.
    fn note_bare_pools(&mut self) {
        for pool in self.pools.values_mut() {
            let bare = pool.idle.is_empty() && pool.starting == 0;
            pool.bare_since = bare.then(|| pool.bare_since.unwrap_or(self.now));
        }
    }

    /// When it is quiet, if nothing else happens.
    fn quiet_at(&self) -> Time {
        let after_activity = self.last_activity.after_us(self.limits.quiet_us);
        match self.in_flight.last() {
            Some((youngest, _)) => after_activity.max(youngest.after_us(self.limits.in_flight_us)),
            None => after_activity,
        }
    }

    /// The pools that want a worker, with the time from which they may have it; bare ones first,
    /// then the most recently used.
    fn wanting(&self, quiet: Time) -> Vec<(Time, PoolId)> {
        let mut wanting: Vec<(bool, Time, PoolId, Time)> = Vec::new();
        for pool in self.pools.values() {
            if self.wants(pool) == 0 {
                continue;
            }
            let mut at = match pool.bare_since {
                _ if pool.terms.refill == Refill::AtOnce => self.now,
                Some(since) => quiet.min(since.after_us(self.limits.refill_patience_us)),
                None => quiet,
            };
            if self.in_a_row(pool) {
                at = self.now;
            } else if let Some(load_ends) = pool.load_ends(&self.limits, self.now) {
                at = at.max(load_ends);
            }
            at = at.max(pool.deaths.again_at());
            wanting.push((pool.bare_since.is_none(), pool.last_used, pool.id, at));
        }
        wanting.sort_unstable_by_key(|(covered, used, id, _)| {
            (*covered, core::cmp::Reverse((*used, *id)))
        });
        wanting.into_iter().map(|(_, _, id, at)| (at, id)).collect()
    }

    /// Whether a pool's next copy is forked at once, and plain: it is bare, and its calls come one
    /// directly after another.
    fn in_a_row(&self, pool: &Pool) -> bool {
        let bare = pool.idle.is_empty() && pool.starting == 0;
        bare && pool.calls_in_a_row(&self.limits, self.now)
    }

    /// Whether the next copy of a pool pays for its pages.
    fn pages_of(&self, pool: &Pool) -> Pages {
        match pool.terms.refill {
            Refill::AtOnce => Pages::Unpaid,
            Refill::Quiet if self.in_a_row(pool) => Pages::Plain,
            Refill::Quiet => Pages::Paid,
        }
    }

    /// How many more workers a pool wants and may have, not counting who may begin now.
    fn wants(&self, pool: &Pool) -> u32 {
        let has_source = match pool.state {
            State::Ready(_) if self.pages_of(pool) != Pages::Paid => true,
            State::Ready(_) => self.paying < self.limits.refills_at_once,
            State::Standby => self.may_start(pool),
            State::Waiting | State::Warming(_) | State::Failed { .. } => false,
        };
        if !has_source || pool.live() >= pool.terms.workers_max {
            return 0;
        }
        let missing = pool.missing(&self.limits, self.now);
        // What a request waits for is no memory that waits.
        if missing > 0 && (pool.wanted > pool.starting || self.has_room(pool)) {
            missing
        } else {
            0
        }
    }

    /// Starts as many as are wanted and as may begin at one time.
    fn refill_pool(&mut self, id: PoolId) {
        while let Some(pool) = self.pools.get(&id)
            && self.wants(pool) > 0
        {
            match pool.state {
                State::Ready(zygote) => {
                    let pages = self.pages_of(pool);
                    // What pays as well waits for quiet.
                    if self.fork(id, zygote, pages).is_none() || pages == Pages::Plain {
                        return;
                    }
                }
                State::Standby => self.start_standby(id),
                State::Waiting | State::Warming(_) | State::Failed { .. } => return,
            }
        }
    }

    /// The next step of a pool that is not used: fewer copies, one, none.
    pub(crate) fn pool_due(&mut self, id: PoolId) {
        self.try_again(id);
        let Some(pool) = self.pools.get(&id) else {
            return;
        };
        let idle_us = self.now.us_since(pool.last_used);
        // What is behind could not come back.
        let may_go = pool.queue.is_empty() && !pool.is_behind() && !self.is_at_work(id);
        if idle_us >= pool.terms.idle_us && may_go {
            match pool.serves {
                Serves::Program(_) => _ = self.drop_pool(id),
                Serves::Handler(_) => self.rest_pool(id),
            }
            return;
        }
        let limits = &self.limits;
        let steps = match pool.terms.refill {
            Refill::Quiet => [limits.rate_us, limits.copies_idle_us, pool.terms.idle_us],
            Refill::AtOnce => [pool.terms.idle_us; 3],
        };
        let next = match (pool.state, steps.into_iter().find(|step| *step > idle_us)) {
            // What waits is tried again then.
            (State::Failed { until }, _) if !pool.queue.is_empty() => until,
            (_, Some(step)) => pool.last_used.after_us(step),
            // In use for very long: look again later.
            (_, None) => self.now.after_us(limits.copies_idle_us),
        };
        self.timers.set(Timer::Pool(id), Some(next));
        let target = pool.target(limits, self.now);
        let surplus = match pool.terms.refill {
            Refill::Quiet => pool.idle_count().saturating_sub(target),
            // As many as there was work for; they go together, when the pool rests.
            Refill::AtOnce => 0,
        };
        // The oldest go: they are at the front.
        let surplus = usize::try_from(surplus).unwrap_or(usize::MAX);
        let extra: Vec<_> = pool.idle.iter().copied().take(surplus).collect();
        for worker in extra {
            self.retire(worker);
        }
    }

    /// Whether a worker of a pool performs something; one that is lent need not.
    fn is_at_work(&self, id: PoolId) -> bool {
        self.workers
            .values()
            .any(|entry| entry.pool == id && matches!(entry.state, WorkerState::Busy(_)))
    }

    /// Whether one more waiting worker of this pool fits into the memory budget, by what its last
    /// one occupied.
    fn has_room(&self, pool: &Pool) -> bool {
        if pool.copy_kib == 0 {
            return true;
        }
        let held: u64 = self
            .workers
            .values()
            .filter(|entry| matches!(entry.state, WorkerState::Starting | WorkerState::Ready))
            .map(|entry| entry.kib)
            .sum();
        held + pool.copy_kib <= self.limits.budget_kib
    }
}
