//! The one socket of a user: its directory, the lock that makes the daemon the only one, and the
//! handing over to another build.

use std::path::{Path, PathBuf};

use hob_os::{dir, ring, uds};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::workers::{logs, runtimes};

/// Why a daemon cannot listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    /// The directory is not safe to use.
    #[error("{}: not used: {why}", .path.display())]
    Directory {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        why: dir::Unsafe,
    },
    /// Another daemon serves this directory.
    #[error("{}: another daemon is running", .0.display())]
    Taken(PathBuf),
    /// The system refused.
    #[error("{}: cannot listen: {errno}", .path.display())]
    System {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
}

/// A listening socket and the lock that belongs to it. Dropping it leaves the directory clean.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) path: PathBuf,
    listener: Option<OwnedFd>,
    lock: Option<OwnedFd>,
    /// What the name meant when it was made.
    named: Option<(u64, u64)>,
}

/// What has become of a socket's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// It still means this daemon's socket, or was given up.
    Kept,
    /// It is gone or somebody else's, and was made anew: the listener is to be taken again.
    MadeAnew,
    /// The whole directory is gone or somebody else's: nobody can find this daemon any more.
    Lost,
}

impl Socket {
    /// Makes the directory, takes the lock, and listens.
    pub(crate) fn listen(directory: &Path) -> Result<Socket, ListenError> {
        let path = directory.join("socket");
        let system = |errno| ListenError::System { path: path.clone(), errno };
        dir::create(directory)
            .map_err(|why| ListenError::Directory { path: directory.to_path_buf(), why })?;
        let lock = lock(directory).map_err(|errno| match errno {
            Errno::WOULDBLOCK => ListenError::Taken(directory.to_path_buf()),
            other => system(other),
        })?;
        // Whoever holds the lock owns the name; what is left of a killed daemon is in the way.
        let _ = rustix::fs::unlink(&path);
        let listener = uds::listen(&path).map_err(system)?;
        let named = identity(&path);
        Ok(Socket { path, listener: Some(listener), lock: Some(lock), named })
    }

    /// Looks whether callers still find this daemon. Somebody may have tidied up the directory; a
    /// daemon that nobody finds would hold its memory until it is idle for long enough.
    pub(crate) fn look(&mut self) -> Name {
        if self.lock.is_none() || self.named.is_some() && identity(&self.path) == self.named {
            return Name::Kept;
        }
        if !self.owns_directory() {
            return Name::Lost;
        }
        let _ = rustix::fs::unlink(&self.path);
        match uds::listen(&self.path) {
            Ok(listener) => {
                self.listener = Some(listener);
                self.named = identity(&self.path);
                Name::MadeAnew
            }
            Err(_) => Name::Lost,
        }
    }

    /// Whether the lock in the directory is the one that this daemon holds.
    fn owns_directory(&self) -> bool {
        let Some((lock, directory)) = self.lock.as_ref().zip(self.path.parent()) else {
            return false;
        };
        let held = rustix::fs::fstat(lock).map(|stat| (stat.st_dev, stat.st_ino));
        held.is_ok_and(|held| identity(&directory.join(LOCK)) == Some(held))
    }

    /// The listener, once.
    pub(crate) fn take_listener(&mut self) -> Option<OwnedFd> {
        self.listener.take()
    }

    /// Gives up name and lock, so that another daemon can listen while this one finishes. From
    /// then on the directory is the other's.
    pub(crate) fn release(&mut self) {
        if self.lock.is_some() {
            let _ = rustix::fs::unlink(&self.path);
            self.lock = None;
        }
    }
}

impl Drop for Socket {
    /// Removes what a daemon leaves in its directory, while the lock still keeps others out; the
    /// lock's own name goes last.
    fn drop(&mut self) {
        // A directory that was made anew is another daemon's.
        let Some(directory) = self.path.parent().filter(|_| self.owns_directory()) else { return };
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            let ours = OURS.contains(&name)
                || runtimes::is_ours(name)
                || name.starts_with(NOTES)
                || name.starts_with(ring::NAME.as_bytes())
                || name.ends_with(REPL);
            if ours {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        // What a user has put there is the user's: only an empty directory goes.
        for (folder, name) in runtimes::folders() {
            let folder = directory.join(folder);
            let _ = std::fs::remove_file(folder.join(name));
            let _ = std::fs::remove_file(folder.join(format!("{name}{}", runtimes::NEW)));
            let _ = std::fs::remove_dir(folder);
        }
        logs::remove(directory);
        let _ = rustix::fs::unlink(directory.join(LOCK));
    }
}

/// What a name means, links not followed; `None` if there is none.
fn identity(path: &Path) -> Option<(u64, u64)> {
    rustix::fs::lstat(path).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

const LOCK: &str = "lock";
/// What a daemon makes in its directory, other than the lock and the runtimes' files.
const OURS: [&[u8]; 4] = [b"socket", b"log", b"daemon.log", b"daemon.log.1"];
/// A learning run whose caller was killed may leave its notes.
const NOTES: &[u8] = b"notes-";
/// The socket of a `hob session repl` that was killed.
const REPL: &[u8] = b".repl";
/// How often the lock's file may change under a daemon that takes it.
const TRIES: usize = 8;

/// Takes the lock. A daemon that ends removes the file, so that the one that was locked here may
/// be nobody's any more: then it is made anew.
fn lock(directory: &Path) -> rustix::io::Result<OwnedFd> {
    let path = directory.join(LOCK);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    for _ in 0..TRIES {
        let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let locked = rustix::fs::fstat(&file)?;
        if identity(&path) == Some((locked.st_dev, locked.st_ino)) {
            return Ok(file);
        }
    }
    Err(Errno::WOULDBLOCK)
}
