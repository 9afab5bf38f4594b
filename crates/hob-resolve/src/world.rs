//! The caller's world as a resolution sees it: files from its directory, variables from its
//! environment with a skipped shim's changes on top.
//!
//! Every look is one or two system calls relative to the caller's directory. The directory's own
//! path is only read when an absolute path is asked for.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;

use hob_os::look::{self, Seen};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// How much of a file is read to learn what it is. The kernel reads 256 bytes of a `#!` line; a
/// pyenv shim has about 300.
pub(crate) const HEAD_BYTES: usize = 512;

/// The largest file that is read whole.
const TEXT_BYTES_MAX: usize = 1 << 19;

/// The longest path that `readlink` is asked for.
const PATH_BYTES: usize = 4096;

/// The caller's world.
pub(crate) struct World<'a> {
    env: crate::Lookup<'a>,
    cwd: BorrowedFd<'a>,
    cwd_path: OnceCell<Vec<u8>>,
    /// What skipped shims set, newest last.
    pub(crate) set: Vec<(Vec<u8>, Vec<u8>)>,
    /// What skipped shims removed.
    pub(crate) unset: Vec<Vec<u8>>,
    /// Files that decided something on the way.
    pub(crate) watch: Vec<Vec<u8>>,
    /// Names for which a shim of hob's own was passed over on `PATH`.
    shimmed: RefCell<Vec<Vec<u8>>>,
    /// Everything that was looked at, if the asker wants to remember the answer.
    noted: Option<RefCell<Noted>>,
}

/// What a resolution depended on: as long as none of it changes, the answer stays the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noted {
    /// Absolute paths of files and directories that were looked at, existing or not.
    pub paths: BTreeSet<Vec<u8>>,
    /// Variables of the caller's environment that were looked at, set or not.
    pub names: BTreeSet<Vec<u8>>,
}

/// A file that was looked at, and its first bytes if it is a regular one.
pub(crate) struct Head {
    bytes: [u8; HEAD_BYTES],
    len: usize,
    seen: Seen,
}

impl Head {
    /// The first bytes, at most [`HEAD_BYTES`].
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Whether these bytes are the whole file.
    pub(crate) fn is_whole(&self) -> bool {
        self.len < HEAD_BYTES
    }

    /// What kind of file it is.
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.seen.stat().st_mode)
    }

    /// Whether executing it changes the user, the group, or what they may.
    pub(crate) fn is_set_id(&self) -> bool {
        let Seen::File(fd, stat) = &self.seen else { return false };
        let mode = Mode::from_raw_mode(stat.st_mode);
        let mut none: [u8; 0] = [];
        mode.contains(Mode::SUID)
            || mode.contains(Mode::SGID | Mode::XGRP)
            || rustix::fs::fgetxattr(fd, c"security.capability", &mut none[..]).is_ok()
    }

    /// The last component of the path with every link followed.
    pub(crate) fn real_name(&self) -> Option<Vec<u8>> {
        match &self.seen {
            Seen::File(fd, _) => Some(base_name(&descriptor_path(fd.as_fd())?).to_vec()),
            Seen::Other(_) => None,
        }
    }
}

impl<'a> World<'a> {
    /// The world of a caller.
    pub(crate) fn new(env: crate::Lookup<'a>, cwd: BorrowedFd<'a>) -> Self {
        World {
            env,
            cwd,
            cwd_path: OnceCell::new(),
            set: Vec::new(),
            unset: Vec::new(),
            watch: Vec::new(),
            shimmed: RefCell::default(),
            noted: None,
        }
    }

    /// The same, and whatever is looked at is noted.
    pub(crate) fn noting(env: crate::Lookup<'a>, cwd: BorrowedFd<'a>) -> Self {
        World { noted: Some(RefCell::default()), ..World::new(env, cwd) }
    }

    /// What was noted.
    pub(crate) fn into_noted(self) -> Noted {
        self.noted.map(RefCell::into_inner).unwrap_or_default()
    }

    fn note(&self, path: &[u8]) {
        if let Some(noted) = &self.noted {
            noted.borrow_mut().paths.insert(self.absolute(path));
        }
    }

    /// Remembers that the first file of this name on `PATH` is a shim of ours.
    pub(crate) fn note_shimmed(&self, name: &[u8]) {
        self.shimmed.borrow_mut().push(name.to_vec());
    }

    /// Whether a shim of ours was passed over for this name.
    pub(crate) fn is_shimmed(&self, name: &[u8]) -> bool {
        self.shimmed.borrow().iter().any(|known| known == name)
    }

    /// What a link names; `None` if the path is no link.
    pub(crate) fn link_target(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.note(path);
        let mut room = [0_u8; PATH_BYTES];
        let len = rustix::fs::readlinkat_raw(self.cwd, path, &mut room[..]).ok()?;
        room.get(..len).map(<[u8]>::to_vec)
    }

    /// A variable, with a skipped shim's changes applied.
    pub(crate) fn var(&self, name: &[u8]) -> Option<&[u8]> {
        let ours = self.set.iter().rev().find(|(key, _)| key == name);
        ours.map(|(_, value)| value.as_slice()).or_else(|| {
            if let Some(noted) = &self.noted {
                noted.borrow_mut().names.insert(name.to_vec());
            }
            (self.env)(name)
        })
    }

