//! `hob serve reload`: has the code of mounts loaded anew, and says what became of each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_os::start::Start;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::super::request::{self, RequestError};
use super::sites::Running;
use super::systemd::Notified;
use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::say;
use crate::show::style::Look;
use crate::show::text::{Charset, printable};

/// How long loading may take: longer than an interpreter may take to start.
const RELOAD_MS: u64 = 120_000;
const SCHEMA: &str = "hob.serve.reload/1";

/// What became of a mount.
struct Mount {
    site: String,
    path: String,
    outcome: String,
    us: u64,
    why: Option<String>,
}

/// Runs the verb for these sites, one after another.
///
/// # Errors
/// If a mount could not be loaded, or no site has it.
pub(super) fn reload(
    sites: &[Running],
    mount: Option<&str>,
    format: Format,
) -> Result<(), Failure> {
    let mut mounts = Vec::new();
    let (mut ran, mut refusal) = (false, None);
    for site in sites {
        match ask(&site.directory, mount) {
            Ok(answer) => {
                ran = true;
                match read(&site.called(), &answer) {
                    Ok(some) => mounts.extend(some),
                    Err(error) => refusal = Some(error),
                }
            }
            // What a killed site leaves.
            Err(RequestError::NoDaemon) => {}
            Err(error) => return Err(Failure::new(format!("{}: {error}", site.called()))),
        }
    }
    if !ran {
        return Err(Failure::new("no such site runs; `hob serve status` names those that do"));
    }
    if mounts.is_empty()
        && let Some(error) = refusal
    {
        let what = mount.map_or_else(String::new, |mount| format!("{mount}: "));
        return Err(Failure::new(format!("{what}{error}")));
    }
    if format.json {
        let mounts: Vec<Value> = mounts.iter().map(Mount::value).collect();
        out_json(&format!("{}\n", json!({ "schema": SCHEMA, "mounts": mounts })))?;
    } else {
        let charset = Look::of_stdout().charset;
        let is_one = sites.len() == 1;
        let lines: String = mounts.iter().map(|mount| mount.line(is_one, charset)).collect();
        out(&lines)?;
    }
    match mounts.iter().filter(|mount| mount.has_failed()).count() {
        0 => Ok(()),
        1 => Err(Failure::new("one mount could not be loaded")),
        more => Err(Failure::new(format!("{more} mounts could not be loaded"))),
    }
}

/// What a site does at SIGHUP: it loads its apps anew; or it ends, if that says that its terminal is
/// gone.
#[derive(Debug)]
pub(super) struct Hangup {
    directory: PathBuf,
    address: String,
    notified: Option<Arc<Notified>>,
    has_terminal: bool,
}

impl Hangup {
    pub(super) fn new(start: &Start, directory: PathBuf, address: String) -> Hangup {
        let notified = Notified::of(start).map(Arc::new);
        Hangup { directory, address, notified, has_terminal: is_in_a_terminal() }
    }

    /// Does it, in a thread of its own.
    pub(super) fn heard(&self) {
        if self.has_terminal && !is_in_a_terminal() {
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TERM);
            return;
        }
        let (directory, address) = (self.directory.clone(), self.address.clone());
        let notified = self.notified.clone();
        // Without it nothing is loaded anew, as if no signal had come.
        let _ = std::thread::Builder::new().name("hob-reload".to_owned()).spawn(move || {
            notified.iter().for_each(|notified| notified.reloads());
            for line in all_of(&directory) {
                say::line(line.as_bytes());
            }
            notified.iter().for_each(|notified| notified.is_ready(&address));
        });
    }
}

/// Whether this process has a terminal that would end it.
fn is_in_a_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Has all mounts of a site loaded anew; what became of each that failed, in lines for a person.
fn all_of(directory: &Path) -> Vec<String> {
    let mounts = match ask(directory, None) {
        Ok(answer) => read("", &answer).unwrap_or_default(),
        Err(error) => return vec![format!("cannot reload: {error}")],
    };
    let failed = mounts.iter().filter(|mount| mount.has_failed());
    failed.map(|mount| mount.line(true, Charset::Ascii).trim_end().to_owned()).collect()
}

fn ask(directory: &Path, mount: Option<&str>) -> Result<Value, RequestError> {
    let body = json!({ "verb": "reload", "mount": mount }).to_string();
    request::send_to(directory, &body, RELOAD_MS).map(|(answer, _)| answer)
}

fn read(site: &str, answer: &Value) -> Result<Vec<Mount>, String> {
    if let Some(error) = answer["error"].as_str() {
        return Err(error.to_owned());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mount = |value: &Value| Mount {
        site: site.to_owned(),
        path: text(&value["mount"]),
        outcome: text(&value["outcome"]),
        us: value["us"].as_u64().unwrap_or(0),
        why: value["why"].as_str().map(str::to_owned),
    };
    Ok(answer["mounts"].as_array().into_iter().flatten().map(mount).collect())
}

impl Mount {
    fn has_failed(&self) -> bool {
        matches!(self.outcome.as_str(), "kept" | "not-loaded")
    }

    fn value(&self) -> Value {
        json!({
            "site": self.site, "mount": self.path, "outcome": self.outcome, "us": self.us,
            "why": self.why,
        })
    }

    fn line(&self, is_one: bool, charset: Charset) -> String {
        let site = if is_one { String::new() } else { format!("{} ", self.site) };
        let why = self.why.as_deref().unwrap_or("it ended");
        let what = match self.outcome.as_str() {
            "reloaded" => format!("reloaded in {} ms", self.us.div_ceil(1000)),
            "nothing-loaded" => "has nothing loaded; its next request loads it".to_owned(),
            "kept" => format!("does not load, the old code goes on: {why}"),
            _ => format!("does not load: {why}"),
        };
        printable(&format!("{site}{}  {what}", self.path), charset) + "\n"
    }
}
