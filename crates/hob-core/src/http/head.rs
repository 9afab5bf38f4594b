//! A request's head as raw bytes: where it ends, and whether it is written as it has to be.
//!
//! Parsers forgive: a bare LF as an end of a line, a folded line, a second length that they drop.
//! Two parsers that forgive differently read two different requests. So the bytes are judged
//! before any parser sees them. [`Scan`] takes them in pieces of any size and looks at each once;
//! [`parse`] takes a whole head apart for [`super::filter`].

use super::filter::{Head, Version};
use super::limits::Limits;
use super::{
    BAD_NAME, HEADERS_TOO_LONG, Refusal, TARGET_TOO_LONG, TOO_MANY_HEADERS, is_token,
    is_token_byte, is_value_byte,
};

/// What a piece of a head has led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The head goes on.
    NeedMore,
    /// The head is whole: so many bytes of all that were fed, from the first one.
    Done(usize),
    /// No request may be read from this connection any more.
    Refused(Refusal),
}

/// Where in a head the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    StartEnd,
    Line,
    LineEnd,
    Field,
    Name,
    Value,
    ValueEnd,
    End,
    Done,
}

/// The words of a request line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Method,
    Target,
    Version,
}

/// The bytes of a request line beside its target: a method, two spaces, a version.
const AROUND_TARGET: u64 = 64;

/// Looks for the end of a head, byte by byte.
#[derive(Debug, Clone)]
pub struct Scan {
    at: At,
    seen: usize,
    line: u64,
    headers: u64,
    fields: u64,
    skipped: bool,
    word: Word,
    /// How many bytes the word has.
    in_word: usize,
    in_query: bool,
    limits: Limits,
    refused: Option<Refusal>,
}

impl Scan {
    /// A scan that stands before the first byte of a head.
    #[must_use]
    pub fn new(limits: Limits) -> Scan {
        Scan {
            at: At::Start,
            seen: 0,
            line: 0,
            headers: 0,
            fields: 0,
            skipped: false,
            word: Word::Method,
            in_word: 0,
            in_query: false,
            limits,
            refused: None,
        }
    }

    /// A scan of the trailers behind a body in chunks, which are written as headers are.
    pub(super) fn trailers(limits: Limits) -> Scan {
        Scan { at: At::Field, ..Scan::new(limits) }
    }

    /// Whether the last byte belongs to a header's name.
    pub(super) fn in_name(&self) -> bool {
        self.at == At::Name
    }

    /// How many bytes have been looked at, with the one that was refused.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// Takes the next bytes. After the head's end, or a refusal, the answer stays the same.
    pub fn feed(&mut self, bytes: &[u8]) -> Step {
        if let Some(refusal) = self.refused {
            return Step::Refused(refusal);
        }
        for byte in bytes {
            if self.at == At::Done {
                break;
            }
            self.seen += 1;
            match self.next(*byte) {
                Ok(at) => self.at = at,
                Err(refusal) => {
                    self.refused = Some(refusal);
                    return Step::Refused(refusal);
                }
            }
        }
        if self.at == At::Done { Step::Done(self.seen) } else { Step::NeedMore }
    }

    /// Whether a byte of a request has been seen; an empty line in front is none.
    #[must_use]
    pub fn begun(&self) -> bool {
        !matches!(self.at, At::Start | At::StartEnd)
    }

    fn next(&mut self, byte: u8) -> Result<At, Refusal> {
        match self.at {
            At::Start | At::Line => self.in_line(byte),
            // Old clients end a body with an empty line that no length counts.
            At::StartEnd => {
                self.skipped = true;
                line_feed(byte, At::Start)
            }
            At::LineEnd => line_feed(byte, At::Field),
            At::Field | At::Name | At::Value | At::ValueEnd => self.in_field(byte),
            At::End => line_feed(byte, At::Done),
            At::Done => Ok(At::Done),
        }
    }

