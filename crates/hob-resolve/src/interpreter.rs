//! Which interpreter runs a program that names none: a script without a `#!` line, or `-m`.
//!
//! In this order, as the row says: the active environment, one beside or above the program, the
//! interpreter's names on `PATH`. An environment of another user is passed over: a directory that
//! others may write to (`/tmp`) must not decide what the caller executes.

use hob_runtimes::{Environments, Runtime};

use crate::ResolveError;
use crate::search::search;
use crate::world::{World, dir_name, join};

/// How many directories above the program are looked at.
const LEVELS_MAX: usize = 64;

/// An interpreter's file, and its name as `argv[0]`.
pub(crate) struct Interpreter {
    pub(crate) file: Vec<u8>,
    pub(crate) name: Vec<u8>,
}

/// Chooses for a program whose directory is `dir`, an absolute path.
pub(crate) fn choose(
    world: &World<'_>,
    row: &Runtime,
    dir: &[u8],
) -> Result<Interpreter, ResolveError> {
    if let Some(file) = row.environments.and_then(|known| in_environment(world, known, dir)) {
        let file = world.absolute(&file);
        return Ok(Interpreter { name: file.clone(), file });
    }
    let mut first = None;
    for name in row.commands {
        match search(world, name) {
            Ok(file) => return Ok(Interpreter { file, name: name.to_vec() }),
            Err(error) => _ = first.get_or_insert(error),
        }
    }
    Err(first.unwrap_or_else(|| ResolveError::NotFound { name: row.name.into() }))
}

fn in_environment(world: &World<'_>, known: Environments, dir: &[u8]) -> Option<Vec<u8>> {
    let active = world.full_var(known.variable).map(|root| join(root, known.interpreter));
    let active = active.filter(|file| world.may_execute(file).is_ok());
    active.or_else(|| beside_or_above(world, known, dir))
}

fn beside_or_above(world: &World<'_>, known: Environments, dir: &[u8]) -> Option<Vec<u8>> {
    let mut dir = Some(dir);
    for _ in 0..LEVELS_MAX {
        let here = dir?;
        let root = join(here, known.beside);
        let file = join(&root, known.interpreter);
        if world.may_execute(&file).is_ok() && is_trusted(world, &root) {
            return Some(file);
        }
        dir = dir_name(here).filter(|_| !here.is_empty());
    }
    None
}

fn is_trusted(world: &World<'_>, root: &[u8]) -> bool {
    let owner = world.stat(root).map(|stat| stat.st_uid);
    owner.is_ok_and(|uid| uid == 0 || uid == rustix::process::geteuid().as_raw())
}
