//! What a value is expected to be: the tests of `json` and `header`.
//!
//! ```text
//!   "exists"  "absent"  "count >= 1"  ">= 3"  "!= 'x'"  "contains TEXT"  "matches REGEX"
//!   anything else: equal to it
//! ```

use regex_lite::Regex;
use serde_json::Value;

use super::secrets::Secrets;

/// So much of a value is shown.
const SHORT_BYTES: usize = 80;

/// One test.
#[derive(Debug, Clone)]
pub(crate) enum Expect {
    Exists,
    Absent,
    Count(Relation, f64),
    Is(Relation, Value),
    Contains(String),
    Matches(Regex),
}

/// How two values lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Differs,
    AtLeast,
    AtMost,
    More,
    Less,
}

/// The longer ones first.
const RELATIONS: [(&str, Relation); 6] = [
    ("==", Relation::Equal),
    ("!=", Relation::Differs),
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::More),
    ("<", Relation::Less),
];

impl Expect {
    /// Reads a test.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(value: &toml::Value) -> Result<Expect, String> {
        let Some(text) = value.as_str() else {
            return Ok(Expect::Is(Relation::Equal, json(value)));
        };
        match text {
            "exists" => return Ok(Expect::Exists),
            "absent" => return Ok(Expect::Absent),
            _ => {}
        }
        if let Some(part) = text.strip_prefix("contains ") {
            return Ok(Expect::Contains(part.to_owned()));
        }
        if let Some(regex) = text.strip_prefix("matches ") {
            let regex = Regex::new(regex).map_err(|error| format!("`{regex}`: {error}"))?;
            return Ok(Expect::Matches(regex));
        }
        if let Some(rest) = text.strip_prefix("count ") {
            if let Some((relation, number)) = relation(rest)
                && let Ok(number) = number.parse()
            {
                return Ok(Expect::Count(relation, number));
            }
            return Err(format!("`{text}`: a count is written as `count >= 1`"));
        }
        Ok(match relation(text) {
            Some((relation, of)) => {
                let quoted = of.strip_prefix('\'').and_then(|of| of.strip_suffix('\''));
                let read = || serde_json::from_str(of).unwrap_or_else(|_| of.into());
                Expect::Is(relation, quoted.map_or_else(read, Value::from))
            }
            None => Expect::Is(Relation::Equal, text.into()),
        })
    }

    /// Why the values that were found are not as expected; `None` if they are.
    pub(crate) fn fault(&self, found: &[&Value], secrets: &Secrets) -> Option<String> {
        let short = |value: &Value| short(value, secrets);
        let each = |passes: &dyn Fn(&Value) -> bool, words: &str| {
            if found.is_empty() {
                return Some(format!("is absent, expected {words}"));
            }
            let wrong = found.iter().find(|value| !passes(value))?;
            Some(format!("is {}, expected {words}", short(wrong)))
        };
        match self {
            Expect::Exists => found.is_empty().then(|| "is absent, expected some".to_owned()),
            Expect::Absent => {
                let first = found.first()?;
                Some(format!("is {}, expected none", short(first)))
            }
            Expect::Count(relation, number) => {
                let count = count(found);
                let passes = relation.holds(count.partial_cmp(number));
                (!passes).then(|| format!("counts {count}, expected {} {number}", relation.sign()))
            }
            Expect::Is(Relation::Equal, want) => each(&|value| equal(value, want), &short(want)),
            Expect::Is(Relation::Differs, want) => {
                each(&|value| !equal(value, want), &format!("!= {}", short(want)))
            }
            Expect::Is(relation, want) => {
                let words = format!("{} {}", relation.sign(), short(want));
                each(&|value| relation.holds(order(value, want)), &words)
            }
            Expect::Contains(part) => {
                let passes = |value: &Value| match value {
                    Value::String(text) => text.contains(part),
                    Value::Array(all) => all.iter().any(|one| one.as_str() == Some(part)),
                    Value::Object(map) => map.contains_key(part),
                    Value::Null | Value::Bool(_) | Value::Number(_) => {
                        value.to_string().contains(part)
                    }
                };
                each(&passes, &format!("contains {part}"))
            }
            Expect::Matches(regex) => {
                let passes = |value: &Value| match value.as_str() {
                    Some(text) => regex.is_match(text),
                    None => regex.is_match(&value.to_string()),
                };
                each(&passes, &format!("matches {regex}"))
            }
        }
    }
}

