//! What is taken of an answer, by a name, for the requests that come after it.
//!
//! Invariants: no message holds a value, since it may be a secret; what is not found is a fault, and
//! never an empty text.

use std::collections::BTreeMap;

use serde_json::Value;

use super::query::Found;
use super::{Filter, Held, Query, Seen};

/// What was taken, by its name.
pub(crate) type Values = BTreeMap<String, Value>;

/// What is to be taken.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) query: Query,
    pub(crate) filters: Vec<Filter>,
    /// Whether nothing may show it.
    pub(crate) is_secret: bool,
}

impl Capture {
    /// What it takes of an answer.
    ///
    /// # Errors
    /// It is not there, or nothing that one text can say.
    pub(crate) fn take(&self, seen: Seen<'_>) -> Result<Value, String> {
        let wrong = |why: String| format!("capture {}: {why}", self.name);
        let nothing = || wrong("nothing is found".to_owned());
        let mut found = self.query.find(seen).map_err(wrong)?;
        for filter in &self.filters {
            let Found::Value(value) = found else { return Err(nothing()) };
            found = filter.apply(&value).map_err(wrong)?;
            if matches!(found, Found::Nothing) {
                return Err(wrong(format!("{} finds nothing", filter.word())));
            }
        }
        match found {
            Found::Nothing => Err(nothing()),
            Found::Value(Held::Bytes(_)) => {
                Err(wrong("is bytes; a filter such as `toHex` makes a text of them".into()))
            }
            Found::Value(Held::Value(Value::Array(_))) => {
                Err(wrong("is a list; a filter such as `nth 0` takes one".into()))
            }
            Found::Value(Held::Value(Value::Object(_))) => {
                Err(wrong("is an object, and no single value".into()))
            }
            Found::Value(Held::Value(
                value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)),
            )) => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_http::client::{Answer, Url};
    use regex_lite::Regex;
    use serde_json_path::JsonPath;

    use super::super::Attribute;
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
        check(Query::Cookie("sid".to_owned(), Attribute::Value), "a=b".into());
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
            (Query::Cookie("none".to_owned(), Attribute::Value), "capture x: nothing is found"),
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
