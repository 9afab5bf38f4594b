//! The files that a run creates, changes and removes in its directory; and private copies of it.
//!
//! A directory is looked at before and after a run: what has another size, time or inode was
//! written, and is read. Bounded: so many entries, and so much of each file. Links are not
//! followed, other file systems not entered. `__pycache__` is left out: it is the interpreter's
//! own, and holds times. Files outside the directory are not seen.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::compare::Table;
use crate::verbs::repeated::{DIGEST, digest};

/// Entries that are looked at.
const ENTRIES_MAX: usize = 20_000;
/// What is read of a file that was written.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What `--copy` copies.
const COPY_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// What a directory holds.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    entries: BTreeMap<PathBuf, Stamp>,
    /// Those of them in which hob's own places lie.
    above: BTreeSet<PathBuf>,
    /// It holds more than was looked at.
    pub(super) clipped: bool,
}

/// What tells whether an entry was written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        let times = (metadata.mtime(), metadata.mtime_nsec());
        // A directory's own times and size follow from its entries.
        let directory = metadata.is_dir();
        Stamp {
            inode: metadata.ino(),
            mode: metadata.mode(),
            size: if directory { 0 } else { metadata.size() },
            modified: if directory { (0, 0) } else { times },
            changed: if directory { (0, 0) } else { (metadata.ctime(), metadata.ctime_nsec()) },
        }
    }
}

/// Directories that are not part of what a program does: hob's own, also where hob makes them only
/// when it has something to keep, and the directories above them with them.
pub(super) type Skipped = Vec<PathBuf>;

/// The devices and inodes of those of these directories that exist.
fn identities<'a>(directories: impl Iterator<Item = &'a Path>) -> HashSet<(u64, u64)> {
    let found = directories.filter_map(|directory| fs::metadata(directory).ok());
    found.map(|metadata| (metadata.dev(), metadata.ino())).collect()
}

/// Looks at a directory.
pub(super) fn snapshot(root: &Path, skipped: &Skipped) -> io::Result<Snapshot> {
    let device = fs::metadata(root)?.dev();
    let own = identities(skipped.iter().map(PathBuf::as_path));
    let above = identities(skipped.iter().flat_map(|place| place.ancestors().skip(1)));
    let mut snapshot = Snapshot::default();
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        // A directory that cannot be read, or is gone, has nothing to compare.
        let Ok(entries) = fs::read_dir(root.join(&below)) else { continue };
        for entry in entries.flatten() {
            let path = below.join(entry.file_name());
            let Ok(metadata) = fs::symlink_metadata(root.join(&path)) else { continue };
            let id = (metadata.dev(), metadata.ino());
            if own.contains(&id) || entry.file_name() == "__pycache__" {
                continue;
            }
            if snapshot.entries.len() >= ENTRIES_MAX {
                snapshot.clipped = true;
                return Ok(snapshot);
            }
            if metadata.is_dir() && metadata.dev() == device {
                waiting.push(path.clone());
            }
            if above.contains(&id) {
                snapshot.above.insert(path.clone());
            }
            snapshot.entries.insert(path, Stamp::of(&metadata));
        }
    }
    Ok(snapshot)
}

/// The paths that were written or removed between two looks.
fn touched<'a>(before: &'a Snapshot, after: &'a Snapshot) -> Vec<&'a Path> {
    let mut paths: Vec<&Path> = Vec::new();
    for (path, stamp) in &after.entries {
        if before.entries.get(path) != Some(stamp) {
            paths.push(path);
        }
    }
    // With what is hob's own comes what it lies in.
    paths.retain(|path| !after.above.contains(*path));
    paths.extend(
        before
            .entries
            .keys()
            .filter(|path| !after.entries.contains_key(*path))
            .map(PathBuf::as_path),
    );
    paths
}

/// What a run left: each entry that it wrote, as it is now.
pub(super) fn effects(root: &Path, before: &Snapshot, after: &Snapshot) -> Table {
    let describe = |path: &Path| {
        let what = describe(&root.join(path)).unwrap_or_else(|_| "removed".to_owned());
        (path.to_string_lossy().into_owned(), what)
    };
    touched(before, after).into_iter().map(describe).collect()
}

fn describe(path: &Path) -> io::Result<String> {
    let metadata = fs::symlink_metadata(path)?;
    let (kind, mode) = (metadata.file_type(), metadata.mode() & 0o7777);
    Ok(if kind.is_file() {
        let digest = content(path).map_or("unreadable".to_owned(), |sum| format!("{sum:016x}"));
        format!("file {mode:04o} {} bytes, digest {digest}", metadata.size())
    } else if kind.is_dir() {
        format!("directory {mode:04o}")
    } else if kind.is_symlink() {
        format!("link to {}", fs::read_link(path)?.display())
    } else if kind.is_fifo() {
        format!("pipe {mode:04o}")
    } else if kind.is_socket() {
        format!("socket {mode:04o}")
    } else {
        format!("device {mode:04o}")
    })
}

fn content(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?.take(FILE_BYTES_MAX);
    let (mut sum, mut chunk) = (DIGEST, vec![0; 64 * 1024]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(sum),
            count => sum = digest(sum, &chunk[..count]),
        }
    }
}

/// A private copy of a directory, removed at its end.
#[derive(Debug)]
pub(super) struct Copy {
    original: PathBuf,
    base: PathBuf,
}

