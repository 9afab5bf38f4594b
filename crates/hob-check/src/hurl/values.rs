//! Texts and values as a Hurl file writes them: escapes, comments, variables, quoted strings.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::answer::{Values, from_base64};
use super::At;

/// What `{{NAME}}` stands for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    pub(crate) given: BTreeMap<String, String>,
    /// What answers have said; it goes before what was given.
    pub(crate) captured: Values,
    /// What answers are yet to say. Until then it stands for itself, as `{{NAME}}`.
    pub(crate) late: BTreeSet<String>,
    /// Whether one of `late` was asked for.
    pub(crate) waits: Cell<bool>,
}

impl Variables {
    /// The text with what its variables stand for.
    ///
    /// # Errors
    /// A variable that has no value, or a template that is none.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        self.fill_by(text, |value| value)
    }

    /// The same with what is made of each value.
    fn fill_by(&self, text: &str, each: impl Fn(String) -> String) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            let (name, behind) = behind.split_once("}}").ok_or("`{{` without `}}`")?;
            let name = name.trim();
            let is_name = name.chars().all(|each| each.is_alphanumeric() || "_-".contains(each));
            if !is_name || name.is_empty() {
                return Err(format!(
                    "`{{{{{name}}}}}` is no variable; functions are not known here"
                ));
            }
            filled += before;
            let value = self.value(name)?;
            filled += &each(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            rest = behind;
        }
        Ok(filled + rest)
    }

    /// What a name stands for: of one that is late, the template itself.
    ///
    /// # Errors
    /// It stands for nothing.
    pub(crate) fn value(&self, name: &str) -> Result<Value, String> {
        if let Some(value) = self.captured.get(name) {
            return Ok(value.clone());
        }
        if self.late.contains(name) {
            self.waits.set(true);
            return Ok(format!("{{{{{name}}}}}").into());
        }
        let given = self.given.get(name).map(|value| value.as_str().into());
        given.ok_or_else(|| {
            format!("no variable `{name}`: give it by --variable {name}=VALUE, or HURL_{name}")
        })
    }
}

/// The name of the one template that a word is.
fn only_template(word: &str) -> Option<&str> {
    let name = word.strip_prefix("{{")?.strip_suffix("}}")?.trim();
    (!name.contains("}}")).then_some(name)
}

/// The text of a line up to a comment, without blanks around it, its escapes resolved.
///
/// # Errors
/// An escape that Hurl does not have.
pub(crate) fn text(line: &str) -> Result<String, String> {
    let mut found = String::new();
    // How much of it is not blanks at the end.
    let mut end = 0;
    let mut rest = line.trim_start().chars();
    while let Some(each) = rest.next() {
        match each {
            '#' => break,
            '\\' => {
                found.push(escape(&mut rest)?);
                end = found.len();
            }
            each => {
                found.push(each);
                if !each.is_whitespace() {
                    end = found.len();
                }
            }
        }
    }
    found.truncate(end);
    Ok(found)
}

/// What stands behind a `\`.
fn escape(rest: &mut std::str::Chars<'_>) -> Result<char, String> {
    let each = rest.next().ok_or("a `\\` at the end of a line")?;
    Ok(match each {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '"' | '\\' | '#' | '/' | ':' => each,
        'u' => {
            let text = rest.as_str();
            let number = text.strip_prefix('{').and_then(|text| text.split_once('}'));
            let (digits, behind) = number.ok_or("`\\u` is written as `\\u{e9}`")?;
            *rest = behind.chars();
            u32::from_str_radix(digits, 16)
                .ok()
                .and_then(char::from_u32)
                .ok_or_else(|| format!("`\\u{{{digits}}}` is no character"))?
        }
        other => return Err(format!("`\\{other}` is no escape")),
    })
}

/// A value of an assert, and what stands behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    Value(Value),
    Regex(String),
    Bytes(Vec<u8>),
    /// What an answer is yet to say.
    Late,
}

/// Reads a value.
///
/// # Errors
/// What is no value, or none that hob has.
pub(crate) fn value<'a>(text: &'a str, variables: &Variables) -> Result<(Wanted, &'a str), String> {
    let text = text.trim_start();
    if text.starts_with('"') {
        let (found, rest) = quoted(text, variables)?;
        return Ok((Wanted::Value(found.into()), rest));
    }
    if let Some(rest) = text.strip_prefix('`') {
        let (found, rest) = rest.split_once('`').ok_or("a text without its end")?;
        return Ok((Wanted::Value(variables.fill(found)?.into()), rest));
    }
    if let Some(rest) = text.strip_prefix('/') {
        let mut escaped = false;
        let end = rest.find(|each| {
            let is_end = each == '/' && !escaped;
            escaped = each == '\\' && !escaped;
            is_end
        });
        let end = end.ok_or("a regular expression without its end")?;
        let regex = rest[..end].replace("\\/", "/");
        return Ok((Wanted::Regex(regex), &rest[end + 1..]));
    }
    if let Some(found) = bytes(text)? {
        return Ok(found);
    }
    let template = text.strip_prefix("{{").and_then(|text| text.find("}}"));
    let from = template.map_or(0, |end| end + 4);
    let end = text[from..].find(|each: char| each.is_whitespace() || each == '#');
    let (word, rest) = text.split_at(end.map_or(text.len(), |end| from + end));
    let template = only_template(word);
    if let Some(name) = template {
        if let Some(value) = variables.captured.get(name) {
            return Ok((Wanted::Value(value.clone()), rest));
        }
        if variables.late.contains(name) {
            variables.waits.set(true);
            return Ok((Wanted::Late, rest));
        }
    }
    let word = variables.fill(word)?;
    match serde_json::from_str::<Value>(&word) {
        Ok(found @ (Value::Bool(_) | Value::Number(_) | Value::Null)) => {
            Ok((Wanted::Value(found), rest))
        }
        _ if template.is_some() => Ok((Wanted::Value(word.into()), rest)),
        _ if word.is_empty() => Err("a value is missing".to_owned()),
        _ => Err(format!("`{word}` is no value that is known here")),
    }
}

