//! A body in chunks as raw bytes: where it ends, and whether it is written as it has to be.
//!
//! A chunk's size that two readers understand differently is a second request for one of them.
//! So sizes, line ends and trailers are judged before a parser sees them. Data is skipped, not
//! looked at.

use super::head::{Scan, Step};
use super::limits::Limits;
use super::{Refusal, is_value_byte};

/// Where in a body the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In a size, behind so many digits.
    Size(u8),
    Extension,
    SizeEnd,
    Data,
    DataEnd,
    DataFeed,
    Trailers,
    Done,
}

/// Digits of one size: as many as a 64-bit number has.
const DIGITS: u8 = 16;

/// Bytes of all extensions of a body. Nobody uses them; without a bound they are a way to send
/// much and say nothing.
const EXTENSIONS: u32 = 4096;

/// Looks for the end of a body in chunks.
#[derive(Debug, Clone)]
pub struct Chunks {
    at: At,
    seen: usize,
    size: u64,
    total: u64,
    extensions: u32,
    trailers: Scan,
    name: Vec<u8>,
    limits: Limits,
    refused: Option<Refusal>,
}

/// What a trailer must not say: how the request is framed, where it goes, who asks.
const FORBIDDEN: [&[u8]; 11] = [
    b"authorization",
    b"connection",
    b"content-encoding",
    b"content-length",
    b"cookie",
    b"expect",
    b"host",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

impl Chunks {
    /// A scan that stands before the first byte of a body.
    #[must_use]
    pub fn new(limits: Limits) -> Chunks {
        Chunks {
            at: At::Size(0),
            seen: 0,
            size: 0,
            total: 0,
            extensions: 0,
            trailers: Scan::trailers(limits),
            name: Vec::new(),
            limits,
            refused: None,
        }
    }

    /// How many bytes have been looked at, with the one that was refused.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// Takes the next bytes. After the body's end, or a refusal, the answer stays the same.
    pub fn feed(&mut self, bytes: &[u8]) -> Step {
        if let Some(refusal) = self.refused {
            return Step::Refused(refusal);
        }
        let mut rest = bytes;
        while self.at != At::Done && !rest.is_empty() {
            if self.at == At::Data {
                rest = self.skip(rest);
                continue;
            }
            self.seen += 1;
            match self.next(rest[0]) {
                Ok(at) => self.at = at,
                Err(refusal) => {
                    self.refused = Some(refusal);
                    return Step::Refused(refusal);
                }
            }
            rest = &rest[1..];
        }
        if self.at == At::Done { Step::Done(self.seen) } else { Step::NeedMore }
    }

    /// Passes over data; returns what stands behind it.
    fn skip<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let here = usize::try_from(self.size).unwrap_or(usize::MAX).min(bytes.len());
        self.seen += here;
        self.size -= here as u64;
        if self.size == 0 {
            self.at = At::DataEnd;
        }
        &bytes[here..]
    }

    fn next(&mut self, byte: u8) -> Result<At, Refusal> {
        const SIZE: Refusal = Refusal::bad("a chunk's size is not valid");
        const ENDS: Refusal = Refusal::bad("a chunk does not end where its size says");
        match (self.at, byte) {
            (At::Size(1..), b'\r') => Ok(At::SizeEnd),
            (At::Size(1..), b';') => Ok(At::Extension),
            (At::Size(DIGITS..), _) => Err(SIZE),
            (At::Size(digits), _) => {
                let digit = char::from(byte).to_digit(16).ok_or(SIZE)?;
                self.size = self.size << 4 | u64::from(digit);
                Ok(At::Size(digits + 1))
            }
            (At::Extension, b'\r') => Ok(At::SizeEnd),
            (At::Extension, _) => self.extension(byte),
            (At::SizeEnd, b'\n') => self.sized(),
            (At::SizeEnd, _) => Err(Refusal::bad("a bare CR in a chunk's line")),
            (At::DataEnd, b'\r') => Ok(At::DataFeed),
            (At::DataFeed, b'\n') => Ok(At::Size(0)),
            (At::DataEnd | At::DataFeed, _) => Err(ENDS),
            (At::Trailers, _) => self.trailer(byte),
            (at @ (At::Data | At::Done), _) => Ok(at),
        }
    }

    fn extension(&mut self, byte: u8) -> Result<At, Refusal> {
        if !is_value_byte(byte) {
            return Err(Refusal::bad("a control character in a chunk's extension"));
        }
        self.extensions += 1;
        if self.extensions > EXTENSIONS {
            return Err(Refusal::bad("the extensions of chunks are too long"));
        }
        Ok(At::Extension)
    }

    fn sized(&mut self) -> Result<At, Refusal> {
        if self.size == 0 {
            return Ok(At::Trailers);
        }
        self.total = self.total.saturating_add(self.size);
        if self.total > self.limits.body_bytes {
            return Err(Refusal { status: 413, what: "the body is over the limit body_bytes" });
        }
        Ok(At::Data)
    }

    fn trailer(&mut self, byte: u8) -> Result<At, Refusal> {
        let step = self.trailers.feed(&[byte]);
        if self.trailers.in_name() {
            // No forbidden name is longer, so that the rest need not be kept.
            if self.name.len() < 32 {
                self.name.push(byte.to_ascii_lowercase());
            }
        } else if !self.name.is_empty() {
            if FORBIDDEN.contains(&self.name.as_slice()) {
                return Err(Refusal::bad("a trailer that only a head may have"));
            }
            self.name.clear();
        }
        match step {
            Step::NeedMore => Ok(At::Trailers),
            Step::Done(_) => Ok(At::Done),
            Step::Refused(refusal) => Err(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(bytes: &[u8]) -> Step {
        Chunks::new(Limits::default()).feed(bytes)
    }

    fn status(limits: Limits, bytes: &[u8]) -> Option<u16> {
        match Chunks::new(limits).feed(bytes) {
            Step::Refused(refusal) => Some(refusal.status),
            Step::NeedMore | Step::Done(_) => None,
        }
    }

    #[test]
    fn a_body_ends_behind_its_last_chunk() {
        for body in [
            &b"0\r\n\r\n"[..],
            b"5\r\nhello\r\n0\r\n\r\n",
            b"000A;a=\"b c\"\r\n0123\r\n6789\r\n000;b\r\n\r\n",
            b"1\r\nx\r\n0\r\nVary: *\r\nX-Sum: 3\r\n\r\n",
        ] {
            assert_eq!(scan(body), Step::Done(body.len()));
            assert_eq!(scan(&[body, b"GET /"].concat()), Step::Done(body.len()));
            assert_eq!(scan(&body[..body.len() - 1]), Step::NeedMore);
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for body in [
            "\r\n",
            " 5",
            "+5",
            "-5",
            "0x5",
            "5 \r\n",
            "6_0",
            ";a\r\n",
            "g",
            "5\n",
            "5;a\n",
            "5;a\rb",
            "5\rx",
            "1\r\nxy",
            "1\r\nx\n",
            "1\r\nx\ry",
            "00000000000000001",
            "0\r\n\n",
            "0\r\nA\r\n",
            "0\r\nA : b",
            "0\r\nA: b\r\n c",
            "0\r\nA: \0",
            "0\r\nContent-Length: 3\r\n",
            "0\r\nhost:x",
            "0\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert_eq!(status(Limits::default(), body.as_bytes()), Some(400), "{body:?}");
        }
    }

    #[test]
    fn each_limit_is_reached() {
        let limits =
            Limits { body_bytes: 5, header_count: 1, header_bytes: 16, ..Limits::default() };
        assert_eq!(status(limits, b"5\r\nhello\r\n0\r\n\r\n"), None);
        assert_eq!(status(limits, b"3\r\nabc\r\n3\r\n"), Some(413));
        assert_eq!(status(limits, b"ffffffffffffffff\r\n"), Some(413));
        assert_eq!(status(limits, b"0\r\nA: b\r\nC"), Some(431));
        assert_eq!(status(limits, b"0\r\nA: 0123456789abcdef"), Some(431));
        let extension = |length: usize| [b"1;".to_vec(), b"a".repeat(length)].concat();
        assert_eq!(status(limits, &extension(4096)), None);
        assert_eq!(status(limits, &extension(4097)), Some(400));
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_lead_to_the_same_step(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    &b"5\r\nhello\r\n"[..], b"0\r\n", b"\r\n", b"A: b\r\n", b"Host: x\r\n", b"3;a", b"\n",
                ]),
                0..8,
            ),
            cut in 1usize..9,
        ) {
            let bytes = parts.concat();
            let whole = scan(&bytes);
            let mut pieces = Chunks::new(Limits::default());
            let mut last = pieces.feed(b"");
            for piece in bytes.chunks(cut) {
                last = pieces.feed(piece);
            }
            prop_assert_eq!(last, whole);
        }
    }
}
