//! The asserts of a Hurl file.

use regex_lite::Regex;
use serde_json::Value;

use super::super::answer::{Assert, Held, Kind, Predicate, Query};
use super::super::expect::Relation;
use super::values::{Variables, Wanted, quoted, value};
use super::words::Words;

/// All that an answer can have as its status.
const STATUSES: std::ops::Range<i64> = 100..600;

/// What an answer is to be.
#[derive(Debug, Default)]
pub(crate) struct Asserts {
    /// What is left of all statuses; `None`: nothing was said of it.
    pub(crate) statuses: Option<Vec<i64>>,
    pub(crate) all: Vec<Assert>,
    /// The longest time, in milliseconds.
    pub(crate) within_ms: Option<u64>,
}

impl Asserts {
    /// Leaves the statuses for which this holds.
    pub(crate) fn status(&mut self, holds: impl Fn(i64) -> bool) {
        let left = self.statuses.take().unwrap_or_else(|| STATUSES.collect());
        self.statuses = Some(left.into_iter().filter(|code| holds(*code)).collect());
    }

    /// Takes a header that stands behind the status: of several with its name one has this value.
    pub(crate) fn header(&mut self, name: &str, value: String) {
        let name = name.to_ascii_lowercase();
        self.all.push(Assert {
            about: format!("header {name}"),
            query: Query::Header(name),
            filters: Vec::new(),
            not: false,
            predicate: Predicate::OneIs(value),
        });
    }

    /// Takes a whole body.
    pub(crate) fn body(&mut self, text: String) {
        self.all.push(Assert {
            about: "the body".to_owned(),
            query: Query::Body,
            filters: Vec::new(),
            not: false,
            predicate: Predicate::Is(Relation::Equal, Held::Value(text.into())),
        });
    }

    /// Takes one line of `[Asserts]`.
    ///
    /// # Errors
    /// What hob does not have, and what is no assert.
    pub(crate) fn add(&mut self, line: &str, variables: &Variables) -> Result<(), String> {
        let line = line.trim();
        let mut words = Words { rest: line, variables };
        let query = words.query()?;
        let asked = about(&line[..line.len() - words.rest.len()], &query, variables);
        let (from, mut filters) = (words.rest, Vec::new());
        let mut to = from;
        let missing = || "a predicate is missing, such as `== 200`".to_owned();
        let mut word = words.next().ok_or_else(missing)?;
        while word != "not" && !is_predicate(&word) {
            filters.push(words.filter(&word)?);
            to = words.rest;
            word = words.next().ok_or_else(missing)?;
        }
        let filtered = from[..from.len() - to.len()].trim_end();
        let not = word == "not";
        if not {
            word = words.next().filter(|word| is_predicate(word)).ok_or_else(missing)?;
        }
        let predicate = predicate(&word, &mut words)?;
        if let Some(rest) = words.next() {
            return Err(format!("`{rest}` stands behind the end of an assert"));
        }
        let about = format!("{asked}{filtered}");
        self.take(Assert { about, query, filters, not, predicate });
        Ok(())
    }

    /// Keeps an assert where a check has no place of its own for what it says.
    fn take(&mut self, assert: Assert) {
        let plain = assert.filters.is_empty().then_some(&assert.query);
        match (plain, whole(&assert.predicate)) {
            (Some(Query::Status), Some((relation, number))) => {
                self.status(|code| relation.holds(Some(code.cmp(&number))) != assert.not);
            }
            (Some(Query::Duration), Some((Relation::Less | Relation::AtMost, ms @ 1..)))
                if !assert.not =>
            {
                let ms = ms.unsigned_abs();
                self.within_ms = Some(self.within_ms.map_or(ms, |other| other.min(ms)));
            }
            _ => self.all.push(assert),
        }
    }
}

/// What an assert is about, for a person.
fn about(text: &str, query: &Query, variables: &Variables) -> String {
    let text = text.trim();
    let named = |word: &str| {
        let (name, _) = quoted(text.strip_prefix(word)?, variables).ok()?;
        Some(name)
    };
    match query {
        Query::Json(..) => named("jsonpath").unwrap_or_else(|| text.to_owned()),
        Query::Header(name) => format!("header {name}"),
        Query::Cookie(..) => {
            named("cookie").map_or(text.to_owned(), |name| format!("cookie {name}"))
        }
        Query::Body => "the body".to_owned(),
        Query::Status
        | Query::Version
        | Query::Url
        | Query::Duration
        | Query::Bytes
        | Query::Sha256
        | Query::Md5
        | Query::Regex(_)
        | Query::Value(_) => text.to_owned(),
    }
}

/// A relation to a whole number; `None`: the predicate is none.
fn whole(predicate: &Predicate) -> Option<(Relation, i64)> {
    match predicate {
        Predicate::Is(relation, Held::Value(want)) => Some((*relation, want.as_i64()?)),
        Predicate::Is(_, Held::Bytes(_))
        | Predicate::Exists
        | Predicate::Empty
        | Predicate::Contains(_)
        | Predicate::Includes(_)
        | Predicate::StartsWith(_)
        | Predicate::EndsWith(_)
        | Predicate::Matches(_)
        | Predicate::Kind(_)
        | Predicate::OneIs(_) => None,
    }
}

