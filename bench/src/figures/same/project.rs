//! The small project that commands work in, and the lists of what they do there: data under
//! `bench/same`, which this only reads.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// What begins a file of the project.
const MARK: &str = "=== ";
/// What its name ends with where its bytes are written as digits.
const DIGITS: &str = " hex";

/// Files with their bytes.
#[derive(Debug)]
pub(super) struct Project(Vec<(String, Vec<u8>)>);

impl Project {
    /// What is before the first file says what this is.
    pub(super) fn read(text: &str) -> Result<Project> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mut is_digits = false;
        for line in text.split_inclusive('\n') {
            if let Some(name) = line.strip_prefix(MARK) {
                let name = name.trim_end();
                is_digits = name.ends_with(DIGITS);
                files.push((name.trim_end_matches(DIGITS).to_owned(), Vec::new()));
            } else if let Some((name, bytes)) = files.last_mut() {
                if is_digits {
                    bytes.extend(digits(line.trim_end()).with_context(|| name.clone())?);
                } else {
                    bytes.extend_from_slice(line.as_bytes());
                }
            }
        }
        Ok(Project(files))
    }

    /// Puts every file below the folder.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        for (name, bytes) in &self.0 {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }
}

fn digits(line: &str) -> Result<Vec<u8>> {
    ensure!(line.len().is_multiple_of(2) && line.is_ascii(), "a byte has two digits");
    let pairs = (0..line.len()).step_by(2);
    pairs.map(|at| Ok(u8::from_str_radix(&line[at..at + 2], 16)?)).collect()
}

/// The command lines of a list. A `#` begins a line that says why.
pub(super) fn lines(list: &str) -> impl Iterator<Item = Vec<String>> {
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(words)
}

/// Splits at spaces; a word that begins with `'` goes on to the next one.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{Project, lines};

    #[test]
    fn a_project_is_read_as_text_and_as_digits() {
        let text = "what it is\n=== a/b.txt\none\n\n===two\n=== c.bin hex\n00ff\n10\n=== empty\n";
        let Project(files) = Project::read(text).unwrap();
        let want: [(&str, &[u8]); 3] =
            [("a/b.txt", b"one\n\n===two\n"), ("c.bin", b"\x00\xff\x10"), ("empty", b"")];
        let want: Vec<_> = want.map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).into();
        assert_eq!(files, want);
        assert!(Project::read("=== a hex\n0g\n").is_err());
        assert!(Project::read("=== a hex\n001\n").is_err());
    }

    #[test]
    fn a_list_is_split_into_words() {
        let all: Vec<_> = lines("# why\na --b\n\nc 'd e' 'f' g\n").collect();
        assert_eq!(all, [vec!["a", "--b"], vec!["c", "d e", "f", "g"]]);
    }
}
