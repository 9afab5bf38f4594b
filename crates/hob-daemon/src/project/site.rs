//! The site of `hob serve`: what is served at which prefix, as a `hob.toml` says it, or as a
//! directory shows it.
//!
//! ```toml
//! [serve]
//! listen = "127.0.0.1:8000"
//! trusted_proxies = ["10.0.0.0/8", "::1"]
//! control = "127.0.0.1:9100"      # metrics and health for whoever reaches it; usually none
//! log = "combined"               # or json, none, or a file as access.ndjson
//! timeouts = { head = "10s", body = "30s", write = "30s", ping = "30s" }
//!
//! [mount."/shop"]
//! rack = "config.ru"              # or another interface of the table of runtimes, or static
//! isolation = "fork"              # spawn | standby | fork | prefork | session
//! workers = { min = 1, max = 4 }
//! recycle = { requests = 150, memory = "200MiB" }
//! limits = { body = "50MiB" }
//! timeout = "30s"
//! stale = "wait"                 # or serve: the old code answers until the new is ready
//!
//! [mount."/"]
//! static = "public"
//! fallback = "index.html"
//!
//! [mount."/git"]
//! git = "/srv/git"                # see `git`
//! ```
//! Invariants: an unknown key is an error; a site that cannot be served whole is not served at all;
//! no interface is named here but by the table of runtimes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hob_core::http::forwarded::Proxies;
use hob_core::http::limits::Limits;
use hob_core::http::mounts;
use hob_core::isolation::{Name, Uses};
use hob_core::terms::Stale;
use hob_runtimes::{App, Runtime};
use serde::Deserialize;

use super::git::{self, Git};
use super::rights::{self, Rights};
use super::section::{Section, is_name, microseconds};
use super::{Declared, ProjectError, one_line};
use crate::trust::{self, Trusted};

/// Where a site listens that does not say.
const LISTEN: &str = "127.0.0.1:8000";
/// How long an app has for a request that does not say.
const TIMEOUT_US: u64 = 30_000_000;
/// The folder of files that a directory shows without a word.
const PUBLIC: &str = "public";
/// Requests that a worker may have at one time.
const CONCURRENCY_MAX: u32 = 1000;

/// Where the access log goes, and how it looks there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum Log {
    /// The combined format, on standard output.
    #[default]
    Combined,
    /// A JSON object a line, on standard output.
    Json,
    /// The same in this file, which is of the site's directory if it is relative.
    File(PathBuf),
    /// No log.
    None,
}

impl TryFrom<String> for Log {
    type Error = String;

    fn try_from(word: String) -> Result<Log, String> {
        match word.as_str() {
            "combined" => Ok(Log::Combined),
            "json" => Ok(Log::Json),
            "none" => Ok(Log::None),
            // A word that was mistyped is to be no file.
            file if file.contains(['/', '.']) => Ok(Log::File(PathBuf::from(file))),
            other => Err(format!(
                "log = \"{other}\": it is combined, json, none, or a file, as access.ndjson or \
                 ./access"
            )),
        }
    }
}

/// What is served.
#[derive(Debug)]
pub struct Site {
    /// Where it listens: addresses and ports, and unix sockets as `unix:PATH`, `unix:@NAME`.
    pub listen: Vec<String>,
    /// The rights of those sockets' files; `None`: as the umask says.
    pub socket_mode: Option<u32>,
    /// The mounts, by their paths.
    pub mounts: BTreeMap<String, Mount>,
    /// The rights of those that have some.
    pub rights: BTreeMap<String, Rights>,
    /// The networks of the proxies that are believed.
    pub proxies: Proxies,
    /// Where its access log goes.
    pub log: Log,
    /// An address at which anybody may ask how the site is, if it is to have one.
    pub control: Option<String>,
    /// How long a request's head may take, in microseconds; `None`: as usual.
    pub head_us: Option<u64>,
    /// How long a body that is not whole may send nothing, in microseconds; `None`: as usual.
    pub body_gap_us: Option<u64>,
    /// How long a client may take nothing of its answer, in microseconds; `None`: as usual.
    pub write_gap_us: Option<u64>,
    /// How long a WebSocket's client may say nothing until it is pinged, in microseconds; `None`: as
    /// usual.
    pub ping_us: Option<u64>,
}

