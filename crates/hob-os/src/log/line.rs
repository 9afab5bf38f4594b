//! One line of the log, as text.

use std::fmt::Write as _;

use crate::say::is_obeyed;

/// The longest text of a line; what is longer is cut, and says so.
const TEXT_MAX: usize = 1024;
/// The longest name of a thread that the kernel keeps.
const THREAD_MAX: usize = 15;

/// A line with its end. Words of its head have no spaces.
pub(super) fn line(at: &str, level: &str, category: &str, text: &str) -> Vec<u8> {
    let mut line = format!("{at} {level} {} {category} ", thread());
    push(&mut line, text);
    line.push('\n');
    line.into_bytes()
}

/// The name of this thread.
fn thread() -> String {
    let this = std::thread::current();
    let id = rustix::thread::gettid();
    match this.name() {
        Some(name) => name
            .chars()
            .take(THREAD_MAX)
            .map(|each| if each.is_ascii_graphic() { each } else { '-' })
            .collect(),
        // A `main` that is not Rust's has no name there.
        None if id == rustix::process::getpid() => "main".to_owned(),
        None => format!("thread-{}", id.as_raw_nonzero()),
    }
}

/// Text that stays in its line: what ends a line or what a terminal would obey is written as an
/// escape, and a backslash twice, so that the text can be told again.
fn push(line: &mut String, text: &str) {
    let from = line.len();
    for each in text.chars() {
        if line.len() - from >= TEXT_MAX {
            line.push('…');
            return;
        }
        if is_obeyed(each) || each == '\\' {
            let _ = write!(line, "{}", each.escape_default());
        } else {
            line.push(each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &str) -> String {
        let line = String::from_utf8(line("T", "INFO", "pool", of)).unwrap();
        let (_, text) = line.split_once(" pool ").unwrap();
        text.strip_suffix('\n').unwrap().to_owned()
    }

    #[test]
    fn a_line_stays_one_whatever_a_name_holds() {
        for (of, want) in [
            ("plain ü 漢", "plain ü 漢"),
            ("a\nb\rc\td\0", "a\\nb\\rc\\td\\u{0}"),
            ("\x1b[31mred\x7f", "\\u{1b}[31mred\\u{7f}"),
            ("back\\n", "back\\\\n"),
            ("turned \u{202e}gpj.exe\u{2028}", "turned \\u{202e}gpj.exe\\u{2028}"),
            ("", ""),
        ] {
            assert_eq!(text(of), want);
        }
        let every: String = (0..=0x0010_ffff).filter_map(char::from_u32).collect();
        for some in every.chars().collect::<Vec<_>>().chunks(500) {
            let shown = text(&some.iter().collect::<String>());
            assert!(!shown.contains(is_obeyed), "{shown:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        let shown = text(&"漢".repeat(2000));
        assert!(shown.ends_with("漢…") && shown.len() < TEXT_MAX + 8, "{}", shown.len());
        let shown = text(&"\n".repeat(TEXT_MAX));
        assert!(shown.ends_with("\\n…") && shown.len() < TEXT_MAX + 8, "{}", shown.len());
    }

    #[test]
    fn a_thread_is_told_by_a_name_of_one_word() {
        let named = std::thread::Builder::new().name("two words of it all".to_owned());
        let line = named.spawn(|| line("T", "WARN", "hosts", "x")).unwrap().join().unwrap();
        assert_eq!(line, b"T WARN two-words-of-it hosts x\n");
    }
}
