//! Sizes and outward form: file and function lengths, folders, opening documentation, white space.

use std::collections::BTreeMap;

use super::Found;
use super::source::{Language, Source};

const LINES_WANTED: usize = 500;
const LINES_MAX: usize = 800;
/// The Python runtime is joined of parts at the build, so none of them needs to be long.
const PARTS: &str = "runtimes/python/";
const PART_LINES_MAX: usize = 300;
const FUNCTION_LINES_MAX: usize = 70;
const FOLDER_FILES_MAX: usize = 12;

/// Checks one file.
pub(crate) fn check(source: &Source, found: &mut Found) {
    white_space(source, found);
    if source.language == Language::Other {
        return;
    }
    length(source, found);
    opening(source, found);
    if source.language == Language::Python {
        python_functions(source, found);
    }
}

fn length(source: &Source, found: &mut Found) {
    let lines = source.text.lines().count();
    let is_part = source.path.starts_with(PARTS) && !source.is_test();
    let (wanted, max) =
        if is_part { (PART_LINES_MAX, PART_LINES_MAX) } else { (LINES_WANTED, LINES_MAX) };
    if lines > max {
        found.fault(source, lines, &format!("{lines} lines, over {max}: split it by what it owns"));
    } else if lines > wanted {
        found.notes.push(format!("{}: {lines} lines, {wanted} are wanted", source.path));
    }
}

/// Every file says first what it owns.
fn opening(source: &Source, found: &mut Found) {
    let first = source.text.lines().find(|line| !line.starts_with("#!"));
    let opens = match source.language {
        Language::Rust => first.is_some_and(|line| line.starts_with("//! ")),
        Language::Python => first.is_some_and(|line| line.starts_with("\"\"\"")),
        Language::Other => true,
    };
    if !opens {
        let text = "open the file with `//!` (a docstring in Python): what it owns, its \
                    invariants, what it deliberately does not do";
        found.fault(source, 1, text);
    }
}

fn white_space(source: &Source, found: &mut Found) {
    for (index, line) in source.text.lines().enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            found.fault(source, index + 1, "white space at the end of the line");
        }
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            found.fault(source, index + 1, "a conflict that was not resolved");
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        found.fault(source, source.text.lines().count(), "no newline at the end of the file");
    }
}

/// Python has no lint for this in our set. A function ends where a line stands no deeper than it.
fn python_functions(source: &Source, found: &mut Found) {
    let lines: Vec<&str> = source.text.lines().collect();
    for (start, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        if !trimmed.starts_with("def ") && !trimmed.starts_with("async def ") {
            continue;
        }
        let depth = line.len() - trimmed.len();
        let ends = |line: &&str| {
            let text = line.trim_start();
            let closing = text.starts_with([')', ']']);
            !text.is_empty() && !closing && line.len() - text.len() <= depth
        };
        let body = &lines[start + 1..];
        let length = 1 + body.iter().position(ends).unwrap_or(body.len());
        if length > FUNCTION_LINES_MAX + 2 {
            let text = format!("a function of {length} lines, over {FUNCTION_LINES_MAX}");
            found.fault(source, start + 1, &text);
        }
    }
}

/// Folders that a person can take in at a glance.
pub(crate) fn folders(sources: &[Source], found: &mut Found) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        if source.language != Language::Other {
            *counts.entry(source.folder()).or_default() += 1;
        }
    }
    for (folder, count) in counts {
        if count > FOLDER_FILES_MAX {
            found.faults.push(format!(
                "{folder}/: {count} files, over {FOLDER_FILES_MAX}: group them by what they own"
            ));
        }
    }
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
    fn a_good_file_has_no_fault() {
        assert_eq!(faults("crates/x/src/a.rs", "//! Owns a.\n\nfn a() {}\n"), [""; 0]);
        assert_eq!(faults("runtimes/x/a.py", "#!/usr/bin/python3\n\"\"\"Owns a.\"\"\"\n"), [""; 0]);
    }

    #[test]
    fn a_file_that_does_not_say_what_it_owns_is_found() {
        assert!(faults("crates/x/src/a.rs", "fn a() {}\n")[0].contains("a.rs:1: open the file"));
    }

    #[test]
    fn trailing_white_space_and_a_missing_newline_are_found() {
        let found = faults("docs/a.md", "a \nb");
        assert!(found[0].starts_with("docs/a.md:1:") && found[1].starts_with("docs/a.md:2:"));
    }

    #[test]
    fn long_files_and_long_python_functions_are_found() {
        let long = format!("//! Long.\n{}", "fn a() {}\n".repeat(LINES_MAX));
        assert!(faults("crates/x/src/a.rs", &long)[0].contains("split it"));
        let body = "    pass\n".repeat(FUNCTION_LINES_MAX + 2);
        let python = format!("\"\"\"Long.\"\"\"\n\n\ndef a():\n{body}\n\ndef b():\n    pass\n");
        let found = faults("runtimes/x/a.py", &python);
        assert!(found.len() == 1 && found[0].starts_with("runtimes/x/a.py:4:"), "{found:?}");
    }

    #[test]
    fn long_parts_of_the_python_runtime_are_found() {
        let text = |lines: usize| format!("\"\"\"Long.\"\"\"\n{}", "x = 1\n".repeat(lines - 1));
        let (fits, long) = (text(PART_LINES_MAX), text(PART_LINES_MAX + 1));
        assert_eq!(faults("runtimes/python/worker/a.py", &fits), [""; 0]);
        assert!(faults("runtimes/python/worker/a.py", &long)[0].contains("split it"));
        assert_eq!(faults("runtimes/python/tests/test_a.py", &long), [""; 0]);
    }

    #[test]
    fn crowded_folders_are_found() {
        let files: Vec<Source> = (0..=FOLDER_FILES_MAX)
            .map(|n| made_up(&format!("crates/x/src/f{n}.rs"), "//! F.\n"))
            .collect();
        let mut found = Found::default();
        folders(&files, &mut found);
        assert_eq!(found.faults.len(), 1);
        found.faults.clear();
        folders(&files[1..], &mut found);
        assert!(found.faults.is_empty());
    }
}
