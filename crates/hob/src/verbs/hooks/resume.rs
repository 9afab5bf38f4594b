//! The resume file of a run over many targets: what began, what ended and how, a JSON line each,
//! written as it happens. Reports are made from it, so that neither a full disk nor the end of
//! hob at any moment loses a result; `--resume` runs what has no end in it.
//!
//! Invariants: a line is whole or, at the very end of the file, dropped; two runs never write the
//! same file (it is locked); memory does not grow with the targets but for 16 bytes of each that
//! `--resume` leaves out.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hob_core::hooks::Bytes;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::tally::{Ended, Tally, failed};
use super::targets::{Digest, Target};

/// The name of the format.
const SCHEMA: &str = "hob.hooks-resume/1";

/// A target that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    line: u64,
    digest: String,
    target: Bytes,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Schema(String),
    Of { dir: Bytes, targets: String },
    Sitting { at: String, jobs: u32 },
    Begun(Begun),
    Ended(Box<Ended>),
}

/// [`Line::Ended`], borrowed.
#[derive(Serialize)]
struct EndedLine<'a> {
    ended: &'a Ended,
}

/// What of an earlier run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// Nothing: all targets run.
    Nothing,
    /// What ended, however: the rest runs.
    Ended,
    /// What ended well: the rest runs, and what failed runs again.
    EndedWell,
}

/// Why there is no resume file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResumeError {
    /// The system refused.
    #[error("{path}: {why}")]
    Unusable {
        /// The file.
        path: String,
        /// Why.
        why: std::io::Error,
    },
    /// Another run writes it.
    #[error(
        "another `hob hooks run` works on these targets with this directory; wait for it, or \
         end it first ({0} is locked)"
    )]
    Busy(String),
    /// It is of another version, or no resume file.
    #[error("{0}: not a resume file of this hob; remove it to start anew")]
    Foreign(String),
}

/// What an earlier run left.
#[derive(Debug)]
pub(crate) struct Past {
    /// What has ended and counts, and how often: the same target may be there twice.
    done: HashMap<Digest, u32>,
    /// How many had ended in a run that does not count.
    pub(crate) aside: u64,
    /// What had begun and has no end: nobody knows how far it came.
    pub(crate) open: Vec<Begun>,
    /// What all of it comes to.
    pub(crate) tally: Tally,
}

impl Past {
    /// No earlier run.
    pub(crate) fn none() -> Past {
        Past { done: HashMap::new(), aside: 0, open: Vec::new(), tally: Tally::new() }
    }

    /// Nothing of it counts.
    fn put_aside(&mut self) {
        *self = Past { aside: self.count(), ..Past::none() };
    }

