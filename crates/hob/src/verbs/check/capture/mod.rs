//! What is taken of an answer, by a name, for the requests that come after it.
//!
//! ```text
//!   answer ─▶ query: status, header, cookie, body, … ─▶ filters ─▶ a text, number, or truth
//! ```
//! Invariants: no message holds a value, since it may be a secret; what is not found is a fault, and
//! never an empty text. How a file writes a capture is not known here.

mod filters;

use std::collections::BTreeMap;

use hob_http::client::{Answer, Url};
use regex_lite::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;

pub(super) use filters::Filter;

/// What was taken, by its name.
pub(super) type Values = BTreeMap<String, Value>;

/// What is to be taken.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    pub(super) name: String,
    pub(super) query: Query,
    pub(super) filters: Vec<Filter>,
    /// Whether nothing may show it.
    pub(super) is_secret: bool,
}

/// Where it stands in an answer.
#[derive(Debug, Clone)]
pub(super) enum Query {
    Status,
    /// The address that was asked last.
    Url,
    /// In milliseconds.
    Duration,
    Body,
    /// By its name in lower case.
    Header(String),
    Cookie(String),
    /// The path, and whether it may find more than one value.
    Json(JsonPath, bool),
    /// The first group of it.
    Regex(Regex),
    /// Not of the answer at all, but known.
    Value(Value),
}

/// An answer, and what was asked for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) answer: &'a Answer,
    pub(super) url: &'a Url,
    pub(super) took_ms: u64,
}

impl Capture {
    /// What it takes of an answer.
    ///
    /// # Errors
    /// It is not there, or nothing that one text can say.
    pub(super) fn take(&self, seen: Seen<'_>) -> Result<Value, String> {
        let wrong = |why: String| format!("capture {}: {why}", self.name);
        let mut value = self.query.find(seen).map_err(wrong)?;
        for filter in &self.filters {
            value = filter.apply(&value).map_err(wrong)?;
        }
        match &value {
            Value::Array(_) => Err(wrong("is a list; a filter such as `nth 0` takes one".into())),
            Value::Object(_) => Err(wrong("is an object, and no single value".into())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value),
        }
    }
}

impl Query {
    fn find(&self, seen: Seen<'_>) -> Result<Value, String> {
        let nothing = || "nothing is found".to_owned();
        let headers = |wanted: &str| {
            let found = seen.answer.headers.iter().filter(|(name, _)| name == wanted);
            found.map(|(_, value)| String::from_utf8_lossy(value)).collect::<Vec<_>>()
        };
        match self {
            Query::Status => Ok(seen.answer.status.into()),
            Query::Url => Ok(seen.url.to_string().into()),
            Query::Duration => Ok(seen.took_ms.into()),
            Query::Body => Ok(text(seen)?.into()),
            Query::Header(name) => match &headers(name)[..] {
                [] => Err(nothing()),
                [one] => Ok(one.as_ref().into()),
                all => Ok(all.iter().map(|one| one.as_ref()).collect()),
            },
            Query::Cookie(wanted) => {
                let all = headers("set-cookie");
                let mut pairs =
                    all.iter().filter_map(|line| line.split(';').next()?.split_once('='));
                let found = pairs.rfind(|(name, _)| name.trim() == wanted);
                found.map(|(_, value)| value.trim().into()).ok_or_else(nothing)
            }
            Query::Json(path, many) => {
                let value = serde_json::from_str(text(seen)?);
                let value = value.map_err(|_| "the body is no JSON".to_owned())?;
                at(path, *many, &value).ok_or_else(nothing)
            }
            Query::Regex(regex) => first_group(regex, text(seen)?).ok_or_else(nothing),
            Query::Value(value) => Ok(value.clone()),
        }
    }
}

/// The body as text. Decoding is where a few bytes become gigabytes, so none is done.
fn text(seen: Seen<'_>) -> Result<&str, String> {
    let encoding = seen.answer.header("content-encoding").filter(|name| name != "identity");
    if let Some(encoding) = encoding {
        return Err(format!("the body is encoded as {encoding}, which was not asked for"));
    }
    std::str::from_utf8(&seen.answer.body).map_err(|_| "the body is no UTF-8".to_owned())
}

/// What a path finds: of one that may find many, a list.
fn at(path: &JsonPath, many: bool, value: &Value) -> Option<Value> {
    let found = path.query(value).all();
    match (many, &found[..]) {
        (true, all) => Some(all.iter().copied().cloned().collect()),
        (false, [one, ..]) => Some((*one).clone()),
        (false, []) => None,
    }
}

fn first_group(regex: &Regex, text: &str) -> Option<Value> {
    Some(regex.captures(text)?.get(1)?.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(query: Query, filters: Vec<Filter>) -> Result<Value, String> {
        let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        let answer = Answer {
            status: 201,
            headers: vec![
                header("location", "/items/7"),
                header("set-cookie", "sid=a=b; Path=/"),
                header("set-cookie", "theme=dark"),
            ],
            body: br#"{"id": 7, "token": "t-1", "all": [1, 2], "none": null}"#.to_vec(),
            cut: false,
            took: std::time::Duration::ZERO,
        };
        let url = Url::parse("http://h:1/items?a=b").unwrap();
        let seen = Seen { answer: &answer, url: &url, took_ms: 12 };
        Capture { name: "x".to_owned(), query, filters, is_secret: false }.take(seen)
    }

    #[test]
    fn each_query_finds_its_part_of_the_answer() {
        let json = |path: &str| Query::Json(JsonPath::parse(path).unwrap(), path.contains('*'));
        let regex = |text: &str| Query::Regex(Regex::new(text).unwrap());
        let check = |query: Query, want: Value| assert_eq!(taken(query, Vec::new()), Ok(want));
        check(Query::Status, 201.into());
        check(Query::Url, "http://h:1/items?a=b".into());
        check(Query::Duration, 12.into());
        check(Query::Header("location".to_owned()), "/items/7".into());
        check(Query::Cookie("sid".to_owned()), "a=b".into());
        check(json("$.id"), 7.into());
        check(json("$.none"), Value::Null);
        check(regex("\"token\": \"(.*?)\""), "t-1".into());
        check(Query::Value(true.into()), true.into());
        assert_eq!(taken(json("$.all[*]"), vec![Filter::Count]), Ok(2.into()));
        assert_eq!(taken(Query::Header("set-cookie".into()), vec![Filter::Count]), Ok(2.into()));
    }

    #[test]
    fn what_is_not_found_or_is_many_is_a_fault() {
        let json = |path: &str| Query::Json(JsonPath::parse(path).unwrap(), path.contains('*'));
        let regex = |text: &str| Query::Regex(Regex::new(text).unwrap());
        for (query, said) in [
            (Query::Header("etag".to_owned()), "capture x: nothing is found"),
            (Query::Header("set-cookie".to_owned()), "capture x: is a list"),
            (Query::Cookie("none".to_owned()), "capture x: nothing is found"),
            (json("$.other"), "capture x: nothing is found"),
            (json("$"), "capture x: is an object"),
            (json("$.all"), "capture x: is a list"),
            (regex("nothing (.*)"), "capture x: nothing is found"),
            // Without a group there is nothing to take.
            (regex("token"), "capture x: nothing is found"),
        ] {
            let wrong = taken(query, Vec::new()).unwrap_err();
            assert!(wrong.starts_with(said), "{wrong}, expected {said}");
        }
    }
}
