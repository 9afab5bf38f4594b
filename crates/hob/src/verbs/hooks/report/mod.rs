//! Reports over many targets: JSON, JUnit XML, or one page of HTML, by the ending of the name.
//!
//! All of them are made from the resume file, one target at a time, so that their size does not
//! show in memory; and they appear whole, by a rename, or not at all.

mod html;
mod json;
mod markup;
mod spool;
mod timeline;
mod xml;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hob_core::hooks::{Bytes, SetRecord};
use jiff::Timestamp;
pub(crate) use json::summary;

use super::resume::Journal;
use super::tally::{Ended, Tally};

/// Which report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Xml,
    Html,
}

/// A report that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    kind: Kind,
    path: PathBuf,
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

/// Why a report was not written, in words that end a sentence.
pub(crate) type Refused = String;

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
    let ended = Ended { line: 1, digest: String::new(), lane: 0, set };
    tally.add(&ended);
    journal.end(&ended).map_err(|error| in_words(&error))?;
    let overview = Overview { dir, targets: "", tally: &tally, left: 0 };
    reports.iter().try_for_each(|report| report.write(&overview, &journal))
}

impl Report {
    /// By the name's ending.
    pub(crate) fn new(path: &Path) -> Result<Report, Refused> {
        let kind = match path.extension().and_then(|end| end.to_str()) {
            Some("json") => Kind::Json,
            Some("xml") => Kind::Xml,
            Some("html" | "htm") => Kind::Html,
            Some(_) | None => {
                return Err(format!(
                    "{}: a report's name ends in .json, .xml (JUnit) or .html",
                    path.display()
                ));
            }
        };
        Ok(Report { kind, path: path.to_owned() })
    }

    /// Whether it can be written, as far as that can be told before there is anything to say:
    /// better now than after an hour.
    pub(crate) fn check(&self) -> Result<(), Refused> {
        if self.path.is_dir() {
            return Err(format!("{}: is a directory", self.path.display()));
        }
        let beside = self.beside();
        let made = File::create(&beside);
        made.map_err(|error| format!("{}: {error}", self.path.display()))?;
        let _ = std::fs::remove_file(beside);
        Ok(())
    }

    /// Writes it.
    pub(crate) fn write(&self, overview: &Overview<'_>, journal: &Journal) -> Result<(), Refused> {
        let beside = self.beside();
        let written = File::create(&beside).and_then(|file| {
            let mut out = BufWriter::with_capacity(1 << 16, file);
            match self.kind {
                Kind::Json => json::write(&mut out, overview, journal)?,
                Kind::Xml => xml::write(&mut out, overview, journal)?,
                Kind::Html => html::write(&mut out, overview, journal)?,
            }
            out.flush()?;
            out.get_ref().sync_all()?;
            std::fs::rename(&beside, self.target())
        });
        written.map_err(|error| {
            // A part of a report would be taken for all of it.
            let _ = std::fs::remove_file(&beside);
            format!("{}: {error}", self.path.display())
        })
    }

    /// The file itself, where the name is a link to it.
    fn target(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }

    fn beside(&self) -> PathBuf {
        let target = self.target();
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        target.with_file_name(format!(".{name}.hob-{}", std::process::id()))
    }
}
