//! Virtual environments whose commands have shims: which commands these are, and which shims were made
//! for which environment.
//!
//! Owns `.venvs.json` in the folder of shims. Invariants: a name that had a shim before is no
//! environment's; the list appears whole, by a rename, and goes with its last entry.
//!
//! Deliberately not here: what a call by such a name runs. `PATH` says that, as for every shim.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hob_core::hooks::Bytes;
use hob_os::start::Start;
use serde::{Deserialize, Serialize};

use crate::verbs::named_file;

/// The name of the list's format.
const SCHEMA: &str = "hob.shim-venvs/1";
/// Its file, which no shell takes for a command.
const FILE: &str = ".venvs.json";
/// What each environment has at its top.
const MARK: &str = "pyvenv.cfg";
/// Where one usually lies in a project.
const USUAL: &str = ".venv";

/// One environment, and the shims that were made for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Venv {
    dir: Bytes,
    names: Vec<Bytes>,
}

/// All of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Venvs {
    schema: String,
    venvs: Vec<Venv>,
}

impl Venv {
    fn dir(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.dir.0))
    }

    fn has(&self, name: &OsStr) -> bool {
        self.names.iter().any(|one| one.0 == name.as_bytes())
    }
}

impl Venvs {
    /// Reads the list; one that is not there, or not hob's, is empty.
    pub(super) fn of(folder: &Path) -> Venvs {
        let text = std::fs::read(folder.join(FILE)).unwrap_or_default();
        let list: Option<Venvs> = serde_json::from_slice(&text).ok();
        list.filter(|list| list.schema == SCHEMA).unwrap_or_default()
    }

    /// The file of the command in an environment that its shim was made for.
    pub(super) fn command(&self, name: &OsStr) -> Option<PathBuf> {
        let those = self.venvs.iter().filter(|venv| venv.has(name));
        let mut files = those.map(|venv| venv.dir().join("bin").join(name));
        files.find(|file| file.exists())
    }

    /// Notes that this shim was made for this environment.
    pub(super) fn add(&mut self, dir: &Path, name: &OsStr) {
        let at = self.venvs.iter().position(|venv| venv.dir() == dir).unwrap_or_else(|| {
            let dir = Bytes::from(dir.as_os_str().as_bytes());
            self.venvs.push(Venv { dir, names: Vec::new() });
            self.venvs.len() - 1
        });
        if !self.venvs[at].has(name) {
            self.venvs[at].names.push(Bytes::from(name.as_bytes()));
        }
    }

    /// Whether a shim was made for any.
    pub(super) fn knows(&self, name: &OsStr) -> bool {
        self.venvs.iter().any(|venv| venv.has(name))
    }

    /// Forgets an environment; the shims that were made for it, and for no other. `None`: there is
    /// none of it.
    pub(super) fn remove(&mut self, dir: &Path) -> Option<Vec<OsString>> {
        let at = self.venvs.iter().position(|venv| venv.dir() == dir)?;
        let names = self.venvs.remove(at).names;
        let names = names.into_iter().map(|name| OsStr::from_bytes(&name.0).to_owned());
        Some(names.filter(|name| !self.knows(name)).collect())
    }

    /// Forgets a shim.
    pub(super) fn forget(&mut self, name: &OsStr) {
        for venv in &mut self.venvs {
            venv.names.retain(|one| one.0 != name.as_bytes());
        }
    }

    /// Writes the list.
    pub(super) fn write(&mut self, folder: &Path) -> std::io::Result<()> {
        self.venvs.retain(|venv| !venv.names.is_empty());
        let file = folder.join(FILE);
        if self.venvs.is_empty() {
            return match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        SCHEMA.clone_into(&mut self.schema);
        let text = serde_json::to_vec(self)?;
        named_file::write(&file, |out| out.write_all(&text))
    }
}

/// The environment that is meant: this directory, or the usual one in it.
pub(super) fn directory(given: &Path) -> Result<PathBuf, String> {
    let found = places(given).into_iter().find(|dir| dir.join(MARK).is_file());
    found.ok_or(format!("no virtual environment: it has no {MARK}, and no {USUAL} with one"))
}

/// Where it may be, as it is named in `PATH`: by whatever links lead there.
pub(super) fn places(given: &Path) -> Vec<PathBuf> {
    let Ok(given) = std::path::absolute(given) else { return Vec::new() };
    let given: PathBuf = given.components().collect();
    vec![given.join(USUAL), given].into_iter().rev().collect()
}

/// The commands of an environment that hob would keep warm, by name: its scripts, and no interpreter.
pub(super) fn commands(start: &Start, dir: &Path) -> Result<Vec<OsString>, String> {
    let bin = dir.join("bin");
    let entries = std::fs::read_dir(&bin).map_err(|error| error.to_string())?;
    let lookup = |name: &[u8]| start.variable(name);
    let is_warm = |name: &OsString| {
        let file = bin.join(name);
        let runs = file
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        let words = [file.as_os_str().as_bytes()];
        let program = || hob_resolve::resolve(&words, &lookup, rustix::fs::CWD);
        runs && hob_runtimes::by_interpreter(name.as_bytes()).is_none()
            && program().is_ok_and(|program| program.is_hosted())
    };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.retain(is_warm);
    names.sort();
    Ok(names)
}