    /// A variable that is set and not empty.
    pub(crate) fn full_var(&self, name: &[u8]) -> Option<&[u8]> {
        self.var(name).filter(|value| !value.is_empty())
    }

    /// The caller's directory as a path; empty if it has none any more.
    pub(crate) fn cwd_path(&self) -> &[u8] {
        self.cwd_path.get_or_init(|| descriptor_path(self.cwd).unwrap_or_default())
    }

    /// The path as an absolute one, joined as the interpreter joins it: nothing is normalised.
    pub(crate) fn absolute(&self, path: &[u8]) -> Vec<u8> {
        if path.starts_with(b"/") {
            return path.to_vec();
        }
        join(self.cwd_path(), path)
    }

    /// Looks at a file, and reads the head of a regular one; nothing else is opened.
    pub(crate) fn head(&self, path: &[u8]) -> Result<Head, Errno> {
        self.note(path);
        let seen = look::at(self.cwd, path)?;
        let (mut bytes, mut len) = ([0; HEAD_BYTES], 0);
        if let Seen::File(fd, _) = &seen {
            len = rustix::io::pread(fd, &mut bytes, 0)?;
        }
        Ok(Head { bytes, len, seen })
    }

    /// A whole file; `None` if it is no plain file, too large, or cannot be read.
    pub(crate) fn text(&self, path: &[u8]) -> Option<Vec<u8>> {
        let head = self.head(path).ok()?;
        let Seen::File(fd, stat) = &head.seen else { return None };
        let size = usize::try_from(stat.st_size).ok()?;
        if size > TEXT_BYTES_MAX {
            return None;
        }
        let mut text = vec![0; size + 1];
        let mut at = 0;
        loop {
            let more = rustix::io::pread(fd, &mut text[at..], at as u64).ok()?;
            at += more;
            // One that has grown meanwhile is another one.
            if at > size {
                return None;
            }
            if more == 0 {
                text.truncate(at);
                return Some(text);
            }
        }
    }

    /// Looks at what a path leads to.
    pub(crate) fn stat(&self, path: &[u8]) -> Result<Stat, Errno> {
        self.note(path);
        rustix::fs::statat(self.cwd, path, AtFlags::empty())
    }

    /// Whether a path leads to something of this type.
    pub(crate) fn is(&self, path: &[u8], wanted: FileType) -> bool {
        self.stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == wanted)
    }

    /// Whether the caller may execute (or, for a directory, walk) the path.
    pub(crate) fn may_execute(&self, path: &[u8]) -> Result<(), Errno> {
        self.note(path);
        match rustix::fs::accessat(self.cwd, path, Access::EXEC_OK, AtFlags::EACCESS) {
            // Containers' filters that are older than `faccessat2` refuse it in either way. The
            // older call asks for the real user, who is the effective one.
            Err(Errno::PERM | Errno::NOSYS) => {
                rustix::fs::accessat(self.cwd, path, Access::EXEC_OK, AtFlags::empty())
            }
            asked => asked,
        }
    }

    /// Whether a path leads to the caller's working directory.
    pub(crate) fn is_cwd(&self, path: &[u8]) -> bool {
        let here = rustix::fs::fstat(self.cwd);
        let there = self.stat(path);
        matches!((here, there), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
    }

    /// The path of a file with every link followed.
    pub(crate) fn real_path(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.note(path);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.cwd, path, flags, Mode::empty()).ok()?;
        descriptor_path(fd.as_fd())
    }

    /// The names in a directory, in no order; `None` if it cannot be listed.
    pub(crate) fn list(&self, path: &[u8]) -> Option<Vec<Vec<u8>>> {
        self.note(path);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let fd = rustix::fs::openat(self.cwd, path, flags, Mode::empty()).ok()?;
        let mut room = Vec::with_capacity(4096);
        let mut names = Vec::new();
        let mut entries = rustix::fs::RawDir::new(fd, room.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let name = entry.ok()?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Some(names)
    }
}

/// The path behind a descriptor, if it has one.
fn descriptor_path(fd: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0";
    let mut number = [0_u8; 10];
    let mut rest = u32::try_from(fd.as_raw_fd()).ok()?;
    let mut at = number.len();
    loop {
        at -= 1;
        number[at] = b'0' + u8::try_from(rest % 10).ok()?;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let digits = &number[at..];
    link[14..14 + digits.len()].copy_from_slice(digits);
    let path = &link[..14 + digits.len()];
    let mut room = [0_u8; PATH_BYTES];
    let len = rustix::fs::readlinkat_raw(CWD, path, &mut room[..]).ok()?;
    let target = room.get(..len)?;
    target.starts_with(b"/").then(|| target.to_vec())
}

/// The last component of a path.
pub(crate) fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// What stands before the last slash: the directory, empty for the root, `None` without a slash.
pub(crate) fn dir_name(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    Some(&path[..slash])
}

/// A directory and a name, with one slash between.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
    path.extend_from_slice(dir);
    if !dir.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
