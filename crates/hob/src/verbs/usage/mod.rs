//! What is said to whoever mistyped: one line with the cause and the next step.
//!
//! ```text
//!   clap's error ──▶ wording ──▶ `hob: VERB: cause; next step`
//!   an option of `run` ────────▶ tip       a name that is not found ──▶ found
//! ```
//! Invariants: a command line that is offered can be typed as it stands; nothing is offered that is
//! far from what was typed; each page of help has examples (`examples`). Nothing here is on the way
//! of a call that runs.

pub(crate) mod complete;
mod examples;
pub(crate) mod former;
mod found;
pub(crate) mod groups;
pub(crate) mod help;
pub(crate) mod looks;
mod wording;

#[cfg(test)]
mod mistyped;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Command;
use hob_os::start::Start;
use hob_resolve::ResolveError;

use crate::say;
use crate::verbs::Failure;
pub(crate) use examples::add as with_examples;
pub(crate) use found::hint;
use hob_resolve::near::nearest;

/// Words that other tools have for a verb of hob's.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("version", "--version"),
    ("exec", "run"),
    ("ps", "status"),
    ("info", "status"),
    ("history", "log"),
    ("send", "tell"),
    ("stats", "gain"),
];

/// A command line as a shell takes it.
fn quoted(words: &[OsString]) -> String {
    let joined = say::command(words.iter().map(|word| word.as_bytes()));
    String::from_utf8_lossy(&joined).into_owned()
}

/// The words with another one at this place.
fn replaced(words: &[OsString], at: usize, by: &str) -> String {
    let mut words = words.to_vec();
    if let Some(word) = words.get_mut(at) {
        *word = by.into();
    }
    quoted(&words)
}

/// The command line with `hob` as its first word, as a person types it.
fn typed(start: &Start) -> Vec<OsString> {
    let rest = start.argv.iter().skip(1);
    let rest = rest.map(|word| std::ffi::OsStr::from_bytes(word.to_bytes()).to_owned());
    std::iter::once(OsString::from("hob")).chain(rest).collect()
}

/// The verb that the words lead to, by its words, and the place of the first word behind it.
fn verb_of<'a>(root: &'a Command, words: &[OsString]) -> (&'a Command, String, usize) {
    let (mut here, mut name, mut behind) = (root, String::new(), 1);
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.as_bytes().starts_with(b"-") {
            continue;
        }
        let Some(next) = word.to_str().and_then(|word| here.find_subcommand(word)) else { break };
        here = next;
        name = if name.is_empty() { String::new() } else { name + " " } + next.get_name();
        behind = at + 1;
    }
    (here, name, behind)
}

/// The verbs of a command that a person can call.
fn verbs(command: &Command) -> impl Iterator<Item = &str> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name)
}

/// The line for a command line that clap refuses, without `hob: `.
pub(super) fn complaint(start: &Start, error: &clap::Error) -> String {
    let mut root = super::command();
    root.build();
    let words = typed(start);
    let (command, verb, behind) = verb_of(&root, &words);
    let place = wording::Place { start, root: &root, command, verb: &verb, words: &words, behind };
    place.line(error)
}

/// The line for `hob help` with a word that is no verb.
pub(super) fn no_help(command: &Command, words: &[String], at: usize) -> String {
    let all: Vec<OsString> = ["hob", "help"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .map(Into::into)
        .collect();
    let word = &words[at];
    match nearest(word, verbs(command)) {
        Some(near) => {
            format!("{word}: no such verb; did you mean `{}`?", replaced(&all, at + 2, near))
        }
        None => {
            format!("{word}: no such verb; `{}` lists those that there are", quoted(&all[..at + 2]))
        }
    }
}

/// The line for an option that `hob run` does not have.
pub(crate) fn no_option_of_run(start: &Start, at: usize) -> String {
    let mut root = super::command();
    root.build();
    let words = typed(start);
    let shown = quoted(&words[at..=at]);
    let Some(run) = root.find_subcommand("run") else { return shown };
    match wording::nearest_option(run, &words[at].to_string_lossy()) {
        Some(near) => {
            let text = replaced(&words, at, &near);
            format!("run: {shown}: no such option; did you mean `{text}`?")
        }
        None => format!(
            "run: {shown}: no such option; hob's stand before the program, and `hob help run` \
             lists them"
        ),
    }
}

/// The failure of a verb that resolves a program as `run` does, in the same words.
pub(crate) fn not_resolved(start: &Start, program: Option<&[u8]>, error: &ResolveError) -> Failure {
    let code = error.exit_code();
    let hint = hint(start, program.unwrap_or_default(), code);
    Failure { text: format!("{error}{hint}"), code }
}
