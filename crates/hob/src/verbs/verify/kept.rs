//! The verdicts that are kept: `verified.ndjson` in the state directory, one program a line.
//!
//! A verdict is kept with what it is about: the identity of the program's file and of its
//! interpreter, and hob's build. It holds while these are unchanged. Neither outputs nor values of
//! the environment nor the text of arguments are kept.
//!
//! The file is private, bounded, and replaced whole by renaming, under a lock: of two that keep a
//! verdict at the same time, the second reads what the first wrote.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use hob_os::build_id;
use hob_resolve::{Program, TargetKind};
use rustix::fs::{FlockOperation, OFlags};

use super::record::{Identity, ProgramPart, Record, SCHEMA};
use crate::verbs::repeated::{DIGEST, digest};

/// The file's name.
const FILE: &str = "verified.ndjson";
/// Beside it: the next one, until it is renamed, and what is locked meanwhile.
const NEXT: &str = "verified.ndjson.next";
const LOCK: &str = "verified.lock";
/// Verdicts that are kept; the oldest go.
const VERDICTS_MAX: usize = 256;
/// A larger file is none of ours.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

impl Identity {
    /// The identity of a program as it is now.
    pub(super) fn of(program: &Program) -> Identity {
        let build = build_id::own().iter().map(|byte| format!("{byte:02x}")).collect();
        let is_script = program.is_hosted() && program.target.kind == TargetKind::Script;
        let script = is_script.then(|| content(&program.target.name));
        Identity { script, interpreter: stamp(&program.interpreter), build }
    }

    /// The identity of what a record is about, as it is now.
    fn again(&self, program: &ProgramPart) -> Identity {
        let interpreter = program.interpreter.as_ref().unwrap_or(&program.target);
        Identity {
            script: self.script.as_ref().map(|_| content(program.target.as_bytes())),
            interpreter: stamp(interpreter.as_bytes()),
            build: build_id::own().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Why a verdict about this does not hold for `now`, if it does not.
    fn why_not(&self, now: &Identity) -> Option<&'static str> {
        match (self.script == now.script, self.interpreter == now.interpreter) {
            (false, _) => Some("the script has changed"),
            (true, false) => Some("the interpreter has changed"),
            (true, true) if self.build != now.build => Some("hob is another build"),
            (true, true) => None,
        }
    }
}

/// A digest of a file's content; of nothing, if it cannot be read.
fn content(path: &[u8]) -> String {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    match std::fs::read(path) {
        Ok(bytes) => format!("{:016x}-{}", digest(DIGEST, &bytes), bytes.len()),
        Err(_) => "missing".to_owned(),
    }
}

/// What one `stat` says of a file.
fn stamp(path: &[u8]) -> String {
    match std::fs::metadata(Path::new(std::ffi::OsStr::from_bytes(path))) {
        Ok(metadata) => {
            let (size, inode) = (metadata.size(), metadata.ino());
            format!("{size}-{inode}-{}.{:09}", metadata.mtime(), metadata.mtime_nsec())
        }
        Err(_) => "missing".to_owned(),
    }
}

/// Keeps a verdict in the place of the program's older one with as many arguments.
pub(super) fn keep(state_dir: &Path, record: &Record) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
    // Held to the end: closing it frees it.
    let lock = written(state_dir, LOCK)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    let mut records = read(state_dir)?;
    let key = |record: &Record| (record.program.id.clone(), record.program.arguments);
    records.retain(|other| key(other) != key(record));
    let mut kept = record.clone();
    for aspect in &mut kept.aspects {
        aspect.diff.clear();
    }
    for world in &mut kept.worlds {
        world.aspects.clear();
    }
    records.push(kept);
    records.drain(..records.len().saturating_sub(VERDICTS_MAX));
    let mut text = Vec::new();
    for record in &records {
        serde_json::to_writer(&mut text, record)?;
        text.push(b'\n');
    }
    let mut file = written(state_dir, NEXT)?;
    // What a process that was killed left there.
    file.set_len(0)?;
    file.write_all(&text)?;
    std::fs::rename(state_dir.join(NEXT), state_dir.join(FILE))
}

/// Opens a private file of the state directory to write, made if it is missing.
fn written(state_dir: &Path, name: &str) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default());
    options.open(state_dir.join(name))
}

