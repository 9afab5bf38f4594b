//! The user's `config.toml`: what is asked for beyond this machine. Each section is read by the part
//! that it configures; here it is plain data.
//!
//! Invariants: a file that others may write is not read; a word that is not known is refused, not
//! skipped; a file larger than [`BYTES_MAX`] is not read.

use std::io::Read;
use std::path::{Path, PathBuf};

use hob_os::look::{self, Seen};
use rustix::fs::CWD;
use rustix::io::Errno;
use serde::Deserialize;

/// A larger configuration is not read, nor a larger secret.
const BYTES_MAX: u64 = 64 * 1024;

/// The bits of a mode by which others may write.
const WRITTEN: u32 = 0o022;
/// Those by which others may do anything.
const ALL: u32 = 0o077;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserConfig {
    pub(crate) nats: Option<Nats>,
    pub(crate) export: Option<Export>,
    pub(crate) log: Option<Log>,
}

/// Other hosts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nats {
    pub(crate) url: String,
    pub(crate) creds: Option<PathBuf>,
    pub(crate) host: Option<String>,
    pub(crate) ca: Option<PathBuf>,
}

/// Who is told of calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    pub(crate) otlp: String,
    pub(crate) headers: Option<PathBuf>,
}

/// What the daemon's own log tells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) on: Vec<String>,
}

/// Reads the file; without one, nothing is asked for.
///
/// # Errors
/// What is wrong with it, in a line for a person.
pub(crate) fn read(path: &Path) -> Result<UserConfig, String> {
    let fault = |what: String| fault(path, &what);
    let text = whole(path, WRITTEN, "others may write it; `chmod go-w` it").map_err(fault)?;
    let Some(text) = text else { return Ok(UserConfig::default()) };
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let what = error.message().lines().next().unwrap_or("cannot be read").to_owned();
        fault(format!("line {line}: {what}"))
    })
}

/// A fault, with the file that it is in.
pub(crate) fn fault(path: &Path, what: &str) -> String {
    format!("{}: {what}", path.display())
}

/// The text of a file that the configuration names by a key, which only its owner may read.
///
/// # Errors
/// What is wrong with it, without a word of what it holds.
pub(crate) fn secret(key: &str, path: &Path) -> Result<String, String> {
    let fault = |what: String| format!("{key}: {}: {what}", path.display());
    if !path.is_absolute() {
        return Err(fault("it is no absolute path".to_owned()));
    }
    let secret = whole(path, ALL, "others may read it; `chmod 600` it").map_err(fault)?;
    secret.ok_or_else(|| fault("is not there".to_owned()))
}

/// A file's text, where it is ours or root's and none of these bits is set.
fn whole(path: &Path, forbidden: u32, why: &str) -> Result<Option<String>, String> {
    let (file, stat) = match look::at(CWD, path) {
        Ok(Seen::File(file, stat)) => (file, stat),
        Ok(Seen::Other(_)) => return Err("is no regular file".to_owned()),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(format!("cannot be read: {}", std::io::Error::from(errno))),
    };
    if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user".to_owned());
    }
    if stat.st_mode & forbidden != 0 {
        return Err(why.to_owned());
    }
    let mut text = String::new();
    let read = std::fs::File::from(file).take(BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    match text.len() as u64 > BYTES_MAX {
        true => Err(format!("has more than {BYTES_MAX} bytes")),
        false => Ok(Some(text)),
    }
}
