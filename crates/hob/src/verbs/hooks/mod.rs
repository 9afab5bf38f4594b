//! `hob hooks`: a directory of executable files, run one after another for one target or for
//! thousands. What that means is `docs/hooks.md`'s; how it is done is `hob_hooks`'.

mod adopt;
mod dry;
mod foreach;
mod list;
mod options;
mod perform;
mod progress;
mod receipt;
mod report;
mod resume;
mod run;
mod screen;
mod summary;
mod tag;
mod tally;
mod targets;

use std::ffi::OsString;

use clap::Subcommand;
use hob_core::hooks::HookOutcome;
use hob_os::start::Start;

use crate::failure::Failure;

/// What to do with a hooks directory.
#[derive(Debug, Subcommand)]
pub(crate) enum Hooks {
    /// Run the hooks of a directory, one after another
    Run(Box<run::Run>),
    /// Show which files of a directory would run, in which order, and why others would not
    List(list::List),
    /// Let the hooks of a repository or of a coding agent run warm
    #[command(subcommand)]
    Adopt(adopt::Adopt),
    /// Take that back: the hooks are as they were
    Restore(adopt::Restore),
    /// Perform sets of a directory for the daemon (what it starts where a program has `hooks`)
    #[command(hide = true)]
    Perform {
        /// The hooks directory
        dir: OsString,
        /// Which variables an asker may set
        settable: Vec<String>,
    },
}

/// Runs the verb; returns its exit code.
pub(crate) fn run(start: &Start, what: &Hooks) -> Result<u8, Failure> {
    match what {
        // 1 is what a hook's own error gives.
        Hooks::Run(asked) => match &asked.many.for_each {
            Some(file) => foreach::run(start, asked, file),
            None => run::run(start, asked),
        }
        .map_err(|failure| failure.instead_of_1(HookOutcome::SystemError.exit_code())),
        Hooks::List(asked) => list::run(asked).map(|()| 0),
        Hooks::Adopt(what) => adopt::adopt(start, what),
        Hooks::Restore(of) => adopt::restore(of),
        Hooks::Perform { dir, settable } => perform::run(start, dir, settable),
    }
}
