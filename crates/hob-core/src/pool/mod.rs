//! The workers of one key: which wait, how many live, and how the pool stands.
//!
//! ```text
//!             a slot is free            ZygoteReady
//!  Waiting ──────────────────▶ Warming ─────────────▶ Ready        (recipes that fork)
//!     ▲                           │                     │
//!     │ a call, after `until`     ▼ Gone, too slow      ▼ Gone, copies die
//!     └──────────────────────── Failed ◀────────────────┘
//!     (Warming and Ready go back to Waiting where a signal ended the zygote: `deaths`)
//!                                 ▲ │
//!                    standbys die │ ▼ a call, after `until`
//!                               Standby                            (recipes that execute)
//! ```
//!
//! A pool of calls whose warm state is not to be used any more is dropped at once; one of requests
//! begins a new generation, since its queue is kept. Its workers end on their own, so there is no
//! state for it. A pool knows no clock and emits nothing: the engine moves workers through it, and
//! counts in one place (`Pool::count`).
//!
//! | file | what |
//! |---|---|
//! | `engine` | all pools and workers; pools that are opened, dropped, renewed, failed |
//! | `processes` | workers: asked for, ready, given, done, lent, told to end, gone |
//! | `refill` | what is started or forked ahead, and when; what is given up when idle |
//! | `beside` | what is loaded anew while the old goes on |
//! | `deaths` | what deaths say of what is loaded, and how long is waited after them |
//! | `memory` | readings, and what goes when the budget is passed; `budget` the pure part |
//! | `timers` | what is to be looked at when |
//! | `worker` | the states of one process |
//! | `recycle` | when a worker has done enough |
//! | `stats` | arrivals and averages |

pub(crate) mod beside;
pub mod deaths;
pub(crate) mod engine;
pub mod memory;
pub(crate) mod processes;
pub mod recycle;
mod refill;
pub(crate) mod stats;
pub(crate) mod timers;
pub mod worker;

use std::collections::VecDeque;

use crate::event::{Aim, Serves};
use crate::ids::{CallId, PoolId, Time, WorkerId};
use crate::isolation::{Origin, Recipe, Uses};
use crate::key::Key;
use crate::limits::Limits;
use crate::pool::beside::{Next, Outdated};
use crate::pool::deaths::Deaths;
use crate::pool::stats::{Arrivals, Average};
use crate::pool::worker::State as WorkerState;
use crate::terms::{Refill, Terms};

/// How a pool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It wants a zygote, and too many interpreters start already.
    Waiting,
    /// Its zygote preloads.
    Warming(WorkerId),
    /// Its zygote can be forked.
    Ready(WorkerId),
    /// It needs no zygote.
    Standby,
    /// It could not be warmed, and is not tried again before `until`.
    Failed { until: Time },
}

impl State {
    /// The word for it in `hob status`.
    pub(crate) fn code(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Warming(_) => "warming",
            State::Ready(_) => "ready",
            State::Standby => "standby",
            State::Failed { .. } => "failed",
        }
    }
}

/// What a call's pool is found by. `--ahead` is not part of it: it says how many copies wait, not
/// what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shelf {
    pub(crate) key: Key,
    pub(crate) origin: Origin,
    pub(crate) uses: Uses,
}

impl Shelf {
    pub(crate) fn new(key: Key, recipe: Recipe) -> Shelf {
        Shelf { key, origin: recipe.origin, uses: recipe.uses }
    }
}

/// Whether copies are made ahead of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Copies wait, with their pages paid for.
    Latency,
    /// Calls come faster than copies can be made: each is forked for its call, which costs less
    /// in total.
    Throughput,
}

