//! `hob hooks adopt git|pre-commit DIR`, `hob hooks adopt agent FILE` and `hob hooks restore PATH`:
//! the hooks of a repository or of a coding agent run warm.
//!
//! One line of a hook's file, or one string of an agent's settings, is changed, so that everything a
//! hook can see is as it was: its path, its arguments, its standard input, its environment, its exit code, the lines of its text; and
//! so that it runs without hob where there is none, in a copy of the repository too. A hook for
//! which that is not possible is left as it is, with the reason.
//!
//! Invariants: the file that was there is kept, as it is, under `hob/` in the repository's own
//! folder, before anything takes its place; a file appears whole, by a rename; `restore` puts the
//! very file back if nothing was edited, and takes back hob's line alone if something was; what
//! is not hob's change is never undone.

mod agent;
mod edit;
mod hook;
mod inline;
mod kept;
mod repository;
mod settings;
mod shell;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hob_core::hooks::Bytes;
use hob_os::start::Start;

use self::edit::{Edited, Places};
use self::kept::{Adopted, Kept, Restored};
use self::repository::Repository;
use super::super::shim;
use crate::failure::Failure;
use crate::output::out;
use crate::show::style::Look;
use crate::show::text::printable;

/// Whose hooks.
#[derive(Debug, Subcommand)]
pub(crate) enum Adopt {
    /// The hooks of a git repository that Python runs
    Git(Of),
    /// The hooks that pre-commit installed in a git repository, and the Python that runs it
    PreCommit(Of),
    /// The command hooks in a coding agent's settings: Claude Code, Cursor, Codex, Gemini CLI
    Agent(agent::Of),
}

/// Which repository.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// A directory of the repository
    dir: OsString,
}

/// What is to be as it was.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A directory of a repository, or an agent's settings file
    path: OsString,
}

/// Runs `adopt`.
pub(crate) fn adopt(start: &Start, what: &Adopt) -> Result<u8, Failure> {
    match what {
        Adopt::Git(of) => adopt_repository(start, of, Kind::Git),
        Adopt::PreCommit(of) => adopt_repository(start, of, Kind::PreCommit),
        Adopt::Agent(of) => adopt_agent(start, of),
    }
}

/// The path of hob itself, as hooks are to name it.
fn own_path(start: &Start) -> Result<PathBuf, Failure> {
    let hob = shim::own_path(start)
        .ok_or_else(|| Failure::new("cannot tell where hob itself is; is /proc mounted?"))?;
    if !hob.file_name().is_some_and(|file| hob_resolve::is_hob(file.as_bytes())) {
        let text =
            format!("{}: rename it to `hob` or `hob-...`, so that hooks find it", hob.display());
        return Err(Failure::new(text));
    }
    Ok(hob)
}

fn adopt_agent(start: &Start, of: &agent::Of) -> Result<u8, Failure> {
    let hob = own_path(start)?;
    let file = std::path::absolute(&of.file)
        .map_err(|error| Failure::new(format!("{}: {error}", of.file.display())))?;
    let done = agent::adopt(start, of, &file, &hob).map_err(Failure::new)?;
    let lines: String = done.lines.iter().map(|line| shown(line.as_bytes()) + "\n").collect();
    out(&lines)?;
    if done.adopted > 0 {
        return Ok(0);
    }
    let why = if done.hooks == 0 { "it has no command hooks" } else { "no hook there can be warm" };
    let agent = agent::agent_of(&file);
    Err(Failure::new(format!("{}: nothing of {agent} was adopted: {why}", file.display())))
}

fn adopt_repository(start: &Start, of: &Of, kind: Kind) -> Result<u8, Failure> {
    let repository = Repository::of(of.dir.as_ref()).map_err(Failure::new)?;
    let hob = own_path(start)?;
    let links = links(start).ok_or_else(|| {
        Failure::new("no place for links: neither XDG_DATA_HOME nor HOME is an absolute path")
    })?;
    if kind == Kind::Git && !repository::env_splits() {
        return Err(Failure::new(
            "this system's /usr/bin/env has no -S, which an adopted hook needs (coreutils 8.30)",
        ));
    }
    let mut work =
        Work { kept: Kept::open(&repository).map_err(Failure::new)?, repository, hob, links };
    let names = hooks_in(&work.repository.hooks).map_err(Failure::new)?;
    let mut lines = String::new();
    let mut adopted = 0;
    for name in &names {
        let line = match work.adopt(name, kind) {
            Ok(done) => {
                adopted += 1;
                done
            }
            Err(why) => format!("left as it is: {why}"),
        };
        lines += &format!("{}: {line}\n", shown(name.as_bytes()));
    }
    out(&lines)?;
    if adopted > 0 {
        return Ok(0);
    }
    let dir = work.repository.hooks.display();
    let why = if names.is_empty() { "it has no hooks" } else { "no hook there can be warm" };
    Err(Failure::new(format!("{dir}: nothing was adopted: {why}")))
}

