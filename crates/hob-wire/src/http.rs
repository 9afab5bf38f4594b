//! A request of HTTP in the payload of a message, and its answer in the payload of that message's
//! answer. `docs/wire.md` tells the same in words.
//!
//! ```text
//! request   u32 count, count x (u32 length, bytes), the body
//! answer    u16 status, u32 count, count x (u32 length, bytes), the body
//! ```
//! The words of a request are [`WORDS`] of its line and its place, then names and values of its
//! headers in turn; those of an answer are names and values.

use crate::cursor::{Cursor, DecodeError};

/// The words before the headers: method, target, prefix, path, query, protocol, scheme, host, port,
/// the peer's address, the peer's port.
pub const WORDS: usize = 11;
/// The most words: a hundred headers, and many that an app answers with.
pub const WORDS_MAX: u32 = 2048;

/// Appends a request.
pub fn encode_request(
    line: &[&[u8]; WORDS],
    headers: &[(&[u8], &[u8])],
    body: &[u8],
    out: &mut Vec<u8>,
) {
    let count = WORDS + 2 * headers.len();
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    let headers = headers.iter().flat_map(|(name, value)| [*name, *value]);
    for word in line.iter().copied().chain(headers) {
        out.extend_from_slice(&u32::try_from(word.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(word);
    }
    out.extend_from_slice(body);
}

/// What an app has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered<'a> {
    /// The status.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(&'a [u8], &'a [u8])>,
    /// The body, whole.
    pub body: &'a [u8],
}

impl<'a> Answered<'a> {
    /// Reads an answer.
    ///
    /// # Errors
    /// If the bytes are none.
    pub fn decode(payload: &'a [u8]) -> Result<Answered<'a>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        let status = cursor.bytes(2, "status")?;
        let status = u16::from_le_bytes([status[0], status[1]]);
        let count = cursor.u32("words")?;
        if count > WORDS_MAX {
            return Err(DecodeError::TooMany("words"));
        }
        if !count.is_multiple_of(2) {
            return Err(DecodeError::Value("words"));
        }
        let mut headers = Vec::with_capacity(count as usize / 2);
        for _ in 0..count / 2 {
            headers.push((cursor.blob("name")?, cursor.blob("value")?));
        }
        Ok(Answered { status, headers, body: cursor.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, words: &[&[u8]], body: &[u8]) -> Vec<u8> {
        let mut bytes = status.to_le_bytes().to_vec();
        bytes.extend(u32::try_from(words.len()).unwrap().to_le_bytes());
        for word in words {
            bytes.extend(u32::try_from(word.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(word);
        }
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn an_answer_is_read_to_its_last_byte() {
        let bytes = answer(404, &[b"a", b"b", b"a", b""], b"gone");
        let read = Answered::decode(&bytes).unwrap();
        assert_eq!((read.status, read.body), (404, &b"gone"[..]));
        assert_eq!(read.headers, [(&b"a"[..], &b"b"[..]), (b"a", b"")]);
        for end in 0..bytes.len() - 4 {
            assert!(Answered::decode(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn an_answer_with_half_a_header_or_too_many_is_none() {
        assert_eq!(Answered::decode(&answer(200, &[b"a"], b"")), Err(DecodeError::Value("words")));
        let many = vec![&b"a"[..]; WORDS_MAX as usize + 2];
        assert_eq!(Answered::decode(&answer(200, &many, b"")), Err(DecodeError::TooMany("words")));
    }

    #[test]
    fn a_request_is_its_words_and_its_body() {
        let line: [&[u8]; WORDS] =
            [b"GET", b"/a?b", b"", b"/a", b"b", b"HTTP/1.1", b"http", b"h", b"80", b"::1", b"9"];
        let mut bytes = Vec::new();
        encode_request(&line, &[(b"host", b"h")], b"body", &mut bytes);
        let mut cursor = Cursor::new(&bytes);
        assert_eq!(cursor.u32("").unwrap(), 13);
        let words: Vec<&[u8]> = (0..13).map(|_| cursor.blob("").unwrap()).collect();
        assert_eq!(words[..WORDS], line);
        assert_eq!((words[11], words[12], cursor.rest()), (&b"host"[..], &b"h"[..], &b"body"[..]));
    }
}
