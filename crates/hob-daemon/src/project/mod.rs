//! A project's `hob.toml`: where it is, whether it is allowed, what it says of a program.
//!
//! ```toml
//! [program.greeter]
//! handler = "greeter.py:handle"   # a file beside this one, and a function in it
//! isolation = "prefork"           # fork | prefork | session
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
pub mod site;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hob_core::isolation::{Name, Origin, Uses};
use hob_core::requests::{Affinity, After, Refill, Terms};
use hob_resolve::near::nearest;
use hob_runtimes::{Handlers, Runtime, RuntimeId};
use hob_wire::message::Reason;
use hob_wire::worker::TargetKind;
use serde::Deserialize;

use crate::outbox;
use crate::trust::{self, Trusted};
pub use describe::{Contents, Declaration, contents, nearest_above};

/// Directories that are looked at, from the caller's upwards.
const LEVELS_MAX: usize = 64;
/// What `workers` may ask for.
const WORKERS_MAX: u32 = 64;
/// Messages of a prefork worker, where nothing else is said: they are small, and a fork is not.
const USES: u32 = 10_000;
/// A handler that could not be loaded is not tried again before this; messages wait for that. Short
/// enough that nobody waits who asks again after mending it, and long enough that a stream of asks
/// starts few interpreters in vain.
const BACKOFF_MAX_US: u64 = 100_000;
/// What `tries` may ask for.
const TRIES_MAX: u32 = 100;
/// What `queue` may ask for.
const QUEUE_MAX: u32 = 65_536;

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
    /// Its file, absolute.
    pub file: PathBuf,
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

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    handler: String,
    runtime: Option<String>,
    isolation: Option<String>,
    workers: Option<u32>,
    ahead: Option<u32>,
    uses: Option<u32>,
    memory_mb: Option<u64>,
    queue: Option<u32>,
    tries: Option<u32>,
    idle: Option<String>,
    #[serde(alias = "python")]
    interpreter: Option<String>,
    #[serde(default)]
    env: Vec<String>,
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
        return Found { handler, candidates };
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
    Found { handler, candidates }
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

fn is_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|next| next.is_alphanumeric() || next == '_')
}

impl Section {
    /// What is declared, checked against what is there; `path` is its `hob.toml`'s.
    fn declared(&self, path: &Path, program: &str) -> Result<Declared, ProjectError> {
        let fault =
            |what: String| ProjectError::config(path, format!("[program.{program}]: {what}"));
        let (file, function, row) = self.target(program).map_err(fault)?;
        let terms = self.terms(row).map_err(fault)?;
        let tries = self.tries.unwrap_or(outbox::TRIES);
        if !(1..=TRIES_MAX).contains(&tries) {
            return Err(fault(format!("tries = {tries}: it is between 1 and {TRIES_MAX}")));
        }
        let dir = path.parent().unwrap_or(path);
        let root = std::fs::canonicalize(dir).map_err(|error| fault(error.to_string()))?;
        let file = root.join(file);
        if !file.is_file() {
            let near = describe::near_file(&file);
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let mut error = fault(format!("handler: {} is not there{near}", file.display()));
            error.reason = Reason::NoProgram;
            return Err(error);
        }
        let is_executed = row.handlers == Handlers::Program;
        if is_executed && rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_err() {
            let file = file.display();
            return Err(fault(format!("handler: {file} cannot be executed; `chmod +x` it")));
        }
        Ok(Declared {
            root,
            file,
            runtime: row.id,
            interpreter: self.interpreter_of(row),
            interface: None,
            function: function.map(str::to_owned),
            variables: self.env.clone(),
            tries,
            terms,
        })
    }

    /// The interpreter that is named, or that the runtime has usually; empty if it has none.
    fn interpreter_of(&self, row: &Runtime) -> String {
        let usual = row.commands.first().map(|name| String::from_utf8_lossy(name).into_owned());
        self.interpreter.clone().or(usual).unwrap_or_default()
    }

