//! The cycles that are left. This table may only shrink: one that is gone is a fault here.

use super::place;

/// One cycle.
#[derive(Debug)]
pub(super) struct Known {
    /// The crate's folder.
    pub(super) home: &'static str,
    /// From its `src/`.
    pub(super) folder: &'static str,
    /// The modules in it, in order.
    pub(super) modules: &'static [&'static str],
    /// Why it is left.
    pub(super) reason: &'static str,
}

impl Known {
    /// As a cycle is named that is found.
    pub(super) fn place(&self) -> String {
        place(self.home, self.folder, self.modules)
    }
}

/// In the order of the crates.
pub(super) const KNOWN: &[Known] = &[
    Known {
        home: "crates/hob-actor",
        folder: "",
        modules: &["api", "link", "memory", "remote.rs", "runtime", "shard", "supervision.rs"],
        reason: "a parcel holds messages of any actor, a shard runs actors, and what actors \
                 hold are addresses of shards",
    },
    Known {
        home: "crates/hob-actor",
        folder: "",
        modules: &["peers.rs", "system.rs"],
        reason: "a system keeps its peers, and peers are started for a system",
    },
    Known {
        home: "crates/hob-actor",
        folder: "api",
        modules: &["actor.rs", "address.rs", "context.rs", "reply.rs"],
        reason: "the traits name one another: an actor has a context, a context addresses, an \
                 address actors",
    },
    Known {
        home: "crates/hob-actor",
        folder: "link",
        modules: &["commands.rs", "names.rs", "open", "run.rs", "table.rs", "wire.rs"],
        reason: "addresses are encoded with the names that the link has given, and names are \
                 read by the same codec",
    },
];
