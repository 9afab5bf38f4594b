//! Whatever a module, or the start of an interpreter, finds of the outside and keeps must be what
//! a cold run finds in the same world.
//!
//! Questions are asked at the import of modules and at the start of interpreters. A program is
//! taught in one world and then called in others; in each, every answer must be that of a cold
//! run there, if two cold runs agree on it. What differs is asked once more, alone.
//!
//! Owns: the walk through the worlds, and the report.

mod around;
mod known;
mod terminal;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::program::{self, Answers, Batch, Question, Spot};
use super::{Called, Under, WARM_CALLS, call_until_warm, go, in_lanes, masked, short};
use crate::World;
use crate::run::Run;
use around::{Around, OTHERS};

/// Cold runs after a difference, to see whether it is chance.
const CHANCES: usize = 2;

/// A question that was answered otherwise.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What was asked, and where.
    pub question: String,
    /// Where it was asked.
    pub spot: Spot,
    /// In which worlds, each with how the call was performed.
    pub worlds: Vec<String>,
    /// What a cold run says in the first of them.
    pub cold: String,
    /// What the call said.
    pub warm: String,
    /// Whether a program that asks only this differs too, where others may have disturbed it.
    pub alone: bool,
    /// The row of `docs/fidelity.md` that says so.
    pub known: Option<&'static str>,
}

/// What came of it in one world.
#[derive(Debug, Default, Clone, Copy)]
pub struct InWorld {
    /// Answers of cold runs.
    pub asked: usize,
    /// Those on which cold runs do not agree.
    pub unsteady: usize,
    /// Calls through hob.
    pub calls: usize,
    /// Those of them that were warm.
    pub warm: usize,
    /// Answers that were others.
    pub different: usize,
    /// Those of them that `docs/fidelity.md` says to be.
    pub known: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Questions, each asked in two places.
    pub questions: usize,
    /// Answers of cold runs: question, place and world.
    pub asked: usize,
    /// Those on which cold runs do not agree, and which are left out.
    pub unsteady: usize,
    /// Questions and places whose answer is not the same in all worlds.
    pub telling: usize,
    /// Calls through hob.
    pub calls: usize,
    /// Those of them that were warm.
    pub warm: usize,
    /// The same of each world, by its name.
    pub worlds: BTreeMap<&'static str, InWorld>,
    /// Programs, and worlds of programs, that never were warm, by the reason.
    pub cold: BTreeMap<String, usize>,
    /// All differences.
    pub different: Vec<Difference>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.map(|row| format!(" (known: {row})")).unwrap_or_default();
        let company = if self.alone { "" } else { " (only beside others)" };
        let (question, worlds) = (&self.question, self.worlds.join(", "));
        writeln!(f, "different{known}{company}: {question} at {:?}, in {worlds}", self.spot)?;
        write!(f, "    cold: {}\n    here: {}", short(&self.cold), short(&self.warm))
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

/// Asks everything, in lanes that each have a hob of their own.
///
/// # Panics
/// When a program cannot even be made or started.
pub fn run(under: &Under, tell: impl FnMut(Told) + Send) -> Report {
    let tell = Mutex::new((0, tell));
    let tell = |all, found: &[Difference]| {
        let mut tell = tell.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tell.0 += 1;
        let done = tell.0;
        for one in found {
            (tell.1)(Told::Different(one));
        }
        (tell.1)(Told::Done(done, all));
    };
    let reports = in_lanes(|lane| one_lane(under, lane, &tell));
    let mut whole = Report::default();
    for report in reports {
        whole.add(report);
    }
    whole
}

/// Every so many-th batch.
fn one_lane(under: &Under, lane: (usize, usize), tell: &impl Fn(usize, &[Difference])) -> Report {
    let (lane, lanes) = lane;
    let world = World::of(under.hob.clone());
    let fixture = world.path("fixture");
    std::fs::create_dir(&fixture).expect("a folder can be made");
    let walk = Walk { under, world: &world, fixture };
    walk.change("make");
    let questions = program::questions(under, &["questions", &walk.fixture.to_string_lossy()]);
    let mut report = Report::default();
    let (part, parts) = under.part;
    let batches: Vec<_> = program::batches(questions).into_iter().enumerate().collect();
    let batches: Vec<_> = batches.into_iter().skip(part - 1).step_by(parts).collect();
    for (index, batch) in batches.iter().skip(lane).step_by(lanes) {
        report.questions += batch.len();
        // The turn of the places is by the number among all: so it is the same in parts.
        for (half, spot) in under.spots(index / lanes).into_iter().enumerate() {
            let folder = walk.world.path(format!("asked/{index:03}-{half}"));
            let told = report.different.len();
            walk.whole(&folder, spot, batch, &mut report);
            tell(under.spots(0).len() * batches.len(), &report.different[told..]);
        }
    }
    world.stop();
    report
}

impl Report {
    fn add(&mut self, other: Report) {
        self.questions += other.questions;
        self.asked += other.asked;
        self.unsteady += other.unsteady;
        for (name, world) in other.worlds {
            self.worlds.entry(name).or_default().add(world);
        }
        self.telling += other.telling;
        self.calls += other.calls;
        self.warm += other.warm;
        for (reason, count) in other.cold {
            *self.cold.entry(reason).or_default() += count;
        }
        self.different.extend(other.different);
    }
}

impl InWorld {
    fn add(&mut self, other: InWorld) {
        self.asked += other.asked;
        self.unsteady += other.unsteady;
        self.calls += other.calls;
        self.warm += other.warm;
        self.different += other.different;
        self.known += other.known;
    }
}

/// A world and its name.
type Place = (Around, &'static str);

/// Where programs are taught.
const BASE: Place = (Around::Base, "base");

/// A difference in one world, by the index of its question.
struct Found {
    index: usize,
    around: Place,
    reason: String,
    cold: String,
    warm: String,
}

struct Walk<'a> {
    under: &'a Under,
    world: &'a World,
    fixture: PathBuf,
}

impl Walk<'_> {
    /// Makes, changes or restores what the questions are about.
    fn change(&self, how: &str) {
        let fixture = self.fixture.to_string_lossy();
        self.under.generated("fixture.py", &[&fixture, how]);
    }

