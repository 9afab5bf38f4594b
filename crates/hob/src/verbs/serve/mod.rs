//! `hob serve`: a site in a process of its own, which runs the daemon's loop for its apps and the
//! HTTP front before it; `status`, `reload` and `stop` of sites that run.
//!
//! A site has a directory of its own below the daemon's, `serve/PORT`, with a socket that only its
//! user reaches. What asks a daemon asks a site in the same way.

pub(crate) mod access;
mod front;
mod places;
mod reload;
pub(crate) mod rights;
pub(crate) mod sites;
mod systemd;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use hob_core::http::limits::Limits;
use hob_core::terms::Affinity;
use hob_daemon::Config;
use hob_daemon::config::{Prints, StartAs, Tells};
use hob_daemon::project::git::Git;
use hob_daemon::project::site::{self, Mount, Site};
use hob_http::Pattern;
use hob_os::process::inherited::inherit_none_from;
use hob_os::start::Start;
use hob_os::{build_id, clock, signals};
use hob_wire::message::Attach;
use serde_json::{Value, json};

use super::daemon::{FIRST_INHERITED, SIGPIPE, SIGXFSZ, push};
use super::request::{self, ANSWER_MS};
use super::trust;
use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::show::style::Look;
use crate::show::text::printable;
use crate::{connect, fallback, say};

use places::Places;
use sites::Directory;

/// What a loop is asked for how it is.
const ASKED: &str = "{\"verb\":\"status\"}";
/// How long the loop may take until it can be asked.
const START_NS: u64 = 10_000_000_000;
/// The longest target where files of many projects may be asked for.
const TARGET_BYTES_OF_LISTS: u64 = 64 << 10;
const LOOK: Duration = Duration::from_millis(5);
/// Leaving peers and file size limits end no server; their errors tell.
const IGNORED: [i32; 2] = [SIGPIPE, SIGXFSZ];

