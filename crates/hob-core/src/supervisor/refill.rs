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

use crate::event::{Effect, Pages};
use crate::ids::{PoolId, Time};
use crate::outcome::ColdReason;
use crate::pool::worker::{Role, State as WorkerState};
use crate::pool::{Pool, State};

use super::drain::Stage;
use super::{Supervisor, Timer};

impl Supervisor {
    /// Starts and forks what is wanted and may begin now; sets the timer for what may begin later.
    pub(super) fn refill(&mut self, out: &mut Vec<Effect>) {
        if self.stage != Stage::Open {
            return;
        }
        self.start_zygotes(out);
        self.note_bare_pools();
        let quiet = self.quiet_at();
        let mut later: Option<Time> = None;
        for (at, id) in self.wanting(quiet) {
            if at > self.now {
                later = Some(later.map_or(at, |later| later.min(at)));
            } else {
                self.refill_pool(id, out);
            }
        }
        self.timers.set(Timer::Refill, later);
    }

    /// Zygotes that are missing: calls run cold until they are there, so nothing is gained by
    /// waiting for quiet. The most recently used pool's is the first.
    fn start_zygotes(&mut self, out: &mut Vec<Effect>) {
        if self.starting >= self.limits.starts_at_once {
            return;
        }
        let mut waiting: Vec<(Time, PoolId)> = self
            .pools
            .values()
            .filter(|pool| pool.state == State::Waiting)
            .map(|pool| (pool.last_used, pool.id))
            .collect();
        waiting.sort_unstable_by(|one, two| two.cmp(one));
        for (_, id) in waiting {
            if self.starting >= self.limits.starts_at_once {
                return;
            }
            self.start_zygote(id, out);
        }
    }

    fn start_zygote(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        let Some(zygote) = self.new_worker(id, Role::Zygote { copies: 0 }, Pages::Unpaid) else {
            return;
        };
        if let Some(pool) = self.pools.get_mut(&id) {
            pool.state = State::Warming(zygote);
            out.push(Effect::StartZygote { pool: id, zygote, key: pool.key });
        }
    }

    fn start_standby(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        let Some(worker) = self.new_worker(id, Role::Standby, Pages::Unpaid) else {
            return;
        };
        if let Some(pool) = self.pools.get(&id) {
            out.push(Effect::StartStandby { pool: id, worker, key: pool.key });
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
                Some(since) => quiet.min(since.after_us(self.limits.refill_patience_us)),
                None => quiet,
            };
            if self.in_a_row(pool) {
                at = self.now;
            } else if let Some(load_ends) = pool.load_ends(&self.limits, self.now) {
                at = at.max(load_ends);
            }
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

    /// How many more workers a pool wants and may have, not counting who may begin now.
    fn wants(&self, pool: &Pool) -> u32 {
        let has_source = match pool.state {
            State::Ready(_) if self.in_a_row(pool) => true,
            State::Ready(_) => self.paying < self.limits.refills_at_once,
            State::Standby => self.starting < self.limits.starts_at_once,
            State::Waiting | State::Warming(_) | State::Failed { .. } => false,
        };
        if !has_source || pool.live() >= self.limits.workers_max {
            return 0;
        }
        let target = pool.target(&self.limits, self.now);
        let missing = target.saturating_sub(pool.idle_count() + pool.starting);
        if missing > 0 && self.has_room(pool) { missing } else { 0 }
    }

    /// Starts as many as are wanted and as may begin at one time.
    fn refill_pool(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        while let Some(pool) = self.pools.get(&id)
            && self.wants(pool) > 0
        {
            match pool.state {
                State::Ready(zygote) => {
                    let plain = self.in_a_row(pool);
                    let pages = if plain { Pages::Plain } else { Pages::Paid };
                    // What pays as well waits for quiet.
                    if self.fork(id, zygote, pages, out).is_none() || plain {
                        return;
                    }
                }
                State::Standby => self.start_standby(id, out),
                State::Waiting | State::Warming(_) | State::Failed { .. } => return,
            }
        }
    }

    /// The next step of a pool that is not called: fewer copies, one, none.
    pub(super) fn pool_due(&mut self, id: PoolId, out: &mut Vec<Effect>) {
        let Some(pool) = self.pools.get(&id) else {
            return;
        };
        let idle_us = self.now.us_since(pool.last_used);
        if idle_us >= self.limits.pool_idle_us && pool.is_unused() {
            self.drop_pool(id, ColdReason::Warming, out);
            return;
        }
        let limits = &self.limits;
        let steps = [limits.rate_us, limits.copies_idle_us, limits.pool_idle_us];
        let next = match steps.into_iter().find(|step| *step > idle_us) {
            Some(step) => pool.last_used.after_us(step),
            // In use for very long: look again later.
            None => self.now.after_us(limits.copies_idle_us),
        };
        self.timers.set(Timer::Pool(id), Some(next));
        let target = pool.target(limits, self.now);
        let surplus = pool.idle_count().saturating_sub(target);
        // The oldest go: they are at the front.
        let surplus = usize::try_from(surplus).unwrap_or(usize::MAX);
        let extra: Vec<_> = pool.idle.iter().copied().take(surplus).collect();
        for worker in extra {
            self.retire(worker, out);
        }
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
        held + pool.copy_kib <= self.allowed_kib
    }
}
