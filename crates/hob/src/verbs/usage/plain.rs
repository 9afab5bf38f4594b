//! `--plain`: what each verb takes that shows something, for those to whom it is read aloud.

use clap::{Arg, ArgAction, ArgMatches, Command};

const NAME: &str = "plain";
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
    "record list",
    "serve status",
    "sessions",
    "shim list",
    "show",
    "status",
    "top",
    "trace",
    "trust",
    "verify",
    "warm",
    "why",
];

/// The command with the option at all of them.
pub(crate) fn add(command: Command) -> Command {
    SHOWING.iter().fold(command, |command, words| add_to(command, words))
}

fn add_to(command: Command, words: &str) -> Command {
    let (verb, below) = words.split_once(' ').unwrap_or((words, ""));
    command.mut_subcommand(verb, |sub| match below {
        "" => sub.arg(option()),
        below => add_to(sub, below),
    })
}

fn option() -> Arg {
    Arg::new(NAME)
        .long(NAME)
        .action(ArgAction::SetTrue)
        .help("Draw no figure, no colour and no line over another (HOB_PLAIN=1: always)")
}

/// Whether the verb was given it.
pub(crate) fn is_asked(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one::<bool>(NAME).ok().flatten().copied();
    here == Some(true) || matches.subcommand().is_some_and(|(_, below)| is_asked(below))
}

#[cfg(test)]
mod tests {
    use crate::verbs;

    use super::*;

    #[test]
    fn it_is_an_option_of_each_verb_that_shows_something_and_not_of_a_program() {
        for words in SHOWING {
            let line = ["hob"].into_iter().chain(words.split(' ')).chain(["--plain", "--help"]);
            let shown = verbs::command().try_get_matches_from(line).unwrap_err();
            assert_eq!(shown.kind(), clap::error::ErrorKind::DisplayHelp, "{words}");
        }
        let asked = |line: &[&str]| is_asked(&verbs::command().get_matches_from(line));
        assert!(asked(&["hob", "last", "--plain"]));
        assert!(asked(&["hob", "hooks", "run", "--plain", "hooks"]));
        assert!(!asked(&["hob", "last"]));
        assert!(!asked(&["hob", "why", "black", "--plain"]));
    }
}
