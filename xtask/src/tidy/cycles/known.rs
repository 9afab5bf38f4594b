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

pub(super) const KNOWN: &[Known] = &[
    Known {
        home: "crates/hob",
        folder: "",
        modules: &["client.rs", "cold.rs", "show", "verbs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob",
        folder: "show",
        modules: &["table.rs", "waterfall.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob",
        folder: "verbs/hooks",
        modules: &["dry.rs", "foreach.rs", "run.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob",
        folder: "verbs/hooks",
        modules: &["resume.rs", "tally.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob",
        folder: "verbs/verify",
        modules: &["input.rs", "runs.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob",
        folder: "verbs/verify",
        modules: &["kept.rs", "session.rs", "worlds"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-actor",
        folder: "",
        modules: &["api", "link", "memory", "remote.rs", "runtime", "shard", "supervision.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-actor",
        folder: "",
        modules: &["peers.rs", "system.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-actor",
        folder: "api",
        modules: &["actor.rs", "address.rs", "context.rs", "reply.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-actor",
        folder: "link",
        modules: &["commands.rs", "names.rs", "open", "run.rs", "table.rs", "wire.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-actor",
        folder: "runtime",
        modules: &["mailbox.rs", "pool.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-actor",
        folder: "shard",
        modules: &["deliver.rs", "lives.rs", "records.rs", "state.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-core",
        folder: "",
        modules: &["event.rs", "pool", "requests"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-daemon",
        folder: "",
        modules: &["calls", "ctx.rs", "workers"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-daemon",
        folder: "",
        modules: &["fronts", "inputs.rs", "sets"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-daemon",
        folder: "freshness",
        modules: &["fingerprint.rs", "listing.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-daemon",
        folder: "fronts",
        modules: &["hooks.rs", "local.rs", "message.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-daemon",
        folder: "messages",
        modules: &["dead.rs", "tells.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-daemon",
        folder: "outbox",
        modules: &["handle.rs", "requests.rs", "writer.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-entryfork",
        folder: "zygote",
        modules: &["code.rs", "image.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-resolve",
        folder: "",
        modules: &["direct.rs", "interpreter.rs", "walk.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-runtimes",
        folder: "",
        modules: &["exec.rs", "native.rs", "program.rs", "python", "ruby.rs", "table.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "crates/hob-wire",
        folder: "",
        modules: &["codec.rs", "exit.rs", "frame.rs", "frames", "schema.rs"],
        reason: "older than the rule",
    },
    Known {
        home: "tests",
        folder: "",
        modules: &["leftovers.rs", "run.rs"],
        reason: "older than the rule",
    },
];
