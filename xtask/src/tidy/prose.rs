//! The sentences of the documents: words that hide which component acts, and the length of
//! decision records.
//!
//! Deliberately not here: whether a sentence is good. What stands in backticks or in a block of
//! code is what programs print and code is called, and is not looked at.

use super::Found;
use super::source::Source;

/// Pages that are held to it besides all of `docs/`.
const PAGES: [&str; 3] = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];
/// Words that are not used, and what to write instead.
const BANNED: [(&str, &str); 4] = [
    ("nobody", "name the component that does not"),
    ("whoever", "name the component"),
    ("anew", "write again, or say what is made"),
    ("afresh", "the word is spawned, or again"),
];
const RECORDS: &str = "docs/why/";
/// One line for each dependency, so that it grows with them.
const UNBOUNDED: &str = "docs/why/dependencies.md";
const RECORD_WORDS_MAX: usize = 600;

/// Checks one page.
pub(crate) fn check(source: &Source, found: &mut Found) {
    let is_page = source.path.starts_with("docs/") && source.path.ends_with(".md");
    if !is_page && !PAGES.contains(&source.path.as_str()) {
        return;
    }
    let mut is_code = false;
    for (index, line) in source.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            for (word, instead) in banned_in(line) {
                found.fault(source, index + 1, &format!("\"{word}\": {instead}"));
            }
        }
    }
    let words = words(&source.text);
    if source.path.starts_with(RECORDS) && source.path != UNBOUNDED && words > RECORD_WORDS_MAX {
        let text = format!("{words} words: a decision record has at most {RECORD_WORDS_MAX}");
        found.fault(source, 1, &text);
    }
}

/// The banned words of a line, outside of backticks.
fn banned_in(line: &str) -> Vec<(&'static str, &'static str)> {
    let prose: Vec<String> = line
        .split('`')
        .step_by(2)
        .flat_map(|part| part.split(|c: char| !c.is_alphabetic()))
        .map(str::to_lowercase)
        .collect();
    BANNED.into_iter().filter(|(banned, _)| prose.iter().any(|word| word == banned)).collect()
}

/// How many words a text has. The bars of tables are none.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::super::source::made_up;
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let mut found = Found::default();
        check(&made_up(path, text), &mut found);
        found.faults
    }

    #[test]
    fn a_banned_word_is_found_in_prose_and_not_in_code() {
        for bad in ["Nobody waits.", "made anew,", "what whoever | asks"] {
            assert_eq!(faults("docs/a.md", bad).len(), 1, "{bad}");
        }
        for good in ["`afresh` is printed", "renewed", "```\nnobody\n```\n"] {
            assert_eq!(faults("docs/a.md", good), [""; 0], "{good}");
        }
        assert_eq!(faults("crates/x/README.md", "nobody"), [""; 0]);
    }

    #[test]
    fn a_decision_record_is_bounded_and_dependencies_are_not() {
        let long = "word | ".repeat(601);
        assert_eq!(faults("docs/why/a.md", &long).len(), 1);
        assert_eq!(faults("docs/why/a.md", &"word | ".repeat(600)), [""; 0]);
        assert_eq!(faults("docs/why/dependencies.md", &long), [""; 0]);
        assert_eq!(faults("docs/a.md", &long), [""; 0]);
    }
}
