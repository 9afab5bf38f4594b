//! Other hosts: whether the user's configuration of them can be used, whether there is a connection,
//! and whether tells come. Nothing is said where nothing is configured.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hob_core::status::Status;
use hob_daemon::hosts::Settings;
use hob_os::start::Start;

use super::{Finding, fault, fine, warning};
use crate::connect;
use crate::verbs::request;

const CHECK: &str = "hosts";
/// How long the daemon may take to answer.
const ANSWER_MS: u64 = 2_000;

pub(super) fn look(start: &Start) -> Vec<Finding> {
    let Some(path) = config(start) else { return Vec::new() };
    let settings = match Settings::read(&path) {
        Ok(None) => return Vec::new(),
        Ok(Some(settings)) => settings,
        Err(why) => {
            let fix = fix_of(&why, &path);
            return vec![fault(CHECK, format!("no other host can be asked: {why}"), fix)];
        }
    };
    let Settings { host, url, credentials, .. } = &settings;
    let by = credentials
        .as_ref()
        .map(|credentials| format!(" by the credentials in {}", credentials.path.display()));
    let by = by.unwrap_or_default();
    let running = status(start);
    if running.as_ref().is_some_and(|status| status.hosts.is_none()) {
        let text =
            format!("{host}: the daemon that runs began before [nats] was in {}", path.display());
        return vec![warning(CHECK, text, "hob restart")];
    }
    let Some(now) = running.and_then(|status| status.hosts) else {
        return vec![fine(CHECK, format!("{host}: a daemon connects to {url}{by}; none runs"))];
    };
    if (&now.host, &now.server) != (host, url) {
        let text = format!("the daemon was started with another configuration than {path:?} has");
        return vec![warning(CHECK, text, "hob restart")];
    }
    if !now.connected {
        let why = now.why.unwrap_or_else(|| format!("{url}: not yet"));
        let what = match credentials {
            Some(credentials) if why.contains("credentials") => {
                format!("put credentials that it accepts in {}", credentials.path.display())
            }
            None if why.contains("credentials") => {
                format!("name them by `creds` in {}", path.display())
            }
            // In the words of the library.
            _ if why.contains("UnknownIssuer") => {
                format!("name the file of its authority by `ca` in {}", path.display())
            }
            _ => format!("start that server, or correct `url` in {}", path.display()),
        };
        let text = format!("{host} has no connection to other hosts: {why}");
        return vec![fault(CHECK, text, format!("{what}, then: hob restart"))];
    }
    let offers = match now.offered.len() {
        1 => "1 program".to_owned(),
        count => format!("{count} programs"),
    };
    let text = format!("{host} is connected to {url}{by}, and offers {offers}");
    let mut all = vec![fine(CHECK, text)];
    if let Some(why) = now.why {
        let text = format!("the server refuses something: {why}");
        all.push(warning(CHECK, text, "give this host the permissions of docs/hosts.md"));
    }
    if let Some(why) = now.tells_why {
        let fix = match why.contains("partitions") {
            true => "docs/hosts.md, \"In their order, by key\"",
            false => {
                "jetstream { store_dir: \"/var/lib/nats\" } in the configuration of nats-server"
            }
        };
        all.push(warning(CHECK, format!("tells of other hosts: {why}"), fix));
    }
    all
}

/// The user's configuration.
pub(super) fn config(start: &Start) -> Option<PathBuf> {
    let absolute = |name: &[u8]| {
        let value = Path::new(OsStr::from_bytes(start.variable(name)?));
        value.is_absolute().then(|| value.to_owned())
    };
    let configs = absolute(b"XDG_CONFIG_HOME").or_else(|| Some(absolute(b"HOME")?.join(".config")));
    Some(configs?.join("hob/config.toml"))
}

/// What the daemon says; `None`: none answers, which is a finding of its own.
pub(super) fn status(start: &Start) -> Option<Status> {
    connect::connect(&connect::directory(start)).ok()?;
    let (answer, _) = request::ask_within(start, "status", ANSWER_MS).ok()?;
    serde_json::from_value::<Status>(answer).ok()
}

/// What is to be done about a configuration that cannot be used. A mode is mended by a command.
pub(super) fn fix_of(why: &str, path: &Path) -> String {
    // The file's name stands between the key that names it and what is wrong.
    let secret = why.split_once(": others may read").and_then(|(before, _)| {
        let keys = ["creds: ", "headers: "];
        keys.iter().find_map(|key| Some(before.split_once(key)?.1))
    });
    match secret {
        Some(file) => format!("chmod 600 {file}, then: hob restart"),
        None if why.contains("chmod go-w") => {
            format!("chmod go-w {}, then: hob restart", path.display())
        }
        None => format!("correct {}, then: hob restart", path.display()),
    }
}
