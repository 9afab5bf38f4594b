//! The file of the access log. Each of its lines is whole: what a full disk cut short is cut off,
//! and the first line of each file is read back.

use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::PoisonError;

use hob_core::http::access::{Access, Dropped};

use super::{LogFile, say};
use crate::control::meter::Fault;

/// A first line is not longer: it has few fields, and each is bounded, even escaped.
const LINE_BYTES_MAX: u64 = 64 * 1024;
/// Only its user reads what others asked for.
const MODE: u32 = 0o600;

/// The file, and what is known of it.
#[derive(Debug)]
pub(super) struct Kept {
    of: LogFile,
    open: Option<Open>,
    fault: Fault,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Its device and inode.
    id: (u64, u64),
    /// Whether its first line is still to be read back.
    is_new: bool,
}

impl Kept {
    pub(super) fn new(of: LogFile, fault: Fault) -> Kept {
        Kept { of, open: None, fault }
    }

    /// Writes whole lines, and gives how many of them could not be.
    pub(super) fn write(&mut self, lines: &str) -> u64 {
        match self.try_write(lines) {
            Ok(()) => {
                self.set_fault(None);
                0
            }
            Err((error, written)) => {
                self.set_fault(Some(error));
                let unwritten = lines.as_bytes().get(written..).unwrap_or_default();
                unwritten.iter().filter(|byte| **byte == b'\n').count() as u64
            }
        }
    }

    /// # Errors
    /// What happened, and how many bytes are written, whole lines of them.
    fn try_write(&mut self, lines: &str) -> Result<(), (String, usize)> {
        let path = self.of.path.clone();
        let told = |error: Error| (format!("{}: {error}", path.display()), 0);
        self.look().map_err(told)?;
        let open = self.open.get_or_insert(open(&path).map_err(told)?);
        let before = open.file.metadata().map_err(told)?.len();
        append(&open.file, before, lines.as_bytes())
            .map_err(|(error, written)| (format!("{}: {error}", path.display()), written))?;
        if std::mem::take(&mut open.is_new) && !is_readable(&path) {
            let what = "its first line cannot be read back as JSON";
            return Err((format!("{}: {what}", path.display()), lines.len()));
        }
        let length = before + lines.len() as u64;
        if self.of.bytes_max.is_some_and(|most| length > most) {
            let older = LogFile::older(&path);
            std::fs::rename(&path, older).map_err(|error| (error.to_string(), lines.len()))?;
            self.open = None;
        }
        Ok(())
    }

    /// Lets go of a file that is not the one of this name any more.
    fn look(&mut self) -> Result<(), Error> {
        let Some(open) = &self.open else { return Ok(()) };
        match std::fs::metadata(&self.of.path) {
            Ok(found) if (found.dev(), found.ino()) == open.id => Ok(()),
            Ok(_) => {
                self.open = None;
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.open = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Says what has changed, once.
    fn set_fault(&self, now: Option<String>) {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if *fault == now {
            return;
        }
        match &now {
            Some(what) => {
                say(&format!("the access log: {what}; requests go on, their lines do not"))
            }
            None => say(&format!("the access log is written again: {}", self.of.path.display())),
        }
        *fault = now;
    }
}

fn open(path: &PathBuf) -> Result<Open, Error> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(path)?;
    let known = file.metadata()?;
    let mut last = [b'\n'];
    if known.is_file() && known.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        // Somebody else's words, or a line that a crash cut short: the next is to be whole.
        file.write_all(b"\n")?;
    }
    Ok(Open { id: (known.dev(), known.ino()), is_new: known.is_file() && known.len() == 0, file })
}

/// Appends whole lines: of what was cut short, the part of a line is cut off again.
fn append(mut file: &File, before: u64, lines: &[u8]) -> Result<(), (Error, usize)> {
    let mut written = 0;
    while let Some(rest) = lines.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Ok(0) => return Err((Error::from(std::io::ErrorKind::WriteZero), 0)),
            Ok(bytes) => written += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let part = lines.get(..written).unwrap_or_default();
                let whole = part.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                // Another writer's lines behind it would go with it.
                if file.metadata().is_ok_and(|now| now.len() == before + written as u64) {
                    let _ = file.set_len(before + whole as u64);
                }
                return Err((error, whole));
            }
        }
    }
    Ok(())
}

/// Whether a file's first line is what readers expect.
fn is_readable(path: &PathBuf) -> bool {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| {
        first.resize(usize::try_from(LINE_BYTES_MAX).unwrap_or(usize::MAX), 0);
        let bytes = file.read_at(&mut first, 0)?;
        first.truncate(bytes);
        Ok(())
    });
    let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_line = serde_json::from_slice::<Access>(line).is_ok()
        || serde_json::from_slice::<Dropped>(line).is_ok();
    read.is_ok() && is_line
}
