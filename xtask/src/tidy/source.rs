//! The files of the repository as tidy sees them: path, text, and the code without its comments.
//!
//! Deliberately not a parser: a line-wise reading that is right for code in the house style. What
//! it cannot see (macros that write code, strings that span lines) the compiler's lints do.

use std::path::Path;

use anyhow::{Context, Result};

/// Folders that hold nothing of ours, or programs under test, which do odd things on purpose.
const SKIPPED: [&str; 9] = [
    ".git",
    ".venv",
    "__pycache__",
    "artifacts",
    "corpus",
    "mutants.out",
    "node_modules",
    "probes",
    "target",
];
/// What is read as text.
const TEXT: [&str; 7] = ["rs", "py", "toml", "md", "sh", "txt", "json"];

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    Other,
}

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) language: Language,
}

/// One line of code.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub(crate) number: usize,
    /// Without its comment.
    pub(crate) code: &'a str,
    /// Whether it lies in a test: a file of tests, or below `#[cfg(test)]`.
    pub(crate) tested: bool,
}

impl Source {
    /// The name without folder and ending.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.split('.').next().unwrap_or(name)
    }

    /// The folder, from the root.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Whether the whole file is a test.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self.stem() == "tests"
            || self.stem().starts_with("test_")
    }

    /// The lines of code.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let mut tested = self.is_test();
        let marker = match self.language {
            Language::Rust => "//",
            Language::Python | Language::Other => "#",
        };
        self.text.lines().enumerate().map(move |(index, line)| {
            tested |= line.trim_start().starts_with("#[cfg(test)]");
            Line { number: index + 1, code: without_comment(line, marker), tested }
        })
    }
}

/// Cuts a comment off. A marker inside quotes is not one.
fn without_comment<'a>(line: &'a str, marker: &str) -> &'a str {
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if !quoted && line.as_bytes()[at..].starts_with(marker.as_bytes()) => {
                return &line[..at];
            }
            _ => (),
        }
    }
    line
}

/// Every text file of the repository, in the order of the paths.
pub(crate) fn walk(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    walk_folder(root, "", &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn walk_folder(root: &Path, folder: &str, sources: &mut Vec<Source>) -> Result<()> {
    let entries = std::fs::read_dir(root.join(folder))
        .with_context(|| format!("cannot read the folder {folder:?}"))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !SKIPPED.contains(&name) {
                walk_folder(root, &path, sources)?;
            }
        } else if kind.is_file() && is_text(&path, name) {
            let text = std::fs::read_to_string(entry.path())
                .with_context(|| format!("cannot read {path} as text"))?;
            sources.push(Source { language: language(name), path, text });
        }
    }
    Ok(())
}

fn is_text(path: &str, name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    TEXT.contains(&ending) || name == "Makefile" || path.starts_with(".ci/")
}

fn language(name: &str) -> Language {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("rs") => Language::Rust,
        Some("py") => Language::Python,
        Some(_) | None => Language::Other,
    }
}

#[cfg(test)]
pub(crate) fn made_up(path: &str, text: &str) -> Source {
    let name = path.rsplit('/').next().unwrap_or(path);
    Source { path: path.to_owned(), text: text.to_owned(), language: language(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_cut_and_strings_are_not() {
        assert_eq!(without_comment("let a = 1; // why", "//"), "let a = 1; ");
        assert_eq!(without_comment(r#"let a = "http://x"; // y"#, "//"), r#"let a = "http://x"; "#);
        assert_eq!(without_comment(r#"say("a \" // b")"#, "//"), r#"say("a \" // b")"#);
    }

    #[test]
    fn what_stands_below_cfg_test_is_a_test() {
        let source = made_up("crates/x/src/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {}\n");
        let tested: Vec<bool> = source.lines().map(|line| line.tested).collect();
        assert_eq!(tested, [false, true, true]);
    }
}
