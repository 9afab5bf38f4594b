//! One command hook of an agent, whatever its settings are written in. Pure.

use std::ops::Range;

/// One command hook.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hook {
    /// When it runs, in the agent's word.
    pub(super) event: String,
    /// What the shell is given.
    pub(super) command: String,
    /// The string in the text, with its quotes.
    pub(super) at: Range<usize>,
    /// Why it cannot run through hob, if it cannot.
    pub(super) refused: Option<&'static str>,
}

/// What a hook says of how its command is run.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) kind: Option<&'a str>,
    pub(super) shell: Option<&'a str>,
    pub(super) has_args: bool,
}

impl Entry<'_> {
    /// The hook, if it is one whose command a shell runs.
    pub(super) fn hook(&self, event: &str, command: String, at: Range<usize>) -> Option<Hook> {
        if self.kind.is_some_and(|kind| kind != "command") {
            return None;
        }
        let refused = match self.shell {
            _ if self.has_args => Some("its \"args\" mean that no shell runs it"),
            Some(shell) if !["bash", "sh", "zsh"].contains(&shell) => {
                Some("another shell than sh, bash or zsh runs it")
            }
            Some(_) | None => None,
        };
        Some(Hook { event: event.to_owned(), command, at, refused })
    }
}
