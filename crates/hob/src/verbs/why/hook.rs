//! The directory from which a Python program's interpreter finds `sitecustomize.py`: made for a
//! `hob why`, private, and gone with it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::imports::{self, Stamps};

const FILE: &str = "sitecustomize.py";
const TEXT: &str = include_str!("sitecustomize.py");
const STAMPS: &str = "stamps";
/// Names that are tried.
const TRIES: u32 = 100;

/// The directory; removed when dropped.
#[derive(Debug)]
pub(super) struct Hook {
    folder: PathBuf,
}

impl Hook {
    /// Makes it.
    pub(super) fn make() -> std::io::Result<Hook> {
        let hook = Hook { folder: folder()? };
        std::fs::write(hook.file(), TEXT)?;
        Ok(hook)
    }

    /// The file that an interpreter opens.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// The environment with this directory searched first.
    pub(super) fn environment(&self, env: &[CString]) -> Vec<CString> {
        const NAME: &[u8] = b"PYTHONPATH=";
        let is_name = |entry: &&CString| entry.to_bytes().starts_with(NAME);
        let before = env.iter().find(is_name).map(|entry| &entry.to_bytes()[NAME.len()..]);
        let mut value = [NAME, path(&self.folder)].concat();
        if let Some(before) = before.filter(|before| !before.is_empty()) {
            value.push(b':');
            value.extend_from_slice(before);
        }
        let mut changed: Vec<_> = env.iter().filter(|entry| !is_name(entry)).cloned().collect();
        changed.extend(CString::new(value));
        changed
    }

    /// What a run has stamped; the next one begins with none.
    pub(super) fn take(&self) -> Stamps {
        let file = self.folder.join(STAMPS);
        let bytes = std::fs::read(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        imports::parse(&String::from_utf8_lossy(&bytes))
    }
}

/// A new private directory, below the temporary one.
pub(super) fn folder() -> std::io::Result<PathBuf> {
    let temporary = std::env::temp_dir().canonicalize()?;
    let mut last = std::io::ErrorKind::AlreadyExists.into();
    for number in 0..TRIES {
        let folder = temporary.join(format!("hob-why-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

impl Drop for Hook {
    fn drop(&mut self) {
        // What cannot be removed is empty of anything but times and names of modules.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn path(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_stands_first_and_is_private_and_goes() {
        use std::os::unix::fs::PermissionsExt;
        let hook = Hook::make().unwrap();
        let folder = hook.folder.clone();
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let shown = folder.to_str().unwrap();
        let check = |before: &[&str], want: &[String]| {
            let env: Vec<_> = before.iter().map(|entry| CString::new(*entry).unwrap()).collect();
            let changed: Vec<_> = hook
                .environment(&env)
                .into_iter()
                .map(|entry| entry.into_string().unwrap())
                .collect();
            assert_eq!(changed, want);
        };
        check(&["A=1"], &["A=1".to_owned(), format!("PYTHONPATH={shown}")]);
        check(&["PYTHONPATH="], &[format!("PYTHONPATH={shown}")]);
        check(
            &["PYTHONPATH=/x:/y", "PYTHONPATHS=z"],
            &["PYTHONPATHS=z".to_owned(), format!("PYTHONPATH={shown}:/x:/y")],
        );
        drop(hook);
        assert!(!folder.exists());
    }
}
