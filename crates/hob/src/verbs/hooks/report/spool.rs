//! Texts that are written by turns and read one after the other: a file without a name, in which each
//! text has its stretches.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// A part is written when so much of it has come.
const STRETCH_BYTES: usize = 64 * 1024;
/// How much is copied at once.
const COPY_BYTES: u64 = 64 * 1024;

/// The file.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    len: u64,
}

/// One text: its stretches in the file (place and length), and what is not written yet.
#[derive(Debug, Default)]
pub(super) struct Part {
    stretches: Vec<(u64, u64)>,
    pending: Vec<u8>,
}

impl Spool {
    pub(super) fn new() -> io::Result<Spool> {
        Ok(Spool { file: tempfile::tempfile()?, len: 0 })
    }

    /// Adds to a text.
    pub(super) fn add(&mut self, part: &mut Part, text: &str) -> io::Result<()> {
        part.pending.extend_from_slice(text.as_bytes());
        if part.pending.len() >= STRETCH_BYTES {
            self.file.write_all_at(&part.pending, self.len)?;
            let len = part.pending.len() as u64;
            part.stretches.push((self.len, len));
            self.len += len;
            part.pending.clear();
        }
        Ok(())
    }

    /// Writes the whole of a text.
    pub(super) fn copy(&self, part: &Part, out: &mut impl Write) -> io::Result<()> {
        for (place, len) in &part.stretches {
            let mut done = 0;
            while done < *len {
                let many = usize::try_from((len - done).min(COPY_BYTES)).unwrap_or(0);
                let mut bytes = vec![0; many];
                self.file.read_exact_at(&mut bytes, place + done)?;
                out.write_all(&bytes)?;
                done += many as u64;
            }
        }
        out.write_all(&part.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_written_by_turns_come_out_one_by_one() {
        let mut spool = Spool::new().unwrap();
        let mut parts = [Part::default(), Part::default()];
        let mut want = [String::new(), String::new()];
        for turn in 0..4_000 {
            for (index, part) in parts.iter_mut().enumerate() {
                let text = format!("{index} in turn {turn} {}\n", "x".repeat(turn % 90));
                spool.add(part, &text).unwrap();
                want[index] += &text;
            }
        }
        assert!(parts[0].stretches.len() > 2 && !parts[0].pending.is_empty());
        for (part, want) in parts.iter().zip(&want) {
            let mut out = Vec::new();
            spool.copy(part, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), *want);
        }
    }
}
