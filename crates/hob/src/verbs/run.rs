//! `hob run`, as the help, the completions and the man pages describe it. The client parses it by
//! hand (`hob_client::options`), before any of this is touched; only a script in a session comes
//! here.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use hob_os::start::Start;

use super::session;
use crate::failure::Failure;

/// The command line.
#[derive(Debug, Args)]
#[command(
    override_usage = "hob run [OPTIONS] PROGRAM [ARGUMENT]...\n       hob run [OPTIONS] -m MODULE [ARGUMENT]..."
)]
pub(crate) struct Run {
    /// What the next call may see of this one
    #[arg(long, value_enum, value_name = "NAME")]
    isolation: Option<IsolationName>,
    /// Run it cold, and write a receipt
    #[arg(long)]
    cold: bool,
    /// End it after this time, such as 500ms, 5s or 2m; exit code 124
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// How many copies wait, 0 to 64; hob adapts it to the rate of calls otherwise
    #[arg(long, value_name = "N")]
    ahead: Option<u32>,
    /// Write one JSON line with the outcome to this open descriptor
    #[arg(long, value_name = "N")]
    status_fd: Option<u32>,
    /// The verb of hob's that makes the call to compare it
    #[arg(long, value_name = "VERB", hide = true)]
    purpose: Option<String>,
    /// Run a script in this session, a process that goes on; see `hob help session`
    #[arg(short = 'S', long, value_name = "NAME")]
    #[arg(conflicts_with_all = ["isolation", "cold", "timeout", "ahead", "status_fd"])]
    session: Option<String>,
    /// Keep what the script defines in its session; it is forgotten otherwise
    #[arg(long, requires = "session")]
    keep: bool,
    /// The class path of a session that is started; it is found otherwise
    #[arg(long, value_name = "PATH", requires = "session")]
    cp: Option<String>,
    /// A script, a command, an interpreter with its script, or `-m MODULE`; then its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM [ARGUMENT]...")]
    program: Vec<OsString>,
}

impl Run {
    /// Runs a script in the session that is named. What names none is parsed elsewhere, and comes
    /// here only to be refused.
    pub(crate) fn in_session(&self, start: &Start) -> Result<u8, Failure> {
        let name = self.session.as_deref();
        let session = name.ok_or_else(|| Failure::new("`run` is parsed elsewhere"))?;
        let script = session::Script {
            session,
            cp: self.cp.as_deref(),
            keep: self.keep,
            words: &self.program,
        };
        session::run(start, &script)
    }
}

/// What the next call may see, by the names of the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum IsolationName {
    /// A fresh process
    Spawn,
    /// A preloaded process, used once
    Standby,
    /// A fork of a preloaded process, used once
    Fork,
}
