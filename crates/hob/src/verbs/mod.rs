//! The verbs other than `run`, one file each. The command line is described once, here; `run`
//! appears in it for the help, the completions and the man pages, and is parsed by hand
//! (`options`), before any of this is touched.

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
pub mod serve;
pub mod session;
pub mod setup;
pub mod shim;
pub mod status;
mod tail;
pub mod top;
pub mod trace;
pub mod trust;
pub(crate) mod usage;
pub mod verify;
pub mod warm;
pub mod why;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use hob_os::start::Start;
use hob_wire::exit::ExitCode;

use crate::say;
use crate::show::style::Look;

/// Puts a warm, isolated copy of any program behind any caller, and hands back a receipt for
/// every call.
#[derive(Debug, Parser)]
#[command(name = "hob", version = env!("HOB_VERSION"), max_term_width = 96, disable_help_subcommand = true)]
#[command(after_help = "HOB=0 in the environment bypasses hob wholly.")]
pub struct Hob {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a program: warm if it can be, cold if not, with a receipt either way
    Run(Run),
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
    /// Show the help of a verb
    Help(usage::help::Help),
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
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[derive(Debug, Args)]
#[command(
    override_usage = "hob run [OPTIONS] PROGRAM [ARGUMENT]...\n       hob run [OPTIONS] -m MODULE [ARGUMENT]..."
)]
struct Run {
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
    /// Runs a script in the session that is named.
    fn in_session(&self, start: &Start) -> Result<u8, Failure> {
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

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IsolationName {
    /// A fresh process
    Spawn,
    /// A preloaded process, used once
    Standby,
    /// A fork of a preloaded process, used once
    Fork,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Format {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The command line, for completions and man pages.
#[must_use]
pub fn command() -> clap::Command {
    usage::groups::add(usage::with_examples(usage::looks::add(Hob::command())))
}

/// What a shell is given for its completions; `None`: hob has none for it.
#[must_use]
pub fn completions(shell: Shell) -> Option<String> {
    usage::complete::stub(shell).ok()
}

/// Runs a verb with the process's argv; returns its exit code.
#[must_use]
pub fn run(start: &Start) -> u8 {
    if usage::complete::answer(start) {
        return 0;
    }
    let renamed = usage::former::renamed(start);
    let start = renamed.as_ref().unwrap_or(start);
    let words = start.argv.iter().map(|word| std::ffi::OsStr::from_bytes(word.to_bytes()));
    let parsed = usage::groups::first(command()).try_get_matches_from(words).and_then(|matches| {
        usage::looks::obey(&matches);
        Hob::from_arg_matches(&matches)
    });
    let hob = match parsed {
        Ok(hob) => hob,
        Err(error) => return not_parsed(start, &error),
    };
    let done = |()| 0;
    let result = match hob.verb {
        // What names no session is parsed elsewhere, and comes here only to be refused.
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
        Verb::Help(asked) => usage::help::run(&asked),
        Verb::Gain(asked) => gain::run(start, asked).map(done),
        Verb::Status(format) => status::run(start, format).map(done),
        Verb::Doctor(format) => return doctor::run(start, format),
        Verb::Shim(what) => shim::run(start, what).map(done),
        Verb::Activate(asked) => shim::activate::run(start, asked).map(done),
        Verb::Setup(asked) => setup::run(start, &asked).map(done),
        Verb::Top(top) => top::run(start, top).map(done),
        Verb::Trust(trust) => trust::run(start, trust).map(done),
        Verb::Why(why) => why::run(start, &why).map(done),
        Verb::Start => lifecycle::start(start).map(done),
        Verb::Stop => lifecycle::stop(start).map(done),
        Verb::Restart => lifecycle::restart(start).map(done),
        Verb::Daemon { .. } => return daemon::run(start),
        Verb::Launcher => return launcher::run(start),
        Verb::Within { change, .. } => verify::change::run(start, &change).map(done),
        Verb::Completions { shell } => {
            usage::complete::stub(shell).and_then(|stub| out(&stub)).map(done)
        }
    };
    match result {
        Ok(code) => code,
        Err(Failure { text, code }) => {
            say::line(text.as_bytes());
            code
        }
    }
}

/// Prints the help that was asked for, or what is wrong with the command line.
fn not_parsed(start: &Start, error: &clap::Error) -> u8 {
    use clap::error::ErrorKind;
    let asks_for_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if error.use_stderr() && !asks_for_help {
        say::line(usage::complaint(start, error).as_bytes());
        return ExitCode::Usage as u8;
    }
    usage::help::print(error);
    if error.use_stderr() { ExitCode::Usage as u8 } else { 0 }
}

/// A verb's failure: one line with what happened, why, and what to do next.
#[derive(Debug)]
pub struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// A failure with exit code 1.
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: 1 }
    }

    /// The same failure with this code where it had 1, which means something else to its verb.
    pub(crate) fn instead_of_1(self, code: u8) -> Failure {
        Failure { code: if self.code == 1 { code } else { self.code }, ..self }
    }

    /// A failure with this exit code.
    pub(crate) fn with_code(text: impl Into<String>, code: u8) -> Failure {
        Failure { text: text.into(), code }
    }

    /// A failure of whoever wrote the command line.
    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: ExitCode::Usage as u8 }
    }

    /// A failure of hob itself.
    pub(crate) fn lost(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: ExitCode::Lost as u8 }
    }
}

/// Writes a text for a person to stdout.
pub(crate) fn out(text: &str) -> Result<(), Failure> {
    read_enough(say::page(text, Look::of_stdout().layout())).map(|_| ())
}

/// The same of JSON.
pub(crate) fn out_json(text: &str) -> Result<(), Failure> {
    read_enough(say::json(text)).map(|_| ())
}

/// The same of what is no text.
pub(crate) fn out_bytes(bytes: &[u8]) -> Result<(), Failure> {
    read_enough(say::raw(say::Stream::Out, bytes)).map(|_| ())
}

/// What became of a write to stdout. A reader that has seen enough (`hob log | head`) is no failure.
pub(crate) fn read_enough(written: std::io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::HasLeft),
        Err(error) => Err(Failure::new(format!("cannot write to stdout: {error}"))),
    }
}

/// Whether anybody reads what is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Reads,
    HasLeft,
}
