//! The directory that holds the socket: where it is, and whether it is safe.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Why the directory is not used. Nothing is sent through an unsafe one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsafe {
    /// It is named by a path that is not absolute: another place in every working directory.
    Relative,
    /// Its path has this many bytes, which leave no room for the name of a socket.
    TooLong(usize),
    /// It does not exist yet: safe to create.
    Missing,
    /// It is a link or not a directory.
    NotADirectory,
    /// It belongs to another user.
    Foreign,
    /// Others may enter it.
    Open,
    /// It cannot be looked at.
    Unreadable(Errno),
}

impl std::fmt::Display for Unsafe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unsafe::Relative => write!(f, "it is not an absolute path"),
            Unsafe::TooLong(bytes) => {
                write!(f, "its path has {bytes} bytes; {PATH_MAX} leave room for a socket")
            }
            Unsafe::Missing => write!(f, "it does not exist"),
            Unsafe::NotADirectory => write!(f, "it is a link or not a directory"),
            Unsafe::Foreign => write!(f, "it belongs to another user"),
            Unsafe::Open => write!(f, "others may enter it (its mode is not 0700)"),
            Unsafe::Unreadable(errno) => write!(f, "it cannot be looked at ({errno})"),
        }
    }
}

/// How many bytes the directory's path has at most: the kernel takes 107 for a socket's, and its
/// name in the directory is 7 of these.
pub const PATH_MAX: usize = 100;

/// What the directory is called where it is not named outright. With a NUL behind, as the others
/// here: the linker keeps such constants together (`hob/client.ld`), and a client reads few pages.
const NAME: &[u8] = c"hob".to_bytes();

/// Where the socket's directory is: `$HOB_DIR`, else `$XDG_RUNTIME_DIR/hob`, else
/// `/run/user/UID/hob` if that parent exists and is ours (so that a shell without the variable
/// meets the same daemon), else `/tmp/hob-UID`. Both arguments are the variables' values; empty
/// ones count as unset, and so does a runtime directory that is not ours (as left by `su`).
#[must_use]
pub fn location(hob_dir: Option<&[u8]>, runtime_dir: Option<&[u8]>) -> PathBuf {
    if let Some(dir) = hob_dir.filter(|dir| !dir.is_empty()) {
        return path(dir.to_vec());
    }
    if let Some(dir) = runtime_dir.filter(|dir| dir.starts_with(b"/") && is_ours(dir)) {
        return path(inside(dir, NAME));
    }
    let uid = rustix::process::getuid().as_raw();
    let parent = numbered(c"/run/user/".to_bytes(), uid);
    path(if is_ours(&parent) {
        inside(&parent, NAME)
    } else {
        numbered(c"/tmp/hob-".to_bytes(), uid)
    })
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// The name inside the directory. By hand, like the number below: formatting and path joining sit
/// on pages that a client touches for nothing else.
#[must_use]
pub fn inside(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(directory.len() + 1 + name.len());
    whole.extend_from_slice(directory);
    whole.push(b'/');
    whole.extend_from_slice(name);
    whole
}

fn numbered(prefix: &[u8], number: u32) -> Vec<u8> {
    let mut whole = prefix.to_vec();
    let mut divisor = 1_000_000_000;
    while divisor > 1 && number / divisor == 0 {
        divisor /= 10;
    }
    while divisor > 0 {
        whole.extend(u8::try_from(number / divisor % 10).map(|digit| b'0' + digit));
        divisor /= 10;
    }
    whole
}

fn is_ours(path: &[u8]) -> bool {
    rustix::fs::lstat(path).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            && stat.st_uid == rustix::process::getuid().as_raw()
    })
}

/// Checks the directory without following a link at its place.
pub fn check(path: &Path) -> Result<(), Unsafe> {
    if path.as_os_str().as_encoded_bytes().first() != Some(&b'/') {
        return Err(Unsafe::Relative);
    }
    let bytes = path.as_os_str().len();
    if bytes > PATH_MAX {
        return Err(Unsafe::TooLong(bytes));
    }
    let stat = match rustix::fs::lstat(path) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Err(Unsafe::Missing),
        Err(errno) => return Err(Unsafe::Unreadable(errno)),
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        Err(Unsafe::NotADirectory)
    } else if stat.st_uid != rustix::process::getuid().as_raw() {
        Err(Unsafe::Foreign)
    } else if stat.st_mode & 0o077 != 0 {
        Err(Unsafe::Open)
    } else {
        Ok(())
    }
}

