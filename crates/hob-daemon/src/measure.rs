//! The staleness check by itself, for tests and for the bench: what it costs, and whether an edit
//! ever escapes it; what a note of a span costs, and what exports cost.
//!
//! Not part of hob: built for tests and with the feature `measure`. Files, edits and the thread
//! that makes them are real; an edit counts as made when its last system call has returned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use hob_core::ids::CallId;
use hob_core::phase::Mark;

use crate::freshness::{Before, FingerprintId, Freshness, NotYet, Sources, Verdict};
pub use crate::recorder::export::measured::{EXPORTS, Exported};
use crate::recorder::ring;

/// How long a fingerprint may take to become possible after the last write.
const PATIENCE: Duration = Duration::from_secs(20);
/// Programs whose fingerprints are kept at a time.
const GENERATION: u64 = 1000;
/// Programs that share a directory above.
const NEIGHBOURS: u64 = 20;

/// Rounds of notes that are timed.
const ROUNDS: u32 = 20;

/// How a check knows of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// It is told, and looks only then.
    Watches,
    /// It looks at everything each time, as on file systems that cannot be watched.
    Looks,
}

impl By {
    fn freshness(self) -> Freshness {
        match self {
            By::Watches => Freshness::new(),
            By::Looks => Freshness::unwatched(),
        }
    }
}

/// The check of one program.
#[derive(Debug)]
pub struct Check {
    freshness: Freshness,
    id: FingerprintId,
}

impl Check {
    /// A program that has loaded these files and searched these directories.
    ///
    /// # Errors
    /// When they change all the time.
    pub fn of(files: &[PathBuf], directories: &[PathBuf], by: By) -> io::Result<Check> {
        let names =
            files.iter().filter_map(|path| path.file_stem()).map(|name| bytes(name.as_ref()));
        let program = Loaded {
            files: files.iter().map(|path| bytes(path)).collect(),
            candidates: Vec::new(),
            directories: directories.iter().map(|path| bytes(path)).collect(),
            names: names.collect(),
        };
        let mut freshness = by.freshness();
        let id = keep_patiently(&mut freshness, &program)?;
        Ok(Check { freshness, id })
    }

    /// Whether all is as it was loaded: what the daemon asks before each call.
    pub fn holds(&mut self) -> bool {
        self.freshness.verdict(self.id) == Verdict::Fresh
    }
}

