//! Bytes of ours in a header, which is a line of visible characters. They are read as a path of HTTP
//! is: by [`crate::http::paths::decode`].

/// The bytes, with all that is no visible character of ASCII, and `%`, as `%` and two hex digits. A
/// space is left where it is not at an end.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let last = bytes.len().saturating_sub(1);
    let mut out = String::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        let is_inner_space = *byte == b' ' && at > 0 && at < last;
        if (byte.is_ascii_graphic() && *byte != b'%') || is_inner_space {
            out.push(char::from(*byte));
        } else {
            escape(&mut out, *byte);
        }
    }
    out
}

fn escape(out: &mut String, byte: u8) {
    out.push('%');
    for half in [byte >> 4, byte & 15] {
        out.push(char::from_digit(u32::from(half), 16).unwrap_or('0').to_ascii_uppercase());
    }
}

/// The bytes as one word of a subject: letters, digits, `-` and `_`, and all else as `%` and two hex
/// digits.
#[must_use]
pub fn subject(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'-' | b'_' => out.push(char::from(*byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(*byte)),
            _ => escape(&mut out, *byte),
        }
    }
    out
}

/// The first line of a text, for a header: visible characters of ASCII, and not many.
#[must_use]
pub fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim();
    let visible = |char: char| if char == ' ' || char.is_ascii_graphic() { char } else { '?' };
    first.chars().take(200).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::paths::decode;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let text = encode(&bytes);
            prop_assert!(text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
            prop_assert_eq!(text.trim(), text.as_str());
            prop_assert_eq!(decode(text.as_bytes()), bytes);
        }

        #[test]
        fn any_text_has_a_line(text in ".*") {
            prop_assert!(line(&text).len() <= 200);
        }
    }
}
