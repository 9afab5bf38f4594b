//! Which projects' `hob.toml` the user has allowed.
//!
//! Owns: the register, `trusted` in the state directory, and the one question that is asked of
//! it. A file is trusted as it was read: by its path and the digest of its bytes, so that an
//! edit, or another file in its place, is untrusted again.
//!
//! Invariants: what [`trusted`] answers `Yes` to comes with the very bytes that were compared, so
//! that nobody reads the file a second time; whatever cannot be read, is too large, or stands in
//! a register that is not ours alone, is not trusted; the register is replaced whole, never
//! written in place.
//!
//! Deliberately not here: what a `hob.toml` means (`project`).

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use hob_os::look::{self, Seen};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// The file that a project may have.
pub const FILE: &str = "hob.toml";
/// The register's name in the state directory.
const REGISTER: &str = "trusted";
/// What a new register is called until it is whole.
const NEW_REGISTER: &str = "trusted.new";
/// A `hob.toml` of more bytes is not read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// A register of more bytes is not read: some ten thousand files.
const REGISTER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Whether a directory's `hob.toml` is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trusted {
    /// It is, and this is what it says.
    Yes(Vec<u8>),
    /// Nobody has allowed it.
    No,
    /// It was allowed, and says something else now.
    Changed,
    /// There is none.
    NoFile,
}

/// A `hob.toml` as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its absolute path, links followed.
    pub path: PathBuf,
    /// What it says.
    pub bytes: Vec<u8>,
}

impl Project {
    /// The digest of what it says, in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        digest(&self.bytes)
    }
}

/// One line of the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The SHA-256 of the file as it was trusted, in hex.
    pub digest: String,
    /// The file's absolute path.
    pub path: PathBuf,
}

/// Why the register or a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no regular file, or it is too large.
    #[error("{}: not a regular file of at most {max} bytes", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// The bound.
        max: u64,
    },
    /// The register, or its directory, is not the user's alone.
    #[error("{}: not used: it is a link, or not ours alone; remove it", path.display())]
    Unsafe {
        /// The register or its directory.
        path: PathBuf,
    },
}

/// Whether the `hob.toml` of this directory is allowed. Whatever cannot be told is `No`.
#[must_use]
pub fn trusted(state_dir: Option<&Path>, dir: &Path) -> Trusted {
    let project = match read(dir) {
        Ok(Some(project)) => project,
        Ok(None) => return Trusted::NoFile,
        Err(_) => return Trusted::No,
    };
    let entries = state_dir.map(list).and_then(Result::ok).unwrap_or_default();
    match entries.iter().find(|entry| entry.path == project.path) {
        Some(entry) if entry.digest == project.digest() => Trusted::Yes(project.bytes),
        Some(_) => Trusted::Changed,
        None => Trusted::No,
    }
}

/// Where the register is.
#[must_use]
pub fn register(state_dir: &Path) -> PathBuf {
    state_dir.join(REGISTER)
}

/// Reads the `hob.toml` of a directory; `None` if there is none.
pub fn read(dir: &Path) -> Result<Option<Project>, TrustError> {
    let path = dir.join(FILE);
    let system = |error: std::io::Error| TrustError::System { path: path.clone(), error };
    let file = match look::at(CWD, path.as_path()) {
        Ok(Seen::File(file, _)) => file,
        Ok(Seen::Other(_)) => return Err(TrustError::NotAFile { path, max: FILE_BYTES_MAX }),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(system(errno.into())),
    };
    let bytes = whole(file, &path, FILE_BYTES_MAX)?;
    let parent = std::fs::canonicalize(dir).map_err(system)?;
    Ok(Some(Project { path: parent.join(FILE), bytes }))
}

/// Adds a file to the register, in the place of what was known of it.
pub fn allow(state_dir: &Path, project: &Project) -> Result<(), TrustError> {
    let entry = Entry { digest: project.digest(), path: project.path.clone() };
    change(state_dir, |entries| {
        entries.retain(|known| known.path != entry.path);
        entries.push(entry);
    })
}

/// Removes the `hob.toml` of this directory, which may be gone; `false` if it was not known.
pub fn remove(state_dir: &Path, dir: &Path) -> Result<bool, TrustError> {
    let whole = std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir));
    let path = whole.unwrap_or_else(|_| dir.to_owned()).join(FILE);
    if !list(state_dir)?.iter().any(|known| known.path == path) {
        return Ok(false);
    }
    change(state_dir, |entries| entries.retain(|known| known.path != path))?;
    Ok(true)
}

