//! The verbs, one file each, and the table of them: the words that name each, and what runs it.
//! Nothing below names this file; `cli` parses by it.

pub mod ab;
pub mod check;
pub mod daemon;
pub mod doctor;
pub mod gain;
pub mod hooks;
pub mod hosts;
pub mod last;
pub mod launcher;
pub mod lifecycle;
pub mod log;
pub mod message;
mod named_file;
pub mod new;
mod repeated;
pub mod request;
mod rings;
mod run;
pub mod serve;
pub mod session;
pub mod setup;
pub mod shim;
pub mod status;
pub mod top;
pub mod trace;
pub mod trust;
pub mod verify;
pub mod warm;
pub mod why;

use std::ffi::OsString;

use clap::Subcommand;
use hob_os::start::Start;

use crate::failure::Failure;
use crate::output::Format;

/// A verb, with what it is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a program: warm if it can be, cold if not, with a receipt either way
    Run(run::Run),
    /// Have a program ready before its first call, and run nothing of it
    Warm(warm::Warm),
    /// Send a message to a program of hob.toml, and print its answer
    Ask(message::Ask),
    /// Send a message to a program of hob.toml, and go on
    Tell(message::Tell),
    /// List dead letters, the tells that failed too often; try them again, or drop them
    Dead(message::dead::Dead),
    /// Evaluate code in sessions, processes that keep what they define; serve them to editors
    #[command(subcommand)]
    Session(session::Session),
    /// List the programs that hosts offer, and how they do
    Hosts(Format),
    /// Make a small project that runs at once
    New(new::New),
    /// Run a directory of hooks, for one target or for thousands
    #[command(subcommand)]
    Hooks(hooks::Hooks),
    /// Serve web apps and files at prefixes, each app with the isolation that it needs
    Serve(serve::Serve),
    /// Show the receipt of the last call, of the last N, or of the one with a number
    Last(last::Last),
    /// Show where a call waited, and for whom; record what is noted, export it
    Trace(trace::Trace),
    /// List recent receipts, the newest last; find some; or what a program printed
    Log(log::Log),
    /// Show time saved and time lost, per program and day
    Gain(gain::Gain),
    /// Compare a program's warm runs with its cold ones
    Verify(verify::Verify),
    /// Compare two commands: does B take longer than A, with a known rate of error
    Ab(ab::Ab),
    /// Check endpoints and commands of a file, as each kind of user: status, content, time
    Check(check::Check),
    /// Show the daemon: pools, workers, memory
    Status(Format),
    /// Watch the daemon: calls per second, pools, memory, why calls are cold; and each call
    Top(top::Top),
    /// Allow a project's hob.toml so that its programs can be asked and told
    Trust(trust::Trust),
    /// Show where a cold start's time goes, and what warmth would save
    Why(why::Why),
    /// Start the daemon (the first `hob run` does it too)
    Start,
    /// Stop the daemon: let running calls end, leave nothing behind
    Stop,
    /// Start the daemon anew: the new one takes the old one's place, and no message is refused
    Restart,
    /// Look for what keeps calls from being warm, and name each fault with its fix
    Doctor(Format),
    /// Make commands warm wherever they are called: links to hob under their names
    #[command(subcommand)]
    Shim(shim::Shim),
    /// Keep shims first on PATH in a shell, also in virtual environments
    Activate(shim::activate::Activate),
    /// Write what a user's system has to know of hob: a systemd unit, completions; or remove it
    Setup(setup::Setup),
    /// Serve in the foreground (what `start` starts in the background)
    #[command(hide = true)]
    Daemon {
        /// Take over from a daemon of another build
        #[arg(long)]
        replace: bool,
    },
    /// Start workers in this terminal's session (what the first `run` in a terminal starts)
    #[command(hide = true)]
    Launcher,
    /// Become `hob` with the words behind it, in a world that is other (what `verify` starts)
    #[command(hide = true)]
    Within {
        /// What is other
        change: String,
        /// Taken as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

impl Verb {
    /// Runs it; returns the exit code.
    pub(crate) fn run(self, start: &Start) -> Result<u8, Failure> {
        let done = |()| 0;
        match self {
            Verb::Run(run) => run.in_session(start),
            Verb::Warm(asked) => warm::run(start, &asked),
            Verb::Ask(asked) => message::ask(start, asked),
            Verb::Tell(asked) => message::tell(start, asked),
            Verb::Hooks(what) => hooks::run(start, &what),
            Verb::Session(what) => session::verb(start, &what),
            Verb::Hosts(format) => hosts::run(start, format).map(done),
            Verb::New(asked) => new::run(&asked).map(done),
            Verb::Dead(asked) => message::dead::run(start, asked).map(done),
            Verb::Serve(asked) => serve::run(start, asked).map(done),
            Verb::Last(asked) => last::run(start, asked).map(done),
            Verb::Trace(asked) => trace::run(start, &asked),
            Verb::Log(log) => log::run(start, &log).map(done),
            Verb::Verify(asked) => verify::run(start, &asked),
            Verb::Ab(asked) => ab::run(start, &asked),
            Verb::Check(asked) => check::run(&asked),
            Verb::Gain(asked) => gain::run(start, asked).map(done),
            Verb::Status(format) => status::run(start, format).map(done),
            Verb::Doctor(format) => doctor::run(start, format),
            Verb::Shim(what) => shim::run(start, what).map(done),
            Verb::Activate(asked) => shim::activate::run(start, asked).map(done),
            Verb::Setup(asked) => setup::run(start, &asked).map(done),
            Verb::Top(top) => top::run(start, top).map(done),
            Verb::Trust(trust) => trust::run(start, trust).map(done),
            Verb::Why(why) => why::run(start, &why).map(done),
            Verb::Start => lifecycle::start(start).map(done),
            Verb::Stop => lifecycle::stop(start).map(done),
            Verb::Restart => lifecycle::restart(start).map(done),
            Verb::Daemon { .. } => Ok(daemon::run(start)),
            Verb::Launcher => Ok(launcher::run(start)),
            Verb::Within { change, .. } => verify::change::run(start, &change).map(done),
        }
    }
}
