//! A file of Hurl's as a file of checks: each entry a check that comes after the one before it.
//!
//! ```text
//!   text ─▶ entries: request, sections, body, response, sections ─▶ File ─▶ plan
//! ```
//! Invariants: what hob does not have is named with its line and refuses the file, so that no
//! assert is skipped silently; what a file of checks cannot say is not done here either.
//! An entry that uses what an answer is yet to say is read twice: before anything is asked, with the
//! variable's name in place of its value, and again when it is its turn.
//! Deliberately not here: what a check means (`plan`).

mod asserts;
mod captures;
mod values;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use hob_daemon::durations;
use toml::{Spanned, Value};

use super::file::{Check, File, Filled, Late, Length};
use super::secrets::{base64, percent};
use asserts::Asserts;
use values::{Variables, body, text};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// What hurl follows without a word of the file is 50; more than this hob does not.
const REDIRECTS: usize = 20;

/// Something at a line: of a whole file from 1, of a part of it from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At<T> {
    line: usize,
    is: T,
}

/// A file, line by line.
struct Lines<'a> {
    all: Vec<&'a str>,
    next: usize,
}

impl<'a> Lines<'a> {
    /// The next line that holds more than a comment.
    fn peek(&mut self) -> Option<&'a str> {
        while let Some(line) = self.all.get(self.next) {
            let text = line.trim();
            if !text.is_empty() && !text.starts_with('#') {
                return Some(line);
            }
            self.next += 1;
        }
        None
    }

    fn wrong(&self, is: impl Into<String>) -> At<String> {
        At { line: self.next + 1, is: is.into() }
    }
}

/// Reads a file of Hurl's, with variables that are given, and those that are never to be shown.
///
/// # Errors
/// What is wrong with it, or not known here, with its line.
pub(crate) fn read(
    bytes: &[u8],
    given: &[(String, String)],
    secret: &[(String, String)],
) -> Result<File, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Lines { all: text.lines().collect(), next: 0 };
    let mut reader = Reader {
        variables: variables(given.iter().chain(secret)),
        secret: secret.iter().map(|(name, _)| name.clone()).collect(),
    };
    let mut hidden: Vec<(String, String)> =
        secret.iter().map(|(name, value)| (value.clone(), format!("[{name}]"))).collect();
    let mut checks: BTreeMap<Spanned<String>, Check> = BTreeMap::new();
    let mut before: Option<String> = None;
    while lines.peek().is_some() {
        let number = checks.len() + 1;
        let from = lines.next;
        reader.variables.waits.set(false);
        let (name, mut check) = reader
            .entry(&mut lines, number, &mut hidden)
            .map_err(|wrong| format!("line {}: {}", wrong.line, wrong.is))?;
        if reader.variables.waits.get() {
            let own = lines.all[from..lines.next].iter().map(|line| (*line).to_owned()).collect();
            check.late = Some(reader.late(own, from, number));
        }
        let names = check.captures.iter().map(|capture| capture.name.clone());
        reader.variables.late.extend(names);
        check.after.extend(before.replace(name.clone()));
        checks.insert(Spanned::new(number..number, name), check);
    }
    Ok(File { check: checks, hidden, is_hurl: true, ..File::default() })
}

/// What entries are read with.
#[derive(Debug, Clone)]
struct Reader {
    variables: Variables,
    /// Names whose values nothing may show.
    secret: BTreeSet<String>,
}

/// What the environment and the command line say, the latter first.
fn variables<'a>(given: impl Iterator<Item = &'a (String, String)>) -> Variables {
    let mut all = BTreeMap::new();
    for (key, value) in std::env::vars() {
        let name = key.strip_prefix("HURL_VARIABLE_").or_else(|| key.strip_prefix("HURL_"));
        if let Some(name) = name {
            all.insert(name.to_owned(), value);
        }
    }
    all.extend(given.cloned());
    Variables { given: all, ..Variables::default() }
}

