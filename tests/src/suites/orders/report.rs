//! What came of the programs: counts by state and writer, what stays cold, and every difference
//! with the folder of its program.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::super::{Called, short};
use super::Given;
use super::program::Program;

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Programs.
    pub programs: usize,
    /// Those of which two cold runs differ: left out.
    pub unsteady: usize,
    /// Calls through hob.
    pub calls: usize,
    /// Those of them that were warm.
    pub warm: usize,
    /// Calls that gave something else than a cold run.
    pub wrong_calls: usize,
    /// Calls that were cold after one of their program's was warm, by the reason.
    pub cold_again: BTreeMap<String, usize>,
    /// Programs that never were warm, by the last call's reason.
    pub cold: BTreeMap<String, Vec<String>>,
    /// By the states, and by the writers.
    pub states: BTreeMap<String, Tally>,
    /// By who changes the state.
    pub writers: BTreeMap<String, Tally>,
    /// By interpreters.
    pub interpreters: BTreeMap<String, Tally>,
    /// What was different.
    pub different: Vec<Difference>,
    reason: String,
}

/// How many programs, and how many of them differ.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Programs.
    pub programs: usize,
    /// Programs that differ.
    pub different: usize,
}

/// A program of which a call gave something else than a cold run.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Its interpreter.
    pub interpreter: String,
    /// The state that it changes.
    pub state: String,
    /// Who changes it, what reads it, and what lies between.
    pub how: String,
    /// What differs: `exit`, `stdout` or `stderr`.
    pub part: &'static str,
    /// How the first call that differs was performed.
    pub reason: String,
    /// How many of how many calls differ.
    pub calls: (usize, usize),
    /// What a cold run gives.
    pub cold: String,
    /// What the call gave.
    pub here: String,
    /// Where the program is.
    pub folder: PathBuf,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { interpreter, state, how, part, reason, .. } = self;
        let (wrong, calls) = self.calls;
        let (cold, here) = (short(&self.cold), short(&self.here));
        writeln!(
            f,
            "different ({reason}; {wrong} of {calls} calls): {interpreter}: {state}: {how}"
        )?;
        write!(f, "    {part} cold: {cold}\n    {part} here: {here}\n    {}", self.folder.display())
    }
}

impl Report {
    /// That of one program, of which nothing is known yet.
    pub(super) fn of(program: &Program) -> Report {
        let one = Tally { programs: 1, different: 0 };
        let by = |name: String| BTreeMap::from([(name, one)]);
        Report {
            programs: 1,
            states: by(state(program)),
            writers: by(program.writer.clone()),
            interpreters: by(program.interpreter.clone()),
            ..Report::default()
        }
    }

    /// A call was made.
    pub(super) fn called(&mut self, called: &Called, was_warm: bool) {
        self.calls += 1;
        self.warm += usize::from(called.warm);
        self.reason.clone_from(&called.reason);
        if was_warm && !called.warm {
            *self.cold_again.entry(called.reason.clone()).or_default() += 1;
        }
    }

    pub(super) fn stays_cold(&mut self, program: &Program) {
        let text = format!("{}: {}: {}", program.interpreter, program.state, program.writer);
        self.cold.entry(self.reason.clone()).or_default().push(text);
    }

    /// A part differs; its folder says how to see it.
    pub(super) fn differs(
        &mut self,
        program: &Program,
        part: &'static str,
        want: &Given,
        got: &Given,
        called: &Called,
    ) {
        for tally in [&mut self.states, &mut self.writers, &mut self.interpreters] {
            tally.values_mut().for_each(|one| one.different = 1);
        }
        let text = |given: &Given| given.get(part).cloned().unwrap_or_default();
        let words = [program.start.join(" "), program.args.join(" ")].join(" ");
        let how = format!("{}; {}", program.writer, program.how);
        let said = format!(
            "{how}\nin this folder: `{words}` beside `hob run {words}`\n\
             cold: {want:#?}\nhere ({}): {got:#?}\n",
            called.reason
        );
        // Without it, the program still is there.
        drop(std::fs::write(program.folder.join("HOW"), said));
        self.different.push(Difference {
            interpreter: program.interpreter.clone(),
            state: program.state.clone(),
            how,
            part,
            reason: called.reason.clone(),
            calls: (self.wrong_calls, self.calls),
            cold: text(want),
            here: text(got),
            folder: program.folder.clone(),
        });
    }

    pub(super) fn add(&mut self, other: Report) {
        self.programs += other.programs;
        self.unsteady += other.unsteady;
        self.calls += other.calls;
        self.warm += other.warm;
        self.wrong_calls += other.wrong_calls;
        for (reason, count) in other.cold_again {
            *self.cold_again.entry(reason).or_default() += count;
        }
        for (reason, names) in other.cold {
            self.cold.entry(reason).or_default().extend(names);
        }
        for (mine, theirs) in [
            (&mut self.states, other.states),
            (&mut self.writers, other.writers),
            (&mut self.interpreters, other.interpreters),
        ] {
            for (name, tally) in theirs {
                let sum = mine.entry(name).or_default();
                sum.programs += tally.programs;
                sum.different += tally.different;
            }
        }
        self.different.extend(other.different);
    }
}

/// The state with its language, since two languages may have one name.
fn state(program: &Program) -> String {
    let language = program.interpreter.split('-').next().unwrap_or_default();
    format!("{language} {}", program.state)
}