/// What to serve.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
A directory with a trusted hob.toml that has [mount.\"/path\"] tables is served as
they say. Any other is served by what it shows: the first of config.ru, asgi.py,
wsgi.py and app.py at /, and the folder public. Of a hob.toml with two mounts:

  [mount.\"/shop\"]
  wsgi = \"shop/app.py\"

  [mount.\"/\"]
  static = \"public\"")]
pub(crate) struct Serve {
    /// The directory [default: this one]
    dir: Option<PathBuf>,
    /// The hob.toml to serve, instead of a directory
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    config: Option<PathBuf>,
    /// Where to listen, as 127.0.0.1:8000, just a port (0: any that is free), or unix:PATH; may
    /// be given more than once
    #[arg(long, value_name = "PLACE")]
    listen: Vec<String>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Forget who may do what at sites that run, so that it is asked for again
    #[command(subcommand)]
    Rights(rights::Rights),
    /// Show the sites that run: mounts, workers, requests, memory
    Status {
        #[command(flatten)]
        format: Format,
        /// Show the bounds of a request instead
        #[arg(long)]
        limits: bool,
    },
    /// Load the code of apps anew; the old answers until the new is ready
    Reload {
        /// The app's path, as /shop; without one, all apps
        mount: Option<String>,
        /// The site's port, or the path of its unix socket; without one, all sites
        #[arg(long)]
        site: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Stop a site once what it answers has ended
    Stop {
        /// Its port, or the path of its unix socket; without one, all sites
        site: Option<String>,
    },
}

/// Runs the verb.
pub(crate) fn run(start: &Start, asked: Serve) -> Result<(), Failure> {
    match asked.verb {
        Some(Verb::Rights(asked)) => rights::run(start, &asked),
        Some(Verb::Status { format, limits: true }) => show_limits(format),
        Some(Verb::Status { format, limits: false }) => sites::status(start, format),
        Some(Verb::Reload { mount, site, format }) => {
            let sites = sites::meant(start, site.as_deref())?;
            reload::reload(&sites, mount.as_deref(), format)
        }
        Some(Verb::Stop { site }) => sites::stop(start, site.as_deref()),
        None => {
            let named = asked.config.or(asked.dir).unwrap_or_else(|| PathBuf::from("."));
            serve(start, trust::directory_of(named)?, &asked.listen)
        }
    }
}

fn serve(start: &Start, dir: PathBuf, listen: &[String]) -> Result<(), Failure> {
    IGNORED.into_iter().for_each(signals::ignore);
    inherit_none_from(FIRST_INHERITED);
    let site = if site::is_configured(&dir) {
        site::configured(fallback::state_dir().as_deref(), &dir)
    } else {
        site::shown(&dir)
    };
    let site = site.map_err(|error| Failure::new(error.to_string()))?;
    // What cannot be served is told before anything begins.
    let (mounts, rights) =
        (fronted_all(site.mounts.clone())?, rights::fronted(site.rights.clone())?);
    let root = std::fs::canonicalize(&dir).map_err(|error| Failure::new(error.to_string()))?;
    let places = opened(start, &site, &root, listen)?;
    let place = Directory::make(start, &places.name)?;
    let directory = place.0.clone();
    let control = front::open(&directory, site.control.as_deref())?;
    let looped = start_loop(start, &directory, &site)?;
    let mut said = said(&site, &places.names);
    let attach = Attach {
        directory: root.as_os_str().as_bytes().to_vec(),
        env: systemd::without_ours(start),
    };
    let socket = directory.join("socket");
    let limits = limits_of(&site);
    if let Some(Ok(address)) = control.address.as_ref().map(TcpListener::local_addr) {
        said.push_str(&format!("  control at http://{address}/\n"));
    }
    let front = hob_http::Site {
        mounts,
        rights,
        socket: &socket,
        build: build_id::own(),
        attach,
        limits,
        log: logs(&site.log, &root),
        proxies: site.proxies,
        listens: places.names.clone(),
        control,
    };
    let notified = systemd::Notified::of(start);
    let asked = directory.clone();
    systemd::watch(start, move || front::is_alive(&asked));
    // Whoever reads it may send a signal at once. One that cannot be told is still served.
    let ready = || {
        let _ = out(&said);
        if let Some(notified) = &notified {
            notified.is_ready(&places.names.join(", "));
        }
    };
    let stops = || notified.iter().for_each(systemd::Notified::stops);
    let hangup = reload::Hangup::new(start, directory.clone(), places.names.join(", "));
    let served = hob_http::run(places.listeners, front, ready, stops, move || hangup.heard());
    // It has stopped already where a signal came, or `hob serve stop`.
    let _ = request::send_to(&directory, "{\"verb\":\"stop\"}", ANSWER_MS);
    let ended = looped.join();
    drop(place);
    served.map_err(|error| Failure::new(format!("cannot serve: {error}")))?;
    match ended {
        Ok(Ok(())) => {
            // Not to standard output, which may be a log that nobody reads any more.
            say::line(b"the site has stopped");
            Ok(())
        }
        Ok(Err(error)) => Err(Failure::new(error.to_string())),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Where the access log goes. Without a place to keep it, it is not kept, which is said.
fn logs(log: &site::Log, root: &Path) -> hob_http::Logs {
    let (stdout, own) = match log {
        site::Log::None => return hob_http::Logs::default(),
        site::Log::Combined => (Some(hob_http::Format::Combined), None),
        site::Log::Json => (Some(hob_http::Format::Json), None),
        site::Log::File(file) => (None, Some(root.join(file))),
    };
    let file = access::place(root, own.as_deref());
    let file = file.inspect_err(|why| {
        say::line(format!("the access log is not kept for `hob log --http`: {why}").as_bytes());
    });
    hob_http::Logs { stdout, file: file.ok() }
}

/// The places where it is to listen: what systemd has passed, else what the command says, else what
/// its site says.
fn opened(start: &Start, site: &Site, root: &Path, listen: &[String]) -> Result<Places, Failure> {
    let passed = systemd::listeners(start)?;
    if !passed.is_empty() {
        Places::passed(passed)
    } else if listen.is_empty() {
        Places::open(&site.listen, root, site.socket_mode)
    } else {
        let here = std::env::current_dir().map_err(|error| Failure::new(error.to_string()))?;
        Places::open(listen, &here, site.socket_mode)
    }
}

/// The bounds of what is read before a request's mount is known.
fn limits_of(site: &Site) -> Limits {
    let mut limits = Limits::default();
    // What is read of a connection knows no mount: each has its own bound behind this one.
    limits.body_bytes =
        site.mounts.values().filter_map(Mount::body_bytes).max().unwrap_or(limits.body_bytes);
    if site.mounts.values().any(|mount| matches!(mount, Mount::Git(_))) {
        // A request may name a thousand projects.
        limits.target_bytes = limits.target_bytes.max(TARGET_BYTES_OF_LISTS);
    }
    limits.head_ms = site.head_us.map_or(limits.head_ms, |time| time.div_ceil(1000));
    limits.body_gap_ms = site.body_gap_us.map_or(limits.body_gap_ms, |time| time.div_ceil(1000));
    limits.ping_ms = site.ping_us.map_or(limits.ping_ms, |time| time.div_ceil(1000));
    limits.write_gap_ms = site.write_gap_us.map_or(limits.write_gap_ms, |time| time.div_ceil(1000));
    limits
}

fn fronted_all(
    mounts: BTreeMap<String, Mount>,
) -> Result<BTreeMap<String, hob_http::Mount>, Failure> {
    let fronted = mounts.into_iter().map(|(path, mount)| match fronted(mount) {
        Ok(mount) => Ok((path, mount)),
        Err(what) => Err(Failure::new(format!("[mount.\"{path}\"]: {what}"))),
    });
    fronted.collect()
}

fn fronted(mount: Mount) -> Result<hob_http::Mount, String> {
    Ok(match mount {
        Mount::App(served) => {
            let (timeout_us, body_bytes) = (served.timeout_us, served.body_bytes);
            let terms = served.app.terms;
            let shared = terms.may_be_lent().then_some((terms.workers_max, terms.queue_max));
            let by_client = terms.affinity == Affinity::Session;
            hob_http::Mount::App {
                timeout_us,
                body_bytes,
                message_bytes: served.message_bytes,
                answer_bytes: served.answer_bytes,
                shared,
                by_client,
            }
        }
        Mount::Static { root, fallback, cache_control, dot_files } => {
            hob_http::Mount::Static { root, fallback, cache_control, dot_files }
        }
        Mount::Git(git) => {
            let Git { root, refs, oids, jobs, queue, cache_bytes, blob_bytes, owners } = *git;
            let patterns = |refs: Vec<String>| refs.iter().map(|each| Pattern::new(each)).collect();
            let refs = refs.map(patterns).transpose();
            let refs = refs.map_err(|what: String| format!("refs: {what}"))?;
            let terms = hob_http::Terms { refs, oids, owners, blob_bytes, cache_bytes };
            let (jobs, queue) = (jobs as usize, queue as usize);
            hob_http::Mount::Git { root, terms, jobs, queue }
        }
    })
}

type Looped = std::thread::JoinHandle<Result<(), hob_daemon::DaemonError>>;

/// Starts the loop in a thread, and waits until it can be asked.
fn start_loop(start: &Start, directory: &Path, site: &Site) -> Result<Looped, Failure> {
    let variable = |name: &str| {
        start.variable(name.as_bytes()).map(|value| std::ffi::OsStr::from_bytes(value).to_owned())
    };
    let mut config = Config::from_variables(directory.to_path_buf(), StartAs::Only, variable);
    config.limits.idle_exit_us = u64::MAX;
    config.prints = Prints::Stderr;
    config.tells = Tells::OfDaemon;
    config.push = Some(push::open);
    for (path, mount) in &site.mounts {
        if let Mount::App(served) = mount {
            config.mounts.insert(path.clone(), served.app.clone());
        }
    }
    let looped = std::thread::Builder::new()
        .name("hob-loop".to_owned())
        .spawn(move || hob_daemon::run(config))
        .map_err(|error| Failure::new(format!("cannot start the loop: {error}")))?;
    let until_ns = clock::now_ns() + START_NS;
    while connect::connect(directory).is_err() {
        if looped.is_finished() || clock::now_ns() > until_ns {
            let text = match looped.is_finished().then(|| looped.join()) {
                Some(Ok(Err(error))) => error.to_string(),
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                Some(Ok(Ok(()))) | None => "the loop did not start".to_owned(),
            };
            return Err(Failure::new(text));
        }
        std::thread::sleep(LOOK);
    }
    Ok(looped)
}

/// What is served, for who has started it.
fn said(site: &Site, places: &[String]) -> String {
    let charset = Look::of_stdout().charset;
    let width = site.mounts.keys().map(String::len).max().unwrap_or(0);
    let mut text: String = places
        .iter()
        .map(|place| format!("hob: serving {}\n", printable(place, charset)))
        .collect();
    for (path, mount) in &site.mounts {
        let what = match mount {
            Mount::App(served) => {
                let app = &served.app;
                let isolation = app.terms.recipe.name().code();
                let interface = app.interface.unwrap_or_default();
                format!("{interface:7} {isolation:8} {}", app.file.display())
            }
            Mount::Static { root, .. } => format!("static           {}", root.display()),
            Mount::Git(git) => format!("git              {}", git.root.display()),
        };
        text.push_str(&printable(&format!("  {path:width$}  {what}"), charset));
        text.push('\n');
    }
    text
}

fn show_limits(format: Format) -> Result<(), Failure> {
    let limits = Limits::default();
    if format.json {
        let list: Vec<Value> = limits
            .list()
            .map(|(name, value, unit)| json!({ "name": name, "value": value, "unit": unit }))
            .collect();
        return out_json(&format!(
            "{}\n",
            json!({ "schema": "hob.serve.limits/1", "limits": list })
        ));
    }
    let lines: String = limits
        .list()
        .map(|(name, value, unit)| format!("{name:16} {value:>10} {unit}\n"))
        .collect();
    out(&lines)
}
