//! When a worker has performed its last request.
//!
//! The recipe decides, then memory. A `prefork` worker's number of uses is lowered by some jitter,
//! so that workers that were made together are not replaced together. The jitter follows from the
//! worker's number: a run can be repeated exactly.

use crate::ids::WorkerId;
use crate::isolation::{Recipe, Uses};

/// The jitter is less than one part in so many of the uses.
const JITTER: u32 = 8;

/// How many more requests a worker is good for that was given `used`.
#[must_use]
pub fn uses_left(recipe: Recipe, worker: WorkerId, used: u32, memory: Memory) -> u32 {
    let uses = match recipe.uses {
        _ if memory == Memory::Over => return 0,
        Uses::Once => 1,
        Uses::Times(times) => uses_of(worker, times),
        Uses::Unlimited => return u32::MAX,
    };
    uses.saturating_sub(used)
}

/// How a worker's memory compares with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// It may go on.
    Within,
    /// It has grown too large.
    Over,
}

/// How many calls this worker performs, of at most `times`; at least one.
fn uses_of(worker: WorkerId, times: u32) -> u32 {
    let spread = u64::from(times / JITTER);
    if spread == 0 {
        return times.max(1);
    }
    // Fibonacci hashing: neighbouring numbers land far apart.
    let mixed = worker.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let jitter = u32::try_from(mixed % spread).expect("the spread is a part of a u32");
    times - jitter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::Name;

    fn uses(name: Name, worker: u64, memory: Memory) -> Option<u32> {
        let recipe = name.lower(1);
        (1..1000).find(|used| uses_left(recipe, WorkerId(worker), *used, memory) == 0)
    }

    #[test]
    fn a_copy_and_a_standby_are_used_once() {
        for name in [Name::Spawn, Name::Standby, Name::Fork] {
            assert_eq!(uses(name, 3, Memory::Within), Some(1));
        }
    }

    #[test]
    fn a_session_ends_only_by_its_memory() {
        assert_eq!(uses(Name::Session, 3, Memory::Within), None);
        assert_eq!(uses(Name::Session, 3, Memory::Over), Some(1));
    }

    #[test]
    fn preforked_workers_end_one_after_another() {
        let ends: Vec<u32> =
            (0..100).filter_map(|worker| uses(Name::Prefork, worker, Memory::Within)).collect();
        assert_eq!(ends.len(), 100);
        assert!(ends.iter().all(|used| (225..=256).contains(used)), "{ends:?}");
        let mut different = ends.clone();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 20, "{different:?}");
        assert_eq!(uses(Name::Prefork, 3, Memory::Over), Some(1));
    }

    #[test]
    fn few_uses_have_no_jitter_and_none_means_one() {
        for (times, expected) in [(0, 1), (1, 1), (7, 7)] {
            assert!((0..50).all(|worker| uses_of(WorkerId(worker), times) == expected));
        }
    }
}
