//! What there is to list: receipts, and the lines of calls that no daemon took, as one sequence
//! by time. Read from disk, so it works without a daemon. What is damaged or newer is skipped.

pub mod filter;

use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use hob_core::receipt::naming::Naming;
use hob_core::receipt::{ELSEWHERE, FRONT, Receipt};
use hob_daemon::recorder::{PlaceError, reader};
use serde::{Deserialize, Serialize};

use crate::fallback;
use crate::show::clock::moment;
use crate::show::style::Tone;

/// One call that left a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A daemon saw it.
    Receipt(Box<Receipt>),
    /// None did.
    Fallback(FallbackLine),
}

/// A line of `fallbacks.ndjson`, as [`fallback::append`] writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackLine {
    /// [`fallback::SCHEMA`].
    pub schema: String,
    /// When: RFC 3339 with microseconds, UTC.
    pub at: String,
    /// What was called.
    pub program: FallbackProgram,
    /// Always `false`.
    pub warm: bool,
    /// Why no daemon took it.
    pub reason: String,
    /// How many descriptors beyond 0 to 2 were open, with number and target of the first that was
    /// too many, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<String>,
    /// The caller's process id.
    pub caller_pid: u32,
}

/// What was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackProgram {
    /// The name as the caller typed it.
    pub name: String,
}

/// How a call was performed, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By a warm worker.
    Warm,
    /// By the front of a site itself.
    Front,
    /// By another host.
    Elsewhere,
    /// By the client, in its own place.
    Cold,
    /// It is a run of hooks, of which each was performed in its own way.
    Hooks,
    /// Not at all.
    NotRun,
}

impl How {
    /// How the call of a receipt was performed.
    #[must_use]
    pub fn of(receipt: &Receipt) -> How {
        if receipt.hooks.is_some() {
            return How::Hooks;
        }
        match (receipt.warm, receipt.isolation.as_str()) {
            (true, _) => How::Warm,
            (false, "none") => How::NotRun,
            (false, FRONT) => How::Front,
            (false, ELSEWHERE) => How::Elsewhere,
            (false, _) => How::Cold,
        }
    }

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            How::Warm => "warm",
            How::Front => "front",
            How::Elsewhere => "elsewhere",
            How::Cold => "cold",
            How::Hooks => "hooks",
            How::NotRun => "not run",
        }
    }

    /// Its tone.
    #[must_use]
    pub fn tone(self) -> Tone {
        match self {
            How::Warm | How::Front | How::Elsewhere => Tone::Good,
            How::Cold => Tone::Watch,
            How::Hooks => Tone::Plain,
            How::NotRun => Tone::Bad,
        }
    }
}

impl Entry {
    /// How the call was performed.
    #[must_use]
    pub fn how(&self) -> How {
        match self {
            Entry::Receipt(receipt) => How::of(receipt),
            Entry::Fallback(_) => How::Cold,
        }
    }

    /// What it was of.
    #[must_use]
    pub fn naming(&self) -> Naming<'_> {
        match self {
            Entry::Receipt(receipt) => Naming::from(&receipt.program),
            Entry::Fallback(line) => {
                Naming { name: &line.program.name, target: "", interpreter: None }
            }
        }
    }

    /// When the call came.
    #[must_use]
    pub fn at(&self) -> &str {
        match self {
            Entry::Receipt(receipt) => &receipt.at,
            Entry::Fallback(line) => &line.at,
        }
    }

    /// The record as one line of JSON, without a line end. Both kinds have `schema`, `at`,
    /// `program.name`, `warm`, `reason` and `caller_pid`.
    #[must_use]
    pub fn json(&self) -> String {
        let line = match self {
            Entry::Receipt(receipt) => serde_json::to_string(receipt),
            Entry::Fallback(line) => serde_json::to_string(line),
        };
        line.expect("records have only string keys and finite numbers")
    }
}

/// The record of the call with this number, if it is still kept. Of two daemons that share the
/// place and have used the same number, the newer one's.
pub fn numbered(state_dir: &Path, call: u64) -> Result<Option<Entry>, PlaceError> {
    let found = reader::newest(state_dir)?.find(|receipt| receipt.call == call);
    Ok(found.map(|receipt| Entry::Receipt(Box::new(receipt))))
}

/// The last `count` records, the oldest first, as a log is read.
pub fn recent(state_dir: &Path, count: usize) -> Result<Vec<Entry>, PlaceError> {
    let receipts = reader::last(state_dir, count)?.into_iter();
    let mut entries: Vec<Entry> =
        receipts.rev().map(|receipt| Entry::Receipt(Box::new(receipt))).collect();
    entries.extend(fallbacks(state_dir).into_iter().map(Entry::Fallback));
    // A stable sort: receipts of one moment stay in the order in which they were written. What
    // has no readable time counts as old.
    entries.sort_by_key(|entry| moment(entry.at()));
    Ok(entries.split_off(entries.len().saturating_sub(count)))
}

/// The last `count` receipts that `takes` takes, the oldest first.
fn newest_of(
    state_dir: &Path,
    count: usize,
    takes: impl Fn(&Entry) -> bool,
) -> Result<Vec<Entry>, PlaceError> {
    let receipts = reader::newest(state_dir)?.map(|receipt| Entry::Receipt(Box::new(receipt)));
    let mut entries: Vec<Entry> = receipts.filter(takes).take(count).collect();
    entries.reverse();
    Ok(entries)
}

