//! A worktree of another revision, for as long as it is compared.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hob_wire::exit::Exit;

use super::run::{by_shell, ended};
use crate::failure::Failure;
use crate::verbs::repeated::interrupts::Interrupts;

/// The worktree. It is removed when this goes.
#[derive(Debug)]
pub(super) struct Worktree {
    /// Holds the worktree; named so that what a `kill -9` leaves can be told.
    folder: tempfile::TempDir,
    /// The repository that it is of.
    top: PathBuf,
    /// From its top to where the command runs.
    below: PathBuf,
    revision: String,
    commit: String,
}

impl Worktree {
    pub(super) fn new(revision: &str, here: &Path) -> Result<Worktree, Failure> {
        let top = asked(here, &["rev-parse", "--show-toplevel"]).map_err(|said| {
            Failure::usage(format!("--rev: {} is in no git repository: {said}", here.display()))
        })?;
        let top = PathBuf::from(top);
        let commit = asked(
            here,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &format!("{revision}^{{commit}}"),
            ],
        )
        .map_err(|_| {
            Failure::usage(format!(
                "--rev {revision}: no such revision; `git branch -a` and `git tag` list names"
            ))
        })?;
        let folder = tempfile::Builder::new().prefix("hob-ab-").tempdir();
        let folder = folder.map_err(|error| {
            Failure::new(format!("cannot make a place for a worktree: {error}"))
        })?;
        let below = here.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let made = Worktree { folder, top, below, revision: revision.to_owned(), commit };
        let path = made.path();
        let path = path.to_string_lossy();
        asked(&made.top, &["worktree", "add", "--quiet", "--detach", &path, &made.commit])
            .map_err(|said| {
                Failure::new(format!("cannot make a worktree of {revision}: {said}"))
            })?;
        let directory = made.directory();
        if !directory.is_dir() {
            return Err(Failure::usage(format!(
                "--rev {revision}: it has no directory {}",
                made.below.display()
            )));
        }
        Ok(made)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("worktree")
    }

    /// Where the command runs.
    pub(super) fn directory(&self) -> PathBuf {
        self.path().join(&self.below)
    }

    /// `main (1a2b3c4)`.
    pub(super) fn name(&self) -> String {
        let short = self.commit.get(..7).unwrap_or(&self.commit);
        if self.revision.starts_with(short) {
            short.to_owned()
        } else {
            format!("{} ({short})", self.revision)
        }
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let path = self.path();
        if let Err(said) =
            asked(&self.top, &["worktree", "remove", "--force", &path.to_string_lossy()])
        {
            crate::say::line(format!("a worktree stays at {}: {said}", path.display()).as_bytes());
        }
    }
}

/// Builds in a place, before anything is measured there.
pub(super) fn build(command: &str, at: &Path, interrupts: &Interrupts) -> Result<(), Failure> {
    match by_shell(command, at, interrupts) {
        Ok(Exit::Code(0)) => Ok(()),
        Ok(exit) => Err(Failure::with_code(
            format!("--build failed in {}: {}", at.display(), ended(exit)),
            super::NO_VERDICT,
        )),
        Err(error) => Err(Failure::new(format!("cannot run --build: {error}"))),
    }
}

/// What git answers; or what it complains about.
fn asked(at: &Path, words: &[&str]) -> Result<String, String> {
    let done = Command::new("git").arg("-C").arg(at).args(words).output();
    let Output { status, stdout, stderr } =
        done.map_err(|error| format!("cannot run git: {error}"))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim_end_matches('\n').to_owned());
    }
    let said = String::from_utf8_lossy(&stderr);
    Err(said.lines().last().unwrap_or("git failed").to_owned())
}
