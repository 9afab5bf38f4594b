//! A sandbox that refuses Unix sockets: whose it is, and the line that allows them there.
//!
//! Deliberately not here: what else a sandbox changes. With sockets allowed a caller in namespaces of
//! its own still differs from a daemon outside (`context`).

use hob_os::start::Start;

use super::{Finding, fault};

/// A sandbox that tells of itself by a variable, and its line.
const KNOWN: [(&[u8], &str); 2] = [
    (
        b"CODEX_SANDBOX_NETWORK_DISABLED",
        "in Codex' config.toml, which allows all of the network: \
         [sandbox_workspace_write] network_access = true",
    ),
    (
        b"CLAUDECODE",
        "in Claude Code's settings.json: \
         \"sandbox\": {\"network\": {\"allowAllUnixSockets\": true}}",
    ),
];
const OTHERS: &str = "allow AF_UNIX in the filter around it; of a container: \
                      docker run --security-opt seccomp=PROFILE";

/// The finding where no socket can be made, or connected.
pub(super) fn found(start: &Start) -> Finding {
    let known = KNOWN.iter().find(|(name, _)| start.variable(name).is_some());
    fault(
        "sandbox",
        "Unix sockets are refused here: every call runs cold, at once and in place",
        known.map_or(OTHERS, |(_, line)| *line),
    )
}
