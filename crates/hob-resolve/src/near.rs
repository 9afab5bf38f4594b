//! Which known name a mistyped one is meant to be: of names that are given, or of a folder's.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use strsim::osa_distance;

/// How many names of a folder are compared at most: it may hold any number.
const NAMES_MAX: usize = 20_000;

/// How far a name may be from what is meant: a third of its letters, 1 at least and 3 at most.
fn bound(word: &str) -> usize {
    (word.chars().count() / 3).clamp(1, 3)
}

/// The known name that a word is nearest to, if it is near enough. The first of equals wins.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    within(word, known, bound(word))
}

/// The same among so many names that only the very nearest can be meant.
#[must_use]
pub fn nearest_of_many<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    within(word, known, 1)
}

/// Of the files beside a missing one that `takes` takes, the one whose name is nearest.
#[must_use]
pub fn nearest_beside(missing: &Path, takes: impl Fn(&DirEntry) -> bool) -> Option<PathBuf> {
    let names = names_in(folder_of(missing), takes);
    let name = missing.file_name()?.to_string_lossy();
    nearest(&name, names.iter().map(String::as_str)).map(|near| missing.with_file_name(near))
}

/// The folder that a path lies in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The names in a folder that are text, of entries that `takes` takes; sorted.
#[must_use]
pub fn names_in(folder: &Path, takes: impl Fn(&DirEntry) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(NAMES_MAX);
    let taken = entries.filter(takes);
    let mut names: Vec<String> =
        taken.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn within<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    bound: usize,
) -> Option<&'a str> {
    let length = word.chars().count();
    let similar = known.into_iter().filter(|name| name.chars().count().abs_diff(length) <= bound);
    let distances = similar.map(|name| (osa_distance(word, name), name));
    let near = distances.filter(|(far, _)| *far <= bound).min_by_key(|(far, _)| *far)?;
    Some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_beside_a_missing_file_is_of_those_that_are_taken() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("hok.d"), "").unwrap();
        std::fs::create_dir(home.path().join("hooks.d")).unwrap();
        let missing = home.path().join("hoks.d");
        let near = |takes: fn(&DirEntry) -> bool| nearest_beside(&missing, takes);
        assert_eq!(near(|_| true), Some(home.path().join("hok.d")));
        let folders = near(|entry| entry.path().is_dir());
        assert_eq!(folders, Some(home.path().join("hooks.d")));
        assert_eq!(nearest_beside(&missing.join("x"), |_| true), None);
        assert_eq!(folder_of(Path::new("x")), Path::new("."));
    }

    #[test]
    fn the_nearest_is_found_and_nothing_that_is_far() {
        let verbs = ["run", "ask", "tell", "status", "start", "trust", "restart"];
        for (word, want) in [
            ("rnu", Some("run")),
            ("stauts", Some("status")),
            ("strat", Some("start")),
            ("hello.py", None),
            ("black", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, verbs), want, "{word}");
        }
    }
}
