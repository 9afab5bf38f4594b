//! What is other in a world than in the caller's own: the hidden verb `hob within CHANGE run ...`
//! takes it on, and becomes `hob run`.
//!
//! A process of its own does it, between `hob verify` and the client, so that the client starts as
//! it would for a caller that is so. Of the environment only names are in the command line, and
//! values that hob made up: a caller's own values are changed where they are.

use std::ffi::CString;

use hob_os::signals;
use hob_os::spawn::{self, Image};
use hob_os::start::Start;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The verb.
const VERB: &str = "within";

/// What is other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Change {
    /// The file mode creation mask.
    pub(super) umask: Option<u32>,
    /// The soft limit on open descriptors.
    pub(super) files: Option<u64>,
    /// The soft limit on the size of cores.
    pub(super) core: Option<u64>,
    /// Signals that are ignored.
    pub(super) ignored: Vec<i32>,
    /// Signals that are not ignored any more.
    pub(super) heeded: Vec<i32>,
    /// Whether there is a standard input.
    pub(super) input: Open,
    /// Variables that are set to a value of hob's.
    pub(super) set: Vec<(String, String)>,
    /// Variables that are given another value than they have, or one if they have none.
    pub(super) other: Vec<String>,
    /// Variables that are removed.
    pub(super) removed: Vec<String>,
    /// The only variables that stay, of those that are not set here.
    pub(super) only: Option<Vec<String>>,
    /// Their order.
    pub(super) order: Order,
}

/// Whether a descriptor is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Open {
    /// It is.
    #[default]
    Yes,
    /// It is closed.
    No,
}

/// The order of the environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// As it is.
    #[default]
    Kept,
    /// The last one first.
    Reversed,
}

impl Change {
    /// What comes before `run` in the command line; nothing where nothing is other.
    pub(super) fn words(&self) -> Vec<String> {
        if *self == Change::default() {
            return Vec::new();
        }
        let change = serde_json::to_string(self);
        vec![VERB.to_owned(), change.expect("a change has only string keys and whole numbers")]
    }

    /// Takes on what a process can take on, and returns the environment that comes of it.
    fn take_on(&self, start: &Start) -> rustix::io::Result<Vec<CString>> {
        if let Some(umask) = self.umask {
            rustix::process::umask(Mode::from_bits_truncate(umask));
        }
        for (limit, soft) in [(Resource::Nofile, self.files), (Resource::Core, self.core)] {
            if let Some(soft) = soft {
                setrlimit(limit, Rlimit { current: Some(soft), ..getrlimit(limit) })?;
            }
        }
        self.ignored.iter().copied().for_each(signals::ignore);
        self.heeded.iter().copied().for_each(signals::reset);
        if self.input == Open::No {
            let [stdin, ..] = hob_os::process::stdio();
            // The kernel closes it where this process becomes the client.
            rustix::io::fcntl_setfd(stdin, rustix::io::FdFlags::CLOEXEC)?;
        }
        Ok(self.environment(&start.env.iter().map(|entry| entry.to_bytes()).collect::<Vec<_>>()))
    }

    /// The environment that comes of this one.
    fn environment(&self, entries: &[&[u8]]) -> Vec<CString> {
        let mut changed: Vec<Vec<u8>> = Vec::with_capacity(entries.len() + self.set.len());
        for entry in entries {
            let name = name(entry);
            let is = |names: &[String]| names.iter().any(|other| other.as_bytes() == name);
            let kept = self.only.as_ref().is_none_or(|only| is(only));
            let set = self.set.iter().find(|(other, _)| other.as_bytes() == name);
            match set {
                Some((name, value)) => changed.push(format!("{name}={value}").into_bytes()),
                None if !kept || is(&self.removed) => {}
                None if is(&self.other) => changed.push([entry, another(entry)].concat()),
                None => changed.push(entry.to_vec()),
            }
        }
        let has = |wanted: &str| entries.iter().any(|entry| name(entry) == wanted.as_bytes());
        for (name, value) in self.set.iter().filter(|(name, _)| !has(name)) {
            changed.push(format!("{name}={value}").into_bytes());
        }
        for name in self.other.iter().filter(|name| !has(name)) {
            changed.push(format!("{name}=verify").into_bytes());
        }
        if self.order == Order::Reversed {
            changed.reverse();
        }
        // An entry of an environment has no NUL, and neither has what is set here.
        changed.into_iter().filter_map(|entry| CString::new(entry).ok()).collect()
    }
}

/// What is put behind a value so that it is another one: a number stays a number.
fn another(entry: &[u8]) -> &'static [u8] {
    let value = &entry[(name(entry).len() + 1).min(entry.len())..];
    let number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if number { b"1" } else { b"-verify" }
}

fn name(entry: &[u8]) -> &[u8] {
    entry.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// Takes a change on, and becomes `hob` with the words behind it. Returns only on failure.
pub(crate) fn run(start: &Start, change: &str) -> Result<(), Failure> {
    let change: Change = serde_json::from_str(change)
        .map_err(|error| Failure::usage(format!("`{VERB}`: no change: {error}")))?;
    let env = change
        .take_on(start)
        .map_err(|error| Failure::lost(format!("`{VERB}`: cannot be so: {error}")))?;
    // Behind the verb and the change.
    let argv = start.argv.iter().enumerate().filter(|(at, _)| !(1..=2).contains(at));
    let argv = argv.map(|(_, word)| CString::from(*word)).collect();
    let error = spawn::exec(&Image { file: c"/proc/self/exe".to_owned(), argv, env });
    Err(Failure::lost(format!("`{VERB}`: cannot go on: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: &Change, expected: &[&str]) {
        let before: [&[u8]; 5] = [b"A=1", b"B=x", b"C=", b"PATH=/bin", b"odd"];
        let changed = change.environment(&before);
        let changed: Vec<_> = changed.iter().map(|entry| entry.to_str().unwrap()).collect();
        assert_eq!(changed, expected, "{change:?}");
    }

    #[test]
    fn an_environment_is_changed_in_place_and_in_its_order() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let set = vec![("B".to_owned(), "y".to_owned()), ("N".to_owned(), "1".to_owned())];
        let base = Change::default();
        check(&base, &["A=1", "B=x", "C=", "PATH=/bin", "odd"]);
        check(&Change { set, ..base.clone() }, &["A=1", "B=y", "C=", "PATH=/bin", "odd", "N=1"]);
        check(
            &Change { other: names(&["A", "B", "C", "D"]), ..base.clone() },
            &["A=11", "B=x-verify", "C=-verify", "PATH=/bin", "odd", "D=verify"],
        );
        check(
            &Change { removed: names(&["A", "odd"]), ..base.clone() },
            &["B=x", "C=", "PATH=/bin"],
        );
        check(&Change { only: Some(names(&["PATH"])), ..base.clone() }, &["PATH=/bin"]);
        check(
            &Change { order: Order::Reversed, ..base },
            &["odd", "PATH=/bin", "C=", "B=x", "A=1"],
        );
    }

    #[test]
    fn no_change_is_no_word_and_a_change_is_read_as_it_was_written() {
        assert!(Change::default().words().is_empty());
        let change = Change { umask: Some(0o77), ignored: vec![1], ..Change::default() };
        let words = change.words();
        assert_eq!(words[0], VERB);
        assert_eq!(serde_json::from_str::<Change>(&words[1]).unwrap(), change);
    }
}
