//! Which interpreter runs a program that names none: a `.py` file without a `#!` line, or `-m`.
//!
//! In this order: the active virtual environment (`VIRTUAL_ENV`), a `.venv` beside or above the
//! program, `python3` on `PATH`, `python` on `PATH`. A `.venv` of another user is passed over: a
//! directory that others may write to (`/tmp`) must not decide what the caller executes.

use crate::ResolveError;
use crate::walk::search;
use crate::world::{World, dir_name, join};

/// How many directories above the program are looked at.
const LEVELS_MAX: usize = 64;

/// An interpreter's file, and its name as `argv[0]`.
pub(crate) struct Interpreter {
    pub(crate) file: Vec<u8>,
    pub(crate) name: Vec<u8>,
}

/// Chooses for a program whose directory is `dir`, an absolute path.
pub(crate) fn choose(world: &World<'_>, dir: &[u8]) -> Result<Interpreter, ResolveError> {
    let active = world.full_var(b"VIRTUAL_ENV").map(|root| join(root, b"bin/python"));
    let active = active.filter(|file| world.may_execute(file).is_ok());
    if let Some(file) = active.or_else(|| beside_or_above(world, dir)) {
        let file = world.absolute(&file);
        return Ok(Interpreter { name: file.clone(), file });
    }
    let name: &[u8] = b"python3";
    match search(world, name) {
        Ok(file) => Ok(Interpreter { file, name: name.to_vec() }),
        Err(error) => {
            let name = b"python";
            let file = search(world, name).map_err(|_| error)?;
            Ok(Interpreter { file, name: name.to_vec() })
        }
    }
}

fn beside_or_above(world: &World<'_>, dir: &[u8]) -> Option<Vec<u8>> {
    let mut dir = Some(dir);
    for _ in 0..LEVELS_MAX {
        let here = dir?;
        let root = join(here, b".venv");
        let file = join(&root, b"bin/python");
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