    fn in_line(&mut self, byte: u8) -> Result<At, Refusal> {
        let first = self.at == At::Start;
        match byte {
            b'\r' if first && !self.skipped => Ok(At::StartEnd),
            b'\r' if first => Err(Refusal::bad("empty lines in front of the request")),
            b'\r' if self.word == Word::Version && self.in_word == VERSION.len() => Ok(At::LineEnd),
            b'\r' => Err(LINE),
            b'\n' => Err(BARE_LF),
            _ if byte.is_ascii_control() => {
                Err(Refusal::bad("a control character in the request line"))
            }
            // Clients encode them. The parser behind takes none, and says nothing.
            b'<' | b'>' => Err(Refusal::bad("a < or > in the target, which is written %3C or %3E")),
            b'"' if self.in_query => {
                Err(Refusal::bad("a quote in the target's query, which is written %22"))
            }
            _ => {
                self.in_query |= byte == b'?';
                self.line += 1;
                if self.line > self.limits.target_bytes.saturating_add(AROUND_TARGET) {
                    return Err(TARGET_TOO_LONG);
                }
                self.in_words(byte)?;
                Ok(At::Line)
            }
        }
    }

    /// The parser behind answers by itself where a word is not valid, and it looks at each byte that
    /// it is given: so none of these may reach it.
    fn in_words(&mut self, byte: u8) -> Result<(), Refusal> {
        if byte == b' ' {
            self.word = match self.word {
                Word::Method if self.in_word > 0 => Word::Target,
                Word::Target if self.in_word > 0 => Word::Version,
                Word::Method | Word::Target | Word::Version => return Err(LINE),
            };
            self.in_word = 0;
            return Ok(());
        }
        let fits = match self.word {
            Word::Method if !is_token_byte(byte) => return Err(BAD_METHOD),
            Word::Method | Word::Target => true,
            Word::Version if self.in_word == VERSION.len() - 1 => matches!(byte, b'0' | b'1'),
            Word::Version => VERSION.get(self.in_word) == Some(&byte),
        };
        if !fits {
            // What is behind it is not waited for; a version that begins with 0 is written otherwise.
            let is_number = VERSION.get(self.in_word).is_some_and(u8::is_ascii_digit);
            let is_other = is_number && matches!(byte, b'1'..=b'9');
            return Err(if is_other { OTHER_VERSION } else { BAD_VERSION });
        }
        self.in_word += 1;
        Ok(())
    }

    fn in_field(&mut self, byte: u8) -> Result<At, Refusal> {
        if self.at == At::Field && byte == b'\r' {
            return Ok(At::End);
        }
        self.headers += 1;
        if self.headers > self.limits.header_bytes {
            return Err(HEADERS_TOO_LONG);
        }
        match (self.at, byte) {
            (At::ValueEnd, _) => line_feed(byte, At::Field),
            (_, b'\n') => Err(BARE_LF),
            (At::Value, b'\r') => Ok(At::ValueEnd),
            (At::Value, _) if is_value_byte(byte) => Ok(At::Value),
            (At::Value, _) => Err(Refusal::bad("a control character in a header's value")),
            (At::Field, b' ' | b'\t') => Err(Refusal::bad("a folded header")),
            (At::Name, b' ' | b'\t') => Err(Refusal::bad("a space before a header's colon")),
            (At::Name, b':') => Ok(At::Value),
            (At::Name, b'\r') => Err(Refusal::bad("a header without a colon")),
            (at, _) if is_token_byte(byte) => {
                if at == At::Field {
                    self.fields += 1;
                    if self.fields > self.limits.header_count {
                        return Err(TOO_MANY_HEADERS);
                    }
                }
                Ok(At::Name)
            }
            _ => Err(BAD_NAME),
        }
    }
}

fn line_feed(byte: u8, next: At) -> Result<At, Refusal> {
    if byte == b'\n' { Ok(next) } else { Err(Refusal::bad("a bare CR in the head")) }
}

/// A version that is spoken here, but for its last digit.
const VERSION: &[u8] = b"HTTP/1.1";
const LINE: Refusal = Refusal::bad("the request line is not METHOD TARGET VERSION");
const BARE_LF: Refusal = Refusal::bad("a bare LF in the head");
const BAD_METHOD: Refusal = Refusal::bad("the method is not valid");
const BAD_VERSION: Refusal = Refusal::bad("the version is not valid");
const OTHER_VERSION: Refusal =
    Refusal { status: 505, what: "this version of HTTP is not spoken here" };