/// The last `count` records that `takes` takes, the oldest first.
pub fn recent_of(
    state_dir: &Path,
    count: usize,
    takes: impl Fn(&Entry) -> bool,
) -> Result<Vec<Entry>, PlaceError> {
    let mut entries = newest_of(state_dir, count, &takes)?;
    let fallbacks = fallbacks(state_dir).into_iter().map(Entry::Fallback);
    entries.extend(fallbacks.filter(|entry| takes(entry)));
    entries.sort_by_key(|entry| moment(entry.at()));
    Ok(entries.split_off(entries.len().saturating_sub(count)))
}

/// The last `count` receipts that `takes` takes, with the lines of calls that no daemon took since the
/// first of them; all those lines, if there are not so many receipts. The oldest first.
pub fn receipts_of(
    state_dir: &Path,
    count: usize,
    takes: impl Fn(&Entry) -> bool,
) -> Result<Vec<Entry>, PlaceError> {
    let mut entries = newest_of(state_dir, count, &takes)?;
    let is_cut = entries.len() == count;
    let since = entries.first().filter(|_| is_cut).map(|first| moment(first.at()));
    if since.is_none() && is_cut {
        return Ok(entries);
    }
    let fallbacks = fallbacks(state_dir).into_iter().map(Entry::Fallback);
    let fallbacks = fallbacks.filter(|entry| takes(entry));
    entries.extend(fallbacks.filter(|entry| since.is_none_or(|since| moment(entry.at()) >= since)));
    entries.sort_by_key(|entry| moment(entry.at()));
    Ok(entries)
}

/// The lines of calls that no daemon took, the oldest first.
#[must_use]
pub fn fallbacks(state_dir: &Path) -> Vec<FallbackLine> {
    let mut lines = Vec::new();
    for name in [fallback::OLD_FILE, fallback::FILE] {
        let text = read_bounded(&state_dir.join(name)).unwrap_or_default();
        let parsed = text.split(|byte| *byte == b'\n').map(serde_json::from_slice::<FallbackLine>);
        lines.extend(parsed.flatten().filter(|line| line.schema == fallback::SCHEMA));
    }
    lines
}

/// A file of ours, at most a little more than a writer lets it grow. The directory was checked
/// when the receipts in it were opened.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or_default())
        .open(path)?;
    let metadata = file.metadata()?;
    let mut text = Vec::new();
    if metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw() {
        file.take(2 * fallback::FILE_BYTES_MAX).read_to_end(&mut text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::samples;
    use std::ffi::OsStr;
    use std::time::{Duration, SystemTime};

    fn fall_back(state_dir: &Path, at: SystemTime, program: &str) {
        let fallback = fallback::Fallback {
            at,
            reason: fallback::FallbackReason::NoDaemon,
            beyond: None,
            program: OsStr::new(program),
            caller_pid: 1,
        };
        fallback::append(state_dir, &fallback).unwrap();
    }

    #[test]
    fn receipts_and_fallbacks_are_one_sequence_by_time() {
        let home = tempfile::tempdir().unwrap();
        let recorder = hob_daemon::recorder::Recorder::start(Some(home.path()));
        for minute in [10, 12] {
            let mut receipt = samples::warm();
            receipt.at = format!("2026-11-21T21:{minute}:00.000000Z");
            receipt.call = minute;
            recorder.record(receipt);
        }
        drop(recorder);
        let noon: jiff::Timestamp = "2026-11-21T21:11:00Z".parse().unwrap();
        let noon = SystemTime::from(noon);
        fall_back(home.path(), noon, "middle");
        fall_back(home.path(), noon + Duration::from_secs(180), "newest");

        let names = |entries: &[Entry]| -> Vec<String> {
            let name = |entry: &Entry| match entry {
                Entry::Receipt(receipt) => receipt.call.to_string(),
                Entry::Fallback(line) => line.program.name.clone(),
            };
            entries.iter().map(name).collect()
        };
        assert_eq!(names(&recent(home.path(), 9).unwrap()), ["10", "middle", "12", "newest"]);
        assert_eq!(names(&recent(home.path(), 3).unwrap()), ["middle", "12", "newest"]);
        assert_eq!(names(&recent(home.path(), 0).unwrap()), Vec::<String>::new());
        let receipts = |count| names(&receipts_of(home.path(), count, |_| true).unwrap());
        assert_eq!(receipts(1), ["12", "newest"], "one receipt, whatever else there is");
        assert_eq!(receipts(2), ["10", "middle", "12", "newest"]);
        assert_eq!(receipts(9), ["10", "middle", "12", "newest"]);
        assert_eq!(receipts(0), Vec::<String>::new());
        let last = recent(home.path(), 1).unwrap().pop().unwrap();
        let value: serde_json::Value = serde_json::from_str(&last.json()).unwrap();
        assert_eq!(value["warm"], false);
        assert_eq!(value["reason"], "no-daemon");
        assert_eq!(value["program"]["name"], "newest");
    }

    #[test]
    fn damaged_and_newer_lines_are_skipped() {
        let home = tempfile::tempdir().unwrap();
        fall_back(home.path(), SystemTime::now(), "good");
        let path = home.path().join(fallback::FILE);
        let good = std::fs::read_to_string(&path).unwrap();
        let newer = good.replace("fallback/1", "fallback/2");
        std::fs::write(&path, format!("{newer}junk\n\n{good}{}", &good[..30])).unwrap();
        assert_eq!(recent(home.path(), 9).unwrap().len(), 1);
    }

    #[test]
    fn the_client_and_the_recorder_mean_the_same_directory() {
        for state_home in [None, Some(""), Some("/s"), Some("s")] {
            for home in [None, Some(""), Some("/h"), Some("h")] {
                let (state_home, home) = (state_home.map(OsStr::new), home.map(OsStr::new));
                assert_eq!(
                    fallback::state_dir_for(state_home, home),
                    hob_daemon::recorder::place::state_dir_for(state_home, home),
                );
            }
        }
    }
}
