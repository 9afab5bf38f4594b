//! What is made of a value before it is kept: the filters of a capture.

use regex_lite::{NoExpand, Regex};
use serde_json::Value;
use serde_json_path::JsonPath;

use super::super::secrets::percent;
use super::{at, first_group};

/// One step.
#[derive(Debug, Clone)]
pub(in super::super) enum Filter {
    Count,
    First,
    Last,
    /// From the end where it is negative.
    Nth(i64),
    /// The first group of it.
    Regex(Regex),
    Replace(String, String),
    ReplaceRegex(Regex, String),
    Split(String),
    /// The path, and whether it may find more than one value.
    Json(JsonPath, bool),
    ToInt,
    ToFloat,
    ToString,
    UrlEncode,
    UrlDecode,
    UrlQueryParam(String),
}

impl Filter {
    /// What it makes of a value.
    ///
    /// # Errors
    /// The value is none that it takes, without the value itself.
    pub(super) fn apply(&self, value: &Value) -> Result<Value, String> {
        let text = || value.as_str().ok_or_else(|| format!("{} is of texts", self.word()));
        let list = || value.as_array().ok_or_else(|| format!("{} is of lists", self.word()));
        let nothing = || format!("{} finds nothing", self.word());
        Ok(match self {
            Filter::Count => list()?.len().into(),
            Filter::First => list()?.first().cloned().ok_or_else(nothing)?,
            Filter::Last => list()?.last().cloned().ok_or_else(nothing)?,
            Filter::Nth(number) => {
                let all = list()?;
                let ahead = usize::try_from(*number).ok();
                let back = usize::try_from(number.unsigned_abs()).ok();
                let back = back.and_then(|back| all.len().checked_sub(back));
                let at = if *number < 0 { back } else { ahead };
                at.and_then(|at| all.get(at)).cloned().ok_or_else(nothing)?
            }
            Filter::Regex(regex) => first_group(regex, text()?).ok_or_else(nothing)?,
            Filter::Replace(old, new) => text()?.replace(old.as_str(), new).into(),
            // `$1` of a file of Hurl's is a group; where there is no group it is a text.
            Filter::ReplaceRegex(regex, new) if regex.captures_len() == 1 => {
                regex.replace_all(text()?, NoExpand(new)).into()
            }
            Filter::ReplaceRegex(regex, new) => regex.replace_all(text()?, new.as_str()).into(),
            Filter::Split(by) => text()?.split(by.as_str()).collect(),
            Filter::Json(path, many) => {
                let inner = serde_json::from_str(text()?);
                let inner = inner.map_err(|_| "jsonpath is of JSON".to_owned())?;
                at(path, *many, &inner).ok_or_else(nothing)?
            }
            Filter::ToInt => integer(value).ok_or_else(|| "toInt is of numbers".to_owned())?,
            Filter::ToFloat => {
                let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                number.filter(|number| number.is_finite()).ok_or("toFloat is of numbers")?.into()
            }
            Filter::ToString => match value {
                Value::String(_) => value.clone(),
                Value::Array(_) | Value::Object(_) => {
                    return Err("toString is of single values".to_owned());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().into(),
            },
            Filter::UrlEncode => percent(text()?).into(),
            Filter::UrlDecode => decoded(text()?).ok_or("urlDecode makes no UTF-8 of it")?.into(),
            Filter::UrlQueryParam(name) => {
                let query = text()?.split_once('?').ok_or_else(nothing)?.1;
                let query = query.split('#').next().unwrap_or(query);
                let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                let of = |text: &str| decoded(&text.replace('+', " "));
                let mut found = pairs.filter(|(key, _)| of(key).as_ref() == Some(name));
                found.next().and_then(|(_, value)| of(value)).ok_or_else(nothing)?.into()
            }
        })
    }

    /// It as a file names it.
    fn word(&self) -> &'static str {
        match self {
            Filter::Count => "count",
            Filter::First => "first",
            Filter::Last => "last",
            Filter::Nth(_) => "nth",
            Filter::Regex(_) => "regex",
            Filter::Replace(..) => "replace",
            Filter::ReplaceRegex(..) => "replaceRegex",
            Filter::Split(_) => "split",
            Filter::Json(..) => "jsonpath",
            Filter::ToInt => "toInt",
            Filter::ToFloat => "toFloat",
            Filter::ToString => "toString",
            Filter::UrlEncode => "urlEncode",
            Filter::UrlDecode => "urlDecode",
            Filter::UrlQueryParam(_) => "urlQueryParam",
        }
    }
}

