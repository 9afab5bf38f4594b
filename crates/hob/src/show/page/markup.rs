//! Bytes as text within XML and HTML.

use hob_os::say::is_obeyed;

/// The bytes as characters that both allow. Control characters, what turns the direction of
/// text, and what is not UTF-8 are written as escapes (`\x1b`), so that they can be read and do
/// nothing; a backslash is left as it is.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + bytes.len() / 8);
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '&' => out += "&amp;",
                '<' => out += "&lt;",
                '>' => out += "&gt;",
                '"' => out += "&quot;",
                '\'' => out += "&#39;",
                '\n' | '\t' => out.push(character),
                '\r' => out += "\\r",
                '\0'..' ' | '\u{7f}' => out += &format!("\\x{:02x}", u32::from(character)),
                // The two are characters that XML has not.
                _ if is_obeyed(character) || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                    out.extend(character.escape_unicode());
                }
                _ => out.push(character),
            }
        }
        for byte in chunk.invalid() {
            out += &format!("\\x{byte:02x}");
        }
    }
    out
}

/// The same within a quoted attribute, where a line end would be read as a space.
pub(crate) fn attribute(bytes: &[u8]) -> String {
    text(bytes).replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed_and_everything_can_be_read() {
        for (bytes, want) in [
            (&b"plain \\ text\n\tx"[..], "plain \\ text\n\tx"),
            (b"</script><b a='\"'>&", "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;"),
            (b"\x1b[31m\0\r\x7f", "\\x1b[31m\\x00\\r\\x7f"),
            (b"a\xff\xe2\x82b", "a\\xff\\xe2\\x82b"),
            ("é漢\u{9b}\u{202e}\u{ffff}".as_bytes(), "é漢\\u{9b}\\u{202e}\\u{ffff}"),
        ] {
            assert_eq!(text(bytes), want);
        }
        assert_eq!(attribute(b"a\nb\tc"), "a\\nb\\tc");
        // Every character that is left is one that XML 1.0 has.
        let every: String = (0..=0x0010_ffff).filter_map(char::from_u32).collect();
        let shown = text(every.as_bytes());
        assert!(!shown.contains(|each| is_obeyed(each) && !matches!(each, '\n' | '\t')));
        let legal = |c: char| matches!(c, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(shown.chars().all(legal));
    }
}