/// One pool.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) id: PoolId,
    pub(crate) serves: Serves,
    pub(crate) key: Key,
    pub(crate) terms: Terms,
    pub(crate) state: State,
    /// Workers of an older one have what is not to be used any more.
    pub(crate) generation: u64,
    /// The newest one that was ever begun.
    pub(crate) newest: u64,
    /// What is loaded anew while this goes on.
    pub(crate) next: Option<Next>,
    /// What would be loaded now could not be, and this goes on.
    pub(crate) outdated: Option<Outdated>,
    /// `--ahead` of the newest call that has a say; until there is one, nothing waits.
    pub(crate) asked: Option<u32>,
    /// Nothing is made ahead until a request comes or what is loaded changes: it is idle, its
    /// memory was needed, or its workers die while they wait.
    pub(crate) rests: bool,
    /// Requests that wait, and for which no worker is there or comes back.
    pub(crate) wanted: u32,
    /// Workers that wait; the newest is given first, its pages are the least likely to be out.
    pub(crate) idle: Vec<WorkerId>,
    /// What waits for a worker of this pool, in order.
    pub(crate) queue: VecDeque<CallId>,
    pub(crate) starting: u32,
    /// Workers that have a request or a lane.
    pub(crate) busy: u32,
    /// Processes that performed a call and have not ended yet, or were told to end.
    pub(crate) retiring: u32,
    /// Failures in a row, for the back-off.
    pub(crate) failures: u32,
    /// Processes that died and were not told to.
    pub(crate) deaths: Deaths,
    /// What came for it so far.
    pub(crate) requests: u64,
    /// What it is used for, where that is calls: a proof only if all of them were.
    pub(crate) aim: Option<Aim>,
    /// Workers that were to go on and have done enough, or have grown too large.
    pub(crate) recycled: u64,
    pub(crate) last_used: Time,
    pub(crate) arrivals: Arrivals,
    /// How long a copy takes from its fork to being ready.
    pub(crate) pay_us: Average,
    /// What the newest measured worker that waits occupies; 0 before the first reading.
    pub(crate) copy_kib: u64,
    /// Since when it has had no worker waiting although it wants some.
    pub(crate) bare_since: Option<Time>,
}

impl Pool {
    pub(crate) fn new(id: PoolId, serves: Serves, key: Key, terms: Terms) -> Pool {
        Pool {
            id,
            serves,
            key,
            terms,
            state: first_state(&terms),
            generation: 0,
            newest: 0,
            next: None,
            outdated: None,
            asked: Some(0),
            rests: false,
            wanted: 0,
            idle: Vec::new(),
            queue: VecDeque::new(),
            starting: 0,
            busy: 0,
            retiring: 0,
            failures: 0,
            deaths: Deaths::default(),
            requests: 0,
            aim: None,
            recycled: 0,
            last_used: Time::default(),
            arrivals: Arrivals::default(),
            pay_us: Average::default(),
            copy_kib: 0,
            bare_since: None,
        }
    }

    /// The state that it begins in, also after a failure.
    pub(crate) fn fresh(&self) -> State {
        first_state(&self.terms)
    }

    pub(crate) fn shelf(&self) -> Shelf {
        Shelf::new(self.key, self.terms.recipe)
    }

    /// The zygote, whether it is ready or not.
    pub(crate) fn zygote(&self) -> Option<WorkerId> {
        match self.state {
            State::Warming(zygote) | State::Ready(zygote) => Some(zygote),
            State::Waiting | State::Standby | State::Failed { .. } => None,
        }
    }

    /// Its living workers, without the zygote.
    pub(crate) fn live(&self) -> u32 {
        self.starting + self.idle_count() + self.busy + self.retiring
    }

    pub(crate) fn idle_count(&self) -> u32 {
        u32::try_from(self.idle.len()).expect("a pool's workers are bounded by workers_max")
    }

    /// Whether nothing is with it or waits for it.
    pub(crate) fn is_unused(&self) -> bool {
        self.busy == 0 && self.queue.is_empty()
    }

    /// Moves a worker (not the zygote) from one state to another. The only place that counts.
    pub(crate) fn count(&mut self, worker: WorkerId, from: Option<WorkerState>, to: WorkerState) {
        match from {
            Some(WorkerState::Starting) => self.starting -= 1,
            Some(WorkerState::Ready) => self.idle.retain(|idle| *idle != worker),
            Some(WorkerState::Busy(_) | WorkerState::Lent(_) | WorkerState::Recalled(_)) => {
                self.busy -= 1;
            }
            Some(WorkerState::Retiring) => self.retiring -= 1,
            Some(WorkerState::Gone) | None => {}
        }
        match to {
            WorkerState::Starting => self.starting += 1,
            WorkerState::Ready => self.idle.push(worker),
            WorkerState::Busy(_) | WorkerState::Lent(_) | WorkerState::Recalled(_) => {
                self.busy += 1;
            }
            WorkerState::Retiring => self.retiring += 1,
            WorkerState::Gone => {}
        }
    }

    /// How many more workers it wants, not counting how many it may have.
    pub(crate) fn missing(&self, limits: &Limits, now: Time) -> u32 {
        let ahead = self.target(limits, now).saturating_sub(self.idle_count());
        self.wanted.max(ahead).saturating_sub(self.starting)
    }

