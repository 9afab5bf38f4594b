//! The runtimes' files, which travel inside the binary: where they are put, and how an
//! interpreter is started with one.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hob_resolve::{PythonProgram, TargetKind};

const PYTHON: &str = include_str!("../../../../runtimes/python/worker.py");
/// What it needs where it imports modules ahead, found beside it.
const IMPORTS: &str = include_str!("../../../../runtimes/python/imports.py");
/// What that needs in turn, found there too.
const PROMISES: &str = include_str!("../../../../runtimes/python/promises.py");
/// What it runs ahead of the standard library's, likewise.
const REHEARSAL: &str = include_str!("../../../../runtimes/python/rehearsal.py");
/// What handlers' processes have besides.
const MESSAGE: &str = include_str!("../../../../runtimes/python/message.py");
/// The library for callers, which a handler has without installing it.
const CLIENT: &str = include_str!("../../../../clients/python/hob.py");

/// The Python minor versions (3.N) that the runtime supports.
pub const PYTHON_MINORS: std::ops::RangeInclusive<u32> = 9..=14;

/// The runtimes on disk.
#[derive(Debug)]
pub(crate) struct Runtimes {
    python: PathBuf,
    imports: PathBuf,
    promises: PathBuf,
    rehearsal: PathBuf,
    message: PathBuf,
    client: PathBuf,
}

impl Runtimes {
    /// Writes them into the daemon's own directory.
    pub(crate) fn write(directory: &Path) -> std::io::Result<Runtimes> {
        let runtimes = Runtimes {
            python: directory.join("worker.py"),
            imports: directory.join("imports.py"),
            promises: directory.join("promises.py"),
            rehearsal: directory.join("rehearsal.py"),
            message: directory.join("message.py"),
            client: directory.join("python/hob.py"),
        };
        runtimes.put()?;
        Ok(runtimes)
    }

    /// Whether they are where they were put, or could be put there again: directories for
    /// temporary files are tidied up by age, and a daemon may live for weeks.
    pub(crate) fn are_there(&self) -> bool {
        self.or_put(&[&self.python, &self.imports, &self.promises, &self.rehearsal])
    }

    /// Whether those of handlers are there, likewise.
    fn are_there_for_handlers(&self) -> bool {
        self.are_there() && self.or_put(&[&self.message, &self.client])
    }

    fn or_put(&self, files: &[&PathBuf]) -> bool {
        let there = |path: &&PathBuf| {
            rustix::fs::access(path.as_path(), rustix::fs::Access::READ_OK).is_ok()
        };
        files.iter().all(there) || self.put().is_ok()
    }

    /// The executable file and the argv of a process that hosts a handler in this interpreter.
    pub(crate) fn handler(
        &self,
        program: &PythonProgram,
    ) -> std::io::Result<(Vec<u8>, Vec<Vec<u8>>)> {
        if !self.are_there_for_handlers() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok((program.interpreter.clone(), self.serving(program)))
    }

    fn put(&self) -> std::io::Result<()> {
        if let Some(directory) = self.client.parent() {
            match std::fs::DirBuilder::new().mode(0o700).create(directory) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error);
                }
                Ok(()) | Err(_) => {}
            }
        }
        put(&self.imports, IMPORTS)?;
        put(&self.promises, PROMISES)?;
        put(&self.rehearsal, REHEARSAL)?;
        put(&self.message, MESSAGE)?;
        put(&self.client, CLIENT)?;
        put(&self.python, PYTHON)
    }

    /// The argv of a zygote or standby: the interpreter as the caller names it, its options, the
    /// runtime.
    pub(crate) fn serve(&self, program: &PythonProgram) -> std::io::Result<Vec<Vec<u8>>> {
        if !self.are_there() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok(self.serving(program))
    }

    fn serving(&self, program: &PythonProgram) -> Vec<Vec<u8>> {
        let mut argv = self.interpreter(program);
        if argv[0].contains(&b'/') {
            // A relative name would be looked up in the zygote's own directory.
            argv[0].clone_from(&program.interpreter);
        }
        argv.push(b"serve".to_vec());
        argv
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

    fn interpreter(&self, program: &PythonProgram) -> Vec<Vec<u8>> {
        let name = program.prefix.first().unwrap_or(&program.interpreter).clone();
        let mut argv = vec![name];
        argv.extend(program.options.iter().cloned());
        argv.push(bytes(&self.python));
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