    /// Whether this target has ended, counted off.
    pub(crate) fn ended(&mut self, target: &Target) -> bool {
        if self.done.is_empty() {
            return false;
        }
        match self.done.get_mut(&target.digest()) {
            Some(0) | None => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// How many targets are left out.
    pub(crate) fn count(&self) -> u64 {
        self.done.values().map(|count| u64::from(*count)).sum()
    }
}

impl Begun {
    /// For people.
    pub(crate) fn shown(&self) -> String {
        format!("{} (line {})", self.target.text(), self.line)
    }
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    /// How long it is, all lines whole.
    len: u64,
    /// What is being written, kept so that its room is used again.
    line: Vec<u8>,
}

/// Where the resume file for these targets and this directory is.
pub(crate) fn path(state_dir: &Path, dir: &Path, targets: &Path) -> PathBuf {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut hash = Sha256::new();
    for path in [whole(dir), whole(targets)] {
        hash.update(path.as_os_str().as_bytes());
        hash.update([0]);
    }
    let digest: String = hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let stem = targets.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let stem: String = stem.chars().map(plain).take(40).collect();
    state_dir.join("hooks").join(format!("{stem}-{digest}.resume"))
}

impl Journal {
    /// Opens the file, and reads what an earlier run left in it. If that does not count, it is
    /// put aside under a name that ends in `.old`.
    pub(crate) fn open(path: &Path, earlier: Earlier) -> Result<(Journal, Past), ResumeError> {
        let unusable =
            |why: std::io::Error| ResumeError::Unusable { path: path.display().to_string(), why };
        if let Some(parent) = path.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(parent).map_err(unusable)?;
        }
        let file = locked(path)?;
        let mut journal = Journal { file, path: path.to_owned(), len: 0, line: Vec::new() };
        let mut past = journal.read(earlier == Earlier::EndedWell)?;
        match earlier {
            Earlier::Nothing => {
                if !past.open.is_empty() || !past.done.is_empty() {
                    let _ = std::fs::copy(path, path.with_extension("resume.old"));
                }
                journal.cut(0).map_err(unusable)?;
                past.put_aside();
            }
            Earlier::Ended => journal.cut(journal.len).map_err(unusable)?,
            Earlier::EndedWell => {
                journal.cut(journal.len).map_err(unusable)?;
                journal = journal.without_failures().map_err(unusable)?;
            }
        }
        Ok((journal, past))
    }

    /// What an earlier run left, without touching it.
    pub(crate) fn peek(path: &Path, earlier: Earlier) -> Result<Past, ResumeError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Past::none()),
            Err(why) => {
                return Err(ResumeError::Unusable { path: path.display().to_string(), why });
            }
        };
        let mut journal = Journal { file, path: path.to_owned(), len: 0, line: Vec::new() };
        let mut past = journal.read(earlier == Earlier::EndedWell)?;
        if earlier == Earlier::Nothing {
            past.put_aside();
        }
        Ok(past)
    }

    /// One without a name, for who has no place for it: it serves the report alone.
    pub(crate) fn unnamed() -> Result<Journal, ResumeError> {
        let file = tempfile::tempfile().map_err(|why| ResumeError::Unusable {
            path: std::env::temp_dir().display().to_string(),
            why,
        })?;
        Ok(Journal { file, path: PathBuf::new(), len: 0, line: Vec::new() })
    }

    /// Its name; empty if it has none.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A run begins.
    pub(crate) fn sit(
        &mut self,
        dir: &Path,
        targets: &str,
        at: &str,
        jobs: u32,
    ) -> std::io::Result<()> {
        if self.len == 0 {
            self.put(&Line::Schema(SCHEMA.to_owned()))?;
            let dir = Bytes::from(dir.as_os_str().as_bytes());
            self.put(&Line::Of { dir, targets: targets.to_owned() })?;
        }
        self.put(&Line::Sitting { at: at.to_owned(), jobs })
    }

    /// A target begins.
    pub(crate) fn begin(&mut self, target: &Target, digest: &str) -> std::io::Result<()> {
        let (name, digest) = (Bytes(target.name.clone()), digest.to_owned());
        self.put(&Line::Begun(Begun { line: target.line, digest, target: name }))
    }

    /// A target has ended.
    pub(crate) fn end(&mut self, ended: &Ended) -> std::io::Result<()> {
        self.put(&EndedLine { ended })
    }

    /// Appends a line, or leaves the file as it was.
    fn put(&mut self, line: &impl Serialize) -> std::io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        let written = self.file.write_all_at(&self.line, self.len);
        match written {
            Ok(()) => self.len += self.line.len() as u64,
            // Half a line is of no use to anybody.
            Err(_) => self.file.set_len(self.len)?,
        }
        if self.line.capacity() > LINE_BYTES_KEPT {
            self.line = Vec::new();
        }
        written
    }

    /// Makes what was written outlive a loss of power.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }

    /// Calls with each target that has ended, in order, and the number of its sitting.
    pub(crate) fn each<E>(
        &self,
        mut body: impl FnMut(u32, &Ended) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<std::io::Error>,
    {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let mut sitting = 0_u32;
        let mut lines = BufReader::with_capacity(1 << 16, file.take(self.len));
        let mut line = Vec::new();
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            match serde_json::from_slice(&line).map_err(std::io::Error::from)? {
                Line::Ended(ended) => body(sitting.saturating_sub(1), &ended)?,
                Line::Sitting { .. } => sitting += 1,
                Line::Schema(_) | Line::Of { .. } | Line::Begun(_) => {}
            }
        }
    }

    /// Reads what is there, up to the last whole line.
    fn read(&mut self, only_well: bool) -> Result<Past, ResumeError> {
        let foreign = || ResumeError::Foreign(self.path.display().to_string());
        let mut past = Past::none();
        let mut open: BTreeMap<(u64, String), Begun> = BTreeMap::new();
        let mut lines = BufReader::with_capacity(1 << 16, &self.file);
        let mut line = Vec::new();
        let mut len = 0;
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line);
            let read = read.map_err(|why| ResumeError::Unusable {
                path: self.path.display().to_string(),
                why,
            })?;
            if read == 0 || line.last() != Some(&b'\n') {
                break;
            }
            let parsed = serde_json::from_slice(&line).map_err(|_| foreign())?;
            if (len == 0) != matches!(&parsed, Line::Schema(schema) if schema == SCHEMA) {
                return Err(foreign());
            }
            match parsed {
                Line::Schema(_) | Line::Of { .. } => {}
                Line::Sitting { at, jobs } => {
                    open.clear();
                    past.tally.sit(at, jobs);
                }
                Line::Begun(begun) => {
                    open.insert((begun.line, begun.digest.clone()), begun);
                }
                Line::Ended(ended) => {
                    open.remove(&(ended.line, ended.digest.clone()));
                    if !only_well || !failed(ended.set.outcome) {
                        let digest = Digest::from_hex(&ended.digest).ok_or_else(foreign)?;
                        *past.done.entry(digest).or_default() += 1;
                        past.tally.add(&ended);
                    }
                }
            }
            len += read as u64;
        }
        self.len = len;
        past.open = open.into_values().collect();
        Ok(past)
    }

    fn cut(&mut self, len: u64) -> std::io::Result<()> {
        self.len = len;
        self.file.set_len(len)
    }

    /// The same file without what failed: written anew beside it, then put in its place.
    fn without_failures(self) -> std::io::Result<Journal> {
        let beside = self.path.with_extension("resume.new");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&beside)?;
        let mut out = BufWriter::new(&file);
        let mut old = BufReader::new(&self.file);
        old.seek(SeekFrom::Start(0))?;
        let mut len = 0;
        let mut line = Vec::new();
        while old.read_until(b'\n', &mut line)? > 0 {
            let failure = matches!(serde_json::from_slice(&line),
                Ok(Line::Ended(ended)) if failed(ended.set.outcome));
            if !failure {
                out.write_all(&line)?;
                len += line.len() as u64;
            }
            line.clear();
        }
        out.flush()?;
        drop(out);
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        std::fs::rename(&beside, &self.path)?;
        Ok(Journal { file, path: self.path, len, line: Vec::new() })
    }

    /// Nothing is left to do: the file goes.
    pub(crate) fn remove(self) {
        if !self.path.as_os_str().is_empty() {
            // One that stays is a few bytes that the next run overwrites.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A longer line's room is given back.
const LINE_BYTES_KEPT: usize = 1 << 20;

/// Opens the file and locks it. It may be exchanged between the two.
fn locked(path: &Path) -> Result<File, ResumeError> {
    let unusable =
        |why: std::io::Error| ResumeError::Unusable { path: path.display().to_string(), why };
    loop {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(unusable)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(ResumeError::Busy(path.display().to_string()));
            }
            Err(errno) => return Err(unusable(errno.into())),
        }
        let held = file.metadata().map_err(unusable)?;
        if std::fs::metadata(path).is_ok_and(|named| named.ino() == held.ino()) {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_core::hooks::{HookOutcome, SetRecord};

    fn target(name: &str) -> Target {
        let params = vec![(b"host".to_vec(), name.into())];
        Target { line: 1, name: name.into(), params }
    }

    fn ended(target: &Target, outcome: HookOutcome) -> Box<Ended> {
        let set = SetRecord {
            set: 0,
            target: Bytes(target.name.clone()),
            dir: "d".into(),
            outcome,
            at_us: 1,
            wall_us: 2,
            hooks: Vec::new(),
            not_run: Vec::new(),
            message: None,
            host: None,
        };
        Box::new(Ended { line: 1, digest: target.digest().hex(), lane: 0, tries: 1, set })
    }

    /// A run in which `a` ended well, `b` badly, and `c` has begun.
    fn left(path: &Path) {
        let (mut journal, past) = Journal::open(path, Earlier::Nothing).unwrap();
        assert_eq!((past.count(), past.open.len()), (0, 0));
        journal.sit(Path::new("d"), "t", "now", 2).unwrap();
        for (name, outcome) in [("a", HookOutcome::Ok), ("b", HookOutcome::Error)] {
            journal.begin(&target(name), &target(name).digest().hex()).unwrap();
            journal.end(&ended(&target(name), outcome)).unwrap();
        }
        journal.begin(&target("c"), &target("c").digest().hex()).unwrap();
    }

    #[test]
    fn what_ended_is_left_out_and_what_had_begun_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks/t.resume");
        left(&path);
        // The end of hob in the middle of a line.
        let torn = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&torn[..], b"{\"ended\":{\"li"].concat()).unwrap();
        let (mut journal, mut past) = Journal::open(&path, Earlier::Ended).unwrap();
        assert_eq!(past.open.iter().map(Begun::shown).collect::<Vec<_>>(), ["c (line 1)"]);
        assert_eq!((past.count(), past.tally.ended(), past.tally.failed()), (2, 2, 1));
        let again = ["a", "a", "b", "c"].map(|name| past.ended(&target(name)));
        assert_eq!(again, [true, false, true, false], "a target that is there twice runs twice");
        journal.end(&ended(&target("c"), HookOutcome::Ok)).unwrap();
        let mut seen = Vec::new();
        let each = journal.each(|sitting, ended| {
            seen.push((sitting, ended.set.target.text().into_owned()));
            Ok::<(), std::io::Error>(())
        });
        each.unwrap();
        assert_eq!(seen, [(0, "a".to_owned()), (0, "b".to_owned()), (0, "c".to_owned())]);
    }

    #[test]
    fn failures_run_again_where_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.resume");
        left(&path);
        let (journal, mut past) = Journal::open(&path, Earlier::EndedWell).unwrap();
        assert_eq!((past.tally.ended(), past.tally.failed()), (1, 0));
        assert!(past.ended(&target("a")) && !past.ended(&target("b")));
        drop(journal);
        let (_journal, past) = Journal::open(&path, Earlier::Ended).unwrap();
        assert_eq!(past.count(), 1);
    }

    #[test]
    fn two_runs_never_write_one_file_and_another_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.resume");
        let (journal, _) = Journal::open(&path, Earlier::Nothing).unwrap();
        assert!(matches!(Journal::open(&path, Earlier::Ended), Err(ResumeError::Busy(_))));
        drop(journal);
        left(&path);
        let (journal, past) = Journal::open(&path, Earlier::Nothing).unwrap();
        assert_eq!((past.count(), journal.len), (0, 0));
        drop(journal);
        let aside = path.with_extension("resume.old");
        assert!(std::fs::read(&aside).unwrap().starts_with(b"{\"schema\""), "it is put aside");
        std::fs::write(&path, "mine\n").unwrap();
        assert!(matches!(Journal::open(&path, Earlier::Ended), Err(ResumeError::Foreign(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"mine\n");
    }
}
