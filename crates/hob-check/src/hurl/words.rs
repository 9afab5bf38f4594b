//! Queries and filters of a Hurl file, as captures and asserts have them.

use regex_lite::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::super::answer::{Attribute, Filter, Query};
use super::values::{Variables, Wanted, quoted, value};

/// The words of a line that are left.
pub(crate) struct Words<'a> {
    pub(crate) rest: &'a str,
    pub(crate) variables: &'a Variables,
}

impl Words<'_> {
    /// The next word; `None` at the end of the line or at a comment.
    pub(crate) fn next(&mut self) -> Option<String> {
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

    pub(crate) fn regex(&mut self) -> Result<Regex, String> {
        let (found, rest) = value(self.rest, self.variables)?;
        self.rest = rest;
        let text = match found {
            Wanted::Regex(text) | Wanted::Value(Value::String(text)) => text,
            Wanted::Value(_) | Wanted::Bytes(_) | Wanted::Late => {
                return Err("a regular expression is missing".to_owned());
            }
        };
        Regex::new(&text).map_err(|error| format!("`{text}`: {error}"))
    }

    fn path(&mut self) -> Result<(JsonPath, bool), String> {
        let text = self.text()?;
        let path = JsonPath::parse(&strict(&text)).map_err(|error| format!("`{text}`: {error}"))?;
        Ok((path, is_of_many(&text)))
    }

    pub(crate) fn query(&mut self) -> Result<Query, String> {
        let word = self.next().ok_or("a query is missing, such as `jsonpath \"$.id\"`")?;
        Ok(match &*word {
            "status" => Query::Status,
            "url" => Query::Url,
            "duration" => Query::Duration,
            "body" => Query::Body,
            "bytes" => Query::Bytes,
            "sha256" => Query::Sha256,
            "md5" => Query::Md5,
            "version" => Query::Version,
            "header" => Query::Header(self.text()?.to_ascii_lowercase()),
            "cookie" => {
                let text = self.text()?;
                let parts = text.strip_suffix(']').and_then(|text| text.split_once('['));
                let (name, attribute) = match parts {
                    None => (text.as_str(), Attribute::Value),
                    Some((name, attribute)) => {
                        let known = Attribute::named(attribute);
                        (
                            name,
                            known.ok_or_else(|| {
                                format!("`{attribute}` of a cookie is not known here")
                            })?,
                        )
                    }
                };
                Query::Cookie(name.to_owned(), attribute)
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
            other => return Err(format!("`{other}` of an answer is not known here")),
        })
    }

    pub(crate) fn filter(&mut self, word: &str) -> Result<Filter, String> {
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
            "base64Decode" => Filter::Base64Decode,
            "base64Encode" => Filter::Base64Encode,
            "htmlEscape" => Filter::HtmlEscape,
            "htmlUnescape" => Filter::HtmlUnescape,
            "toHex" => Filter::ToHex,
            "decode" => {
                let charset = self.text()?;
                if !charset.eq_ignore_ascii_case("utf-8") {
                    return Err(format!("decode: only `utf-8` is known here, not `{charset}`"));
                }
                Filter::Decode
            }
            "urlQueryParam" => Filter::UrlQueryParam(self.text()?),
            other => return Err(format!("`{other}` is no predicate or filter that is known here")),
        })
    }
}

/// Whether a JSONPath may find more than one value.
fn is_of_many(path: &str) -> bool {
    // Names in quotes may hold any of these.
    let mut rest = path;
    let mut bare = String::new();
    while let Some(at) = rest.find(['\'', '"']) {
        let quote = &rest[at..=at];
        bare += &rest[..at];
        rest = rest[at + 1..].split_once(quote).map_or("", |(_, behind)| behind);
    }
    bare += rest;
    bare.contains(['*', '?', ':', ',']) || bare.contains("..")
}

/// A path as the RFC has it: Hurl also takes a name such as `content-type` or `1st` without quotes.
fn strict(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some(at) = rest.find(['.', '\'', '"']) {
        let (before, behind) = rest.split_at(at);
        out += before;
        let (mark, behind) = behind.split_at(1);
        if mark != "." {
            let end = behind.find(mark).map_or(behind.len(), |end| end + 1);
            out += mark;
            out += &behind[..end];
            rest = &behind[end..];
            continue;
        }
        let is_part = |each: char| each.is_alphanumeric() || "_-".contains(each);
        let end = behind.find(|each| !is_part(each)).unwrap_or(behind.len());
        let (name, behind) = behind.split_at(end);
        let is_bare = !name.contains('-') && !name.starts_with(|each: char| each.is_ascii_digit());
        // Within brackets a point is one of a number.
        let is_inside = out.matches('[').count() > out.matches(']').count();
        match name.is_empty() || is_bare || is_inside || out.ends_with('.') {
            true => out += &format!(".{name}"),
            false => out += &format!("['{name}']"),
        }
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_hurls_is_one_of_the_rfc() {
        for (path, want) in [
            ("$.a.b", "$.a.b"),
            ("$.headers.content-type", "$.headers['content-type']"),
            ("$.a.1st[0]", "$.a['1st'][0]"),
            ("$..a", "$..a"),
            ("$['x.y-z'].a", "$['x.y-z'].a"),
            ("$.a[?(@.b > 1.5)].c", "$.a[?(@.b > 1.5)].c"),
            ("$.a[?(@['x-y'] == \"b.c-d\")]", "$.a[?(@['x-y'] == \"b.c-d\")]"),
        ] {
            assert_eq!(strict(path), want);
            assert!(JsonPath::parse(want).is_ok(), "{want}");
        }
        let many = |path: &str| is_of_many(path);
        assert!(many("$.a[*]") && many("$..a") && many("$[0:2]") && many("$[?@.a]"));
        assert!(!many("$.a[0]") && !many("$['a*b,c:d'].e"));
    }
}
