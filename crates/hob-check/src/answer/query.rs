//! Where a value stands in an answer.

use hob_http::client::{Answer, Url};
use md5::Digest as _;
use regex_lite::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::Held;

/// Where it stands.
#[derive(Debug, Clone)]
pub(crate) enum Query {
    Status,
    /// As the answer's own line has it, such as `1.1`.
    Version,
    /// The address that was asked last.
    Url,
    /// In milliseconds.
    Duration,
    Body,
    Bytes,
    Sha256,
    Md5,
    /// By its name in lower case.
    Header(String),
    Cookie(String, Attribute),
    /// The path, and whether it may find more than one value.
    Json(JsonPath, bool),
    /// The first group of it.
    Regex(Regex),
    /// Not of the answer at all, but known.
    Value(Value),
}

/// What of a cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attribute {
    Value,
    /// `Path`, `Domain`, `SameSite`, `Expires`: a text.
    Text(&'static str),
    /// `Max-Age`, in seconds.
    Number(&'static str),
    /// `Secure`, `HttpOnly`: there or not.
    Flag(&'static str),
}

/// An answer, and what was asked for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) answer: &'a Answer,
    pub(crate) url: &'a Url,
    pub(crate) took_ms: u64,
}

/// What stands there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    Value(Held),
    Nothing,
}

impl Found {
    pub(crate) fn of(value: impl Into<Value>) -> Found {
        Found::Value(Held::Value(value.into()))
    }

    pub(crate) fn maybe(value: Option<Value>) -> Found {
        value.map_or(Found::Nothing, Found::of)
    }
}

impl Attribute {
    /// By its name in a file; `None`: there is no such one.
    pub(crate) fn named(name: &str) -> Option<Attribute> {
        let all = [
            Attribute::Text("Path"),
            Attribute::Text("Domain"),
            Attribute::Text("SameSite"),
            Attribute::Number("Max-Age"),
            Attribute::Flag("Secure"),
            Attribute::Flag("HttpOnly"),
        ];
        let is = |attribute: &Attribute| match attribute {
            Attribute::Value => false,
            Attribute::Text(own) | Attribute::Number(own) | Attribute::Flag(own) => {
                own.eq_ignore_ascii_case(name)
            }
        };
        let value = name.eq_ignore_ascii_case("value").then_some(Attribute::Value);
        value.or_else(|| all.into_iter().find(is))
    }

    /// It, in a line of `Set-Cookie` that begins with this value.
    fn find(&self, value: &str, behind: &str) -> Found {
        let of = |wanted: &str| {
            let parts = behind.split(';').map(|part| part.split_once('=').unwrap_or((part, "")));
            let mut found = parts.filter(|(key, _)| key.trim().eq_ignore_ascii_case(wanted));
            found.next_back().map(|(_, value)| value.trim())
        };
        match self {
            Attribute::Value => Found::of(value),
            Attribute::Text(name) => Found::maybe(of(name).map(Value::from)),
            Attribute::Number(name) => {
                Found::maybe(of(name).and_then(|text| text.parse::<i64>().ok()).map(Value::from))
            }
            Attribute::Flag(name) => Found::maybe(of(name).map(|_| true.into())),
        }
    }
}

impl Query {
    /// What stands there.
    ///
    /// # Errors
    /// The answer is none in which it could stand; without a value, that could be a secret.
    pub(crate) fn find(&self, seen: Seen<'_>) -> Result<Found, String> {
        let headers = |wanted: &str| {
            let found = seen.answer.headers.iter().filter(|(name, _)| name == wanted);
            found.map(|(_, value)| String::from_utf8_lossy(value)).collect::<Vec<_>>()
        };
        Ok(match self {
            Query::Status => Found::of(seen.answer.status),
            Query::Version => Found::of("1.1"),
            Query::Url => Found::of(seen.url.to_string()),
            Query::Duration => Found::of(seen.took_ms),
            Query::Body => Found::of(text(seen)?),
            Query::Bytes => Found::Value(Held::Bytes(bytes(seen)?.to_vec())),
            Query::Sha256 => Found::Value(Held::Bytes(sha2::Sha256::digest(bytes(seen)?).to_vec())),
            Query::Md5 => Found::Value(Held::Bytes(md5::Md5::digest(bytes(seen)?).to_vec())),
            Query::Header(name) => match &headers(name)[..] {
                [] => Found::Nothing,
                [one] => Found::of(one.as_ref()),
                all => Found::of(all.iter().map(|one| one.as_ref()).collect::<Value>()),
            },
            Query::Cookie(wanted, attribute) => {
                let all = headers("set-cookie");
                let mut found = all.iter().filter_map(|line| {
                    let (first, behind) = line.split_once(';').unwrap_or((line, ""));
                    let (name, value) = first.split_once('=')?;
                    (name.trim() == wanted).then(|| attribute.find(value.trim(), behind))
                });
                found.next_back().unwrap_or(Found::Nothing)
            }
            Query::Json(path, many) => {
                let value = serde_json::from_str(text(seen)?);
                let value = value.map_err(|_| "the body is no JSON".to_owned())?;
                Found::maybe(at(path, *many, &value))
            }
            Query::Regex(regex) => Found::maybe(first_group(regex, text(seen)?)),
            Query::Value(value) => Found::of(value.clone()),
        })
    }
}

/// The body. Decoding is where a few bytes become gigabytes, so none is done.
fn bytes(seen: Seen<'_>) -> Result<&[u8], String> {
    let encoding = seen.answer.header("content-encoding").filter(|name| name != "identity");
    if let Some(encoding) = encoding {
        return Err(format!("the body is encoded as {encoding}, which was not asked for"));
    }
    if seen.answer.cut {
        return Err("the body was cut".to_owned());
    }
    Ok(&seen.answer.body)
}

/// The body as text.
fn text(seen: Seen<'_>) -> Result<&str, String> {
    std::str::from_utf8(bytes(seen)?).map_err(|_| "the body is no UTF-8".to_owned())
}

/// What a path finds: of one that may find many, a list.
pub(crate) fn at(path: &JsonPath, many: bool, value: &Value) -> Option<Value> {
    let found = path.query(value).all();
    match (many, &found[..]) {
        (true, all) => Some(all.iter().copied().cloned().collect()),
        (false, [one, ..]) => Some((*one).clone()),
        (false, []) => None,
    }
}

pub(crate) fn first_group(regex: &Regex, text: &str) -> Option<Value> {
    Some(regex.captures(text)?.get(1)?.as_str().into())
}
