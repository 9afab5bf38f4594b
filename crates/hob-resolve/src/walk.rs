//! From a file to what finally runs: through `#!` lines, `env`, pip's preamble and pyenv shims,
//! to an interpreter with its command line, or to the conclusion that it is simply executed.
//!
//! Each step replaces (file, argv) as the kernel, `env` or the shim would. As soon as a step is
//! not understood wholly the answer is the *first* file with its own argv: the real chain then
//! does what it does.

use hob_runtimes::{
    CommandLine, Expanded, Runtime, Start, Written, by_interpreter, by_suffix, first_hosted,
};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::interpreter;
use crate::search::search;
use crate::world::{Head, World, base_name, dir_name, join};
use crate::{ColdNote, EnvChanges, Program, Target, TargetKind, WorkingDirectory};
use crate::{ResolveError, pyenv, shebang, split};

/// How many steps are followed. Linux follows five `#!` lines; shims and `env` add their own.
const STEPS_MAX: usize = 8;

/// Where `env` is; only there is it known to be `env`.
const ENV_FILES: [&[u8]; 2] = [b"/usr/bin/env", b"/bin/env"];

/// A file about to be executed with an argv.
pub(crate) struct Stage {
    pub(crate) file: Vec<u8>,
    pub(crate) argv: Vec<Vec<u8>>,
    /// Where it began: what is executed when a step is not understood.
    first: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// The file that the last step read a `#!` line from; it need not be looked at again.
    script: Option<Vec<u8>>,
}

impl Stage {
    /// The beginning of a walk.
    pub(crate) fn new(file: Vec<u8>, argv: Vec<Vec<u8>>) -> Stage {
        Stage { file, argv, first: None, script: None }
    }

    /// The next step: another file with another argv.
    fn advance(&mut self, file: Vec<u8>, argv: Vec<Vec<u8>>) {
        let file = std::mem::replace(&mut self.file, file);
        let argv = std::mem::replace(&mut self.argv, argv);
        self.first.get_or_insert((file, argv));
    }

    /// The first file as it is. What skipped shims would have changed they will change.
    fn exec(self, world: &mut World<'_>, note: Option<ColdNote>) -> Program {
        world.set.clear();
        world.unset.clear();
        let (file, argv) = self.first.unwrap_or((self.file, self.argv));
        Program::exec(file, argv, note)
    }
}

/// What a `#!` line leads to.
enum Next {
    /// This file, with these words before the script.
    Run { file: Vec<u8>, words: Vec<Vec<u8>> },
    /// hob itself: `#!/usr/bin/env -S hob run`.
    Hob,
    /// Something that is only executed.
    Unknown,
}

/// Follows the file to what runs.
pub(crate) fn walk(
    world: &mut World<'_>,
    mut stage: Stage,
    mut head: Head,
) -> Result<Program, ResolveError> {
    for _ in 0..STEPS_MAX {
        let bytes = head.bytes();
        if bytes.starts_with(b"\x7fELF") {
            return Ok(elf(world, stage, &head));
        }
        if let Some(shim) = pyenv::Shim::parse(&head) {
            let Some(real) = pyenv::resolve(world, &shim, &stage.file, &stage.argv) else {
                return Ok(stage.exec(world, Some(ColdNote::Shim)));
            };
            let mut argv = stage.argv.clone();
            argv[0].clone_from(&real);
            stage.advance(real, argv);
        } else {
            if shebang::polyglot(bytes).is_some() {
                note_shell(world);
            }
            if hob_runtimes::rows().any(|row| (row.is_archive)(start(&stage.file, &head))) {
                return Ok(stage.exec(world, Some(ColdNote::Archive)));
            }
            let (file, mut argv) = match next(world, &stage.file, bytes)? {
                Next::Run { file, words } => (file, words),
                Next::Hob => {
                    let row = by_suffix(&stage.file).or_else(first_hosted);
                    let row = row.ok_or(ResolveError::NoProgram)?;
                    return by_choice(world, row, &stage.file, &stage.argv[1..]);
                }
                Next::Unknown => return Ok(stage.exec(world, None)),
            };
            argv.push(stage.file.clone());
            argv.extend_from_slice(&stage.argv[1..]);
            stage.script = Some(stage.file.clone());
            stage.advance(file, argv);
        }
        head = match world.head(&stage.file) {
            Ok(head) => head,
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(broken(stage)),
            Err(_) => return Ok(stage.exec(world, None)),
        };
        if head.file_type() != FileType::RegularFile || world.may_execute(&stage.file).is_err() {
            let why = "it is named as an interpreter, but is not executable";
            return Err(ResolveError::NotExecutable { path: stage.file, why });
        }
    }
    Ok(stage.exec(world, None))
}

