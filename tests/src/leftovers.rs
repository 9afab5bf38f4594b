//! What is left of a test: processes that know its folder, and files in its socket's directory.

use std::path::Path;

use crate::bytes::contains;

/// Every process other than this one whose environment, command line or working directory names
/// the folder, as `pid: command line`.
#[must_use]
pub fn processes(folder: &Path) -> Vec<(u32, String)> {
    let name = folder.as_os_str().as_encoded_bytes();
    let own = std::process::id();
    let mut found = Vec::new();
    for pid in all() {
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let (environment, command) = (read("environ"), read("cmdline"));
        let inside = std::fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|directory| directory.starts_with(folder));
        if pid != own && (inside || contains(&environment, name) || contains(&command, name)) {
            found.push((pid, String::from_utf8_lossy(&command).replace('\0', " ")));
        }
    }
    found
}

/// The process ids of all processes.
#[must_use]
pub fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes begun after this one that have one of these files as stdout or stderr.
#[must_use]
pub fn writers(files: [&std::fs::File; 2], after: u32) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let own = files.map(|file| file.metadata().map(|it| (it.dev(), it.ino())).ok());
    let has = |pid: u32, fd: u32| {
        let file = std::fs::metadata(format!("/proc/{pid}/fd/{fd}"));
        file.is_ok_and(|it| own.contains(&Some((it.dev(), it.ino()))))
    };
    let later = all().into_iter().filter(|pid| *pid > after);
    later.filter(|pid| has(*pid, 1) || has(*pid, 2)).collect()
}

/// The parent of a process.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&text[end + 1..]).ok()?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The unix sockets that are bound to names below a folder.
#[must_use]
pub fn sockets(folder: &Path) -> usize {
    let text = std::fs::read("/proc/net/unix").unwrap_or_default();
    let name = folder.as_os_str().as_encoded_bytes();
    text.split(|byte| *byte == b'\n').filter(|line| contains(line, name)).count()
}

/// Everything below a directory; nothing if it is not there.
#[must_use]
pub fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files(&entry.path()));
        }
    }
    found
}

/// How many descriptors a process has open.
#[must_use]
pub fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}
