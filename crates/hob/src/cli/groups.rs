//! The help of `hob` itself: first the verbs that a newcomer needs, and, asked for, all of them,
//! grouped by what people want.

use std::fmt::Write as _;

use clap::Command;

use crate::show::style::Look;
use crate::show::text::{width, wrap};

/// What people want, and the verbs for it. Each visible verb stands in one of them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run programs", &["run", "warm", "session", "hooks"]),
    ("Send messages", &["ask", "tell", "dead", "hosts", "trust"]),
    ("Serve the web", &["serve"]),
    ("See what became of a call", &["last", "log", "trace", "gain"]),
    ("Prove it", &["why", "verify", "ab", "check"]),
    ("Look after the daemon", &["status", "top", "doctor", "start", "stop", "restart"]),
    ("Set up", &["new", "shim", "activate", "setup", "completions", "help"]),
];

/// The verbs of the first screen, and what each does in words that fit it.
const FIRST: &[(&str, &str)] = &[
    ("run", "Run a program: warm if it can be, cold if not"),
    ("shim", "Make commands warm wherever they are called"),
    ("last", "Show what became of the last call, and where its time went"),
    ("log", "List recent calls; find some, or see what a program printed"),
    ("why", "Show where a cold start's time goes, and what warmth would save"),
    ("doctor", "Look for what keeps calls cold, and name each fault with its fix"),
    ("hooks", "Run a directory of hooks, for one target or for thousands"),
    ("ab", "Compare two commands: does B take longer than A?"),
];

/// The widest that a line gets, as in all other help.
const COLUMNS_MAX: usize = 96;

/// The command with the groups in its help.
pub(super) fn add(command: Command) -> Command {
    let verbs = listed(&command, &Look::of_stdout());
    let header = *command.get_styles().get_header();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

/// The command whose own help is the first screen.
pub(super) fn first(command: Command) -> Command {
    let literal = *command.get_styles().get_literal();
    let widest = FIRST.iter().map(|(verb, _)| width(verb)).max().unwrap_or(0);
    let mut verbs = String::new();
    for (verb, about) in FIRST {
        let _ = writeln!(verbs, "  {literal}{verb:widest$}{literal:#}  {about}");
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} hob VERB ...\n\n{verbs}\n\
         More: {literal}hob help --all{literal:#} has all verbs, {literal}hob help VERB{literal:#} \
         one of them{{after-help}}"
    ))
}

fn listed(command: &Command, look: &Look) -> String {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let columns = look.figure_columns().min(COLUMNS_MAX);
    let names = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter());
    let widest = names.map(|name| width(name)).max().unwrap_or(0);
    let mut text = String::new();
    for (title, verbs) in GROUPS {
        let _ = writeln!(text, "{header}{title}:{header:#}");
        for name in *verbs {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let room = columns.saturating_sub(widest + 4);
            let mut lines = wrap(&about, "", room, look.charset).into_iter();
            let first = lines.next().unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:widest$}{literal:#}  {first}");
            for line in lines {
                let _ = writeln!(text, "  {:widest$}  {line}", "");
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_screen_is_short_and_names_verbs_that_there_are() {
        let command = first(crate::cli::command());
        for (verb, _) in FIRST {
            assert!(
                command.find_subcommand(verb).is_some_and(|verb| !verb.is_hide_set()),
                "{verb}"
            );
        }
        let help = command.term_width(80).render_help().to_string();
        assert!(help.lines().count() <= 24, "{help}");
        assert!(help.lines().all(|line| width(line) <= 80), "{help}");
    }

    #[test]
    fn each_verb_stands_in_one_group_and_each_line_fits() {
        let command = crate::cli::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
        let help = command.clone().render_help().to_string();
        assert!(help.contains("\nProve it:\n  why"), "{help}");
        assert!(help.lines().all(|line| width(line) <= COLUMNS_MAX), "{help}");
        assert!(!help.contains("Commands:"), "{help}");
    }
}
