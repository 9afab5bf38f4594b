//! clap's errors in hob's voice.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use hob_os::start::Start;

use super::{OTHER_WORDS, examples, quoted, replaced, verbs};
use crate::verbs::shim::folder;
use hob_resolve::near::nearest;

/// Where in a command line the error is.
pub(super) struct Place<'a> {
    pub(super) start: &'a Start,
    pub(super) root: &'a Command,
    /// The verb that was reached.
    pub(super) command: &'a Command,
    /// Its words.
    pub(super) verb: &'a str,
    pub(super) words: &'a [OsString],
    /// The place of the first word behind the verb's.
    pub(super) behind: usize,
}

/// A part of what clap knows of the error.
fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let value = error.get(kind)?;
    if let ContextValue::Strings(all) = value {
        return all.first().cloned();
    }
    if let ContextValue::String(text) = value { Some(text.clone()) } else { None }
}

/// `<DIR>` and `[DIR]...` as `DIR`.
fn bare(argument: &str) -> String {
    let inside = argument.trim_end_matches('.').trim_matches(['<', '>', '[', ']']);
    inside.split([' ', '>', '<']).next().unwrap_or(inside).to_owned()
}

/// The option of a command that is nearest to this one, with the value that is joined to it.
pub(super) fn nearest_option(command: &Command, word: &str) -> Option<String> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, format!("={value}")),
        None => (word, String::new()),
    };
    let name = name.strip_prefix("--")?;
    let known = command.get_arguments().filter_map(clap::Arg::get_long);
    let near = nearest(name, known)?;
    let option = command.get_arguments().find(|option| option.get_long() == Some(near))?;
    let value = if option.get_action().takes_values() { value } else { String::new() };
    Some(format!("--{near}{value}"))
}

