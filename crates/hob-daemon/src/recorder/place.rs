//! Where receipts are kept, and whether that place is ours.
//!
//! `STATE/hob` is the state directory, `STATE/hob/receipts` holds the segments and
//! `STATE/hob/gain` the daily sums, where STATE is
//! `$XDG_STATE_HOME`, else `$HOME/.local/state`. Without either there is no place, and receipts
//! are not kept. A receipt names programs and directories, so the place is checked as a socket's
//! is: both directories belong to us, neither is a link, and others may not enter the inner one.
//! Each step opens relative to the directory that was checked, so that nothing can be exchanged
//! in between.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The name of hob's directory under the user's state directory.
const STATE_NAME: &str = "hob";
/// The name of the directory of segments.
const RECEIPTS_NAME: &str = "receipts";
/// The name of the directory of daily sums.
pub(super) const GAIN_NAME: &str = "gain";

/// Why receipts are not kept, or not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Neither variable names a directory.
    #[error("no-state-dir: neither XDG_STATE_HOME nor HOME is set to an absolute path")]
    NoStateDir,
    /// A directory of that path is a link or a file.
    #[error("state-dir-not-a-directory: {0} is a link or not a directory")]
    NotADirectory(PathBuf),
    /// A directory of that path is someone else's.
    #[error("state-dir-foreign: {path} belongs to uid {owner}")]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The system refused.
    #[error("state-dir-unusable: {path}: {errno}")]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
}

/// The state directory for this process's environment, if there is one to use.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let state_home = std::env::var_os("XDG_STATE_HOME");
    let home = std::env::var_os("HOME");
    state_dir_for(state_home.as_deref(), home.as_deref())
}

/// The state directory for these values of `XDG_STATE_HOME` and `HOME`. A relative path counts
/// as unset, as the XDG specification has it: it would mean another place in every directory.
#[must_use]
pub fn state_dir_for(state_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |value: &OsStr| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let state = state_home.and_then(absolute);
    let state = state.or_else(|| Some(home.and_then(absolute)?.join(".local/state")));
    Some(state?.join(STATE_NAME))
}

/// What to do when the directory is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make it, and what is missing above it (a writer).
    Create,
    /// Say so (a reader).
    Tell,
}

/// Opens the directory of segments, or says that there is none (`None`, only with
/// [`Missing::Tell`]).
pub(super) fn open_receipts(
    state_dir: &Path,
    missing: Missing,
) -> Result<Option<OwnedFd>, PlaceError> {
    open_place(state_dir, RECEIPTS_NAME, missing)
}

/// Opens one of the directories in the state directory, and makes it where it is missing. It is ours
/// alone.
///
/// # Errors
/// It belongs to another user, is a link, or cannot be made.
pub fn make_place(state_dir: &Path, name: &'static str) -> Result<OwnedFd, PlaceError> {
    open_place(state_dir, name, Missing::Create)?.ok_or(PlaceError::NoStateDir)
}

/// Opens one of the directories in the state directory, likewise.
pub(crate) fn open_place(
    state_dir: &Path,
    name: &'static str,
    missing: Missing,
) -> Result<Option<OwnedFd>, PlaceError> {
    if missing == Missing::Create {
        create_state_dir(state_dir)?;
    }
    let Some(state) = open_ours(CWD.as_fd(), state_dir, state_dir)? else {
        return Ok(None);
    };
    let path = state_dir.join(name);
    let unusable = |errno| PlaceError::Unusable { path: path.clone(), errno };
    if missing == Missing::Create {
        match rustix::fs::mkdirat(&state, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(unusable(errno)),
        }
    }
    let Some(place) = open_ours(state.as_fd(), Path::new(name), &path)? else {
        return Ok(None);
    };
    if missing == Missing::Create {
        // It may have been made by hand; it is ours, so narrowing it surprises nobody.
        rustix::fs::fchmod(&place, Mode::RWXU).map_err(unusable)?;
    }
    Ok(Some(place))
}

