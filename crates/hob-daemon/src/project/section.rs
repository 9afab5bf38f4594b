//! A program's section of a `hob.toml`: its keys and their bounds, and what it declares.

use std::ffi::OsStr;
use std::path::Path;

use hob_core::hosts::tells::PARTITIONS_MAX;
use hob_core::hosts::{Offered, OfferedHooks, is_subject};
use hob_core::isolation::{Name, Origin, Uses};
use hob_core::terms::{Affinity, After, Refill, Stale, Terms};
use hob_resolve::near::nearest_beside;
use hob_runtimes::{Handlers, Runtime};
use hob_wire::message::Reason;
use serde::Deserialize;

use super::{Declared, ProjectError};
use crate::outbox;

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
/// Messages that may wait, where nothing else is said.
const QUEUE: u32 = 1024;
/// What `queue` may ask for.
const QUEUE_MAX: u32 = 65_536;

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    #[serde(default)]
    pub(super) handler: String,
    /// A hooks directory, in the place of a handler.
    pub(super) hooks: Option<String>,
    /// Which variables an asker may set for those hooks: names, with `*` and `?`.
    #[serde(default)]
    pub(super) set: Vec<String>,
    pub(super) runtime: Option<String>,
    pub(super) isolation: Option<String>,
    pub(super) workers: Option<u32>,
    pub(super) ahead: Option<u32>,
    pub(super) uses: Option<u32>,
    pub(super) memory_mb: Option<u64>,
    pub(super) queue: Option<u32>,
    pub(super) tries: Option<u32>,
    pub(super) idle: Option<String>,
    #[serde(alias = "python")]
    pub(super) interpreter: Option<String>,
    #[serde(default)]
    pub(super) env: Vec<String>,
    /// Whether other hosts may ask it.
    #[serde(default)]
    pub(super) offered: bool,
    /// Whether a host takes an ask before it performs it.
    #[serde(default)]
    pub(super) claimed: bool,
    /// Into how many parts other hosts' tells with a key are divided.
    pub(super) partitions: Option<u32>,
    pub(super) version: Option<String>,
}

/// A handler's file as it is written, its function, and what hosts it.
type Parts<'a> = (&'a str, Option<&'a str>, &'static Runtime);

pub(super) fn is_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|next| next.is_alphanumeric() || next == '_')
}

impl Section {
    /// What is declared, checked against what is there; `path` is its `hob.toml`'s.
    pub(super) fn declared(&self, path: &Path, program: &str) -> Result<Declared, ProjectError> {
        let fault =
            |what: String| ProjectError::config(path, format!("[program.{program}]: {what}"));
        let (file, function, row) = self.target(program).map_err(fault)?;
        let is_hooks = self.hooks.is_some();
        let terms = self.terms(row).map_err(fault)?;
        self.settable(is_hooks).map_err(fault)?;
        let tries = self.tries.unwrap_or(outbox::TRIES);
        if !(1..=TRIES_MAX).contains(&tries) {
            return Err(fault(format!("tries = {tries}: it is between 1 and {TRIES_MAX}")));
        }
        let dir = path.parent().unwrap_or(path);
        let root = std::fs::canonicalize(dir).map_err(|error| fault(error.to_string()))?;
        self.offer(program, &root).map_err(fault)?;
        let file = root.join(file);
        if !(if is_hooks { file.is_dir() } else { file.is_file() }) {
            let near = nearest_beside(&file, |near| !is_hooks || near.path().is_dir());
            let near = near.as_deref().and_then(Path::file_name).map(OsStr::display);
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let key = if is_hooks { "hooks" } else { "handler" };
            let mut error = fault(format!("{key}: {} is not there{near}", file.display()));
            error.reason = Reason::NoProgram;
            return Err(error);
        }
        let is_executed = row.handlers == Handlers::Program && !is_hooks;
        if is_executed && rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_err() {
            let file = file.display();
            return Err(fault(format!("handler: {file} cannot be executed; `chmod +x` it")));
        }
        Ok(Declared {
            root,
            file,
            is_hooks,
            settable: self.set.clone(),
            runtime: row.id,
            interpreter: self.interpreter_of(row),
            interface: None,
            function: function.map(str::to_owned),
            variables: self.env.clone(),
            tries,
            terms,
        })
    }

