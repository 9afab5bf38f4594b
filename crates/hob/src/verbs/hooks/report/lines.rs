//! The report that grows: a line of JSON for each target as it ends, `hob.hooks-target/1`, for
//! `tail -f` and for programs. `docs/hooks-reports.md` describes it.
//!
//! Invariants: a line is written at once, behind that of the resume file; a regular file has whole
//! lines alone. A reader that leaves is no fault, and a full disk keeps no target from running.

use std::fs::File;
use std::io::{self, Write};

use hob_core::hooks::{Capture, HookRecord, SetRecord};
use hob_os::signals;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::Value;

use super::json::Row;
use crate::verbs::hooks::resume::Journal;
use crate::verbs::hooks::tally::{Ended, Tally};
use crate::verbs::repeated::report_file::{Refused, ReportFile};

/// The name of a line's format.
const SCHEMA: &str = "hob.hooks-target/1";

/// A target, with what is said once in the other report.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    /// When it began.
    at: String,
    #[serde(flatten)]
    row: Row<'a>,
}

/// The file.
#[derive(Debug)]
pub(super) struct Lines {
    file: ReportFile,
    /// `None`: not open yet, or nobody reads it any more.
    out: Option<File>,
    /// How long a regular file is, all lines whole.
    len: Option<u64>,
    fault: Option<io::Error>,
}

impl Lines {
    pub(super) fn new(file: ReportFile) -> Lines {
        Lines { file, out: None, len: None, fault: None }
    }

    /// Whether it can be written, as far as that can be told without emptying it.
    pub(super) fn check(&self) -> Result<(), Refused> {
        self.file.check()
    }

    /// Opens it, and writes what has ended in earlier sittings.
    pub(super) fn begin(&mut self, journal: &Journal, tally: &Tally) -> Result<(), Refused> {
        let out = self.file.open_growing()?;
        self.len = out.metadata().is_ok_and(|found| found.is_file()).then_some(0);
        self.out = Some(out);
        let earlier = journal.each(|sitting, ended| {
            self.add(tally, sitting, ended);
            Ok::<(), io::Error>(())
        });
        earlier.map_err(|error| self.file.refused(&error))
    }

    /// A target has ended.
    pub(super) fn add(&mut self, tally: &Tally, sitting: u32, ended: &Ended) {
        let Some(out) = &mut self.out else { return };
        let at = tally.moment(sitting, ended.set.at_us).to_string();
        let bare = without_output(ended);
        let row = Row { sitting, ended: &bare };
        let mut value = serde_json::to_value(Line { schema: SCHEMA, at, row }).unwrap_or_default();
        let hooks = value.pointer_mut("/set/hooks").and_then(Value::as_array_mut);
        for hook in hooks.into_iter().flatten().filter_map(Value::as_object_mut) {
            hook.remove("stdout");
            hook.remove("stderr");
        }
        let line = format!("{value}\n");
        let written = match &mut self.len {
            Some(len) => out.write_all(line.as_bytes()).map(|()| *len += line.len() as u64),
            None => without_sigpipe(|| out.write_all(line.as_bytes())),
        };
        let Err(error) = written else { return };
        if let Some(len) = self.len {
            // Half a line is of no use to anybody.
            let _ = out.set_len(len);
        }
        self.out = None;
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.fault = Some(error);
        }
    }

    /// Nothing more comes. Says why something is missing.
    pub(super) fn end(&mut self) -> Result<(), Refused> {
        self.out = None;
        match self.fault.take() {
            Some(error) => Err(self.file.refused(&error)),
            None => Ok(()),
        }
    }
}

/// The same without what its hooks wrote, which may be much.
fn without_output(ended: &Ended) -> Ended {
    let bare = |hook: &HookRecord| HookRecord {
        name: hook.name.clone(),
        message: hook.message.clone(),
        stdout: Capture::default(),
        stderr: Capture::default(),
        ..*hook
    };
    let SetRecord { target, dir, not_run, message, host, .. } = &ended.set;
    let set = SetRecord {
        target: target.clone(),
        dir: dir.clone(),
        hooks: ended.set.hooks.iter().map(bare).collect(),
        not_run: not_run.clone(),
        message: message.clone(),
        host: host.clone(),
        ..ended.set
    };
    Ended { digest: ended.digest.clone(), set, ..*ended }
}

/// A reader that has left is told by the write's error. Its signal stays blocked in this thread then:
/// it would come with the mask that was there, and hooks have another one.
fn without_sigpipe(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let mask = signals::mask();
    signals::block(signals::Set::of(&[Signal::PIPE.as_raw()]))?;
    let written = write();
    if written.is_ok() {
        signals::set_mask(mask);
    }
    written
}
