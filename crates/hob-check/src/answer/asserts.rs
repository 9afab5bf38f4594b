//! What an answer is asserted to hold, as Hurl has it: values of different kinds are never equal, and
//! to compare what cannot be compared is a fault, turned round or not.

use std::cmp::Ordering;
use std::net::IpAddr;

use regex_lite::Regex;
use serde_json::Value;

use super::super::expect::Relation;
use super::super::secrets::Secrets;
use super::query::Found;
use super::{Filter, Held, Query, Seen};

/// One assert.
#[derive(Debug, Clone)]
pub(crate) struct Assert {
    /// What it is about, for a person.
    pub(crate) about: String,
    pub(crate) query: Query,
    pub(crate) filters: Vec<Filter>,
    /// Whether the predicate is turned round.
    pub(crate) not: bool,
    pub(crate) predicate: Predicate,
}

/// What a value is to be.
#[derive(Debug, Clone)]
pub(crate) enum Predicate {
    Exists,
    Empty,
    Is(Relation, Held),
    Contains(Held),
    Includes(Held),
    StartsWith(Held),
    EndsWith(Held),
    Matches(Regex),
    Kind(Kind),
    /// Of several values of one name, one is this.
    OneIs(String),
}

/// What kind of value it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Collection,
    Float,
    Integer,
    Number,
    String,
    Ipv4,
    Ipv6,
    IsoDate,
    Uuid,
}

/// Values that this predicate says nothing of.
struct Mismatch;

impl Assert {
    /// Why the answer is not as asserted; `None` if it is.
    pub(crate) fn fault(&self, seen: Seen<'_>, secrets: &Secrets) -> Option<String> {
        let told = |why: String| Some(format!("{} {why}", secrets.redacted(&self.about)));
        let mut found = match self.query.find(seen) {
            Ok(found) => found,
            Err(why) => return told(format!("cannot be looked at: {why}")),
        };
        for filter in &self.filters {
            let value = match found {
                Found::Value(value) => value,
                Found::Nothing => return told("is absent, and there is nothing to filter".into()),
            };
            found = match filter.apply(&value) {
                Ok(made) => made,
                Err(why) => return told(format!("cannot be filtered: {why}")),
            };
        }
        let not = if self.not { "not " } else { "" };
        let wanted = || format!("expected {not}{}", self.predicate.shown(secrets));
        let Found::Value(value) = found else {
            // As Hurl has it, nothing is none of all that it could be.
            return if self.not { None } else { told(format!("is absent, {}", wanted())) };
        };
        match self.predicate.holds(&value) {
            Ok(holds) if holds != self.not => None,
            Ok(_) => told(format!("is {}, {}", value.shown(secrets), wanted())),
            Err(Mismatch) => {
                told(format!("is {}, which cannot be compared: {}", value.shown(secrets), wanted()))
            }
        }
    }
}

impl Predicate {
    fn holds(&self, found: &Held) -> Result<bool, Mismatch> {
        let text = || found.text().ok_or(Mismatch);
        Ok(match self {
            Predicate::Exists => true,
            Predicate::Empty => found.count().ok_or(Mismatch)? == 0,
            Predicate::Is(Relation::Equal, want) => found == want,
            Predicate::Is(Relation::Differs, want) => found != want,
            Predicate::Is(relation, want) => relation.holds(Some(compared(found, want)?)),
            Predicate::Contains(want) => match (found, want) {
                (Held::Bytes(bytes), Held::Bytes(part)) => has(bytes, part),
                (Held::Value(Value::String(text)), Held::Value(Value::String(part))) => {
                    text.contains(part)
                }
                _ => includes(found, want)?,
            },
            Predicate::Includes(want) => includes(found, want)?,
            Predicate::StartsWith(want) => match (found, want) {
                (Held::Bytes(bytes), Held::Bytes(part)) => bytes.starts_with(part),
                (_, part) => text()?.starts_with(part.text().ok_or(Mismatch)?),
            },
            Predicate::EndsWith(want) => match (found, want) {
                (Held::Bytes(bytes), Held::Bytes(part)) => bytes.ends_with(part),
                (_, part) => text()?.ends_with(part.text().ok_or(Mismatch)?),
            },
            Predicate::Matches(regex) => regex.is_match(text()?),
            Predicate::Kind(kind) => kind.holds(found)?,
            Predicate::OneIs(want) => match found.list() {
                Some(all) => all.iter().any(|one| one == want.as_str()),
                None => text()? == want,
            },
        })
    }

