//! The `[Captures]` of a Hurl file as what a check takes of its answer.

use regex_lite::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::super::capture::{Capture, Filter, Query};
use super::asserts::is_of_many;
use super::values::{Variables, Wanted, quoted, value};

/// The words of a capture that are left.
struct Words<'a> {
    rest: &'a str,
    variables: &'a Variables,
}

/// Reads `NAME: QUERY [FILTER]… [redact]`; a name that was given as a secret is one without `redact`.
///
/// # Errors
/// What hob does not have, and what is no capture.
pub(super) fn capture(
    line: &str,
    variables: &Variables,
    is_secret: impl Fn(&str) -> bool,
) -> Result<Capture, String> {
    let (name, rest) = line.split_once(':').ok_or("a capture is written as `NAME: QUERY`")?;
    let name = name.trim();
    if name.is_empty() || !name.chars().all(|each| each.is_alphanumeric() || "_-".contains(each)) {
        return Err(format!("`{name}` is no name of a variable"));
    }
    let mut words = Words { rest, variables };
    let query = words.query()?;
    let mut capture =
        Capture { name: name.to_owned(), query, filters: Vec::new(), is_secret: is_secret(name) };
    while let Some(word) = words.next() {
        if word == "redact" {
            capture.is_secret = true;
            if let Some(word) = words.next() {
                return Err(format!("`{word}` stands behind `redact`, the end of a capture"));
            }
            break;
        }
        capture.filters.push(words.filter(&word)?);
    }
    Ok(capture)
}

impl Words<'_> {
    /// The next word; `None` at the end of the line or at a comment.
    fn next(&mut self) -> Option<String> {
        let rest = self.rest.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            return None;
        }
        let end = rest.find(|each: char| each.is_whitespace() || each == '#');
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        Some(word.to_owned())
    }

    fn text(&mut self) -> Result<String, String> {
        let (text, rest) = quoted(self.rest, self.variables)?;
        self.rest = rest;
        Ok(text)
    }

    fn regex(&mut self) -> Result<Regex, String> {
        let (found, rest) = value(self.rest, self.variables)?;
        self.rest = rest;
        let text = match found {
            Wanted::Regex(text) | Wanted::Value(Value::String(text)) => text,
            Wanted::Value(_) | Wanted::Late => {
                return Err("a regular expression is missing".to_owned());
            }
        };
        Regex::new(&text).map_err(|error| format!("`{text}`: {error}"))
    }

    fn path(&mut self) -> Result<(JsonPath, bool), String> {
        let text = self.text()?;
        let path = JsonPath::parse(&text).map_err(|error| format!("`{text}`: {error}"))?;
        Ok((path, is_of_many(&text)))
    }

    fn query(&mut self) -> Result<Query, String> {
        let word = self.next().ok_or("a query is missing, such as `jsonpath \"$.id\"`")?;
        Ok(match &*word {
            "status" => Query::Status,
            "url" => Query::Url,
            "duration" => Query::Duration,
            "body" => Query::Body,
            "header" => Query::Header(self.text()?.to_ascii_lowercase()),
            "cookie" => {
                let name = self.text()?;
                if name.contains('[') {
                    return Err("of a cookie only the value is known here".to_owned());
                }
                Query::Cookie(name)
            }
            "jsonpath" => {
                let (path, many) = self.path()?;
                Query::Json(path, many)
            }
            "regex" => Query::Regex(self.regex()?),
            "variable" => {
                let name = self.text()?;
                Query::Value(self.variables.value(&name)?)
            }
            other => return Err(format!("a capture of `{other}` is not known here")),
        })
    }

    fn filter(&mut self, word: &str) -> Result<Filter, String> {
        Ok(match word {
            "count" => Filter::Count,
            "first" => Filter::First,
            "last" => Filter::Last,
            "nth" => {
                let number = self.next().and_then(|word| word.parse().ok());
                Filter::Nth(number.ok_or("nth: a whole number is missing")?)
            }
            "regex" => Filter::Regex(self.regex()?),
            "replace" => Filter::Replace(self.text()?, self.text()?),
            "replaceRegex" => Filter::ReplaceRegex(self.regex()?, self.text()?),
            "split" => Filter::Split(self.text()?),
            "jsonpath" => {
                let (path, many) = self.path()?;
                Filter::Json(path, many)
            }
            "toInt" => Filter::ToInt,
            "toFloat" => Filter::ToFloat,
            "toString" => Filter::ToString,
            "urlEncode" => Filter::UrlEncode,
            "urlDecode" => Filter::UrlDecode,
            "urlQueryParam" => Filter::UrlQueryParam(self.text()?),
            other => return Err(format!("the filter `{other}` is not known here")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Capture, String> {
        capture(line, &Variables::default(), |name| name == "token")
    }

    #[test]
    fn a_capture_is_a_name_a_query_and_filters() {
        let found = read("id : header \"Location\" regex /(\\d+)$/ toInt # the new one").unwrap();
        assert_eq!((&*found.name, found.is_secret), ("id", false));
        assert!(matches!(&found.query, Query::Header(name) if name == "location"));
        assert!(matches!(&found.filters[..], [Filter::Regex(_), Filter::ToInt]));
        assert!(read("a: jsonpath \"$.t\" redact").unwrap().is_secret);
        assert!(read("token: jsonpath \"$.t\"").unwrap().is_secret);
        for line in [
            "a: status",
            "a: url",
            "a: duration",
            "a: body",
            "a: cookie \"sid\"",
            "a: jsonpath \"$.items[*].id\" nth -1",
            "a: regex \"id=(.*)\"",
            "a: body split \",\" first replace \"a\" \"b\" replaceRegex /c/ \"d\" urlEncode",
            "a: body jsonpath \"$.a\" toString urlDecode",
            "a: url urlQueryParam \"code\" toFloat",
        ] {
            assert!(read(line).is_ok(), "{line}: {:?}", read(line));
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (line, said) in [
            ("a", "a capture is written as"),
            (": status", "`` is no name"),
            ("a b: status", "`a b` is no name"),
            ("a:", "a query is missing"),
            ("a: xpath \"//a\"", "a capture of `xpath` is not known here"),
            ("a: bytes", "a capture of `bytes` is not known here"),
            ("a: certificate \"Subject\"", "a capture of `certificate`"),
            ("a: cookie \"sid[Expires]\"", "of a cookie only the value"),
            ("a: header Location", "a text in quotes is missing"),
            ("a: jsonpath \"$.\"", "`$.`: "),
            ("a: regex /(/", "`(`: "),
            ("a: regex 3", "a regular expression is missing"),
            ("a: variable \"none\"", "no variable `none`"),
            ("a: body base64Decode", "the filter `base64Decode` is not known here"),
            ("a: body nth", "nth: a whole number is missing"),
            ("a: body redact count", "`count` stands behind `redact`"),
        ] {
            let wrong = read(line).unwrap_err();
            assert!(wrong.starts_with(said), "{line}: {wrong}");
        }
    }
}
