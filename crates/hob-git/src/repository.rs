//! A repository, found below the root and opened: its directory, its format and its objects.
//!
//! The kernel resolves its path, so that neither dots nor links lead out. Of its configuration only
//! what says its format is read, without includes. A directory that was replaced is another
//! repository, by its inode and the time of its birth.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix_config::file::{Metadata, init};
use gix_odb::store::init::{Options, Slots};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx,
};
use rustix::io::Errno;

use crate::failure::{behind, is_of_system};
use crate::identity::{Identity, Stamp, stamp};
use crate::refs::Refs;
use crate::{Failure, Root};

/// The most bytes of a repository's configuration; git's own have some hundreds.
const CONFIG_BYTES_MAX: usize = 1 << 20;
/// The least that one allocation for what a pack says may take, in bytes: bases of deltas, trees.
const ALLOCATION_BYTES_MIN: u64 = 256 << 20;
/// Extensions of the format that change nothing for who reads objects and refs.
const HARMLESS: [&str; 6] =
    ["noop", "noop-v1", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees"];

/// The directory of a repository, opened.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: OwnedFd,
    pub(crate) identity: Identity,
    path: PathBuf,
}

/// A repository that can be read.
pub(crate) struct Repository {
    pub(crate) place: Place,
    pub(crate) hash: gix_hash::Kind,
    pub(crate) objects: gix_odb::HandleArc,
    pub(crate) refs: Refs,
    stamps: [Option<Stamp>; 2],
}

/// What makes an opened repository another one: its format, and where else its objects lie.
const STAMPED: [&str; 2] = ["config", "objects/info/alternates"];

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

fn absent() -> Failure {
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

    fn stamps(&self) -> [Option<Stamp>; 2] {
        STAMPED.map(|name| stamp(self.dir.as_fd(), name))
    }
}

const UNRESOLVED: Failure = Failure::Repository("its alternates cannot be resolved");
const UNOPENED: Failure = Failure::Repository("its objects cannot be opened");

impl Repository {
    /// Opens what was found.
    pub(crate) fn open(place: Place, root: &Root) -> Result<Repository, Failure> {
        let stamps = place.stamps();
        let (hash, refs) = format(&place)?;
        let objects = place.path.join("objects");
        let here = Path::new("/");
        let elsewhere = gix_odb::alternate::resolve(objects.clone(), here)
            .map_err(|error| behind(&error, UNRESOLVED))?;
        let top = std::fs::canonicalize(&root.path).map_err(|_| absent())?;
        for each in elsewhere {
            // What is not there has no objects.
            let Ok(real) = std::fs::canonicalize(each) else { continue };
            if !real.starts_with(&top) {
                return Err(Failure::Repository("its alternates lie outside the root"));
            }
        }
        let most = root.terms.blob_bytes.saturating_mul(2).max(ALLOCATION_BYTES_MIN);
        let options = Options {
            slots: Slots::default(),
            alloc_limit_bytes: usize::try_from(most).ok(),
            current_dir: Some(here.to_owned()),
            ..Options::default()
        };
        let store = gix_odb::Store::at_opts(objects, hash, &mut std::iter::empty(), options);
        let store = store.map_err(|error| behind(&error, UNOPENED))?;
        let objects = Arc::new(store).to_cache_arc();
        Ok(Repository { place, hash, objects, refs, stamps })
    }

    /// Whether it is still as it was opened.
    pub(crate) fn is_current(&self) -> bool {
        self.stamps == self.place.stamps()
    }
}

/// How a repository names its objects and keeps its refs, if its format is known here.
fn format(place: &Place) -> Result<(gix_hash::Kind, Refs), Failure> {
    let text =
        place.read(Path::new("config"), CONFIG_BYTES_MAX, "its configuration is too large")?;
    let text = text.unwrap_or_default();
    let options = init::Options { lossy: true, ..init::Options::default() };
    let config = gix_config::File::from_bytes_no_includes(&text, Metadata::api(), options)
        .map_err(|_| Failure::Repository("its configuration cannot be read"))?;
    let version = config.integer("core.repositoryFormatVersion");
    let version = version.ok().flatten().unwrap_or(0);
    let (mut hash, mut refs) = (gix_hash::Kind::Sha1, Refs::files());
    if version == 0 {
        return Ok((hash, refs));
    }
    if version > 1 {
        return Err(Failure::Repository("its format is newer than hob knows"));
    }
    for section in config.sections_by_name("extensions").into_iter().flatten() {
        for name in section.value_names() {
            let value = section.value(name.as_ref() as &str).unwrap_or_default();
            match (name.to_ascii_lowercase().as_str(), value.as_slice()) {
                ("objectformat", b"sha1") | ("refstorage", b"files") => {}
                ("objectformat", b"sha256") => hash = gix_hash::Kind::Sha256,
                ("refstorage", b"reftable") => refs = Refs::reftable(),
                (name, _) if HARMLESS.contains(&name) => {}
                _ => {
                    return Err(Failure::Repository(
                        "its format has an extension hob does not know",
                    ));
                }
            }
        }
    }
    Ok((hash, refs))
}
