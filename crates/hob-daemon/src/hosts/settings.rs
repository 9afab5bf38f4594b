//! `[nats]` in the user's `config.toml`.
//!
//! ```toml
//! [nats]
//! url   = "tls://nats.example.org"   # nats:// to this machine only
//! creds = "/etc/hob/web-1.creds"     # a credentials file or an nkey's seed; mode 0600
//! host  = "web-1"                    # this machine's name otherwise
//! ca    = "/etc/hob/ca.pem"          # the system's certificates otherwise
//! ```
//! Invariants: credentials that others may read are not used, and are in no text of ours; what is sent
//! in plain text does not leave this machine.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hob_core::hosts::is_host;

use crate::user_config::{self, Nats};

/// How this host is connected with others.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server, as it was written.
    pub url: String,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// Who this host is to the server.
    pub credentials: Option<Credentials>,
    /// This host's name.
    pub host: String,
    /// Certificates that the server's is checked by, beside the system's.
    pub ca: Option<PathBuf>,
}

/// What proves who this host is.
#[derive(Clone)]
pub struct Credentials {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub secret: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads the user's configuration; `None`: there is none, or it says nothing of other hosts.
    ///
    /// # Errors
    /// What is wrong with it, in a line for a person.
    pub fn read(path: &Path) -> Result<Option<Settings>, String> {
        read(path)
    }
}

/// Reads the file; `None`: there is none, or it says nothing of other hosts.
///
/// # Errors
/// What is wrong with it, in a line for a person.
pub(crate) fn read(path: &Path) -> Result<Option<Settings>, String> {
    let Some(section) = user_config::read(path)?.nats else { return Ok(None) };
    let settings = settings(section).map(Some);
    settings.map_err(|what| user_config::fault(path, &format!("[nats]: {what}")))
}

fn settings(section: Nats) -> Result<Settings, String> {
    let is_tls = checked(&section.url)?;
    let host = match section.host {
        Some(host) => host,
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    if !is_host(&host) {
        return Err(format!("host = \"{host}\": letters, digits, `-`, `_` and `.`, at most 64"));
    }
    let credentials = match section.creds {
        None => None,
        Some(path) => Some(Credentials { secret: user_config::secret("creds", &path)?, path }),
    };
    if let Some(ca) = section.ca.as_ref().filter(|ca| !ca.is_file()) {
        return Err(format!("ca: {}: is not there", ca.display()));
    }
    Ok(Settings { url: section.url, is_tls, credentials, host, ca: section.ca })
}

/// Whether a URL asks for TLS.
fn checked(url: &str) -> Result<bool, String> {
    let split = url.split_once("://");
    let (scheme, rest) =
        split.ok_or_else(|| format!("url = \"{url}\": it is tls://HOST or tls://HOST:PORT"))?;
    if rest.contains('@') {
        return Err("url: a password does not belong there; name a file by `creds`".to_owned());
    }
    if rest.is_empty() || rest.contains(['/', '?', '#', ' ']) {
        return Err(format!("url = \"{url}\": it is tls://HOST or tls://HOST:PORT"));
    }
    match scheme {
        "tls" => Ok(true),
        "nats" if is_loopback(rest) => Ok(false),
        "nats" => Err(format!(
            "url = \"{url}\": plain text is sent to this machine only; use tls://{rest}"
        )),
        other => Err(format!("url: {other}:// is not known; it is tls://HOST")),
    }
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn said(text: &str, mode: u32) -> Result<Option<Settings>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let creds = dir.path().join("creds");
        std::fs::write(&creds, "SECRET-SEED").unwrap();
        std::fs::set_permissions(&creds, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::write(&path, text.replace("CREDS", &creds.display().to_string())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        read(&path)
    }

    #[test]
    fn plain_text_stays_on_this_machine() {
        for url in
            ["nats://127.0.0.1:4222", "nats://localhost", "nats://[::1]:9", "tls://a.example"]
        {
            let read = said(&format!("[nats]\nurl = \"{url}\"\nhost = \"web-1\"\n"), 0o600);
            assert_eq!(read.unwrap().unwrap().is_tls, url.starts_with("tls"), "{url}");
        }
        for url in [
            "nats://10.0.0.1:4222",
            "nats://127.0.0.1.example",
            "nats://localhost.example:1",
            "ws://127.0.0.1",
            "127.0.0.1:4222",
            "tls://",
            "tls://user:hunter2@a.example",
            "nats://127.0.0.1@evil.example",
        ] {
            let error = said(&format!("[nats]\nurl = \"{url}\"\n"), 0o600).unwrap_err();
            assert!(error.contains("url") && !error.contains("hunter2"), "{url}: {error}");
        }
    }

    #[test]
    fn credentials_are_read_where_they_are_ours_alone_and_shown_nowhere() {
        let text = "[nats]\nurl = \"nats://127.0.0.1\"\nhost = \"a\"\ncreds = \"CREDS\"\n";
        let settings = said(text, 0o600).unwrap().unwrap();
        assert!(!format!("{settings:?}").contains("SECRET"));
        assert_eq!(settings.credentials.unwrap().secret, "SECRET-SEED");
        for mode in [0o640, 0o604, 0o660, 0o777] {
            let error = said(text, mode).unwrap_err();
            assert!(error.contains("chmod 600") && !error.contains("SECRET"), "{error}");
        }
        let error = said(&text.replace("CREDS", "/nowhere/creds"), 0o600).unwrap_err();
        assert!(error.contains("is not there"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert!(said("", 0o600).unwrap().is_none());
        for (text, word) in [
            ("[nats]\nurl = 5\n", "line 2"),
            ("[nats]\nurll = \"x\"\n", "urll"),
            ("[nuts]\n", "nuts"),
            ("[nats]\nurl = \"nats://[::1]\"\nhost = \"a b\"\n", "host"),
            ("[nats]\nurl = \"nats://[::1]\"\nca = \"/nowhere\"\n", "ca"),
        ] {
            let error = said(text, 0o600).unwrap_err();
            assert!(error.contains(word) && !error.contains('\n'), "{error}");
        }
        assert!(read(Path::new("/nowhere/config.toml")).unwrap().is_none());
    }
}