/// The verdicts that are kept, the oldest first. What a newer build wrote is left out.
fn read(state_dir: &Path) -> io::Result<Vec<Record>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = File::options();
    options.read(true).custom_flags(i32::try_from(flags).unwrap_or_default());
    let mut text = Vec::new();
    match options.open(state_dir.join(FILE)) {
        Ok(file) => _ = file.take(FILE_BYTES_MAX).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let lines = text.split(|byte| *byte == b'\n').map(serde_json::from_slice::<Record>);
    Ok(lines.flatten().filter(|record| record.schema == SCHEMA).collect())
}

/// The verdicts that are kept, with whether each still holds.
pub(super) fn list(state_dir: &Path) -> io::Result<Vec<Record>> {
    let mut records = read(state_dir)?;
    for record in &mut records {
        let why = record.identity.why_not(&record.identity.again(&record.program));
        record.holds = Some(why.is_none());
        record.why = why.map(str::to_owned);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Aspect, Verdict};
    use super::super::record::Runs;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn record(home: &Path, name: &str) -> Record {
        let script = home.join(name);
        if !script.exists() {
            std::fs::write(&script, "print('hello')\n").unwrap();
        }
        let target = script.to_str().unwrap().to_owned();
        let identity = Identity {
            script: Some(content(target.as_bytes())),
            interpreter: stamp(b"/bin/sh"),
            build: build_id::own().iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        Record {
            schema: SCHEMA.to_owned(),
            at: "2026-11-21T21:38:04Z".to_owned(),
            program: ProgramPart {
                id: name.to_owned(),
                name: name.to_owned(),
                target,
                runtime: "python".to_owned(),
                interpreter: Some("/bin/sh".to_owned()),
                arguments: 0,
            },
            verdict: Verdict::Differs,
            reason: None,
            runs: Runs::default(),
            aspects: vec![Aspect {
                name: "environment".to_owned(),
                verdict: Verdict::Differs,
                diff: vec!["-SECRET canary".to_owned()],
                note: None,
            }],
            worlds: Vec::new(),
            identity,
            holds: None,
            why: None,
        }
    }

    #[test]
    fn a_verdict_holds_until_its_script_changes_and_again_when_it_is_put_back() {
        let home = tempfile::tempdir().unwrap();
        let kept = record(home.path(), "a.py");
        keep(home.path(), &kept).unwrap();
        let holds = || list(home.path()).unwrap()[0].holds;
        assert_eq!(holds(), Some(true));
        std::fs::write(home.path().join("a.py"), "print('other')\n").unwrap();
        assert_eq!(holds(), Some(false));
        assert_eq!(list(home.path()).unwrap()[0].why.as_deref(), Some("the script has changed"));
        std::fs::write(home.path().join("a.py"), "print('hello')\n").unwrap();
        assert_eq!(holds(), Some(true));
        std::fs::remove_file(home.path().join("a.py")).unwrap();
        assert_eq!(holds(), Some(false));
    }

    #[test]
    fn the_newest_verdict_of_a_program_replaces_its_older_one_and_the_list_is_bounded() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..VERDICTS_MAX + 5 {
            keep(home.path(), &record(home.path(), &format!("{number}.py"))).unwrap();
        }
        let mut again = record(home.path(), "100.py");
        again.verdict = Verdict::Same;
        keep(home.path(), &again).unwrap();
        let kept = list(home.path()).unwrap();
        assert_eq!((kept.len(), kept[0].program.name.as_str()), (VERDICTS_MAX, "5.py"));
        let newest = kept.last().unwrap();
        assert_eq!((newest.program.name.as_str(), newest.verdict), ("100.py", Verdict::Same));
    }

    #[test]
    fn the_file_is_private_and_holds_no_diff() {
        let home = tempfile::tempdir().unwrap();
        keep(home.path(), &record(home.path(), "a.py")).unwrap();
        let path = home.path().join(FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!std::fs::read_to_string(&path).unwrap().contains("canary"));
        // A damaged line, and one of a newer build, cost nothing else.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text += "{\"schema\":\"hob.verify/9\"}\n{\"schema\n";
        std::fs::write(&path, text).unwrap();
        keep(home.path(), &record(home.path(), "b.py")).unwrap();
        assert_eq!(list(home.path()).unwrap().len(), 2);
    }

    #[test]
    fn verdicts_that_are_kept_at_the_same_time_are_all_kept() {
        let home = tempfile::tempdir().unwrap();
        let keep_some = |of: &str| {
            for number in 0..20 {
                keep(home.path(), &record(home.path(), &format!("{of}{number}.py"))).unwrap();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| keep_some("a"));
            scope.spawn(|| keep_some("b"));
        });
        assert_eq!(list(home.path()).unwrap().len(), 40);
    }
}
