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
pub(crate) struct File {
    pub(crate) base: Option<String>,
    pub(crate) within: Option<Length>,
    pub(crate) timeout: Option<Length>,
    pub(crate) jobs: Option<usize>,
    pub(crate) times: Option<usize>,
    #[serde(default)]
    pub(crate) profile: BTreeMap<Spanned<String>, Profile>,
    #[serde(default)]
    pub(crate) check: BTreeMap<Spanned<String>, Check>,
    /// What is never shown, and what is shown instead.
    #[serde(skip)]
    pub(crate) hidden: Vec<(String, String)>,
    /// Whether it is one of Hurl's: cookies go from each check to those after it, and `env:` is a
    /// text like any other.
    #[serde(skip)]
    pub(crate) is_hurl: bool,
}

/// How a check is read again when what it uses was taken of the answers before it.
#[derive(Clone)]
pub(crate) struct Late(pub(crate) Rc<Fill>);

type Fill = dyn Fn(&Values) -> Result<Filled, String>;

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Late")
    }
}

/// A check that was read again, and what of it is never shown, with what is shown instead.
#[derive(Debug)]
pub(crate) struct Filled {
    pub(crate) check: Check,
    pub(crate) hidden: Vec<(String, String)>,
}

/// Who asks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) basic: Option<Basic>,
    pub(crate) login: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
}

/// A user's name and password.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Basic {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// One check.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) get: Option<String>,
    pub(crate) head: Option<String>,
    pub(crate) post: Option<String>,
    pub(crate) put: Option<String>,
    pub(crate) patch: Option<String>,
    pub(crate) delete: Option<String>,
    pub(crate) options: Option<String>,
    pub(crate) run: Option<Vec<String>>,
    pub(crate) query: Option<BTreeMap<String, String>>,
    pub(crate) form: Option<BTreeMap<String, String>>,
    pub(crate) body: Option<Value>,
    pub(crate) headers: Option<BTreeMap<String, String>>,
    pub(crate) redirects: Option<usize>,
    pub(crate) status: Option<Value>,
    pub(crate) exit: Option<Value>,
    /// By path; one may have several tests.
    #[serde(default, deserialize_with = "tests")]
    pub(crate) json: Vec<(String, Value)>,
    #[serde(default, deserialize_with = "tests")]
    pub(crate) header: Vec<(String, Value)>,
    pub(crate) contains: Option<Value>,
    pub(crate) profiles: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) after: Vec<String>,
    pub(crate) within: Option<Length>,
    pub(crate) timeout: Option<Length>,
    pub(crate) times: Option<usize>,
    /// What is taken of its answer.
    #[serde(skip)]
    pub(crate) captures: Vec<Capture>,
    /// What it is asserted to hold beside that.
    #[serde(skip)]
    pub(crate) asserts: Vec<Assert>,
    /// Set where it uses what others take.
    #[serde(skip)]
    pub(crate) late: Option<Late>,
}

impl Check {
    /// The methods that are named, with the address of each.
    pub(crate) fn methods(&self) -> Vec<(&'static str, &String)> {
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
    pub(crate) fn method(&mut self, name: &str) -> &mut Option<String> {
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
pub(crate) struct Length(pub(crate) Duration);

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
    pub(crate) fn read(bytes: &[u8]) -> Result<File, String> {
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