    fn cold(&self, batch: &Batch, around: Around) -> Run {
        self.placed(batch, around, self.world.run(&["python3"]))
    }

    fn through_hob(&self, batch: &Batch, around: Around) -> Run {
        self.placed(batch, around, self.world.hob(&["run"]))
    }

    fn placed(&self, batch: &Batch, around: Around, run: Run) -> Run {
        let path = batch.path(self.under);
        around.around(run.args(&[&batch.script]).env("PATH", path), &self.fixture)
    }

    /// One cold run's answers.
    fn cold_answers(&self, batch: &Batch, around: Around) -> Answers {
        if around == Around::Terminal {
            let run = self.cold(batch, around);
            return batch.answers(&terminal::run(self.world, &run, None), masked);
        }
        batch.answers(&go(&self.cold(batch, around)), masked)
    }

    /// Walks a program through all worlds. One that cannot be made warm is halved, for what keeps
    /// it cold may be a single question, and would hide the others.
    fn whole(&self, folder: &Path, spot: Spot, questions: &[Question], report: &mut Report) {
        let batch = Batch::make(self.under, folder, spot, questions);
        // The first run writes what Python keeps of a module.
        self.cold_answers(&batch, Around::Base);
        let mut found = Vec::new();
        let (base, warm) = self.one_world(&batch, BASE, WARM_CALLS, report, &mut found);
        if warm == 0 && questions.len() > 1 {
            let (first, rest) = questions.split_at(questions.len() / 2);
            for (name, part) in [("first", first), ("rest", rest)] {
                self.whole(&folder.join(name), spot, part, report);
            }
            return;
        }
        if warm == 0 {
            // It is run as a cold one wherever it is called.
            self.confirm(&batch, found, report);
            return;
        }
        let mut seen = vec![base];
        let wanted = &self.under.worlds;
        let is_wanted = |(_, name): &Place| wanted.is_empty() || wanted.iter().any(|w| w == name);
        let others = OTHERS.into_iter().chain([(Around::Base, "base again")]).filter(is_wanted);
        for around in others {
            seen.push(self.one_world(&batch, around, 1, report, &mut found).0);
        }
        report.telling += telling(&seen);
        self.confirm(&batch, found, report);
    }

