//! Where the rings of this user's processes are, and the recordings that were made of them.

use std::path::{Path, PathBuf};

use hob_daemon::recorder::recording::Recording;
use hob_daemon::recorder::spans::Rings;
use hob_os::start::Start;

use crate::connect;
use crate::failure::Failure;

/// The folder of sites in the daemon's directory.
const SITES: &str = "serve";
/// The folder of recordings in the state directory.
pub(super) const RECORDINGS: &str = "recordings";
/// What their files end in.
pub(super) const ENDING: &str = ".recording";
/// The largest file that is read as a recording.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// Copies all rings.
pub(super) fn read(start: &Start) -> Rings {
    Rings::read(&directories(start))
}

/// The daemon's directory, and those of sites.
pub(super) fn directories(start: &Start) -> Vec<PathBuf> {
    let base = connect::directory(start);
    let sites = std::fs::read_dir(base.join(SITES)).into_iter().flatten().flatten();
    let sites: Vec<_> = sites.map(|site| site.path()).collect();
    std::iter::once(base).chain(sites).collect()
}

/// Where the recording of this name is kept.
pub(super) fn kept(state_dir: &Path, name: &str) -> PathBuf {
    state_dir.join(RECORDINGS).join(format!("{name}{ENDING}"))
}

/// The recording in a file.
pub(super) fn recording(file: &Path) -> Result<Recording, Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(format!("cannot read the recording {}: {why}", file.display()))
    };
    let meta = std::fs::metadata(file).map_err(|error| failed(&error))?;
    if !meta.is_file() {
        return Err(failed(&"it is not a file"));
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(failed(&"it is larger than 2 GiB"));
    }
    let bytes = std::fs::read(file).map_err(|error| failed(&error))?;
    Recording::decode(&bytes).map_err(|why| failed(&why))
}

/// What is to be said of notes that a recording has not.
pub(super) fn gone(recording: &Recording) -> Option<String> {
    let (lost, dropped) = recording.gone();
    (lost + dropped > 0).then(|| {
        format!(
            "of this recording {lost} notes were overwritten before they were copied, and \
             {dropped} dropped to stay within its bound"
        )
    })
}
