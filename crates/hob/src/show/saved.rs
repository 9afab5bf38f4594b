//! What a warm call saved.

use hob_core::receipt::Receipt;

/// What a warm call saved against the newest cold run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saved {
    /// It was faster by so many microseconds.
    Gain(u64),
    /// It was slower.
    Loss(u64),
}

/// Only a program that ended by itself did what the cold run did; one that was killed after a
/// moment saved nothing.
pub(super) fn saved(receipt: &Receipt) -> Option<Saved> {
    let comparable = receipt.warm && receipt.outcome.code.is_some();
    let cold_us = receipt.cold_us.filter(|_| comparable)?;
    let difference = cold_us.abs_diff(receipt.total_us);
    Some(if cold_us >= receipt.total_us {
        Saved::Gain(difference)
    } else {
        Saved::Loss(difference)
    })
}
