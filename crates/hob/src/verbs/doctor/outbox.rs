//! Who has the user's outbox: its one owner is the user's daemon. Nothing is said where nothing was
//! ever told.

use std::path::Path;

use hob_daemon::outbox;
use hob_os::start::Start;

use super::{Finding, fault, fine, hosts, warning};
use crate::fallback;

const CHECK: &str = "outbox";

pub(super) fn look(start: &Start) -> Option<Finding> {
    let state_dir = fallback::state_dir()?;
    outbox::place(&state_dir).symlink_metadata().ok()?;
    let status = hosts::status(start);
    let daemon = status.as_ref().map(|status| status.pid);
    let why = status.and_then(|status| status.messages.outbox_why);
    Some(told(&state_dir, daemon, why))
}

fn told(state_dir: &Path, daemon: Option<u32>, why: Option<String>) -> Finding {
    match (outbox::owner(state_dir), daemon) {
        (Some(owner), Some(daemon)) if owner == daemon => {
            fine(CHECK, format!("its owner is the daemon, process {owner}"))
        }
        (Some(owner), Some(_)) => {
            let text = format!("its owner is process {owner} ({}), not the daemon", name(owner));
            fault(CHECK, format!("{text}: tells wait, and are refused"), format!("kill {owner}"))
        }
        (Some(owner), None) => {
            let text = format!("its owner is process {owner} ({})", name(owner));
            warning(CHECK, format!("{text}, and no daemon runs"), format!("kill {owner}"))
        }
        (None, Some(_)) => match why {
            Some(why) => fault(CHECK, format!("tells are refused: {why}"), "hob restart"),
            None => fine(CHECK, "its owner is not known here; the daemon uses it"),
        },
        (None, None) => fine(CHECK, "nobody has it; a daemon that starts delivers what it holds"),
    }
}

/// What a process was started as.
fn name(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned()
}
