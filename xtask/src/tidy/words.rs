//! One thing, one word: names that the design dropped, in types and files.

use super::Found;
use super::source::{Language, Source};

/// Words that say nothing (or that another word stands for), and what to do instead.
const DROPPED: [(&str, &str); 11] = [
    ("manager", "say what it owns"),
    ("handler", "say what it does"),
    ("helper", "put it beside what it helps"),
    ("helpers", "put it beside what it helps"),
    ("util", "say what it is for"),
    ("utils", "say what it is for"),
    ("common", "say what is shared"),
    ("impl", "name the thing itself"),
    ("data", "say which"),
    ("info", "say which"),
    ("template", "the word is zygote"),
];
const DROPPED_TOO: [(&str, &str); 2] =
    [("door", "the word is front"), ("master", "the word is zygote, or daemon")];

/// What begins the declaration of a type or module, in Rust and in Python.
const DECLARES: [&str; 6] = ["struct ", "enum ", "trait ", "type ", "mod ", "class "];

/// Checks one file's name and the types that it declares.
pub(crate) fn check(source: &Source, found: &mut Found) {
    if source.language == Language::Other {
        return;
    }
    if let Some((word, instead)) = dropped_in(source.stem()) {
        found.fault(source, 1, &format!("\"{word}\" is not used as a name: {instead}"));
    }
    for line in source.lines() {
        let Some(name) = declared(line.code) else { continue };
        // A program's message handler is one: the design keeps the word for it.
        if source.path.starts_with("crates/hob-actor/") && name.ends_with("Handler") {
            continue;
        }
        // hyper's trait of a body names it.
        if source.path.starts_with("crates/hob-http/") && name == "Data" {
            continue;
        }
        if let Some((word, instead)) = dropped_in(name) {
            let text = format!("{name}: \"{word}\" is not used as a name: {instead}");
            found.fault(source, line.number, &text);
        }
    }
}

/// The name that a line declares.
fn declared(code: &str) -> Option<&str> {
    let code = code.trim_start();
    let code =
        code.strip_prefix("pub(crate) ").or(code.strip_prefix("pub(super) ")).unwrap_or(code);
    let code = code.strip_prefix("pub ").unwrap_or(code);
    let rest = DECLARES.into_iter().find_map(|word| code.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end])
}

/// The first dropped word in a name, whether it is written CamelCase, snake_case or kebab-case.
fn dropped_in(name: &str) -> Option<(&'static str, &'static str)> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c == '-' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' && c != '-' {
            words.last_mut()?.extend(c.to_lowercase());
        }
    }
    let dropped = DROPPED.iter().chain(&DROPPED_TOO);
    dropped.into_iter().find(|(word, _)| words.iter().any(|have| have == word)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_words_are_found_whole_only() {
        for bad in ["PoolManager", "SignalHandler", "test_utils", "DataPart", "zygote-template"] {
            assert!(dropped_in(bad).is_some(), "{bad}");
        }
        for good in ["Database", "Information", "Handle", "Indoor", "Common2Go", "WorkerPart"] {
            assert!(dropped_in(good).is_none(), "{good}");
        }
    }

    #[test]
    fn names_are_read_off_their_declarations() {
        assert_eq!(declared("pub(crate) struct Found<'a> {"), Some("Found"));
        assert_eq!(declared("    class Zygote(object):"), Some("Zygote"));
        assert_eq!(declared("let structure = 1;"), None);
    }
}
