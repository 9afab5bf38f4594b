//! Every bound of the core, by name. Whatever waits, is retried or is kept has its bound here.
//!
//! Memory, time, processes: never called isolation. Times are microseconds unless the name says
//! otherwise.

/// The bounds that a supervisor works within.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Calls that workers perform at one time.
    pub calls_max: u32,
    /// Calls that wait for a worker at one time.
    pub queue_max: u32,
    /// How long a call waits for a worker before it runs cold.
    pub queue_wait_us: u64,
    /// Workers of one pool, waiting ones included.
    pub workers_max: u32,
    /// Pools at one time.
    pub pools_max: u32,
    /// Pools of one program at one time.
    pub program_pools_max: u32,
    /// Programs that are remembered as learned.
    pub programs_max: u32,

    /// Copies that wait while a pool is in use and nothing is known of its calls.
    pub ahead_min: u32,
    /// Copies that wait at most, unless `--ahead` says otherwise.
    pub ahead_max: u32,
    /// What `--ahead` may ask for.
    pub ahead_asked_max: u32,
    /// Copies that pay for their pages at one time: each keeps one processor busy.
    pub refills_at_once: u32,
    /// Zygotes and standbys that start at one time.
    pub starts_at_once: u32,
    /// The same for those that a request waits for, which may wait for each other.
    pub starts_waited_for: u32,
    /// How long nothing was given or settled before a copy is made ahead.
    pub quiet_us: u64,
    /// A call that runs for longer than this is no reason to wait with a refill.
    pub in_flight_us: u64,
    /// How long a pool that has run out of copies waits for quiet, if its calls come slower than
    /// copies can be made.
    pub refill_patience_us: u64,
    /// Calls that are further apart than this are never a load.
    pub load_gap_us: u64,

    /// How long a zygote or standby may take to preload.
    pub start_us: u64,
    /// How long a copy may take to pay for its pages.
    pub pay_us: u64,
    /// How long a worker that was told to end may take before it is killed.
    pub retire_us: u64,
    /// How long a program may take after SIGTERM before SIGKILL.
    pub kill_grace_us: u64,
    /// How long a settled learning run's notes are waited for.
    pub learn_wait_us: u64,
    /// After this, another call may learn a program whose learning run still runs.
    pub learn_patience_us: u64,
    /// Learning runs without notes before a program counts as learned with nothing to preload.
    pub lessons_max: u32,

    /// Workers of a pool that end by themselves in a row, with no call performed, before it counts
    /// as failed.
    pub deaths_max: u32,
    /// The same of those that a signal ended before they were ready, or the system did not make,
    /// with no worker ready between them.
    pub kills_max: u32,
    /// How long a pool waits after the second of these; each further one doubles.
    pub kill_wait_us: u64,
    /// How often a call is given anew because its worker was closed.
    pub gives_max: u32,
    /// How often a program's lesson may be amended before it goes cold for a while.
    pub amend_tries: u32,
    /// The first back-off of what could not be warmed; each further one doubles.
    pub backoff_min_us: u64,
    /// The longest back-off.
    pub backoff_max_us: u64,

    /// So many calls must import more than is loaded ahead before that is loaded too; each time in
    /// a row that it was not worth it doubles them.
    pub growth_calls: u32,
    /// So often at most.
    pub growth_doublings_max: u32,
    /// A call that ran for less than this could not be faster by much.
    pub growth_min_us: u64,
    /// It was worth it if the preload takes so much longer.
    pub growth_worth_us: u64,

    /// A program that was slower warm than cold over so many calls is tried.
    pub pace_calls: u32,
    /// So many calls of each kind decide.
    pub pace_trial_calls: u32,
    /// They must come within this time; otherwise nothing is decided.
    pub pace_trial_us: u64,
    /// How long a program that is slower warm runs cold before it is tried warm again; each
    /// further time doubles.
    pub pace_wait_min_us: u64,
    /// The longest such time.
    pub pace_wait_max_us: u64,

    /// Memory of all that waits (zygotes, copies, standbys), PSS in KiB.
    pub budget_kib: u64,
    /// How long a program that alone is over the budget runs cold.
    pub memory_wait_us: u64,
    /// Memory of a worker that performs several calls, after which it is replaced.
    pub worker_kib: u64,

    /// After this without a call, a pool keeps [`Limits::ahead_min`] copies.
    pub rate_us: u64,
    /// After this without a call, a pool keeps one copy. Of standbys it keeps one until two calls came
    /// closer than this.
    pub copies_idle_us: u64,
    /// After this without a call, a pool is retired.
    pub pool_idle_us: u64,
    /// The same of a pool whose calls were all made to compare them.
    pub proof_idle_us: u64,
    /// After this without a call, the daemon exits.
    pub idle_exit_us: u64,
    /// How long running calls may take to end after a stop.
    pub drain_grace_us: u64,
    /// When the core itself is asked this much too late (the daemon was stopped), no worker is
    /// judged by the clock until as much has passed again.
    pub late_us: u64,
}

