//! The asserts of a Hurl file as the tests of a check.

use regex_lite::escape;
use serde_json::Value;
use toml::Value as Toml;

use super::values::{Variables, Wanted, quoted, value};

/// All that an answer can have as its status.
const STATUSES: std::ops::Range<i64> = 100..600;

/// What an answer is to be.
#[derive(Debug, Default)]
pub(super) struct Asserts {
    /// What is left of all statuses; `None`: nothing was said of it.
    pub(super) statuses: Option<Vec<i64>>,
    pub(super) header: Vec<(String, Toml)>,
    pub(super) json: Vec<(String, Toml)>,
    pub(super) contains: Vec<String>,
    /// The longest time, in milliseconds.
    pub(super) within_ms: Option<u64>,
}

/// A predicate: whether it is turned round, its word, what stands behind it.
struct Predicate {
    not: bool,
    word: String,
    wanted: Option<Wanted>,
}

impl Asserts {
    /// Leaves the statuses for which this holds.
    pub(super) fn status(&mut self, holds: impl Fn(i64) -> bool) {
        let left = self.statuses.take().unwrap_or_else(|| STATUSES.collect());
        self.statuses = Some(left.into_iter().filter(|code| holds(*code)).collect());
    }

    /// Takes one line of `[Asserts]`.
    ///
    /// # Errors
    /// What hob does not have, and what is no assert.
    pub(super) fn add(&mut self, line: &str, variables: &Variables) -> Result<(), String> {
        let line = line.trim();
        let end = line.find(char::is_whitespace).unwrap_or(line.len());
        let (query, rest) = line.split_at(end);
        match query {
            "status" => {
                let predicate = predicate(rest, variables)?;
                let number = predicate.integer()?;
                let of = relation(&predicate.word)?;
                self.status(|code| of(code, number) != predicate.not);
            }
            "header" => {
                let (name, rest) = quoted(rest, variables)?;
                let test = predicate(rest, variables)?.test(false)?;
                self.header.push((name, test));
            }
            "jsonpath" => {
                let (path, rest) = quoted(rest, variables)?;
                let many = is_of_many(&path);
                let (counted, rest) = match rest.trim_start().strip_prefix("count") {
                    Some(rest) if rest.starts_with(char::is_whitespace) => (true, rest),
                    _ => (false, rest),
                };
                let predicate = predicate(rest, variables)?;
                let test = if counted { predicate.count()? } else { predicate.test(many)? };
                self.json.push((path, test));
            }
            "body" => {
                let predicate = predicate(rest, variables)?;
                match (&*predicate.word, predicate.not, &predicate.wanted) {
                    ("contains", false, Some(Wanted::Value(Value::String(text)))) => {
                        self.contains.push(text.clone());
                    }
                    _ => return Err("of a body only `contains` is known here".to_owned()),
                }
            }
            "duration" => {
                let predicate = predicate(rest, variables)?;
                let ms = u64::try_from(predicate.integer()?).unwrap_or(0);
                if predicate.not || !matches!(&*predicate.word, "<" | "<=") || ms == 0 {
                    return Err("of a duration only `< MILLISECONDS` is known here".to_owned());
                }
                self.within_ms = Some(self.within_ms.map_or(ms, |other| other.min(ms)));
            }
            _ => return Err(format!("an assert of `{query}` is not known here")),
        }
        Ok(())
    }
}

/// Reads a predicate to the end of its line.
fn predicate(text: &str, variables: &Variables) -> Result<Predicate, String> {
    let mut words = text.trim_start();
    let mut next = || {
        let end = words.find(|each: char| each.is_whitespace() || each == '#');
        let (word, rest) = words.split_at(end.unwrap_or(words.len()));
        words = rest.trim_start();
        word.to_owned()
    };
    let mut word = next();
    let not = word == "not";
    if not {
        word = next();
    }
    let wants = match &*word {
        "exists" => false,
        "==" | "!=" | ">" | ">=" | "<" | "<=" | "contains" | "matches" | "startsWith"
        | "endsWith" => true,
        "" => return Err("a predicate is missing, such as `== 200`".to_owned()),
        other => return Err(format!("`{other}` is no predicate or filter that is known here")),
    };
    let (wanted, rest) = match wants {
        true => value(words, variables).map(|(wanted, rest)| (Some(wanted), rest))?,
        false => (None, words),
    };
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(format!("`{rest}` stands behind the end of an assert"));
    }
    Ok(Predicate { not, word, wanted })
}

impl Predicate {
    fn integer(&self) -> Result<i64, String> {
        match &self.wanted {
            Some(Wanted::Value(Value::Number(number))) if number.as_i64().is_some() => {
                Ok(number.as_i64().unwrap_or_default())
            }
            _ => Err("a whole number is missing".to_owned()),
        }
    }

    /// The predicate turned round, if it is to be.
    fn word(&self) -> Result<&str, String> {
        if !self.not {
            return Ok(&self.word);
        }
        Ok(match &*self.word {
            "==" => "!=",
            "!=" => "==",
            ">" => "<=",
            ">=" => "<",
            "<" => ">=",
            "<=" => ">",
            "exists" => "absent",
            other => return Err(format!("`not {other}` is not known here")),
        })
    }

