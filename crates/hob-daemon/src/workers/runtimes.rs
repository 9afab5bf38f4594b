//! The runtimes' files, which travel inside the binary: where they are put, and how an
//! interpreter is started with one. What is particular to a language its row knows.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_resolve::Program;
use hob_runtimes::{File, Files, Mode};

/// The files of all rows, those of sessions too.
fn files() -> impl Iterator<Item = &'static File> {
    let sessions = hob_runtimes::with_sessions().flat_map(|row| row.files);
    hob_runtimes::rows().flat_map(|row| row.files).chain(sessions)
}

/// Whether a name in the daemon's directory is that of a runtime's file, whole or half written.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    let whole = name.strip_suffix(NEW.as_bytes()).unwrap_or(name);
    files().any(|(file, _)| file.as_bytes() == whole)
}

/// The directories, below the daemon's, that runtimes' files are in, with the files' names.
pub(crate) fn folders() -> impl Iterator<Item = (&'static str, &'static str)> {
    files().filter_map(|(file, _)| file.rsplit_once('/'))
}

/// What a file's name ends in while it is written.
pub(crate) const NEW: &str = ".new";

/// The runtimes on disk.
#[derive(Debug)]
pub(crate) struct Runtimes {
    directory: PathBuf,
    /// Where interpreters keep them compiled, if there is such a place.
    bytecode: Option<PathBuf>,
}

/// The folder of what interpreters have compiled, in the state directory.
const BYTECODE: &str = "bytecode";
/// How long that is kept. Each build and each interpreter has its own, and nobody says when they
/// are gone.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

impl Runtimes {
    /// Writes them into the daemon's own directory.
    pub(crate) fn write(directory: &Path, state: Option<&Path>) -> std::io::Result<Runtimes> {
        let bytecode = state.map(|state| state.join(BYTECODE)).filter(|folder| {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.is_ok()
        });
        if let Some(folder) = &bytecode {
            forget_old(folder);
        }
        let runtimes = Runtimes { directory: directory.to_owned(), bytecode };
        runtimes.put()?;
        Ok(runtimes)
    }

    /// Whether they are where they were put, or could be put there again: directories for
    /// temporary files are tidied up by age, and a daemon may live for weeks.
    pub(crate) fn are_there(&self) -> bool {
        let there = |name: &str| {
            rustix::fs::access(self.directory.join(name), rustix::fs::Access::READ_OK).is_ok()
        };
        files().all(|(name, _)| there(name)) || self.put().is_ok()
    }

    fn put(&self) -> std::io::Result<()> {
        for (name, bytes) in files() {
            let path = self.directory.join(name);
            if let Some(directory) = path.parent().filter(|parent| *parent != self.directory) {
                match std::fs::DirBuilder::new().mode(0o700).create(directory) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            put(&path, bytes)?;
        }
        Ok(())
    }

    /// The argv of a zygote or standby of a program.
    pub(crate) fn serve(&self, program: &Program) -> std::io::Result<Vec<Vec<u8>>> {
        self.start(program, Mode::Serve)
    }

    /// The same of a handler, whose program is its interpreter.
    pub(crate) fn handler(&self, program: &Program) -> std::io::Result<Vec<Vec<u8>>> {
        self.start(program, Mode::Handler)
    }

    /// The argv of a learning run, which the client executes in its own place.
    pub(crate) fn learn(&self, program: &Program, notes: &Path) -> Vec<Vec<u8>> {
        self.command(program, Mode::Learn(&bytes(notes)))
    }

    fn start(&self, program: &Program, mode: Mode<'_>) -> std::io::Result<Vec<Vec<u8>>> {
        if !self.are_there() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok(self.command(program, mode))
    }

    fn command(&self, program: &Program, mode: Mode<'_>) -> Vec<Vec<u8>> {
        let folder = bytes(&self.directory);
        let bytecode = self.bytecode.as_deref().map(bytes).unwrap_or_default();
        program.command(Files { folder: &folder, bytecode: &bytecode }, mode)
    }
}

/// Removes what was compiled long ago. What cannot be removed stays.
fn forget_old(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified());
        let age = age.ok().and_then(|then| then.elapsed().ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Puts a file in its place, whole.
fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(NEW);
    let fresh = PathBuf::from(fresh);
    let _ = std::fs::remove_file(&fresh);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    std::fs::rename(&fresh, path)
}

/// A path as bytes.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}