const MS: u64 = 1000;
const SECOND: u64 = 1000 * MS;
const MINUTE: u64 = 60 * SECOND;

impl Default for Limits {
    fn default() -> Self {
        Limits {
            calls_max: 256,
            queue_max: 1024,
            queue_wait_us: 2 * SECOND,
            workers_max: 128,
            pools_max: 64,
            program_pools_max: 16,
            programs_max: 1024,
            ahead_min: 2,
            ahead_max: 4,
            ahead_asked_max: 64,
            refills_at_once: 1,
            starts_at_once: 2,
            starts_waited_for: 8,
            quiet_us: 1500,
            in_flight_us: 50 * MS,
            refill_patience_us: 20 * MS,
            load_gap_us: 10 * MS,
            start_us: 60 * SECOND,
            pay_us: 5 * SECOND,
            retire_us: 5 * SECOND,
            kill_grace_us: 2 * SECOND,
            learn_wait_us: SECOND,
            learn_patience_us: 30 * SECOND,
            lessons_max: 2,
            deaths_max: 3,
            kills_max: 8,
            kill_wait_us: 10 * MS,
            gives_max: 3,
            amend_tries: 4,
            backoff_min_us: SECOND,
            backoff_max_us: 5 * MINUTE,
            growth_calls: 2,
            growth_doublings_max: 5,
            growth_min_us: 3 * MS,
            growth_worth_us: 2 * MS,
            pace_calls: 20,
            pace_trial_calls: 5,
            pace_trial_us: 2 * MINUTE,
            pace_wait_min_us: MINUTE,
            pace_wait_max_us: 64 * MINUTE,
            budget_kib: 1024 * 1024,
            memory_wait_us: MINUTE,
            worker_kib: 512 * 1024,
            rate_us: 5 * SECOND,
            copies_idle_us: MINUTE,
            pool_idle_us: 10 * MINUTE,
            proof_idle_us: 5 * SECOND,
            idle_exit_us: 30 * MINUTE,
            drain_grace_us: 5 * SECOND,
            late_us: SECOND,
        }
    }
}

impl Limits {
    /// How long to wait after the `tries`th failure in a row (from 1): doubled each time, bounded.
    #[must_use]
    pub fn backoff_us(&self, tries: u32) -> u64 {
        doubled(self.backoff_min_us, tries).min(self.backoff_max_us)
    }

    /// How long to wait after the `deaths`th process in a row (from 1) that something else ended:
    /// not at all after the first, then doubled each time, bounded.
    #[must_use]
    pub fn death_wait_us(&self, deaths: u32) -> u64 {
        match deaths.checked_sub(1) {
            None | Some(0) => 0,
            Some(more) => doubled(self.kill_wait_us, more).min(self.backoff_max_us),
        }
    }

    /// How long a program that was found slower warm `times` times in a row runs cold.
    #[must_use]
    pub fn pace_wait_us(&self, times: u32) -> u64 {
        doubled(self.pace_wait_min_us, times).min(self.pace_wait_max_us)
    }
}

/// `first` for the first time, twice as much for each further one.
fn doubled(first: u64, times: u32) -> u64 {
    first.saturating_mul(1 << times.saturating_sub(1).min(63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_off_doubles_up_to_its_bound() {
        let limits = Limits::default();
        let waits: Vec<_> = [0, 1, 2, 3, 9, 10, u32::MAX].map(|n| limits.backoff_us(n)).into();
        assert_eq!(
            waits,
            [SECOND, SECOND, 2 * SECOND, 4 * SECOND, 256 * SECOND, 5 * MINUTE, 5 * MINUTE]
        );
    }

    #[test]
    fn the_first_process_that_was_killed_is_made_anew_at_once() {
        let limits = Limits::default();
        let waits: Vec<_> = [0, 1, 2, 3, 8, u32::MAX].map(|n| limits.death_wait_us(n)).into();
        assert_eq!(waits, [0, 0, 10 * MS, 20 * MS, 640 * MS, 5 * MINUTE]);
    }
}