    /// Calls it in one world until so many calls are warm; what a cold run says there, and how
    /// many calls were.
    fn one_world(
        &self,
        batch: &Batch,
        around: Place,
        wanted: usize,
        report: &mut Report,
        found: &mut Vec<Found>,
    ) -> (Answers, usize) {
        if around.0 == Around::Links {
            self.change("change");
        }
        let mut cold = self.cold_answers(batch, around.0);
        let mut odd: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut calls = 0;
        let mut warm = 0;
        let look = |called: &Called| {
            calls += 1;
            warm += usize::from(called.warm);
            let got = batch.answers(&called.outcome, masked);
            for (key, want) in &cold {
                let have = got.get(key).map_or("(no answer)", String::as_str);
                if have != want {
                    let how = if called.warm { "warm" } else { &called.reason };
                    odd.entry(key.clone()).or_insert((how.to_owned(), have.to_owned()));
                }
            }
        };
        let last = self.calls(batch, around, wanted, look);
        report.calls += calls;
        report.warm += warm;
        let asked = cold.len();
        report.asked += asked;
        if warm == 0 && (around != BASE || batch.questions.len() == 1) {
            *report.cold.entry(format!("{}: {}", around.1, last.reason)).or_default() += 1;
        }
        // What differs in one world and in the next is no chance.
        let is_new = |key: &String| !found.iter().any(|one| Some(one.index) == batch.index(key));
        for _ in 0..if odd.keys().any(is_new) { CHANCES } else { 0 } {
            let chance = self.cold_answers(batch, around.0);
            cold.retain(|key, value| chance.get(key) == Some(value));
            odd.retain(|key, _| cold.contains_key(key));
            if odd.is_empty() {
                break;
            }
        }
        let unsteady = asked - cold.len();
        report.unsteady += unsteady;
        let of_it = InWorld { asked, unsteady, calls, warm, ..InWorld::default() };
        report.worlds.entry(around.1).or_default().add(of_it);
        for (key, (reason, have)) in odd {
            if let (Some(want), Some(index)) = (cold.get(&key), batch.index(&key)) {
                let (cold, warm) = (want.clone(), have);
                found.push(Found { index, around, reason, cold, warm });
            }
        }
        if around.0 == Around::Links {
            self.change("restore");
        }
        (cold, warm)
    }

    fn calls(
        &self,
        batch: &Batch,
        around: Place,
        wanted: usize,
        mut look: impl FnMut(&Called),
    ) -> Called {
        let run = self.through_hob(batch, around.0);
        if around.0 == Around::Terminal {
            let called = terminal::call(self.world, &run);
            look(&called);
            return called;
        }
        call_until_warm(self.world, &run, wanted, look)
    }

    /// Asks again, alone, what was answered otherwise, and adds it to the report.
    fn confirm(&self, batch: &Batch, found: Vec<Found>, report: &mut Report) {
        let mut by_index: BTreeMap<usize, Vec<Found>> = BTreeMap::new();
        for one in found {
            by_index.entry(one.index).or_default().push(one);
        }
        for (index, found) in by_index {
            let first = &found[0];
            let one = batch.questions.get(index);
            let known = one.and_then(|one| known::row(&one.text));
            for one in &found {
                let of_it = report.worlds.entry(one.around.1).or_default();
                of_it.different += 1;
                of_it.known += usize::from(known.is_some());
            }
            report.different.push(Difference {
                question: one
                    .map_or("(the end)".to_owned(), |one| format!("{} | {}", one.topic, one.text)),
                spot: batch.spot,
                worlds: found
                    .iter()
                    .map(|one| format!("{} ({})", one.around.1, one.reason))
                    .collect(),
                cold: first.cold.clone(),
                warm: first.warm.clone(),
                // Only questions of a group take something from each other.
                alone: batch.questions.len() == 1
                    || one.is_none_or(|one| one.group == "any" || self.alone(batch, one, first)),
                known,
            });
        }
    }

    fn alone(&self, batch: &Batch, question: &Question, found: &Found) -> bool {
        let folder = batch.script.with_file_name(format!("alone-{}", found.index));
        let batch = Batch::make(self.under, &folder, batch.spot, std::slice::from_ref(question));
        let mut aside = Report::default();
        self.cold_answers(&batch, Around::Base);
        let mut odd = Vec::new();
        let (_, warm) = self.one_world(&batch, BASE, 1, &mut aside, &mut odd);
        if found.around != BASE {
            self.one_world(&batch, found.around, usize::from(warm > 0), &mut aside, &mut odd);
        }
        !odd.is_empty()
    }
}

/// How many answers are not the same in all of these worlds: what shows that a question asks
/// something.
fn telling(seen: &[Answers]) -> usize {
    let keys: BTreeSet<&String> = seen.iter().flat_map(Answers::keys).collect();
    let differ = |key: &&String| {
        let mut values = seen.iter().filter_map(|world| world.get(*key));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    keys.into_iter().filter(differ).count()
}
