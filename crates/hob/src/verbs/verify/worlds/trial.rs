//! A program in each world that is asked for: run cold and warm in turns, and compared.
//!
//! ```text
//!   cold 1 ─▶ (until it is warm) ─▶ warm 1 ─▶ [a second] ─▶ cold 2 ─▶ warm 2 ─▶ the same?
//!                                               no: ─▶ a second ─▶ warm 3 ─▶ cold 3
//! ```
//! Invariants: nothing is called a fault before it was seen once more, after what changes by the
//! clock has changed, unless the caller's own world has it too; a run that hob sent cold for good is compared as well, and its reason told;
//! when the time is over, what was not tried is said to be so.

use std::time::{Duration, Instant};

use hob_resolve::Program;

use super::super::change::Change;
use super::super::compare::{self, Aspect, Verdict};
use super::super::ground::Ground;
use super::super::record::{Found, Runs, WorldPart};
use super::super::runs::{How, Subject};
use super::super::session::{Attempt, Both, Left, Session, cannot, compare_runs};
use super::setting::{Basis, Moves, Pause, Setting};
use super::{Chosen, Variables, World, frozen, reads};
use crate::failure::Failure;

/// More than what a clock in an output shows at the least, as most do.
const SECOND: Duration = Duration::from_millis(1100);

/// Why worlds are left out at the end.
const OVER: &str = "the time was over";

