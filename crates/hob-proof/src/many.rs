//! Pairs of many cells at once: how all of them compare, and which differ by themselves.

use super::looks::PAIRS_MIN;
use super::normal::deviations;
use super::score::{Estimate, estimate};

/// How often series of cells that are all the same may have one that is called different, and how
/// often all of them together may be.
const LEVEL: f64 = 0.05;

/// What pairs of many cells say.
#[derive(Debug, Clone, PartialEq)]
pub struct Many {
    /// All cells together: how B's times lie to A's in the middle of all pairs. `None` for too few.
    pub all: Option<Estimate>,
    /// By cell; `None` for one with too few pairs. The intervals are so wide that all of them
    /// together are wrong in 5 of 100.
    pub cells: Vec<Option<Estimate>>,
}

/// Estimates from the differences `ln(B/A)` of each cell's pairs, each in a random order.
#[must_use]
pub fn many(cells: &[Vec<f64>]) -> Many {
    let is_enough = |pairs: &&Vec<f64>| pairs.len() >= PAIRS_MIN;
    let count = cells.iter().filter(is_enough).count();
    let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    let z = deviations(LEVEL / 2.0 / f64::from(count));
    let together: Vec<f64> = cells.iter().filter(is_enough).flatten().copied().collect();
    Many {
        all: estimate(&together, deviations(LEVEL / 2.0)),
        cells: cells
            .iter()
            .map(|pairs| estimate(pairs, z).filter(|_| pairs.len() >= PAIRS_MIN))
            .collect(),
    }
}

/// Whether an estimate leaves out that both are the same.
#[must_use]
pub fn differs(estimate: &Estimate) -> bool {
    estimate.low > 0.0 || estimate.high < 0.0
}