/// A whole number: what stands behind a point is left out.
#[expect(clippy::cast_possible_truncation, reason = "what is beyond an i64 is its end")]
fn integer(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(match number.as_i64() {
            Some(whole) => whole.into(),
            None => (number.as_f64()?.trunc() as i64).into(),
        }),
        Value::String(text) => Some(text.parse::<i64>().ok()?.into()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Percent-encoded bytes as the text they stand for; `None` if it is no UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|each| each.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_filter_makes_its_value_or_says_what_it_takes() {
        let check = |filter: Filter, value: Value, want: Result<Value, &str>| {
            let want = want.map_err(str::to_owned);
            assert_eq!(filter.apply(&value), want, "{filter:?} of {value}");
        };
        let regex = |text: &str| Regex::new(text).unwrap();
        let list = || serde_json::json!(["a", "b", "c"]);
        check(Filter::Count, list(), Ok(3.into()));
        check(Filter::Count, "abc".into(), Err("count is of lists"));
        check(Filter::First, list(), Ok("a".into()));
        check(Filter::Last, list(), Ok("c".into()));
        check(Filter::Last, Value::Array(Vec::new()), Err("last finds nothing"));
        check(Filter::Nth(1), list(), Ok("b".into()));
        check(Filter::Nth(-1), list(), Ok("c".into()));
        check(Filter::Nth(-4), list(), Err("nth finds nothing"));
        check(Filter::Nth(3), list(), Err("nth finds nothing"));
        check(Filter::Nth(i64::MIN), list(), Err("nth finds nothing"));
        check(Filter::Regex(regex("/(\\d+)$")), "/items/7".into(), Ok("7".into()));
        check(Filter::Regex(regex("(x)")), "y".into(), Err("regex finds nothing"));
        check(Filter::Regex(regex("(x)")), 1.into(), Err("regex is of texts"));
        check(Filter::Replace("a".into(), "b".into()), "aca".into(), Ok("bcb".into()));
        check(Filter::ReplaceRegex(regex("(.)c"), "$1$1".into()), "ac".into(), Ok("aa".into()));
        check(Filter::ReplaceRegex(regex("c"), "$1".into()), "ac".into(), Ok("a$1".into()));
        check(Filter::Split(",".into()), "a,b,c".into(), Ok(list()));
        let path = || JsonPath::parse("$.a").unwrap();
        check(Filter::Json(path(), false), "{\"a\": 1}".into(), Ok(1.into()));
        check(Filter::Json(path(), false), "{".into(), Err("jsonpath is of JSON"));
        check(Filter::ToInt, "12".into(), Ok(12.into()));
        check(Filter::ToInt, 1.9.into(), Ok(1.into()));
        check(Filter::ToInt, "12x".into(), Err("toInt is of numbers"));
        check(Filter::ToFloat, "1.5".into(), Ok(1.5.into()));
        check(Filter::ToFloat, "inf".into(), Err("toFloat is of numbers"));
        check(Filter::ToString, 1.into(), Ok("1".into()));
        check(Filter::UrlEncode, "a b/ä".into(), Ok("a%20b%2F%C3%A4".into()));
        check(Filter::UrlDecode, "a%20b%2f%C3%A4%zz%".into(), Ok("a b/ä%zz%".into()));
        check(Filter::UrlDecode, "%ff".into(), Err("urlDecode makes no UTF-8 of it"));
        let param = || Filter::UrlQueryParam("code".into());
        check(param(), "http://h/?a=b&code=x%20y+z#f".into(), Ok("x y z".into()));
        check(param(), "http://h/".into(), Err("urlQueryParam finds nothing"));
    }
}
