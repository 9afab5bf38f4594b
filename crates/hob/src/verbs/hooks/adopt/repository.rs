//! A repository as far as its hooks go: what git itself says of it.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a repository keeps what.
#[derive(Debug)]
pub(super) struct Repository {
    dir: PathBuf,
    /// Where git looks for hooks: `core.hooksPath` is respected.
    pub(super) hooks: PathBuf,
    /// hob's own folder in the repository's, which all of its work trees share.
    pub(super) own: PathBuf,
}

impl Repository {
    /// The one that this directory belongs to, or why there is none to work with.
    pub(super) fn of(dir: &Path) -> Result<Repository, String> {
        let ask = |words: &[&str]| git(dir, words);
        let path = |what: &[&str]| {
            let mut words = vec!["rev-parse", "--path-format=absolute"];
            words.extend(what);
            ask(&words).map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
        };
        let common = path(&["--git-common-dir"])
            .map_err(|why| format!("{}: git knows no repository there: {why}", dir.display()))?;
        let hooks = path(&["--git-path", "hooks"])?;
        // Fails, and says nothing, where it is not set.
        if let Ok(setting) = ask(&["config", "--show-scope", "--get", "core.hooksPath"]) {
            let scope = setting.split(|byte| *byte == b'\t').next().unwrap_or_default();
            if scope != b"local" && scope != b"worktree" {
                return Err(format!(
                    "{}: core.hooksPath is set in the {} configuration, so that these hooks are \
                     other repositories' too; they are left as they are",
                    hooks.display(),
                    String::from_utf8_lossy(scope)
                ));
            }
        }
        Ok(Repository { dir: dir.to_owned(), hooks, own: common.join("hob") })
    }

    /// Whether a file is under version control.
    pub(super) fn tracks(&self, file: &Path) -> bool {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.dir).args(["ls-files", "--error-unmatch", "--"]).arg(file);
        command.output().is_ok_and(|output| output.status.success())
    }
}

/// Whether a file goes to others with its repository: git tracks it, or does not ignore it.
pub(super) fn shares(file: &Path) -> bool {
    let Some(dir) = file.parent() else { return false };
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["check-ignore", "--quiet", "--"]).arg(file);
    // 1: it is not ignored, which no tracked file is; 128: there is no repository.
    command.output().is_ok_and(|output| output.status.code() == Some(1))
}

/// What git answers, without the line's end.
fn git(dir: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("git").arg("-C").arg(dir).args(words).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap_or("it did not say why");
        return Err(first.strip_prefix("fatal: ").unwrap_or(first).to_owned());
    }
    let mut answer = output.stdout;
    if answer.last() == Some(&b'\n') {
        answer.pop();
    }
    Ok(answer)
}

/// Whether this system's `env` can split a first line.
pub(super) fn env_splits() -> bool {
    let mut command = Command::new("/usr/bin/env");
    command.arg(std::ffi::OsStr::from_bytes(b"-S HOB_HOOK=${PATH} true"));
    command.output().is_ok_and(|output| output.status.success())
}
