//! What the warm state was made from, and whether a cold start would still load the same.
//!
//! Files are compared by identity. Directories are compared by their relevant entries (see
//! `listing.rs`); a directory's own stamp only says when that comparison can be skipped.
//!
//! Invariants:
//! - a fingerprint is only built from what cannot have changed since the zygote was started:
//!   anything younger is [`NotYet`], and the zygote must be started again.
//! - a stamp is only trusted to stay different once it is older than the kernel's tick.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fmt;
use std::time::SystemTime;

use rustix::fs::FileType;

use super::before::{Before, young_step};
use super::identity::{self, Identity, Nanoseconds};
use super::listing::{Listing, Names, What, inside};

/// What warm state was made from, as its notes tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    /// Files that were loaded; each must exist.
    pub(crate) files: &'a BTreeSet<Vec<u8>>,
    /// Files that decide something whether they exist or not (`pyvenv.cfg`, version files).
    pub(crate) candidates: &'a [Vec<u8>],
    /// Directories that were searched, existing or not.
    pub(crate) directories: &'a BTreeSet<Vec<u8>>,
    /// Names of modules that were looked up, found or not.
    pub(crate) names: &'a BTreeSet<Vec<u8>>,
    /// Directories that were listed: every entry counts.
    pub(crate) whole: &'a BTreeSet<Vec<u8>>,
    /// Paths of which only the presence was asked, with the answer.
    pub(crate) asked: &'a BTreeMap<Vec<u8>, Presence>,
    /// Paths that were asked for as links, with where they led; nothing: it was none.
    pub(crate) links: &'a BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Whether something is there, links followed, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    File,
    Directory,
    Other,
    Missing,
}

impl Presence {
    /// What a note says (`docs/worker.md`).
    pub(crate) fn of_note(kind: u8) -> Option<Presence> {
        match kind {
            b'f' => Some(Presence::File),
            b'd' => Some(Presence::Directory),
            b'o' => Some(Presence::Other),
            b'-' => Some(Presence::Missing),
            _ => None,
        }
    }

    fn of(path: &CStr) -> Presence {
        let Some(stat) = identity::look(path) else { return Presence::Missing };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::RegularFile {
            Presence::File
        } else if kind == FileType::Directory {
            Presence::Directory
        } else {
            Presence::Other
        }
    }

    /// What must have happened for this to be so now.
    fn since(self, then: Presence) -> What {
        match (then, self) {
            (Presence::Missing, _) => What::Appeared,
            (_, Presence::Missing) => What::Removed,
            (_, _) => What::Edited,
        }
    }
}

/// Where a link leads; nothing if it is none.
fn leads_to(path: &CStr) -> Vec<u8> {
    rustix::fs::readlink(path, Vec::new()).map_or(Vec::new(), CString::into_bytes)
}

/// Why no fingerprint can be built: what was loaded may not be what is there now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{change}, while it was being loaded")]
pub(crate) struct NotYet {
    /// What changed too lately.
    pub(crate) change: Change,
}

/// Whether the warm state is still what a cold start would load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is.
    Fresh,
    /// It is not.
    Stale(Change),
}

/// What made warm state stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The file or directory.
    pub(crate) path: Vec<u8>,
    /// What became of it.
    pub(crate) what: What,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::Edited => "was edited",
            What::Removed => "was removed",
            What::Appeared => "appeared",
            What::Forgotten => "is no longer known",
            What::Mounted => return f.write_str("something was mounted or unmounted"),
        };
        write!(f, "{} {what}", String::from_utf8_lossy(&self.path))
    }
}

/// What the warm state was made from.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    files: Vec<File>,
    directories: Vec<Directory>,
    names: Names,
    /// Directories of which every entry counts.
    whole: Vec<(CString, Identity)>,
    asked: Vec<(CString, Presence)>,
    /// Paths that are links to these targets, or none.
    links: Vec<(CString, Vec<u8>)>,
}

#[derive(Debug)]
struct File {
    path: CString,
    identity: Option<Identity>,
}

#[derive(Debug)]
struct Directory {
    path: CString,
    state: State,
}

#[derive(Debug)]
enum State {
    Missing,
    /// No directory: a zip archive on the search path.
    File(Identity),
    Listed {
        stamp: Identity,
        /// Its modification time when it was searched. An interpreter remembers what a directory
        /// holds under that time, so a change after which it is the same would escape it.
        loaded: Nanoseconds,
        listing: Listing,
        /// Whether the stamp is old enough that any change gives another one.
        settled: bool,
    },
}