impl Session<'_> {
    /// Tries each of these worlds, until then.
    pub(in super::super) fn vary(
        &mut self,
        (program, chosen): (&Program, &Chosen),
        ground: &Ground,
    ) -> Result<Vec<WorldPart>, Failure> {
        let subject = self.subject.clone();
        let mut basis =
            Basis { start: self.start, program, subject: &subject, ground, reads: Vec::new() };
        let mut parts = Vec::new();
        for (at, world) in chosen.0.iter().enumerate() {
            if self.is_over() {
                parts.push(WorldPart::not_tried(world.name(), OVER));
                continue;
            }
            self.progress.show(&format!(
                "verifying {}: {}, world {} of {}",
                self.name,
                world.name(),
                at + 1,
                chosen.0.len()
            ));
            if *world == World::Environment(Variables::Read) {
                basis.reads = self.reads(&basis)?;
            }
            let mut part = match basis.prepare(*world).map_err(cannot)? {
                Ok(setting) => self.world(*world, &setting, ground)?,
                Err(why) => WorldPart::not_tried(world.name(), why),
            };
            if *world == World::Environment(Variables::Read) {
                // The run that has shown what is asked for.
                part.runs.cold += 1;
            }
            if *world == World::Time {
                // It is the caller's own.
                self.know(&part.aspects);
            }
            parts.push(part);
        }
        Ok(parts)
    }

    /// One cold run that shows which variables the program asks for.
    fn reads(&mut self, basis: &Basis<'_>) -> Result<Vec<String>, Failure> {
        let directory = reads::watch(basis.ground).map_err(cannot)?;
        let mut path = directory.to_string_lossy().into_owned();
        if let Some(before) = self.start.variable(b"PYTHONPATH").filter(|path| !path.is_empty()) {
            path = format!("{path}:{}", String::from_utf8_lossy(before));
        }
        let change = Change { set: vec![("PYTHONPATH".to_owned(), path)], ..Change::default() };
        self.once(&Subject { change, ..basis.subject.clone() }, How::Cold)?;
        Ok(reads::names(&directory))
    }

    fn world(
        &mut self,
        world: World,
        setting: &Setting,
        ground: &Ground,
    ) -> Result<WorldPart, Failure> {
        let other = self.other;
        let mut both = Both::default();
        if let Some(moves) = &setting.moves {
            self.move_link(moves, setting, ground)?;
        }
        let aspects = self.try_in(setting, &mut both)?;
        let different: Vec<&Aspect> =
            aspects.iter().filter(|aspect| aspect.verdict.is_fault()).collect();
        let verdict = match (&both.never, compare::overall(&aspects)) {
            (Some(reason), Verdict::Same | Verdict::Varies) if reason == OVER => Found::NotTried,
            (Some(_), Verdict::Same | Verdict::Varies) => Found::Cold,
            (_, verdict) => Found::of(verdict),
        };
        let warm = if both.never.is_some() { 0 } else { both.warm.len() };
        Ok(WorldPart {
            name: world.name().to_owned(),
            varied: setting.varied.clone(),
            verdict,
            different: different.iter().map(|aspect| aspect.name.clone()).collect(),
            runs: Runs {
                cold: both.cold.len(),
                warm,
                other: self.other - other,
                ..Runs::default()
            },
            reason: both.never,
            aspects,
        })
    }

    /// Runs and compares. What differs is seen once more before it is said.
    fn try_in(&mut self, setting: &Setting, both: &mut Both) -> Result<Vec<Aspect>, Failure> {
        let subject = &setting.subject;
        both.cold.push(self.once(subject, How::Cold)?);
        if self.warm_in(subject, both)? && setting.pause == Pause::OverASecond {
            self.interrupts.pause(SECOND);
        }
        both.cold.push(self.once(subject, How::Cold)?);
        if both.never.is_none() {
            self.warm_in(subject, both)?;
        }
        let aspects = compared(both);
        let mut faults = aspects.iter().filter(|aspect| aspect.verdict.is_fault());
        if faults.all(|aspect| self.known.contains(&(aspect.name.clone(), aspect.verdict))) {
            return Ok(aspects);
        }
        self.interrupts.pause(SECOND);
        self.warm_in(subject, both)?;
        both.cold.push(self.once(subject, How::Cold)?);
        let mut aspects = compared(both);
        if aspects.iter().any(|aspect| aspect.verdict == Verdict::Frozen) {
            self.explain(subject, &mut aspects)?;
        }
        Ok(aspects)
    }

    /// One more run through hob; whether it was warm. One that is never warm is the last.
    fn warm_in(&mut self, subject: &Subject, both: &mut Both) -> Result<bool, Failure> {
        match self.until_warm(subject)? {
            Attempt::Warm(left) => both.warm.push(left),
            Attempt::Never(reason, left) => {
                let reason = if self.is_over() { OVER.to_owned() } else { reason };
                both.never = Some(reason);
                both.warm.push(left);
            }
        }
        Ok(both.never.is_none())
    }

    /// Says of what is frozen whether it comes of the seed of string hashing, which copies share:
    /// then it stands still cold too while that is given.
    fn explain(&mut self, subject: &Subject, aspects: &mut [Aspect]) -> Result<(), Failure> {
        let mut seeded = subject.clone();
        seeded.change.set.push(("PYTHONHASHSEED".to_owned(), "1".to_owned()));
        let cold = [self.once(&seeded, How::Cold)?, self.once(&seeded, How::Cold)?];
        self.other += cold.len();
        let [one, two] = cold.map(|left| (left.seen.stdout, left.seen.stderr, left.files));
        if one == two {
            for aspect in aspects.iter_mut().filter(|each| each.verdict == Verdict::Frozen) {
                aspect.note = Some("the hash seed, which copies share".to_owned());
            }
        }
        Ok(())
    }

    /// Calls the program until it is warm where its link leads, and moves the link then.
    fn move_link(
        &mut self,
        moves: &Moves,
        setting: &Setting,
        ground: &Ground,
    ) -> Result<(), Failure> {
        if let Attempt::Warm(_) = self.until_warm(&setting.subject)? {
            self.other += 1;
        }
        ground.lead(&moves.link, &moves.to).map_err(cannot)
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What was compared, with what is frozen.
fn compared(both: &Both) -> Vec<Aspect> {
    let mut aspects = compare_runs(both);
    for frozen in frozen_runs(both) {
        let same = |aspect: &&mut Aspect| aspect.name == frozen.name;
        if let Some(aspect) = aspects.iter_mut().find(same)
            && aspect.verdict != Verdict::Differs
        {
            *aspect = frozen;
        }
    }
    aspects
}

/// What stands still in the warm runs alone.
fn frozen_runs(both: &Both) -> Vec<Aspect> {
    type Part = fn(&Left) -> &Vec<u8>;
    let texts = |name: &str, part: Part| {
        let of = |runs: &[Left]| runs.iter().map(|left| part(left).clone()).collect::<Vec<_>>();
        frozen::texts(name, &of(&both.cold), &of(&both.warm))
    };
    let tables = |runs: &[Left]| runs.iter().map(|left| left.files.clone()).collect::<Vec<_>>();
    let files = frozen::tables("files", &tables(&both.cold), &tables(&both.warm));
    let stdout = texts("stdout", |left| &left.seen.stdout);
    let stderr = texts("stderr", |left| &left.seen.stderr);
    [stdout, stderr, files].into_iter().flatten().collect()
}
