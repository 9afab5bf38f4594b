//! The `[Captures]` of a Hurl file as what a check takes of its answer.

use super::super::answer::Capture;
use super::values::Variables;
use super::words::Words;

/// Reads `NAME: QUERY [FILTER]… [redact]`; a name that was given as a secret is one without `redact`.
///
/// # Errors
/// What hob does not have, and what is no capture.
pub(crate) fn capture(
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

#[cfg(test)]
mod tests {
    use super::super::super::answer::{Filter, Query};
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
            ("a: xpath \"//a\"", "`xpath` of an answer is not known here"),
            ("a: certificate \"Subject\"", "`certificate` of an answer is not known here"),
            ("a: cookie \"sid[Expires]\"", "`Expires` of a cookie is not known here"),
            ("a: header Location", "a text in quotes is missing"),
            ("a: jsonpath \"$.\"", "`$.`: "),
            ("a: regex /(/", "`(`: "),
            ("a: regex 3", "a regular expression is missing"),
            ("a: variable \"none\"", "no variable `none`"),
            ("a: body toDate", "`toDate` is no predicate or filter that is known here"),
            ("a: body nth", "nth: a whole number is missing"),
            ("a: body redact count", "`count` stands behind `redact`"),
        ] {
            let wrong = read(line).unwrap_err();
            assert!(wrong.starts_with(said), "{line}: {wrong}");
        }
    }
}