/// Makes the state directory and what is missing above it. Under a directory of another user
/// nothing is made: `sudo` often keeps HOME, and root's directories there would lock that user
/// out of keeping receipts.
fn create_state_dir(state_dir: &Path) -> Result<(), PlaceError> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    if std::fs::symlink_metadata(state_dir).is_ok() {
        return Ok(());
    }
    let existing = state_dir.ancestors().find_map(|path| Some((path, path.metadata().ok()?)));
    if let Some((path, metadata)) = existing {
        let owner = metadata.uid();
        if owner != 0 && owner != our_uid() {
            return Err(PlaceError::Foreign { path: path.to_owned(), owner });
        }
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir);
    made.map_err(|error| PlaceError::Unusable {
        path: state_dir.to_owned(),
        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
    })
}

/// Opens a directory that must be ours, without following a link in its own place.
fn open_ours(
    parent: std::os::fd::BorrowedFd<'_>,
    name: &Path,
    path: &Path,
) -> Result<Option<OwnedFd>, PlaceError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let unusable = |errno| PlaceError::Unusable { path: path.to_owned(), errno };
    let dir = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) if !is_directory(parent, name) => {
            return Err(PlaceError::NotADirectory(path.to_owned()));
        }
        Err(errno) => return Err(unusable(errno)),
    };
    let owner = rustix::fs::fstat(&dir).map_err(unusable)?.st_uid;
    if owner != our_uid() {
        return Err(PlaceError::Foreign { path: path.to_owned(), owner });
    }
    Ok(Some(dir))
}

fn is_directory(parent: std::os::fd::BorrowedFd<'_>, name: &Path) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// The uid that files are made with.
pub(super) fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_state_directory_is_xdgs_or_homes_and_never_relative() {
        let check = |state_home: Option<&str>, home: Option<&str>, expected: Option<&str>| {
            let found = state_dir_for(state_home.map(OsStr::new), home.map(OsStr::new));
            assert_eq!(found, expected.map(PathBuf::from), "{state_home:?} {home:?}");
        };
        check(Some("/s"), Some("/h"), Some("/s/hob"));
        check(None, Some("/h"), Some("/h/.local/state/hob"));
        check(Some(""), Some("/h"), Some("/h/.local/state/hob"));
        check(Some("s"), Some("/h"), Some("/h/.local/state/hob"));
        check(Some("s"), Some("h"), None);
        check(None, None, None);
    }

    #[test]
    fn a_writer_makes_the_place_private_and_a_reader_makes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("deep/er/hob");
        assert!(open_receipts(&state, Missing::Tell).unwrap().is_none());
        assert!(!home.path().join("deep").exists());

        assert!(open_receipts(&state, Missing::Create).unwrap().is_some());
        let receipts = state.join("receipts");
        std::fs::set_permissions(&receipts, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(open_receipts(&state, Missing::Create).unwrap().is_some());
        for dir in [&state, &receipts] {
            assert_eq!(std::fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn links_and_files_in_its_place_are_refused_by_both() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let (link, file, inner) =
            (home.path().join("link"), home.path().join("file"), home.path().join("inner"));
        symlink(&real, &link).unwrap();
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&inner).unwrap();
        symlink(&real, inner.join("receipts")).unwrap();
        for missing in [Missing::Create, Missing::Tell] {
            for (state, named) in
                [(&link, &link), (&file, &file), (&inner, &inner.join("receipts"))]
            {
                let refused = open_receipts(state, missing).unwrap_err();
                assert_eq!(refused, PlaceError::NotADirectory(named.clone()));
            }
        }
        assert_eq!(std::fs::read_dir(&real).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_of_another_user_is_refused_and_nothing_is_made_in_it() {
        let home = tempfile::tempdir().unwrap();
        let foreign = home.path().join("hob");
        std::fs::create_dir(&foreign).unwrap();
        // Only root can give a directory away; for others the check is the same line of code.
        if our_uid() != 0 || std::os::unix::fs::chown(&foreign, Some(12345), None).is_err() {
            return;
        }
        for missing in [Missing::Create, Missing::Tell] {
            let refused = open_receipts(&foreign, missing).unwrap_err();
            assert_eq!(refused, PlaceError::Foreign { path: foreign.clone(), owner: 12345 });
        }
        let below = foreign.join("state/hob");
        let refused = open_receipts(&below, Missing::Create).unwrap_err();
        assert_eq!(refused, PlaceError::Foreign { path: foreign.clone(), owner: 12345 });
        assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 0);
    }
}
