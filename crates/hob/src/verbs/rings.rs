//! Where the rings of this user's processes are.

use std::path::PathBuf;

use hob_daemon::recorder::spans::Rings;
use hob_os::start::Start;

use crate::connect;

/// The folder of sites in the daemon's directory.
const SITES: &str = "serve";

/// Copies all rings.
pub(super) fn read(start: &Start) -> Rings {
    Rings::read(&directories(start))
}

/// The daemon's directory, and those of sites.
fn directories(start: &Start) -> Vec<PathBuf> {
    let base = connect::directory(start);
    let sites = std::fs::read_dir(base.join(SITES)).into_iter().flatten().flatten();
    let sites: Vec<_> = sites.map(|site| site.path()).collect();
    std::iter::once(base).chain(sites).collect()
}
