//! What kind of world a seed makes: its limits, how often what goes wrong.

use hob_core::limits::Limits;

use crate::rng::Rng;

/// Chances, in a thousand each.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) calls: u64,
    pub(crate) programs: u64,
    /// Keys per program.
    pub(crate) variants: u64,
    /// The longest time between two calls, and how many come at once at most.
    pub(crate) gap_max_us: u64,
    pub(crate) burst_max: u64,
    pub(crate) run_max_us: u64,
    pub(crate) process_dies: u64,
    pub(crate) hangs: u64,
    pub(crate) fork_fails: u64,
    pub(crate) threads: u64,
    pub(crate) amends: u64,
    pub(crate) caller_leaves: u64,
    pub(crate) timeouts: u64,
    pub(crate) no_lesson: u64,
    pub(crate) stale: u64,
    pub(crate) loads_anew: u64,
    pub(crate) odd_facts: u64,
    pub(crate) clock_jumps: u64,
    pub(crate) pressure: u64,
    /// So many of a thousand programs are slower warm. In few worlds: they leave little to see.
    pub(crate) slower: u64,
    /// How many kinds of work calls have; each has its own where it is 0. In few worlds, since calls
    /// fail at random.
    pub(crate) works: u64,
    /// Handlers of messages beside the programs; none in some worlds.
    pub(crate) handlers: u64,
    pub(crate) ending: Finale,
}

/// How a world ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finale {
    /// It is drained while calls still come.
    DrainAmidCalls,
    /// It is drained when the last call has arrived.
    Drain,
    /// It is left alone until it exits by itself.
    Idle,
}

impl Scenario {
    pub(crate) fn new(rng: &mut Rng) -> Scenario {
        // In calm worlds the paths that need luck in a row are reached.
        let calm = rng.chance(300);
        let slower = if rng.chance(100) { rng.between(1, 1000) } else { 0 };
        let works = if rng.chance(100) { rng.between(1, 3) } else { 0 };
        let mut odds = |most: u64| if calm { rng.next() % 3 } else { rng.magnitude(most) / 2 };
        Scenario {
            process_dies: odds(300),
            hangs: odds(60),
            fork_fails: odds(200),
            threads: odds(200),
            amends: odds(300),
            caller_leaves: odds(300),
            timeouts: odds(300),
            no_lesson: odds(500),
            stale: odds(60),
            loads_anew: odds(8),
            odd_facts: odds(200),
            clock_jumps: odds(10),
            pressure: odds(300),
            slower,
            works,
            handlers: rng.pick(&[0, 1, 1, 2, 5]),
            calls: rng.between(200, 6000),
            programs: rng.pick(&[0, 0, 1, 2, 4, 40]),
            variants: rng.pick(&[1, 1, 1, 3]),
            gap_max_us: rng.pick(&[1_000, 5_000, 30_000, 30_000, 100_000, 5_000_000]),
            burst_max: rng.pick(&[1, 1, 3, 12]),
            run_max_us: rng.pick(&[2_000, 20_000, 20_000, 200_000, 20_000_000]),
            ending: rng.pick(&[Finale::DrainAmidCalls, Finale::Drain, Finale::Idle]),
        }
    }
}

/// Limits that are met often.
pub(crate) fn limits(rng: &mut Rng) -> Limits {
    let small = |rng: &mut Rng, high| u32::try_from(rng.magnitude(high)).expect("small");
    let narrow = rng.chance(400);
    let tight = |rng: &mut Rng, high, wide| if narrow { small(rng, high) } else { wide };
    Limits {
        calls_max: 1 + tight(rng, 60, 255),
        queue_max: tight(rng, 40, 1024),
        queue_wait_us: rng.pick(&[1_000, 100_000, 2_000_000]),
        workers_max: 1 + tight(rng, 20, 127),
        pools_max: 1 + tight(rng, 10, 63),
        program_pools_max: 1 + tight(rng, 3, 15),
        programs_max: 1 + tight(rng, 10, 1023),
        ahead_min: rng.pick(&[0, 1, 2]),
        ahead_max: rng.pick(&[2, 4, 8]),
        refills_at_once: rng.pick(&[1, 1, 1, 2, 3]),
        starts_at_once: rng.pick(&[1, 2, 3]),
        worker_kib: rng.pick(&[5_000, 500_000]),
        budget_kib: rng.pick(&[50_000, 200_000, 1_000_000]),
        start_us: rng.pick(&[300_000, 5_000_000]),
        pay_us: rng.pick(&[30_000, 5_000_000]),
        gives_max: rng.pick(&[1, 3]),
        pace_calls: rng.pick(&[2, 20]),
        pace_trial_calls: rng.pick(&[1, 5]),
        pace_trial_us: rng.pick(&[10_000, 120_000_000]),
        pace_wait_min_us: rng.pick(&[10_000, 1_000_000, 60_000_000]),
        amend_tries: rng.pick(&[0, 1, 4]),
        ..Limits::default()
    }
}
