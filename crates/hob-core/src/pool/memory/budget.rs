//! One memory budget for everything that waits: what goes when it is passed.
//!
//! Only what waits is counted: a running call's memory is the program's own, it would need the
//! same cold, and taking it away would lose the call. PSS divides shared pages among their users,
//! so the sum over a zygote and its copies is what they occupy together.

use crate::ids::{PoolId, ProgramId, Time};

/// What one pool occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The pool.
    pub pool: PoolId,
    /// The program whose calls it performs.
    pub program: Option<ProgramId>,
    /// When it was last used.
    pub last_used: Time,
    /// What dropping it would free, in KiB: its zygote and the workers that wait.
    pub kib: u64,
    /// What waits and stays all the same: the state of sessions, and what they need.
    pub kept_kib: u64,
    /// Whether something is with it.
    pub used: Use,
}

/// Whether something is with a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// None: dropping the pool frees all that it holds.
    None,
    /// Some: dropping it frees its waiting workers only.
    Open,
}

/// The pools to drop, least recently used first, until the rest is within the budget. Pools in use
/// go last, when nothing else is left.
#[must_use]
pub fn evictions(held: &[Held], budget_kib: u64) -> Vec<PoolId> {
    let mut total: u64 = held.iter().map(|pool| pool.kib + pool.kept_kib).sum();
    let mut order: Vec<&Held> = held.iter().filter(|pool| pool.kib > 0).collect();
    order.sort_by_key(|pool| (pool.used == Use::Open, pool.last_used, pool.pool));
    let mut evicted = Vec::new();
    for pool in order {
        if total <= budget_kib {
            break;
        }
        total -= pool.kib;
        evicted.push(pool.pool);
    }
    evicted
}

/// The programs that are over the budget all by themselves.
#[must_use]
pub fn too_large(held: &[Held], budget_kib: u64) -> Vec<ProgramId> {
    let mut programs: Vec<ProgramId> = held.iter().filter_map(|pool| pool.program).collect();
    programs.sort_unstable();
    programs.dedup();
    let of = |program| held.iter().filter(move |pool| pool.program == Some(program));
    programs.retain(|program| {
        of(*program).map(|pool| pool.kib + pool.kept_kib).sum::<u64>() > budget_kib
    });
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(pool: u64, program: u64, last_used: u64, kib: u64, used: Use) -> Held {
        Held {
            pool: PoolId(pool),
            program: Some(ProgramId(program)),
            last_used: Time(last_used),
            kib,
            kept_kib: 0,
            used,
        }
    }

    fn check(pools: &[Held], budget: u64, expected: &[u64]) {
        let got: Vec<u64> = evictions(pools, budget).iter().map(|pool| pool.0).collect();
        assert_eq!(got, expected, "{pools:?} within {budget}");
    }

    #[test]
    fn the_least_recently_used_goes_first_and_no_more_than_needed() {
        let pools = [
            held(1, 1, 30, 100, Use::None),
            held(2, 2, 10, 100, Use::None),
            held(3, 3, 20, 100, Use::None),
        ];
        check(&pools, 300, &[]);
        check(&pools, 299, &[2]);
        check(&pools, 200, &[2]);
        check(&pools, 199, &[2, 3]);
        check(&pools, 0, &[2, 3, 1]);
    }

    #[test]
    fn pools_in_use_go_last_and_empty_ones_never() {
        let pools = [
            held(1, 1, 1, 100, Use::Open),
            held(2, 2, 2, 0, Use::None),
            held(3, 3, 3, 100, Use::None),
        ];
        check(&pools, 150, &[3]);
        check(&pools, 50, &[3, 1]);
    }

    #[test]
    fn a_program_is_too_large_by_the_sum_of_its_pools() {
        let pools = [
            held(1, 1, 1, 60, Use::None),
            held(2, 1, 2, 41, Use::Open),
            held(3, 2, 3, 100, Use::None),
        ];
        assert_eq!(too_large(&pools, 100), [ProgramId(1)]);
        assert_eq!(too_large(&pools, 101), []);
    }
}
