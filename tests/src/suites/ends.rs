//! What objects do when a program ends: write, remove, warn, say something.
//!
//! Each kind of object is held in several ways by small programs, which end. Output, exit and the
//! files that are left must be those of a cold run, if two of them agree.
//!
//! Owns: the programs, their folders, and the report.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use super::program::write;
use super::{Called, Under, call_until_warm, go, in_lanes, masked, short};
use crate::World;
use crate::run::{Outcome, Run, read};

/// Cold runs after a difference, to see whether it is chance.
const CHANCES: usize = 4;
const WARM_CALLS: usize = 2;

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Programs: kinds of objects, each held in several ways.
    pub programs: usize,
    /// Those in which not everything is the same in two cold runs.
    pub unsteady: usize,
    /// Calls through hob.
    pub calls: usize,
    /// Those of them that were warm.
    pub warm: usize,
    /// Programs that never were warm, by the reason.
    pub cold: BTreeMap<String, usize>,
    /// What ended otherwise.
    pub different: Vec<Difference>,
}

/// A program that ended otherwise.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The object, and how it is held.
    pub program: String,
    /// What differs: a stream, the exit, a file.
    pub part: String,
    /// How the call was performed.
    pub reason: String,
    /// What a cold run leaves.
    pub cold: String,
    /// What the call left.
    pub warm: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, part, reason) = (&self.program, &self.part, &self.reason);
        let (cold, warm) = (short(&self.cold), short(&self.warm));
        write!(f, "different ({reason}): {program}: {part}\n    cold: {cold}\n    here: {warm}")
    }
}

/// What a run tells while it runs.
#[derive(Debug)]
pub enum Told<'a> {
    /// So many programs are done, of so many.
    Done(usize, usize),
    /// This was found.
    Different(&'a Difference),
}

/// A program as it was generated.
#[derive(Debug, Clone)]
struct Program {
    topic: String,
    text: String,
    options: Vec<String>,
    script: String,
    beside: String,
}

/// What a run leaves, part by part.
type Left = BTreeMap<String, String>;

/// Runs every program, in lanes that each have a hob of their own.
///
/// # Panics
/// When a program cannot even be made or started.
pub fn run(under: &Under, tell: impl FnMut(Told) + Send) -> Report {
    let programs = programs(under);
    let whole = Mutex::new((0, tell, Report::default()));
    in_lanes(|(lane, lanes)| {
        let world = World::of(under.hob.clone());
        for (index, program) in programs.iter().enumerate().skip(lane).step_by(lanes) {
            let mut report = Report::default();
            compare(under, &world, index, program, &mut report);
            let mut whole = whole.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            whole.0 += 1;
            for one in &report.different {
                (whole.1)(Told::Different(one));
            }
            let done = whole.0;
            (whole.1)(Told::Done(done, programs.len()));
            whole.2.add(report);
        }
        world.stop();
    });
    whole.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).2
}

fn programs(under: &Under) -> Vec<Program> {
    let made = under.generated("generate.py", &["ends"]);
    let field = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let all = made.as_array().into_iter().flatten().map(|one| Program {
        topic: field(one, "topic"),
        text: field(one, "text"),
        options: one["options"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect(),
        script: field(one, "script"),
        beside: field(one, "beside"),
    });
    under.taken(all.collect(), |one| (&one.topic, &one.text))
}

/// Compares the calls of one program with its cold runs.
fn compare(under: &Under, world: &World, index: usize, program: &Program, report: &mut Report) {
    let folder = world.path(format!("ends/{index:04}"));
    let work = folder.join("work");
    std::fs::create_dir_all(&work).expect("a folder can be made");
    let script = folder.join("end.py");
    write(&script, &program.script);
    write(&folder.join("beside.py"), &program.beside);
    let placed = |run: Run, interpreter: &[&str]| {
        run.args(interpreter)
            .args(&program.options)
            .args(&[&script])
            .within(&work)
            .env("PATH", under.path())
    };
    let cold = placed(world.run(&["python3"]), &[]);
    let cold = || {
        empty(&work);
        left(&go(&cold), &work)
    };
    // The first run writes what Python keeps of a module.
    cold();
    let (mut want, again) = (cold(), cold());
    let all = want.len();
    want.retain(|part, value| again.get(part) == Some(value));
    let mut loose: Vec<String> =
        again.keys().filter(|part| !want.contains_key(*part)).cloned().collect();
    report.programs += 1;
    report.unsteady += usize::from(want.len() < all);
    // An option belongs to an interpreter; without one, a script is named as such.
    let interpreter: &[&str] = if program.options.is_empty() { &[] } else { &["python3"] };
    let run = placed(world.hob(&["run"]), interpreter);
    let mut odd: Option<(String, Called, Left)> = None;
    empty(&work);
    let mut warm = 0;
    let last = call_until_warm(world, &run, WARM_CALLS, |called| {
        report.calls += 1;
        warm += usize::from(called.warm);
        let got = left(&called.outcome, &work);
        if odd.is_none()
            && let Some(part) = first_other(&want, &got, &loose)
        {
            odd = Some((part, called.clone(), got));
        }
        empty(&work);
    });
    report.warm += warm;
    if warm == 0 {
        *report.cold.entry(last.reason).or_default() += 1;
    }
    let Some((part, called, got)) = odd else { return };
    for _ in 0..CHANCES {
        if cold().get(&part) != want.get(&part) {
            loose.push(part);
            report.unsteady += 1;
            return;
        }
    }
    let text = |left: &Left| left.get(&part).cloned().unwrap_or("(nothing)".to_owned());
    report.different.push(Difference {
        program: format!("{} | {}", program.topic, program.text),
        reason: if called.warm { "warm".to_owned() } else { called.reason },
        cold: text(&want),
        warm: text(&got),
        part,
    });
}

/// The first part that is not what it is cold.
fn first_other(want: &Left, got: &Left, loose: &[String]) -> Option<String> {
    let mut parts = want.keys().chain(got.keys());
    parts.find(|part| !loose.contains(part) && got.get(*part) != want.get(*part)).cloned()
}

/// What a run has left.
fn left(outcome: &Outcome, work: &Path) -> Left {
    let mut left = Left::new();
    left.insert("exit".to_owned(), format!("{:?}", outcome.end));
    left.insert("stdout".to_owned(), masked(&outcome.text()));
    left.insert("stderr".to_owned(), masked(&outcome.complaint()));
    files(work, work, &mut left);
    left
}

/// Everything below a folder, but for what Python keeps of modules.
fn files(root: &Path, folder: &Path, left: &mut Left) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            left.insert(format!("folder {}", masked(&name)), String::new());
            files(root, &path, left);
        } else if kind.is_file() {
            let bytes = read(&path);
            // As text it can be shown; what is no text differs in its length, or in its digest.
            let digest = super::hash(&format!("{bytes:?}"), 0);
            let text =
                format!("{} bytes, {digest:x}: {}", bytes.len(), String::from_utf8_lossy(&bytes));
            left.insert(format!("file {}", masked(&name)), text);
        } else {
            left.insert(format!("other {}", masked(&name)), String::new());
        }
    }
}

fn empty(work: &Path) {
    std::fs::remove_dir_all(work)
        .and_then(|()| std::fs::create_dir(work))
        .expect("a folder can be made anew");
}

impl Report {
    fn add(&mut self, other: Report) {
        self.programs += other.programs;
        self.unsteady += other.unsteady;
        self.calls += other.calls;
        self.warm += other.warm;
        for (reason, count) in other.cold {
            *self.cold.entry(reason).or_default() += count;
        }
        self.different.extend(other.different);
    }
}
