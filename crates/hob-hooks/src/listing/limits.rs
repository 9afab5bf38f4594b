//! The table of limits of time beside a hooks directory: where it lies, and what is in it.
//!
//! It is read when a set begins, as the directory is, so that every front has it. What is wrong with
//! it ends the set before its first hook: a limit that is silently not there would be noticed too
//! late.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_core::hooks::{Bytes, LIMITS_SUFFIX, TimeLimits};
use hob_os::look::{self, Seen};
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use crate::durations;

use super::Place;

/// More than this is no table that anybody wrote.
const BYTES_MAX: u64 = 1 << 20;

/// The limits of a directory's hooks; none where it has no table. An error is a line for people.
pub fn limits_of(place: Place<'_>, dir: &[u8]) -> Result<TimeLimits, String> {
    let Some(path) = table_of(place, dir) else { return Ok(TimeLimits::default()) };
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", Bytes(path.clone()).text());
    let file = match look::at(place.fd(), path.as_slice()) {
        Ok(Seen::File(file, _)) => file,
        Ok(Seen::Other(_)) => return Err(wrong(&"the table of limits is no regular file")),
        Err(Errno::NOENT) => return Ok(TimeLimits::default()),
        Err(error) => return Err(wrong(&std::io::Error::from(error))),
    };
    let mut text = Vec::new();
    let read = File::from(file).take(BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| wrong(&error))?;
    if text.len() as u64 > BYTES_MAX {
        return Err(wrong(&"the table of limits is longer than 1 MiB"));
    }
    TimeLimits::parse(&text, durations::parse).map_err(|why| wrong(&why))
}

/// The table's path: the directory's, without a slash at its end, and the suffix.
fn table_of(place: Place<'_>, dir: &[u8]) -> Option<Vec<u8>> {
    let path = Path::new(std::ffi::OsStr::from_bytes(dir));
    let mut name = if path.file_name().is_some() && !dir.ends_with(b"/.") {
        let end = dir.iter().rposition(|byte| *byte != b'/')?;
        dir[..=end].to_vec()
    } else {
        // `.` and `..` have no name of their own.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(place.fd(), dir, flags, Mode::empty()).ok()?;
        let number = rustix::fd::AsRawFd::as_raw_fd(&folder.as_fd());
        let link = format!("/proc/self/fd/{number}");
        readlinkat(rustix::fs::CWD, link, Vec::new()).ok()?.into_bytes()
    };
    name.extend_from_slice(LIMITS_SUFFIX);
    Some(name)
}