    /// Checks which variables an asker may set.
    fn settable(&self, is_hooks: bool) -> Result<(), String> {
        if !is_hooks && !self.set.is_empty() {
            return Err("set: it is said of a program with hooks only".to_owned());
        }
        let is_pattern = |word: &str| is_name(&word.replace(['*', '?'], "_"));
        match self.set.iter().find(|word| !is_pattern(word)) {
            None => Ok(()),
            Some(word) => {
                Err(format!("set: `{word}` is no variable's name, nor a pattern such as APP_*"))
            }
        }
    }

    /// What other hosts may know of it; `None`: they may not ask it. `root` is its `hob.toml`'s.
    pub(super) fn offer(&self, program: &str, root: &Path) -> Result<Option<Offered>, String> {
        if self.claimed && !self.offered {
            return Err("claimed: it is said of a program with offered = true only".to_owned());
        }
        let partitions = self.partitions().map_err(|what| format!("partitions: {what}"))?;
        let version = match (&self.version, self.offered) {
            (Some(version), _) if is_version(version) => version.clone(),
            (Some(version), _) => {
                return Err(format!("version = \"{version}\": it is three numbers, as 1.2.0"));
            }
            (None, true) => {
                return Err("offered: it needs a version, such as version = \"1.0.0\"".to_owned());
            }
            (None, false) => return Ok(None),
        };
        if self.offered && !is_subject(program) {
            return Err(
                "offered: the name of such a program has letters, digits, `-` and `_` only, \
                        at most 64"
                    .to_owned(),
            );
        }
        if !self.offered {
            return Ok(None);
        }
        let (program, claimed) = (program.to_owned(), self.claimed);
        let hooks = match &self.hooks {
            None => None,
            Some(hooks) => Some(OfferedHooks {
                directory: root.join(hooks).to_string_lossy().into_owned(),
                at_once: self.terms(self.target(&program)?.2)?.workers_max,
            }),
        };
        Ok(Some(Offered { program, version, claimed, partitions, hooks }))
    }

    fn partitions(&self) -> Result<u32, String> {
        match self.partitions {
            None => Ok(0),
            Some(_) if !self.offered => {
                Err("it is said of a program with offered = true only".to_owned())
            }
            Some(_) if self.hooks.is_some() => {
                Err("a hooks directory is not told anything".to_owned())
            }
            Some(number) if (1..=PARTITIONS_MAX).contains(&number) => Ok(number),
            Some(number) => Err(format!("{number}: it is between 1 and {PARTITIONS_MAX}")),
        }
    }

    /// What is said in the place of a handler by a section of a hooks directory; an error where it says
    /// both.
    fn hooks_target<'a>(&self, hooks: &'a str) -> Result<Parts<'a>, String> {
        let others = [
            ("handler", !self.handler.is_empty()),
            ("runtime", self.runtime.is_some()),
            ("interpreter", self.interpreter.is_some()),
            ("isolation", self.isolation.is_some()),
        ];
        if let Some((key, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
            return Err(format!(
                "{key}: what has hooks has none: its hooks are programs themselves"
            ));
        }
        let row = hob_runtimes::rows().find(|row| row.handlers == Handlers::Program);
        Ok((hooks, None, row.ok_or("hooks: nothing hosts them")?))
    }

    /// The interpreter that is named, or that the runtime has usually; empty if it has none.
    pub(super) fn interpreter_of(&self, row: &Runtime) -> String {
        let usual = row.commands.first().map(|name| String::from_utf8_lossy(name).into_owned());
        self.interpreter.clone().or(usual).unwrap_or_default()
    }

    /// The runtime that is named, if one is.
    pub(super) fn named(&self) -> Result<Option<&'static Runtime>, String> {
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
    pub(super) fn target(&self, program: &str) -> Result<Parts<'_>, String> {
        if let Some(hooks) = &self.hooks {
            return self.hooks_target(hooks);
        }
        if self.handler.is_empty() {
            return Err(format!(
                "it needs a handler, as handler = \"{program}.py:handle\", or hooks"
            ));
        }
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

    pub(super) fn terms(&self, row: &Runtime) -> Result<Terms, String> {
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
        // A set that waits here would better run at another host.
        let queue = if self.hooks.is_some() { workers_max } else { QUEUE };
        // Who allows one worker has not asked for two that wait.
        let usual = if name == Name::Fork { 2.min(workers_max) } else { 1 };
        let ahead = self.ahead.unwrap_or(usual);
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
            queue_max: within("queue", self.queue.unwrap_or(queue), QUEUE_MAX)?,
            worker_kib,
            idle_us,
            backoff_max_us: BACKOFF_MAX_US,
            stale: Stale::Ends,
        })
    }
}

