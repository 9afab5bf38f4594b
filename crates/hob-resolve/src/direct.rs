//! From what the caller typed to the first file: a module, a path, a script in the working
//! directory, or a command on `PATH`.
//!
//! A `.py` file is a Python script even when it is not executable; any other file must be
//! executable, as without hob.

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::ResolveError;
use crate::own;
use crate::program::{ExecProgram, Program};
use crate::venv;
use crate::walk::{Stage, search, walk};
use crate::world::{Head, World, dir_name, join};

/// Whether a file's name alone makes it a Python script.
fn is_python_file(name: &[u8]) -> bool {
    name.ends_with(b".py") || name.ends_with(b".pyw")
}

/// Resolves what stood after the options of `hob run`.
pub(crate) fn resolve(argv: &[&[u8]], world: &mut World<'_>) -> Result<Program, ResolveError> {
    let (name, arguments) = argv.split_first().ok_or(ResolveError::NoProgram)?;
    if *name == b"-m" {
        return module(arguments, world);
    }
    let in_cwd = is_python_file(name) && world.is(name, FileType::RegularFile);
    if name.contains(&b'/') || in_cwd {
        return path(name, argv, world);
    }
    let file = search(world, name)?;
    let argv: Vec<Vec<u8>> = argv.iter().map(|word| word.to_vec()).collect();
    let mut program = match world.head(&file) {
        Ok(head) => walk(world, Stage::new(file, argv), head)?,
        // Executable, but not readable: nobody can know what it is.
        Err(_) => exec(file, argv),
    };
    if let Program::Exec(exec) = &mut program {
        own::guard(world, name, exec);
    }
    Ok(program)
}

fn exec(file: Vec<u8>, argv: Vec<Vec<u8>>) -> Program {
    Program::Exec(ExecProgram { file, argv, set: Vec::new(), note: None })
}

fn module(arguments: &[&[u8]], world: &mut World<'_>) -> Result<Program, ResolveError> {
    let name = arguments.first().ok_or(ResolveError::NoModule)?;
    if name.is_empty() {
        return Err(ResolveError::NoModule);
    }
    let cwd = world.cwd_path().to_vec();
    let interpreter = venv::choose(world, &cwd)?;
    let mut argv = vec![interpreter.name, b"-m".to_vec()];
    argv.extend(arguments.iter().map(|word| word.to_vec()));
    from_interpreter(world, Stage::new(interpreter.file, argv))
}

/// A file named by its path.
fn path(name: &[u8], argv: &[&[u8]], world: &mut World<'_>) -> Result<Program, ResolveError> {
    let python = is_python_file(name);
    let words = || argv.iter().map(|word| word.to_vec()).collect();
    let head = match world.head(name) {
        Ok(head) => head,
        Err(Errno::NOENT | Errno::NOTDIR) => {
            return Err(ResolveError::NotFound { name: name.to_vec() });
        }
        Err(Errno::ACCESS) if !python && world.may_execute(name).is_ok() => {
            return Ok(exec(name.to_vec(), words()));
        }
        // Not the file, but the way to look at it is refused: whoever executes it will see.
        Err(Errno::PERM | Errno::NOSYS) if !python => return Ok(exec(name.to_vec(), words())),
        Err(errno) => return Err(ResolveError::Unreadable { path: name.to_vec(), errno }),
    };
    if head.file_type() == FileType::Directory {
        return Err(ResolveError::IsDirectory { path: name.to_vec() });
    }
    if head.file_type() != FileType::RegularFile {
        let why = "it is not a regular file";
        return Err(ResolveError::NotExecutable { path: name.to_vec(), why });
    }
    if python {
        return python_file(name, argv, head, world);
    }
    if world.may_execute(name).is_err() {
        let why = "permission denied";
        return Err(ResolveError::NotExecutable { path: name.to_vec(), why });
    }
    walk(world, Stage::new(name.to_vec(), words()), head)
}

/// A file that its name makes a Python script: its `#!` line decides if it leads to Python, or
/// if the file is executable; else the caller's interpreter does.
fn python_file(
    name: &[u8],
    argv: &[&[u8]],
    head: Head,
    world: &mut World<'_>,
) -> Result<Program, ResolveError> {
    if head.bytes().starts_with(b"#!") {
        let words = argv.iter().map(|word| word.to_vec()).collect();
        let walked = walk(world, Stage::new(name.to_vec(), words), head);
        if matches!(walked, Ok(Program::Python(_))) || world.may_execute(name).is_ok() {
            return walked;
        }
    }
    let arguments: Vec<Vec<u8>> = argv[1..].iter().map(|word| word.to_vec()).collect();
    by_choice(world, name, &arguments)
}

/// A script that names no interpreter of its own, in the one that [`venv::choose`] finds.
pub(crate) fn by_choice(
    world: &mut World<'_>,
    script: &[u8],
    arguments: &[Vec<u8>],
) -> Result<Program, ResolveError> {
    let path = world.absolute(script);
    let interpreter = venv::choose(world, dir_name(&path).unwrap_or_default())?;
    // A name that begins with a dash would be an option to the interpreter.
    let named = if script.starts_with(b"-") { join(b".", script) } else { script.to_vec() };
    let mut argv = vec![interpreter.name, named];
    argv.extend_from_slice(arguments);
    from_interpreter(world, Stage::new(interpreter.file, argv))
}

fn from_interpreter(world: &mut World<'_>, stage: Stage) -> Result<Program, ResolveError> {
    match world.head(&stage.file) {
        Ok(head) => walk(world, stage, head),
        Err(_) => Ok(exec(stage.file, stage.argv)),
    }
}
