//! The runs that are kept: `checks/` in the state directory, one file for each file of checks, base
//! and machine, one run a line, the oldest first.
//!
//! A line has names, states and times, and no address, answer or secret. Lines of a newer build and
//! those that are damaged are passed over and kept. The order is that of the lines, whatever the
//! clock says.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_daemon::recorder::{make_place, state_dir};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::counts::Counts;
use crate::plan::Plan;
use crate::run::Found;

/// The name of a line's format.
const SCHEMA: &str = "hob.check-run/1";
/// The directory of them.
const PLACE: &str = "checks";
/// Runs that are kept; the oldest go.
pub(crate) const RUNS_MAX: usize = 20;
/// A larger run is not kept.
pub(crate) const CELLS_MAX: usize = 20_000;
/// Times of a cell that are kept.
const TIMES_MAX: usize = 30;
/// A larger file is none of ours.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Files; the one that was not written for the longest time goes.
const FILES_MAX: usize = 256;

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    schema: String,
    /// From 1.
    pub number: u64,
    /// When it began, by the wall clock: RFC 3339, UTC.
    pub at: String,
    pub(crate) jobs: usize,
    /// How many cells passed.
    pub passed: usize,
    /// How many did not.
    pub failed: usize,
    /// How many were too late.
    pub slow: usize,
    /// How many were not asked.
    pub not_run: usize,
    pub(crate) cells: Vec<Cell>,
}

/// A cell of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) check: String,
    pub(crate) profile: String,
    pub(crate) state: String,
    /// In microseconds, without the first one if there are more.
    pub(crate) took_us: Vec<u64>,
}

impl Run {
    /// A run that has just ended.
    pub(crate) fn new(number: u64, plan: &Plan, found: &Found) -> Run {
        let counts = Counts::new(found);
        let cells = plan.cells.iter().zip(&found.cells);
        let cells = cells.map(|(cell, done)| Cell {
            check: plan.checks[cell.check].name.clone(),
            profile: plan.profiles[cell.profile].name.clone(),
            state: done.state.word().to_owned(),
            took_us: done.later_us().iter().copied().take(TIMES_MAX).collect(),
        });
        Run {
            schema: SCHEMA.to_owned(),
            number,
            at: found.begun.to_string(),
            jobs: plan.jobs,
            passed: counts.passed,
            failed: counts.failed,
            slow: counts.slow,
            not_run: counts.not_run,
            cells: cells.collect(),
        }
    }
}

/// Where the runs of a file are.
#[derive(Debug)]
pub(crate) struct Store {
    place: OwnedFd,
    name: String,
}

/// What is there.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The oldest first.
    pub(crate) runs: Vec<Run>,
    /// Lines that this build cannot read.
    pub(crate) unread: usize,
    lines: Vec<Vec<u8>>,
}

impl Kept {
    fn read(text: &[u8]) -> Kept {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut kept = Kept::default();
        for line in lines {
            match serde_json::from_slice::<Run>(line) {
                Ok(run) if run.schema == SCHEMA => kept.runs.push(run),
                Ok(_) | Err(_) => kept.unread += 1,
            }
            kept.lines.push(line.to_vec());
        }
        kept
    }

    /// The number of the next run.
    pub(crate) fn next(&self) -> u64 {
        let last = self.runs.iter().map(|run| run.number).max().unwrap_or(0);
        last.saturating_add(1)
    }
}

impl Store {
    /// Finds the place of a file's runs.
    ///
    /// # Errors
    /// Why there is none, in words that end a sentence.
    pub(crate) fn open(file: &Path, base: &str) -> Result<Store, String> {
        let state_dir = state_dir().ok_or("no state directory: HOME is not set")?;
        let place = make_place(&state_dir, PLACE).map_err(|error| error.to_string())?;
        let whole = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut hash = Sha256::new();
        for part in [whole.as_os_str().as_bytes(), base.as_bytes(), &machine()] {
            hash.update(part);
            hash.update([0]);
        }
        let digest: String =
            hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Store { place, name: format!("{digest}.ndjson") })
    }

    /// The runs that are kept.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn read(&self) -> io::Result<Kept> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.place, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(Kept::default()),
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.len() > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("larger than {} MiB", FILE_BYTES_MAX >> 20)));
        }
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
        Ok(Kept::read(&text))
    }

    /// Keeps a run behind those that are there; the number is given here, so that two runs at one
    /// time have two.
    ///
    /// # Errors
    /// It cannot be written; what was there still is.
    pub(crate) fn keep(&self, mut run: Run) -> io::Result<u64> {
        rustix::fs::flock(&self.place, FlockOperation::LockExclusive)?;
        let kept = self.read()?;
        if kept.lines.is_empty() {
            self.make_room()?;
        }
        run.number = kept.next();
        let line = serde_json::to_vec(&run)?;
        let beside = format!(".{}-{}", self.name, std::process::id());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(rustix::fs::openat(&self.place, &beside, flags, mode)?);
        let from = (kept.lines.len() + 1).saturating_sub(RUNS_MAX);
        let mut written = Vec::new();
        for line in kept.lines[from..].iter().chain([&line]) {
            written.extend_from_slice(line);
            written.push(b'\n');
        }
        let done = file.write_all(&written).and_then(|()| {
            rustix::fs::renameat(&self.place, &beside, &self.place, &self.name)?;
            Ok(())
        });
        if done.is_err() {
            // A part of them would be all of them to the next run.
            let _ = rustix::fs::unlinkat(&self.place, &beside, AtFlags::empty());
        }
        // The lock ends with the process, or here.
        let _ = rustix::fs::flock(&self.place, FlockOperation::Unlock);
        done.map(|()| run.number)
    }

    /// Removes the file that was not written for the longest time, if there are too many.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.place)? {
            let entry = entry?;
            let name = entry.file_name().to_owned();
            if name.to_bytes().ends_with(b".ndjson") {
                let stat = rustix::fs::statat(&self.place, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                files.push((stat.st_mtime, name));
            }
        }
        files.sort();
        let more = (files.len() + 1).saturating_sub(FILES_MAX);
        for (_, name) in files.iter().take(more) {
            rustix::fs::unlinkat(&self.place, name, AtFlags::empty())?;
        }
        Ok(())
    }
}

/// What tells this machine from another with the same home directory.
fn machine() -> Vec<u8> {
    let name = rustix::system::uname().nodename().to_bytes().to_vec();
    let id = std::fs::read("/etc/machine-id").unwrap_or_default();
    [name, id].join(&b'\n')
}
