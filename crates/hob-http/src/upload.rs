//! Bodies of requests: gathered whole before an app is asked, so that a slow client holds no worker.
//!
//! A small one stays in memory and travels inside its request. A larger one goes to a file without a
//! name, of which the app gets the descriptor: its bytes pass no socket a second time.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::Incoming;
use rustix::fd::OwnedFd;

use crate::body::Refused;
use crate::connection::checked::InBody;
use crate::log;
use crate::spill;

/// A body that is larger than this goes to a file.
const INLINE_MAX: usize = 64 * 1024;
/// As much as this is written to the file at once.
const PIECE: usize = 256 * 1024;

/// A body that is whole.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Its bytes; empty if they lie in the file.
    pub(crate) inline: Vec<u8>,
    /// The file, which is read from its first byte.
    pub(crate) file: Option<OwnedFd>,
    /// How many bytes it has.
    pub(crate) length: u64,
}

fn closing(status: StatusCode, text: &'static str) -> Refused {
    Refused { status, text, close: true }
}

/// The whole body: `told` bytes, if its head says how many, `most` of them at most, with no gap
/// between two of its pieces that is longer than `gap`.
pub(crate) async fn gather(
    body: Incoming,
    in_body: &InBody,
    told: u64,
    most: u64,
    gap: Duration,
) -> Result<Gathered, Refused> {
    if told > most {
        return Err(too_large());
    }
    let mut body = Limited::new(body, usize::try_from(most).unwrap_or(usize::MAX));
    let mut pieces = Pieces::default();
    loop {
        let Ok(next) = tokio::time::timeout(gap, body.frame()).await else {
            return Err(closing(StatusCode::REQUEST_TIMEOUT, "the body stopped coming"));
        };
        match next {
            None => break,
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    pieces.add(data).map_err(|error| not_kept(&error))?;
                }
            }
            Some(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
            Some(Err(_)) if in_body.load(Ordering::Relaxed) == 413 => return Err(too_large()),
            Some(Err(_)) => {
                let text = "the body broke off, or is not what its head says";
                return Err(closing(StatusCode::BAD_REQUEST, text));
            }
        }
    }
    pieces.end().map_err(|error| not_kept(&error))
}

fn too_large() -> Refused {
    closing(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than this site takes")
}

/// A disk that is full is for the log, not for strangers.
fn not_kept(error: &std::io::Error) -> Refused {
    log::say(&format!("a request's body cannot be kept: {error}"));
    closing(StatusCode::INSUFFICIENT_STORAGE, "there is no room for the body")
}

/// A body that is coming.
#[derive(Debug, Default)]
struct Pieces {
    /// What is not in the file.
    kept: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl Pieces {
    fn add(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.length += data.len() as u64;
        self.kept.extend_from_slice(data);
        let most = if self.file.is_some() { PIECE } else { INLINE_MAX };
        if self.kept.len() > most { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(spill::nameless()?),
        };
        file.write_all(&self.kept)?;
        self.kept.clear();
        Ok(())
    }

    fn end(mut self) -> std::io::Result<Gathered> {
        if self.file.is_some() && !self.kept.is_empty() {
            self.write()?;
        }
        if let Some(file) = &mut self.file {
            // Whoever has a copy of the descriptor reads on from where it stands.
            file.rewind()?;
        }
        Ok(Gathered { inline: self.kept, file: self.file.map(OwnedFd::from), length: self.length })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn gathered(sizes: &[usize]) -> Gathered {
        let mut pieces = Pieces::default();
        for (at, size) in sizes.iter().enumerate() {
            pieces.add(&vec![u8::try_from(at).unwrap(); *size]).unwrap();
        }
        pieces.end().unwrap()
    }

    #[test]
    fn a_small_body_stays_in_memory() {
        let body = gathered(&[INLINE_MAX - 1, 1]);
        assert_eq!((body.inline.len(), body.length), (INLINE_MAX, INLINE_MAX as u64));
        assert!(body.file.is_none());
        assert_eq!(gathered(&[]).length, 0);
    }

    #[test]
    fn a_large_body_lies_in_a_file_from_its_first_byte_to_its_last() {
        let sizes = [1, INLINE_MAX, 7, PIECE, PIECE, 3];
        let body = gathered(&sizes);
        assert!(body.inline.is_empty());
        let mut read = Vec::new();
        File::from(body.file.unwrap()).read_to_end(&mut read).unwrap();
        assert_eq!(read.len() as u64, body.length);
        let mut at = 0;
        for (number, size) in sizes.iter().enumerate() {
            assert!(
                read[at..at + size].iter().all(|byte| usize::from(*byte) == number),
                "{number}"
            );
            at += size;
        }
        assert_eq!(at, read.len());
    }
}
