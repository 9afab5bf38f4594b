//! What a warm call saved, as its receipt has it.

use hob_core::receipt::Receipt;

/// What a warm call saved of its start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saved {
    /// At least so many microseconds.
    Gain(u64),
    /// It took so much longer than every cold run of the same arguments.
    Loss(u64),
}

/// What is sure: a call of other arguments than the cold runs' has only an upper end.
pub(super) fn saved(receipt: &Receipt) -> Option<Saved> {
    let gain = receipt.gain.filter(|gain| gain.cold_runs > 0)?;
    Some(if gain.lost_us > 0 { Saved::Loss(gain.lost_us) } else { Saved::Gain(gain.saved_us) })
}