impl Reader {
    /// An entry's own lines, to be read again when all is known that it uses.
    fn late(&self, own: Vec<String>, from: usize, number: usize) -> Late {
        let reader = self.clone();
        Late(Rc::new(move |values| {
            let mut reader = reader.clone();
            reader.variables.late.clear();
            reader.variables.captured.clone_from(values);
            let mut lines = Lines { all: own.iter().map(String::as_str).collect(), next: 0 };
            let mut hidden = Vec::new();
            let (_, check) = reader
                .entry(&mut lines, number, &mut hidden)
                .map_err(|wrong| format!("line {}: {}", from + wrong.line, wrong.is))?;
            Ok(Filled { check, hidden })
        }))
    }

    /// Reads one request and what is asserted of its answer.
    fn entry(
        &self,
        lines: &mut Lines<'_>,
        number: usize,
        hidden: &mut Vec<(String, String)>,
    ) -> Result<(String, Check), At<String>> {
        let variables = &self.variables;
        let (name, mut check) = request(lines, variables, number, hidden)?;
        let from = lines.next;
        response(lines, self, &mut check)?;
        for capture in &check.captures {
            not_used(&lines.all[from..lines.next], from, &capture.name)?;
        }
        Ok((name, check))
    }
}

/// Refuses what an answer's own part says of a variable that it takes itself.
fn not_used(lines: &[&str], from: usize, name: &str) -> Result<(), At<String>> {
    for (at, line) in lines.iter().enumerate() {
        let templates = line.split("{{").skip(1).filter_map(|part| part.split("}}").next());
        if templates.map(str::trim).any(|used| used == name) {
            let is = format!("`{name}` is taken here, so only the entries behind this one have it");
            return Err(At { line: from + at + 1, is });
        }
    }
    Ok(())
}

/// Reads one request.
fn request(
    lines: &mut Lines<'_>,
    variables: &Variables,
    number: usize,
    hidden: &mut Vec<(String, String)>,
) -> Result<(String, Check), At<String>> {
    let mut check = Check::default();
    let line = lines.peek().unwrap_or_default().trim();
    let (method, address) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let Some(method) = METHODS.iter().find(|known| **known == method) else {
        let methods = METHODS.join(", ");
        return Err(lines.wrong(format!("`{method}` is no request: {methods}, and an address")));
    };
    let mut address = filled(address, variables).map_err(|wrong| lines.wrong(wrong))?;
    if address.is_empty() {
        return Err(lines.wrong("an address is missing"));
    }
    let name = format!("{number} {method} {}", path(&address));
    lines.next += 1;
    let mut headers = pairs(lines, variables)?;
    let mut parts = Parts { headers: &mut headers, address: &mut address, hidden };
    request_sections(lines, variables, &mut check, &mut parts)?;
    if let Some(found) = taken_body(lines, variables)? {
        if check.body.is_some() {
            return Err(lines.wrong("a form and a body: one of them"));
        }
        let has = |(key, _): &(String, String)| key.eq_ignore_ascii_case("content-type");
        if let (Some(kind), false) = (found.kind, headers.iter().any(has)) {
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
        }
        check.body = Some(Value::String(found.text));
    }
    let mut named = BTreeMap::new();
    for (key, value) in headers {
        if named.insert(key.clone(), value).is_some() {
            return Err(lines.wrong(format!("the header {key} twice is not known here")));
        }
    }
    check.headers = Some(named);
    *check.method(method) = Some(address);
    Ok((name, check))
}

/// What sections add to.
struct Parts<'a> {
    headers: &'a mut Vec<(String, String)>,
    address: &'a mut String,
    /// What is never shown, and what is shown instead.
    hidden: &'a mut Vec<(String, String)>,
}

