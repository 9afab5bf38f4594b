//! Which files of a hooks directory run, in which order, and why the others do not.

use serde::{Deserialize, Serialize};

/// The suffixes that are ignored unless something else is asked for.
pub const DEFAULT_IGNORED: [&str; 8] =
    [".bak", ".disabled", ".old", ".orig", ".rej", ".dpkg-*", ".rpm*", "~"];

/// A suffix of names that do not run. Letters are compared without case. A `*` at its end stands
/// for any characters but a dot: `.dpkg-*` is `.dpkg-dist` and `.dpkg-old`, and not `.dpkg-a.sh`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suffix {
    stem: Vec<u8>,
    open: bool,
}

impl Suffix {
    /// The suffix that this pattern means; `None` for an empty one, which would be every name's.
    #[must_use]
    pub fn new(pattern: &[u8]) -> Option<Suffix> {
        let (stem, open) = match pattern.strip_suffix(b"*") {
            Some(stem) => (stem, true),
            None => (pattern, false),
        };
        (!stem.is_empty()).then(|| Suffix { stem: stem.to_vec(), open })
    }

    /// Those of [`DEFAULT_IGNORED`].
    #[must_use]
    pub fn defaults() -> Vec<Suffix> {
        DEFAULT_IGNORED.iter().filter_map(|pattern| Suffix::new(pattern.as_bytes())).collect()
    }

    /// Whether a name ends so.
    #[must_use]
    pub fn ends(&self, name: &[u8]) -> bool {
        let is_stem = |part: &[u8]| part.eq_ignore_ascii_case(&self.stem);
        if !self.open {
            return name.len() >= self.stem.len() && is_stem(&name[name.len() - self.stem.len()..]);
        }
        (0..name.len()).any(|at| {
            let end = at + self.stem.len();
            end <= name.len() && is_stem(&name[at..end]) && !name[end..].contains(&b'.')
        })
    }

    /// As it was written.
    #[must_use]
    pub fn pattern(&self) -> String {
        let star = if self.open { "*" } else { "" };
        format!("{}{star}", String::from_utf8_lossy(&self.stem))
    }
}

/// What a name in the directory leads to, symbolic links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file that the caller may execute.
    Executable,
    /// A regular file that the caller may not execute.
    Plain,
    /// A directory, a socket, a device.
    Other,
    /// A symbolic link to nothing, or nothing that can be looked at.
    Nothing,
}

/// One name of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// What it leads to.
    pub kind: Kind,
}

/// Why a name does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skipped {
    /// It is no regular file.
    NotAFile,
    /// It leads to nothing.
    Nothing,
    /// It may not be executed.
    NotExecutable,
    /// It ends in this suffix.
    Suffix(String),
}

/// What a directory's names come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The names of the hooks, in the order in which they run.
    pub hooks: Vec<Vec<u8>>,
    /// The others, in the order of their names, each with why it does not run.
    pub skipped: Vec<(Vec<u8>, Skipped)>,
}

/// Decides which entries are hooks, sorted by the bytes of their names.
#[must_use]
pub fn select(mut entries: Vec<Entry>, ignored: &[Suffix]) -> Listed {
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let mut listed = Listed::default();
    for Entry { name, kind } in entries {
        let suffix = ignored.iter().find(|suffix| suffix.ends(&name));
        let why = match (kind, suffix) {
            (Kind::Other, _) => Skipped::NotAFile,
            (Kind::Nothing, _) => Skipped::Nothing,
            (Kind::Executable | Kind::Plain, Some(suffix)) => Skipped::Suffix(suffix.pattern()),
            (Kind::Plain, None) => Skipped::NotExecutable,
            (Kind::Executable, None) => {
                listed.hooks.push(name);
                continue;
            }
        };
        listed.skipped.push((name, why));
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str], ignored: &[Suffix]) -> Vec<String> {
        let entry = |name: &&str| Entry { name: name.as_bytes().to_vec(), kind: Kind::Executable };
        let listed = select(names.iter().map(entry).collect(), ignored);
        listed.hooks.into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn names_are_sorted_by_their_bytes() {
        let sorted = names(&["b", "a", "B", "10", "9", "é", "a b", "_"], &[]);
        assert_eq!(sorted, ["10", "9", "B", "_", "a", "a b", "b", "é"]);
    }

    #[test]
    fn suffixes_are_compared_without_case_and_a_star_stops_at_a_dot() {
        let check = |name: &str, want: &[&str]| {
            assert_eq!(names(&[name], &Suffix::defaults()), want, "{name}");
        };
        for ignored in [
            "a.bak",
            "a.BAK",
            "a~",
            "a.dpkg-dist",
            "a.RPMsave",
            "a.rpm",
            "a.Orig",
            "a.rej",
            ".old",
            "a.sh.disabled",
        ] {
            check(ignored, &[]);
        }
        for run in ["a.sh", "bak", "a.bak.sh", "a.rpm.sh", "a.dpkg", "~a", "a.older"] {
            check(run, &[run]);
        }
    }

    #[test]
    fn an_empty_pattern_is_none() {
        assert_eq!((Suffix::new(b""), Suffix::new(b"*")), (None, None));
    }

    #[test]
    fn each_of_the_others_has_its_reason() {
        let entry = |name: &str, kind| Entry { name: name.into(), kind };
        let listed = select(
            vec![
                entry("d", Kind::Nothing),
                entry("c.bak", Kind::Plain),
                entry("b", Kind::Plain),
                entry("a", Kind::Other),
            ],
            &Suffix::defaults(),
        );
        assert_eq!(listed.hooks, Vec::<Vec<u8>>::new());
        let why: Vec<Skipped> = listed.skipped.into_iter().map(|(_, why)| why).collect();
        assert_eq!(
            why,
            [
                Skipped::NotAFile,
                Skipped::NotExecutable,
                Skipped::Suffix(".bak".into()),
                Skipped::Nothing
            ]
        );
    }
}
