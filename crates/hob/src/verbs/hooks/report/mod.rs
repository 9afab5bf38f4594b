//! Reports over many targets: JSON, JUnit XML, or one page of HTML, by the ending of the name.
//!
//! All of them are made from the resume file, one target at a time, so that their size does not
//! show in memory; and they appear whole, by a rename, or not at all.

mod html;
mod json;
mod spool;
mod timeline;
mod xml;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hob_core::hooks::{Bytes, SetRecord};
use jiff::Timestamp;
pub(crate) use json::summary;

use super::resume::Journal;
use super::tally::{Ended, Tally};
use crate::verbs::repeated::report_file::{Form, Refused, ReportFile};

/// What a report may be.
const FORMS: [Form; 3] = [Form::Json, Form::Xml, Form::Html];

/// A report that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report(ReportFile);

/// What a report says of all of it.
#[derive(Debug)]
pub(crate) struct Overview<'a> {
    /// The hooks directory.
    pub(crate) dir: &'a Path,
    /// The file of targets.
    pub(crate) targets: &'a str,
    /// What came of them.
    pub(crate) tally: &'a Tally,
    /// How many have not ended.
    pub(crate) left: u64,
}

/// Writes the reports of a run without targets: the directory itself is its one target.
pub(crate) fn of_one(
    dir: &Path,
    record: &SetRecord,
    begun: Timestamp,
    reports: &[Report],
) -> Result<(), Refused> {
    if reports.is_empty() {
        return Ok(());
    }
    let in_words = |error: &dyn std::fmt::Display| error.to_string();
    let mut journal = Journal::unnamed().map_err(|error| in_words(&error))?;
    let mut tally = Tally::new();
    let at = begun.to_string();
    journal.sit(dir, "", &at, 1).map_err(|error| in_words(&error))?;
    tally.sit(at, 1);
    let target = Bytes::from(dir.as_os_str().as_bytes());
    let set = SetRecord { target, ..record.clone() };
    let ended = Ended { line: 1, digest: String::new(), lane: 0, tries: 1, set };
    tally.add(&ended);
    journal.end(&ended).map_err(|error| in_words(&error))?;
    let overview = Overview { dir, targets: "", tally: &tally, left: 0 };
    reports.iter().try_for_each(|report| report.write(&overview, &journal))
}

impl Report {
    /// By the name's ending.
    pub(crate) fn new(path: &Path) -> Result<Report, Refused> {
        ReportFile::new(path, &FORMS).map(Report)
    }

    /// Whether it can be written, as far as that can be told before there is anything to say.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        self.0.check()
    }

    /// Writes it.
    pub(crate) fn write(&self, overview: &Overview<'_>, journal: &Journal) -> Result<(), Refused> {
        self.0.write(|out, form| match form {
            Form::Json => json::write(out, overview, journal),
            Form::Xml => xml::write(out, overview, journal),
            // No other form is taken.
            Form::Html | Form::Markdown => html::write(out, overview, journal),
        })
    }
}
