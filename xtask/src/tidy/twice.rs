//! What stands on two pages: twelve words in a row. A sentence that is said twice is corrected once.
//!
//! Deliberately not here: the same said in other words, and blocks of code, which may be alike.

use std::collections::BTreeMap;

use super::Found;
use super::source::Source;

/// As many words in a row as no two pages share.
const ROW: usize = 12;
/// Pages outside of `docs/`.
const PAGES: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];

/// Checks all pages against each other.
pub(crate) fn check(sources: &[Source], found: &mut Found) {
    let is_page = |source: &&Source| {
        let is_doc = source.path.starts_with("docs/") && source.path.ends_with(".md");
        is_doc || PAGES.contains(&source.path.as_str())
    };
    let mut known: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for source in sources.iter().filter(is_page) {
        let mut told = 0;
        for (line, words) in rows(&source.text) {
            match known.get(&words) {
                Some((page, _)) if *page == source.path => {}
                Some((page, at)) if told != line => {
                    told = line;
                    let text = format!("\"{words}\" stands in {page}:{at} too: link to it");
                    found.fault(source, line, &text);
                }
                Some(_) => {}
                None => _ = known.insert(words, (&source.path, line)),
            }
        }
    }
}

/// Each row of words of a line, with the line's number. Of a link its words count.
fn rows(text: &str) -> Vec<(usize, String)> {
    let mut rows = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let words: Vec<String> = line
                .split("](")
                .enumerate()
                .flat_map(|(part, text)| {
                    match (part, text.split_once(')')) {
                        (1.., Some((_, behind))) => behind,
                        _ => text,
                    }
                    .split_whitespace()
                })
                .map(|word| word.chars().filter(|one| one.is_alphanumeric()).collect::<String>())
                .map(|word| word.to_lowercase())
                .filter(|word| !word.is_empty())
                .collect();
            rows.extend(words.windows(ROW).map(|row| (index + 1, row.join(" "))));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::source::made_up;
    use super::*;

    const TWELVE: &str = "one two three four five six seven eight nine ten eleven twelve";

    fn faults(pages: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = pages.iter().map(|(path, text)| made_up(path, text)).collect();
        let mut found = Found::default();
        check(&sources, &mut found);
        found.faults
    }

    #[test]
    fn what_two_pages_say_in_the_same_words_is_found_once_a_line() {
        let other = format!("x\nSo: One, [two](a.md#two) {} and more.", &TWELVE[8..]);
        let found = faults(&[("docs/a.md", TWELVE), ("docs/b.md", &other)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("docs/b.md:2: \"one two three")
                && found[0].contains("docs/a.md:1 too")
        );
    }

    #[test]
    fn a_page_may_repeat_itself_and_code_and_eleven_words_are_alike() {
        let code = format!("```\n{TWELVE}\n```");
        let twice = format!("{TWELVE}\n{TWELVE}");
        let eleven = TWELVE.strip_suffix(" twelve").unwrap();
        for other in [("docs/a.md", code.as_str()), ("docs/b.md", eleven), ("src/a.rs", TWELVE)] {
            assert_eq!(faults(&[("docs/c.md", &twice), other]), [""; 0]);
        }
    }
}
