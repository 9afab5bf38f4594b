//! A report's file: its form by the ending of its name, and there whole, by a rename, or not at all;
//! but for JSON lines, which grow.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::super::named_file;

/// In which form a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum Form {
    Json,
    /// JSON lines: grows while what it reports goes on.
    Lines,
    /// JUnit's.
    Xml,
    Html,
    Markdown,
}

impl Form {
    /// The ending that a name is asked to have.
    fn ending(self) -> &'static str {
        match self {
            Form::Json => ".json",
            Form::Lines => ".jsonl",
            Form::Xml => ".xml (JUnit)",
            Form::Html => ".html",
            Form::Markdown => ".md",
        }
    }
}

/// A report that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verbs) struct ReportFile {
    form: Form,
    path: PathBuf,
}

/// Why a report is not written, in words that end a sentence.
pub(crate) type Refused = String;

impl ReportFile {
    /// By the name's ending.
    ///
    /// # Errors
    /// It is the ending of none of these forms.
    pub(in crate::verbs) fn new(path: &Path, forms: &[Form]) -> Result<ReportFile, Refused> {
        let form = match path.extension().and_then(|end| end.to_str()) {
            Some("json") => Some(Form::Json),
            Some("jsonl" | "ndjson") => Some(Form::Lines),
            Some("xml") => Some(Form::Xml),
            Some("html" | "htm") => Some(Form::Html),
            Some("md") => Some(Form::Markdown),
            Some(_) | None => None,
        };
        if let Some(form) = form.filter(|form| forms.contains(form)) {
            return Ok(ReportFile { form, path: path.to_owned() });
        }
        let endings: Vec<_> = forms.iter().map(|form| form.ending()).collect();
        let (last, others) = endings.split_last().unwrap_or((&"", &[]));
        let name = path.display();
        Err(format!("{name}: a report's name ends in {} or {last}", others.join(", ")))
    }

    /// Its form.
    pub(in crate::verbs) fn form(&self) -> Form {
        self.form
    }

    /// Where it goes.
    pub(in crate::verbs) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be written, as far as that can be told before there is anything to say:
    /// better now than after an hour.
    ///
    /// # Errors
    /// It cannot.
    pub(in crate::verbs) fn check(&self) -> Result<(), Refused> {
        let checked = match self.form {
            Form::Lines => named_file::check_growing(&self.path),
            Form::Json | Form::Xml | Form::Html | Form::Markdown => named_file::check(&self.path),
        };
        checked.map_err(|error| self.refused(&error))
    }

    /// Opens it to grow; a regular file is emptied.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(in crate::verbs) fn open_growing(&self) -> Result<File, Refused> {
        named_file::open_growing(&self.path).map_err(|error| self.refused(&error))
    }

    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written; the file is as it was before.
    pub(in crate::verbs) fn write(
        &self,
        write: impl FnOnce(&mut BufWriter<File>, Form) -> io::Result<()>,
    ) -> Result<(), Refused> {
        named_file::write(&self.path, |out| write(out, self.form))
            .map_err(|error| self.refused(&error))
    }

    /// Why it is not written, with its name.
    pub(in crate::verbs) fn refused(&self, error: &io::Error) -> Refused {
        format!("{}: {error}", self.path.display())
    }
}