/// The sections of a request.
fn request_sections(
    lines: &mut Lines<'_>,
    variables: &Variables,
    check: &mut Check,
    parts: &mut Parts<'_>,
) -> Result<(), At<String>> {
    while let Some(section) = section(lines) {
        let at = lines.wrong("");
        lines.next += 1;
        let pairs = match &*section {
            "Asserts" | "Captures" => {
                return Err(At { is: format!("[{section}] before HTTP"), ..at });
            }
            _ => pairs(lines, variables)?,
        };
        let encoded = |pairs: &[(String, String)]| {
            let all = pairs.iter();
            let all = all.map(|(key, value)| format!("{}={}", percent(key), percent(value)));
            all.collect::<Vec<_>>().join("&")
        };
        match &*section {
            "Query" | "QueryStringParams" => {
                let joint = if parts.address.contains('?') { '&' } else { '?' };
                *parts.address += &format!("{joint}{}", encoded(&pairs));
            }
            "Form" | "FormParams" => {
                check.body = Some(Value::String(encoded(&pairs)));
                let kind = "application/x-www-form-urlencoded";
                parts.headers.push(("Content-Type".to_owned(), kind.to_owned()));
            }
            "BasicAuth" => {
                let [(user, password)] = &pairs[..] else {
                    return Err(At {
                        is: "[BasicAuth] has one user and its password".into(),
                        ..at
                    });
                };
                let word = base64(format!("{user}:{password}").as_bytes());
                parts.hidden.push((word.clone(), "[user and password]".to_owned()));
                parts.hidden.push((password.clone(), "[password]".to_owned()));
                parts.headers.push(("Authorization".to_owned(), format!("Basic {word}")));
            }
            "Cookies" => {
                let all = pairs.iter().map(|(key, value)| format!("{key}={value}"));
                parts.headers.push(("Cookie".to_owned(), all.collect::<Vec<_>>().join("; ")));
            }
            "Options" => {
                for (key, value) in &pairs {
                    option(check, key, value).map_err(|is| At { is, ..at.clone() })?;
                }
            }
            _ => return Err(At { is: format!("[{section}] is not known here"), ..at }),
        }
    }
    Ok(())
}

/// One of `[Options]`.
fn option(check: &mut Check, key: &str, value: &str) -> Result<(), String> {
    let number = || value.parse::<usize>().map_err(|_| format!("{key}: `{value}` is no number"));
    let length = || durations::parse(value).or_else(|_| durations::parse(&format!("{value}s")));
    match (key, value) {
        ("location", "true") => {
            check.redirects.get_or_insert(REDIRECTS);
        }
        ("location", "false") => check.redirects = Some(0),
        ("max-redirs", _) => check.redirects = Some(number()?),
        ("repeat", _) => check.times = Some(number()?),
        ("max-time", _) => {
            check.timeout = Some(Length(length().map_err(|wrong| format!("{key}: {wrong}"))?));
        }
        // What hob does anyway.
        ("http1.1", "true") | ("compressed" | "insecure" | "verbose" | "very-verbose", "false") => {
        }
        _ => return Err(format!("the option `{key}: {value}` is not known here")),
    }
    Ok(())
}

/// What is said of the answer; without a word any answer will do.
fn response(lines: &mut Lines<'_>, reader: &Reader, check: &mut Check) -> Result<(), At<String>> {
    let variables = &reader.variables;
    let mut asserts = Asserts::default();
    let line = lines.peek().unwrap_or_default().trim();
    if line != "HTTP" && !line.starts_with("HTTP ") && !line.starts_with("HTTP/") {
        asserts.status(|_| true);
        check.status = asserts.statuses.map(statuses);
        return Ok(());
    }
    let line = text(line).map_err(|wrong| lines.wrong(wrong))?;
    let (version, status) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
    if !matches!(version, "HTTP" | "HTTP/1.1") {
        return Err(lines.wrong(format!("hob asks by HTTP/1.1, and not by {version}")));
    }
    match (status.trim(), status.trim().parse::<i64>()) {
        ("*", _) => asserts.status(|_| true),
        (_, Ok(wanted)) => asserts.status(|code| code == wanted),
        (other, Err(_)) => return Err(lines.wrong(format!("`{other}` is no status"))),
    }
    lines.next += 1;
    for (key, value) in pairs(lines, variables)? {
        asserts.header(&key, value);
    }
    while let Some(section) = section(lines) {
        if !matches!(&*section, "Asserts" | "Captures") {
            return Err(lines.wrong(format!("[{section}] of an answer is not known here")));
        }
        lines.next += 1;
        while let Some(line) = lines.peek().filter(|line| !is_next(line)) {
            if section == "Asserts" {
                asserts.add(line, variables).map_err(|wrong| lines.wrong(wrong))?;
            } else {
                let taken = captures::capture(line, variables, |name| reader.secret.contains(name))
                    .map_err(|wrong| lines.wrong(wrong))?;
                if check.captures.iter().any(|other| other.name == taken.name) {
                    return Err(lines.wrong(format!("`{}` is taken twice", taken.name)));
                }
                check.captures.push(taken);
            }
            lines.next += 1;
        }
    }
    if let Some(found) = taken_body(lines, variables)? {
        asserts.body(found.text);
    }
    if asserts.statuses.as_ref().is_some_and(Vec::is_empty) {
        return Err(lines.wrong("no status is as all of these want it"));
    }
    check.status = asserts.statuses.map(statuses);
    check.asserts = asserts.all;
    check.within = asserts.within_ms.map(|ms| Length(Duration::from_millis(ms)));
    Ok(())
}