/// What any shell leaves behind when it executes something in its place: `PWD`.
fn note_shell(world: &mut World<'_>) {
    let kept = world.var(b"PWD").is_some_and(|path| path.starts_with(b"/") && world.is_cwd(path));
    if !kept {
        let path = world.cwd_path().to_vec();
        world.set.push((b"PWD".to_vec(), path));
    }
}

/// The step to a file that is not there.
fn broken(stage: Stage) -> ResolveError {
    match stage.script {
        Some(path) => ResolveError::BrokenShebang { path, interpreter: stage.file },
        None => ResolveError::NotFound { name: stage.file },
    }
}

/// Reads the `#!` line, and `env`'s words behind it.
fn next(world: &World<'_>, script: &[u8], bytes: &[u8]) -> Result<Next, ResolveError> {
    if let Some(file) = shebang::polyglot(bytes) {
        return Ok(Next::Run { file: file.to_vec(), words: vec![file.to_vec()] });
    }
    let Some(line) = shebang::parse(bytes) else { return Ok(Next::Unknown) };
    if ENV_FILES.contains(&line.interpreter) {
        return through_env(world, script, line.argument.unwrap_or_default());
    }
    let named = line.interpreter;
    if base_name(named) == b"hob" && line.argument.is_some_and(|word| word.starts_with(b"run")) {
        return Ok(Next::Hob);
    }
    let mut words = vec![named.to_vec()];
    words.extend(line.argument.map(<[u8]>::to_vec));
    Ok(Next::Run { file: named.to_vec(), words })
}

/// What `env ARGUMENT SCRIPT ...` executes. Only a plain name, or `-S` with a name and its
/// arguments, is understood; options and assignments are `env`'s own business.
fn through_env(world: &World<'_>, script: &[u8], argument: &[u8]) -> Result<Next, ResolveError> {
    let string = argument.strip_prefix(b"-S").or_else(|| argument.strip_prefix(b"--split-string="));
    let words = match string {
        Some(string) => split::words(string, &|name| world.var(name)),
        None => Some(vec![argument.to_vec()]),
    };
    let Some(words) = words else { return Ok(Next::Unknown) };
    let Some(name) = words.first() else { return Ok(Next::Unknown) };
    if name.is_empty() || name.starts_with(b"-") || name.contains(&b'=') {
        return Ok(Next::Unknown);
    }
    if base_name(name) == b"hob" && words.get(1).is_some_and(|word| word == b"run") {
        return Ok(Next::Hob);
    }
    let file = if name.contains(&b'/') {
        name.clone()
    } else {
        match search(world, name) {
            Ok(file) => file,
            Err(ResolveError::NotFound { name }) => {
                let path = script.to_vec();
                return Err(ResolveError::BrokenShebang { path, interpreter: name });
            }
            Err(refused) => return Err(refused),
        }
    };
    Ok(Next::Run { file, words })
}

/// A script that names no interpreter of its own, in the one that [`interpreter::choose`] finds.
pub(crate) fn by_choice(
    world: &mut World<'_>,
    row: &Runtime,
    script: &[u8],
    arguments: &[Vec<u8>],
) -> Result<Program, ResolveError> {
    let path = world.absolute(script);
    let interpreter = interpreter::choose(world, row, dir_name(&path).unwrap_or_default())?;
    // A name that begins with a dash would be an option to the interpreter.
    let named = if script.starts_with(b"-") { join(b".", script) } else { script.to_vec() };
    let mut argv = vec![interpreter.name, named];
    argv.extend_from_slice(arguments);
    from_interpreter(world, Stage::new(interpreter.file, argv))
}

/// An interpreter with an argv, or a shim in its place that leads to one.
pub(crate) fn from_interpreter(
    world: &mut World<'_>,
    stage: Stage,
) -> Result<Program, ResolveError> {
    match world.head(&stage.file) {
        Ok(head) => walk(world, stage, head),
        Err(_) => Ok(Program::exec(stage.file, stage.argv, None)),
    }
}

