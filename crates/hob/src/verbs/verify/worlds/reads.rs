//! Which variables a program asks for by name: seen in one cold run, by a file that its interpreter
//! finds before any line of the program.
//!
//! Only names are noted. What decides how the run itself goes is left out: where programs, modules,
//! libraries, homes and hob are found.

use std::io;
use std::path::PathBuf;

use super::super::ground::Ground;

const FILE: &str = "reads/sitecustomize.py";
const TEXT: &str = include_str!("reads.py");
/// Names that are changed at once.
const NAMES_MAX: usize = 32;

/// Variables, and beginnings of their names, that stay as they are.
const LEFT_ALONE: [&str; 9] =
    ["PATH", "HOME", "PWD", "TMPDIR", "TEMP", "TMP", "TZ", "LANG", "LANGUAGE"];
const LEFT_ALONE_BEGIN: [&str; 6] = ["HOB", "LC_", "LD_", "PYTHON", "_PYTHON", "XDG_"];

/// The file from which an interpreter learns to take notes; its directory is to be the first in
/// `PYTHONPATH`.
pub(super) fn watch(ground: &Ground) -> io::Result<PathBuf> {
    let file = ground.file(FILE, TEXT.as_bytes())?;
    Ok(file.parent().map_or_else(PathBuf::new, std::path::Path::to_owned))
}

/// The names that were noted in this directory, and that can be changed.
pub(super) fn names(directory: &std::path::Path) -> Vec<String> {
    let text = std::fs::read(directory.join("names")).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let is_plain = line.chars().all(|each| each.is_ascii_alphanumeric() || each == '_');
        let is_ours = LEFT_ALONE.contains(&line)
            || LEFT_ALONE_BEGIN.iter().any(|begin| line.starts_with(begin));
        if !line.is_empty() && is_plain && !is_ours && names.len() < NAMES_MAX {
            names.push(line.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_that_decide_how_it_runs_are_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let text = "FLAVOUR\nPATH\nPYTHONPATH\n_PYTHON_SYSCONFIGDATA_NAME\nLC_ALL\nHOB_DIR\n\nodd name\nTERM\n";
        std::fs::write(home.path().join("names"), text).unwrap();
        assert_eq!(super::names(home.path()), ["FLAVOUR", "TERM"]);
        assert!(super::names(&home.path().join("none")).is_empty());
    }
}
