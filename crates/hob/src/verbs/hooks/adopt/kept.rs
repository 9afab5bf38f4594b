//! What adopting keeps in the repository: the files that were there, and a list of what was done.
//!
//! The list is written before a file is exchanged, so that an end at any moment leaves either an
//! entry without an exchange, which `restore` sees by the file itself, or both.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hob_core::hooks::Bytes;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::edit::Edit;
use super::repository::Repository;
use super::settings::{self, Format};

/// The name of the list's format.
const SCHEMA: &str = "hob.hooks-adopted/1";

/// One adopted hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Adopted {
    /// The hook's file.
    pub(super) file: Bytes,
    /// The digest of what hob wrote there.
    pub(super) digest: String,
    /// What it changed.
    pub(super) edit: Change,
    /// The name under which the file that was there is kept.
    pub(super) original: String,
}

/// What hob changed in a file, which can be found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Change {
    /// One line of a hook.
    Line(Edit),
    /// Strings of JSON or TOML: commands of an agent's hooks.
    Commands(Vec<Edit>),
}

impl Adopted {
    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.file.0))
    }

    /// The text with the change taken back; `None` if it is not in there.
    fn undone(&self, text: &[u8]) -> Option<Vec<u8>> {
        match &self.edit {
            Change::Line(edit) => edit.undone(text),
            Change::Commands(edits) => settings::undone(text, edits, Format::of(self.path())),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct List {
    schema: String,
    adopted: Vec<Adopted>,
}

/// What became of one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Restored {
    /// The very file that was there is there again.
    AsItWas,
    /// It was edited: only hob's line was taken back.
    Edited,
    /// Another file is in its place, which hob has nothing to do with. The one that was there is
    /// here.
    Replaced(PathBuf),
    /// There is no file any more; likewise.
    Gone(PathBuf),
}

/// The list, and the folder that it is in, locked.
#[derive(Debug)]
pub(super) struct Kept {
    dir: PathBuf,
    hooks: PathBuf,
    /// What is adopted.
    pub(super) adopted: Vec<Adopted>,
    _lock: Option<File>,
}

pub(super) fn digest(text: &[u8]) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Kept {
    /// Reads it; an absent one is empty.
    pub(super) fn open(repository: &Repository) -> Result<Kept, String> {
        let own = repository.own.clone();
        let around = repository.own.parent().unwrap_or(&repository.own);
        Kept::at(own, repository.hooks.clone(), around)
    }

    /// The same in a folder of this name, for hooks that are in this one; the folder around both
    /// is locked.
    pub(super) fn at(dir: PathBuf, hooks: PathBuf, around: &Path) -> Result<Kept, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
        // The folder is made with the first hook that is adopted.
        let lock = File::open(around).map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| format!("{}: another hob works on these hooks", dir.display()))?;
        let list = dir.join("adopted.json");
        let adopted = match std::fs::read(&list) {
            Ok(text) => {
                let list: Option<List> = serde_json::from_slice(&text).ok();
                let list = list.filter(|list| list.schema == SCHEMA);
                list.ok_or_else(|| format!("{}: not a list of this hob", dir.display()))?.adopted
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        Ok(Kept { hooks, dir, adopted, _lock: Some(lock) })
    }

    /// Whether an agent's command is one that hob wrote.
    pub(super) fn has(&self, command: &str) -> bool {
        self.adopted.iter().any(|one| match &one.edit {
            Change::Line(_) => false,
            Change::Commands(edits) => {
                let ours = settings::literal(command, Format::of(one.path()));
                edits.iter().any(|edit| edit.ours.0 == ours.as_bytes())
            }
        })
    }

    /// Keeps version control from seeing the folder around this one.
    pub(super) fn ignored(&self) -> Result<(), String> {
        let Some(around) = self.dir.parent() else { return Ok(()) };
        let written = std::fs::create_dir_all(around)
            .and_then(|()| std::fs::write(around.join(IGNORED), "*\n"));
        written.map_err(|error| format!("{}: {error}", around.display()))
    }

    /// Whether this file is adopted, with this text: edited or not, hob's line is in it.
    pub(super) fn holds(&self, file: &Path, text: &[u8]) -> bool {
        self.adopted
            .iter()
            .any(|one| one.file.0 == file.as_os_str().as_bytes() && one.undone(text).is_some())
    }

    /// Keeps the file that is there, and puts the new text in its place with this mode.
    pub(super) fn exchange(
        &mut self,
        file: &Path,
        adopted: &Adopted,
        text: &[u8],
        mode: u32,
    ) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.dir.display());
        std::fs::create_dir_all(self.dir.join("originals")).map_err(failed)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut original = PathBuf::new();
        let mut linked = Err(std::io::ErrorKind::AlreadyExists.into());
        for number in 0..ORIGINALS_MAX {
            original = self.original(&format!("{name}.{number}"));
            linked = std::fs::hard_link(file, &original);
            match &linked {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Ok(()) | Err(_) => break,
            }
        }
        linked.map_err(|error| format!("the file cannot be kept: {error}"))?;
        let kept_as = original.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // An older entry for this file is of one that was replaced since.
        self.adopted.push(Adopted { original: kept_as, ..adopted.clone() });
        let done = self.write().and_then(|()| put(file, text, mode));
        if done.is_err() {
            self.adopted.pop();
            let _ = self.write();
            let _ = std::fs::remove_file(&original);
        }
        done
    }

    fn original(&self, name: &str) -> PathBuf {
        self.dir.join("originals").join(name)
    }

    fn write(&self) -> Result<(), String> {
        let list = List { schema: SCHEMA.to_owned(), adopted: self.adopted.clone() };
        let text = serde_json::to_vec_pretty(&list).unwrap_or_default();
        put(&self.dir.join("adopted.json"), &text, 0o644)
    }

    /// Restores everything; what could not be restored stays in the list.
    pub(super) fn restore(mut self) -> Vec<(Vec<u8>, Result<Restored, String>)> {
        let mut all = Vec::new();
        let mut kept_back = false;
        // The last adoption of a file first: an older one is of a file that was there before.
        let list = std::mem::take(&mut self.adopted);
        self.elsewhere(&list);
        for adopted in list.into_iter().rev() {
            let restored = self.restore_one(&adopted);
            let file = adopted.path();
            let name = file.file_name().unwrap_or_default().as_bytes().to_vec();
            kept_back |= matches!(&restored, Ok(Restored::Replaced(_) | Restored::Gone(_)));
            if restored.is_err() {
                self.adopted.push(adopted);
            }
            all.push((name, restored));
        }
        if self.adopted.is_empty() && !kept_back {
            let _ = std::fs::remove_file(self.dir.join("adopted.json"));
            let _ = std::fs::remove_dir(self.dir.join("originals"));
            let _ = std::fs::remove_dir(&self.dir);
            self.remove_ignored();
        } else if let Err(why) = self.write() {
            all.push((b"the list of adopted hooks".to_vec(), Err(why)));
        }
        all.sort();
        all
    }

    /// Removes the folder around this one, if it is one of hob's own and nothing else is in it.
    fn remove_ignored(&self) {
        let Some(around) = self.dir.parent() else { return };
        let names = std::fs::read_dir(around)
            .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect::<Vec<_>>());
        let is_own = around.file_name().is_some_and(|name| name == OWN);
        if is_own && names.is_ok_and(|names| names == [IGNORED]) {
            let _ = std::fs::remove_file(around.join(IGNORED));
            let _ = std::fs::remove_dir(around);
        }
    }

    fn restore_one(&self, adopted: &Adopted) -> Result<Restored, String> {
        let file = adopted.path();
        let original = self.original(&adopted.original);
        let meta = match file.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Restored::Gone(original));
            }
            Err(error) => return Err(error.to_string()),
        };
        if !meta.is_file() {
            return Ok(Restored::Replaced(original));
        }
        let was = original.symlink_metadata().ok();
        let same = |was: &std::fs::Metadata| (was.dev(), was.ino()) == (meta.dev(), meta.ino());
        if was.as_ref().is_some_and(same) {
            // It was never exchanged.
            std::fs::remove_file(&original).map_err(|error| error.to_string())?;
            return Ok(Restored::AsItWas);
        }
        let text = std::fs::read(file).map_err(|error| error.to_string())?;
        let Some(undone) = adopted.undone(&text) else {
            return Ok(Restored::Replaced(original));
        };
        let mode = meta.permissions().mode();
        if let Some(was) = was.filter(|_| digest(&text) == adopted.digest) {
            // Whoever has made it not executable since wants it so.
            if was.permissions().mode() != mode {
                std::fs::set_permissions(&original, meta.permissions())
                    .map_err(|error| error.to_string())?;
            }
            std::fs::rename(&original, file).map_err(|error| error.to_string())?;
            return Ok(Restored::AsItWas);
        }
        put(file, &undone, mode)?;
        let _ = std::fs::remove_file(&original);
        Ok(Restored::Edited)
    }

    /// Other tools put a hook aside under another name (`pre-commit.legacy`): the line is taken
    /// back there too.
    fn elsewhere(&self, list: &[Adopted]) {
        let Ok(entries) = std::fs::read_dir(&self.hooks) else { return };
        for entry in entries.flatten() {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            let path = entry.path();
            if !is_file || list.iter().any(|one| one.file.0 == path.as_os_str().as_bytes()) {
                continue;
            }
            let Ok(text) = std::fs::read(&path) else { continue };
            let undone = list.iter().find_map(|one| match &one.edit {
                Change::Line(edit) => edit.undone(&text),
                // A copy of an agent's settings runs nothing.
                Change::Commands(_) => None,
            });
            if let (Some(undone), Ok(meta)) = (undone, entry.metadata()) {
                // One that stays as it is still runs.
                let _ = put(&path, &undone, meta.permissions().mode());
            }
        }
    }
}

/// The folder beside an agent's settings.
pub(super) const OWN: &str = ".hob";
/// Names what git does not see in a folder.
const IGNORED: &str = ".gitignore";
/// So many files of one name are kept, each replaced by another tool before it was restored.
const ORIGINALS_MAX: u32 = 1000;

/// Writes a file beside its place, and puts it there.
fn put(file: &Path, text: &[u8], mode: u32) -> Result<(), String> {
    let beside = file.with_file_name(format!(".hob-{}", std::process::id()));
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(&beside).and_then(|mut made| {
        made.write_all(text)?;
        made.set_permissions(std::fs::Permissions::from_mode(mode & 0o7777))?;
        made.sync_all()?;
        std::fs::rename(&beside, file)
    });
    written.map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        format!("{}: {error}", file.display())
    })
}
