//! What is made of a value before it is kept or compared.

use regex_lite::{NoExpand, Regex};
use serde_json::Value;
use serde_json_path::JsonPath;

use super::super::secrets::{base64, in_html, percent};
use super::Held;
use super::held::hex;
use super::query::{Found, at, first_group};

/// One step.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
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
    Base64Decode,
    Base64Encode,
    HtmlEscape,
    HtmlUnescape,
    ToHex,
    /// Bytes that are UTF-8 as a text.
    Decode,
}

impl Filter {
    /// What it makes of a value; `Nothing`: what it looks for is not there.
    ///
    /// # Errors
    /// The value is none that it takes, without the value itself.
    pub(crate) fn apply(&self, held: &Held) -> Result<Found, String> {
        let wrong = |of: &str| format!("{} is of {of}", self.word());
        let text = || held.text().ok_or_else(|| wrong("texts"));
        let list = || held.list().ok_or_else(|| wrong("lists"));
        Ok(match self {
            // A text is counted by no one: characters and bytes are not the same number.
            Filter::Count if held.text().is_some() => return Err(wrong("lists")),
            Filter::Count => Found::of(held.count().ok_or_else(|| wrong("lists"))?),
            Filter::First => Found::maybe(list()?.first().cloned()),
            Filter::Last => Found::maybe(list()?.last().cloned()),
            Filter::Nth(number) => {
                let all = list()?;
                let ahead = usize::try_from(*number).ok();
                let back = usize::try_from(number.unsigned_abs()).ok();
                let back = back.and_then(|back| all.len().checked_sub(back));
                let at = if *number < 0 { back } else { ahead };
                Found::maybe(at.and_then(|at| all.get(at)).cloned())
            }
            Filter::Regex(regex) => Found::maybe(first_group(regex, text()?)),
            Filter::Replace(old, new) => Found::of(text()?.replace(old.as_str(), new)),
            // `$1` of a file of Hurl's is a group; where there is no group it is a text.
            Filter::ReplaceRegex(regex, new) if regex.captures_len() == 1 => {
                Found::of(regex.replace_all(text()?, NoExpand(new)))
            }
            Filter::ReplaceRegex(regex, new) => Found::of(regex.replace_all(text()?, new.as_str())),
            Filter::Split(by) => Found::of(text()?.split(by.as_str()).collect::<Value>()),
            Filter::Json(path, many) => {
                let inner = serde_json::from_str(text()?);
                let inner = inner.map_err(|_| "jsonpath is of JSON".to_owned())?;
                Found::maybe(at(path, *many, &inner))
            }
            Filter::ToInt => Found::of(integer(held).ok_or_else(|| wrong("numbers"))?),
            Filter::ToFloat => Found::of(float(held).ok_or_else(|| wrong("numbers"))?),
            Filter::ToString => match held {
                Held::Value(Value::String(text)) => Found::of(text.as_str()),
                Held::Value(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) => {
                    Found::of(value.to_string())
                }
                Held::Value(Value::Array(_) | Value::Object(_)) | Held::Bytes(_) => {
                    return Err(wrong("single values"));
                }
            },
            Filter::UrlEncode => Found::of(percent(text()?)),
            Filter::UrlDecode => {
                Found::of(decoded(text()?).ok_or("urlDecode makes no UTF-8 of it")?)
            }
            Filter::UrlQueryParam(name) => Found::maybe(param(text()?, name)),
            Filter::Base64Encode => match held {
                Held::Bytes(bytes) => Found::of(base64(bytes)),
                Held::Value(_) => return Err(wrong("bytes")),
            },
            Filter::Base64Decode => {
                let bytes = from_base64(text()?).ok_or("base64Decode is of base 64")?;
                Found::Value(Held::Bytes(bytes))
            }
            Filter::HtmlEscape => Found::of(in_html(text()?, "&#x27;")),
            Filter::HtmlUnescape => Found::of(unescaped(text()?)),
            Filter::ToHex => match held {
                Held::Bytes(bytes) => Found::of(hex(bytes)),
                Held::Value(_) => return Err(wrong("bytes")),
            },
            Filter::Decode => match held {
                Held::Bytes(bytes) => {
                    let text = std::str::from_utf8(bytes);
                    Found::of(text.map_err(|_| "decode: it is no UTF-8".to_owned())?)
                }
                Held::Value(_) => return Err(wrong("bytes")),
            },
        })
    }

    /// It as a file names it.
    pub(crate) fn word(&self) -> &'static str {
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
            Filter::Base64Decode => "base64Decode",
            Filter::Base64Encode => "base64Encode",
            Filter::HtmlEscape => "htmlEscape",
            Filter::HtmlUnescape => "htmlUnescape",
            Filter::ToHex => "toHex",
            Filter::Decode => "decode",
        }
    }
}

/// A whole number: what stands behind a point is left out.
#[expect(clippy::cast_possible_truncation, reason = "what is beyond an i64 is its end")]
fn integer(held: &Held) -> Option<Value> {
    match held {
        Held::Value(Value::Number(number)) => Some(match number.as_i64() {
            Some(whole) => whole.into(),
            None => (number.as_f64()?.trunc() as i64).into(),
        }),
        Held::Value(_) | Held::Bytes(_) => Some(held.text()?.parse::<i64>().ok()?.into()),
    }
}

