//! The rights of a mount, as a `hob.toml` says them.
//!
//! ```toml
//! [mount."/git".rights]
//! ask = "rights"                   # a [program.rights]; or url = "http://127.0.0.1:4180/auth"
//! user = "header:Authorization"    # or cookie:NAME, header:NAME (of a trusted proxy), peer
//! keep = "5s"                      # at most, from when it was asked for
//! keep_no = "1s"
//! within = "2s"
//! queue = 256                      # requests that wait for answers
//! ```
//! `rights = "rights"` is short for a table with `ask` alone.

use hob_core::rights::KEEP_US_MAX;
use serde::Deserialize;

/// How long a no is kept that does not say, in microseconds.
const KEEP_NO_US: u64 = 1_000_000;
/// How long a question may take that does not say, in microseconds.
const WITHIN_US: u64 = 2_000_000;
/// Requests that wait for answers.
const QUEUE: u32 = 256;
/// The header that says who asks, of itself.
const AUTHORIZATION: &str = "authorization";

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Keys {
    Short(String),
    Table(Table),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    ask: Option<String>,
    url: Option<String>,
    user: Option<String>,
    keep: Option<String>,
    keep_no: Option<String>,
    within: Option<String>,
    queue: Option<u32>,
}

/// Where rights are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// A program of the same `hob.toml`.
    Program(String),
    /// An address.
    Url(String),
}

/// Who asks, as a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// The value of a header, in lower case; believed of a trusted proxy alone, if so.
    Header(String, bool),
    /// The value of a cookie.
    Cookie(String),
    /// The address of the client.
    Peer,
}

/// The rights of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// Where they are asked for.
    pub at: Where,
    /// Who asks.
    pub user: User,
    /// How long a yes is kept after it was asked for, in microseconds.
    pub keep_us: u64,
    /// The same of a no.
    pub keep_no_us: u64,
    /// How long a question may take, in microseconds.
    pub within_us: u64,
    /// How many requests may wait for answers.
    pub queue: u32,
}

impl Keys {
    /// The rights that they say, where these programs are, and proxies are trusted or not.
    pub(super) fn rights(
        self,
        programs: &toml::Table,
        has_proxies: bool,
    ) -> Result<Rights, String> {
        let table = match self {
            Keys::Short(name) => Table { ask: Some(name), ..Table::default() },
            Keys::Table(table) => table,
        };
        let at = match (table.ask, table.url) {
            (Some(name), None) if programs.contains_key(&name) => Where::Program(name),
            (Some(name), None) => {
                return Err(format!("rights: there is no [program.{name}]; add it to this file"));
            }
            (None, Some(url)) => Where::Url(url),
            _ => return Err("rights: say one of `ask` and `url`".to_owned()),
        };
        let user = match (&at, table.user.as_deref()) {
            (Where::Url(_), Some(_)) => {
                return Err(
                    "rights: `user` is of `ask`; an address is told the request's headers".into()
                );
            }
            (_, None) => User::Header(AUTHORIZATION.to_owned(), false),
            (Where::Program(_), Some(text)) => user(text, has_proxies)?,
        };
        let time = |key: &str, text: Option<String>, usual: u64| match text.as_deref() {
            None => Ok(usual),
            Some("0s") => Ok(0),
            Some(text) => {
                super::section::microseconds(text).filter(|us| *us <= KEEP_US_MAX).ok_or_else(
                    || format!("rights.{key} = \"{text}\": it is a time up to 5s, such as 500ms"),
                )
            }
        };
        let keep_us = time("keep", table.keep, KEEP_US_MAX)?;
        let keep_no_us = time("keep_no", table.keep_no, KEEP_NO_US.min(keep_us))?;
        let within_us = time("within", table.within, WITHIN_US)?;
        if within_us == 0 {
            return Err("rights.within = \"0s\": a question takes some time".to_owned());
        }
        if keep_no_us > keep_us {
            return Err("rights: keep_no is longer than keep".to_owned());
        }
        let queue = table.queue.unwrap_or(QUEUE);
        if queue == 0 {
            return Err("rights.queue = 0: one request at least has to wait for an answer".into());
        }
        Ok(Rights { at, user, keep_us, keep_no_us, within_us, queue })
    }
}

fn user(text: &str, has_proxies: bool) -> Result<User, String> {
    let wrong = || format!("rights.user = \"{text}\": it is header:NAME, cookie:NAME or peer");
    match text.split_once(':') {
        None if text == "peer" => Ok(User::Peer),
        Some(("cookie", name)) if is_token(name) => Ok(User::Cookie(name.to_owned())),
        Some(("header", name)) if is_token(name) => {
            let name = name.to_ascii_lowercase();
            let by_proxy = name != AUTHORIZATION;
            if by_proxy && !has_proxies {
                return Err(format!(
                    "rights.user = \"{text}\": any client could say it; name the proxies that may \
                     in [serve] trusted_proxies"
                ));
            }
            Ok(User::Header(name, by_proxy))
        }
        _ => Err(wrong()),
    }
}

fn is_token(name: &str) -> bool {
    hob_core::http::is_token(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, has_proxies: bool) -> Result<Rights, String> {
        #[derive(Deserialize)]
        struct Mount {
            rights: Keys,
        }
        let mount: Mount = toml::from_str(text).map_err(|error| error.to_string())?;
        let programs = toml::from_str("[rights]\nhandler = \"x\"\n").expect("a table");
        mount.rights.rights(&programs, has_proxies)
    }

    #[test]
    fn a_name_is_short_for_a_table() {
        let short = read("rights = \"rights\"", false).expect("it is right");
        assert_eq!(Ok(&short), read("[rights]\nask = \"rights\"", false).as_ref());
        assert_eq!(
            (short.keep_us, short.keep_no_us, short.within_us),
            (5_000_000, 1_000_000, 2_000_000)
        );
        let never = read("[rights]\nask = \"rights\"\nkeep = \"0s\"", false).expect("it is right");
        assert_eq!((never.keep_us, never.keep_no_us), (0, 0));
    }

    #[test]
    fn who_asks_is_believed_where_it_can_be() {
        let of = |user: &str, has_proxies| {
            read(&format!("[rights]\nask = \"rights\"\nuser = \"{user}\""), has_proxies)
                .map(|it| it.user)
        };
        assert_eq!(of("peer", false), Ok(User::Peer));
        assert_eq!(of("cookie:id", false), Ok(User::Cookie("id".into())));
        assert_eq!(
            of("header:Authorization", false),
            Ok(User::Header("authorization".into(), false))
        );
        assert_eq!(of("header:X-User", true), Ok(User::Header("x-user".into(), true)));
        for (wrong, has_proxies) in [
            ("header:X-User", false),
            ("header:", true),
            ("cookie:a b", true),
            ("name", true),
            ("", true),
        ] {
            assert!(of(wrong, has_proxies).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            "rights = \"absent\"",
            "rights = 5",
            "[rights]\nkeep = \"1s\"",
            "[rights]\nask = \"rights\"\nurl = \"http://a/\"",
            "[rights]\nurl = \"http://a/\"\nuser = \"peer\"",
            "[rights]\nask = \"rights\"\nkeep = \"6s\"",
            "[rights]\nask = \"rights\"\nkeep = \"1s\"\nkeep_no = \"2s\"",
            "[rights]\nask = \"rights\"\nwithin = \"0s\"",
            "[rights]\nask = \"rights\"\nqueue = 0",
            "[rights]\nask = \"rights\"\nother = 1",
        ] {
            assert!(read(wrong, true).is_err(), "{wrong}");
        }
    }
}