/// How long a note of a span takes, in nanoseconds: the mean of so many, of the round that was held
/// up least, in a ring in `folder`. Once in a process: its threads have their rings in the first
/// folder.
#[must_use]
pub fn note_ns(folder: &Path, count: u32) -> f64 {
    ring::begin(folder);
    // The first note makes the ring, and the first lap touches its pages.
    let note = |call: u64| ring::edge(CallId(call), Mark::Main, call);
    (0..hob_os::ring::RECORDS as u64).for_each(note);
    let round = |_| {
        let start = Instant::now();
        (0..u64::from(count)).for_each(note);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// How many notes there are in the rings of a directory, with those that were overwritten.
#[must_use]
pub fn notes(directory: &Path) -> u64 {
    let rings = hob_os::ring::files(directory);
    rings.iter().filter_map(|file| Some(hob_os::ring::read(file).ok()?.written)).sum()
}

/// What the rounds of a torture came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Torture {
    /// Edits that were made.
    pub rounds: u64,
    /// Edits after which the check still said that nothing had changed.
    pub stale: u64,
    /// Programs that were taken for changed before their edit.
    pub alarms: u64,
}

/// Makes `rounds` edits below `folder`, of kinds that `seed` decides, and asks after each. Every
/// other thousand does without watches. `tell` hears how many are done.
///
/// # Errors
/// When the folder cannot be written.
pub fn torture(
    folder: &Path,
    rounds: u64,
    seed: u64,
    mut tell: impl FnMut(u64),
) -> io::Result<Torture> {
    let mut dice = Dice(seed | 1);
    let mut told = Torture::default();
    let (to_writer, edits) = sync_channel(0);
    let (answer, done) = sync_channel(0);
    let writer = Writer { edits: to_writer, done };
    std::thread::scope(|scope| {
        scope.spawn(move || write(&edits, &answer));
        let outcome = (0..rounds.div_ceil(GENERATION)).try_for_each(|generation| {
            let size = GENERATION.min(rounds - generation * GENERATION);
            let by = if generation % 2 == 0 { By::Watches } else { By::Looks };
            let root = folder.join(format!("g{generation}"));
            let kinds: Vec<Edit> = (0..size).map(|_| dice.edit()).collect();
            one_generation(&root, &kinds, by, &writer, &mut told)?;
            tell(told.rounds);
            fs::remove_dir_all(&root)
        });
        drop(writer);
        outcome
    })?;
    Ok(told)
}

fn one_generation(
    root: &Path,
    kinds: &[Edit],
    by: By,
    writer: &Writer,
    told: &mut Torture,
) -> io::Result<()> {
    let mut freshness = by.freshness();
    let mut programs = Vec::with_capacity(kinds.len());
    for (at, kind) in (0u64..).zip(kinds) {
        let base = root.join(format!("n{}/p{at}", at / NEIGHBOURS));
        programs.push((prepare(&base, *kind)?, base));
    }
    let mut ids = Vec::with_capacity(kinds.len());
    for (program, _) in &programs {
        ids.push(keep_patiently(&mut freshness, program)?);
    }
    for ((kind, id), (_, base)) in kinds.iter().zip(ids).zip(programs) {
        if freshness.verdict(id) != Verdict::Fresh {
            told.alarms += 1;
        }
        writer.make(*kind, base)?;
        if freshness.verdict(id) == Verdict::Fresh {
            told.stale += 1;
        }
        told.rounds += 1;
    }
    Ok(())
}

/// An edit to make, and where.
type Job = (Edit, PathBuf);

/// This side of who makes the edits.
struct Writer {
    edits: SyncSender<Job>,
    done: Receiver<io::Result<()>>,
}

impl Writer {
    /// Has an edit made, and awaits that.
    fn make(&self, kind: Edit, base: PathBuf) -> io::Result<()> {
        let stopped = "the writer has stopped";
        self.edits.send((kind, base)).map_err(|_| io::Error::other(stopped))?;
        self.done.recv().map_err(|_| io::Error::other(stopped))?
    }
}

/// The other side: makes each edit and says so.
fn write(edits: &Receiver<Job>, answer: &SyncSender<io::Result<()>>) {
    for (kind, base) in edits {
        if answer.send(kind.make(&base)).is_err() {
            return;
        }
    }
}

/// The ways in which people and tools change what was loaded. Each keeps the file's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// Written in place.
    InPlace,
    /// The same, and its times set back.
    TimesBack,
    /// A new file renamed over it.
    Renamed,
    /// The same, with the old one's times.
    RenamedTimesBack,
    /// As editors do: the old one kept as a backup, a new one in its place.
    Editor,
    /// Removed, and another file linked in its place.
    LinkInPlace,
    /// Given a second name elsewhere, and written through that.
    LinkElsewhere,
    /// Written through a link that leads to it.
    ThroughLink,
    /// Its directory swapped for an equal one.
    Directory,
    /// A directory further above swapped.
    Above,
    /// A link on the way led elsewhere.
    Retargeted,
    /// Another one put where it is searched first.
    Earlier,
    /// Configuration that was looked for comes into being.
    Configured,
    /// Removed.
    Removed,
}

const EDITS: [Edit; 14] = [
    Edit::InPlace,
    Edit::TimesBack,
    Edit::Renamed,
    Edit::RenamedTimesBack,
    Edit::Editor,
    Edit::LinkInPlace,
    Edit::LinkElsewhere,
    Edit::ThroughLink,
    Edit::Directory,
    Edit::Above,
    Edit::Retargeted,
    Edit::Earlier,
    Edit::Configured,
    Edit::Removed,
];

/// What lies below the folder of each program.
const MODULE: &str = "above/pack/m.py";
const CONFIGURATION: &str = "etc/deep/m.ini";

/// A program of one module, as it is before its edit.
fn prepare(base: &Path, kind: Edit) -> io::Result<Loaded> {
    for folder in ["above/pack", "early", "spare/pack", "real"] {
        fs::create_dir_all(base.join(folder))?;
    }
    let module = base.join(MODULE);
    match kind {
        Edit::ThroughLink => {
            fs::write(base.join("real/m.py"), "one")?;
            symlink("../../real/m.py", &module)?;
        }
        Edit::Retargeted => {
            fs::remove_dir(base.join("above/pack"))?;
            symlink("../real", base.join("above/pack"))?;
            fs::write(&module, "one")?;
            spare(base)?;
        }
        Edit::Directory | Edit::Above => {
            fs::write(&module, "one")?;
            spare(base)?;
        }
        Edit::InPlace
        | Edit::TimesBack
        | Edit::Renamed
        | Edit::RenamedTimesBack
        | Edit::Editor
        | Edit::LinkInPlace
        | Edit::LinkElsewhere
        | Edit::Earlier
        | Edit::Configured
        | Edit::Removed => fs::write(&module, "one")?,
    }
    Ok(Loaded {
        files: [bytes(&module)].into(),
        candidates: vec![bytes(&base.join(CONFIGURATION))],
        directories: [bytes(&base.join("early")), bytes(&base.join("above/pack"))].into(),
        names: [b"m".to_vec()].into(),
    })
}

