//! A project's `hob.toml`: where it is, whether it is allowed, what it says of a program.
//!
//! ```toml
//! [program.greeter]
//! handler = "greeter.py:handle"   # a file beside this one, and a function in it
//! isolation = "prefork"           # fork | prefork | session
//! offered = true                  # other hosts may ask it
//! claimed = true                  # and take an ask before they perform it
//! version = "1.2.0"
//!
//! [program.deploy]
//! hooks = "deploy.d"              # a directory of hooks, which hob runs for one target after the other
//!
//! [program.native]
//! runtime = "native"              # a program linked with hob-worker; else the file's name tells
//! handler = "target/release/native"
//! ```
//! `site` has the mounts, of which `hob serve` makes a site.
//!
//! Invariants: only the file that was trusted is read (`trust` gives its bytes); an unknown key is
//! an error, since a misspelt one would otherwise do nothing; every number has its bounds.

mod describe;
pub mod git;
pub mod rights;
mod section;
pub mod site;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hob_core::hosts::Offered;
use hob_core::terms::Terms;
use hob_resolve::near::nearest;
use hob_runtimes::RuntimeId;
use hob_wire::message::Reason;
use hob_wire::worker::TargetKind;
use serde::Deserialize;

use crate::trust::{self, Trusted};
pub use describe::{Contents, Declaration, contents, nearest_above};
use section::Section;

/// Directories that are looked at, from the caller's upwards.
const LEVELS_MAX: usize = 64;
/// Why a project's configuration cannot be used; a line for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ProjectError {
    /// What kind of trouble.
    pub reason: Reason,
    /// What happened, why, and what to do next.
    pub text: String,
}

impl ProjectError {
    fn config(path: &Path, what: impl std::fmt::Display) -> ProjectError {
        ProjectError { reason: Reason::Config, text: format!("{}: {what}", path.display()) }
    }
}

/// A handler, or a mount's app, as a `hob.toml` declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The directory of its `hob.toml`.
    pub root: PathBuf,
    /// Its file, absolute; of hooks their directory.
    pub file: PathBuf,
    /// Whether hob itself is its worker, and runs the hooks of a directory.
    pub is_hooks: bool,
    /// Which variables an asker may set for those: names, with `*` and `?`.
    pub settable: Vec<String>,
    /// What hosts it.
    pub runtime: RuntimeId,
    /// The interpreter, as a command line names it; empty for a program that is its own runtime.
    pub interpreter: String,
    /// The interface of a web app; `None`: it handles messages.
    pub interface: Option<&'static str>,
    /// What of the file is called; `None`: the file itself is what runs.
    pub function: Option<String>,
    /// Variables of the sender that it is given.
    pub variables: Vec<String>,
    /// After so many failed deliveries a tell is a dead letter.
    pub tries: u32,
    /// What its pool works by.
    pub terms: Terms,
}

impl Declared {
    /// Where a daemon that has this directory keeps what it prints.
    #[must_use]
    pub fn log(&self, directory: &Path) -> PathBuf {
        crate::workers::logs::path(directory, &self.target().1)
    }

    /// What its workers are told to load.
    pub(crate) fn target(&self) -> (TargetKind, Vec<u8>) {
        let mut target = Vec::new();
        if let Some(interface) = self.interface {
            target.extend_from_slice(interface.as_bytes());
            target.push(b':');
        }
        target.extend_from_slice(self.file.as_os_str().as_bytes());
        let function = self.function.as_deref();
        if let Some(function) = function.or(self.interface.map(|_| "")) {
            target.push(b':');
            target.extend_from_slice(function.as_bytes());
        }
        let is_app = self.interface.is_some();
        (if is_app { TargetKind::App } else { TargetKind::Handler }, target)
    }
}

/// What was found, and every path that decided it.
#[derive(Debug)]
pub struct Found {
    /// The handler, or why there is none.
    pub handler: Result<Declared, ProjectError>,
    /// Each `hob.toml` that there is or could have been.
    pub candidates: Vec<Vec<u8>>,
    /// Whether no `hob.toml` there names it.
    pub is_absent: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    program: BTreeMap<String, Section>,
    /// The site's, which `site` reads.
    #[serde(default)]
    serve: toml::Table,
    #[serde(default)]
    mount: toml::Table,
}