fn float(held: &Held) -> Option<f64> {
    let number = match held {
        Held::Value(Value::Number(number)) => number.as_f64()?,
        Held::Value(_) | Held::Bytes(_) => held.text()?.parse().ok()?,
    };
    number.is_finite().then_some(number)
}

/// What an address says of a name behind its `?`.
fn param(address: &str, name: &str) -> Option<Value> {
    let query = address.split_once('?')?.1;
    let query = query.split('#').next().unwrap_or(query);
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let of = |text: &str| decoded(&text.replace('+', " "));
    let mut found = pairs.filter(|(key, _)| of(key).as_deref() == Some(name));
    Some(of(found.next()?.1)?.into())
}

/// Base 64 as RFC 4648 has it, with its end or without.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for part in text.chunks(4) {
        let mut all = 0_u32;
        for each in part {
            let six = match each {
                b'A'..=b'Z' => each - b'A',
                b'a'..=b'z' => each - b'a' + 26,
                b'0'..=b'9' => each - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            all = all << 6 | u32::from(six);
        }
        all <<= 6 * (4 - part.len());
        bytes.extend_from_slice(&all.to_be_bytes()[1..part.len()]);
    }
    Some(bytes)
}

/// What HTML writes otherwise.
const ENTITIES: [(char, &str); 5] =
    [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;"), ('\'', "&#x27;")];

/// The five that [`in_html`] writes, and numbers; what else stands behind a `&` is left as it is.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        out += before;
        let found = behind.split_once(';').and_then(|(name, after)| {
            let known = ENTITIES.iter().find(|(_, own)| own[1..own.len() - 1] == *name);
            let number = name.strip_prefix('#').and_then(|digits| {
                let hex = digits.strip_prefix(['x', 'X']);
                let number = hex.map_or_else(|| digits.parse(), |hex| u32::from_str_radix(hex, 16));
                number.ok().and_then(char::from_u32)
            });
            Some((known.map(|(each, _)| *each).or(number)?, after))
        });
        match found {
            Some((each, after)) => {
                out.push(each);
                rest = after;
            }
            None => {
                out.push('&');
                rest = behind;
            }
        }
    }
    out + rest
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
            let found = match filter.apply(&Held::Value(value.clone())) {
                Ok(Found::Value(Held::Value(found))) => Ok(found),
                Ok(Found::Value(Held::Bytes(bytes))) => Ok(hex(&bytes).into()),
                Ok(Found::Nothing) => Err("nothing".to_owned()),
                Err(why) => Err(why),
            };
            assert_eq!(found, want.map_err(str::to_owned), "{filter:?} of {value}");
        };
        let regex = |text: &str| Regex::new(text).unwrap();
        let list = || serde_json::json!(["a", "b", "c"]);
        check(Filter::Count, list(), Ok(3.into()));
        check(Filter::Count, "abc".into(), Err("count is of lists"));
        check(Filter::Count, 3.into(), Err("count is of lists"));
        check(Filter::First, list(), Ok("a".into()));
        check(Filter::Last, list(), Ok("c".into()));
        check(Filter::Last, Value::Array(Vec::new()), Err("nothing"));
        check(Filter::Nth(1), list(), Ok("b".into()));
        check(Filter::Nth(-1), list(), Ok("c".into()));
        check(Filter::Nth(-4), list(), Err("nothing"));
        check(Filter::Nth(3), list(), Err("nothing"));
        check(Filter::Nth(i64::MIN), list(), Err("nothing"));
        check(Filter::Regex(regex("/(\\d+)$")), "/items/7".into(), Ok("7".into()));
        check(Filter::Regex(regex("(x)")), "y".into(), Err("nothing"));
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
        check(param(), "http://h/".into(), Err("nothing"));
        check(Filter::Base64Decode, "aGVsbG8=".into(), Ok("68656c6c6f".into()));
        check(Filter::Base64Decode, "aGVsbG8".into(), Ok("68656c6c6f".into()));
        check(Filter::Base64Decode, "a*".into(), Err("base64Decode is of base 64"));
        check(Filter::Base64Decode, "aGVsb".into(), Err("base64Decode is of base 64"));
        check(Filter::HtmlEscape, "a<b>&\"'".into(), Ok("a&lt;b&gt;&amp;&quot;&#x27;".into()));
        let text = "a&lt;&#60;&#x3c;&amp;lt;&no;&";
        check(Filter::HtmlUnescape, text.into(), Ok("a<<<&lt;&no;&".into()));
        check(Filter::ToHex, "a".into(), Err("toHex is of bytes"));
        let hello = || Held::Bytes(b"hello".to_vec());
        for (filter, want) in [
            (Filter::ToHex, "68656c6c6f"),
            (Filter::Base64Encode, "aGVsbG8="),
            (Filter::Decode, "hello"),
        ] {
            assert_eq!(filter.apply(&hello()), Ok(Found::of(want)));
        }
    }
}
