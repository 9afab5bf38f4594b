//! What a program does before an import is there at the import: in its order, cold and through hob.
//!
//! Programs are generated (`bench/orders`): each changes a state, and then imports a module that
//! keeps it. Four calls through hob that were warm must each give the output, the complaints and
//! the exit of a cold run. Those whose state is their arguments are called with others in between;
//! those that are edited are taught before.
//!
//! Owns: the walk over interpreters and programs, and the comparison. `report` has what came of it.

mod program;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use program::{Program, Which};
pub use report::{Difference, Report, Tally};

use super::{Called, Under, call, call_until_warm, go, in_lanes, masked};
use crate::World;
use crate::run::{Outcome, Run};

/// Warm calls of a program that must be as cold ones.
const WARM_CALLS: usize = 4;
/// Warm calls before an edit.
const TAUGHT_CALLS: usize = 2;
/// Cold runs after a difference, to see whether it is chance.
const CHANCES: usize = 3;

/// Which programs, and where they are written.
#[derive(Debug)]
pub struct Orders<'a> {
    /// The binary, how much, and the interpreter that generates where it is not the one under test.
    pub under: &'a Under,
    /// What runs the programs: each a language, and its executable.
    pub interpreters: &'a [Interpreter],
    /// In how many interpreters of a language each state meets each writer.
    pub rounds: usize,
    /// Programs that differ stay in this folder. It is emptied first.
    pub place: &'a Path,
}

/// An interpreter under test.
#[derive(Debug, Clone)]
pub struct Interpreter {
    /// `python` or `ruby`.
    pub language: &'static str,
    /// What is told of it.
    pub name: String,
    /// The executable itself.
    pub path: PathBuf,
}

/// What a run tells while it runs.
#[derive(Debug)]
pub enum Told<'a> {
    /// So many programs are done, of so many.
    Done(usize, usize),
    /// This was found.
    Different(&'a Difference),
}

/// Runs every program, in lanes that each have a hob of their own.
///
/// # Panics
/// When a program cannot even be made or started.
pub fn run(orders: &Orders, tell: impl FnMut(Told) + Send) -> Report {
    drop(std::fs::remove_dir_all(orders.place));
    let programs = program::all(orders);
    let whole = Mutex::new((0, tell, Report::default()));
    in_lanes(|(lane, lanes)| {
        let world = World::of(orders.under.hob.clone());
        for program in programs.iter().skip(lane).step_by(lanes) {
            let trial = Trial { program, world: &world, chances: CHANCES };
            let report = trial.report();
            let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
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
    whole.into_inner().unwrap_or_else(PoisonError::into_inner).2
}

/// What a run gives, part by part.
type Given = BTreeMap<&'static str, String>;

fn given(outcome: &Outcome) -> Given {
    Given::from([
        ("exit", format!("{:?}", outcome.end)),
        ("stdout", masked(&outcome.text())),
        ("stderr", masked(&outcome.complaint())),
    ])
}

/// One program under comparison.
struct Trial<'a> {
    program: &'a Program,
    world: &'a World,
    chances: usize,
}

/// A cold run's result, and the call that is to give the same.
struct Side {
    want: Given,
    cold: Run,
    hob: Run,
}

impl Trial<'_> {
    fn report(&self) -> Report {
        let mut report = Report::of(self.program);
        self.program.write(Which::Last);
        let Some(sides) = self.sides() else {
            report.unsteady += 1;
            self.program.remove();
            return report;
        };
        if self.program.is_edited() {
            self.program.write(Which::First);
            self.program.clean();
            call_until_warm(self.world, &sides[0].hob, TAUGHT_CALLS, |_| self.program.clean());
            self.program.write(Which::Last);
        }
        let odd = self.calls(&sides, &mut report);
        let Some((side, part, called)) = odd else {
            self.program.remove();
            return report;
        };
        if (0..self.chances).any(|_| self.cold(&side.cold).get(part) != side.want.get(part)) {
            report.unsteady += 1;
            self.program.remove();
            return report;
        }
        report.differs(self.program, part, &side.want, &given(&called.outcome), &called);
        report
    }

    /// The calls with its arguments, and with others where there are such; None where two cold
    /// runs differ.
    fn sides(&self) -> Option<Vec<Side>> {
        let program = self.program;
        let mut sides = Vec::new();
        for words in [Some(&program.args), program.other.as_ref()].into_iter().flatten() {
            let cold = program.placed(self.world.run(&program.start)).args(words);
            let hob = program.placed(self.world.hob(&["run"])).args(&program.start).args(words);
            // The first run writes what an interpreter keeps of a module.
            self.cold(&cold);
            let want = self.cold(&cold);
            if self.cold(&cold) != want {
                return None;
            }
            sides.push(Side { want, cold, hob });
        }
        Some(sides)
    }

    fn cold(&self, run: &Run) -> Given {
        self.program.clean();
        given(&go(run))
    }

    /// Calls until enough were warm; the first that gave something else.
    fn calls<'a>(
        &self,
        sides: &'a [Side],
        report: &mut Report,
    ) -> Option<(&'a Side, &'static str, Called)> {
        let mut odd = None;
        let mut was_warm = false;
        let mut see = |side: &'a Side, called: &Called| {
            self.program.clean();
            report.called(called, was_warm);
            was_warm |= called.warm;
            let got = given(&called.outcome);
            let part = side.want.iter().find(|(part, value)| got.get(*part) != Some(value));
            if let Some((part, _)) = part {
                report.wrong_calls += 1;
                odd.get_or_insert((side, *part, called.clone()));
            }
        };
        self.program.clean();
        for _ in 0..WARM_CALLS {
            let last = call_until_warm(self.world, &sides[0].hob, 1, |one| see(&sides[0], one));
            if !last.warm {
                break;
            }
            for side in &sides[1..] {
                see(side, &call(self.world, &side.hob));
            }
        }
        if !was_warm {
            report.stays_cold(self.program);
        }
        odd
    }
}
