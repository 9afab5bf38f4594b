//! The one folder of shims: where it is, what lies in it, and whether each shim does what it was
//! made for.
//!
//! Invariants: only a link whose target is named as hob is counts as a shim; whatever else lies in
//! the folder is somebody else's and is neither listed nor touched. Looking changes nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fd::AsFd;

use hob_os::process;
use hob_os::start::Start;

use super::venv::Venvs;

/// Where shims are.
#[derive(Debug)]
pub(crate) struct Folder {
    /// The folder, which may not exist yet.
    pub(crate) dir: PathBuf,
    /// Its place among the entries of `PATH`, if it is one.
    pub(crate) place: Option<usize>,
    /// `PATH`'s entries.
    path: Vec<PathBuf>,
}

/// One shim.
#[derive(Debug)]
pub(crate) struct Found {
    /// The command that it stands for.
    pub(crate) name: OsString,
    /// The hob that it links to.
    pub(crate) target: PathBuf,
    /// The command's own file, if there is one: on `PATH`, or in an environment that is not.
    pub(crate) command: Option<PathBuf>,
    /// What it does now.
    pub(crate) state: State,
}

/// Whether a shim does what it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Calls by the name are hob's.
    Works,
    /// The hob that it links to is gone: calls by the name fail.
    Dangling,
    /// It was made for a virtual environment that is not on `PATH`.
    Inactive,
    /// There is no such command any more: calls by the name are answered with 127.
    NoCommand,
    /// The folder is not on `PATH`: calls by the name do not come here.
    OffPath,
    /// The command itself comes first on `PATH`.
    Shadowed,
}

impl State {
    /// The stable code, in JSON and lists.
    pub(crate) fn code(self) -> &'static str {
        match self {
            State::Works => "works",
            State::Dangling => "dangling",
            State::Inactive => "inactive",
            State::NoCommand => "no-command",
            State::OffPath => "off-path",
            State::Shadowed => "shadowed",
        }
    }
}

impl Folder {
    /// The folder for this environment: `$HOB_SHIM_DIR`, else `$XDG_DATA_HOME/hob/shims`, else
    /// `~/.local/share/hob/shims`. `None` when none of them is an absolute path.
    pub(crate) fn of(start: &Start) -> Option<Folder> {
        let absolute = |name: &[u8]| {
            let value = Path::new(OsStr::from_bytes(start.variable(name)?));
            value.is_absolute().then_some(value)
        };
        let dir = match absolute(b"HOB_SHIM_DIR") {
            Some(dir) => dir.to_owned(),
            None => match absolute(b"XDG_DATA_HOME") {
                Some(data) => data.join("hob/shims"),
                None => absolute(b"HOME")?.join(".local/share/hob/shims"),
            },
        };
        let path: Vec<PathBuf> = start
            .variable(b"PATH")
            .map(|path| std::env::split_paths(OsStr::from_bytes(path)).collect())
            .unwrap_or_default();
        let place = path.iter().position(|entry| is_same(entry, &dir));
        Some(Folder { dir, place, path })
    }

    /// The shims in it, by name.
    pub(crate) fn shims(&self, start: &Start) -> std::io::Result<Vec<Found>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let venvs = Venvs::of(&self.dir);
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let found = names.filter_map(|name| self.shim(name, start, &venvs));
        let mut found: Vec<Found> = found.collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// What lies under this name, if it is a shim.
    fn shim(&self, name: OsString, start: &Start, venvs: &Venvs) -> Option<Found> {
        let target = target(&self.dir.join(&name))?;
        let on_path = command(&name, start);
        let elsewhere = on_path.is_none().then(|| venvs.command(&name)).flatten();
        let is_inactive = elsewhere.is_some();
        let command = on_path.or(elsewhere);
        let state = if !self.dir.join(&target).exists() {
            State::Dangling
        } else if is_inactive {
            State::Inactive
        } else if command.is_none() {
            State::NoCommand
        } else {
            match (self.place, command.as_deref().and_then(|file| self.place_of(file))) {
                (None, _) => State::OffPath,
                (Some(ours), Some(theirs)) if theirs < ours => State::Shadowed,
                (Some(_), _) => State::Works,
            }
        };
        Some(Found { name, target, command, state })
    }

    fn place_of(&self, file: &Path) -> Option<usize> {
        let dir = file.parent()?;
        self.path.iter().position(|entry| entry == dir)
    }
}

/// What a shim links to; `None` for whatever is no shim.
pub(crate) fn target(path: &Path) -> Option<PathBuf> {
    let target = std::fs::read_link(path).ok()?;
    target.file_name().is_some_and(|name| hob_resolve::is_hob(name.as_bytes())).then_some(target)
}

/// The file that the name leads to without hob.
pub(crate) fn command(name: &OsStr, start: &Start) -> Option<PathBuf> {
    let lookup = |name: &[u8]| start.variable(name);
    let here = process::working_directory();
    let cwd = here.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd);
    let file = hob_resolve::find(name.as_bytes(), &lookup, cwd).ok()?;
    Some(PathBuf::from(OsString::from_vec(file)))
}

/// Whether both lead to the same directory; by name where one does not exist.
fn is_same(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    match (place(a), place(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a == b,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