/// Looks for a program in the `hob.toml` of `directory` and of those above it; the first that has
/// it counts.
#[must_use]
pub fn find(state_dir: Option<&Path>, directory: &Path, program: &str) -> Found {
    let mut candidates = Vec::new();
    let (mut seen, mut names) = (None, Vec::new());
    for dir in directory.ancestors().take(LEVELS_MAX) {
        let path = dir.join(trust::FILE);
        candidates.push(crate::workers::runtimes::bytes(&path));
        let handler = match trust::trusted(state_dir, dir) {
            Trusted::NoFile => continue,
            Trusted::Yes(bytes) => match read(dir, &bytes, program) {
                Ok(Err(others)) => {
                    names.extend(others);
                    seen.get_or_insert(path);
                    continue;
                }
                Ok(Ok(handler)) => Ok(handler),
                Err(error) => Err(error),
            },
            Trusted::No => Err(untrusted(&path, "is not trusted")),
            Trusted::Changed => Err(untrusted(&path, "was edited since it was trusted")),
        };
        return Found { handler, candidates, is_absent: false };
    }
    let text = match seen {
        Some(path) => {
            let next = match nearest(program, names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add one".to_owned(),
            };
            format!("{}: has no [program.{program}]; {next}", path.display())
        }
        None => format!(
            "no {} in {} or above; it names programs, as `[program.{program}]`",
            trust::FILE,
            directory.display()
        ),
    };
    let handler = Err(ProjectError { reason: Reason::NoProgram, text });
    Found { handler, candidates, is_absent: true }
}

/// The programs of a directory's own `hob.toml` that other hosts may ask; none where it is not
/// trusted, or cannot be used.
#[must_use]
pub fn offered(state_dir: Option<&Path>, directory: &Path) -> Vec<Offered> {
    let Trusted::Yes(bytes) = trust::trusted(state_dir, directory) else { return Vec::new() };
    let Ok(file) = parse(&directory.join(trust::FILE), &bytes) else { return Vec::new() };
    let Ok(root) = std::fs::canonicalize(directory) else { return Vec::new() };
    let offers =
        file.program.iter().filter_map(|(name, section)| section.offer(name, &root).ok()?);
    offers.collect()
}

fn untrusted(path: &Path, what: &str) -> ProjectError {
    let dir = path.parent().unwrap_or(path);
    let text =
        format!("{}: {what}; look at it, then run `hob trust {}`", path.display(), dir.display());
    ProjectError { reason: Reason::Untrusted, text }
}

/// A whole file.
fn parse(path: &Path, bytes: &[u8]) -> Result<File, ProjectError> {
    let fault = |what: String| ProjectError::config(path, what);
    let text = std::str::from_utf8(bytes).map_err(|_| fault("is not UTF-8".to_owned()))?;
    toml::from_str(text).map_err(|error| fault(one_line(&error, text)))
}

/// What one file says of a program; if nothing, the names of those that it has.
fn read(
    dir: &Path,
    bytes: &[u8],
    program: &str,
) -> Result<Result<Declared, Vec<String>>, ProjectError> {
    let path = dir.join(trust::FILE);
    let file = parse(&path, bytes)?;
    match file.program.get(program) {
        None => Ok(Err(file.program.into_keys().collect())),
        Some(section) => section.declared(&path, program).map(Ok),
    }
}