fn statuses(all: Vec<i64>) -> Value {
    Value::Array(all.into_iter().map(Value::Integer).collect())
}

/// The lines of `key: value` from here.
fn pairs(
    lines: &mut Lines<'_>,
    variables: &Variables,
) -> Result<Vec<(String, String)>, At<String>> {
    let mut found = Vec::new();
    while let Some(line) = lines.peek().filter(|line| !is_next(line)) {
        // A body begins where no key can.
        if line.trim_start().starts_with(['{', '[', '"', '`', '<']) || is_other_body(line) {
            break;
        }
        let pair = line.split_once(':').ok_or_else(|| {
            lines.wrong(format!("`{}` is no request, no `key: value` and no body", line.trim()))
        })?;
        let part = |part: &str| filled(part, variables).map_err(|wrong| lines.wrong(wrong));
        found.push((part(pair.0)?, part(pair.1)?));
        lines.next += 1;
    }
    Ok(found)
}

/// Whether a request, an answer or a section begins here.
fn is_next(line: &str) -> bool {
    let line = line.trim();
    let word = line.split(|each: char| each.is_whitespace() || each == '/').next().unwrap_or("");
    let is_method = METHODS.contains(&word) && line.contains(char::is_whitespace);
    is_method || word == "HTTP" || section_of(line).is_some()
}

fn is_other_body(line: &str) -> bool {
    ["base64,", "hex,", "file,"].iter().any(|kind| line.trim_start().starts_with(kind))
}

/// The name of the section that begins here.
fn section(lines: &mut Lines<'_>) -> Option<String> {
    lines.peek().and_then(section_of).map(str::to_owned)
}

fn section_of(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('[')?;
    let (name, rest) = name.split_once(']')?;
    let behind = rest.trim_start();
    let is_name = !name.is_empty() && name.chars().all(|each| each.is_ascii_alphabetic());
    (is_name && (behind.is_empty() || behind.starts_with('#'))).then_some(name)
}

/// The body that stands here.
fn taken_body(
    lines: &mut Lines<'_>,
    variables: &Variables,
) -> Result<Option<values::Body>, At<String>> {
    if lines.peek().is_none_or(is_next) {
        return Ok(None);
    }
    let found = body(&lines.all[lines.next..], variables)
        .map_err(|wrong| At { line: lines.next + 1 + wrong.line, is: wrong.is })?;
    let Some((found, used)) = found else { return Ok(None) };
    lines.next += used;
    Ok(Some(found))
}

fn filled(part: &str, variables: &Variables) -> Result<String, String> {
    variables.fill(&text(part)?)
}

/// What of an address names the check: its path.
fn path(address: &str) -> &str {
    if address.starts_with("{{") {
        return address.split(['?', '#']).next().unwrap_or(address);
    }
    let behind = address.split_once("://").map_or(address, |(_, behind)| behind);
    let path = behind.find('/').map_or("/", |at| &behind[at..]);
    path.split(['?', '#']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