/// What is served at one prefix.
#[derive(Debug, Clone)]
pub enum Mount {
    /// An app.
    App(Box<Served>),
    /// Files.
    Static {
        /// The folder, absolute.
        root: PathBuf,
        /// The file in it that answers for what is not there.
        fallback: Option<String>,
        /// What caches are told of its files.
        cache_control: Option<String>,
        /// The names with a dot at their begin that are served; all others are not.
        dot_files: Vec<String>,
    },
    /// Files of revisions of repositories.
    Git(Box<Git>),
}

impl Mount {
    /// The most bytes of a request's body; files and repositories take none.
    #[must_use]
    pub fn body_bytes(&self) -> Option<u64> {
        match self {
            Mount::App(served) => Some(served.body_bytes),
            Mount::Static { .. } | Mount::Git(_) => None,
        }
    }

    /// What is served, for a person; files relative to `root`.
    pub(super) fn shown(&self, root: &Path) -> String {
        let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
        match self {
            Mount::Static { root, .. } => format!("static {}", relative(root)),
            Mount::Git(git) => format!("git {}", relative(&git.root)),
            Mount::App(served) => {
                let function = served.app.function.as_deref();
                let function = function.map_or_else(String::new, |name| format!(":{name}"));
                let interface = served.app.interface.unwrap_or_default();
                format!("{interface} {}{function}", relative(&served.app.file))
            }
        }
    }
}

