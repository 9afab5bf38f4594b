//! Judges what a program answers before a byte of it is written.
//!
//! A wrong answer is a 502 with its reason, never a response that a client could split.

use super::filter::is_one_of;
use super::{Refusal, is_token, length_of};

/// An answer that may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Which headers are not written, by their place, ascending.
    pub dropped: Vec<usize>,
    /// The `Content-Length` to write instead of the program's; none, if there must be none, or nobody
    /// knows it.
    pub length: Option<u64>,
    /// Whether the body is written.
    pub body: bool,
}

/// They concern one connection, and this one is the front's. `content-length` is written anew.
const DROPPED: [&[u8]; 8] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// The most bytes of the headers of early hints, with what each line has beside.
pub const HINT_BYTES_MAX: usize = 16 * 1024;

/// The bytes of early hints with these headers, as a client of HTTP/1.1 reads them; `None`: they would
/// not be right, or say nothing. Headers that are not for the answer to come are left out.
pub fn hint<'a>(headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Option<Vec<u8>> {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\n".to_vec();
    let empty = bytes.len();
    for (name, value) in headers {
        if is_dropped(name, value).ok()? {
            continue;
        }
        for part in [name, b": ", value, b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    let says = bytes.len() > empty && bytes.len() <= HINT_BYTES_MAX;
    bytes.extend_from_slice(b"\r\n");
    says.then_some(bytes)
}

/// Judges an answer whose body has `body_bytes` (`None`: nobody knows before its end); `head_only` if
/// the request's method was HEAD.
///
/// # Errors
/// With the status 502 and the reason.
pub fn check_answer<'a>(
    status: u16,
    headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    body_bytes: Option<u64>,
    head_only: bool,
) -> Result<Answer, Refusal> {
    if !(200..=599).contains(&status) {
        return Err(wrong("the program's status is not a final one"));
    }
    let mut dropped = Vec::new();
    let mut said = None;
    for (place, (name, value)) in headers.into_iter().enumerate() {
        let is_dropped = is_dropped(name, value)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = length_of(value.trim_ascii())
                .ok_or(wrong("the Content-Length of the program's answer is not a number"))?;
            if said.replace(length).is_some_and(|other| other != length) {
                return Err(wrong("the program's answer has two Content-Length"));
            }
        }
        if is_dropped {
            dropped.push(place);
        }
    }
    let bodiless = matches!(status, 204 | 304);
    // A HEAD, and a 304, may say how long the body would have been.
    let body = !head_only && !bodiless;
    if body && said.zip(body_bytes).is_some_and(|(said, is)| said != is) {
        return Err(wrong("the Content-Length of the program's answer is not its body's length"));
    }
    let length = match status {
        204 => None,
        304 => said,
        _ if body => body_bytes.or(said),
        _ => said.or(body_bytes.filter(|bytes| *bytes > 0)),
    };
    Ok(Answer { dropped, length, body })
}

/// Whether a header that may be written is not.
fn is_dropped(name: &[u8], value: &[u8]) -> Result<bool, Refusal> {
    if !is_token(name) {
        return Err(wrong("a header's name in the program's answer is not valid"));
    }
    if !value.iter().all(|byte| super::is_value_byte(*byte)) {
        return Err(wrong("a control character in a header of the program's answer"));
    }
    Ok(is_one_of(name, &DROPPED))
}

const fn wrong(what: &'static str) -> Refusal {
    Refusal { status: 502, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn judge(status: u16, headers: Fields<'_>, body: u64, head: bool) -> Result<Answer, Refusal> {
        judge_any(status, headers, Some(body), head)
    }

    fn judge_any(
        status: u16,
        headers: Fields<'_>,
        body: Option<u64>,
        head: bool,
    ) -> Result<Answer, Refusal> {
        let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        check_answer(status, headers, body, head)
    }

    #[test]
    fn a_body_that_is_not_finished_has_the_length_that_is_said_or_none() {
        let length = [("content-length", "9")];
        for (status, head, said, unsaid, body) in [
            (200, false, Some(9), None, true),
            (200, true, Some(9), None, false),
            (304, false, Some(9), None, false),
            (204, false, None, None, false),
        ] {
            let with = judge_any(status, &length, None, head).unwrap();
            assert_eq!((with.length, with.body), (said, body), "{status} {head}");
            let without = judge_any(status, &[], None, head).unwrap();
            assert_eq!((without.length, without.body), (unsaid, body), "{status} {head}");
        }
    }

    #[test]
    fn an_answer_gets_its_length_and_loses_what_is_the_fronts() {
        let headers =
            [("a", "b"), ("Connection", "close"), ("content-length", "3"), ("Upgrade", "x")];
        let answer = judge(200, &headers, 3, false).unwrap();
        assert_eq!(answer, Answer { dropped: vec![1, 2, 3], length: Some(3), body: true });
        assert_eq!(judge(404, &[], 0, false).unwrap().length, Some(0));
    }

    #[test]
    fn hints_are_a_head_of_their_own_and_cannot_be_split() {
        let told: [(&[u8], &[u8]); 3] =
            [(b"link", b"</a.css>; rel=preload"), (b"Content-Length", b"3"), (b"x", b"y")];
        let bytes = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nx: y\r\n\r\n";
        assert_eq!(hint(told).unwrap(), bytes);
        assert_eq!(hint([]), None);
        assert_eq!(hint([(&b"upgrade"[..], &b"x"[..])]), None);
        for (name, value) in [("link", "a\r\n\r\nHTTP/1.1 200 OK"), ("a b", "c"), ("", "c")] {
            assert_eq!(hint([(name.as_bytes(), value.as_bytes())]), None, "{name:?}");
        }
        let long = vec![b'a'; HINT_BYTES_MAX];
        assert_eq!(hint([(&b"link"[..], &long[..])]), None);
    }

    #[test]
    fn an_answer_cannot_be_split() {
        for value in ["a\r\nSet-Cookie: b", "a\n", "\r", "\0", "\x1b"] {
            assert_eq!(judge(200, &[("a", value)], 0, false).unwrap_err().status, 502, "{value:?}");
        }
        for name in ["", "a b", "a:", "a\r\n", "\u{e9}"] {
            assert_eq!(judge(200, &[(name, "")], 0, false).unwrap_err().status, 502, "{name:?}");
        }
        for status in [0, 99, 100, 101, 199, 600, 1000] {
            assert!(judge(status, &[], 0, false).is_err(), "{status}");
        }
    }

    #[test]
    fn a_length_that_is_not_the_bodys_is_refused() {
        assert!(judge(200, &[("content-length", "4")], 3, false).is_err());
        assert!(judge(200, &[("content-length", "2")], 3, false).is_err());
        assert!(judge(200, &[("content-length", "-3")], 3, true).is_err());
        assert!(judge(200, &[("content-length", "3"), ("Content-Length", "4")], 3, false).is_err());
    }

    #[test]
    fn some_answers_have_no_body() {
        let length = [("content-length", "9")];
        let head = judge(200, &length, 0, true).unwrap();
        assert_eq!((head.length, head.body), (Some(9), false));
        assert_eq!(judge(200, &[], 0, true).unwrap().length, None);
        assert_eq!(judge(200, &[], 5, true).unwrap().length, Some(5));
        let none = judge(204, &length, 5, false).unwrap();
        assert_eq!((none.length, none.body), (None, false));
        let same = judge(304, &length, 0, false).unwrap();
        assert_eq!((same.length, same.body), (Some(9), false));
        assert_eq!(judge(304, &[], 5, false).unwrap().length, None);
    }
}
