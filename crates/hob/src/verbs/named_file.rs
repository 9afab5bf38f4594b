//! A file whose name a user has given to be written: there whole, or as it was; and what is no file
//! (a device, a FIFO) is written to, never put aside. One that grows ([`open_growing`]) is the only
//! one that is seen before it is whole.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How a name is written.
enum Way {
    /// Beside this file, which it then becomes by a rename, with this mode.
    Beside(PathBuf, Option<u32>),
    /// Into what is there; a regular file is emptied first.
    Into,
}

/// Whether it can be written, as far as that can be told before there is anything to write.
///
/// # Errors
/// It cannot.
pub(in crate::verbs) fn check(path: &Path) -> io::Result<()> {
    match way(path)? {
        Way::Beside(target, _) => {
            let (beside, _) = create_beside(&target)?;
            std::fs::remove_file(beside)
        }
        // To open a FIFO would wait for who reads it.
        Way::Into => Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?),
    }
}

/// Writes it.
///
/// # Errors
/// It cannot be written. A file that was there is as it was before, unless it could only be written
/// in its place (another name leads to it, too; it is another user's; its folder is not writable).
pub(in crate::verbs) fn write(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let (target, mode) = match way(path)? {
        Way::Beside(target, mode) => (target, mode),
        Way::Into => {
            return filled(OpenOptions::new().write(true).truncate(true).open(path)?, fill);
        }
    };
    let (beside, file) = create_beside(&target)?;
    let made = (|| {
        if let Some(mode) = mode {
            file.set_permissions(PermissionsExt::from_mode(mode))?;
        }
        let synced = file.try_clone()?;
        filled(file, fill)?;
        synced.sync_all()?;
        std::fs::rename(&beside, &target)
    })();
    made.inspect_err(|_| {
        // A part would be taken for all of it.
        let _ = std::fs::remove_file(&beside);
    })
}

/// The same as [`check`] of what [`open_growing`] opens. Nothing is emptied.
///
/// # Errors
/// It cannot be written.
pub(in crate::verbs) fn check_growing(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?),
        Err(_) => check(path),
    }
}

/// Opens it to be written bit by bit, behind whatever is there by then: a regular file is emptied, so
/// that whoever follows it by its name or its descriptor sees what comes.
///
/// # Errors
/// It cannot be opened. To open a FIFO waits for who reads it.
pub(in crate::verbs) fn open_growing(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o666).open(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

fn filled(file: File, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    fill(&mut out)?;
    out.flush()
}

fn way(path: &Path) -> io::Result<Way> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if is_replaceable(&found) => {
            let target = path.canonicalize()?;
            // Its folder may be one in which nothing can be made.
            let folder = target.parent().unwrap_or(Path::new("/"));
            Ok(match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
                Ok(()) => Way::Beside(target, Some(found.mode() & 0o7777)),
                Err(_) => Way::Into,
            })
        }
        Ok(_) => Ok(Way::Into),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Way::Beside(end_of_links(path)?, None))
        }
        Err(error) => Err(error),
    }
}

/// Whether a new file in its place is the same to everybody.
fn is_replaceable(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw()
}

/// Where a name leads whose last link leads to nothing yet.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    const LINKS_MAX: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = target.with_file_name(format!(".{name}.hob-{}", std::process::id()));
    // One that a run of this pid has left.
    let _ = std::fs::remove_file(&beside);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o666).open(&beside)?;
    Ok((beside, file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn put(path: &Path, text: &str) -> io::Result<()> {
        check(path)?;
        write(path, |out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn each_kind_of_name_is_written_and_is_what_it_was() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        for name in ["new", "old", "private", "one", "folder"] {
            if name == "folder" {
                std::fs::create_dir(at(name)).unwrap();
            } else if name != "new" {
                std::fs::write(at(name), "before, and longer").unwrap();
            }
        }
        std::fs::set_permissions(at("private"), PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::hard_link(at("one"), at("other")).unwrap();
        symlink("old", at("link")).unwrap();
        symlink("link-2", at("link-1")).unwrap();
        symlink("comes", at("link-2")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("/dev/null", at("null")).unwrap();
        for name in ["new", "private", "one", "link", "link-1", "null"] {
            put(&at(name), name).unwrap();
        }
        assert_eq!(
            ["new", "private", "old", "comes"].map(read),
            ["new", "private", "link", "link-1"]
        );
        assert_eq!((read("one"), read("other")), ("one".to_owned(), "one".to_owned()));
        assert_eq!(std::fs::metadata(at("private")).unwrap().mode() & 0o777, 0o600);
        for name in ["link", "link-1", "link-2", "null"] {
            assert!(at(name).is_symlink(), "{name}");
        }
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert!(put(&at("folder"), "").is_err() && put(&at("loop"), "").is_err());
        let left = std::fs::read_dir(place.path()).unwrap();
        let left = left.filter(|entry| {
            entry.as_ref().unwrap().file_name().to_string_lossy().contains(".hob-")
        });
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn what_grows_is_the_file_that_was_there_emptied() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("old"), "before").unwrap();
        std::fs::hard_link(at("old"), at("other")).unwrap();
        symlink("new", at("link")).unwrap();
        for name in ["old", "link", "/dev/null"] {
            check_growing(&at(name)).unwrap();
        }
        assert_eq!(std::fs::read(at("old")).unwrap(), b"before");
        assert!(!at("new").exists());
        for name in ["old", "link", "/dev/null"] {
            let mut file = open_growing(&at(name)).unwrap();
            file.write_all(b"1").unwrap();
            file.write_all(b"2").unwrap();
        }
        let all = ["old", "other", "new"].map(|name| std::fs::read(at(name)).unwrap());
        assert_eq!(all, [b"12", b"12", b"12"]);
        assert!(at("link").is_symlink());
        assert!(check_growing(place.path()).is_err() && check_growing(&at("no/file")).is_err());
    }

    #[test]
    fn a_fifo_is_read_from_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || std::fs::read_to_string(fifo).unwrap()
        });
        put(&fifo, "told").unwrap();
        assert_eq!(reader.join().unwrap(), "told");
        assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
    }

    #[test]
    fn what_cannot_be_filled_leaves_what_was_there() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "before").unwrap();
        let full = write(&file, |out| {
            out.write_all(b"part")?;
            Err(rustix::io::Errno::NOSPC.into())
        });
        assert!(full.is_err() && std::fs::read_to_string(&file).unwrap() == "before");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
        assert!(put(Path::new("/dev/full"), "told").is_err());
    }
}