/// An app, and what the front has to know of it.
#[derive(Debug, Clone)]
pub struct Served {
    /// What its workers load, and how.
    pub app: Declared,
    /// From a request's arrival to its answer, in microseconds.
    pub timeout_us: u64,
    /// The most bytes of a request's body.
    pub body_bytes: u64,
    /// The most bytes of a message that comes on a WebSocket; `None`: it takes no WebSockets.
    pub message_bytes: Option<u64>,
    /// The most bytes of an answer in pieces that wait for their client.
    pub answer_bytes: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    serve: Serve,
    #[serde(default)]
    mount: BTreeMap<String, Table>,
    #[serde(default)]
    program: toml::Table,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serve {
    listen: Option<Places>,
    socket_mode: Option<String>,
    #[serde(default)]
    trusted_proxies: Vec<String>,
    control: Option<String>,
    #[serde(default)]
    log: Log,
    #[serde(default)]
    timeouts: Timeouts,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Places {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timeouts {
    head: Option<String>,
    body: Option<String>,
    write: Option<String>,
    ping: Option<String>,
}

impl Timeouts {
    fn time(name: &str, text: Option<&String>) -> Result<Option<u64>, String> {
        let Some(text) = text else { return Ok(None) };
        microseconds(text).map(Some).ok_or_else(|| {
            format!("[serve]: timeouts.{name} = \"{text}\": it is a time such as 500ms or 30s")
        })
    }
}

#[derive(Debug, Default, Deserialize)]
struct Table {
    isolation: Option<String>,
    workers: Option<Workers>,
    #[serde(default)]
    recycle: Recycle,
    queue: Option<u32>,
    #[serde(default)]
    limits: Bounds,
    timeout: Option<String>,
    concurrency: Option<u32>,
    stale: Option<String>,
    idle: Option<String>,
    interpreter: Option<String>,
    #[serde(default)]
    env: Vec<String>,
    fallback: Option<String>,
    cache_control: Option<String>,
    #[serde(default)]
    dot_files: Vec<String>,
    rights: Option<rights::Keys>,
    #[serde(flatten)]
    git: git::Keys,
    /// The interface and its file, or `static`; anything else is a mistake.
    #[serde(flatten)]
    others: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
enum Workers {
    Most(u32),
    Bounds { min: Option<u32>, max: Option<u32> },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recycle {
    requests: Option<u32>,
    memory: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    body: Option<String>,
    message: Option<String>,
    answer: Option<String>,
}

/// Reads the site of a directory's `hob.toml`, which has to be trusted.
///
/// # Errors
/// Why it cannot be served, in a line for a person.
pub fn configured(state_dir: Option<&Path>, dir: &Path) -> Result<Site, ProjectError> {
    let path = dir.join(trust::FILE);
    match trust::trusted(state_dir, dir) {
        Trusted::NoFile => Err(ProjectError::config(&path, "there is none")),
        Trusted::Yes(bytes) => read(dir, &bytes),
        Trusted::No => Err(super::untrusted(&path, "is not trusted")),
        Trusted::Changed => Err(super::untrusted(&path, "was edited since it was trusted")),
    }
}

/// Whether a directory's `hob.toml` has a mount; one that cannot be read may have.
#[must_use]
pub fn is_configured(dir: &Path) -> bool {
    let Ok(text) = hob_os::look::text(&dir.join(trust::FILE)) else { return false };
    match text.parse::<toml::Table>() {
        Ok(file) => file.contains_key("mount") || file.contains_key("serve"),
        Err(_) => true,
    }
}

/// The site that a directory shows by its files: the first app that the table of runtimes knows,
/// and the folder `public`.
///
/// # Errors
/// That there is nothing to serve, and what would be.
pub fn shown(dir: &Path) -> Result<Site, ProjectError> {
    let root = std::fs::canonicalize(dir)
        .map_err(|_| ProjectError::config(dir, "there is no such directory; name one to serve"))?;
    let mut mounts = BTreeMap::new();
    let app = hob_runtimes::apps().find(|(_, app)| root.join(app.file).is_file());
    let is_public = root.join(PUBLIC).is_dir();
    if let Some((row, app)) = app {
        let served = Table::default().app(&root, row, app, app.file);
        let served = served.map_err(|what| ProjectError::config(dir, what))?;
        mounts.insert("/".to_owned(), Mount::App(Box::new(served)));
    }
    if is_public {
        let path = if mounts.is_empty() { "/" } else { "/public" };
        let (root, dot_files) = (root.join(PUBLIC), Vec::new());
        let files = Mount::Static { root, fallback: None, cache_control: None, dot_files };
        mounts.insert(path.to_owned(), files);
    }
    if mounts.is_empty() {
        let names: Vec<&str> = hob_runtimes::apps().map(|(_, app)| app.file).collect();
        let what = format!(
            "nothing to serve: no {} and no folder `{PUBLIC}`; or name mounts in {}",
            names.join(", "),
            trust::FILE
        );
        return Err(ProjectError::config(dir, what));
    }
    let (listen, proxies) = (vec![LISTEN.to_owned()], Proxies::default());
    Ok(Site {
        listen,
        socket_mode: None,
        mounts,
        rights: BTreeMap::new(),
        proxies,
        log: Log::default(),
        control: None,
        head_us: None,
        body_gap_us: None,
        write_gap_us: None,
        ping_us: None,
    })
}

pub(super) fn read(dir: &Path, bytes: &[u8]) -> Result<Site, ProjectError> {
    let path = dir.join(trust::FILE);
    let fault = |what: String| ProjectError::config(&path, what);
    let text = std::str::from_utf8(bytes).map_err(|_| fault("is not UTF-8".to_owned()))?;
    let file: File = toml::from_str(text).map_err(|error| fault(one_line(&error, text)))?;
    let root = std::fs::canonicalize(dir).map_err(|error| fault(error.to_string()))?;
    if file.mount.is_empty() {
        return Err(fault("has no mount; add one, as `[mount.\"/\"]`".to_owned()));
    }
    let proxies = Proxies::read(&file.serve.trusted_proxies)
        .map_err(|what| fault(format!("[serve]: trusted_proxies: {what}")))?;
    let has_proxies = !file.serve.trusted_proxies.is_empty();
    let (mut served, mut rights) = (BTreeMap::new(), BTreeMap::new());
    for (at, mut table) in file.mount {
        if let Some(keys) = table.rights.take() {
            let of = keys.rights(&file.program, has_proxies);
            let of = of.map_err(|what| fault(format!("[mount.\"{at}\"]: {what}")))?;
            rights.insert(at.clone(), of);
        }
        let mount = mounts::check_path(&at).and_then(|()| table.mount(&root));
        let mount = mount.map_err(|what| fault(format!("[mount.\"{at}\"]: {what}")))?;
        served.insert(at, mount);
    }
    let listen = match file.serve.listen {
        None => vec![LISTEN.to_owned()],
        Some(Places::One(one)) => vec![one],
        Some(Places::Several(several)) if several.is_empty() => {
            return Err(fault(
                "[serve]: listen: it names no place; take it out, or name one".into(),
            ));
        }
        Some(Places::Several(several)) => several,
    };
    let mode = |text: &String| {
        u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777).ok_or_else(|| {
            fault(format!("[serve]: socket_mode = \"{text}\": it is rights such as \"660\""))
        })
    };
    let socket_mode = file.serve.socket_mode.as_ref().map(mode).transpose()?;
    let head_us = Timeouts::time("head", file.serve.timeouts.head.as_ref()).map_err(fault)?;
    let body_gap_us = Timeouts::time("body", file.serve.timeouts.body.as_ref()).map_err(fault)?;
    let ping_us = Timeouts::time("ping", file.serve.timeouts.ping.as_ref()).map_err(fault)?;
    let write_gap_us =
        Timeouts::time("write", file.serve.timeouts.write.as_ref()).map_err(fault)?;
    let control = file.serve.control;
    Ok(Site {
        listen,
        socket_mode,
        mounts: served,
        rights,
        proxies,
        log: file.serve.log,
        control,
        head_us,
        body_gap_us,
        write_gap_us,
        ping_us,
    })
}

/// The words that a mount may have besides those of [`Table`].
fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = hob_runtimes::apps().map(|(_, app)| app.interface).collect();
    kinds.extend(["static", "git"]);
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

impl Table {
    fn mount(mut self, root: &Path) -> Result<Mount, String> {
        let others = std::mem::take(&mut self.others);
        let mut kind = None;
        for (key, value) in others {
            if !kinds().contains(&key.as_str()) {
                return Err(format!(
                    "unknown key `{key}`; it serves one of {}",
                    kinds().join(", ")
                ));
            }
            let toml::Value::String(what) = value else {
                return Err(format!("{key}: it is the name of a file or folder"));
            };
            if kind.replace((key, what)).is_some() {
                return Err("it serves two things; a mount serves one".to_owned());
            }
        }
        let (key, what) =
            kind.ok_or_else(|| format!("it serves nothing; add one of {}", kinds().join(", ")))?;
        if key == "git" {
            return self.git(root, &what);
        }
        if self.git.are_there() {
            return Err("refs, oids, jobs, cache_mb, blob_mb, owners: only git has them".to_owned());
        }
        if key == "static" {
            return self.files(root, &what);
        }
        if self.is_for_files() {
            return Err(
                "fallback, cache_control, dot_files: only static files have them".to_owned()
            );
        }
        let found = hob_runtimes::apps().find(|(_, app)| app.interface == key);
        let (row, app) = found.ok_or("nothing hosts it")?;
        self.app(root, row, app, &what).map(|served| Mount::App(Box::new(served)))
    }

    /// Whether it has keys of apps.
    fn is_for_apps(&self) -> bool {
        self.isolation.is_some()
            || self.workers.is_some()
            || self.recycle.requests.is_some()
            || self.recycle.memory.is_some()
            || self.limits.body.is_some()
            || self.limits.message.is_some()
            || self.limits.answer.is_some()
            || self.timeout.is_some()
            || self.concurrency.is_some()
            || self.stale.is_some()
            || self.idle.is_some()
            || self.interpreter.is_some()
            || !self.env.is_empty()
    }

    /// Whether it has keys of static files.
    fn is_for_files(&self) -> bool {
        self.fallback.is_some() || self.cache_control.is_some() || !self.dot_files.is_empty()
    }

    fn git(self, root: &Path, folder: &str) -> Result<Mount, String> {
        if self.is_for_apps() || self.is_for_files() {
            let keys = "`refs`, `oids`, `jobs`, `queue`, `cache_mb`, `blob_mb` and `owners`";
            return Err(format!("git takes {keys}; other keys are for apps or static files"));
        }
        let git = self.git.git(root.join(folder), self.queue)?;
        Ok(Mount::Git(Box::new(git)))
    }

    fn files(self, root: &Path, folder: &str) -> Result<Mount, String> {
        let folder = root.join(folder);
        if !folder.is_dir() {
            return Err(format!("static: {} is no folder", folder.display()));
        }
        if self.is_for_apps() || self.queue.is_some() {
            let keys = "`fallback`, `cache_control` and `dot_files`; other keys are for apps";
            return Err(format!("static files take {keys}"));
        }
        if let Some(name) = &self.fallback
            && !folder.join(name).is_file()
        {
            return Err(format!("fallback: {} is not there", folder.join(name).display()));
        }
        if let Some(value) = &self.cache_control
            && !value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        {
            return Err(
                "cache_control: it is what a header may hold, as \"max-age=3600\"".to_owned()
            );
        }
        if let Some(wrong) = self.dot_files.iter().find(|name| !is_dot_file(name)) {
            let wrong = wrong.escape_debug();
            return Err(format!("dot_files: `{wrong}` is no name like \".well-known\""));
        }
        let hidden = self.fallback.iter().flat_map(|name| name.split('/'));
        let mut hidden = hidden.filter(|part| is_dot_file(part));
        if let Some(part) = hidden.find(|part| !self.dot_files.iter().any(|name| name == part)) {
            return Err(format!("fallback: `{part}` is not served; name it in `dot_files`"));
        }
        let Table { fallback, cache_control, dot_files, .. } = self;
        Ok(Mount::Static { root: folder, fallback, cache_control, dot_files })
    }

    fn app(
        self,
        root: &Path,
        row: &'static Runtime,
        app: &'static App,
        what: &str,
    ) -> Result<Served, String> {
        let interface = app.interface;
        let (file, callable) = match what.rsplit_once(':') {
            Some((file, callable)) if !app.callables.is_empty() => (file, Some(callable)),
            Some(_) | None => (what, None),
        };
        let file = root.join(file);
        if !file.is_file() {
            return Err(format!("{interface}: {} is not there", file.display()));
        }
        let file = std::fs::canonicalize(&file).map_err(|error| error.to_string())?;
        let function = match callable {
            Some(name) if is_name(name) => Some(name.to_owned()),
            Some(name) => return Err(format!("{interface}: `{name}` is not a name")),
            None => defined(&file, app.callables).map(str::to_owned),
        };
        let timeout_us = match &self.timeout {
            None => TIMEOUT_US,
            Some(text) => microseconds(text).ok_or_else(|| {
                format!("timeout = \"{text}\": it is a time such as 500ms or 30s")
            })?,
        };
        let size = |key: &str, text: &String| {
            bytes(text).ok_or_else(|| {
                format!("limits.{key} = \"{text}\": it is a size such as 512KiB or 50MiB")
            })
        };
        let usual = Limits::default();
        let body = self.limits.body.as_ref().map(|text| size("body", text)).transpose()?;
        let body_bytes = body.unwrap_or(usual.body_bytes);
        let answer = self.limits.answer.as_ref().map(|text| size("answer", text)).transpose()?;
        let answer_bytes = answer.unwrap_or(usual.answer_bytes);
        let message_bytes = match &self.limits.message {
            None => app.websocket.then_some(usual.message_bytes),
            Some(_) if !app.websocket => {
                return Err(format!("limits.message: {interface} takes no WebSockets"));
            }
            Some(text) => Some(size("message", text)?),
        };
        let usual = row.commands.first().map(|name| String::from_utf8_lossy(name).into_owned());
        let stale = stale(self.stale.as_deref())?;
        let concurrency = self.concurrency;
        let section = self.section()?;
        let mut terms = section.app_terms(row)?;
        terms.stale = stale;
        if let Some(concurrency) = concurrency {
            terms.slots = slots(concurrency, app, terms.recipe.uses)?;
        }
        let root = file.parent().unwrap_or(root).to_path_buf();
        let declared = Declared {
            is_hooks: false,
            settable: Vec::new(),
            root,
            file,
            runtime: row.id,
            interpreter: section.interpreter.or(usual).unwrap_or_default(),
            interface: Some(interface),
            function,
            variables: section.env,
            tries: 1,
            terms,
        };
        Ok(Served { app: declared, timeout_us, body_bytes, message_bytes, answer_bytes })
    }

    /// The same as a program's section says it.
    fn section(self) -> Result<Section, String> {
        let (ahead, workers) = match self.workers {
            None => (None, None),
            Some(Workers::Most(max)) => (None, Some(max)),
            Some(Workers::Bounds { min, max }) => (min, max),
        };
        let memory_mb = match &self.recycle.memory {
            None => None,
            Some(text) => Some(mebibytes(text).ok_or_else(|| {
                format!("recycle.memory = \"{text}\": it is a size such as 200MiB or 1GiB")
            })?),
        };
        Ok(Section {
            isolation: self.isolation,
            workers,
            ahead,
            uses: self.recycle.requests,
            memory_mb,
            queue: self.queue,
            idle: self.idle,
            interpreter: self.interpreter,
            env: self.env,
            ..Section::default()
        })
    }
}

impl Section {
    /// The terms of an app: a handler's, and the two kinds of isolation that need no fork.
    fn app_terms(&self, row: &Runtime) -> Result<super::Terms, String> {
        let exec = self.isolation.as_deref().and_then(Name::from_code);
        if let (Some(word), None) = (&self.isolation, exec) {
            let all = Name::ALL.map(Name::code).join(", ");
            return Err(format!("isolation = \"{word}\": it is one of {all}"));
        }
        let Some(name @ (Name::Spawn | Name::Standby)) = exec else { return self.terms(row) };
        if self.uses.is_some() {
            return Err(format!(
                "recycle.requests: with {} each request has a process of its own",
                name.code()
            ));
        }
        let as_fork = Section { isolation: Some(Name::Fork.code().to_owned()), ..self.clone() };
        let mut terms = as_fork.terms(row)?;
        terms.recipe = name.lower(terms.recipe.ahead);
        Ok(terms)
    }
}

/// The first of the names that a file seems to define at its top level, or else the first.
fn defined(file: &Path, names: &[&'static str]) -> Option<&'static str> {
    let text = hob_os::look::text(file).unwrap_or_default();
    let is_defined = |name: &&&str| {
        text.lines().any(|line| {
            let line = line.strip_prefix("async ").unwrap_or(line);
            let line = line.strip_prefix("def ").or(line.strip_prefix("class ")).unwrap_or(line);
            line.strip_prefix(**name).is_some_and(|rest| {
                rest.trim_start().starts_with(['=', '(', ':'])
                    && !rest.trim_start().starts_with("==")
            })
        })
    };
    names.iter().find(is_defined).or(names.first()).copied()
}

/// How many requests a worker has at one time.
fn slots(concurrency: u32, app: &App, uses: Uses) -> Result<u32, String> {
    if !app.concurrent {
        return Err(format!("concurrency: {} has one request at a time", app.interface));
    }
    if uses == Uses::Once {
        return Err("concurrency: only prefork and session have workers that go on".to_owned());
    }
    if !(1..=CONCURRENCY_MAX).contains(&concurrency) {
        return Err(format!("concurrency = {concurrency}: it is between 1 and {CONCURRENCY_MAX}"));
    }
    Ok(concurrency)
}

/// What becomes of an app's code that was edited, until the new is ready.
fn stale(word: Option<&str>) -> Result<Stale, String> {
    match word {
        None | Some("wait") => Ok(Stale::Waits),
        Some("serve") => Ok(Stale::Serves),
        Some(other) => Err(format!("stale = \"{other}\": it is wait or serve")),
    }
}

/// Whether it is one name with a dot at its begin, as `.well-known`.
fn is_dot_file(name: &str) -> bool {
    name.strip_prefix('.').is_some_and(|rest| !rest.is_empty() && rest != ".")
        && !name.contains(['/', '\0'])
}

/// `200MiB`, `1GiB`, in mebibytes.
fn mebibytes(text: &str) -> Option<u64> {
    bytes(text).filter(|bytes| bytes.is_multiple_of(1 << 20)).map(|bytes| bytes >> 20)
}

/// `512KiB`, `50MiB`, `1GiB`; `None`: it is no size, or nothing.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|each: char| !each.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit: u64 = match &text[digits..] {
        "KiB" | "KB" => 1 << 10,
        "MiB" | "MB" => 1 << 20,
        "GiB" | "GB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).filter(|size| *size > 0)
}
