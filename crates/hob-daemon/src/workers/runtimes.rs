//! The runtimes' files, which travel inside the binary: where they are put, and how an
//! interpreter is started with one.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hob_resolve::{PythonProgram, TargetKind};

/// What is started in an interpreter, and written last: it finds the others beside it.
const PYTHON: &str = "worker.py";
/// What is put beside it: where modules are imported ahead (`watch`, `imports`, `promises`), what is
/// run ahead of the standard library's (`rehearsal`), what each copy has anew (`anew`), what must be
/// finalised (`ends`), what handlers have besides (`message`, and the
/// library for callers, which a handler has without installing it).
const FILES: [(&str, &str); 9] = [
    ("watch.py", include_str!("../../../../runtimes/python/watch.py")),
    ("imports.py", include_str!("../../../../runtimes/python/imports.py")),
    ("promises.py", include_str!("../../../../runtimes/python/promises.py")),
    ("anew.py", include_str!("../../../../runtimes/python/anew.py")),
    ("ends.py", include_str!("../../../../runtimes/python/ends.py")),
    ("rehearsal.py", include_str!("../../../../runtimes/python/rehearsal.py")),
    ("message.py", include_str!("../../../../runtimes/python/message.py")),
    ("python/hob.py", include_str!("../../../../clients/python/hob.py")),
    (PYTHON, include_str!("../../../../runtimes/python/worker.py")),
];

/// The Python minor versions (3.N) that the runtime supports.
pub const PYTHON_MINORS: std::ops::RangeInclusive<u32> = 9..=14;

/// Whether a name in the daemon's directory is that of a runtime's file, whole or half written.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    let whole = name.strip_suffix(b".new").unwrap_or(name);
    FILES.iter().any(|(file, _)| file.as_bytes() == whole)
}

/// The runtimes on disk.
#[derive(Debug)]
pub(crate) struct Runtimes {
    directory: PathBuf,
}

impl Runtimes {
    /// Writes them into the daemon's own directory.
    pub(crate) fn write(directory: &Path) -> std::io::Result<Runtimes> {
        let runtimes = Runtimes { directory: directory.to_owned() };
        runtimes.put()?;
        Ok(runtimes)
    }

    /// Whether they are where they were put, or could be put there again: directories for
    /// temporary files are tidied up by age, and a daemon may live for weeks.
    pub(crate) fn are_there(&self) -> bool {
        let there = |name: &str| {
            rustix::fs::access(self.directory.join(name), rustix::fs::Access::READ_OK).is_ok()
        };
        FILES.iter().all(|(name, _)| there(name)) || self.put().is_ok()
    }

    /// The executable file and the argv of a process that hosts a handler in this interpreter.
    pub(crate) fn handler(
        &self,
        program: &PythonProgram,
    ) -> std::io::Result<(Vec<u8>, Vec<Vec<u8>>)> {
        Ok((program.interpreter.clone(), self.serve(program)?))
    }

    fn put(&self) -> std::io::Result<()> {
        for (name, text) in FILES {
            let path = self.directory.join(name);
            if let Some(directory) = path.parent().filter(|parent| *parent != self.directory) {
                match std::fs::DirBuilder::new().mode(0o700).create(directory) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            put(&path, text)?;
        }
        Ok(())
    }

    /// The argv of a zygote or standby: the interpreter as the caller names it, its options, the
    /// runtime.
    pub(crate) fn serve(&self, program: &PythonProgram) -> std::io::Result<Vec<Vec<u8>>> {
        if !self.are_there() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let mut argv = self.interpreter(program);
        if argv[0].contains(&b'/') {
            // A relative name would be looked up in the zygote's own directory.
            argv[0].clone_from(&program.interpreter);
        }
        argv.push(b"serve".to_vec());
        Ok(argv)
    }

    /// The argv of a learning run, which the client executes in its own place.
    pub(crate) fn learn(&self, program: &PythonProgram, notes: &Path) -> Vec<Vec<u8>> {
        let kind: &[u8] = match program.kind {
            TargetKind::Script => b"script",
            TargetKind::Module => b"module",
        };
        let mut argv = self.interpreter(program);
        argv.push(b"learn".to_vec());
        argv.push(bytes(notes));
        argv.push(kind.to_vec());
        argv.push(program.target.clone());
        argv.push(program.prefix.len().to_string().into_bytes());
        argv.extend(program.prefix.iter().cloned());
        argv.extend(program.argv.iter().cloned());
        argv
    }

    /// The interpreter is told to run no start-up code (`-S`): the runtime does that itself, and
    /// listens.
    fn interpreter(&self, program: &PythonProgram) -> Vec<Vec<u8>> {
        let name = program.prefix.first().unwrap_or(&program.interpreter).clone();
        let mut argv = vec![name];
        argv.extend(program.options.iter().cloned());
        argv.push(b"-S".to_vec());
        argv.push(bytes(&self.directory.join(PYTHON)));
        argv
    }
}

/// Puts a file in its place, whole.
fn put(path: &Path, text: &str) -> std::io::Result<()> {
    let fresh = path.with_extension("py.new");
    let _ = std::fs::remove_file(&fresh);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&fresh, path)
}

/// A path as bytes.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}