    /// The runtime that is named, if one is.
    fn named(&self) -> Result<Option<&'static Runtime>, String> {
        let Some(name) = self.runtime.as_deref() else { return Ok(None) };
        let hosts = |row: &&Runtime| row.handlers != Handlers::No;
        let found = hob_runtimes::by_name(name).filter(hosts);
        found.map(Some).ok_or_else(|| {
            let names: Vec<&str> = hob_runtimes::rows().filter(hosts).map(|row| row.name).collect();
            format!("runtime = \"{name}\": it is one of {}", names.join(", "))
        })
    }

    /// The handler's file as it is written, its function, and what hosts it: the runtime that is
    /// named, or that the file's name tells.
    fn target(&self, program: &str) -> Result<(&str, Option<&str>, &'static Runtime), String> {
        let (handler, named) = (self.handler.as_str(), self.named()?);
        if let Some(row) = named.filter(|row| row.handlers == Handlers::Program) {
            return match self.interpreter {
                Some(_) => Err(format!("interpreter: a {} program has no interpreter", row.name)),
                None => Ok((handler, None, row)),
            };
        }
        let split = handler.rsplit_once(':').filter(|(file, _)| !file.is_empty());
        let (file, function) = split.ok_or_else(|| {
            format!(
                "handler = \"{handler}\": it is a file, a colon and a function, as \
                 \"{program}.py:handle\"; a program linked with hob-worker needs runtime = \
                 \"native\" beside it"
            )
        })?;
        if !is_name(function) {
            return Err(format!("handler: `{function}` is not a function's name"));
        }
        let row = named
            .or_else(|| hob_runtimes::by_suffix(file.as_bytes()))
            .or_else(hob_runtimes::first_hosted)
            .ok_or("runtime: nothing hosts it")?;
        Ok((file, Some(function), row))
    }

    fn terms(&self, row: &Runtime) -> Result<Terms, String> {
        let name = match self.isolation.as_deref() {
            None => Name::Prefork,
            Some(word) => match Name::from_code(word) {
                Some(name @ (Name::Fork | Name::Prefork | Name::Session)) => name,
                Some(Name::Spawn | Name::Standby) | None => {
                    return Err(format!(
                        "isolation = \"{word}\": a handler's is fork, prefork or session"
                    ));
                }
            },
        };
        if name == Name::Fork && row.handlers == Handlers::Program {
            return Err("isolation = \"fork\": a native program may have threads, and is not \
                        forked; `uses = 1` gives each message a process of its own"
                .to_owned());
        }
        let within = |what: &str, number: u32, max: u32| match number {
            number if (1..=max).contains(&number) => Ok(number),
            _ => Err(format!("{what} = {number}: it is between 1 and {max}")),
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let processors = u32::try_from(processors).unwrap_or(1).clamp(2, 16);
        let usual = if name == Name::Session { WORKERS_MAX } else { 2 * processors };
        let workers_max = within("workers", self.workers.unwrap_or(usual), WORKERS_MAX)?;
        let ahead = self.ahead.unwrap_or(if name == Name::Fork { 2 } else { 1 });
        let ahead = if ahead == 0 { 0 } else { within("ahead", ahead, workers_max)? };
        let mut recipe = name.lower(if name == Name::Session { 0 } else { ahead });
        if name == Name::Prefork {
            recipe.uses = Uses::Times(USES);
        }
        if row.handlers == Handlers::Program {
            recipe.origin = Origin::Exec;
        }
        if let Some(uses) = self.uses {
            if name != Name::Prefork {
                return Err("uses: only a prefork worker has a number of uses".to_owned());
            }
            recipe.uses = Uses::Times(within("uses", uses, u32::MAX)?);
        }
        let worker_kib = self.memory_mb.unwrap_or(512).max(1).saturating_mul(1024);
        let idle_us = match &self.idle {
            None => 600 * 1_000_000,
            Some(text) => microseconds(text)
                .ok_or_else(|| format!("idle = \"{text}\": it is a time such as 30s or 10m"))?,
        };
        Ok(Terms {
            recipe,
            slots: 1,
            after: After::Ready,
            refill: Refill::AtOnce,
            affinity: if name == Name::Session { Affinity::Session } else { Affinity::Any },
            workers_max,
            queue_max: within("queue", self.queue.unwrap_or(1024), QUEUE_MAX)?,
            worker_kib,
            idle_us,
            backoff_max_us: BACKOFF_MAX_US,
        })
    }
}

/// `500ms`, `30s`, `1m30s`, `2h`.
fn microseconds(text: &str) -> Option<u64> {
    let length = crate::durations::parse(text).ok()?;
    u64::try_from(length.as_micros()).ok().filter(|us| *us > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn times_have_units() {
        assert_eq!(microseconds("500ms"), Some(500_000));
        assert_eq!(microseconds("10m"), Some(600_000_000));
        assert_eq!(microseconds("1m30s"), Some(90_000_000));
        for wrong in ["", "5", "s", "0s", "5x", "99999999999999999999s"] {
            assert_eq!(microseconds(wrong), None, "{wrong}");
        }
    }
}
