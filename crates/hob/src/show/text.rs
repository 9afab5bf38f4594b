//! Text in a terminal: how wide it is, how to cut it, and how to keep it from doing harm.
//!
//! The widths are Unicode's, character by character (East Asian wide and emoji: two, combining and
//! joining: none). They are for aligning columns; a terminal that differs shows a crooked table.

use hob_os::say::{Layout, escaped};
use unicode_width::UnicodeWidthChar;

/// Which characters the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// All.
    Unicode,
    /// Only ASCII: others are shown as `?`.
    Ascii,
}

/// How many columns a character takes. A control character is not shown as itself
/// ([`printable`]), and is counted as one.
fn char_width(character: char) -> usize {
    character.width().unwrap_or(1)
}

/// How many columns a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The text without anything that a terminal would obey: control characters and what turns the
/// direction of text are written as escapes. One line stays one line.
#[must_use]
pub fn printable(text: &str, charset: Charset) -> String {
    let shown = escaped(text, Layout::Within);
    match charset {
        Charset::Unicode => shown.into_owned(),
        Charset::Ascii => shown.replace(|each: char| !each.is_ascii(), "?"),
    }
}

/// What stands for the part that was cut off.
fn ellipsis(charset: Charset) -> &'static str {
    match charset {
        Charset::Unicode => "…",
        Charset::Ascii => "~",
    }
}

/// The text in at most `columns`, with a mark where its end was cut off.
#[must_use]
pub fn fit(text: &str, columns: usize, charset: Charset) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let mut kept = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += char_width(character);
        if used > columns {
            break;
        }
        kept.push(character);
    }
    kept + ellipsis(charset)
}

/// The same for a path: its beginning goes, since its end says more.
#[must_use]
pub fn fit_end(text: &str, columns: usize, charset: Charset) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let mut begin = text.len();
    let mut used = 1;
    for (at, character) in text.char_indices().rev() {
        used += char_width(character);
        if used > columns {
            break;
        }
        begin = at;
    }
    ellipsis(charset).to_owned() + &text[begin..]
}

/// The text broken at spaces, each line indented. A word that is wider than a line is cut.
#[must_use]
pub fn wrap(text: &str, indent: &str, columns: usize, charset: Charset) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = indent.to_owned();
    for word in text.split(' ') {
        // A path's end names the file, and the line in it.
        let room = columns.saturating_sub(width(indent));
        let word = match word.contains('/') {
            true => fit_end(word, room, charset),
            false => word.to_owned(),
        };
        if width(&line) + width(&word) > columns && line.len() > indent.len() {
            lines.push(line);
            line = indent.to_owned();
        }
        line += &word;
        line.push(' ');
    }
    lines.push(line);
    lines.iter().map(|line| fit(line.trim_end(), columns, charset)).collect()
}

/// Which side of a column is filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Figures.
    Right,
}

/// The text filled up with spaces to `columns`.
#[must_use]
pub fn pad(text: &str, columns: usize, align: Align) -> String {
    let fill = " ".repeat(columns.saturating_sub(width(text)));
    match align {
        Align::Left => text.to_owned() + &fill,
        Align::Right => fill + text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_a_terminals() {
        for (text, expected) in [
            ("", 0),
            ("black", 5),
            ("漢字", 4),
            ("e\u{301}", 1),
            ("🚀", 2),
            ("µ█▏…", 4),
            ("한글", 4),
            ("\u{1112}\u{1161}\u{11ab}", 2),
            ("ש\u{5bf}", 1),
            ("🈁", 2),
        ] {
            assert_eq!(width(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_cut_fits_and_never_splits_a_wide_character() {
        for (columns, expected) in
            [(0, ""), (1, "…"), (2, "…"), (3, "漢…"), (4, "漢…"), (5, "漢字…"), (6, "漢字漢")]
        {
            let cut = fit("漢字漢", columns, Charset::Unicode);
            assert_eq!(cut, expected, "{columns}");
            assert!(width(&cut) <= columns);
        }
        assert_eq!(fit_end("/srv/venv/bin/black", 10, Charset::Ascii), "~bin/black");
        assert_eq!(fit_end("漢字漢", 4, Charset::Unicode), "…漢");
        assert_eq!(pad("漢", 4, Align::Right), "  漢");
        assert_eq!(pad("toolong", 3, Align::Left), "toolong");
    }

    #[test]
    fn text_wraps_at_spaces_and_long_words_are_cut() {
        let wrapped = wrap("one two three-and-more four", "  ", 9, Charset::Unicode);
        assert_eq!(wrapped, ["  one two", "  three-…", "  four"]);
        assert_eq!(wrap("", "  ", 9, Charset::Unicode), [""]);
        let path = wrap("at /srv/a/app.py:23 ends", "  ", 12, Charset::Unicode);
        assert_eq!(path, ["  at", "  …app.py:23", "  ends"]);
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(
            printable("a\u{1b}[2J\r\n\u{9b}31m\u{202e}b\u{7f}", Charset::Unicode),
            "a\\u{1b}[2J\\r\\n\\u{9b}31m\\u{202e}b\\u{7f}"
        );
        assert_eq!(printable("ü漢\u{fffd}", Charset::Unicode), "ü漢\u{fffd}");
        assert_eq!(printable("ü漢x", Charset::Ascii), "??x");
    }
}