    fn count(&self) -> Result<Toml, String> {
        let is_late = self.wanted == Some(Wanted::Late);
        let number = if is_late { 0 } else { self.integer()? };
        relation(&self.word)?;
        Ok(Toml::String(format!("count {} {number}", self.word()?)))
    }

    /// As a test of a check's; `many`: of values of which there may be more than one.
    fn test(&self, many: bool) -> Result<Toml, String> {
        let word = self.word()?;
        if many && !matches!(word, "exists" | "absent") {
            return Err("of a path that may find many values only `count` and `exists` are known \
                        here"
                .to_owned());
        }
        let text = match (word, &self.wanted) {
            ("exists" | "absent", _) => word.to_owned(),
            ("==" | "!=" | ">" | ">=" | "<" | "<=", Some(Wanted::Late)) => format!("{word} null"),
            ("matches", Some(Wanted::Regex(regex))) => format!("matches {regex}"),
            ("matches", Some(Wanted::Value(Value::String(regex)))) => format!("matches {regex}"),
            ("contains", Some(Wanted::Value(Value::String(part)))) => format!("contains {part}"),
            ("startsWith", Some(Wanted::Value(Value::String(part)))) => {
                format!("matches ^{}", escape(part))
            }
            ("endsWith", Some(Wanted::Value(Value::String(part)))) => {
                format!("matches {}$", escape(part))
            }
            ("==" | "!=" | ">" | ">=" | "<" | "<=", Some(Wanted::Value(wanted))) => {
                // In the quotes of a check's test nothing is an escape.
                let text = wanted.as_str().map(|text| format!("{word} '{text}'"));
                text.unwrap_or_else(|| format!("{word} {wanted}"))
            }
            _ => return Err(format!("`{word}` of such a value is not known here")),
        };
        Ok(Toml::String(text))
    }
}

fn relation(word: &str) -> Result<fn(i64, i64) -> bool, String> {
    Ok(match word {
        "==" => |one, other| one == other,
        "!=" => |one, other| one != other,
        ">" => |one, other| one > other,
        ">=" => |one, other| one >= other,
        "<" => |one, other| one < other,
        "<=" => |one, other| one <= other,
        other => return Err(format!("`{other}` is not known here of a number")),
    })
}

/// Whether a JSONPath may find more than one value.
pub(super) fn is_of_many(path: &str) -> bool {
    // A name in quotes may hold any of these: then one value is taken for many, and refused.
    path.contains(['*', '?', ':', ',']) || path.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(line: &str) -> Result<Asserts, String> {
        let mut asserts = Asserts::default();
        asserts.add(line, &Variables::default())?;
        Ok(asserts)
    }

    #[test]
    fn asserts_are_tests_of_a_check() {
        let json = |line: &str, want: &str| {
            let found = added(&format!("jsonpath \"$.a\" {line}")).unwrap();
            assert_eq!(found.json, [("$.a".to_owned(), Toml::from(want))], "{line}");
        };
        json("exists", "exists");
        json("not exists # none", "absent");
        json("== \"exists\"", "== 'exists'");
        json("== \"it's\"", "== 'it's'");
        json("== 3", "== 3");
        json("not >= 2.5", "< 2.5");
        json("== null", "== null");
        json("contains \"b\"", "contains b");
        json("matches /^a.c$/", "matches ^a.c$");
        json("startsWith \"a.\"", "matches ^a\\.");
        json("endsWith \"z\"", "matches z$");
        json("count == 3", "count == 3");
        json("count not == 3", "count != 3");
        let found = added("header \"Content-Type\" contains \"json\"").unwrap();
        assert_eq!(found.header, [("Content-Type".to_owned(), Toml::from("contains json"))]);
        assert_eq!(added("body contains \"x\"").unwrap().contains, ["x"]);
        assert_eq!(added("duration < 800").unwrap().within_ms, Some(800));
        assert_eq!(added("status == 201").unwrap().statuses, Some(vec![201]));
        let left = added("status not >= 102").unwrap().statuses;
        assert_eq!(left, Some(vec![100, 101]));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            "xpath \"//a\" exists",
            "cookie \"a\" exists",
            "sha256 == hex,00;",
            "certificate \"Subject\" contains \"x\"",
            "variable \"a\" == 1",
            "bytes count == 3",
            "body == \"x\"",
            "body not contains \"x\"",
            "jsonpath \"$.a\" split \",\" count == 2",
            "jsonpath \"$.a\" isInteger",
            "jsonpath \"$.a[*]\" == 1",
            "jsonpath \"$..a\" contains \"x\"",
            "jsonpath \"$.a\" not contains \"x\"",
            "jsonpath \"$.a\"",
            "jsonpath $.a exists",
            "jsonpath \"$.a\" == 1 2",
            "duration > 5",
            "duration < 0",
            "status == \"200\"",
            "status contains 2",
            "header \"a\"",
            "",
        ] {
            assert!(added(line).is_err(), "{line}");
        }
    }
}
