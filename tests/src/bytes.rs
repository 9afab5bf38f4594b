//! Looks into bytes that need not be text.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Whether the bytes contain these.
#[must_use]
pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len().max(1)).any(|window| window == part)
}

/// The first region of a process's memory that holds the bytes.
#[must_use]
pub fn in_memory(pid: u32, wanted: &[u8]) -> Option<String> {
    let maps =
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/maps")).ok()?).into_owned();
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        // A file's unchanged pages hold what the file holds.
        if !rights.starts_with("rw") {
            return None;
        }
        let (from, to) = range.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let mut bytes = vec![0; usize::try_from(to - from).ok()?];
        memory.read_exact_at(&mut bytes, from).ok()?;
        contains_fast(&bytes, wanted).then(|| line.to_owned())
    })
}

/// As `contains`, for megabytes: most places are passed by at the first byte.
fn contains_fast(bytes: &[u8], wanted: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == wanted[0]) {
        if rest[at..].starts_with(wanted) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}
