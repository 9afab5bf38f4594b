//! All requests of a connection as raw bytes: heads and bodies, one behind the other.
//!
//! A wrapper round a socket feeds what it reads, and hands on to its parser only what is passed.
//! The byte that a request is refused for never reaches the parser, so that the parser sees no
//! whole head of a refused request and nothing that is pipelined behind it.

use super::Refusal;
use super::chunks::Chunks;
use super::filter::{self, Body};
use super::head::{self, Scan, Step};
use super::limits::Limits;
use crate::ids::Time;

/// What became of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// So many bytes of these may be handed on.
    pub passed: usize,
    /// Why the rest may not. Nothing is passed any more.
    pub refused: Option<Refusal>,
    /// Whether that is in a head: the parser has not seen the request, and nobody else answers it.
    pub in_head: bool,
}

#[derive(Debug, Clone)]
enum At {
    /// In a head. Its bytes are kept until it can be judged whole.
    Head(Scan, Vec<u8>),
    /// In a body of a known length: so many bytes are left.
    Length(u64),
    Chunks(Box<Chunks>),
    Refused(Refusal),
}

/// Follows the requests of one connection.
#[derive(Debug, Clone)]
pub struct Requests {
    at: At,
    limits: Limits,
    /// When the head that is coming began.
    began: Time,
    /// The same of those that are whole, until somebody asks.
    whole: Vec<Time>,
}

impl Requests {
    /// Stands before the first byte of a connection.
    #[must_use]
    pub fn new(limits: Limits) -> Requests {
        let at = At::Head(Scan::new(limits), Vec::new());
        Requests { at, limits, began: Time::default(), whole: Vec::new() }
    }

    /// When the first bytes came of each head that has become whole since this was asked last, in
    /// order.
    pub fn heads(&mut self) -> std::vec::Drain<'_, Time> {
        self.whole.drain(..)
    }

    /// Takes the next bytes of the connection, which came now.
    pub fn feed(&mut self, bytes: &[u8], now: Time) -> Fed {
        let mut passed = 0;
        while passed < bytes.len() {
            match self.part(&bytes[passed..], now) {
                Ok(taken) => passed += taken,
                Err((good, refusal)) => {
                    let in_head = matches!(self.at, At::Head(..));
                    self.at = At::Refused(refusal);
                    return Fed { passed: passed + good, refused: Some(refusal), in_head };
                }
            }
        }
        Fed { passed, refused: None, in_head: false }
    }

    /// Takes bytes of one head or one body: how many; or how many are good, and the refusal.
    fn part(&mut self, bytes: &[u8], now: Time) -> Result<usize, (usize, Refusal)> {
        let (taken, next) = match &mut self.at {
            At::Refused(refusal) => return Err((0, *refusal)),
            At::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= here as u64;
                (here, (*left == 0).then_some(Body::Empty))
            }
            At::Chunks(chunks) => {
                let (taken, done) =
                    take(bytes, chunks.seen(), |bytes| (chunks.feed(bytes), chunks.seen()))?;
                (taken, done.then_some(Body::Empty))
            }
            At::Head(scan, kept) => {
                if kept.is_empty() {
                    self.began = now;
                }
                let (taken, done) =
                    take(bytes, kept.len(), |bytes| (scan.feed(bytes), scan.seen()))?;
                kept.extend_from_slice(&bytes[..taken]);
                let body = done.then(|| {
                    head::parse(kept)
                        .and_then(|head| filter::check(head, &self.limits))
                        .map(|accepted| accepted.body)
                });
                // The last byte would make the head whole for the parser.
                let body = body.transpose().map_err(|refusal| (taken - 1, refusal))?;
                self.whole.extend(body.map(|_| self.began));
                (taken, body)
            }
        };
        match next {
            None => {}
            Some(Body::Empty) => self.at = At::Head(Scan::new(self.limits), Vec::new()),
            Some(Body::Length(length)) => self.at = At::Length(length),
            Some(Body::Chunked) => self.at = At::Chunks(Box::new(Chunks::new(self.limits))),
        }
        Ok(taken)
    }
}

/// Feeds a scan that has seen `before` bytes: how many it took, and whether it has ended.
fn take(
    bytes: &[u8],
    before: usize,
    feed: impl FnOnce(&[u8]) -> (Step, usize),
) -> Result<(usize, bool), (usize, Refusal)> {
    let (step, seen) = feed(bytes);
    match step {
        Step::NeedMore => Ok((bytes.len(), false)),
        Step::Done(_) => Ok((seen - before, true)),
        Step::Refused(refusal) => Err((seen - before - 1, refusal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[u8] =
        b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    const SECOND: &[u8] = b"PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n\r\n\n";

    /// Feeds pieces; returns how many bytes were passed in all, and the refusal's status.
    fn feed(bytes: &[u8], piece: usize) -> (usize, Option<u16>) {
        let mut requests = Requests::new(Limits::default());
        let mut passed = 0;
        let mut status = None;
        for piece in bytes.chunks(piece) {
            let fed = requests.feed(piece, Time::default());
            assert!(status.is_none() || fed.passed == 0, "bytes passed behind a refusal");
            passed += fed.passed;
            status = fed.refused.map(|refusal| refusal.status);
        }
        (passed, status)
    }

    #[test]
    fn good_requests_pass_whole_in_pieces_of_any_size() {
        let bytes = [FIRST, SECOND, b"GET / HTTP/1.0\r\n\r\n", FIRST].concat();
        for piece in 1..bytes.len() + 1 {
            assert_eq!(feed(&bytes, piece), (bytes.len(), None), "pieces of {piece}");
        }
    }

    #[test]
    fn a_head_began_with_its_first_byte_whatever_came_with_that() {
        let bytes = [FIRST, SECOND, b"GET / HTTP/1.0\r\n\r\n"].concat();
        let starts = [0, FIRST.len(), FIRST.len() + SECOND.len()];
        for piece in 1..bytes.len() + 1 {
            let mut requests = Requests::new(Limits::default());
            let mut began = Vec::new();
            for (count, piece) in (0_u64..).zip(bytes.chunks(piece)) {
                requests.feed(piece, Time(count));
                began.extend(requests.heads());
            }
            let want = starts.map(|at| Time((at / piece) as u64));
            assert_eq!(began, want, "pieces of {piece}");
        }
    }

    #[test]
    fn nothing_passes_from_the_byte_that_is_refused() {
        for (bad, good, status) in [
            // The filter refuses at the head's last byte.
            (&b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n"[..], 17, 400),
            (b"GET / HTTP/1.1\nHost: a\n\n", 14, 400),
            (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 20, 400),
            (b"PUT / HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\nx", 46, 413),
        ] {
            let bytes = [FIRST, SECOND, bad].concat();
            let before = FIRST.len() + SECOND.len();
            for piece in 1..bytes.len() + 1 {
                assert_eq!(feed(&bytes, piece), (before + good, Some(status)), "pieces of {piece}");
            }
        }
        let chunk = [&FIRST[..FIRST.len() - 5], b" 0\r\n\r\n"].concat();
        assert_eq!(feed(&chunk, 9), (FIRST.len() - 5, Some(400)));
    }
}