fn is_predicate(word: &str) -> bool {
    const WORDS: [&str; 7] =
        ["contains", "includes", "matches", "startsWith", "endsWith", "exists", "isEmpty"];
    WORDS.contains(&word) || Relation::named(word).is_some() || Kind::named(word).is_some()
}

/// Reads what stands behind the word of a predicate.
fn predicate(word: &str, words: &mut Words<'_>) -> Result<Predicate, String> {
    if let Some(kind) = Kind::named(word) {
        return Ok(Predicate::Kind(kind));
    }
    match word {
        "exists" => return Ok(Predicate::Exists),
        "isEmpty" => return Ok(Predicate::Empty),
        _ => {}
    }
    let (wanted, rest) = value(words.rest, words.variables)?;
    words.rest = rest;
    let such = || format!("`{word}` of such a value is not known here");
    let held = match wanted {
        // It stands for itself until it is known; then the line is read again.
        Wanted::Late => Held::Value(Value::Null),
        Wanted::Value(value) => Held::Value(value),
        Wanted::Bytes(bytes) => Held::Bytes(bytes),
        Wanted::Regex(text) if word == "matches" => {
            let regex = Regex::new(&text).map_err(|error| format!("`{text}`: {error}"))?;
            return Ok(Predicate::Matches(regex));
        }
        Wanted::Regex(_) => return Err(such()),
    };
    let is_late = held == Held::Value(Value::Null);
    let is_text = matches!(held, Held::Bytes(_) | Held::Value(Value::String(_))) || is_late;
    let is_number = matches!(held, Held::Value(Value::Number(_) | Value::String(_))) || is_late;
    if let Some(relation) = Relation::named(word) {
        let fits = is_number || matches!(relation, Relation::Equal | Relation::Differs);
        return if fits { Ok(Predicate::Is(relation, held)) } else { Err(such()) };
    }
    match word {
        "contains" => Ok(Predicate::Contains(held)),
        "includes" => Ok(Predicate::Includes(held)),
        "startsWith" if is_text => Ok(Predicate::StartsWith(held)),
        "endsWith" if is_text => Ok(Predicate::EndsWith(held)),
        "matches" => match held {
            Held::Value(Value::String(text)) => {
                let regex = Regex::new(&text).map_err(|error| format!("`{text}`: {error}"))?;
                Ok(Predicate::Matches(regex))
            }
            Held::Value(_) | Held::Bytes(_) => Err(such()),
        },
        _ => Err(such()),
    }
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
    fn what_a_check_has_a_place_for_goes_there() {
        assert_eq!(added("duration < 800").unwrap().within_ms, Some(800));
        assert_eq!(added("status == 201").unwrap().statuses, Some(vec![201]));
        let left = added("status not >= 102").unwrap().statuses;
        assert_eq!(left, Some(vec![100, 101]));
        for line in ["duration > 5", "status toString matches /^2/", "duration not < 3"] {
            let asserts = added(line).unwrap();
            assert!(asserts.statuses.is_none() && asserts.within_ms.is_none(), "{line}");
            assert_eq!(asserts.all.len(), 1, "{line}");
        }
    }

    #[test]
    fn an_assert_says_what_it_is_about() {
        for (line, about) in [
            ("jsonpath \"$.a\" == 1", "$.a"),
            ("jsonpath \"$.a\" split \",\" count == 2 # two", "$.a split \",\" count"),
            ("header \"Content-Type\" contains \"json\"", "header content-type"),
            ("cookie \"sid[Path]\" == \"/\"", "cookie sid[Path]"),
            ("body contains \"x\"", "the body"),
            ("bytes count == 3", "bytes count"),
            ("sha256 == hex,00;", "sha256"),
        ] {
            assert_eq!(added(line).unwrap().all[0].about, about);
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            "xpath \"//a\" exists",
            "certificate \"Subject\" contains \"x\"",
            "redirects count == 1",
            "cookie \"a[Color]\" exists",
            "variable \"a\" == 1",
            "jsonpath \"$.a\" isDate",
            "jsonpath \"$.a\" toDate \"%Y\" exists",
            "jsonpath \"$.a\" decode \"gb2312\" == \"x\"",
            "jsonpath \"$.a\"",
            "jsonpath \"$.a\" count",
            "jsonpath \"$.a\" not",
            "jsonpath \"$.a\" not count == 1",
            "jsonpath $.a exists",
            "jsonpath \"$.a\" == 1 2",
            "jsonpath \"$.a\" > true",
            "jsonpath \"$.a\" startsWith 1",
            "jsonpath \"$.a\" == /x/",
            "jsonpath \"$.a\" matches 1",
            "jsonpath \"$.a\" == file,x;",
            "jsonpath \"$.a\" == hex,0;",
            "header \"a\"",
            "",
        ] {
            assert!(added(line).is_err(), "{line}");
        }
    }
}
