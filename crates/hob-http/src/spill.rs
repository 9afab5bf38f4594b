//! Files that keep what would be too much for memory.

use std::fs::File;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, Mode, OFlags};

/// A file without a name: among other temporary files, or in memory where these have no such.
pub(crate) fn nameless() -> std::io::Result<File> {
    let folder = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(&folder, flags, Mode::RUSR | Mode::WUSR)
        .or_else(|_| rustix::fs::memfd_create("hob-body", MemfdFlags::CLOEXEC))?;
    Ok(File::from(file))
}