impl Place<'_> {
    /// The whole line.
    pub(super) fn line(&self, error: &clap::Error) -> String {
        let kind = error.kind();
        let argument = context(error, ContextKind::InvalidArg).unwrap_or_default();
        if kind == ErrorKind::InvalidSubcommand {
            let word = context(error, ContextKind::InvalidSubcommand);
            return self.no_verb(&word.unwrap_or_default());
        }
        // clap takes it for the verb's own argument.
        if let Some(line) = self.mistyped_verb() {
            return line;
        }
        if kind == ErrorKind::UnknownArgument {
            return self.unknown(&argument);
        }
        if [ErrorKind::InvalidValue, ErrorKind::ValueValidation].contains(&kind) {
            return self.value(error);
        }
        if kind == ErrorKind::MissingRequiredArgument {
            return self.said(&format!("{} is missing; {}", bare(&argument), self.as_in()));
        }
        if kind == ErrorKind::ArgumentConflict {
            let text = match context(error, ContextKind::PriorArg) {
                _ if argument.is_empty() => "its words do not go together".to_owned(),
                None => format!("{argument} does not go with the rest"),
                Some(same) if same == argument => format!("{argument} is given more than once"),
                Some(other) => format!("{argument} does not go with {other}"),
            };
            return self.said(&format!("{text}; {}", self.help()));
        }
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        self.said(&format!("{first}; {}", self.help()))
    }

    fn said(&self, text: &str) -> String {
        if self.verb.is_empty() { text.to_owned() } else { format!("{}: {text}", self.verb) }
    }

    /// Where the help is.
    fn help(&self) -> String {
        let separator = if self.verb.is_empty() { "" } else { " " };
        format!("`hob help{separator}{}` shows how it is called", self.verb)
    }

    /// The first example of the verb.
    fn as_in(&self) -> String {
        match examples::of(self.verb).first() {
            Some((line, _)) => format!("as in `{line}`"),
            None => self.help(),
        }
    }

    /// The place of a word behind the verb.
    fn place_of(&self, word: &str) -> usize {
        let is_it = |candidate: &OsString| {
            let text = candidate.to_string_lossy();
            text == word || text.strip_prefix(word).is_some_and(|rest| rest.starts_with('='))
        };
        let from = self.behind.min(self.words.len());
        self.words[from..].iter().position(is_it).map_or(from, |at| from + at)
    }

    /// A word that is nearly one of the verbs below a verb which has arguments of its own, too, if the
    /// line with that one is taken.
    fn mistyped_verb(&self) -> Option<String> {
        let word = self.words.get(self.behind)?.to_str()?;
        if !self.command.is_args_conflicts_with_subcommands_set() || word.starts_with('-') {
            return None;
        }
        let mut words = self.words.to_vec();
        words[self.behind] = nearest(word, verbs(self.command))?.into();
        self.is_taken(&words).then(|| self.no_verb(word))
    }

    /// Whether this is a line that can be typed.
    fn is_taken(&self, words: &[OsString]) -> bool {
        self.root.clone().try_get_matches_from(words).is_ok()
    }

    /// The line with the verb that is nearest to the word at this place, of those with which it is
    /// taken; with none, how the nearest is helped with.
    fn with_near_verb(&self, word: &str, at: usize) -> Option<String> {
        let with = |verb: &str| {
            let mut words = self.words.to_vec();
            if let Some(word) = words.get_mut(at) {
                *word = verb.into();
            }
            words
        };
        let near = nearest(word, verbs(self.command))?;
        let others = || verbs(self.command).filter(|verb| self.is_taken(&with(verb)));
        let taken = if self.is_taken(&with(near)) { Some(near) } else { nearest(word, others()) };
        if let Some(near) = taken {
            return Some(quoted(&with(near)));
        }
        let above = self.verb.split(' ').filter(|word| !word.is_empty()).map(OsString::from);
        let words = ["hob", "help"].map(OsString::from).into_iter().chain(above);
        Some(quoted(&words.chain([near.into()]).collect::<Vec<_>>()))
    }

    /// A word in the place of a verb.
    fn no_verb(&self, word: &str) -> String {
        let at = self.place_of(word);
        if word == "help" {
            let mut words: Vec<OsString> = vec!["hob".into(), "help".into()];
            words.extend(self.words[1..at].iter().cloned());
            words.extend(self.words[(at + 1).min(self.words.len())..].iter().cloned());
            return self.said(&format!("did you mean `{}`?", quoted(&words)));
        }
        let shown = quoted(&[word.into()]);
        if !self.verb.is_empty() {
            return match self.with_near_verb(word, at) {
                Some(line) => self.said(&format!("{shown}: no such verb; did you mean `{line}`?")),
                None => {
                    let all: Vec<&str> = verbs(self.command).collect();
                    let all = all.join(", ");
                    self.said(&format!("{shown}: no such verb; there are {all}"))
                }
            };
        }
        let other = OTHER_WORDS.iter().find(|(other, _)| *other == word).map(|(_, verb)| *verb);
        let other = other.map(|verb| match verb.starts_with('-') {
            true => format!("hob {verb}"),
            false => replaced(self.words, at, verb),
        });
        let near = other.or_else(|| self.with_near_verb(word, at));
        let near = near.map(|line| format!("`{line}`"));
        let run = self.is_program(word).then(|| {
            let mut words = self.words.to_vec();
            words.insert(1, "run".into());
            format!("`{}`", quoted(&words))
        });
        match (near, run) {
            (Some(near), Some(run)) => {
                format!("{shown}: no such verb; did you mean {near}, or the program, {run}?")
            }
            (Some(near), None) => format!("{shown}: no such verb; did you mean {near}?"),
            (None, Some(run)) => format!("{shown}: no such verb; to run the program: {run}"),
            (None, None) => {
                format!(
                    "{shown}: no such verb, and no program on PATH; `hob help --all` lists the verbs"
                )
            }
        }
    }

    /// Whether a word is, or looks like, what `hob run` runs.
    fn is_program(&self, word: &str) -> bool {
        let is_script = hob_runtimes::by_suffix(word.as_bytes()).is_some();
        is_script || word.contains('/') || folder::command(word.as_ref(), self.start).is_some()
    }

    /// The line with the options that stand before the verb behind it, if it is one that is taken.
    fn behind_its_verb(&self, words: &[OsString]) -> Option<String> {
        let is_verb = |word: &OsString| {
            word.to_str().is_some_and(|word| self.root.find_subcommand(word).is_some())
        };
        let before = words.iter().skip(1).take_while(|word| !is_verb(word)).count();
        let is_option = words.get(1).is_some_and(|word| word.as_bytes().starts_with(b"-"));
        if !is_option || before + 1 >= words.len() {
            return None;
        }
        let mut words = words.to_vec();
        words[1..before + 2].rotate_right(1);
        self.is_taken(&words).then(|| quoted(&words))
    }

    /// An option, or a word too many.
    fn unknown(&self, word: &str) -> String {
        let shown = quoted(&[word.into()]);
        let at = self.place_of(word);
        if !word.starts_with('-') {
            return if verbs(self.command).next().is_some() {
                self.no_verb(word)
            } else {
                self.said(&format!("{shown}: one word too many; {}", self.help()))
            };
        }
        if let Some(line) = self.behind_its_verb(self.words) {
            return format!("{shown}: options stand behind the verb; did you mean `{line}`?");
        }
        let is_of_run = |run: &Command| {
            let name = word.trim_start_matches('-');
            word == "-m" || run.get_arguments().any(|argument| argument.get_long() == Some(name))
        };
        if self.verb.is_empty() && self.root.find_subcommand("run").is_some_and(is_of_run) {
            let mut words = self.words.to_vec();
            words.insert(1, "run".into());
            return format!("{shown}: an option of `hob run`; did you mean `{}`?", quoted(&words));
        }
        if word == "-v" && self.verb.is_empty() {
            return format!("{shown}: no such option; did you mean `hob -V`?");
        }
        let full = self.words.get(at).map_or(word.into(), |word| word.to_string_lossy());
        let whole = if full.split('=').next() == Some(word) { full.as_ref() } else { word };
        match nearest_option(self.command, whole) {
            Some(near) => {
                let is_it = |typed: &&OsString| typed.to_string_lossy().starts_with(word);
                let line = match self.words.get(at).filter(is_it) {
                    Some(_) => Some(replaced(self.words, at, &near)),
                    // It stands before its verb.
                    None => {
                        let near = |typed: &OsString| match is_it(&typed) {
                            true => OsString::from(&near),
                            false => typed.clone(),
                        };
                        self.behind_its_verb(&self.words.iter().map(near).collect::<Vec<_>>())
                    }
                };
                let next =
                    line.map_or_else(|| self.help(), |line| format!("did you mean `{line}`?"));
                self.said(&format!("{shown}: no such option; {next}"))
            }
            None => self.said(&format!("{shown}: no such option; {}", self.help())),
        }
    }

    /// A value that its option does not take.
    fn value(&self, error: &clap::Error) -> String {
        let argument = context(error, ContextKind::InvalidArg).unwrap_or_default();
        let name = argument.split(' ').next().unwrap_or_default();
        let name = if name.starts_with('-') { name.to_owned() } else { bare(&argument) };
        let value = context(error, ContextKind::InvalidValue).unwrap_or_default();
        if value.is_empty() {
            return self.said(&format!("{name} needs a value; {}", self.help()));
        }
        let shown = quoted(&[value.as_str().into()]);
        let valid = match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(all)) => all.as_slice(),
            Some(_) | None => &[],
        };
        let known = valid.iter().map(String::as_str);
        let why = match std::error::Error::source(error) {
            Some(source) => reason(&source.to_string()),
            None => "not one of its values".to_owned(),
        };
        let at = self.words.iter().rposition(|word| word.as_bytes() == value.as_bytes());
        let next = match (nearest(&value, known), at) {
            (Some(near), Some(at)) => {
                format!("did you mean `{}`?", replaced(self.words, at, near))
            }
            _ if valid.is_empty() => self.help(),
            _ => format!("it is one of {}", valid.join(", ")),
        };
        self.said(&format!("{name} {shown}: {why}; {next}"))
    }
}

/// What a parser of a value says, for a person.
fn reason(said: &str) -> String {
    if said.contains("invalid digit") || said.contains("cannot parse integer") {
        return "not a whole number".to_owned();
    }
    let Some((_, range)) = said.split_once(" is not in ") else { return said.to_owned() };
    let (low, high) = range.split_once("..").unwrap_or((range, ""));
    match high.strip_prefix('=').map(|high| (high, high.len() < 10)) {
        Some((high, true)) => format!("not a number from {low} to {high}"),
        Some((_, false)) | None => format!("not a number of at least {low}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_said_in_words() {
        for (said, want) in [
            ("invalid digit found in string", "not a whole number"),
            ("0 is not in 1..18446744073709551615", "not a number of at least 1"),
            ("300 is not in 1..=256", "not a number from 1 to 256"),
            ("too odd", "too odd"),
        ] {
            assert_eq!(reason(said), want);
        }
    }

    #[test]
    fn arguments_are_named_without_their_brackets() {
        for (argument, want) in
            [("<DIR>", "DIR"), ("<ID>...", "ID"), ("<PROGRAM [ARGUMENT]...>...", "PROGRAM")]
        {
            assert_eq!(bare(argument), want);
        }
    }
}