/// Bytes by `hex,…;` or `base64,…;`, and what stands behind them.
fn bytes(text: &str) -> Result<Option<(Wanted, &str)>, String> {
    let Some((kind, rest)) = text.split_once(',') else { return Ok(None) };
    if !matches!(kind, "hex" | "base64") {
        return Ok(None);
    }
    let (digits, rest) = rest.split_once(';').ok_or_else(|| format!("`{kind},` without `;`"))?;
    let digits: String = digits.chars().filter(|each| !each.is_whitespace()).collect();
    let found = match kind {
        "hex" => from_hex(&digits),
        _ => from_base64(&digits),
    };
    let found = found.ok_or_else(|| format!("`{kind},{digits};` are no bytes"))?;
    Ok(Some((Wanted::Bytes(found), rest)))
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_hex =
        digits.bytes().all(|each| each.is_ascii_hexdigit()) && digits.len().is_multiple_of(2);
    is_hex.then(|| digits.as_bytes().chunks(2).filter_map(pair).collect())
}

/// A text in quotes, and what stands behind it.
///
/// # Errors
/// No text in quotes.
pub(crate) fn quoted<'a>(
    text: &'a str,
    variables: &Variables,
) -> Result<(String, &'a str), String> {
    let inside = text.trim_start().strip_prefix('"').ok_or("a text in quotes is missing")?;
    let mut found = String::new();
    let mut rest = inside.chars();
    loop {
        match rest.next() {
            None => return Err("a text without its end".to_owned()),
            Some('"') => return Ok((variables.fill(&found)?, rest.as_str())),
            Some('\\') => found.push(escape(&mut rest)?),
            Some(each) => found.push(each),
        }
    }
}

/// A body and the line behind it: JSON, or a text between marks. `None`: no body stands here.
///
/// # Errors
/// A body that has no end, or is of a kind that hob does not have.
pub(crate) fn body(
    lines: &[&str],
    variables: &Variables,
) -> Result<Option<(Body, usize)>, At<String>> {
    let Some(first) = lines.first().map(|line| line.trim_start()) else { return Ok(None) };
    let here = |wrong: &str| At { line: 0, is: wrong.to_owned() };
    if let Some(kind) = first.strip_prefix("```") {
        return fenced(kind, lines, variables).map(Some);
    }
    if let Some(rest) = first.strip_prefix('`') {
        let (text, _) = rest.split_once('`').ok_or_else(|| here("a text without its end"))?;
        let text = variables.fill(text).map_err(|wrong| here(&wrong))?;
        return Ok(Some((Body { text, kind: None }, 1)));
    }
    for kind in ["base64,", "hex,", "file,"] {
        if first.starts_with(kind) {
            return Err(here(&format!("a body by `{kind}` is not known here")));
        }
    }
    if first.starts_with('<') {
        return Err(here("a body of XML is written between ``` here"));
    }
    if !first.starts_with(['{', '[', '"']) {
        return Ok(None);
    }
    let whole = lines.join("\n");
    let whole = whole.trim_start();
    let shown = hidden(whole);
    let mut values = serde_json::Deserializer::from_str(&shown).into_iter::<Value>();
    if !matches!(values.next(), Some(Ok(_))) {
        return Err(here("a body that begins as JSON and is none"));
    }
    let text = &whole[..values.byte_offset()];
    let used = text.matches('\n').count() + 1;
    let text = filled_json(text, variables).map_err(|wrong| here(&wrong))?;
    Ok(Some((Body { text, kind: Some("application/json") }, used)))
}

fn fenced(kind: &str, lines: &[&str], variables: &Variables) -> Result<(Body, usize), At<String>> {
    let here = |wrong: String| At { line: 0, is: wrong };
    let kind = match kind.trim() {
        "" | "raw" => None,
        "json" => Some("application/json"),
        "xml" => Some("application/xml"),
        other => return Err(here(format!("a body of `{other}` is not known here"))),
    };
    let end = lines.iter().skip(1).position(|line| line.trim() == "```");
    let end = end.ok_or_else(|| here("a text without its end, ```".to_owned()))? + 1;
    let text: String = lines[1..end].iter().map(|line| format!("{line}\n")).collect();
    Ok((Body { text: variables.fill(&text).map_err(here)?, kind }, end + 1))
}

