//! The daemon: its socket's directory, whether it answers, whether it is this build, and whether
//! a worker of its could take on what this shell is.

use std::path::Path;

use hob_core::status::Status;
use hob_os::process::limits;
use hob_os::start::Start;
use hob_os::surroundings::priority;
use hob_os::{build_id, dir, process, uds};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::{Finding, fault, fine, sandbox, warning};
use crate::connect::{self, Trouble};
use crate::say;
use crate::verbs::request;

/// How long the daemon may take to answer. A call waits fifty milliseconds.
const ANSWER_MS: u64 = 2_000;
/// Hex digits of a build that tell it from another.
const BUILD_SHOWN: usize = 12;

pub(super) fn look(start: &Start) -> Vec<Finding> {
    let directory = connect::directory(start);
    let mut findings: Vec<Finding> = self::directory(&directory).into_iter().collect();
    match connect::connect(&directory) {
        Ok(socket) => findings.extend(running(start, &socket)),
        Err(trouble) => findings.extend(silent(start, trouble)),
    }
    findings
}

fn directory(directory: &Path) -> Option<Finding> {
    const CHECK: &str = "directory";
    let shown = directory.display();
    let quoted = quoted(directory);
    Some(match dir::check(directory) {
        // The environment's own finding.
        Err(dir::Unsafe::Relative | dir::Unsafe::TooLong(_)) => return None,
        Ok(()) => match dir::try_to_write(directory) {
            Ok(()) => fine(CHECK, format!("{shown}: private and ours")),
            Err(error) => not_written(directory, error),
        },
        Err(dir::Unsafe::Missing) => match dir::could_be_made(directory) {
            Ok(()) => fine(CHECK, format!("{shown}: made by the first `hob run`, 0700")),
            Err(error) => not_written(directory, error),
        },
        Err(why @ dir::Unsafe::Open) => {
            fault(CHECK, format!("{shown}: {why}"), format!("chmod 700 {quoted}"))
        }
        Err(why @ (dir::Unsafe::NotADirectory | dir::Unsafe::Foreign)) => fault(
            CHECK,
            format!("{shown}: {why}; nothing is sent there"),
            format!("find out who made it, then: rm -r {quoted} (or set HOB_DIR)"),
        ),
        Err(why @ dir::Unsafe::Unreadable(_)) => fault(
            CHECK,
            format!("{shown}: {why}"),
            "make its parents accessible, or set HOB_DIR to a private directory",
        ),
    })
}

/// No daemon can begin there, and one that runs learns nothing.
fn not_written(directory: &Path, error: Errno) -> Finding {
    let (why, fix) = match error {
        Errno::NOSPC | Errno::DQUOT => ("there is no room", "make room on"),
        Errno::ROFS => ("the file system is read-only", "mount for writing"),
        _ => ("the system refuses it", "let yourself write in"),
    };
    let (shown, quoted) = (directory.display(), quoted(directory));
    fault(
        "directory",
        format!("{shown}: nothing can be written there: {why} ({error}); calls run cold"),
        format!("{fix} what holds {quoted}, or set HOB_DIR to a directory elsewhere"),
    )
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let words = say::command([path.as_os_str().as_encoded_bytes()]);
    String::from_utf8_lossy(&words).into_owned()
}

/// No connection. What the directory's own finding says is not said again.
fn silent(start: &Start, trouble: Trouble) -> Option<Finding> {
    const CHECK: &str = "daemon";
    match trouble {
        Trouble::UnsafeDir(_) => None,
        Trouble::Sandbox => Some(sandbox::found(start)),
        Trouble::NoDaemon => Some(fine(CHECK, "none runs; the first `hob run` starts one")),
        Trouble::PeerUid => Some(fault(
            CHECK,
            "the socket belongs to another user: nothing is sent there",
            "find out who made it, or set HOB_DIR to a private directory",
        )),
        Trouble::ConnectTimeout
        | Trouble::NoAnswer
        | Trouble::OtherBuild
        | Trouble::Descriptors
        | Trouble::Traced
        | Trouble::SystemRefuses
        | Trouble::TooLarge
        | Trouble::DaemonClosed
        | Trouble::Protocol => {
            Some(fault(CHECK, "it takes no connections: every call runs cold", "hob restart"))
        }
    }
}

fn running(start: &Start, socket: &OwnedFd) -> Vec<Finding> {
    const CHECK: &str = "daemon";
    let pid = uds::peer_pid(socket).unwrap_or(0);
    let status = match request::ask_within(start, "status", ANSWER_MS) {
        Ok((answer, _)) => serde_json::from_value::<Status>(answer),
        Err(_) => return vec![mute(pid)],
    };
    let Ok(status) = status else {
        return vec![warning(
            CHECK,
            format!("process {pid} is of a build that says what this one does not understand"),
            "hob restart",
        )];
    };
    let own: String = build_id::own().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut findings = Vec::new();
    if status.build == own {
        let build = own.get(..BUILD_SHOWN).unwrap_or(&own);
        let text = format!("hob {} (build {build}), process {pid}, answers", status.version);
        findings.push(fine(CHECK, text));
    } else {
        findings.push(warning(
            CHECK,
            format!(
                "process {pid} is hob {} of another build; the next call runs cold and replaces it",
                status.version
            ),
            "hob restart",
        ));
    }
    // By the number that it has here: what it says is that of its own namespace.
    if pid == 0 {
        findings.push(elsewhere());
    } else {
        findings.extend([context(pid), hard_limits(pid), rank(pid), bounds(pid)]);
    }
    findings.extend(receipts(&status));
    findings.extend(programs(&status));
    findings
}

