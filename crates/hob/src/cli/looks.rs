//! `--plain` and `--color`: what each verb takes that shows something. The first is for those to whom it
//! is read aloud.

use anstream::ColorChoice;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::show::style;

const PLAIN: &str = "plain";
const COLOR: &str = "color";
/// The verbs that show something, by their words.
const SHOWING: &[&str] = &[
    "ab",
    "check",
    "dead",
    "doctor",
    "gain",
    "hooks list",
    "hooks run",
    "hosts",
    "last",
    "log",
    "serve status",
    "session list",
    "shim list",
    "status",
    "top",
    "trace",
    "trace record list",
    "trust",
    "verify",
    "warm",
    "why",
];

/// The command with the options at all of them.
pub(super) fn add(command: Command) -> Command {
    SHOWING.iter().fold(command, |command, words| add_to(command, words))
}

fn add_to(command: Command, words: &str) -> Command {
    let (verb, below) = words.split_once(' ').unwrap_or((words, ""));
    command.mut_subcommand(verb, |sub| match below {
        "" => sub.arg(plain()).arg(color()),
        below => add_to(sub, below),
    })
}

fn plain() -> Arg {
    Arg::new(PLAIN)
        .long(PLAIN)
        .action(ArgAction::SetTrue)
        .help("Draw no figure, no colour and no line over another (HOB_PLAIN=1: always)")
}

fn color() -> Arg {
    Arg::new(COLOR)
        .long(COLOR)
        .value_name("WHEN")
        .value_parser(["auto", "always", "never"])
        .conflicts_with(PLAIN)
        .help("Use colour: where a terminal wants it (auto; NO_COLOR=1: never), always, never")
}

/// What the verb shows looks from now on as its options ask.
pub(super) fn obey(matches: &ArgMatches) {
    if is_plain(matches) {
        style::be_plain();
    }
    match when(matches) {
        Some("always") => ColorChoice::Always.write_global(),
        Some("never") => ColorChoice::Never.write_global(),
        Some(_) | None => {}
    }
}

/// Whether the verb was given `--plain`.
fn is_plain(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one::<bool>(PLAIN).ok().flatten().copied();
    here == Some(true) || matches.subcommand().is_some_and(|(_, below)| is_plain(below))
}

/// What the verb was given with `--color`.
fn when(matches: &ArgMatches) -> Option<&str> {
    let here = matches.try_get_one::<String>(COLOR).ok().flatten();
    match here {
        Some(when) => Some(when),
        None => matches.subcommand().and_then(|(_, below)| self::when(below)),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn they_are_options_of_each_verb_that_shows_something_and_not_of_a_program() {
        for words in SHOWING {
            for option in ["--plain", "--color=always"] {
                let line = ["hob"].into_iter().chain(words.split(' ')).chain([option, "--help"]);
                let shown = crate::cli::command().try_get_matches_from(line).unwrap_err();
                assert_eq!(shown.kind(), clap::error::ErrorKind::DisplayHelp, "{words}");
            }
        }
        let asked = |line: &[&str]| is_plain(&crate::cli::command().get_matches_from(line));
        assert!(asked(&["hob", "last", "--plain"]));
        assert!(asked(&["hob", "hooks", "run", "--plain", "hooks"]));
        assert!(!asked(&["hob", "last"]));
        assert!(!asked(&["hob", "why", "black", "--plain"]));
        let matches = |line: &[&str]| crate::cli::command().try_get_matches_from(line);
        let given = matches(&["hob", "hooks", "run", "--color", "never", "hooks"]).unwrap();
        assert_eq!(when(&given), Some("never"));
        assert_eq!(when(&matches(&["hob", "last"]).unwrap()), None);
        assert!(matches(&["hob", "last", "--color", "green"]).is_err());
        assert!(matches(&["hob", "last", "--color", "always", "--plain"]).is_err());
    }
}
