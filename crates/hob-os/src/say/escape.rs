//! What a terminal would obey, and how it is written instead.
//!
//! Names of files, texts of errors and values of other people's files are foreign: they may hold
//! what conceals the line behind them, moves the cursor or turns the direction of text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The colours that hob itself writes. A foreign text that holds one of them can colour itself,
/// and nothing else: none of them conceals.
const COLOURS: [&str; 8] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[7m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[36m",
];

/// What stays of a text besides its letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Nothing: a name within a line.
    Within,
    /// Line ends and tabs.
    Lines,
    /// Line ends, tabs, and hob's own colours.
    Coloured,
}

/// Whether a terminal, or who shows text, would obey the character: control characters, and what
/// turns the direction of text or ends a line unseen.
#[must_use]
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text with escapes in the place of whatever would be obeyed.
#[must_use]
pub fn escaped(text: &str, layout: Layout) -> Cow<'_, str> {
    let Some(first) = text.find(|each| is_escaped(each, layout)) else {
        return Cow::Borrowed(text);
    };
    let (plain, mut rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 32);
    shown.push_str(plain);
    while let Some(character) = rest.chars().next() {
        let own = COLOURS.iter().find(|own| layout == Layout::Coloured && rest.starts_with(**own));
        let taken = match own {
            Some(own) => {
                shown.push_str(own);
                own.len()
            }
            None => {
                if is_escaped(character, layout) {
                    shown.extend(character.escape_default());
                } else {
                    shown.push(character);
                }
                character.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    Cow::Owned(shown)
}

fn is_escaped(character: char, layout: Layout) -> bool {
    let stays = match layout {
        Layout::Within => false,
        Layout::Lines | Layout::Coloured => matches!(character, '\n' | '\t'),
    };
    is_obeyed(character) && !stays
}

/// The same of bytes: those that are no text are written as escapes, too.
#[must_use]
pub fn escaped_bytes(bytes: &[u8], layout: Layout) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&escaped(chunk.valid(), layout));
        for byte in chunk.invalid() {
            // Nothing fails to be written into a string.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// JSON with the escapes of JSON for what would be obeyed, which only stands within its strings.
/// Whoever parses it reads what was there before.
#[must_use]
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    if !json.contains(|each| is_escaped(each, Layout::Lines)) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 32);
    for character in json.chars() {
        if is_escaped(character, Layout::Lines) {
            // All of them have at most four digits.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every() -> String {
        (0..=0x0010_ffff).filter_map(char::from_u32).collect()
    }

    #[test]
    fn only_layout_and_own_colours_are_left() {
        let hostile = "a\u{1b}[8mb\u{1b}[31mc\r\n\t\u{9b}2J\u{202e}d\u{7f}ü漢";
        for (layout, want) in [
            (Layout::Within, "a\\u{1b}[8mb\\u{1b}[31mc\\r\\n\\t\\u{9b}2J\\u{202e}d\\u{7f}ü漢"),
            (Layout::Lines, "a\\u{1b}[8mb\\u{1b}[31mc\\r\n\t\\u{9b}2J\\u{202e}d\\u{7f}ü漢"),
            (Layout::Coloured, "a\\u{1b}[8mb\u{1b}[31mc\\r\n\t\\u{9b}2J\\u{202e}d\\u{7f}ü漢"),
        ] {
            assert_eq!(escaped(hostile, layout), want);
        }
        assert!(!escaped(&every(), Layout::Within).contains(is_obeyed));
        assert!(matches!(escaped("plain ü漢", Layout::Within), Cow::Borrowed(_)));
    }

    #[test]
    fn bytes_that_are_no_text_can_be_read() {
        let shown = escaped_bytes(b"a\xff\x1b[2J\xe2\x82b\n", Layout::Within);
        assert_eq!(shown, "a\\xff\\u{1b}[2J\\xe2\\x82b\\n");
    }

    #[test]
    fn json_stays_json() {
        let shown = escaped_json("{\"a\\\\\u{9b}\": \"\u{202e}\u{7f}ü\"}\n");
        assert_eq!(shown, "{\"a\\\\\\u009b\": \"\\u202e\\u007fü\"}\n");
        let obeyed = every().chars().filter(|each| is_obeyed(*each)).max();
        assert!(obeyed.is_some_and(|last| u32::from(last) <= 0xffff), "four digits");
    }
}
