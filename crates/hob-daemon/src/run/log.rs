//! The daemon's own log: where it is, which categories are on, what is told of it.
//!
//! The user's `config.toml` says which are on from the start; `hob log --daemon` turns them on and off
//! while the daemon runs:
//! ```toml
//! [log]
//! on = ["pool", "hosts"]
//! ```

use std::path::Path;

use hob_core::log::{Category, bits};
use hob_core::status::LogPart;
use hob_os::log::{self, State};
use serde_json::{Value, json};

use crate::user_config;

/// The log's name in the daemon's directory. Where the system keeps that directory in memory, as it
/// mostly does, no disk is waited for.
pub const FILE: &str = "daemon.log";

/// The name of what `hob log --daemon` is told.
const SCHEMA: &str = "hob.log.categories/1";

/// Begins the log, with what the user's configuration turns on.
pub(crate) fn begin(directory: &Path, user_config: Option<&Path>) {
    log::begin(&directory.join(FILE));
    let (version, pid) = (env!("CARGO_PKG_VERSION"), std::process::id());
    hob_os::log!(Info, Category::Daemon, "hob {version} begins, pid {pid}");
    match configured(user_config) {
        Ok(on) => log::turn(on, u32::MAX),
        Err(why) => {
            log::turn(0, u32::MAX);
            hob_os::log!(Warn, Category::Daemon, "{why}");
        }
    }
}

/// The bits of the categories that the configuration turns on.
///
/// # Errors
/// What is wrong with it, in a line for a person.
pub fn configured(user_config: Option<&Path>) -> Result<u32, String> {
    let Some(path) = user_config else { return Ok(0) };
    let on = user_config::read(path)?.log.map(|section| section.on).unwrap_or_default();
    bits(on.iter().map(String::as_str))
        .map_err(|why| user_config::fault(path, &format!("[log] on: {why}")))
}

/// What `hob status` says of it; `None`: there is none.
pub(crate) fn part() -> Option<LogPart> {
    let State { path, on, lost, why, .. } = log::state();
    let on = Category::ALL.into_iter().filter(|each| each.bit() & on != 0);
    Some(LogPart {
        path: path?.display().to_string(),
        on: on.map(|each| each.name().to_owned()).collect(),
        lost,
        why,
    })
}

/// Turns on and off what a request says, and tells how the log is then.
pub(crate) fn control(request: &Value) -> Value {
    let named = |key: &str| {
        let names = request.get(key).and_then(Value::as_array);
        bits(names.into_iter().flatten().filter_map(Value::as_str))
    };
    let (on, off) = match (named("on"), named("off")) {
        (Ok(on), Ok(off)) => (on, off),
        (Err(why), _) | (_, Err(why)) => return json!({ "error": why }),
    };
    if on | off != 0 {
        log::turn(on, off);
        let names = |bits: u32| {
            let of = Category::ALL.into_iter().filter(|each| each.bit() & bits != 0);
            let names: Vec<_> = of.map(Category::name).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(",") }
        };
        let now = log::state().on;
        hob_os::log!(Info, Category::Daemon, "categories that are on: {}", names(now));
    }
    let State { path, on, written, lost, why } = log::state();
    let categories: Vec<Value> = Category::ALL
        .into_iter()
        .map(|each| {
            json!({ "name": each.name(), "on": each.bit() & on != 0, "about": each.about() })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "path": path.map(|path| path.display().to_string()),
        "written": written,
        "lost": lost,
        "why": why,
        "categories": categories,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Result<u32, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        configured(Some(&path))
    }

    #[test]
    fn the_configuration_turns_categories_on_and_what_is_wrong_is_told() {
        assert_eq!(told(""), Ok(0));
        assert_eq!(configured(None), Ok(0));
        assert_eq!(configured(Some(Path::new("/nowhere/config.toml"))), Ok(0));
        assert_eq!(told("[log]\non = []\n"), Ok(0));
        let both = Category::Pool.bit() | Category::Hosts.bit();
        assert_eq!(told("[log]\non = [\"pool\", \"hosts\"]\n"), Ok(both));
        for (text, word) in [
            ("[log]\non = [\"pools\"]\n", "no category `pools`"),
            ("[log]\non = \"pool\"\n", "line 2"),
            ("[log]\nlevel = \"debug\"\n", "level"),
        ] {
            let why = told(text).unwrap_err();
            assert!(why.contains(word) && why.contains("config.toml"), "{why}");
        }
    }

    #[test]
    fn a_request_of_an_unknown_category_turns_nothing() {
        let before = log::state().on;
        let answer = control(&json!({ "verb": "log", "on": ["pool", "x"] }));
        assert!(answer["error"].as_str().unwrap().contains("`x`"), "{answer}");
        assert_eq!(log::state().on, before);
        let answer = control(&json!({ "verb": "log" }));
        assert_eq!(answer["categories"].as_array().map(Vec::len), Some(Category::ALL.len()));
    }
}
