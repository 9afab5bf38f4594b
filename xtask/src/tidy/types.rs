//! What a type may grow to: 15 fields, and methods in 3 files. Above that everyone reaches in, and
//! nobody can change one part without knowing all.
//!
//! What is written or read as a format is as wide as the format is, and left out.
//!
//! Reads lines as rustfmt writes them: what begins at the first column begins an item. A name that a
//! crate gives to several types is left out of the count of files.

use std::collections::{BTreeMap, BTreeSet};

use super::Found;
use super::source::{Language, Source};

/// The fields that a struct may have.
const FIELDS_MAX: usize = 15;
/// The files that a type's own methods may lie in.
const FILES_MAX: usize = 3;

/// A type that has too many; 0: not of these.
#[derive(Debug)]
struct Left {
    home: &'static str,
    name: &'static str,
    fields: usize,
    files: usize,
}

/// What is left. This table may only shrink.
const LEFT: &[Left] = &[
    Left { home: "crates/hob", name: "Hosts", fields: 16, files: 0 },
    Left { home: "crates/hob", name: "Report", fields: 16, files: 0 },
    Left { home: "crates/hob", name: "Round", fields: 17, files: 0 },
    Left { home: "crates/hob", name: "Seen", fields: 17, files: 0 },
    Left { home: "crates/hob-actor", name: "Links", fields: 30, files: 4 },
    Left { home: "crates/hob-actor", name: "Shard", fields: 16, files: 5 },
    Left { home: "crates/hob-core", name: "Calls", fields: 0, files: 8 },
    Left { home: "crates/hob-core", name: "Engine", fields: 17, files: 5 },
    Left { home: "crates/hob-core", name: "Limits", fields: 50, files: 0 },
    Left { home: "crates/hob-core", name: "Pool", fields: 27, files: 0 },
    Left { home: "crates/hob-core", name: "PoolView", fields: 19, files: 0 },
    Left { home: "crates/hob-daemon", name: "Daemon", fields: 22, files: 0 },
    Left { home: "crates/hob-daemon", name: "Entry", fields: 38, files: 0 },
    Left { home: "crates/hob-daemon", name: "Lesson", fields: 18, files: 0 },
    Left { home: "crates/hob-hooks", name: "Runner", fields: 16, files: 4 },
    Left { home: "crates/hob-runtimes", name: "Runtime", fields: 31, files: 0 },
];

/// What is known of a type.
#[derive(Debug, Default)]
struct Type<'s> {
    /// Where its definitions are, with the fields of each.
    defined: Vec<(&'s str, usize)>,
    /// Files with methods of its own.
    files: BTreeSet<&'s str>,
}

/// All types, by their crates and names.
type Types<'s> = BTreeMap<(&'s str, String), Type<'s>>;

/// Checks all types of the crates.
pub(crate) fn check(sources: &[Source], found: &mut Found) {
    check_beside(sources, LEFT, found);
}

fn check_beside(sources: &[Source], left: &[Left], found: &mut Found) {
    let mut types = Types::new();
    sources.iter().filter(|source| is_checked(source)).for_each(|source| read(source, &mut types));
    for ((home, name), known) in &types {
        let row = left.iter().find(|row| row.home == *home && row.name == name);
        let (fields_left, files_left) = row.map_or((0, 0), |row| (row.fields, row.files));
        let (fields, files) = (known.fields(), known.files());
        let place = known.defined.first().map_or(*home, |(path, _)| *path);
        if fields > fields_left {
            found.faults.push(format!(
                "{place}: {name} has {fields} fields, over {FIELDS_MAX}: part it by what belongs \
                 together"
            ));
        } else if files > files_left {
            found.faults.push(format!(
                "{place}: methods of {name} lie in {files} files, over {FILES_MAX}: give them to \
                 its parts"
            ));
        } else if (fields, files) != (fields_left, files_left) {
            found.faults.push(format!(
                "{place}: {name} has {fields} fields and {files} files too many: write that into \
                 `types.rs`"
            ));
        } else if row.is_some() {
            found.notes.push(format!("{place}: {name} is left (`types.rs`)"));
        }
    }
}

