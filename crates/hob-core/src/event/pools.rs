//! What is told and asked of pools and their processes, whatever they serve.

use crate::ids::{PoolId, ProgramId};
use hob_wire::exit::Exit;

/// Whom a pool and its processes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// The calls of a program.
    Program(ProgramId),
    /// The requests of a handler, by its pool: what comes is served here, or refused.
    Handler(PoolId),
}

impl Serves {
    /// The program whose calls it is for.
    #[must_use]
    pub fn program(self) -> Option<ProgramId> {
        match self {
            Serves::Program(program) => Some(program),
            Serves::Handler(_) => None,
        }
    }
}

/// Why a zygote did not fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkFailure {
    /// It has more than one thread. The pool becomes `standby`.
    Threads,
    /// The system refused (memory, processes).
    System,
}

/// How a copy pays for its pages before it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// A dummy call and populated pages, then ready (latency mode).
    Paid,
    /// As the fork left them, and it waits for its call all the same: for calls that come one
    /// directly after another, when there is no time to pay and a processor to fork on.
    Plain,
    /// As the fork left them (throughput mode, or on demand).
    Unpaid,
}

/// How a process came to its end that was not told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It ended, or was not ready in time.
    Itself,
    /// This signal, which nobody here has sent.
    Signal(u8),
    /// The system refused to make it.
    System,
}

impl From<Exit> for Cause {
    fn from(exit: Exit) -> Cause {
        match exit {
            Exit::Code(_) => Cause::Itself,
            Exit::Signal(signal) => Cause::Signal(signal),
        }
    }
}

/// What became of loading a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// It is loaded, and answers.
    Anew,
    /// It could not be loaded, and what was loaded before goes on.
    Kept,
    /// It could not be loaded, by this, and nothing answers.
    Not(Cause),
    /// There was nothing to load: that is done for the next message.
    Nothing,
}