/// Takes apart the bytes of a head for which [`Scan`] has said [`Step::Done`].
///
/// # Errors
/// If the request line is not a method, a target and a version that is spoken here.
pub fn parse(head: &[u8]) -> Result<Head<'_, Fields<'_>>, Refusal> {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let end = head.iter().position(|byte| *byte == b'\r').unwrap_or(head.len());
    let (line, fields) = head.split_at(end);
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(LINE);
    };
    if !is_token(method) {
        return Err(BAD_METHOD);
    }
    if target.is_empty() {
        return Err(LINE);
    }
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(OTHER_VERSION);
        }
        _ => return Err(BAD_VERSION),
    };
    let headers = Fields { rest: fields.strip_prefix(b"\r\n").unwrap_or(fields) };
    Ok(Head { version, method, target, headers })
}

/// The headers of a scanned head: names and values, as received, without the space round values.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.rest.iter().position(|byte| *byte == b'\r')?;
        let line = &self.rest[..end];
        let colon = line.iter().position(|byte| *byte == b':')?;
        self.rest = self.rest.get(end + 2..).unwrap_or_default();
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(bytes: &[u8]) -> Step {
        Scan::new(Limits::default()).feed(bytes)
    }

    fn refused(bytes: &[u8]) -> &'static str {
        match scan(bytes) {
            Step::Refused(refusal) => {
                assert_eq!(refusal.status, 400);
                refusal.what
            }
            other @ (Step::NeedMore | Step::Done(_)) => {
                panic!("{other:?} for {}", String::from_utf8_lossy(bytes))
            }
        }
    }

    #[test]
    fn a_head_ends_with_an_empty_line() {
        let head = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(scan(head), Step::Done(head.len()));
        assert_eq!(scan(b"GET / HTTP/1.0\r\n\r\nbody"), Step::Done(18));
        assert_eq!(scan(b"\r\nGET / HTTP/1.0\r\n\r\n"), Step::Done(20));
        assert_eq!(scan(&head[..head.len() - 1]), Step::NeedMore);
        assert_eq!(scan(b""), Step::NeedMore);
    }

    #[test]
    fn what_parsers_forgive_is_refused() {
        assert_eq!(refused(b"GET / HTTP/1.1\n"), "a bare LF in the head");
        assert_eq!(refused(b"\nGET"), "a bare LF in the head");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA: b\nC: d"), "a bare LF in the head");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA: b\r\n\n"), "a bare LF in the head");
        assert_eq!(refused(b"GET / HTTP/1.1\rA"), "a bare CR in the head");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA: b\rC"), "a bare CR in the head");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA: b\r\n\rC"), "a bare CR in the head");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA: b\r\n c"), "a folded header");
        assert_eq!(refused(b"GET / HTTP/1.1\r\n\tc"), "a folded header");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA : b"), "a space before a header's colon");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nAb\r\n"), "a header without a colon");
        assert_eq!(refused(b"GET / HTTP/1.1\r\n: b"), "a header's name is not valid");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA\0"), "a header's name is not valid");
        assert_eq!(refused(b"GET / HTTP/1.1\r\nA: \0"), "a control character in a header's value");
        assert_eq!(refused(b"GET /\0"), "a control character in the request line");
        assert!(refused(b"GET /a<b").contains("written %3C"));
        assert!(refused(b"GET /a\"b?c=\"").contains("written %22"));
        assert_eq!(refused(b"\r\n\r\n"), "empty lines in front of the request");
    }

    #[test]
    fn a_refusal_is_final() {
        let mut scan = Scan::new(Limits::default());
        let first = scan.feed(b"GET / HTTP/1.1\n");
        assert!(matches!(first, Step::Refused(_)));
        assert_eq!(scan.feed(b"GET / HTTP/1.1\r\n\r\n"), first);
    }

    #[test]
    fn each_limit_is_reached_at_its_value() {
        let limits =
            Limits { header_count: 2, header_bytes: 16, target_bytes: 4, ..Limits::default() };
        let status = |bytes: &[u8]| match Scan::new(limits).feed(bytes) {
            Step::Refused(refusal) => Some(refusal.status),
            Step::NeedMore | Step::Done(_) => None,
        };
        assert_eq!(status(b"GET / HTTP/1.1\r\nA: b\r\nC: d\r\n\r\n"), None);
        assert_eq!(status(b"GET / HTTP/1.1\r\nA: b\r\nC: d\r\nE"), Some(431));
        assert_eq!(status(b"GET / HTTP/1.1\r\nABC: 01234567\r"), None);
        assert_eq!(status(b"GET / HTTP/1.1\r\nABC: 0123456789\r\n"), Some(431));
        assert_eq!(status(&b"G".repeat(68)), None);
        assert_eq!(status(&b"G".repeat(69)), Some(414));
    }

    #[test]
    fn a_head_is_taken_apart() {
        let head = parse(b"PUT /a?b HTTP/1.1\r\nHost:x\r\nA: \t b c\t\r\nEmpty:\r\n\r\n").unwrap();
        assert_eq!(
            (head.version, head.method, head.target),
            (Version::Http11, &b"PUT"[..], &b"/a?b"[..])
        );
        let headers: Vec<_> = head.headers.collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"Host", b"x"), (b"A", b"b c"), (b"Empty", b"")];
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_request_line_has_three_words() {
        for (line, status) in [
            ("GET HTTP/1.1", 400),
            ("GET / b HTTP/1.1", 400),
            ("GET  / HTTP/1.1", 400),
            (" GET / HTTP/1.1", 400),
            ("GET  HTTP/1.1", 400),
            ("GET / FTP/1.1", 400),
            ("GET / HTTP/111", 400),
            ("GET / http/1.1", 400),
            ("GET /", 400),
            ("GET / HTTP/1.2", 505),
            ("PRI * HTTP/2.0", 505),
            ("GET: / HTTP/1.1", 400),
        ] {
            let refusal = parse(format!("{line}\r\n\r\n").as_bytes()).unwrap_err();
            assert_eq!(refusal.status, status, "{line}: {}", refusal.what);
        }
    }

    #[test]
    fn a_request_line_is_refused_before_the_byte_that_the_parser_would_answer() {
        for (line, good, status) in [
            (&b"GET / HTTP/1.2\r\n"[..], 13, 505),
            (b"PRI * HTTP/2.0\r\n", 11, 505),
            (b"GET / HTTP/x.1\r\n", 11, 400),
            (b"GET / HTTP/1.1x\r\n", 14, 400),
            (b"GET / HTTP/1\r\n", 12, 400),
            (b"GET / http/1.1\r\n", 6, 400),
            (b"GET /\r\n", 5, 400),
            (b"GET  / HTTP/1.1\r\n", 4, 400),
            (b"GET / b HTTP/1.1\r\n", 6, 400),
            (b"GET / HTTP/1.1 \r\n", 14, 400),
            (b"G:T / HTTP/1.1\r\n", 1, 400),
        ] {
            let mut scan = Scan::new(Limits::default());
            let text = String::from_utf8_lossy(line);
            match scan.feed(line) {
                Step::Refused(refusal) => {
                    assert_eq!((scan.seen() - 1, refusal.status), (good, status), "{text}");
                }
                other @ (Step::NeedMore | Step::Done(_)) => panic!("{other:?} for {text}"),
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_lead_to_the_same_step(
            parts in prop::collection::vec(
                prop::sample::select(vec![&b"GET / HTTP/1.1\r\n"[..], b"A: b\r\n", b"\r\n", b"\r", b"\n", b" ", b"x"]),
                0..8,
            ),
            cut in 1usize..9,
        ) {
            let bytes = parts.concat();
            let whole = scan(&bytes);
            let mut pieces = Scan::new(Limits::default());
            let mut last = pieces.feed(b"");
            for piece in bytes.chunks(cut) {
                last = pieces.feed(piece);
            }
            prop_assert_eq!(last, whole);
        }
    }
}
