//! The way to a file: every directory and every link that its name leads through, under watch.
//!
//! A name is resolved here as the kernel resolves it, one component after the other, and each
//! directory is watched before the next component is looked up in it. Whatever is put in the way
//! afterwards, at any level, is therefore an event; nothing has to be looked at from the outside.
//!
//! Invariants: watched before looked at; what cannot be watched ends the walk with
//! [`Unwatchable`], and its fingerprint is compared before every call.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};

use rustix::fs::FileType;

use super::FingerprintId;
use super::fingerprint::Place;
use super::listing::inside;
use super::watch::{self, Interest, Target, Unwatchable, Watch};

/// The longest chain of links that is followed, as in the kernel.
const LINKS_MAX: usize = 40;

/// The names that decide what a fingerprint's paths lead to.
#[derive(Debug, Default)]
pub(super) struct Marked {
    /// Of directories and links on the way: what is replaced here is watched no longer.
    pub(super) ways: HashSet<Vec<u8>>,
    /// Of the files at its end.
    pub(super) ends: HashSet<Vec<u8>>,
}

/// Watches for all of a fingerprint's places.
pub(super) fn watch_all<'p>(
    watch: &mut Watch,
    places: impl Iterator<Item = Place<'p>>,
    owner: FingerprintId,
) -> Result<Marked, Unwatchable> {
    let mut walk = Walk {
        watch,
        owner,
        marked: Marked::default(),
        known: HashMap::new(),
        watched: HashMap::new(),
        devices: HashSet::new(),
    };
    for place in places {
        match place {
            Place::File(path) => walk.file(path)?,
            Place::Entry(path) => walk.entry(path)?,
            Place::Directory(path) => walk.directory(path, Interest::Named)?,
            Place::Whole(path) => walk.directory(path, Interest::Every)?,
        }
    }
    Ok(walk.marked)
}

struct Walk<'w> {
    watch: &'w mut Watch,
    owner: FingerprintId,
    marked: Marked,
    /// Directories as they are named, and as they are without links; `None`: not there.
    known: HashMap<Vec<u8>, Option<CString>>,
    /// What is watched of each directory.
    watched: HashMap<CString, (Target, Interest)>,
    /// Devices that are known to be local.
    devices: HashSet<u64>,
}

impl Walk<'_> {
    fn directory(&mut self, path: &CStr, interest: Interest) -> Result<(), Unwatchable> {
        match self.real(path.to_bytes(), LINKS_MAX)? {
            Some(directory) => self.keep(&directory, Target::Entries, interest),
            None => Ok(()),
        }
    }

    /// What only has to be there, whatever it is: another step of the way.
    fn entry(&mut self, path: &CStr) -> Result<(), Unwatchable> {
        self.real(path.to_bytes(), LINKS_MAX).map(|_| ())
    }

    fn file(&mut self, path: &CStr) -> Result<(), Unwatchable> {
        let mut path = path.to_bytes().to_vec();
        for _ in 0..LINKS_MAX {
            let Some((up, name)) = split(&path) else { return Ok(()) };
            let Some(directory) = self.real(up, LINKS_MAX)? else { return Ok(()) };
            self.keep(&directory, Target::Contents, Interest::Named)?;
            let Some(end) = inside(&directory, name) else { return Ok(()) };
            match look(&end) {
                Some(FileType::Symlink) => {
                    self.marked.ways.insert(name.to_vec());
                    let Some(target) = target(&directory, &end) else { return Ok(()) };
                    path = target;
                }
                found => {
                    self.marked.ends.insert(name.to_vec());
                    if found == Some(FileType::RegularFile) {
                        self.watch.add(&end, Target::File, Interest::Named, self.owner)?;
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The directory without links, with all that leads to it under watch.
    fn real(&mut self, path: &[u8], links_left: usize) -> Result<Option<CString>, Unwatchable> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let found = match split(path) {
            None => Some(c"/".to_owned()),
            Some((up, name)) => match self.real(up, links_left)? {
                None => None,
                Some(directory) => self.step(&directory, name, links_left)?,
            },
        };
        self.known.insert(path.to_vec(), found.clone());
        Ok(found)
    }

    fn step(
        &mut self,
        directory: &CString,
        name: &[u8],
        links_left: usize,
    ) -> Result<Option<CString>, Unwatchable> {
        if matches!(name, b"" | b".") {
            return Ok(Some(directory.clone()));
        }
        if name == b".." {
            let up = split(directory.to_bytes()).and_then(|(up, _)| CString::new(up).ok());
            return Ok(Some(up.filter(|up| !up.is_empty()).unwrap_or_else(|| c"/".to_owned())));
        }
        self.keep(directory, Target::Entries, Interest::Named)?;
        self.marked.ways.insert(name.to_vec());
        let Some(path) = inside(directory, name) else { return Ok(None) };
        match look(&path) {
            Some(FileType::Directory) => Ok(Some(path)),
            Some(FileType::Symlink) if links_left > 0 => match target(directory, &path) {
                Some(target) => self.real(&target, links_left - 1),
                None => Ok(None),
            },
            Some(_) | None => Ok(None),
        }
    }

    /// Watches a directory, once for each more that is wanted of it.
    fn keep(
        &mut self,
        directory: &CString,
        target: Target,
        interest: Interest,
    ) -> Result<(), Unwatchable> {
        let before = self.watched.get(directory).copied();
        let both = before.map_or((target, interest), |(t, i)| (t.max(target), i.max(interest)));
        if before == Some(both) {
            return Ok(());
        }
        if before.is_none() {
            let stat = rustix::fs::stat(directory.as_c_str()).map_err(|_| Unwatchable)?;
            if !self.devices.contains(&stat.st_dev) {
                if !watch::is_local(directory) {
                    return Err(Unwatchable);
                }
                self.devices.insert(stat.st_dev);
            }
        }
        self.watch.add(directory, both.0, both.1, self.owner)?;
        self.watched.insert(directory.clone(), both);
        Ok(())
    }
}

/// What a path itself is, no link followed.
fn look(path: &CStr) -> Option<FileType> {
    rustix::fs::lstat(path).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// Where a link leads.
fn target(directory: &CStr, link: &CStr) -> Option<Vec<u8>> {
    let target = rustix::fs::readlink(link, Vec::new()).ok()?.into_bytes();
    if target.starts_with(b"/") {
        return Some(target);
    }
    inside(directory, &target).map(CString::into_bytes)
}

/// The directory and the last component; `None` for the root.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = path.iter().rposition(|byte| *byte != b'/')?;
    let path = &path[..=end];
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    Some((&path[..slash], &path[slash + 1..]))
}
