//! `hob help VERB`: the same as `hob VERB --help`, for whoever asks in this order.

use clap::Args;

use crate::failure::Failure;

/// Whose help.
#[derive(Debug, Args)]
pub(super) struct Help {
    /// The verb, such as `run` or `hooks run`
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
    /// List all verbs, grouped by what they are for
    #[arg(long, conflicts_with = "verb")]
    all: bool,
}

/// Prints the help; returns the exit code.
pub(super) fn run(asked: &Help) -> Result<u8, Failure> {
    let mut here = super::command();
    let asked = &Help { verb: super::former::words(&asked.verb), ..*asked };
    for (at, word) in asked.verb.iter().enumerate() {
        here = match here.find_subcommand(word) {
            Some(verb) => verb.clone(),
            None => return Err(Failure::usage(super::no_help(&here, &asked.verb, at))),
        };
    }
    let words = ["hob"].into_iter().chain(asked.verb.iter().map(String::as_str)).chain(["--help"]);
    let command = if asked.all { super::command() } else { super::groups::first(super::command()) };
    match command.try_get_matches_from(words) {
        Err(help) if !help.use_stderr() => print(&help),
        Ok(_) | Err(_) => return Err(Failure::new("this verb has no help")),
    }
    Ok(0)
}

/// A page of help, which holds nothing but hob's own words. clap chooses the stream and the colours;
/// a closed one is no loss.
pub(super) fn print(page: &clap::Error) {
    let _ = page.print();
}
