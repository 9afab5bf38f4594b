//! The file of the log, and the one before it.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};

use super::{BYTES_MAX, State};

/// How a file of lines that several processes add to is opened: never through a link, and a pipe in
/// its place holds nobody up.
pub const OPEN: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::CREATE)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Why a process that was replaced writes no more.
const OTHERS: &str = "another process has begun a log";

/// A log, if its file can be had.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    /// Where it lies. One of the same name that is made later is another process's.
    directory: Option<OwnedFd>,
    file: Option<File>,
    /// The name is another process's.
    is_left: bool,
    written: u64,
    lost: u64,
    why: Option<String>,
}

/// Where the log before is.
#[must_use]
pub fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

impl Kept {
    pub(super) fn begin(path: &Path) -> Kept {
        // Why the process before has ended is perhaps in what it left.
        let _ = std::fs::rename(path, older(path));
        Kept {
            path: path.to_owned(),
            directory: None,
            file: None,
            is_left: false,
            written: 0,
            lost: 0,
            why: None,
        }
    }

    pub(super) fn state(&self) -> State {
        State {
            path: Some(self.path.clone()),
            on: 0,
            written: self.written,
            lost: self.lost,
            why: self.why.clone(),
        }
    }

    pub(super) fn leave(&mut self) {
        self.is_left = true;
    }

    /// Writes a line, or counts that it is lost.
    pub(super) fn write(&mut self, line: &[u8]) {
        match self.put(line) {
            Ok(()) => self.written += 1,
            Err(error) => {
                self.lost += 1;
                self.why = Some(error.to_string());
            }
        }
    }

    fn put(&mut self, line: &[u8]) -> std::io::Result<()> {
        let mut meta = self.open()?.metadata()?;
        if meta.nlink() == 0 {
            // Somebody has removed it: who looks there is to find one.
            self.file = None;
            meta = self.open()?.metadata()?;
        }
        if meta.len() + line.len() as u64 > BYTES_MAX {
            self.put_away(&meta)?;
            meta = self.open()?.metadata()?;
        }
        let file = self.open()?;
        let put = rustix::io::write(&*file, line)?;
        if put < line.len() {
            // No half lines: the next one would go on with it.
            file.set_len(meta.len())?;
            return Err(Error::from(ErrorKind::StorageFull));
        }
        Ok(())
    }

    /// The file as it is, or opened.
    fn open(&mut self) -> std::io::Result<&mut File> {
        if self.file.is_none() && self.is_left {
            return Err(Error::other(OTHERS));
        }
        if self.file.is_none() {
            let name = self.path.file_name().unwrap_or_default().to_owned();
            let file =
                rustix::fs::openat(self.directory()?, &name, OPEN, Mode::from_raw_mode(0o600))?;
            self.file = Some(File::from(file));
        }
        self.file.as_mut().ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    /// The directory, from the first time on that it is there.
    fn directory(&mut self) -> std::io::Result<&OwnedFd> {
        if self.directory.is_none() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let path = self.path.parent().unwrap_or(Path::new("."));
            self.directory = Some(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
        }
        self.directory.as_ref().ok_or_else(|| Error::from(ErrorKind::NotFound))
    }

    /// Renames a full file, if it is still the one of this name: another process may have begun one.
    fn put_away(&mut self, own: &std::fs::Metadata) -> std::io::Result<()> {
        let named = self.path.symlink_metadata()?;
        if self.is_left || (named.dev(), named.ino()) != (own.dev(), own.ino()) {
            return Err(Error::other(OTHERS));
        }
        std::fs::rename(&self.path, older(&self.path))?;
        self.file = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> usize {
        std::fs::read_to_string(path).unwrap_or_default().lines().count()
    }

    #[test]
    fn a_full_file_becomes_the_one_before_and_no_third_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let mut kept = Kept::begin(&path);
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        let each = usize::try_from(BYTES_MAX).unwrap() / line.len();
        for _ in 0..each {
            kept.write(&line);
        }
        assert_eq!((lines(&path), older(&path).exists()), (each, false));
        for _ in 0..each + 5 {
            kept.write(&line);
        }
        assert_eq!((lines(&path), lines(&older(&path))), (5, each));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        let state = kept.state();
        assert_eq!((state.written, state.lost, state.why), (2 * each as u64 + 5, 0, None));
    }

    #[test]
    fn what_is_left_of_another_process_is_kept_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        std::fs::write(&path, "of the one before\n").unwrap();
        let mut kept = Kept::begin(&path);
        kept.write(b"mine\n");
        assert_eq!(std::fs::read_to_string(older(&path)).unwrap(), "of the one before\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine\n");
    }

    #[test]
    fn one_that_cannot_be_written_is_counted_and_goes_on_when_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gone/daemon.log");
        let mut kept = Kept::begin(&path);
        kept.write(b"one\n");
        kept.write(b"two\n");
        let state = kept.state();
        assert_eq!((state.written, state.lost), (0, 2));
        assert!(state.why.is_some_and(|why| why.contains("No such file")));
        std::fs::create_dir(dir.path().join("gone")).unwrap();
        kept.write(b"three\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
        // A full disk.
        kept.file = Some(File::options().append(true).open("/dev/full").unwrap());
        kept.write(b"four\n");
        assert_eq!((kept.state().written, kept.state().lost), (1, 3));
    }

    #[test]
    fn one_that_was_removed_is_made_anew_and_another_ones_is_not_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let mut kept = Kept::begin(&path);
        kept.write(b"one\n");
        std::fs::remove_file(&path).unwrap();
        kept.write(b"two\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
        // The next process begins; this one goes on in its file, up to the bound.
        let mut next = Kept::begin(&path);
        next.write(b"next\n");
        kept.write(b"three\n");
        assert_eq!(std::fs::read_to_string(older(&path)).unwrap(), "two\nthree\n");
        let long = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
        for _ in 0..5 {
            kept.write(&long);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "next\n");
        assert_eq!((kept.state().lost, next.state().written), (2, 1));
        // What was left is made by nobody again.
        kept.leave();
        std::fs::remove_file(older(&path)).unwrap();
        kept.write(b"four\n");
        assert_eq!((kept.state().lost, older(&path).exists()), (3, false));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "next\n");
    }
    #[test]
    fn one_whose_directory_is_gone_is_not_made_in_the_next_of_that_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/daemon.log");
        std::fs::create_dir(dir.path().join("run")).unwrap();
        let mut kept = Kept::begin(&path);
        kept.write(b"one\n");
        std::fs::remove_dir_all(dir.path().join("run")).unwrap();
        std::fs::create_dir(dir.path().join("run")).unwrap();
        kept.write(b"two\n");
        assert_eq!((kept.state().written, kept.state().lost, path.exists()), (1, 1, false));
    }
}
