//! From what the caller typed to the first file: a module, a path, a script in the working
//! directory, or a command on `PATH`.
//!
//! A file whose name makes it a script of a hosted runtime need not be executable; any other file
//! must be, as without hob.

use hob_runtimes::{Runtime, by_suffix};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::ResolveError;
use crate::own;
use crate::search::search;
use crate::walk::{Stage, by_choice, from_interpreter, walk};
use crate::world::{Head, World};
use crate::{Program, interpreter};

/// Resolves what stood after the options of `hob run`.
pub(crate) fn resolve(argv: &[&[u8]], world: &mut World<'_>) -> Result<Program, ResolveError> {
    let (name, arguments) = argv.split_first().ok_or(ResolveError::NoProgram)?;
    if *name == b"-m" {
        return module(arguments, world);
    }
    let in_cwd = by_suffix(name).is_some() && world.is(name, FileType::RegularFile);
    if name.contains(&b'/') || in_cwd {
        return path(name, argv, world);
    }
    let file = search(world, name)?;
    let argv: Vec<Vec<u8>> = argv.iter().map(|word| word.to_vec()).collect();
    let mut program = match world.head(&file) {
        Ok(head) => walk(world, Stage::new(file, argv), head)?,
        // Executable, but not readable: nobody can know what it is.
        Err(_) => Program::exec(file, argv, None),
    };
    if !program.is_hosted() {
        own::guard(world, name, &mut program);
    }
    Ok(program)
}

fn module(arguments: &[&[u8]], world: &mut World<'_>) -> Result<Program, ResolveError> {
    let name = arguments.first().ok_or(ResolveError::NoModule)?;
    if name.is_empty() {
        return Err(ResolveError::NoModule);
    }
    let row = hob_runtimes::hosting_modules().ok_or(ResolveError::NoModule)?;
    let cwd = world.cwd_path().to_vec();
    let interpreter = interpreter::choose(world, row, &cwd)?;
    let mut argv = vec![interpreter.name, b"-m".to_vec()];
    argv.extend(arguments.iter().map(|word| word.to_vec()));
    from_interpreter(world, Stage::new(interpreter.file, argv))
}

/// A file named by its path.
fn path(name: &[u8], argv: &[&[u8]], world: &mut World<'_>) -> Result<Program, ResolveError> {
    let hosted = by_suffix(name);
    let words = || argv.iter().map(|word| word.to_vec()).collect();
    let head = match world.head(name) {
        Ok(head) => head,
        Err(Errno::NOENT | Errno::NOTDIR) => {
            return Err(ResolveError::NotFound { name: name.to_vec() });
        }
        Err(Errno::ACCESS) if hosted.is_none() && world.may_execute(name).is_ok() => {
            return Ok(Program::exec(name.to_vec(), words(), None));
        }
        // Not the file, but the way to look at it is refused: whoever executes it will see.
        Err(Errno::PERM | Errno::NOSYS) if hosted.is_none() => {
            return Ok(Program::exec(name.to_vec(), words(), None));
        }
        Err(errno) => return Err(ResolveError::Unreadable { path: name.to_vec(), errno }),
    };
    if head.file_type() == FileType::Directory {
        return Err(ResolveError::IsDirectory { path: name.to_vec() });
    }
    if head.file_type() != FileType::RegularFile {
        let why = "it is not a regular file";
        return Err(ResolveError::NotExecutable { path: name.to_vec(), why });
    }
    if let Some(row) = hosted {
        return script(row, name, argv, head, world);
    }
    if world.may_execute(name).is_err() {
        let why = "permission denied";
        return Err(ResolveError::NotExecutable { path: name.to_vec(), why });
    }
    walk(world, Stage::new(name.to_vec(), words()), head)
}

/// A file that its name makes a script of a runtime: its `#!` line decides if it leads to that, or
/// if the file is executable; else the caller's interpreter does.
fn script(
    row: &Runtime,
    name: &[u8],
    argv: &[&[u8]],
    head: Head,
    world: &mut World<'_>,
) -> Result<Program, ResolveError> {
    if head.bytes().starts_with(b"#!") {
        let words = argv.iter().map(|word| word.to_vec()).collect();
        let walked = walk(world, Stage::new(name.to_vec(), words), head);
        let leads = walked.as_ref().is_ok_and(|program| program.runtime == row.id);
        if leads || world.may_execute(name).is_ok() {
            return walked;
        }
    }
    let arguments: Vec<Vec<u8>> = argv[1..].iter().map(|word| word.to_vec()).collect();
    by_choice(world, row, name, &arguments)
}
