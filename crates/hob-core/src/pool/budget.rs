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
    /// Its program.
    pub program: ProgramId,
    /// When it was last used.
    pub last_used: Time,
    /// Its zygote and the workers that wait, in KiB.
    pub kib: u64,
    /// Whether calls are with it.
    pub calls: Calls,
}

/// Whether calls are with a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// None: dropping the pool frees all that it holds.
    None,
    /// Some: dropping it frees its waiting workers only.
    Open,
}

/// The pools to drop, least recently used first, until the rest is within the budget. Pools in use
/// go last, when nothing else is left.
#[must_use]
pub fn evictions(held: &[Held], budget_kib: u64) -> Vec<PoolId> {
    let mut total: u64 = held.iter().map(|pool| pool.kib).sum();
    let mut order: Vec<&Held> = held.iter().filter(|pool| pool.kib > 0).collect();
    order.sort_by_key(|pool| (pool.calls == Calls::Open, pool.last_used, pool.pool));
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

/// What waits in a pool, whoever owns the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// When it was last used.
    pub last_used: Time,
    /// What dropping it would free, in KiB.
    pub kib: u64,
    /// Whether something is with it.
    pub calls: Calls,
}

/// What each of several owners (calls, handlers) may keep of their one budget: the least recently
/// used goes first, whoever owns it, and what is free is free for each.
#[must_use]
pub fn allowances<const OWNERS: usize>(
    waiting: [&[Waiting]; OWNERS],
    budget_kib: u64,
) -> [u64; OWNERS] {
    let all = waiting.iter().enumerate();
    let mut order: Vec<(usize, Waiting)> =
        all.flat_map(|(owner, pools)| pools.iter().map(move |pool| (owner, *pool))).collect();
    order.sort_by_key(|(owner, pool)| (pool.calls == Calls::Open, pool.last_used, *owner));
    let mut total: u64 = order.iter().map(|(_, pool)| pool.kib).sum();
    let mut kept = waiting.map(|pools| pools.iter().map(|pool| pool.kib).sum::<u64>());
    for (owner, pool) in order {
        if total <= budget_kib {
            break;
        }
        total -= pool.kib;
        kept[owner] -= pool.kib;
    }
    let free = budget_kib.saturating_sub(total);
    kept.map(|kept| kept + free)
}

/// The programs that are over the budget all by themselves.
#[must_use]
pub fn too_large(held: &[Held], budget_kib: u64) -> Vec<ProgramId> {
    let mut programs: Vec<ProgramId> = held.iter().map(|pool| pool.program).collect();
    programs.sort_unstable();
    programs.dedup();
    let of = |program| held.iter().filter(move |pool| pool.program == program);
    programs.retain(|program| of(*program).map(|pool| pool.kib).sum::<u64>() > budget_kib);
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(last_used: u64, kib: u64, calls: Calls) -> Waiting {
        Waiting { last_used: Time(last_used), kib, calls }
    }

    #[test]
    fn one_budget_is_kept_by_all_owners_together() {
        let script = [waiting(1, 40, Calls::None)];
        let handler = [waiting(2, 60, Calls::None)];
        // The script's pool goes; what is left of the budget either may take.
        assert_eq!(allowances([&script, &handler], 80), [20, 80]);
        assert_eq!(allowances([&script, &handler], 100), [40, 60]);
        assert_eq!(allowances([&script, &handler], 130), [70, 90]);
        // What is in use goes last, whoever has it.
        let busy = [waiting(0, 40, Calls::Open), waiting(3, 10, Calls::None)];
        assert_eq!(allowances([&busy, &handler], 80), [80, 30]);
        assert_eq!(allowances([&busy, &handler], 45), [45, 5]);
        assert_eq!(allowances([&busy, &handler], 0), [0, 0]);
    }

    fn held(pool: u64, program: u64, last_used: u64, kib: u64, calls: Calls) -> Held {
        Held {
            pool: PoolId(pool),
            program: ProgramId(program),
            last_used: Time(last_used),
            kib,
            calls,
        }
    }

    fn check(pools: &[Held], budget: u64, expected: &[u64]) {
        let got: Vec<u64> = evictions(pools, budget).iter().map(|pool| pool.0).collect();
        assert_eq!(got, expected, "{pools:?} within {budget}");
    }

    #[test]
    fn the_least_recently_used_goes_first_and_no_more_than_needed() {
        let pools = [
            held(1, 1, 30, 100, Calls::None),
            held(2, 2, 10, 100, Calls::None),
            held(3, 3, 20, 100, Calls::None),
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
            held(1, 1, 1, 100, Calls::Open),
            held(2, 2, 2, 0, Calls::None),
            held(3, 3, 3, 100, Calls::None),
        ];
        check(&pools, 150, &[3]);
        check(&pools, 50, &[3, 1]);
    }

    #[test]
    fn a_program_is_too_large_by_the_sum_of_its_pools() {
        let pools = [
            held(1, 1, 1, 60, Calls::None),
            held(2, 1, 2, 41, Calls::Open),
            held(3, 2, 3, 100, Calls::None),
        ];
        assert_eq!(too_large(&pools, 100), [ProgramId(1)]);
        assert_eq!(too_large(&pools, 101), []);
    }
}
