//! What a reason code means and what to do, in full: the rows of `docs/reason-codes.md`, which is
//! the one place where they are written (`hob why --code`).
//!
//! Deliberately not here: the sentence that a receipt is shown with (`reasons`).

use crate::show::style::{Look, Tone};
use crate::show::text::{printable, wrap};

/// Its tables are all of codes.
const PAGE: &str = include_str!("../../../../../docs/reason-codes.md");
/// Where no terminal tells.
const COLUMNS: usize = 80;

/// One row: the title of its table, the code, and each further cell with its column's name.
#[derive(Debug)]
struct Row {
    title: &'static str,
    code: &'static str,
    cells: Vec<(&'static str, &'static str)>,
}

/// All codes, in the page's order; one that stands in two tables comes twice.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    rows().into_iter().map(|row| row.code)
}

/// Everything that the page says of a code; `None` if it says nothing.
pub(crate) fn explained(code: &str, look: &Look) -> Option<String> {
    let columns = look.columns.unwrap_or(COLUMNS);
    let mut text = String::new();
    for row in rows().into_iter().filter(|row| row.code == code) {
        if !text.is_empty() {
            text.push('\n');
        }
        let title = format!("({})", row.title.to_lowercase());
        text +=
            &format!("{} {}\n", look.paint(Tone::Title, row.code), look.paint(Tone::Dim, &title));
        for (name, cell) in row.cells.iter().filter(|(_, cell)| !cell.is_empty()) {
            let plain = printable(&unlinked(cell), look.charset);
            for line in wrap(&format!("{name}: {plain}"), "  ", columns, look.charset) {
                text += &format!("{line}\n");
            }
        }
    }
    (!text.is_empty()).then_some(text)
}

fn rows() -> Vec<Row> {
    let (mut title, mut names) = ("", Vec::new());
    let mut rows = Vec::new();
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            title = heading;
        }
        let Some(row) = line.strip_prefix("| ").and_then(|line| line.strip_suffix('|')) else {
            continue;
        };
        let mut cells = row.split('|').map(str::trim);
        let first = cells.next().unwrap_or_default();
        match first.strip_prefix('`').and_then(|code| code.strip_suffix('`')) {
            Some(code) => {
                rows.push(Row { title, code, cells: names.iter().copied().zip(cells).collect() })
            }
            None => names = cells.collect(),
        }
    }
    rows
}

/// Markdown without its links: the words of each, and a page of its own in brackets.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, behind)) = link.split_once("](") else { break };
        let Some((target, after)) = behind.split_once(')') else { break };
        let page = target.split('#').next().unwrap_or_default();
        plain += before;
        plain += words;
        if !page.is_empty() && page != words {
            plain += &format!(" (docs/{page})");
        }
        rest = after;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::super::{COLD, FALLBACK, NOT_GIVEN, NOT_RUN, REFUSED, WARM};
    use super::*;
    use crate::show::style::{Colour, Figures};
    use crate::show::text::Charset;

    #[test]
    fn every_code_is_explained_in_words_that_need_no_page() {
        let look = Look {
            colour: Colour::Off,
            charset: Charset::Unicode,
            figures: Figures::Drawn,
            columns: Some(72),
        };
        for (code, _) in [WARM, COLD, REFUSED, NOT_RUN, NOT_GIVEN, FALLBACK].into_iter().flatten() {
            let text = explained(code, &look).unwrap_or_else(|| panic!("{code}: nothing"));
            assert!(text.contains("\n  means: "), "{text}");
            for bad in ["](", "see below", "as above", "|"] {
                assert!(!text.contains(bad), "{bad}: {text}");
            }
            assert!(text.lines().all(|line| line.chars().count() <= 72), "{text}");
        }
        assert!(explained("a-later-code", &look).is_none());
        assert!(explained("", &look).is_none());
        let two = explained("descriptors", &look).unwrap();
        assert!(
            two.starts_with("descriptors (cold)\n") && two.contains("\n\ndescriptors (fallback)\n")
        );
        assert!(two.contains("warm.md"), "{two}");
    }
}
