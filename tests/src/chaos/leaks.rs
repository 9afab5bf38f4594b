//! What is left behind between rounds and at their end: processes that nobody will end, open
//! descriptors, named sockets, files.

use std::time::Duration;

use super::Report;
use crate::run::End;
use crate::{World, leftovers, wait};

/// How long hob may take to come to rest.
pub(super) const REST: Duration = Duration::from_secs(12);
/// Descriptors of a daemon at rest, other than two for each process of its own.
const DESCRIPTORS_MAX: usize = 64;
/// What may lie in the directory while a daemon lives, beside the runtimes' files.
const NAMES: [&str; 5] = ["socket", "lock", "log", "daemon.log", "daemon.log.1"];

/// The folders of a world.
const FOLDERS: [&str; 5] = ["home", "state", "work", "run", "effects"];

/// Looks while the daemon, if there is one, stays.
pub(super) fn look(world: &World, report: &mut Report) {
    let looked = wait::look(REST, || strays(world).is_empty().then_some(()));
    if looked.is_none() {
        report.leaks += 1;
        let strays = strays(world);
        report.tell(format!("leak, round {}: processes {strays:?}", report.rounds));
    }
    let Some(daemon) = world.daemon_if_any() else { return };
    let held = || {
        let own = leftovers::processes(&world.path("")).len();
        let open = leftovers::descriptors(daemon);
        (open > DESCRIPTORS_MAX + 2 * own).then_some(open)
    };
    if wait::look(REST, || held().is_none().then_some(())).is_none() {
        report.leaks += 1;
        let open = held().unwrap_or(0);
        report.tell(format!("leak, round {}: the daemon holds {open}", report.rounds));
    }
    let odd: Vec<_> = leftovers::files(&world.hob_dir())
        .into_iter()
        .filter(|path| !path.file_name().is_some_and(|name| is_known(&name.to_string_lossy())))
        .collect();
    if !odd.is_empty() {
        report.leaks += 1;
        report.tell(format!("leak, round {}: files {odd:?}", report.rounds));
    }
}

/// Stops hob, and looks for anything at all.
pub(super) fn end(world: &World, report: &mut Report) {
    // What a killed daemon left is removed by the next one.
    let _ = world.hob(&["start"]).go();
    let stopped = world.hob(&["stop"]).go();
    let mut leak = |what: &str, found: String| {
        report.leaks += 1;
        report.tell(format!("leak at the end: {what}: {found}"));
    };
    if stopped.end != End::Code(0) {
        leak("hob stop", format!("{stopped:?}"));
    }
    let all = || leftovers::processes(&world.path(""));
    if wait::look(REST, || all().is_empty().then_some(())).is_none() {
        leak("processes", format!("{:?}", all()));
    }
    let files = leftovers::files(&world.hob_dir());
    if !files.is_empty() {
        leak("files", format!("{files:?}"));
    }
    if leftovers::sockets(&world.path("")) > 0 {
        leak("sockets", "with names in its folder".to_owned());
    }
    // Nobody asked for a file anywhere else, so that none may be there.
    let home = leftovers::files(&world.path("home"));
    let beside = std::fs::read_dir(world.path("")).into_iter().flatten().flatten();
    let beside =
        beside.filter(|entry| !FOLDERS.contains(&entry.file_name().to_string_lossy().as_ref()));
    let strange: Vec<_> = home.into_iter().chain(beside.map(|entry| entry.path())).collect();
    if !strange.is_empty() {
        leak("strange files", format!("{strange:?}"));
    }
}

/// A learning run's notes lie there until they are read, or the daemon ends.
fn is_known(name: &str) -> bool {
    let sessions = hob_runtimes::with_sessions().flat_map(|row| row.files);
    let mut files = hob_runtimes::rows().flat_map(|row| row.files).chain(sessions);
    NAMES.contains(&name)
        || name.starts_with("notes-")
        || name.starts_with("ring-")
        || files.any(|(file, _)| file.split('/').any(|part| part == name))
}

/// Processes of this world that neither are the daemon nor descend from it.
fn strays(world: &World) -> Vec<(u32, String)> {
    let daemon = world.daemon_if_any();
    let descends = |pid: u32| {
        let mut at = Some(pid);
        while at.is_some() && at != daemon {
            at = at.and_then(leftovers::parent).filter(|parent| *parent > 1);
        }
        daemon.is_some() && at == daemon
    };
    let all = leftovers::processes(&world.path(""));
    all.into_iter().filter(|(pid, _)| !descends(*pid)).collect()
}