/// The first line of what TOML says, with the place, and what a misspelt key is meant to be.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line =
        error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message().lines().next().unwrap_or("cannot be read").to_owned();
    let message = match describe::meant(&message) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    };
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_core::isolation::{Name, Origin};

    fn project(text: &str) -> (tempfile::TempDir, tempfile::TempDir) {
        use std::os::unix::fs::PermissionsExt;
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::set_permissions(state.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(dir.path().join("greeter.py"), "def handle(p, m): return p\n").unwrap();
        std::fs::write(dir.path().join(trust::FILE), text).unwrap();
        let read = trust::read(dir.path()).unwrap().unwrap();
        trust::allow(state.path(), &read).unwrap();
        (dir, state)
    }

    fn found(text: &str) -> Result<Declared, ProjectError> {
        let (dir, state) = project(text);
        let inner = dir.path().join("deep/er");
        std::fs::create_dir_all(&inner).unwrap();
        find(Some(state.path()), &inner, "greeter").handler
    }

    fn fault(text: &str) -> (Reason, String) {
        let error = found(text).unwrap_err();
        assert!(!error.text.contains('\n'), "{}", error.text);
        (error.reason, error.text)
    }

    #[test]
    fn a_handler_is_found_above_the_directory_with_paths_relative_to_its_file() {
        let handler = found("[program.greeter]\nhandler = \"greeter.py:handle\"\n").unwrap();
        let known = (handler.runtime, handler.interpreter.as_str(), handler.function.as_deref());
        assert_eq!(known, (RuntimeId::Python, "python3", Some("handle")));
        assert_eq!(handler.file, handler.root.join("greeter.py"));
        assert_eq!(handler.terms.recipe.name(), Name::Prefork);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let check = |text: &str, reason: Reason, words: &[&str]| {
            let (have, said) = fault(text);
            assert_eq!(have, reason, "{said}");
            for word in words {
                assert!(said.contains(word), "{word:?} is not in {said:?}");
            }
        };
        let config = Reason::Config;
        check("[program.greeter\n", config, &["line 1"]);
        check("[program.greeter]\nhandlr = \"a\"\n", config, &["line 2", "handlr"]);
        check("[prgram.x]\n", config, &["prgram"]);
        check("[program.greeter]\nhandler = \"greeter.py\"\n", config, &["a colon"]);
        check(
            "[program.greeter]\nhandler = \"nope.py:f\"\n",
            Reason::NoProgram,
            &["nope.py is not there"],
        );
        check("[program.greeter]\nhandler = \"greeter.py:a-b\"\n", config, &["a-b"]);
        let with =
            |line: &str| format!("[program.greeter]\nhandler = \"greeter.py:handle\"\n{line}\n");
        check(&with("isolation = \"spawn\""), config, &["fork, prefork or session"]);
        check(&with("tries = 0"), config, &["between 1 and 100"]);
        check(&with("workers = 0"), config, &["between 1 and 64"]);
        check(&with("idle = \"soon\""), config, &["30s or 10m"]);
        check(&with("isolation = \"fork\"\nuses = 3"), config, &["uses"]);
        check("[program.other]\nhandler = \"a:b\"\n", Reason::NoProgram, &["[program.greeter]"]);
    }

    #[test]
    fn a_native_program_is_a_file_that_is_started_and_never_forked() {
        use std::os::unix::fs::PermissionsExt;
        let section = |more: &str| format!("[program.greeter]\nruntime = \"native\"\n{more}\n");
        let (dir, state) = project(&section("handler = \"bin/greeter\""));
        let find = || find(Some(state.path()), dir.path(), "greeter").handler;
        assert_eq!(find().unwrap_err().reason, Reason::NoProgram);
        let file = dir.path().join("bin/greeter");
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::fs::write(&file, "").unwrap();
        let error = find().unwrap_err();
        assert!(error.reason == Reason::Config && error.text.contains("chmod +x"), "{error}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        let handler = find().unwrap();
        assert_eq!(
            (&handler.runtime, &handler.file),
            (&RuntimeId::Native, &handler.root.join("bin/greeter"))
        );
        let recipe = handler.terms.recipe;
        assert_eq!((recipe.origin, recipe.name()), (Origin::Exec, Name::Prefork));
        for (more, words) in
            [("isolation = \"fork\"", "uses = 1"), ("interpreter = \"python3\"", "no interpreter")]
        {
            let (reason, said) = fault(&section(&format!("handler = \"greeter.py\"\n{more}")));
            assert!(reason == Reason::Config && said.contains(words), "{said}");
        }
        let (_, said) = fault("[program.greeter]\nhandler = \"a\"\nruntime = \"jvm\"\n");
        assert!(said.contains("one of native, python"), "{said}");
    }

    #[test]
    fn an_edit_after_the_trust_is_told_with_the_next_step() {
        let (dir, state) = project("[program.greeter]\nhandler = \"greeter.py:handle\"\n");
        std::fs::write(dir.path().join(trust::FILE), "[program.greeter]\nhandler=\"x:y\"\n")
            .unwrap();
        let error = find(Some(state.path()), dir.path(), "greeter").handler.unwrap_err();
        assert_eq!(error.reason, Reason::Untrusted);
        assert!(error.text.contains("edited") && error.text.contains("hob trust"), "{error}");
        let error = find(None, dir.path(), "greeter").handler.unwrap_err();
        assert!(error.text.contains("is not trusted"), "{error}");
    }
}