/// It is where this process sees no process of it.
fn elsewhere() -> Finding {
    fault(
        "context",
        "the daemon is in another pid namespace, as one outside of a sandbox is: every call from \
         here runs cold",
        "set HOB_DIR to another directory here, so that a daemon begins here",
    )
}

/// It takes connections and says nothing.
fn mute(pid: u32) -> Finding {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let end = stat.iter().rposition(|byte| *byte == b')').unwrap_or(0);
    if matches!(stat.get(end + 2), Some(b'T' | b't')) {
        let text = format!("process {pid} is stopped: every call runs cold");
        return fault("daemon", text, format!("kill -CONT {pid}"));
    }
    let text = format!("process {pid} does not answer: every call runs cold");
    fault("daemon", text, format!("kill {pid}; hob start"))
}

/// What a worker cannot take on afterwards must be the daemon's own.
fn context(pid: u32) -> Finding {
    const CHECK: &str = "context";
    let theirs = process::status_of(pid).map(|status| status.context);
    let ours = process::own_status().map(|status| status.context);
    let (Ok(theirs), Ok(ours)) = (theirs, ours) else {
        let text = "users, groups and confinement cannot be compared with the daemon's";
        return warning(CHECK, text, "hob restart");
    };
    let lines = |context: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(context).lines().map(str::to_owned).collect()
    };
    let (theirs, ours) = (lines(&theirs), lines(&ours));
    let differ: Vec<String> = ours
        .iter()
        .filter(|line| !theirs.contains(line))
        .map(|line| line.split(':').next().unwrap_or(line).to_owned())
        .collect();
    if differ.is_empty() {
        return fine(CHECK, "users, groups and confinement are the daemon's");
    }
    let text = format!("not the daemon's: {}; every call from here runs cold", differ.join(", "));
    fault(CHECK, text, "hob restart")
}

/// A hard limit above the daemon's cannot be given to a worker.
fn hard_limits(pid: u32) -> Finding {
    const CHECK: &str = "limits";
    let Some(theirs) = limits::of(pid) else {
        return warning(CHECK, "they cannot be compared with the daemon's", "hob restart");
    };
    let above: Vec<&str> = limits::NAMES
        .iter()
        .zip(limits::own().iter().zip(&theirs))
        .filter(|(_, ((_, ours), (_, theirs)))| ours > theirs)
        .map(|(name, _)| *name)
        .collect();
    if above.is_empty() {
        return fine(CHECK, "no hard limit is above the daemon's");
    }
    let text = format!(
        "the hard limit of {} is above the daemon's: every call from here runs cold",
        above.join(", ")
    );
    fault(CHECK, text, "hob restart")
}

/// A worker is ranked as its daemon is, or below.
fn rank(pid: u32) -> Finding {
    const CHECK: &str = "priority";
    let (theirs, ours) = (priority::of(pid), priority::own());
    let (their_oom, our_oom) =
        (priority::oom_score_adj(pid), priority::oom_score_adj(std::process::id()));
    let mut above = Vec::new();
    if ours.nice < theirs.nice {
        above.push(format!("nice {} here, {} there", ours.nice, theirs.nice));
    }
    if our_oom < their_oom {
        above.push(format!("oom_score_adj {our_oom} here, {their_oom} there"));
    }
    if ours.policy != theirs.policy && theirs.policy != 0 {
        above.push(format!("scheduling policy {} here, {} there", ours.policy, theirs.policy));
    }
    if above.is_empty() {
        return fine(CHECK, "this shell is not ranked above the daemon");
    }
    let text = format!(
        "the daemon is ranked below this shell ({}): calls from here run cold",
        above.join("; ")
    );
    fault(CHECK, text, "hob restart")
}

/// A worker is in its daemon's control group.
fn bounds(pid: u32) -> Finding {
    const CHECK: &str = "cgroup";
    if hob_daemon::are_bounded_alike(std::process::id(), pid) {
        return fine(CHECK, "no limit of a control group is here alone, or the daemon's alone");
    }
    let text =
        "a control group's limit is here alone, or the daemon's alone: calls from here run cold";
    fault(CHECK, text, "hob restart")
}

fn receipts(status: &Status) -> Option<Finding> {
    let reason = status.recorder.off_reason.as_ref()?;
    let text = format!("the daemon keeps none: {reason}");
    let code = reason.split(':').next().unwrap_or_default();
    let fix = match code {
        "no-state-dir" => "set HOME or XDG_STATE_HOME to an absolute path",
        "state-dir-not-a-directory" => "move what is in its place aside",
        "state-dir-foreign" => "set XDG_STATE_HOME to a directory of yours",
        "write-failed" => "free some space there, or set XDG_STATE_HOME",
        _ => "let yourself write there, or set XDG_STATE_HOME",
    };
    Some(fault("receipts", text, format!("{fix}, then hob restart")))
}

/// Programs that could not be kept warm, or not as well as asked for.
fn programs(status: &Status) -> Vec<Finding> {
    let troubled = status.pools.iter().filter_map(|pool| Some((pool, pool.why.as_ref()?)));
    troubled
        .map(|(pool, why)| {
            warning(
                "programs",
                format!("{} is {} ({}): {why}", pool.program, pool.state, pool.isolation),
                "mend what the reason names; `hob status` shows it for all programs",
            )
        })
        .collect()
}
