//! Where the access logs of sites are kept, one for each directory that was served.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::fallback;

/// The folder of access logs in the state directory.
const FOLDER: &str = "access";
/// When one is longer, it becomes the older one, of which there is one.
const BYTES_MAX: u64 = 16 << 20;
/// Logs of so many sites are kept: those that were written last.
const SITES_MAX: usize = 32;
const BASE_BYTES_MAX: usize = 64;

/// The folder of access logs, if there is a place for it.
pub(crate) fn folder() -> Option<PathBuf> {
    Some(fallback::state_dir()?.join(FOLDER))
}

/// The log of the site at this directory.
pub(crate) fn of_site(folder: &Path, root: &Path) -> PathBuf {
    let digest = Sha256::digest(root.as_os_str().as_bytes());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let base = root.file_name().map_or(&b"root"[..], OsStrExt::as_bytes);
    let base: String = base
        .iter()
        .take(BASE_BYTES_MAX)
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(*byte) } else { '_' })
        .collect();
    folder.join(format!("{base}-{digest}.ndjson"))
}

/// Makes the place of the log of the site at `root`. A log of the user's own is linked there.
///
/// # Errors
/// In words, if there is no such place.
pub(super) fn place(root: &Path, own: Option<&Path>) -> Result<hob_http::LogFile, String> {
    let kept = folder().ok_or_else(|| "neither XDG_STATE_HOME nor HOME is set".to_owned());
    let kept = kept.and_then(|folder| {
        let state = folder.parent().unwrap_or(&folder);
        for each in [state, &folder] {
            hob_os::dir::create(each).map_err(|why| format!("{}: {why}", each.display()))?;
        }
        prune(&folder);
        let path = of_site(&folder, root);
        let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let link = |own: &Path| {
            let _ = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(own, &path)
        };
        let made = match own {
            Some(own) => link(own),
            None if is_link => std::fs::remove_file(&path),
            None => Ok(()),
        };
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    });
    match own {
        // It is written, though `hob log` will not find it.
        Some(own) => Ok(hob_http::LogFile { path: own.to_path_buf(), bytes_max: None }),
        None => Ok(hob_http::LogFile { path: kept?, bytes_max: Some(BYTES_MAX) }),
    }
}

/// Removes logs of sites that were not served for long.
fn prune(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut logs: Vec<_> = entries
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "ndjson"))
        .filter_map(|entry| {
            Some((entry.path().symlink_metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    logs.sort();
    let many = logs.len().saturating_sub(SITES_MAX);
    for (_, log) in logs.into_iter().take(many) {
        let _ = std::fs::remove_file(hob_http::LogFile::older(&log));
        let _ = std::fs::remove_file(log);
    }
}