/// The register, in the order of trusting.
pub fn list(state_dir: &Path) -> Result<Vec<Entry>, TrustError> {
    let path = state_dir.join(REGISTER);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(Errno::LOOP) => return Err(TrustError::Unsafe { path }),
        Err(errno) => return Err(TrustError::System { path, error: errno.into() }),
    };
    let stat = rustix::fs::fstat(&file)
        .map_err(|errno| TrustError::System { path: path.clone(), error: errno.into() })?;
    if stat.st_uid != our_uid() || stat.st_mode & 0o022 != 0 {
        return Err(TrustError::Unsafe { path });
    }
    let bytes = whole(file, &path, REGISTER_BYTES_MAX)?;
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(entry).collect())
}

/// Changes the register: under a lock, and by a rename, so that readers see it whole.
fn change(state_dir: &Path, act: impl FnOnce(&mut Vec<Entry>)) -> Result<(), TrustError> {
    let system =
        |errno: Errno| TrustError::System { path: state_dir.join(REGISTER), error: errno.into() };
    let dir = open_state_dir(state_dir)?;
    rustix::fs::flock(&dir, FlockOperation::LockExclusive).map_err(system)?;
    let mut entries = list(state_dir)?;
    act(&mut entries);
    let text: Vec<u8> = entries.iter().flat_map(line).collect();
    // What a run that was killed left is nobody's.
    let _ = rustix::fs::unlinkat(&dir, NEW_REGISTER, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&dir, NEW_REGISTER, flags, Mode::RUSR | Mode::WUSR);
    let mut file = std::fs::File::from(file.map_err(system)?);
    file.write_all(&text)
        .and_then(|()| file.sync_all())
        .map_err(|error| TrustError::System { path: state_dir.join(NEW_REGISTER), error })?;
    rustix::fs::renameat(&dir, NEW_REGISTER, &dir, REGISTER).map_err(system)
}

/// Opens the state directory, made first if it is missing.
fn open_state_dir(state_dir: &Path) -> Result<OwnedFd, TrustError> {
    use std::os::unix::fs::DirBuilderExt;
    let path = || state_dir.to_owned();
    if state_dir.symlink_metadata().is_err() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir);
        made.map_err(|error| TrustError::System { path: path(), error })?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = match rustix::fs::openat(CWD, state_dir, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(TrustError::Unsafe { path: path() }),
        Err(errno) => return Err(TrustError::System { path: path(), error: errno.into() }),
    };
    let stat = rustix::fs::fstat(&dir)
        .map_err(|errno| TrustError::System { path: path(), error: errno.into() })?;
    if stat.st_uid != our_uid() || stat.st_mode & 0o022 != 0 {
        return Err(TrustError::Unsafe { path: path() });
    }
    Ok(dir)
}

/// A regular file's bytes, if they are few enough.
fn whole(file: OwnedFd, path: &Path, max: u64) -> Result<Vec<u8>, TrustError> {
    let system = |error: std::io::Error| TrustError::System { path: path.to_owned(), error };
    let stat = rustix::fs::fstat(&file).map_err(|errno| system(errno.into()))?;
    let mut bytes = Vec::new();
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if regular {
        std::fs::File::from(file).take(max + 1).read_to_end(&mut bytes).map_err(system)?;
    }
    if !regular || bytes.len() as u64 > max {
        return Err(TrustError::NotAFile { path: path.to_owned(), max });
    }
    Ok(bytes)
}