    /// As a person reads it, without secrets.
    fn shown(&self, secrets: &Secrets) -> String {
        match self {
            Predicate::Exists => "some".to_owned(),
            Predicate::Empty => "it to be empty".to_owned(),
            Predicate::Is(Relation::Equal, want) => want.shown(secrets),
            Predicate::Is(relation, want) => format!("{} {}", relation.sign(), want.shown(secrets)),
            Predicate::Contains(want) => format!("contains {}", want.shown(secrets)),
            Predicate::Includes(want) => format!("includes {}", want.shown(secrets)),
            Predicate::StartsWith(want) => format!("startsWith {}", want.shown(secrets)),
            Predicate::EndsWith(want) => format!("endsWith {}", want.shown(secrets)),
            Predicate::Matches(regex) => format!("matches {}", secrets.redacted(regex.as_str())),
            Predicate::Kind(kind) => kind.word().to_owned(),
            Predicate::OneIs(want) => Held::from(Value::from(want.as_str())).shown(secrets),
        }
    }
}

impl Kind {
    /// By its word in a file.
    pub(crate) fn named(word: &str) -> Option<Kind> {
        ALL.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }

    fn word(self) -> &'static str {
        ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    fn holds(self, found: &Held) -> Result<bool, Mismatch> {
        let text = || found.text().ok_or(Mismatch);
        let number = match found {
            Held::Value(Value::Number(number)) => Some(number),
            Held::Value(_) | Held::Bytes(_) => None,
        };
        let is_whole = |number: &serde_json::Number| number.is_i64() || number.is_u64();
        Ok(match self {
            Kind::Boolean => matches!(found, Held::Value(Value::Bool(_))),
            Kind::Collection => {
                matches!(found, Held::Bytes(_) | Held::Value(Value::Array(_) | Value::Object(_)))
            }
            Kind::Float => number.is_some_and(|number| !is_whole(number)),
            Kind::Integer => number.is_some_and(is_whole),
            Kind::Number => number.is_some(),
            Kind::String => found.text().is_some(),
            Kind::Ipv4 => text()?.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()),
            Kind::Ipv6 => text()?.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
            Kind::IsoDate => text()?.parse::<jiff::Timestamp>().is_ok(),
            Kind::Uuid => is_uuid(text()?),
        })
    }
}

const ALL: [(&str, Kind); 10] = [
    ("isBoolean", Kind::Boolean),
    ("isCollection", Kind::Collection),
    ("isFloat", Kind::Float),
    ("isInteger", Kind::Integer),
    ("isNumber", Kind::Number),
    ("isString", Kind::String),
    ("isIpv4", Kind::Ipv4),
    ("isIpv6", Kind::Ipv6),
    ("isIsoDate", Kind::IsoDate),
    ("isUuid", Kind::Uuid),
];

/// Texts by their characters, numbers by their size.
fn compared(found: &Held, want: &Held) -> Result<Ordering, Mismatch> {
    match (found, want) {
        (Held::Value(Value::String(one)), Held::Value(Value::String(other))) => Ok(one.cmp(other)),
        (Held::Value(Value::Number(one)), Held::Value(Value::Number(other))) => {
            if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
                return Ok(one.cmp(&other));
            }
            let both = one.as_f64().zip(other.as_f64());
            both.and_then(|(one, other)| one.partial_cmp(&other)).ok_or(Mismatch)
        }
        _ => Err(Mismatch),
    }
}

fn includes(found: &Held, want: &Held) -> Result<bool, Mismatch> {
    let all = found.list().ok_or(Mismatch)?;
    Ok(match want {
        Held::Value(want) => all.contains(want),
        Held::Bytes(_) => false,
    })
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}

/// The four ways that are written: 8-4-4-4-12 digits, without dashes, in braces, behind `urn:uuid:`.
fn is_uuid(text: &str) -> bool {
    let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let text = inside.or_else(|| text.strip_prefix("urn:uuid:")).unwrap_or(text);
    let digits = |part: &str, count: usize| {
        part.len() == count && part.bytes().all(|each| each.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = text.split('-').collect();
    match parts[..] {
        [one] => inside.is_none() && digits(one, 32),
        [a, b, c, d, e] => {
            [(a, 8), (b, 4), (c, 4), (d, 4), (e, 12)].iter().all(|(p, n)| digits(p, *n))
        }
        _ => false,
    }
}
