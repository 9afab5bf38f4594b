//! What a daemon is started with, by its command line and environment. Of the user's `config.toml` it
//! knows the path only: each part reads what is said of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use hob_core::limits::Limits;
use hob_core::sessions;

use crate::hosts::Connect;
use crate::project::Declared;
use crate::recorder::push::Open;
pub use crate::workers::logs::Prints;

/// What a daemon is started with.
#[derive(Debug)]
pub struct Config {
    /// The socket's directory.
    pub directory: PathBuf,
    /// Whether another build's daemon is asked to leave first.
    pub start: StartAs,
    /// Where receipts go; `None` when there is no place or they are turned off.
    pub state_dir: Option<PathBuf>,
    /// The state directory, for all that is not a receipt; `None` when there is no place.
    pub home: Option<PathBuf>,
    /// The bounds of the core.
    pub limits: Limits,
    /// The bounds of sessions.
    pub sessions: sessions::Limits,
    /// The apps that this process serves, by their mounts' paths; none in a user's daemon.
    pub mounts: BTreeMap<String, Declared>,
    /// Who keeps what is told here.
    pub tells: Tells,
    /// Where handlers print.
    pub prints: Prints,
    /// Whether spans are noted.
    pub notes_spans: bool,
    /// The user's `config.toml`; `None` when there is no place.
    pub user_config: Option<PathBuf>,
    /// What connects this host with others; `None`: it is on its own.
    pub connect: Option<Connect>,
    /// How receipts are posted to a collector, if the user's configuration names one; `None`: never.
    pub push: Option<Open>,
}

/// How a daemon meets one that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAs {
    /// It leaves at once: the other one serves.
    Only,
    /// The other one is asked to stop listening and to finish its calls.
    Replacement,
}

/// Who keeps what is told to a loop: a user's outbox has one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// This loop, in the outbox: it is the user's daemon.
    Kept,
    /// The user's daemon: this is a site, the workers of which tell the daemon, not the site.
    OfDaemon,
}

impl Config {
    /// Reads the settings from variables: `HOB_RECEIPTS=0`, `HOB_RING=0`, `HOB_MEMORY_MB`, `HOB_IDLE_EXIT_S`,
    /// `HOB_SLOWER_RETRY_S`, `HOB_SESSION_IDLE_S`, `HOB_SESSION_MEMORY_MB`.
    /// What is not a number keeps its default: a typo must not keep a daemon from starting.
    #[must_use]
    pub fn from_variables(
        directory: PathBuf,
        start: StartAs,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Config {
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let mut limits = Limits::default();
        if let Some(megabytes) = number("HOB_MEMORY_MB") {
            limits.budget_kib = megabytes.saturating_mul(1024);
        }
        if let Some(seconds) = number("HOB_IDLE_EXIT_S") {
            limits.idle_exit_us = seconds.saturating_mul(1_000_000);
        }
        if let Some(seconds) = number("HOB_SLOWER_RETRY_S") {
            limits.pace_wait_min_us = seconds.saturating_mul(1_000_000);
        }
        let mut sessions = sessions::Limits::default();
        if let Some(seconds) = number("HOB_SESSION_IDLE_S") {
            sessions.idle_us = seconds.saturating_mul(1_000_000);
        }
        if let Some(megabytes) = number("HOB_SESSION_MEMORY_MB") {
            sessions.memory_kib = megabytes.saturating_mul(1024);
        }
        let off = variable("HOB_RECEIPTS").is_some_and(|value| value == "0");
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let configs =
            absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
        let home = (variable("XDG_STATE_HOME"), variable("HOME"));
        let state_dir = crate::recorder::place::state_dir_for(home.0.as_deref(), home.1.as_deref());
        Config {
            directory,
            start,
            state_dir: state_dir.clone().filter(|_| !off),
            home: state_dir,
            limits,
            sessions,
            mounts: BTreeMap::new(),
            tells: Tells::Kept,
            prints: Prints::Files,
            notes_spans: variable("HOB_RING").is_none_or(|value| value != "0"),
            user_config: configs.map(|configs| configs.join("hob/config.toml")),
            connect: None,
            push: None,
        }
    }
}