/// A binary: an interpreter with its command line, or anything else.
fn elf(world: &mut World<'_>, mut stage: Stage, head: &Head) -> Program {
    if head.is_set_id() {
        return stage.exec(world, Some(ColdNote::SetId));
    }
    // The name that counts is the last link's: version managers put one binary of their own
    // behind the names of all interpreters.
    let Some(row) = head.real_name().and_then(|name| by_interpreter(&name)) else {
        return stage.exec(world, None);
    };
    // An interpreter looks itself up on `PATH` by a bare name, and would find our shim there: it
    // would then take the shim's directory for its own, and miss its virtual environment.
    if stage.file.starts_with(b"/") && world.is_shimmed(&stage.argv[0]) {
        stage.argv[0].clone_from(&stage.file);
    }
    // Found in a relative entry of `PATH`, the interpreter cannot say where it is.
    if !stage.file.starts_with(b"/") && !stage.argv[0].contains(&b'/') {
        return stage.exec(world, None);
    }
    let expanded = match (row.expand)(&stage.argv[1..], &|name| world.text(name)) {
        Ok(expanded) => expanded,
        Err(note) => return stage.exec(world, Some(note)),
    };
    let words = expanded.as_ref().map_or(&stage.argv[1..], |expanded| &expanded.words);
    let line = match (row.parse)(words) {
        Ok(line) => line,
        Err(note) => return stage.exec(world, Some(note)),
    };
    if (row.is_talking)(&|name| world.var(name)) {
        return stage.exec(world, Some(ColdNote::UnknownOption));
    }
    if line.kind == TargetKind::Script && stage.script.as_ref() != Some(&line.target) {
        match world.head(&line.target) {
            Err(_) => return stage.exec(world, Some(ColdNote::ScriptMissing)),
            // A pipe gives its text once, to who runs it.
            Ok(head) if head.file_type() != FileType::RegularFile => {
                return stage.exec(world, Some(ColdNote::Archive));
            }
            Ok(head) if (row.is_archive)(start(&line.target, &head)) => {
                return stage.exec(world, Some(ColdNote::Archive));
            }
            Ok(_) => {}
        }
    }
    hosted(world, row, &stage, line, expanded)
}

/// What the caller wrote of this: a word that is an argument file says all that is in it.
fn written(stage: &Stage, used: usize, expanded: &Expanded) -> Written {
    let of_target = expanded.ends.iter().position(|end| *end >= used);
    let at = of_target.unwrap_or_else(|| expanded.passed.saturating_sub(1));
    let end = expanded.ends.get(at).copied().unwrap_or(used);
    Written { words: stage.argv[..=at + 1].to_vec(), says: end - (used - 1) }
}

fn hosted(
    world: &mut World<'_>,
    row: &Runtime,
    stage: &Stage,
    line: CommandLine,
    expanded: Option<Expanded>,
) -> Program {
    let written = expanded.as_ref().map(|expanded| written(stage, line.used, expanded));
    let file = stage.file.strip_prefix(b"./").unwrap_or(&stage.file);
    let interpreter = world.absolute(file);
    let mut prefix = vec![stage.argv[0].clone()];
    prefix.extend(line.before);
    let words = expanded.as_ref().map_or(&stage.argv[1..], |expanded| &expanded.words);
    let arguments = words.get(line.used..).unwrap_or_default();
    let mut argv = vec![line.target.clone()];
    argv.extend_from_slice(arguments);
    let mut watch = std::mem::take(&mut world.watch);
    let bin = dir_name(&interpreter).unwrap_or_default();
    for beside in row.beside {
        match beside.strip_prefix(b"../") {
            Some(above) => watch.extend(dir_name(bin).map(|root| join(root, above))),
            None => watch.push(join(bin, beside)),
        }
    }
    watch.push(interpreter.clone());
    for file in expanded.iter().flat_map(|expanded| &expanded.files) {
        watch.push(world.absolute(file));
    }
    let (name, directory) = match line.kind {
        TargetKind::Module => (line.target, WorkingDirectory::Keyed),
        TargetKind::Class => {
            let keyed = (row.is_relative)(&line.options, &|name| world.var(name));
            let keyed = if keyed { WorkingDirectory::Keyed } else { WorkingDirectory::Free };
            (line.target, keyed)
        }
        TargetKind::Script | TargetKind::Bare | TargetKind::Installed => {
            let target = world.absolute(&line.target);
            watch.push(target.clone());
            // An interpreter that opens its script when it starts does so where its caller is.
            let here = row.is_named && !line.target.starts_with(b"/");
            let keyed = here || (row.is_relative)(&line.options, &|name| world.var(name));
            (target, if keyed { WorkingDirectory::Keyed } else { WorkingDirectory::Free })
        }
    };
    let env =
        EnvChanges { set: std::mem::take(&mut world.set), unset: std::mem::take(&mut world.unset) };
    let target = Target { kind: line.kind, name };
    let is_class = line.kind == TargetKind::Class;
    let (options, note) = (line.options, None);
    let mut program = Program {
        runtime: row.id,
        interpreter,
        prefix,
        options,
        target,
        argv,
        written,
        env,
        directory,
        watch,
        note,
    };
    // What its first arguments name lies where the caller is.
    if is_class && !program.deciding().is_empty() {
        program.directory = WorkingDirectory::Keyed;
    }
    program
}

/// How a file begins, as rows look at it.
fn start<'a>(path: &'a [u8], head: &'a Head) -> Start<'a> {
    let is_directory = head.file_type() == FileType::Directory;
    Start { path, bytes: head.bytes(), is_directory }
}
