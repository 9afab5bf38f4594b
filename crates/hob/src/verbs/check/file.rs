//! What a file of checks says, as it stands there. What it means is decided in `plan`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use hob_daemon::durations;
use hob_resolve::near::nearest;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::answer::{Assert, Capture, Values};

/// A file of checks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) base: Option<String>,
    pub(super) within: Option<Length>,
    pub(super) timeout: Option<Length>,
    pub(super) jobs: Option<usize>,
    pub(super) times: Option<usize>,
    #[serde(default)]
    pub(super) profile: BTreeMap<Spanned<String>, Profile>,
    #[serde(default)]
    pub(super) check: BTreeMap<Spanned<String>, Check>,
    /// What is never shown, and what is shown instead.
    #[serde(skip)]
    pub(super) hidden: Vec<(String, String)>,
    /// Whether it is one of Hurl's: cookies go from each check to those after it, and `env:` is a
    /// text like any other.
    #[serde(skip)]
    pub(super) is_hurl: bool,
}

/// How a check is read again when what it uses was taken of the answers before it.
#[derive(Clone)]
pub(super) struct Late(pub(super) Rc<Fill>);

type Fill = dyn Fn(&Values) -> Result<Filled, String>;

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Late")
    }
}

/// A check that was read again, and what of it is never shown, with what is shown instead.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) check: Check,
    pub(super) hidden: Vec<(String, String)>,
}

/// Who asks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) basic: Option<Basic>,
    pub(super) login: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

/// A user's name and password.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Basic {
    pub(super) user: String,
    pub(super) password: String,
}

/// One check.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    pub(super) get: Option<String>,
    pub(super) head: Option<String>,
    pub(super) post: Option<String>,
    pub(super) put: Option<String>,
    pub(super) patch: Option<String>,
    pub(super) delete: Option<String>,
    pub(super) options: Option<String>,
    pub(super) run: Option<Vec<String>>,
    pub(super) query: Option<BTreeMap<String, String>>,
    pub(super) form: Option<BTreeMap<String, String>>,
    pub(super) body: Option<Value>,
    pub(super) headers: Option<BTreeMap<String, String>>,
    pub(super) redirects: Option<usize>,
    pub(super) status: Option<Value>,
    pub(super) exit: Option<Value>,
    /// By path; one may have several tests.
    #[serde(default, deserialize_with = "tests")]
    pub(super) json: Vec<(String, Value)>,
    #[serde(default, deserialize_with = "tests")]
    pub(super) header: Vec<(String, Value)>,
    pub(super) contains: Option<Value>,
    pub(super) profiles: Option<Vec<String>>,
    #[serde(default)]
    pub(super) after: Vec<String>,
    pub(super) within: Option<Length>,
    pub(super) timeout: Option<Length>,
    pub(super) times: Option<usize>,
    /// What is taken of its answer.
    #[serde(skip)]
    pub(super) captures: Vec<Capture>,
    /// What it is asserted to hold beside that.
    #[serde(skip)]
    pub(super) asserts: Vec<Assert>,
    /// Set where it uses what others take.
    #[serde(skip)]
    pub(super) late: Option<Late>,
}

impl Check {
    /// The methods that are named, with the address of each.
    pub(super) fn methods(&self) -> Vec<(&'static str, &String)> {
        let all = [
            ("GET", &self.get),
            ("HEAD", &self.head),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
            ("OPTIONS", &self.options),
        ];
        all.into_iter().filter_map(|(name, url)| Some((name, url.as_ref()?))).collect()
    }

    /// Where the address of this method stands; of one that is not known, of GET.
    pub(super) fn method(&mut self, name: &str) -> &mut Option<String> {
        match name {
            "HEAD" => &mut self.head,
            "POST" => &mut self.post,
            "PUT" => &mut self.put,
            "PATCH" => &mut self.patch,
            "DELETE" => &mut self.delete,
            "OPTIONS" => &mut self.options,
            _ => &mut self.get,
        }
    }
}

/// A table of tests, in the order of its keys.
fn tests<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<(String, Value)>, D::Error> {
    Ok(BTreeMap::<String, Value>::deserialize(from)?.into_iter().collect())
}

/// A length of time: `800ms`, `5s`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Length(pub(super) Duration);

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Length, String> {
        match durations::parse(&text) {
            Ok(length) => Ok(Length(length)),
            Err(wrong) => Err(format!("`{text}`: {wrong}")),
        }
    }
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, with its line.
    pub(super) fn read(bytes: &[u8]) -> Result<File, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
        toml::from_str(text).map_err(|error| one_line(&error, text))
    }
}

/// Where a place of the text is.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// What TOML says in one line, with the place, and what a misspelt key is meant to be.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().lines().next().unwrap_or("cannot be read").to_owned();
    let meant = meant(&message).map(|near| format!("; did you mean `{near}`?"));
    let message = message.replace("unknown field", "unknown key");
    let place = error.span().map(|span| format!("line {}: ", line(text, span.start)));
    format!("{}{message}{}", place.unwrap_or_default(), meant.unwrap_or_default())
}

/// The known key that an unknown one is near to: the reader names the unknown one, and then all
/// that it knows.
fn meant(said: &str) -> Option<String> {
    let mut quoted = said.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_told_with_its_line_and_what_was_meant() {
        let check = |text: &str, part: &str| {
            let said = File::read(text.as_bytes()).unwrap_err();
            assert!(said.contains(part), "{said}");
        };
        check("base = 'http://h'\nwithn = '1s'\n", "line 2: unknown key `withn`");
        check("base = 'http://h'\nwithn = '1s'\n", "did you mean `within`?");
        check("[check.a]\nget = '/'\nstatsu = 200\n", "did you mean `status`?");
        check("[profile.a]\nlogn = 'x'\n", "did you mean `login`?");
        check("[check.a]\nget = '/'\n[check.a]\nget = '/'\n", "line 3: duplicate key");
        check("within = '800'\n", "needs a unit");
        check("within = '0s'\n", "longer than nothing");
    }
}
