//! A file that another process appends to, read as it grows.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file, and how far it was read.
#[derive(Debug)]
pub(super) struct Tail {
    file: File,
    at: u64,
}

impl Tail {
    /// From its beginning; `None`: it cannot be opened.
    pub(super) fn open(path: &Path) -> Option<Tail> {
        File::open(path).ok().map(|file| Tail { file, at: 0 })
    }

    /// From the end that it has now.
    pub(super) fn at_end(path: &Path) -> Option<Tail> {
        let mut tail = Tail::open(path)?;
        tail.at = tail.file.metadata().ok()?.len();
        Some(tail)
    }

    /// What was not read yet. One that is shorter than what was read began anew.
    pub(super) fn more(&mut self) -> std::io::Result<Vec<u8>> {
        if self.file.metadata()?.len() < self.at {
            self.at = 0;
        }
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes)
    }

    /// Goes on at the end of one that is shorter than what was read, for files from whose end a
    /// part of a line may be cut. Whether it was shorter.
    pub(super) fn pass_cut(&mut self) -> bool {
        let length = self.file.metadata().map_or(self.at, |now| now.len());
        let is_cut = length < self.at;
        self.at = self.at.min(length);
        is_cut
    }

    /// Whether the name means this file still.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        let place = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
        let (own, named) = (self.file.metadata().map(place), path.metadata().map(place));
        matches!((own, named), (Ok(own), Ok(named)) if own == named)
    }
}
