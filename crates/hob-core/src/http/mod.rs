//! What an HTTP front decides before a program is asked, and after it has answered. Pure.
//!
//! In the order of a request: [`head`] reads the raw bytes of a head, [`filter`] judges it,
//! [`forwarded`] finds out who asks, [`paths`] cleans its path, [`mounts`] finds the mount, and reads what one of the kind `git` is asked, [`chunks`] follows a body in chunks.
//! [`stream`] does all of it that needs the raw bytes of a connection. [`answer`] judges what a program answers.
//! [`counts`] is what the front tells of itself, [`access`] a line of its log.
//! [`websocket`] judges a handshake on either side.
//! A parser that comes behind may be lenient: what is refused here never reaches it.

pub mod access;
pub mod answer;
pub mod chunks;
pub mod counts;
pub mod filter;
pub mod forwarded;
pub mod head;
pub mod limits;
pub mod mounts;
pub mod paths;
pub mod stream;
pub mod websocket;

/// Why a request or an answer goes no further: the status to answer with, and one plain reason.
///
/// The connection is closed behind it, since what follows on it cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// What is wrong, for the log and the answer's body.
    pub what: &'static str,
}

impl Refusal {
    /// A request that is not well-formed: 400.
    #[must_use]
    pub const fn bad(what: &'static str) -> Refusal {
        Refusal { status: 400, what }
    }
}

// What the scan of raw bytes and the filter both refuse.
const BAD_NAME: Refusal = Refusal::bad("a header's name is not valid");
const TARGET_TOO_LONG: Refusal =
    Refusal { status: 414, what: "the target is over the limit target_bytes" };
const HEADERS_TOO_LONG: Refusal =
    Refusal { status: 431, what: "the headers are over the limit header_bytes" };
const TOO_MANY_HEADERS: Refusal =
    Refusal { status: 431, what: "more headers than the limit header_count" };

/// Whether `name` may be a method or a header's name (RFC 9110, "token").
#[must_use]
pub fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_token_byte(*byte))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether `byte` may stand in a header's value: no control character but the tab.
fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// A length as `Content-Length` has it: digits only, no sign, no list.
fn length_of(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    value
        .iter()
        .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_digits_and_nothing_else() {
        assert_eq!(length_of(b"0"), Some(0));
        assert_eq!(length_of(b"00014"), Some(14));
        assert_eq!(length_of(b"18446744073709551615"), Some(u64::MAX));
        for wrong in ["", "+1", "-0", "0_1", "3, 3", "3 1", "0x1", "18446744073709551616"] {
            assert_eq!(length_of(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_has_no_separator() {
        assert!(is_token(b"X-Powered_by.1"));
        for wrong in ["", "a b", "a:b", "a/b", "gr\u{fc}n", "a\0"] {
            assert!(!is_token(wrong.as_bytes()), "{wrong:?}");
        }
    }
}
