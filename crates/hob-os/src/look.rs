//! Looking into a file without a change to what is there. To open a pipe is to become its reader:
//! whoever waited to write goes on, and has lost it when the look ends. A device may act when it is
//! opened. So nothing but a regular file is opened to look.
//!
//! The name is asked first, and what was opened again: what changes between the two is opened
//! without waiting for anyone. It does not say what a file means.

use std::io::{self, Read};
use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

/// How a file is opened to look into it: it never waits, and never takes a terminal.
const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// What a path leads to.
#[derive(Debug)]
pub enum Seen {
    /// A regular file, open for reading.
    File(OwnedFd, Stat),
    /// Anything else, which was not opened.
    Other(Stat),
}

impl Seen {
    /// What it is.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        match self {
            Seen::File(_, stat) | Seen::Other(stat) => stat,
        }
    }

    /// The open file; an error where it is none.
    ///
    /// # Errors
    /// `EISDIR` for a directory, `EINVAL` for what is neither.
    pub fn file(self) -> Result<OwnedFd, Errno> {
        match self {
            Seen::File(fd, _) => Ok(fd),
            Seen::Other(stat) if is(&stat, FileType::Directory) => Err(Errno::ISDIR),
            Seen::Other(_) => Err(Errno::INVAL),
        }
    }
}

/// Looks at a path below a directory, and opens what it leads to if that is a regular file.
///
/// # Errors
/// The system's, where it cannot be looked at or is not to be read.
pub fn at<P: Arg + Copy>(directory: impl AsFd, path: P) -> Result<Seen, Errno> {
    let directory = directory.as_fd();
    let named = rustix::fs::statat(directory, path, AtFlags::empty())?;
    if !is(&named, FileType::RegularFile) {
        return Ok(Seen::Other(named));
    }
    let fd = rustix::fs::openat(directory, path, FLAGS, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    Ok(match is(&stat, FileType::RegularFile) {
        true => Seen::File(fd, stat),
        false => Seen::Other(stat),
    })
}

/// The first bytes of a regular file, as many as are there.
///
/// # Errors
/// The system's, and those of [`Seen::file`].
pub fn head<const N: usize>(path: &Path) -> io::Result<([u8; N], usize)> {
    let fd = at(CWD, path)?.file()?;
    let mut bytes = [0; N];
    let len = rustix::io::pread(&fd, &mut bytes, 0)?;
    Ok((bytes, len))
}

/// The whole of a regular file, as [`std::fs::read`] does it.
///
/// # Errors
/// The system's, and those of [`Seen::file`].
pub fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::from(at(CWD, path)?.file()?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The whole of a regular file of text.
///
/// # Errors
/// Those of [`whole`], and where it is no UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(whole(path)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn is(stat: &Stat, wanted: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == wanted
}

#[cfg(test)]
mod tests {
    use rustix::fs::inotify;

    use super::*;

    /// Whether anything in the directory was opened while `act` ran.
    fn opens(directory: &Path, act: impl FnOnce()) -> bool {
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, directory, inotify::WatchFlags::OPEN).unwrap();
        act();
        let mut room = [std::mem::MaybeUninit::uninit(); 512];
        inotify::Reader::new(&watch, &mut room).next().is_ok()
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("file"), "some text").unwrap();
        std::fs::create_dir(path("directory")).unwrap();
        rustix::fs::mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink("pipe", path("link")).unwrap();
        for name in ["directory", "pipe", "socket", "link"] {
            let opened = opens(home.path(), || {
                assert!(matches!(at(CWD, &*path(name)), Ok(Seen::Other(_))), "{name}");
                assert!(whole(&path(name)).is_err() && head::<2>(&path(name)).is_err(), "{name}");
            });
            assert!(!opened, "{name}");
        }
        assert!(opens(home.path(), || assert_eq!(text(&path("file")).unwrap(), "some text")));
        assert_eq!(head::<2>(&path("file")).unwrap(), (*b"so", 2));
        assert_eq!(whole(&path("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(at(CWD, &*path("directory")).unwrap().file().unwrap_err(), Errno::ISDIR);
    }
}
