//! A table of targets: a heading with the names of the parameters, and a row for each target.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Mistake, TARGET_BYTES_MAX, Target, check_name, check_value};

/// What may stand between two fields.
pub(super) const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

/// What stands between the fields of this heading; `None`: it is one field.
pub(super) fn delimiter(heading: &[u8]) -> Option<u8> {
    DELIMITERS.into_iter().find(|delimiter| heading.contains(delimiter))
}

/// Whether a shell has a variable of this name.
fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.first().is_some_and(is_letter)
        && name.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Whether a line alone is a heading: the name of a variable, in capitals.
pub(super) fn is_heading(line: &[u8]) -> bool {
    is_name(line) && !line.iter().any(u8::is_ascii_lowercase)
}

pub(super) struct Table {
    reader: csv::Reader<File>,
    heading: Option<Vec<Vec<u8>>>,
    record: csv::ByteRecord,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Table").field("heading", &self.heading).finish_non_exhaustive()
    }
}

impl Table {
    pub(super) fn new(file: File, delimiter: u8) -> Table {
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(delimiter);
        let reader = builder.from_reader(file);
        Table { reader, heading: None, record: csv::ByteRecord::new() }
    }

    /// The next record and its line.
    fn row(&mut self) -> Result<Option<u64>, Mistake> {
        let before = self.reader.position().line();
        let wrong = |line: u64, why: String| Mistake { line, column: 1, why };
        let more = self.reader.read_byte_record(&mut self.record);
        if !more.map_err(|error| wrong(before, error.to_string()))? {
            return Ok(None);
        }
        let line = self.line();
        if self.record.as_slice().len() > TARGET_BYTES_MAX {
            let why = format!("longer than {TARGET_BYTES_MAX} bytes; is a quote left open?");
            return Err(wrong(line, why));
        }
        Ok(Some(line))
    }

    /// The line on which the record begins. The reader counts line feeds, and stands before that
    /// of a `\r\n`, and before empty lines; so it is counted back from the record's end.
    fn line(&self) -> u64 {
        let end = self.reader.position();
        let mut last = [0];
        let read = self.reader.get_ref().read_at(&mut last, end.byte().saturating_sub(1));
        let own = u64::from(read.is_ok() && last == *b"\n");
        let feeds = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        end.line().saturating_sub(own + feeds)
    }

    pub(super) fn next_one(&mut self) -> Result<Option<Target>, Mistake> {
        if self.heading.is_none() {
            let Some(line) = self.row()? else {
                let why = "empty; a table begins with the names of its columns".to_owned();
                return Err(Mistake { line: 1, column: 1, why });
            };
            self.heading = Some(self.names(line)?);
        }
        let Some(line) = self.row()? else { return Ok(None) };
        let heading = self.heading.as_deref().unwrap_or_default();
        if self.record.len() != heading.len() {
            let why = format!(
                "it has {} of the {} fields of the heading",
                self.record.len(),
                heading.len()
            );
            let column = self.record.len().min(heading.len()) as u64 + 1;
            return Err(Mistake { line, column, why });
        }
        let mut params = Vec::with_capacity(heading.len());
        for (index, (name, value)) in heading.iter().zip(&self.record).enumerate() {
            check_value(value).map_err(|why| {
                let why = format!("`{}`: {why}", String::from_utf8_lossy(name));
                Mistake { line, column: index as u64 + 1, why }
            })?;
            params.push((name.clone(), value.to_vec()));
        }
        Ok(Some(Target::new(line, params)))
    }

    fn names(&self, line: u64) -> Result<Vec<Vec<u8>>, Mistake> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for (index, name) in self.record.iter().enumerate() {
            let wrong = |why: &str| {
                let why = format!("`{}`: {why}", String::from_utf8_lossy(name));
                Mistake { line, column: index as u64 + 1, why }
            };
            check_name(name).map_err(wrong)?;
            if !is_name(name) {
                return Err(wrong("is no name of a variable; a heading has letters, digits and _"));
            }
            if names.iter().any(|other| other == name) {
                return Err(wrong("is there twice"));
            }
            names.push(name.to_vec());
        }
        Ok(names)
    }
}
