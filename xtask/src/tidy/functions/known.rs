//! What is left of both rules. This table may only shrink: a count that is too high is a fault.

/// One crate.
#[derive(Debug)]
pub(super) struct Left {
    /// The crate's folder.
    pub(super) place: &'static str,
    /// Parameters that are tuples.
    pub(super) tuples: usize,
    /// Functions named as a question that act, or answer with no `bool`.
    pub(super) names: usize,
}

/// In the order of the crates.
pub(super) const LEFT: &[Left] = &[
    Left { place: "crates/hob", tuples: 44, names: 2 },
    Left { place: "crates/hob-check", tuples: 3, names: 0 },
    Left { place: "crates/hob-client", tuples: 3, names: 2 },
    Left { place: "crates/hob-core", tuples: 6, names: 8 },
    Left { place: "crates/hob-daemon", tuples: 2, names: 3 },
];