/// Runs `restore`.
pub(crate) fn restore(of: &Restore) -> Result<u8, Failure> {
    let path = Path::new(&of.path);
    let (kept, place) = if path.is_dir() {
        let repository = Repository::of(path).map_err(Failure::new)?;
        (Kept::open(&repository).map_err(Failure::new)?, repository.hooks)
    } else {
        let file = std::path::absolute(path)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        (agent::kept(&file).map_err(Failure::new)?, file)
    };
    if kept.adopted.is_empty() {
        let place = place.display();
        return out(&format!("{place}: no hook is adopted\n")).map(|()| 0);
    }
    let mut code = 0;
    let mut lines = String::new();
    for (adopted, restored) in kept.restore() {
        let line = match restored {
            Ok(Restored::AsItWas) => "as it was".to_owned(),
            Ok(Restored::Edited) => {
                "hob's change is taken back; what was edited since stays".to_owned()
            }
            Ok(Restored::Replaced(kept)) => format!(
                "was replaced by another since, which stays; the one that was adopted is {}",
                kept.display()
            ),
            Ok(Restored::Gone(kept)) => {
                format!("was removed since; the one that was adopted is {}", kept.display())
            }
            Err(why) => {
                code = 1;
                format!("not restored: {why}")
            }
        };
        lines += &format!("{}: {line}\n", shown(&adopted));
    }
    out(&lines).map(|()| code)
}

fn shown(name: &[u8]) -> String {
    printable(&String::from_utf8_lossy(name), Look::of_stdout().charset)
}

/// Whose hooks, after parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Git,
    PreCommit,
}

/// The folder of links to hob under the names of interpreters.
fn links(start: &Start) -> Option<PathBuf> {
    let absolute = |name: &[u8]| {
        let value = Path::new(std::ffi::OsStr::from_bytes(start.variable(name)?));
        value.is_absolute().then(|| value.to_owned())
    };
    let home = || absolute(b"HOME").map(|home| home.join(".local/share"));
    absolute(b"XDG_DATA_HOME").or_else(home).map(|share| share.join("hob/hooks"))
}

/// The names that git may run, in the order of their bytes: it knows none with a dot, and samples
/// have one.
fn hooks_in(dir: &Path) -> Result<Vec<OsString>, String> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", dir.display())),
    };
    let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.retain(|name| !name.as_bytes().contains(&b'.') && !dir.join(name).is_dir());
    names.sort();
    Ok(names)
}

/// One adoption.
#[derive(Debug)]
struct Work {
    repository: Repository,
    kept: Kept,
    hob: PathBuf,
    links: PathBuf,
}

impl Work {
    fn adopt(&mut self, name: &OsString, kind: Kind) -> Result<String, String> {
        let file = self.repository.hooks.join(name);
        let meta = file.symlink_metadata().map_err(|error| error.to_string())?;
        if meta.is_symlink() {
            let target = std::fs::read_link(&file).unwrap_or_default();
            return Err(format!(
                "a symbolic link to {}, which hob would have to change",
                shown(target.as_os_str().as_bytes())
            ));
        }
        if !meta.is_file() {
            return Err("no regular file".to_owned());
        }
        if meta.mode() & 0o111 == 0 {
            return Err("not executable, so that git does not run it".to_owned());
        }
        let text = std::fs::read(&file).map_err(|error| error.to_string())?;
        if self.kept.holds(&file, &text) {
            return Ok("is adopted already".to_owned());
        }
        if meta.nlink() > 1 {
            return Err(
                "the file has another name too, which would be another file then".to_owned()
            );
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(format!("it belongs to uid {}", meta.uid()));
        }
        if self.repository.tracks(&file) {
            return Err("under version control: hob would change your work tree".to_owned());
        }
        let edited = self.edited(&text, kind)?;
        if let Some(link) = &edited.link {
            self.link(link)?;
        }
        let mode = meta.permissions().mode();
        self.kept.exchange(&file, &Adopted::new(&file, &edited), &edited.text, mode)?;
        Ok(match kind {
            Kind::Git => "runs through hob from now on".to_owned(),
            Kind::PreCommit => "runs pre-commit through hob from now on".to_owned(),
        })
    }

    fn edited(&self, text: &[u8], kind: Kind) -> Result<Edited, String> {
        let utf8 = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or(format!("{}: not UTF-8", path.display()))
        };
        let (hob, links) = (utf8(&self.hob)?, utf8(&self.links)?);
        let places = Places { hob: &hob, links: &links };
        match kind {
            Kind::Git if edit::is_generated(text) => {
                Err("made by pre-commit; `hob hooks adopt pre-commit` is for it".to_owned())
            }
            Kind::Git => edit::python(text, &places),
            Kind::PreCommit => edit::pre_commit(text, &places),
        }
    }

    /// The link under which the hook's first line finds hob.
    fn link(&self, name: &str) -> Result<(), String> {
        let link = self.links.join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", link.display());
        if std::fs::read_link(&link).is_ok_and(|target| target == self.hob) {
            return Ok(());
        }
        std::fs::create_dir_all(&self.links).map_err(failed)?;
        let beside = self.links.join(format!(".hob-{}", std::process::id()));
        let made = std::os::unix::fs::symlink(&self.hob, &beside)
            .and_then(|()| std::fs::rename(&beside, &link));
        made.map_err(|error| {
            // What could not be put in its place is of no use where it is.
            let _ = std::fs::remove_file(&beside);
            failed(error)
        })
    }
}

impl Adopted {
    fn new(file: &Path, edited: &Edited) -> Adopted {
        Adopted {
            file: Bytes::from(file.as_os_str().as_bytes()),
            digest: kept::digest(&edited.text),
            edit: kept::Change::Line(edited.edit.clone()),
            original: String::new(),
        }
    }
}