/// A file like the module, with its times.
fn spare(base: &Path) -> io::Result<()> {
    let other = base.join("spare/pack/m.py");
    fs::write(&other, "two")?;
    set_times(&other, &fs::metadata(base.join(MODULE))?)
}

impl Edit {
    fn make(self, base: &Path) -> io::Result<()> {
        let module = base.join(MODULE);
        let other = base.join("spare/other");
        match self {
            Edit::InPlace => fs::write(&module, "two"),
            Edit::TimesBack => {
                let before = fs::metadata(&module)?;
                fs::write(&module, "two")?;
                set_times(&module, &before)
            }
            Edit::Renamed => {
                fs::write(&other, "two")?;
                fs::rename(&other, &module)
            }
            Edit::RenamedTimesBack => {
                fs::write(&other, "two")?;
                set_times(&other, &fs::metadata(&module)?)?;
                fs::rename(&other, &module)
            }
            Edit::Editor => {
                fs::rename(&module, base.join("above/pack/m.py~"))?;
                fs::File::create_new(&module)?.write_all(b"two")
            }
            Edit::LinkInPlace => {
                fs::write(&other, "two")?;
                set_times(&other, &fs::metadata(&module)?)?;
                fs::remove_file(&module)?;
                fs::hard_link(&other, &module)
            }
            Edit::LinkElsewhere => {
                fs::hard_link(&module, &other)?;
                fs::write(&other, "two")
            }
            Edit::ThroughLink => fs::write(base.join("real/m.py"), "two"),
            Edit::Directory => swap(&base.join("above/pack"), &base.join("spare/pack")),
            Edit::Above => swap(&base.join("above"), &base.join("spare")),
            Edit::Retargeted => {
                symlink("../spare/pack", &other)?;
                fs::rename(&other, base.join("above/pack"))
            }
            Edit::Earlier => fs::write(base.join("early/m.py"), "two"),
            Edit::Configured => {
                let path = base.join(CONFIGURATION);
                fs::create_dir_all(path.parent().unwrap_or(base))?;
                fs::write(path, "two")
            }
            Edit::Removed => fs::remove_file(&module),
        }
    }
}

/// Puts a directory in the place of another.
fn swap(one: &Path, other: &Path) -> io::Result<()> {
    fs::rename(one, one.with_extension("old"))?;
    fs::rename(other, one)
}

fn set_times(path: &Path, as_of: &fs::Metadata) -> io::Result<()> {
    let times =
        fs::FileTimes::new().set_modified(as_of.modified()?).set_accessed(as_of.accessed()?);
    fs::File::options().write(true).open(path)?.set_times(times)
}

/// What a program was made from.
#[derive(Debug)]
struct Loaded {
    files: BTreeSet<Vec<u8>>,
    candidates: Vec<Vec<u8>>,
    directories: BTreeSet<Vec<u8>>,
    names: BTreeSet<Vec<u8>>,
}

/// Keeps the fingerprint, as soon as what was written is old enough.
fn keep_patiently(freshness: &mut Freshness, program: &Loaded) -> io::Result<FingerprintId> {
    let begin = Instant::now();
    let none = BTreeSet::new();
    loop {
        let sources = Sources {
            files: &program.files,
            candidates: &program.candidates,
            directories: &program.directories,
            names: &program.names,
            whole: &none,
            asked: &BTreeMap::new(),
            links: &BTreeMap::new(),
        };
        match freshness.build(sources, &Before::default(), SystemTime::now()) {
            Ok(fingerprint) => return Ok(freshness.keep(fingerprint)),
            Err(NotYet { .. }) if begin.elapsed() < PATIENCE => std::thread::yield_now(),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}

/// A small generator (xorshift): the same seed makes the same edits.
struct Dice(u64);

impl Dice {
    fn edit(&mut self) -> Edit {
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            self.0 ^= if left { self.0 << by } else { self.0 >> by };
        }
        let kinds = EDITS.len() as u64;
        EDITS[usize::try_from((self.0 >> 8) % kinds).unwrap_or(0)]
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_thousand_edits_are_all_noticed_and_nothing_else_is() {
        // In memory where there is such a place: a busy disk would make this take minutes.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let seed = u64::try_from(seed & u128::from(u64::MAX)).unwrap();
        println!("seed {seed}");
        let told = torture(folder.path(), 100_000, seed, |_| {}).unwrap();
        assert_eq!(told, Torture { rounds: 100_000, stale: 0, alarms: 0 }, "seed {seed}");
    }
}
