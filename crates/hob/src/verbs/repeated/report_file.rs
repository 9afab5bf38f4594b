//! A report's file: its form by the ending of its name, and there whole, by a rename, or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// In which form a report is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verbs) enum Form {
    Json,
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
    ///
    /// # Errors
    /// It cannot be written; the file is as it was before.
    pub(in crate::verbs) fn write(
        &self,
        write: impl FnOnce(&mut BufWriter<File>, Form) -> io::Result<()>,
    ) -> Result<(), Refused> {
        let beside = self.beside();
        let written = File::create(&beside).and_then(|file| {
            let mut out = BufWriter::with_capacity(1 << 16, file);
            write(&mut out, self.form)?;
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
