//! `[export]` in the user's `config.toml`.
//!
//! ```toml
//! [export]
//! otlp    = "https://otel.example.org"   # http:// to this machine only
//! headers = "/etc/hob/otlp.headers"      # lines `NAME: VALUE`; mode 0600
//! ```
//! Invariants: headers are secrets: they are read from a file that is ours alone, and are in no text
//! of ours. Where plain text may be sent is judged by who sends it, by the address as that reads it.

use std::fmt;
use std::path::Path;

use crate::user_config;

/// The most headers.
const HEADERS_MAX: usize = 16;

/// Who is told of calls.
#[derive(Clone)]
pub struct Settings {
    /// The collector, as it was written.
    pub url: String,
    /// What goes with each post.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads the user's configuration; `None`: there is none, or nobody is to be told.
    ///
    /// # Errors
    /// What is wrong with it, in a line for a person.
    pub fn read(path: &Path) -> Result<Option<Settings>, String> {
        let Some(section) = user_config::read(path)?.export else { return Ok(None) };
        let headers = match section.headers {
            None => Ok(Vec::new()),
            Some(file) => user_config::secret("headers", &file).and_then(|text| {
                let fault = |what| format!("headers: {}: {what}", file.display());
                headers(&text).map_err(fault)
            }),
        };
        let headers =
            headers.map_err(|what| user_config::fault(path, &format!("[export]: {what}")))?;
        Ok(Some(Settings { url: section.otlp, headers }))
    }
}

/// The lines of a file of headers. What is wrong is told without the line: it may be a secret.
fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let headers = lines.map(|(number, line)| {
        let (name, value) =
            line.split_once(':').ok_or(format!("line {}: no `NAME: VALUE`", number + 1))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    });
    let headers = headers.collect::<Result<Vec<_>, String>>()?;
    match headers.len() > HEADERS_MAX {
        true => Err(format!("has more than {HEADERS_MAX} headers")),
        false => Ok(headers),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn said(text: &str, (headers, mode): (&str, u32)) -> Result<Option<Settings>, String> {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        let headers = write("headers", headers, mode);
        let text = text.replace("HEADERS", &headers.display().to_string());
        Settings::read(&write("config.toml", &text, 0o600))
    }

    const TOLD: &str = "[export]\notlp = \"https://h\"\nheaders = \"HEADERS\"\n";

    #[test]
    fn nobody_is_told_where_nothing_is_said_of_it() {
        assert!(said("", ("", 0o600)).unwrap().is_none());
        let hosts = "[nats]\nurl = \"nats://127.0.0.1\"\n";
        assert!(said(hosts, ("", 0o600)).unwrap().is_none());
        assert!(Settings::read(Path::new("/nowhere/config.toml")).unwrap().is_none());
        let both = said(&format!("{hosts}{TOLD}"), ("", 0o600)).unwrap().unwrap();
        assert_eq!((both.url.as_str(), both.headers), ("https://h", Vec::new()));
    }

    #[test]
    fn headers_are_read_where_they_are_ours_alone_and_shown_nowhere() {
        let headers = "Authorization: Bearer SECRET:x\n\nx-team:a\n";
        let settings = said(TOLD, (headers, 0o600)).unwrap().unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            settings.headers,
            [pair("Authorization", "Bearer SECRET:x"), pair("x-team", "a")]
        );
        assert!(!format!("{settings:?}").contains("SECRET"));
        for mode in [0o640, 0o604, 0o660] {
            let error = said(TOLD, (headers, mode)).unwrap_err();
            assert!(error.contains("chmod 600") && !error.contains("SECRET"), "{error}");
        }
        for (headers, word) in [("a: b\nSECRET", "line 2"), (&"a: b\n".repeat(17), "more than 16")]
        {
            let error = said(TOLD, (headers, 0o600)).unwrap_err();
            assert!(error.contains(word) && !error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("[export]\n", "otlp"),
            ("[export]\notlp = 5\n", "line 2"),
            ("[export]\notlp = \"x\"\nurl = \"y\"\n", "url"),
            ("[export]\notlp = \"x\"\nheaders = \"a\"\n", "absolute"),
            ("[export]\notlp = \"x\"\nheaders = \"/nowhere/a\"\n", "is not there"),
        ] {
            let error = said(text, ("", 0o600)).unwrap_err();
            assert!(error.contains(word) && !error.contains('\n'), "{error}");
        }
    }
}