impl Type<'_> {
    /// Its fields, if they are too many.
    fn fields(&self) -> usize {
        let most = self.defined.iter().map(|(_, fields)| *fields).max();
        most.filter(|fields| *fields > FIELDS_MAX).unwrap_or(0)
    }

    /// The files of its methods, if they are too many.
    fn files(&self) -> usize {
        let is_one = self.defined.len() == 1 && self.files.len() > FILES_MAX;
        if is_one { self.files.len() } else { 0 }
    }
}

/// Reads the types that a file defines, and those that it has methods of.
fn read<'s>(source: &'s Source, types: &mut Types<'s>) {
    let (home, _) = source.path.split_once("/src/").unwrap_or_default();
    let mut open: Option<(String, usize)> = None;
    let mut is_format = false;
    for line in source.text.lines() {
        is_format |= line.starts_with("#[derive(") && line.contains("erialize");
        if let Some((name, fields)) = &mut open {
            if line.starts_with('}') {
                types
                    .entry((home, name.clone()))
                    .or_default()
                    .defined
                    .push((&source.path, *fields));
                open = None;
            } else if line.starts_with("    ") && is_field(line[4..].trim_start_matches("pub")) {
                *fields += 1;
            }
            continue;
        }
        if let Some(name) = after(line, "impl").filter(|_| !line.contains(" for ")) {
            types.entry((home, name)).or_default().files.insert(&source.path);
        }
        for word in ["struct", "enum"] {
            let Some(name) = after(visible(line), word) else { continue };
            if word == "struct" && line.ends_with('{') && !std::mem::take(&mut is_format) {
                open = Some((name, 0));
            } else {
                is_format = false;
                types.entry((home, name)).or_default().defined.push((&source.path, 0));
            }
        }
    }
}

/// The line without what says who may see its item.
fn visible(line: &str) -> &str {
    let rest = line.strip_prefix("pub").unwrap_or(line);
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    if rest.len() == line.len() { line } else { rest.trim_start() }
}

/// The name after a word that begins the line, and after its generics.
fn after(line: &str, word: &str) -> Option<String> {
    let mut rest = line.strip_prefix(word)?;
    if let Some(generics) = rest.strip_prefix('<') {
        rest = generics.split_once("> ")?.1;
    } else {
        rest = rest.strip_prefix(' ')?;
    }
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether a line of a struct, less its indentation and `pub`, begins a field.
fn is_field(line: &str) -> bool {
    let line = match line.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(line, |(_, rest)| rest),
        None => line,
    };
    let name = line.trim_start().split_once(": ").map(|(name, _)| name);
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

fn is_checked(source: &Source) -> bool {
    let Some((home, file)) = source.path.split_once("/src/") else { return false };
    let is_test =
        file.starts_with("tests/") || file.contains("/tests/") || source.stem() == "tests";
    source.language == Language::Rust && home.starts_with("crates/") && !is_test
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::made_up;

    /// What is found of a type with so many fields, whose methods lie in so many files.
    fn faults(fields: usize, files: usize, left: &[Left]) -> Vec<String> {
        let fields: String = (0..fields).map(|at| format!("    pub(crate) f{at}: u8,\n")).collect();
        let mut texts = vec![format!("/// One.\npub struct One {{\n{fields}}}\n")];
        texts.extend((0..files).map(|_| "impl One {\n    fn f() {}\n}\n".to_owned()));
        let sources = texts.iter().enumerate();
        let sources: Vec<Source> = sources
            .map(|(number, text)| made_up(&format!("crates/hob/src/f{number}.rs"), text))
            .collect();
        let mut found = Found::default();
        check_beside(&sources, left, &mut found);
        found.faults
    }

    #[test]
    fn a_struct_has_so_many_fields_and_a_type_its_methods_in_so_many_files() {
        assert_eq!(faults(15, 3, &[]), [""; 0]);
        let many = faults(16, 1, &[]);
        assert!(many[0].contains("One has 16 fields"), "{many:?}");
        let wide = faults(2, 4, &[]);
        assert!(wide[0].contains("methods of One lie in 4 files"), "{wide:?}");
        let one = |fields| Left { home: "crates/hob", name: "One", fields, files: 0 };
        assert_eq!(faults(16, 1, &[one(16)]), [""; 0]);
        for left in [one(17), one(16)] {
            let less = faults(15, 1, &[left]);
            assert!(less[0].contains("write that into"), "{less:?}");
        }
    }
}
