//! What one stream of a hook writes: read as it comes, kept within bounds, stamped.
//!
//! The beginning and the end are kept, the middle is counted and dropped: what a program says
//! first and last is what people look for.

use std::collections::VecDeque;

use hob_core::hooks::{Bytes, Capture, Chunk};
use rustix::fd::OwnedFd;
use rustix::io;

/// How many stamps are kept of a stream; what comes later has the last one's.
const CHUNKS_MAX: usize = 1024;
/// How many reads one turn takes from one stream, so that no hook keeps others waiting.
const READS_A_TURN_MAX: usize = 16;

/// What a read of all there was has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// More may come.
    Open,
    /// Everybody who could write has closed it.
    End,
}

/// One stream of a hook that runs.
#[derive(Debug)]
pub(crate) struct Captured {
    pipe: OwnedFd,
    kept: Kept,
}

impl Captured {
    pub(crate) fn new(pipe: OwnedFd, bytes_max: usize) -> Captured {
        Captured { pipe, kept: Kept::new(bytes_max) }
    }

    pub(crate) fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    /// Reads some of what is there, and tells of it; the pipe does not block.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        at_ns: u64,
        tell: &mut dyn FnMut(&[u8]),
    ) -> Found {
        for _ in 0..READS_A_TURN_MAX {
            match io::read(&self.pipe, &mut *buffer) {
                Ok(0) => return Found::End,
                Ok(len) => {
                    self.kept.push(&buffer[..len], at_ns);
                    tell(&buffer[..len]);
                    // A pipe that had less than was asked for is empty.
                    if len < buffer.len() {
                        return Found::Open;
                    }
                }
                Err(io::Errno::INTR) => {}
                Err(io::Errno::AGAIN) => return Found::Open,
                Err(_) => return Found::End,
            }
        }
        Found::Open
    }

    /// After the hook's end: reads what it left in the pipe, and no more than a pipe can hold, for
    /// something that it left behind may write for ever.
    pub(crate) fn finish(
        mut self,
        buffer: &mut [u8],
        at_ns: u64,
        tell: &mut dyn FnMut(&[u8]),
    ) -> (Capture, Found) {
        // Mostly there is nothing, and nothing to be asked about its size.
        let mut left = None;
        let found = loop {
            let len = left.unwrap_or(usize::MAX).min(buffer.len());
            match io::read(&self.pipe, &mut buffer[..len]) {
                Ok(0) => break Found::End,
                Ok(len) => {
                    self.kept.push(&buffer[..len], at_ns);
                    tell(&buffer[..len]);
                    let size = || rustix::pipe::fcntl_getpipe_size(&self.pipe).unwrap_or(1 << 16);
                    let more = left.unwrap_or_else(size).saturating_sub(len);
                    if more == 0 {
                        break Found::Open;
                    }
                    left = Some(more);
                }
                Err(io::Errno::INTR) => {}
                Err(io::Errno::AGAIN) => break Found::Open,
                Err(_) => break Found::End,
            }
        };
        (self.kept.into_capture(), found)
    }
}

/// The bytes that are kept.
#[derive(Debug)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
    chunks: Vec<Chunk>,
}

impl Kept {
    fn new(bytes_max: usize) -> Kept {
        Kept {
            head: Vec::new(),
            tail: VecDeque::new(),
            half: bytes_max / 2,
            total: 0,
            chunks: Vec::new(),
        }
    }

    fn push(&mut self, mut bytes: &[u8], at_ns: u64) {
        self.total += bytes.len() as u64;
        let full = self.chunks.len() == CHUNKS_MAX;
        match self.chunks.last_mut() {
            Some(last) if full || last.at_ns == at_ns => {
                last.bytes += bytes.len() as u64;
            }
            Some(_) | None => self.chunks.push(Chunk { at_ns, bytes: bytes.len() as u64 }),
        }
        let room = self.half.saturating_sub(self.head.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        bytes = rest;
        if bytes.len() >= self.half {
            self.tail.clear();
            bytes = &bytes[bytes.len() - self.half..];
        }
        let over = (self.tail.len() + bytes.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(bytes);
    }

    fn into_capture(self) -> Capture {
        let Kept { mut head, tail, total, chunks, .. } = self;
        let cut = total - (head.len() + tail.len()) as u64;
        let mut tail = Vec::from(tail);
        if cut == 0 {
            head.append(&mut tail);
        }
        Capture { head: Bytes(head), tail: Bytes(tail), total, cut, chunks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(max: usize, pieces: &[&[u8]]) -> Capture {
        let mut kept = Kept::new(max);
        for (at_ns, piece) in (0..).zip(pieces) {
            kept.push(piece, at_ns);
        }
        kept.into_capture()
    }

    #[test]
    fn what_fits_is_whole_and_what_does_not_loses_its_middle() {
        let check = |max, pieces: &[&[u8]], head: &[u8], tail: &[u8], cut| {
            let capture = captured(max, pieces);
            assert_eq!((&capture.head.0[..], &capture.tail.0[..]), (head, tail), "{pieces:?}");
            assert_eq!(capture.cut, cut, "{pieces:?}");
            let total: usize = pieces.iter().map(|piece| piece.len()).sum();
            assert_eq!(capture.total, total as u64);
            assert_eq!(capture.chunks.iter().map(|chunk| chunk.bytes).sum::<u64>(), total as u64);
        };
        check(8, &[], b"", b"", 0);
        check(8, &[b"abc"], b"abc", b"", 0);
        check(8, &[b"abc", b"defgh"], b"abcdefgh", b"", 0);
        check(8, &[b"abc", b"defghi"], b"abcd", b"fghi", 1);
        check(8, &[b"abcdefghijklmnop"], b"abcd", b"mnop", 8);
        check(8, &[b"abcdefgh", b"i", b"j", b"klmno", b"p"], b"abcd", b"mnop", 8);
    }

    #[test]
    fn stamps_are_bounded() {
        let capture = captured(8, &vec![&b"x"[..]; 5000]);
        assert_eq!(capture.chunks.len(), CHUNKS_MAX);
        assert_eq!(capture.chunks.last().unwrap().bytes, 5000 - (CHUNKS_MAX as u64 - 1));
    }
}
