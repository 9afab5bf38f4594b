//! A or B: what is started, where, and how it is called when it is spoken of.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// Characters that mean something to a shell, so that one has to read them.
const OF_THE_SHELL: &[u8] = b"|&;<>()$`\\\"'*?[]#~=%{}!\n";

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Letter {
    A,
    B,
}

impl Letter {
    pub(super) fn name(self) -> &'static str {
        match self {
            Letter::A => "A",
            Letter::B => "B",
        }
    }
}

/// One of the two.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) letter: Letter,
    /// How it is shown.
    pub(super) shown: String,
    /// What is started.
    pub(super) words: Vec<OsString>,
    /// Whether a shell reads it.
    pub(super) by_shell: bool,
    /// Whether hob is kept out.
    pub(super) bypass: bool,
    /// Whether it is run until hob's daemon has it warm, before it is measured.
    pub(super) until_warm: bool,
    pub(super) directory: PathBuf,
}

impl Side {
    /// A command as one text.
    pub(super) fn of_text(
        letter: Letter,
        text: &OsStr,
        directory: PathBuf,
    ) -> Result<Side, Failure> {
        let shown = text.to_string_lossy().trim().to_owned();
        if shown.is_empty() {
            return Err(Failure::usage(format!("{} is empty: give a command", letter.name())));
        }
        let by_shell = text.as_bytes().iter().any(|byte| OF_THE_SHELL.contains(byte));
        let words = if by_shell {
            vec!["sh".into(), "-c".into(), text.to_owned()]
        } else {
            let words = text.as_bytes().split(u8::is_ascii_whitespace);
            words
                .filter(|word| !word.is_empty())
                .map(|word| OsStr::from_bytes(word).to_owned())
                .collect()
        };
        Side { letter, shown, words, by_shell, bypass: false, until_warm: false, directory }.found()
    }

    /// A command as words.
    pub(super) fn of_words(
        letter: Letter,
        name: &str,
        words: &[OsString],
        directory: PathBuf,
    ) -> Result<Side, Failure> {
        let shown = format!("{name}: {}", joined(words));
        let words = words.to_vec();
        Side { letter, shown, words, by_shell: false, bypass: false, until_warm: false, directory }
            .found()
    }

    /// A program without hob. `hob run` finds its interpreter, and then is out of the way.
    pub(super) fn cold(program: &[OsString], directory: &Path) -> Side {
        Side {
            bypass: true,
            until_warm: false,
            ..Side::by_hob(Letter::A, "cold", program, directory)
        }
    }

    /// A program by hob.
    pub(super) fn warm(program: &[OsString], directory: &Path) -> Side {
        Side::by_hob(Letter::B, "warm", program, directory)
    }

    fn by_hob(letter: Letter, name: &str, program: &[OsString], directory: &Path) -> Side {
        let own = std::env::current_exe().unwrap_or_else(|_| "hob".into());
        let words = ["run", "--purpose", "ab", "--"].map(OsString::from);
        let words = std::iter::once(own.into_os_string()).chain(words);
        Side {
            letter,
            shown: format!("{name}: {}", joined(program)),
            words: words.into_iter().chain(program.iter().cloned()).collect(),
            by_shell: false,
            bypass: false,
            until_warm: true,
            directory: directory.to_owned(),
        }
    }

    /// The command, to be started.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(&self.directory);
        if self.bypass {
            command.env("HOB", "0");
        }
        command
    }

    /// The side, if there is such a file.
    fn found(self) -> Result<Side, Failure> {
        let missing = |text: String| Err(Failure::usage(format!("{}: {text}", self.letter.name())));
        let Some(first) = self.words.first() else { return missing("no command".to_owned()) };
        let is_executable = |path: &Path| {
            path.metadata()
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let name = first.to_string_lossy();
        if first.as_bytes().contains(&b'/') {
            let path = self.directory.join(first);
            if !is_executable(&path) {
                return missing(format!(
                    "`{name}` is no executable file in {}",
                    self.directory.display()
                ));
            }
            return Ok(self);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&path).any(|folder| is_executable(&folder.join(first))) {
            return Ok(self);
        }
        missing(format!(
            "no command `{name}` on PATH; one of the shell's own is called as `sh -c '{name} …'`"
        ))
    }
}

fn joined(words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_only_what_needs_one() {
        let side = |text: &str| Side::of_text(Letter::A, text.as_ref(), "/".into());
        let plain = side("  true  a b ").unwrap();
        assert_eq!(
            (plain.words, plain.by_shell),
            (["true", "a", "b"].map(OsString::from).to_vec(), false)
        );
        for text in ["true | true", "true 'a b'", "X=1 true", "true $HOME", "true; true"] {
            let side = side(text).unwrap();
            assert_eq!((side.by_shell, &side.words[2]), (true, &OsString::from(text)), "{text}");
        }
        for wrong in ["", "   ", "no-such-command-here", "./no-such-file"] {
            assert!(side(wrong).is_err(), "{wrong:?}");
        }
    }
}