/// JSON with what its variables stand for, escaped within texts.
fn filled_json(text: &str, variables: &Variables) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    // Each turn is what lies between two texts, and a text.
    while let Some((before, behind)) = rest.split_once('"') {
        filled += &variables.fill(before)?;
        let mut escaped = false;
        let end = behind.find(|each| {
            let is_end = each == '"' && !escaped;
            escaped = each == '\\' && !escaped;
            is_end
        });
        let (inside, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let inside = variables.fill_by(inside, |value| {
            let json = Value::from(value).to_string();
            json[1..json.len() - 1].to_owned()
        })?;
        filled += &format!("\"{inside}\"");
        rest = behind.strip_prefix('"').unwrap_or(behind);
    }
    Ok(filled + &variables.fill(rest)?)
}

/// JSON with something of the same length in place of each variable, so that its end can be found.
fn hidden(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, behind)) = behind.split_once("}}") else { break };
        shown += before;
        shown += "1";
        shown.extend(std::iter::repeat_n('0', name.len() + 3));
        rest = behind;
    }
    shown + rest
}

/// What is sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) text: String,
    pub(crate) kind: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        let given = [("id", "42"), ("quote", "a\"\\b"), ("word", "bob")];
        Variables {
            given: given.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            captured: BTreeMap::from([("n".to_owned(), "7".into()), ("id2".to_owned(), 7.into())]),
            late: BTreeSet::from(["later".to_owned()]),
            waits: Cell::new(false),
        }
    }

    #[test]
    fn what_an_answer_is_yet_to_say_stands_for_itself() {
        let variables = variables();
        assert_eq!(variables.fill("/{{n}}/{{id2}}").unwrap(), "/7/7");
        assert!(!variables.waits.get());
        assert_eq!(variables.fill("/u/{{ later }}").unwrap(), "/u/{{later}}");
        assert!(variables.waits.get());
    }

    #[test]
    fn a_line_ends_at_a_comment_and_variables_are_filled() {
        assert_eq!(text(" a \\# b  # c").unwrap(), "a # b");
        assert_eq!(text("x\\u{e9}\\t").unwrap(), "x\u{e9}\t");
        assert!(text("\\q").is_err() && text("\\").is_err());
        assert_eq!(variables().fill("/u/{{id}}/{{ id }}").unwrap(), "/u/42/42");
        for wrong in ["{{none}}", "{{id", "{{newUuid()}}", "{{}}"] {
            assert!(variables().fill(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_read_with_what_stands_behind_them() {
        let check = |text: &str, wanted: Wanted, rest: &str| {
            assert_eq!(value(text, &variables()), Ok((wanted, rest)), "{text}");
        };
        check("\"a \\\" {{id}}\" # x", Wanted::Value("a \" 42".into()), " # x");
        check("`a\\b`", Wanted::Value("a\\b".into()), "");
        check("/a\\/b\\d/ x", Wanted::Regex("a/b\\d".to_owned()), " x");
        check("-1.5", Wanted::Value((-1.5).into()), "");
        check("{{id}}", Wanted::Value(42.into()), "");
        check("{{ word }} # x", Wanted::Value("bob".into()), " # x");
        // What was captured has its own type.
        check("{{n}}", Wanted::Value("7".into()), "");
        check("{{id2}}", Wanted::Value(7.into()), "");
        check("{{later}}", Wanted::Late, "");
        check("true#c", Wanted::Value(true.into()), "#c");
        for wrong in ["", "\"a", "`a", "/a", "file,x;", "2024"] {
            assert_eq!(value(wrong, &variables()).is_ok(), wrong == "2024", "{wrong}");
        }
    }

    #[test]
    fn a_body_ends_where_its_kind_says() {
        let read = |text: &str| {
            let lines: Vec<&str> = text.split('\n').collect();
            body(&lines, &variables()).map(|found| found.map(|(body, used)| (body.text, used)))
        };
        let json = "{\n \"a\": {{id}},\n \"b\": \"}{{id}}\"\n}\nHTTP 200";
        let filled = "{\n \"a\": 42,\n \"b\": \"}42\"\n}";
        assert_eq!(read(json), Ok(Some((filled.to_owned(), 4))));
        let quoted = "{\"a\": \"\\\"{{quote}}\", \"b\": {{id2}}}";
        let filled = "{\"a\": \"\\\"a\\\"\\\\b\", \"b\": 7}";
        assert_eq!(read(quoted), Ok(Some((filled.to_owned(), 1))));
        assert_eq!(read("```\na\nb\n```\n"), Ok(Some(("a\nb\n".to_owned(), 4))));
        assert_eq!(read("`one`"), Ok(Some(("one".to_owned(), 1))));
        assert_eq!(read("HTTP 200"), Ok(None));
        assert_eq!(read(""), Ok(None));
        for wrong in ["{", "```\na", "`a", "```graphql\na\n```", "hex,00;", "<a/>", "{{a}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
