//! The caller's world as it goes on the wire, beside argv, environment and descriptors.
//!
//! Reads only this process's own; what cannot be read is sent as what no worker has, or as 0.

use hob_os::process::{self, Status, limits};
use hob_os::surroundings::priority;
use hob_wire::call::{Priority, Streams, Terminal, World};

/// What a worker takes on.
pub(crate) fn world(status: &Status) -> World {
    let priority::Priority { nice, io, policy, slack_ns } = priority::own();
    World {
        umask: status.umask,
        ignored: status.ignored,
        blocked: status.blocked,
        limits: limits::own(),
        // The daemon reads the last one meanwhile.
        priority: Priority { nice, io, policy, slack_ns, oom: 0 },
    }
}

/// What the standard streams of this process are.
pub(crate) fn streams() -> Streams {
    if process::stdio().iter().any(rustix::termios::isatty) {
        Streams::Terminal
    } else {
        Streams::Plain
    }
}

/// The terminal that controls this process, as a call says it.
pub(crate) fn terminal() -> Terminal {
    process::terminal().map_or(Terminal::default(), |(session, group)| Terminal {
        session: if session == 0 { Terminal::OUTSIDE } else { session },
        group,
    })
}