/// Makes the directory (0700) if it is missing, then checks it. A parent that is missing is an
/// error, except for `$HOB_DIR`, whose parents the user chose: these are made too.
pub fn create(path: &Path) -> Result<(), Unsafe> {
    // Before anything is made in whatever directory this process stands.
    if let Err(why @ (Unsafe::Relative | Unsafe::TooLong(_))) = check(path) {
        return Err(why);
    }
    if let Some(parent) = path.parent() {
        // An error shows when the directory itself is made.
        let _ = std::fs::create_dir_all(parent);
    }
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => check(path),
        Err(errno) => Err(Unsafe::Unreadable(errno)),
    }
}

/// Whether something can be written in a directory, found out by doing so; nothing is left there.
pub fn try_to_write(directory: &Path) -> Result<(), Errno> {
    /// A page, so that a full file system has no room for it in what it has already.
    const TRIED: [u8; 4096] = [0x20; 4096];
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        // A file system that has no files without names.
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::ISDIR) => {
            let name = directory.join(format!("tried-{}", std::process::id()));
            let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let file = rustix::fs::open(&name, flags, mode)?;
            rustix::fs::unlink(&name)?;
            file
        }
        opened => opened?,
    };
    match crate::signals::spared_of_sigxfsz(|| rustix::io::write(&file, &TRIED))? {
        written if written == TRIED.len() => Ok(()),
        _ => Err(Errno::NOSPC),
    }
}

/// Whether a directory that does not exist could be made, and written in, as far as can be seen
/// without making it.
pub fn could_be_made(directory: &Path) -> Result<(), Errno> {
    let Some(parent) = directory.parent().and_then(existing) else { return Ok(()) };
    may_write(parent)?;
    let room = rustix::fs::statvfs(parent)?;
    // What does not count its files says 0 of all.
    if room.f_bavail == 0 && room.f_blocks > 0 || room.f_favail == 0 && room.f_files > 0 {
        return Err(Errno::NOSPC);
    }
    Ok(())
}

/// Whether files may be made in a directory, or it itself where it does not exist, as far as can be
/// seen without making any.
pub fn could_hold(directory: &Path) -> Result<(), Errno> {
    existing(directory).map_or(Ok(()), may_write)
}

/// The nearest directory that exists.
fn existing(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|path| path.exists())
}

fn may_write(directory: &Path) -> Result<(), Errno> {
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn hob_dir_wins_and_empty_variables_count_as_unset() {
        assert_eq!(location(Some(b"/x/y"), Some(b"/run/z")), PathBuf::from("/x/y"));
        let home = tempfile::tempdir().unwrap();
        let runtime = home.path().as_os_str().as_bytes();
        assert_eq!(location(Some(b""), Some(runtime)), home.path().join("hob"));
        let fallback = location(None, None);
        assert_eq!(location(None, Some(b"/nonexistent/dir")), fallback);
        assert_eq!(location(None, Some(b"relative")), fallback);
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 7, 10, 1000, u32::MAX] {
            assert_eq!(numbered(b"/x-", number), format!("/x-{number}").into_bytes());
        }
    }

    #[test]
    fn a_directory_is_tried_without_a_trace() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(try_to_write(home.path()), Ok(()));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
        assert_eq!(try_to_write(&home.path().join("none")), Err(Errno::NOENT));
        assert_eq!(could_be_made(&home.path().join("a/b")), Ok(()));
        // Nobody makes a directory there, root neither.
        assert!(try_to_write(Path::new("/proc")).is_err());
    }

    #[test]
    fn only_a_real_private_directory_of_ours_is_safe() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("hob");
        assert_eq!(check(&dir), Err(Unsafe::Missing));
        for relative in ["", "hob", "./hob", "../hob"] {
            assert_eq!(check(Path::new(relative)), Err(Unsafe::Relative));
            assert_eq!(create(Path::new(relative)), Err(Unsafe::Relative));
        }
        let long = home.path().join("l".repeat(PATH_MAX));
        let bytes = long.as_os_str().len();
        assert_eq!(check(&long), Err(Unsafe::TooLong(bytes)));
        assert_eq!(create(&long), Err(Unsafe::TooLong(bytes)));
        assert_eq!(create(&dir), Ok(()));
        assert_eq!(create(&dir), Ok(()));
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(check(&dir), Err(Unsafe::Open));
        let link = home.path().join("link");
        symlink(home.path(), &link).unwrap();
        assert_eq!(check(&link), Err(Unsafe::NotADirectory));
        let file = home.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(create(&file), Err(Unsafe::NotADirectory));
    }
}