impl Relation {
    /// By its sign.
    pub(crate) fn named(sign: &str) -> Option<Relation> {
        RELATIONS.iter().find(|(known, _)| *known == sign).map(|(_, relation)| *relation)
    }

    /// Whether values that lie so are as it wants them.
    pub(crate) fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        match self {
            Relation::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Relation::Differs => order.is_some_and(std::cmp::Ordering::is_ne),
            Relation::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
            Relation::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
            Relation::More => order.is_some_and(std::cmp::Ordering::is_gt),
            Relation::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        }
    }

    pub(crate) fn sign(self) -> &'static str {
        RELATIONS.iter().find(|(_, relation)| *relation == self).map_or("", |(sign, _)| sign)
    }
}

fn relation(text: &str) -> Option<(Relation, &str)> {
    let text = text.trim();
    let found = |(sign, relation): &(&str, Relation)| Some((*relation, text.strip_prefix(sign)?));
    RELATIONS.iter().find_map(found).map(|(relation, rest)| (relation, rest.trim()))
}

/// The entries of the one list or object that was found, else the values themselves.
#[expect(clippy::cast_precision_loss, reason = "entries of an answer of some megabytes")]
fn count(found: &[&Value]) -> f64 {
    let count = match found {
        [Value::Array(all)] => all.len(),
        [Value::Object(map)] => map.len(),
        _ => found.len(),
    };
    count as f64
}

fn equal(one: &Value, other: &Value) -> bool {
    one == other || order(one, other).is_some_and(std::cmp::Ordering::is_eq)
}

/// Numbers by size, texts by their characters; a text that is a number, beside a number, is one.
fn order(one: &Value, other: &Value) -> Option<std::cmp::Ordering> {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    match (one, other) {
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Number(_), _) | (_, Value::Number(_)) => number(one)?.partial_cmp(&number(other)?),
        _ => None,
    }
}

/// A value as text, cut. Secrets go first: of one that is cut the rest would be shown.
pub(crate) fn short(value: &Value, secrets: &Secrets) -> String {
    let text = value.to_string();
    let short = secrets.beginning(&text, SHORT_BYTES);
    if text.len() > SHORT_BYTES { format!("{short}…") } else { short }
}

/// A value of TOML as one of JSON.
pub(crate) fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(all) => all.iter().map(json).collect(),
        toml::Value::Table(map) => {
            let map = map.iter().map(|(key, value)| (key.clone(), json(value)));
            Value::Object(map.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_as_it_was_expected_or_the_difference_is_told() {
        let check = |test: toml::Value, found: Value, want: Option<&str>| {
            let expect = Expect::read(&test).unwrap();
            assert_eq!(
                expect.fault(&[&found], &Secrets::default()).as_deref(),
                want,
                "{test:?} of {found}"
            );
        };
        let text = |text: &str| toml::Value::from(text);
        check(text("count >= 1"), serde_json::json!([1]), None);
        check(text("count >= 1"), serde_json::json!([]), Some("counts 0, expected >= 1"));
        check(3.into(), 3.0.into(), None);
        check(3.into(), "3".into(), None);
        check(text("x"), "y".into(), Some("is \"y\", expected \"x\""));
        check(text("== 'exists'"), "exists".into(), None);
        check(text("< 10"), 9.into(), None);
        check(text("< 10"), "abc".into(), Some("is \"abc\", expected < 10"));
        check(text("!= 'a'"), "b".into(), None);
        check(text("contains b"), "abc".into(), None);
        check(text("matches ^a.c$"), "abd".into(), Some("is \"abd\", expected matches ^a.c$"));
        check(true.into(), Value::Bool(true), None);
        check(text("absent"), Value::Null, Some("is null, expected none"));
        assert_eq!(
            Expect::Exists.fault(&[], &Secrets::default()).as_deref(),
            Some("is absent, expected some")
        );
        assert!(Expect::read(&text("count many")).is_err());
        assert!(Expect::read(&text("matches (")).is_err());
    }
}