    /// Whether a zygote is to be there: calls that have no copy waiting are forked for.
    pub(crate) fn wants_a_zygote(&self, limits: &Limits, now: Time) -> bool {
        match self.terms.refill {
            Refill::Quiet => true,
            Refill::AtOnce => self.missing(limits, now) > 0,
        }
    }

    /// A call for this has come, or is to. A pool that none but proofs used goes soon after them.
    pub(crate) fn is_used_for(&mut self, aim: Aim, limits: &Limits) {
        match aim {
            Aim::Prove if self.aim.is_none() => self.terms.idle_us = limits.proof_idle_us,
            Aim::Prove => return,
            Aim::Perform | Aim::Prepare => self.terms.idle_us = limits.pool_idle_us,
        }
        self.aim = Some(aim);
    }

    /// How many workers are to wait now.
    pub(crate) fn target(&self, limits: &Limits, now: Time) -> u32 {
        if self.terms.refill == Refill::AtOnce {
            return if self.rests { 0 } else { self.terms.recipe.ahead };
        }
        let idle_us = now.us_since(self.last_used);
        if idle_us >= self.terms.idle_us {
            return 0;
        }
        if let Some(asked) = self.asked {
            return asked.min(limits.ahead_asked_max);
        }
        if idle_us >= limits.copies_idle_us {
            return limits.ahead_min.min(1);
        }
        let least = self.least(limits, now);
        if idle_us >= limits.rate_us {
            return least;
        }
        // A refill begins after a quiet moment and takes a while: so many calls come meanwhile.
        let refill_us = limits.quiet_us + self.pay_guess_us(limits);
        let meanwhile = self.arrivals.gap_us(now).map_or(0, |gap_us| 1 + refill_us / gap_us.max(1));
        let meanwhile = u32::try_from(meanwhile).unwrap_or(u32::MAX);
        let wanted = meanwhile.max(self.arrivals.peak(limits.rate_us, now));
        wanted.min(limits.ahead_max).max(least)
    }

    /// The fewest that wait while the pool is in use. A standby is a whole interpreter, and shares
    /// nothing with another: a second one waits where calls follow one another.
    fn least(&self, limits: &Limits, now: Time) -> u32 {
        let follow = |gap_us| gap_us < limits.copies_idle_us;
        if self.terms.forks() || self.arrivals.last_gap_us(now).is_some_and(follow) {
            return limits.ahead_min;
        }
        limits.ahead_min.min(1)
    }

    /// Whether calls come faster than copies can be made.
    pub(crate) fn mode(&self, limits: &Limits, now: Time) -> Mode {
        match self.load_ends(limits, now) {
            Some(_) => Mode::Throughput,
            None => Mode::Latency,
        }
    }

    /// If calls come faster than copies can be made: when that ends, should no more come. A pool
    /// whose workers are executed has no other way, so it is never under load.
    pub(crate) fn load_ends(&self, limits: &Limits, now: Time) -> Option<Time> {
        let pay_us = self.pay_guess_us(limits).min(limits.load_gap_us);
        if !self.terms.forks() || self.arrivals.gap_us(now)? >= pay_us {
            return None;
        }
        Some(self.arrivals.last()?.after_us(pay_us))
    }

    /// Whether its calls come one directly after another, never two at a time, and closer than it
    /// would wait for a quiet moment. With several at a time no processor is left to fork ahead on.
    pub(crate) fn calls_in_a_row(&self, limits: &Limits, now: Time) -> bool {
        self.terms.recipe.uses == Uses::Once
            && self.terms.refill == Refill::Quiet
            && self.arrivals.peak(limits.rate_us, now) < 2
            && self.arrivals.last_gap_us(now).is_some_and(|gap| gap < limits.refill_patience_us)
    }

    /// How long the next copy takes to make: as the last ones did, or half of what could be a load.
    fn pay_guess_us(&self, limits: &Limits) -> u64 {
        self.pay_us.get().unwrap_or(limits.load_gap_us / 2)
    }
}

