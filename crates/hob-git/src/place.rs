//! The directory of a repository, found below the root.
//!
//! The kernel resolves its path, so that neither dots nor links lead out. A directory that was
//! replaced is another repository, by its inode and the time of its birth.

use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx,
};
use rustix::io::Errno;

use crate::failure::is_of_system;
use crate::identity::Identity;
use crate::{Failure, Root};

/// The directory of a repository, opened.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: OwnedFd,
    pub(crate) identity: Identity,
    pub(crate) path: PathBuf,
}

/// Finds the repository of a project: the directory `.git` in the one of its name, that one itself,
/// or the one that is called as it is with `.git` behind.
pub(crate) fn find(root: &Root, project: &[u8]) -> Result<Place, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = openat(CWD, &root.path, flags, Mode::empty());
    let top = top.map_err(|error| if is_of_system(error) { Failure::System } else { absent() })?;
    let name = os(project);
    let mut bare = name.to_owned();
    bare.push(".git");
    let inside = Path::new(name).join(".git");
    // As git does: what is checked out may look like a repository, and is content.
    for place in [&inside, Path::new(name), Path::new(&bare)] {
        let dir = match open_beneath(top.as_fd(), place, flags) {
            Ok(dir) => dir,
            Err(error) if is_of_system(error) => return Err(Failure::System),
            Err(_) => continue,
        };
        if !is_repository(dir.as_fd()) {
            continue;
        }
        let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let seen = statx(&dir, "", AtFlags::EMPTY_PATH, mask).map_err(|_| Failure::System)?;
        let own = rustix::process::geteuid().as_raw();
        if seen.stx_uid != own && !root.terms.owners.contains(&seen.stx_uid) {
            return Err(Failure::Owner(seen.stx_uid));
        }
        let identity = Identity {
            device: (seen.stx_dev_major, seen.stx_dev_minor),
            inode: seen.stx_ino,
            born: (seen.stx_btime.tv_sec, seen.stx_btime.tv_nsec),
        };
        return Ok(Place { dir, identity, path: root.path.join(place) });
    }
    Err(absent())
}

pub(crate) fn absent() -> Failure {
    Failure::Absent("project")
}

fn os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// Opens what no link leads to and no dots leave.
pub(crate) fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// A repository has objects and a head.
fn is_repository(dir: BorrowedFd<'_>) -> bool {
    let kind = |name: &str| {
        let seen = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        seen.ok().map(|seen| FileType::from_raw_mode(seen.st_mode))
    };
    kind("objects") == Some(FileType::Directory) && kind("HEAD") == Some(FileType::RegularFile)
}

impl Place {
    /// A small file of the repository, if it is there; `too_large` if it has more than `most` bytes.
    pub(crate) fn read(
        &self,
        name: &Path,
        most: usize,
        too_large: &'static str,
    ) -> Result<Option<Vec<u8>>, Failure> {
        // A pipe that is opened to look gives its writer a reader that leaves again.
        let named = rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        if named.is_ok_and(|named| FileType::from_raw_mode(named.st_mode) != FileType::RegularFile)
        {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match open_beneath(self.dir.as_fd(), name, flags) {
            Ok(file) => file,
            Err(error) if is_of_system(error) => return Err(Failure::System),
            // Denied is as good as absent: the client shall not tell them apart.
            Err(_) => return Ok(None),
        };
        let mut bytes = Vec::new();
        loop {
            bytes.reserve(if bytes.is_empty() { 256 } else { bytes.len() });
            match rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)) {
                Ok(0) => return Ok(Some(bytes)),
                Ok(_) if bytes.len() > most => return Err(Failure::Repository(too_large)),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::ISDIR | Errno::AGAIN) => return Ok(None),
                Err(_) => return Err(Failure::System),
            }
        }
    }
}