/// `DIGEST  PATH`, as `sha256sum` writes it; a path's line end and backslash are escaped.
fn line(entry: &Entry) -> Vec<u8> {
    let mut line = entry.digest.clone().into_bytes();
    line.extend_from_slice(b"  ");
    for byte in entry.path.as_os_str().as_bytes() {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            _ => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

/// A line that was written by [`line()`]; any other is passed over.
fn entry(line: &[u8]) -> Option<Entry> {
    let (digest, path) = line.split_at_checked(Sha256::output_size() * 2)?;
    let digest = std::str::from_utf8(digest).ok()?.to_owned();
    let mut bytes = Vec::with_capacity(path.len());
    let mut escaped = path.strip_prefix(b"  ")?.iter();
    while let Some(byte) = escaped.next() {
        match byte {
            b'\\' => match escaped.next()? {
                b'n' => bytes.push(b'\n'),
                other => bytes.push(*other),
            },
            _ => bytes.push(*byte),
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(Entry { digest, path })
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A state directory and a project with this `hob.toml`.
    fn world(text: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let (state, project) = (home.path().join("state/hob"), home.path().join("project"));
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join(FILE), text).unwrap();
        (home, state, project)
    }

    #[test]
    fn a_file_is_trusted_as_it_was_read_and_no_other() {
        let (_home, state, project) = world("a = 1\n");
        let ask = || trusted(Some(&state), &project);
        assert_eq!(ask(), Trusted::No);
        let file = read(&project).unwrap().unwrap();
        allow(&state, &file).unwrap();
        assert_eq!(ask(), Trusted::Yes(b"a = 1\n".to_vec()));
        // The same size, the same length of name, the same second.
        std::fs::write(project.join(FILE), "a = 2\n").unwrap();
        assert_eq!(ask(), Trusted::Changed);
        allow(&state, &read(&project).unwrap().unwrap()).unwrap();
        assert_eq!((ask(), list(&state).unwrap().len()), (Trusted::Yes(b"a = 2\n".to_vec()), 1));
        std::fs::remove_file(project.join(FILE)).unwrap();
        assert_eq!(ask(), Trusted::NoFile);
        assert!(remove(&state, &project).unwrap());
        assert!(!remove(&state, &project).unwrap());
        std::fs::write(project.join(FILE), "a = 2\n").unwrap();
        assert_eq!(ask(), Trusted::No);
        assert_eq!(trusted(None, &project), Trusted::No);
    }

    #[test]
    fn a_directory_is_the_same_by_every_name_and_others_are_not() {
        let (home, state, project) = world("");
        allow(&state, &read(&project).unwrap().unwrap()).unwrap();
        symlink(&project, home.path().join("link")).unwrap();
        assert_eq!(trusted(Some(&state), &home.path().join("link")), Trusted::Yes(Vec::new()));
        let copy = home.path().join("copy");
        std::fs::create_dir(&copy).unwrap();
        std::fs::write(copy.join(FILE), "").unwrap();
        assert_eq!(trusted(Some(&state), &copy), Trusted::No);
    }

    #[test]
    fn paths_of_any_bytes_are_kept_in_their_own_lines() {
        let (home, state, _) = world("");
        let names: [&[u8]; 4] = [b"a\nb", b"c\\nd", b"\xff  e", b"f\\"];
        for name in names {
            let dir = home.path().join(std::ffi::OsStr::from_bytes(name));
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join(FILE), name).unwrap();
            allow(&state, &read(&dir).unwrap().unwrap()).unwrap();
        }
        for name in names {
            let dir = home.path().join(std::ffi::OsStr::from_bytes(name));
            assert_eq!(trusted(Some(&state), &dir), Trusted::Yes(name.to_vec()));
        }
        let register = std::fs::read(state.join(REGISTER)).unwrap();
        assert_eq!(register.iter().filter(|byte| **byte == b'\n').count(), names.len());
        let mode = std::fs::metadata(state.join(REGISTER)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_register_that_others_could_write_trusts_nothing() {
        let (home, state, project) = world("");
        allow(&state, &read(&project).unwrap().unwrap()).unwrap();
        let register = state.join(REGISTER);
        std::fs::set_permissions(&register, std::fs::Permissions::from_mode(0o620)).unwrap();
        assert!(matches!(list(&state), Err(TrustError::Unsafe { .. })));
        assert_eq!(trusted(Some(&state), &project), Trusted::No);
        std::fs::set_permissions(&register, std::fs::Permissions::from_mode(0o600)).unwrap();
        let aside = home.path().join("aside");
        std::fs::rename(&register, &aside).unwrap();
        symlink(&aside, &register).unwrap();
        assert!(matches!(list(&state), Err(TrustError::Unsafe { .. })));
        assert_eq!(trusted(Some(&state), &project), Trusted::No);
        std::fs::remove_file(&register).unwrap();
        std::fs::write(&register, "nonsense\n\n0000  /x\n").unwrap();
        std::fs::set_permissions(&register, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(list(&state).unwrap(), []);
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_trusted() {
        let (_home, state, project) = world("");
        let path = project.join(FILE);
        std::fs::write(&path, vec![b'#'; usize::try_from(FILE_BYTES_MAX).unwrap() + 1]).unwrap();
        assert!(matches!(read(&project), Err(TrustError::NotAFile { .. })));
        assert_eq!(trusted(Some(&state), &project), Trusted::No);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(read(&project), Err(TrustError::NotAFile { .. })));
        std::fs::remove_dir(&path).unwrap();
        rustix::fs::mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        assert_eq!(trusted(Some(&state), &project), Trusted::No);
    }

    #[test]
    fn trusting_at_the_same_time_loses_nothing() {
        let (home, state, _) = world("");
        let dir = |number: u32| home.path().join(format!("p{number}"));
        for number in 0..8 {
            std::fs::create_dir(dir(number)).unwrap();
            std::fs::write(dir(number).join(FILE), "").unwrap();
        }
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (state, dir) = (&state, dir(number));
                scope.spawn(move || allow(state, &read(&dir).unwrap().unwrap()).unwrap());
            }
        });
        assert_eq!(list(&state).unwrap().len(), 8);
    }

    #[test]
    fn the_digest_is_the_one_that_everybody_knows() {
        let want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(b"abc"), want);
    }
}