/// What must be watched to know when a fingerprint has to be checked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'p> {
    /// A file, existing or not.
    File(&'p CStr),
    /// Anything, existing or not, of which nothing else counts.
    Entry(&'p CStr),
    /// A directory with relevant entries, existing or not.
    Directory(&'p CStr),
    /// A directory of which every entry counts.
    Whole(&'p CStr),
}

impl Fingerprint {
    /// Takes the fingerprint of what a zygote that was started at `started_at` has loaded. `before`
    /// is what was there before.
    pub(super) fn build(
        sources: Sources<'_>,
        before: &Before,
        started_at: SystemTime,
    ) -> Result<Fingerprint, NotYet> {
        let since = identity::doubtful_from(started_at);
        let candidates: BTreeSet<&[u8]> = sources.candidates.iter().map(Vec::as_slice).collect();
        let is_file = |path: &[u8]| sources.files.contains(path) || candidates.contains(path);
        let paths = sources.files.iter().chain(sources.candidates).chain(sources.directories);
        let changed = before
            .changed(is_file, |path| sources.directories.contains(path))
            .or_else(|| young_step(paths, since));
        if let Some(path) = changed {
            return Err(not_yet(path, What::Edited));
        }
        let mut files = Vec::with_capacity(sources.files.len() + sources.candidates.len());
        for path in sources.files {
            files.extend(File::loaded(path, since)?);
        }
        for path in sources.candidates {
            if !sources.files.contains(path) {
                files.extend(File::candidate(path, since)?);
            }
        }
        let names = Names::new(sources.names.iter().map(Vec::as_slice));
        let mut directories = Vec::with_capacity(sources.directories.len());
        for path in sources.directories {
            let Some(directory) = Directory::build(path, &names, since)? else { continue };
            for path in directory.configuration() {
                files.extend(File::candidate(path.to_bytes(), since)?);
            }
            directories.push(directory);
        }
        let mut whole = Vec::with_capacity(sources.whole.len());
        for path in sources.whole {
            let Ok(path) = CString::new(path.as_slice()) else { continue };
            let Some(identity) = Identity::of(&path) else {
                return Err(not_yet(path.to_bytes(), What::Removed));
            };
            if identity.changed() >= since {
                return Err(not_yet(path.to_bytes(), What::Edited));
            }
            whole.push((path, identity));
        }
        let mut asked = Vec::with_capacity(sources.asked.len());
        for (path, then) in sources.asked {
            let Ok(path) = CString::new(path.as_slice()) else { continue };
            let now = Presence::of(&path);
            if now != *then {
                return Err(not_yet(path.to_bytes(), now.since(*then)));
            }
            asked.push((path, now));
        }
        let mut links = Vec::with_capacity(sources.links.len());
        for (path, then) in sources.links {
            let Ok(path) = CString::new(path.as_slice()) else { continue };
            if leads_to(&path) != *then {
                return Err(not_yet(path.to_bytes(), What::Edited));
            }
            links.push((path, then.clone()));
        }
        Ok(Fingerprint { files, directories, names, whole, asked, links })
    }

    /// Looks at everything.
    pub(crate) fn check(&mut self) -> Verdict {
        let now = SystemTime::now();
        for file in &self.files {
            if let Some(change) = file.change() {
                return Verdict::Stale(change);
            }
        }
        for directory in &mut self.directories {
            if let Some(change) = directory.change(&self.names, now) {
                return Verdict::Stale(change);
            }
        }
        for (path, then) in &self.whole {
            let what = match Identity::of(path) {
                Some(now) if now == *then => continue,
                Some(_) => What::Edited,
                None => What::Removed,
            };
            return Verdict::Stale(Change { path: path.to_bytes().to_vec(), what });
        }
        for (path, then) in &self.asked {
            let now = Presence::of(path);
            if now != *then {
                let path = path.to_bytes().to_vec();
                return Verdict::Stale(Change { path, what: now.since(*then) });
            }
        }
        for (path, then) in &self.links {
            if leads_to(path) != *then {
                let path = path.to_bytes().to_vec();
                return Verdict::Stale(Change { path, what: What::Edited });
            }
        }
        Verdict::Fresh
    }

    /// Whether an event about an entry of this name could concern it.
    pub(super) fn concerns(&self, entry: &[u8]) -> bool {
        self.names.cover(entry)
    }

    /// What to watch.
    pub(super) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let files = self.files.iter().map(|file| Place::File(&file.path));
        let directories = self.directories.iter().map(|directory| match directory.state {
            State::File(_) => Place::File(&directory.path),
            State::Missing | State::Listed { .. } => Place::Directory(&directory.path),
        });
        let whole = self.whole.iter().map(|(path, _)| Place::Whole(path));
        let asked = self.asked.iter().map(|(path, _)| Place::Entry(path));
        let links = self.links.iter().map(|(path, _)| Place::Entry(path));
        files.chain(directories).chain(whole).chain(asked).chain(links)
    }
}

impl File {
    /// A file that was loaded. What lies inside an archive is the archive's file.
    fn loaded(path: &[u8], since: Nanoseconds) -> Result<Option<File>, NotYet> {
        let mut end = path.len();
        loop {
            match File::candidate(&path[..end], since)? {
                Some(file) if file.identity.is_some() => return Ok(Some(file)),
                // A directory is no file: its relevant entries are compared if it was searched.
                None if end == path.len() => return Ok(None),
                Some(_) | None => {}
            }
            end = match path[..end].iter().rposition(|byte| *byte == b'/') {
                Some(slash) if slash > 0 && !is_directory(&path[..slash]) => slash,
                Some(_) | None => return Err(not_yet(path, What::Removed)),
            };
        }
    }

    fn candidate(path: &[u8], since: Nanoseconds) -> Result<Option<File>, NotYet> {
        let Ok(path) = CString::new(path) else { return Ok(None) };
        let Some(stat) = identity::look(&path) else {
            return Ok(Some(File { path, identity: None }));
        };
        if identity::is_directory(&stat) {
            return Ok(None);
        }
        let identity = Identity::from(&stat);
        // The modification time may be anything; the change time tells of every edit.
        if identity.changed() >= since {
            return Err(not_yet(path.to_bytes(), What::Edited));
        }
        Ok(Some(File { path, identity: Some(identity) }))
    }

    fn change(&self) -> Option<Change> {
        let what = match (self.identity, Identity::of(&self.path)) {
            (then, now) if then == now => return None,
            (None, _) => What::Appeared,
            (_, None) => What::Removed,
            (Some(_), Some(_)) => What::Edited,
        };
        Some(Change { path: self.path.to_bytes().to_vec(), what })
    }
}

impl Directory {
    fn build(path: &[u8], names: &Names, since: Nanoseconds) -> Result<Option<Directory>, NotYet> {
        let Ok(path) = CString::new(path) else { return Ok(None) };
        let state = match identity::look(&path) {
            None => State::Missing,
            Some(stat) if !identity::is_directory(&stat) => {
                let identity = Identity::from(&stat);
                if identity.changed() >= since {
                    return Err(not_yet(path.to_bytes(), What::Edited));
                }
                State::File(identity)
            }
            Some(stat) => {
                let stamp = Identity::from(&stat);
                // What cannot be listed cannot be searched either.
                let listing = Listing::read(&path, names).unwrap_or_default();
                // Young entries may have come after the search; which old ones went, no one
                // can tell, but whatever was loaded is among the files.
                let settled = stamp.changed() < since;
                if !settled && let Some(entry) = listing.newer(&path, since) {
                    return Err(not_yet(entry.to_bytes(), What::Appeared));
                }
                State::Listed { stamp, loaded: stamp.modified(), listing, settled }
            }
        };
        Ok(Some(Directory { path, state }))
    }

    /// The path configuration in it.
    fn configuration(&self) -> Vec<CString> {
        match &self.state {
            State::Missing | State::File(_) => Vec::new(),
            State::Listed { listing, .. } => {
                listing.configuration().filter_map(|name| inside(&self.path, name)).collect()
            }
        }
    }

    fn change(&mut self, names: &Names, now: SystemTime) -> Option<Change> {
        let path = self.path.to_bytes();
        let changed = |what| Some(Change { path: path.to_vec(), what });
        let found = identity::look(&self.path);
        match (&mut self.state, found) {
            (State::Missing, None) => None,
            (State::Missing, Some(_)) => changed(What::Appeared),
            (State::File(_) | State::Listed { .. }, None) => changed(What::Removed),
            (State::File(then), Some(stat)) if *then == Identity::from(&stat) => None,
            (State::File(_), Some(_)) => changed(What::Edited),
            (State::Listed { stamp, loaded, listing, settled }, Some(stat)) => {
                let seen = Identity::from(&stat);
                if *settled && *stamp == seen {
                    return None;
                }
                let newer = Listing::read(&self.path, names).unwrap_or_default();
                if let Some((entry, what)) = listing.difference(&newer) {
                    let path = inside(&self.path, &entry).map_or(entry, CString::into_bytes);
                    return Some(Change { path, what });
                }
                if *stamp != seen && seen.modified() == *loaded {
                    return changed(What::Edited);
                }
                *settled = seen.changed() < identity::doubtful_from(now);
                *stamp = seen;
                None
            }
        }
    }
}

fn not_yet(path: &[u8], what: What) -> NotYet {
    NotYet { change: Change { path: path.to_vec(), what } }
}

fn is_directory(path: &[u8]) -> bool {
    let stat = CString::new(path).ok().and_then(|path| identity::look(&path));
    stat.is_some_and(|stat| identity::is_directory(&stat))
}