/// Three numbers, and what semantic versions may have behind them.
fn is_version(text: &str) -> bool {
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let is_number = |word: &str| {
        let leads = word.len() > 1 && word.starts_with('0');
        !word.is_empty() && !leads && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let words: Vec<&str> = numbers.split('.').collect();
    let has_three = words.len() == 3 && words.into_iter().all(is_number);
    has_three && text.len() <= 64 && rest.bytes().all(is_rest) && rest.len() != 1
}

/// `500ms`, `30s`, `1m30s`, `2h`.
pub(super) fn microseconds(text: &str) -> Option<u64> {
    let length = crate::durations::parse(text).ok()?;
    u64::try_from(length.as_micros()).ok().filter(|us| *us > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_has_a_version_and_a_name_that_fits() {
        let root = Path::new("/srv");
        let of = |offered, version: Option<&str>| Section {
            offered,
            version: version.map(str::to_owned),
            ..Section::default()
        };
        let offer = of(true, Some("1.2.0-rc.1+5")).offer("greeter", root).unwrap().unwrap();
        assert_eq!((offer.program.as_str(), offer.version.as_str()), ("greeter", "1.2.0-rc.1+5"));
        assert_eq!(of(false, Some("1.2.0")).offer("any name", root).unwrap(), None);
        assert!(of(true, None).offer("greeter", root).unwrap_err().contains("version"));
        for wrong in ["1", "1.2", "1.2.x", "01.2.0", "1.2.0-", "1.2.0 ", "v1.2.0", "1.2.0-\n"] {
            assert!(of(true, Some(wrong)).offer("greeter", root).is_err(), "{wrong}");
        }
        for wrong in ["a b", "a.b", "a>", "*", "", "\u{e9}"] {
            assert!(of(true, Some("1.0.0")).offer(wrong, root).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_told_by_key_has_partitions_of_what_is_offered() {
        let of = |offered, partitions| Section {
            offered,
            version: Some("1.0.0".to_owned()),
            partitions: Some(partitions),
            ..Section::default()
        };
        let offer = |section: Section| section.offer("greeter", Path::new("/srv"));
        for number in [1, 256] {
            assert_eq!(offer(of(true, number)).unwrap().unwrap().partitions, number);
        }
        let hooks = Section { hooks: Some("deploy.d".to_owned()), ..of(true, 4) };
        for wrong in [of(true, 0), of(true, 257), of(false, 4), hooks] {
            assert!(offer(wrong).unwrap_err().starts_with("partitions: "));
        }
    }

    #[test]
    fn a_hooks_directory_is_offered_with_its_path_and_how_many_run_at_once() {
        let hooks = Section {
            hooks: Some("deploy.d".to_owned()),
            offered: true,
            version: Some("1.0.0".to_owned()),
            workers: Some(3),
            ..Section::default()
        };
        let offer = hooks.offer("deploy", Path::new("/srv")).unwrap().unwrap();
        let directory = "/srv/deploy.d".to_owned();
        assert_eq!(offer.hooks, Some(OfferedHooks { directory, at_once: 3 }));
        let (_, _, row) = hooks.target("deploy").unwrap();
        assert_eq!(hooks.terms(row).unwrap().queue_max, 3);
        let set = |words: &[&str], is_hooks| {
            let set = words.iter().map(|word| (*word).to_owned()).collect();
            Section { set, ..hooks.clone() }.settable(is_hooks)
        };
        set(&["HOST", "APP_*", "?", "*"], true).unwrap();
        assert!(set(&["HOST"], false).unwrap_err().contains("with hooks only"));
        for wrong in ["", "A B", "A=1", "-x", "1A"] {
            assert!(set(&[wrong], true).is_err(), "{wrong}");
        }
        let both = Section { handler: "a.py:f".to_owned(), ..hooks.clone() };
        assert!(both.target("deploy").unwrap_err().contains("handler"));
        let forked = Section { isolation: Some("fork".to_owned()), ..hooks };
        assert!(forked.target("deploy").unwrap_err().contains("isolation"));
        assert!(Section::default().target("deploy").unwrap_err().contains("or hooks"));
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
