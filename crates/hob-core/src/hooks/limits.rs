//! The limits of time of single hooks: a table beside their directory. Reads no file, and knows no
//! unit of time: who reads the table brings both.
//!
//! ```text
//! # hook        warn   kill
//! 20-migrate    30s    10m
//! 9?-clean-*    -      5s
//! ```
//! Of the rows that mean a hook the first counts. A `-` leaves what is asked for all hooks.

use std::time::Duration;

use super::glob;

/// What the name of a hooks directory is followed by in that of its table.
pub const LIMITS_SUFFIX: &[u8] = b".limits";

/// The limits of time of single hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeLimits {
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    line: usize,
    name: String,
    times: Times,
}

/// What a hook may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// When it is told of as slow.
    pub warn_after: Option<Duration>,
    /// When it is ended.
    pub kill_after: Option<Duration>,
}

impl Times {
    /// These, and where there is none, the others'.
    #[must_use]
    pub fn or(self, other: Times) -> Times {
        Times {
            warn_after: self.warn_after.or(other.warn_after),
            kill_after: self.kill_after.or(other.kill_after),
        }
    }
}

impl TimeLimits {
    /// Reads a table; `time` reads a length of time. An error says in which line, and what.
    pub fn parse<E: std::fmt::Display>(
        text: &[u8],
        time: impl Fn(&str) -> Result<Duration, E>,
    ) -> Result<TimeLimits, String> {
        let mut rows = Vec::new();
        for (line, row) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let row = String::from_utf8_lossy(row);
            let words: Vec<&str> = row.split_whitespace().collect();
            let wrong = |why: String| format!("line {line}: {why}");
            let [name, warn, kill] = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [name, warn, kill] => [name, warn, kill],
                _ => {
                    let why = "a row is a hook's name, when to warn, and when to kill; - is never";
                    return Err(wrong(why.to_owned()));
                }
            };
            let read = |word: &str| match word {
                "-" => Ok(None),
                word => time(word).map(Some).map_err(|why| wrong(format!("{word}: {why}"))),
            };
            let times = Times { warn_after: read(warn)?, kill_after: read(kill)? };
            rows.push(Row { line, name: name.to_owned(), times });
        }
        Ok(TimeLimits { rows })
    }

    /// What a hook of this name may take.
    #[must_use]
    pub fn of(&self, hook: &[u8]) -> Times {
        let hook = String::from_utf8_lossy(hook);
        let row = self.rows.iter().find(|row| glob::matches(&row.name, &hook));
        row.map_or(Times::default(), |row| row.times)
    }

    /// The rows that mean none of these hooks: their lines and names.
    pub fn unused<'a>(&'a self, hooks: &'a [Vec<u8>]) -> impl Iterator<Item = (usize, &'a str)> {
        let names: Vec<_> = hooks.iter().map(|hook| String::from_utf8_lossy(hook)).collect();
        self.rows.iter().filter_map(move |row| {
            let means = |name: &std::borrow::Cow<'_, str>| glob::matches(&row.name, name);
            (!names.iter().any(means)).then_some((row.line, row.name.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(word: &str) -> Result<Duration, &'static str> {
        word.parse().map(Duration::from_secs).map_err(|_| "is no time")
    }

    fn times(warn: Option<u64>, kill: Option<u64>) -> Times {
        Times {
            warn_after: warn.map(Duration::from_secs),
            kill_after: kill.map(Duration::from_secs),
        }
    }

    #[test]
    fn the_first_row_that_means_a_hook_counts() {
        let text = b"# name warn kill\n\n 20-a \t 3 4\n2?-* - 9\r\n*\t5 -";
        let limits = TimeLimits::parse(text, seconds).unwrap();
        for (hook, warn, kill) in
            [("20-a", Some(3), Some(4)), ("21-b", None, Some(9)), ("other", Some(5), None)]
        {
            assert_eq!(limits.of(hook.as_bytes()), times(warn, kill), "{hook}");
        }
        assert_eq!(limits.of(b"21-b").or(times(Some(1), Some(2))), times(Some(1), Some(9)));
        let others = [b"x".to_vec()];
        let unused: Vec<_> = limits.unused(&others).collect();
        assert_eq!(unused, [(3, "20-a"), (4, "2?-*")]);
        assert_eq!(TimeLimits::default().of(b"a"), Times::default());
    }

    #[test]
    fn a_wrong_row_is_named_by_its_line() {
        for (text, line, why) in [
            ("a 1 2\nb 1", "line 2: ", "a row is"),
            ("a b c d", "line 1: ", "a row is"),
            ("\n\na - soon", "line 3: ", "soon: is no time"),
        ] {
            let wrong = TimeLimits::parse(text.as_bytes(), seconds).unwrap_err();
            assert!(wrong.starts_with(line) && wrong.contains(why), "{wrong}");
        }
    }
}