fn first_state(terms: &Terms) -> State {
    match terms.recipe.origin {
        Origin::Fork => State::Waiting,
        Origin::Exec => State::Standby,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProgramId;
    use crate::isolation::Name;

    /// A pool with calls so far apart, the last of them now.
    fn pool(name: Name, gap_us: u64) -> (Pool, Limits, Time) {
        let limits = Limits {
            quiet_us: 1_000,
            load_gap_us: 8_000,
            ahead_min: 1,
            ahead_max: 9,
            ..Limits::default()
        };
        let mut pool = {
            let terms = Terms::of_calls(name.lower(4), &limits);
            Pool::new(PoolId(1), Serves::Program(ProgramId(1)), Key([0; 16]), terms)
        };
        pool.asked = None;
        let mut now = Time(1_000_000_000);
        pool.arrivals.note(now, 1, limits.rate_us);
        now = now.after_us(gap_us);
        pool.arrivals.note(now, 1, limits.rate_us);
        pool.last_used = now;
        (pool, limits, now)
    }

    #[test]
    fn as_many_copies_wait_as_calls_come_while_one_is_made() {
        // Quiet for 1 ms; a first copy is thought to take 4 ms.
        for (gap_us, expected) in
            [(100_000, 1), (5_001, 1), (5_000, 2), (2_500, 3), (1_250, 5), (1, 9), (0, 9)]
        {
            let (pool, limits, now) = pool(Name::Fork, gap_us);
            assert_eq!(pool.target(&limits, now), expected, "{gap_us}");
        }
        let (mut pool, limits, now) = pool(Name::Fork, 5_000);
        pool.pay_us.add(9_000);
        assert_eq!(pool.target(&limits, now), 3);
    }

    #[test]
    fn a_load_is_when_calls_come_faster_than_copies_and_never_when_they_come_slowly() {
        for (gap_us, pay_us, loaded) in [
            (3_999, None, true),
            (4_000, None, false),
            (1_999, Some(2_000), true),
            (2_000, Some(2_000), false),
            (7_999, Some(50_000), true),
            (8_000, Some(50_000), false),
        ] {
            let (mut pool, limits, now) = pool(Name::Fork, gap_us);
            if let Some(pay_us) = pay_us {
                pool.pay_us.add(pay_us);
            }
            assert_eq!(pool.load_ends(&limits, now).is_some(), loaded, "{gap_us} {pay_us:?}");
        }
        let (pool, limits, now) = pool(Name::Fork, 3_000);
        assert_eq!(pool.load_ends(&limits, now), Some(now.after_us(4_000)));
        assert_eq!(pool.mode(&limits, now.after_us(3_999)), Mode::Throughput);
        assert_eq!(pool.mode(&limits, now.after_us(4_000)), Mode::Latency);
    }

    #[test]
    fn standbys_know_no_load() {
        let (pool, limits, now) = pool(Name::Standby, 10);
        assert_eq!(pool.mode(&limits, now), Mode::Latency);
    }

    #[test]
    fn a_second_standby_waits_where_calls_follow_one_another() {
        for (gap_us, expected) in [(59_999_999, 2), (60_000_000, 1)] {
            let (pool, mut limits, now) = pool(Name::Standby, gap_us);
            limits.ahead_min = 2;
            assert_eq!(pool.target(&limits, now), expected, "{gap_us}");
            let (pool, ..) = self::pool(Name::Fork, gap_us);
            assert_eq!(pool.target(&limits, now), 2);
        }
        let (mut pool, mut limits, now) = pool(Name::Standby, 0);
        limits.ahead_min = 2;
        pool.arrivals = Arrivals::default();
        pool.arrivals.note(now, 1, limits.rate_us);
        assert_eq!(pool.target(&limits, now), 1, "called once");
        limits.ahead_min = 0;
        assert_eq!(pool.target(&limits, now.after_us(limits.rate_us)), 0);
    }

    #[test]
    fn fewer_wait_the_longer_nothing_is_called() {
        let (mut pool, mut limits, now) = pool(Name::Fork, 1_000);
        limits.ahead_min = 3;
        let after = |us: u64| now.after_us(us);
        assert_eq!(pool.target(&limits, now), 6);
        assert_eq!(pool.target(&limits, after(limits.rate_us)), 3);
        assert_eq!(pool.target(&limits, after(limits.copies_idle_us - 1)), 3);
        assert_eq!(pool.target(&limits, after(limits.copies_idle_us)), 1);
        assert_eq!(pool.target(&limits, after(limits.pool_idle_us - 1)), 1);
        assert_eq!(pool.target(&limits, after(limits.pool_idle_us)), 0);
        pool.asked = Some(5);
        assert_eq!(pool.target(&limits, after(limits.pool_idle_us - 1)), 5);
        assert_eq!(pool.target(&limits, after(limits.pool_idle_us)), 0);
    }
}