impl Copy {
    /// Copies `original`.
    pub(super) fn new(original: &Path, skipped: &Skipped) -> io::Result<Copy> {
        let whole = snapshot(original, skipped)?;
        let bytes: u64 = whole.entries.values().map(|stamp| stamp.size).sum();
        if whole.clipped || bytes > COPY_BYTES_MAX {
            return Err(io::Error::other(format!(
                "it has more than {ENTRIES_MAX} entries or {} MiB",
                COPY_BYTES_MAX >> 20
            )));
        }
        let base = private_directory()?;
        let copy = Copy { original: original.to_owned(), base };
        fs::create_dir(copy.directory())?;
        for path in whole.entries.keys() {
            copy_entry(&original.join(path), &copy.directory().join(path))?;
        }
        Ok(copy)
    }

    /// Where it is.
    pub(super) fn directory(&self) -> PathBuf {
        self.base.join("work")
    }

    /// Makes it again what it was: only what was touched, so that what is warm of it stays fresh.
    pub(super) fn restore(&self, before: &Snapshot, after: &Snapshot) -> io::Result<()> {
        let mut paths = touched(before, after);
        paths.sort_unstable();
        for path in paths.iter().rev() {
            let gone = self.directory().join(path);
            match fs::symlink_metadata(&gone) {
                // One that was there before keeps its place: its entries are put back below.
                Ok(metadata) if metadata.is_dir() && before.entries.contains_key(*path) => {}
                Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&gone)?,
                Ok(_) => fs::remove_file(&gone)?,
                Err(_) => {}
            }
        }
        for path in paths.iter().filter(|path| before.entries.contains_key(**path)) {
            copy_entry(&self.original.join(path), &self.directory().join(path))?;
        }
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed lies in the directory for temporary files, and is private.
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// A new directory that is nobody else's.
pub(super) fn private_directory() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;

    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let name = format!("hob-verify-{:016x}", u64::from_ne_bytes(random));
    let base = std::env::temp_dir().join(name);
    fs::DirBuilder::new().mode(0o700).create(&base)?;
    Ok(base)
}

fn copy_entry(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        match fs::create_dir(to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        return fs::set_permissions(to, metadata.permissions());
    }
    if kind.is_file() {
        fs::copy(from, to)?;
        let times = fs::FileTimes::new().set_modified(metadata.modified()?);
        // One that nobody may write keeps the time of its copying.
        let _ = File::options().write(true).open(to).and_then(|file| file.set_times(times));
    }
    // Pipes, sockets and devices are somebody's at the other end: they are not copied.
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(root: &Path) -> Snapshot {
        snapshot(root, &Vec::new()).unwrap()
    }

    #[test]
    fn what_is_created_changed_and_removed_is_seen_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        for name in ["same", "changed", "removed"] {
            fs::write(root.join(name), "before").unwrap();
        }
        fs::create_dir(root.join("below")).unwrap();
        fs::create_dir(root.join("__pycache__")).unwrap();
        let before = look(root);
        assert!(effects(root, &before, &look(root)).is_empty());
        // The same size; the time tells.
        fs::write(root.join("changed"), "after!").unwrap();
        fs::remove_file(root.join("removed")).unwrap();
        fs::write(root.join("below/new"), "").unwrap();
        fs::write(root.join("__pycache__/x.pyc"), "").unwrap();
        symlink("same", root.join("link")).unwrap();
        let effects = effects(root, &before, &look(root));
        let names: Vec<_> = effects.keys().map(String::as_str).collect();
        assert_eq!(names, ["below/new", "changed", "link", "removed"]);
        assert_eq!(
            (effects["link"].as_str(), effects["removed"].as_str()),
            ("link to same", "removed")
        );
        assert!(effects["changed"].starts_with("file 0644 6 bytes, digest "), "{effects:?}");
    }

    #[test]
    fn a_copy_is_put_back_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        fs::create_dir(root.join("below")).unwrap();
        for name in ["a", "b", "below/c"] {
            fs::write(root.join(name), name).unwrap();
        }
        symlink("a", root.join("link")).unwrap();
        let copy = Copy::new(root, &Vec::new()).unwrap();
        let at = copy.directory();
        let before = look(&at);
        let untouched = fs::metadata(at.join("b")).unwrap().ino();
        fs::write(at.join("a"), "changed").unwrap();
        fs::remove_dir_all(at.join("below")).unwrap();
        fs::create_dir(at.join("new")).unwrap();
        fs::write(at.join("new/x"), "").unwrap();
        fs::remove_file(at.join("link")).unwrap();
        copy.restore(&before, &look(&at)).unwrap();
        let names: Vec<_> = look(&at).entries.into_keys().collect();
        assert_eq!(names, look(root).entries.into_keys().collect::<Vec<_>>());
        for name in ["a", "b", "below/c"] {
            assert_eq!(fs::read_to_string(at.join(name)).unwrap(), name);
        }
        assert_eq!(fs::metadata(at.join("b")).unwrap().ino(), untouched);
        let base = copy.base.clone();
        drop(copy);
        assert!(!base.exists());
    }

    #[test]
    fn hobs_own_directories_are_no_effect_of_a_program() {
        let home = tempfile::tempdir().unwrap();
        let own = ["state", "above/it/comes", "missing"].map(|name| home.path().join(name));
        fs::create_dir(&own[0]).unwrap();
        let skipped = own.to_vec();
        let before = snapshot(home.path(), &skipped).unwrap();
        fs::create_dir_all(&own[1]).unwrap();
        fs::write(own[0].join("receipt"), "").unwrap();
        fs::write(own[1].join("receipt"), "").unwrap();
        fs::write(home.path().join("above/seen"), "").unwrap();
        let after = snapshot(home.path(), &skipped).unwrap();
        let effects = effects(home.path(), &before, &after);
        assert_eq!(effects.keys().map(String::as_str).collect::<Vec<_>>(), ["above/seen"]);
    }
}
