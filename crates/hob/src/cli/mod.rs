//! The command line: it is described here once, parsed by that, and what a verb fails with is said.
//!
//! ```text
//!   clap's error ──▶ wording ──▶ `hob: VERB: cause; next step`
//!   an option of `run` ────────▶ tip       a name that is not found ──▶ found
//! ```
//! Invariants: a command line that is offered can be typed as it stands; nothing is offered that is
//! far from what was typed; each page of help has examples (`examples`). Nothing here is on the way
//! of a call that runs: `run` is parsed by hand (`hob_client::options`), before any of this.

mod complete;
mod examples;
mod former;
mod found;
mod groups;
mod help;
mod looks;
mod wording;

#[cfg(test)]
mod mistyped;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use hob_os::start::Start;
use hob_resolve::near::nearest;
use hob_wire::exit::ExitCode;

use crate::failure::Failure;
use crate::output::out;
use crate::say;
use crate::verbs::Verb;
use crate::verbs::setup::completions;
pub(crate) use found::hint;

/// Puts a warm, isolated copy of any program behind any caller, and hands back a receipt for
/// every call.
#[derive(Debug, Parser)]
#[command(name = "hob", version = env!("HOB_VERSION"), max_term_width = 96, disable_help_subcommand = true)]
#[command(after_help = "HOB=0 in the environment bypasses hob wholly.")]
struct Hob {
    #[command(subcommand)]
    asked: Asked,
}

/// What is asked of hob, or of its command line.
#[derive(Debug, Subcommand)]
enum Asked {
    #[command(flatten)]
    Verb(Box<Verb>),
    /// Show the help of a verb
    Help(help::Help),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// The command line, for completions and man pages.
#[must_use]
pub fn command() -> Command {
    groups::add(examples::add(looks::add(Hob::command())))
}

/// Runs a verb with the process's argv; returns its exit code.
#[must_use]
pub fn run(start: &Start) -> u8 {
    if complete::answer(start) {
        return 0;
    }
    let renamed = former::renamed(start);
    let start = renamed.as_ref().unwrap_or(start);
    let words = start.argv.iter().map(|word| OsStr::from_bytes(word.to_bytes()));
    let parsed = groups::first(command()).try_get_matches_from(words).and_then(|matches| {
        looks::obey(&matches);
        Hob::from_arg_matches(&matches)
    });
    let hob = match parsed {
        Ok(hob) => hob,
        Err(error) => return not_parsed(start, &error),
    };
    let result = match hob.asked {
        Asked::Verb(verb) => verb.run(start),
        Asked::Help(asked) => help::run(&asked),
        Asked::Completions { shell } => completions::of(shell)
            .ok_or_else(|| {
                Failure::usage(format!("completions {shell}: there are none for it yet"))
            })
            .and_then(|script| out(&script))
            .map(|()| 0),
    };
    match result {
        Ok(code) => code,
        Err(Failure { text, code }) => {
            say::line(text.as_bytes());
            code
        }
    }
}

/// Prints the help that was asked for, or what is wrong with the command line.
fn not_parsed(start: &Start, error: &clap::Error) -> u8 {
    use clap::error::ErrorKind;
    let asks_for_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if error.use_stderr() && !asks_for_help {
        say::line(complaint(start, error).as_bytes());
        return ExitCode::Usage as u8;
    }
    help::print(error);
    if error.use_stderr() { ExitCode::Usage as u8 } else { 0 }
}

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
fn complaint(start: &Start, error: &clap::Error) -> String {
    let mut root = command();
    root.build();
    let words = typed(start);
    let (command, verb, behind) = verb_of(&root, &words);
    let place = wording::Place { start, root: &root, command, verb: &verb, words: &words, behind };
    place.line(error)
}

/// The line for `hob help` with a word that is no verb.
fn no_help(command: &Command, words: &[String], at: usize) -> String {
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
    let mut root = command();
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
