//! Reports over many targets: JSON, JUnit XML, or one page of HTML, by the ending of the name.
//!
//! All of them are made from the resume file, one target at a time, so that their size does not
//! show in memory; and they appear whole, by a rename, or not at all. JSON lines are the exception:
//! they grow while targets end.

mod causes;
mod html;
mod json;
mod lines;
mod search;
mod spool;
mod timeline;
mod xml;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hob_core::hooks::{Bytes, SetRecord};
use jiff::Timestamp;
pub(crate) use json::summary;
use lines::Lines;

use super::resume::Journal;
use super::tally::{Ended, Tally};
use crate::verbs::repeated::report_file::{Form, Refused, ReportFile};

/// What a report may be.
const FORMS: [Form; 4] = [Form::Json, Form::Lines, Form::Xml, Form::Html];

/// The reports that were asked for.
#[derive(Debug)]
pub(crate) struct Reports {
    at_the_end: Vec<ReportFile>,
    growing: Vec<Lines>,
}

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
    reports: &mut Reports,
) -> Result<(), Refused> {
    if reports.at_the_end.is_empty() && reports.growing.is_empty() {
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
    reports.begin(&journal, &tally)?;
    let overview = Overview { dir, targets: "", tally: &tally, left: 0 };
    match reports.end(&overview, &journal).into_iter().next() {
        Some(refused) => Err(refused),
        None => Ok(()),
    }
}

impl Reports {
    /// By the names' endings.
    pub(crate) fn new(paths: &[PathBuf]) -> Result<Reports, Refused> {
        let files = paths.iter().map(|path| ReportFile::new(path, &FORMS));
        let files = files.collect::<Result<Vec<ReportFile>, Refused>>()?;
        let (growing, at_the_end): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.form() == Form::Lines);
        Ok(Reports { at_the_end, growing: growing.into_iter().map(Lines::new).collect() })
    }

    /// Whether they can be written, as far as that can be told before there is anything to say.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        self.at_the_end.iter().try_for_each(ReportFile::check)?;
        self.growing.iter().try_for_each(Lines::check)
    }

    /// A run begins: what grows has what ended earlier.
    pub(crate) fn begin(&mut self, journal: &Journal, tally: &Tally) -> Result<(), Refused> {
        self.growing.iter_mut().try_for_each(|lines| lines.begin(journal, tally))
    }

    /// A target of the last sitting has ended.
    pub(crate) fn ended(&mut self, tally: &Tally, ended: &Ended) {
        let sitting = u32::try_from(tally.sittings.len().saturating_sub(1)).unwrap_or(u32::MAX);
        self.growing.iter_mut().for_each(|lines| lines.add(tally, sitting, ended));
    }

    /// All have ended: writes the others. Says of each why it is not written.
    pub(crate) fn end(&mut self, overview: &Overview<'_>, journal: &Journal) -> Vec<Refused> {
        let written = self.at_the_end.iter().map(|file| {
            file.write(|out, form| match form {
                Form::Json => json::write(out, overview, journal),
                Form::Xml => xml::write(out, overview, journal),
                // No other form is taken.
                Form::Html | Form::Markdown | Form::Lines => html::write(out, overview, journal),
            })
        });
        let grown = self.growing.iter_mut().map(Lines::end);
        written.chain(grown).filter_map(Result::err).collect()
    }
}
