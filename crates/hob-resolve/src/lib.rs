//! What would run: from argv, environment and working directory to a program.
//!
//! Owns: the search along `PATH`, the reading of `#!` lines as the kernel and `env` read them,
//! the choice of an interpreter, what a version manager's shim would have done, and that hob's own
//! shims are passed over. What it must know of a language it asks the table (`hob-runtimes`).
//! The client's cold path and the daemon ask the same question here, so they cannot disagree.
//!
//! Invariants:
//! - nothing is executed and nothing is written; a few system calls per call, no cache.
//! - what is not understood wholly is executed: exactly what the caller named.
//! - paths and arguments are bytes; relative ones are looked up from the caller's directory,
//!   never from this process's.
//!
//! Deliberately not here: whether a program is run warm, and anything about the environment beyond what a skipped shim would have changed.
#![forbid(unsafe_code)]

mod direct;
mod error;
mod interpreter;
pub mod near;
mod own;
mod pyenv;
mod search;
mod shebang;
mod split;
mod walk;
mod world;

pub use error::ResolveError;
pub use hob_runtimes::{
    ColdNote, EnvChanges, Lookup, Program, Target, TargetKind, WorkingDirectory,
};
pub use own::is_hob;
pub use world::Noted;

use rustix::fd::BorrowedFd;

/// What would run if the caller executed `argv` in `cwd` with this environment.
///
/// `argv` is what stood after the options of `hob run`: a path, a command, or `-m MODULE`.
pub fn resolve<'a>(
    argv: &[&[u8]],
    env: Lookup<'a>,
    cwd: BorrowedFd<'a>,
) -> Result<Program, ResolveError> {
    direct::resolve(argv, &mut world::World::new(env, cwd))
}

/// The same, with what the answer depended on, for who wants to remember it.
pub fn resolve_noting<'a>(
    argv: &[&[u8]],
    env: Lookup<'a>,
    cwd: BorrowedFd<'a>,
) -> (Result<Program, ResolveError>, Noted) {
    let mut world = world::World::noting(env, cwd);
    let program = direct::resolve(argv, &mut world);
    (program, world.into_noted())
}

/// The file that a command's name leads to on `PATH`, hob's own shims passed over.
pub fn find<'a>(
    name: &[u8],
    env: Lookup<'a>,
    cwd: BorrowedFd<'a>,
) -> Result<Vec<u8>, ResolveError> {
    search::search(&world::World::new(env, cwd), name)
}
