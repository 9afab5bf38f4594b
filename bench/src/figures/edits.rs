//! The first call of a script that hob has never seen, and the call right after an edit of one of a
//! script's own modules, beside the plain interpreter.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::private;
use crate::Setting;
use crate::hob::{Hob, Program};
use crate::measure::{Series, Slot};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::venv;

const ROUNDS: usize = 20;
/// Before each edit all pools have copies that wait, or this long was waited: some may never have.
const READY_MAX: Duration = Duration::from_secs(4);
const POLL: Duration = Duration::from_millis(100);

/// A script's installed modules, and what the call after an edit may take of a plain one.
struct Subject {
    name: &'static str,
    imports: &'static str,
    venv: (&'static str, &'static str),
    after_edit: f64,
}

const SUBJECTS: [Subject; 3] = [
    Subject {
        name: "standard library",
        imports: "json, os",
        venv: ("venv-demo", "requirements-demo.txt"),
        after_edit: 1.0,
    },
    Subject {
        name: "requests, rich",
        imports: "requests, rich.console",
        venv: ("venv-demo", "requirements-demo.txt"),
        after_edit: 0.35,
    },
    Subject {
        name: "numpy, pandas",
        imports: "numpy, pandas",
        venv: ("venv-pandas", "requirements-pandas.txt"),
        after_edit: 0.1,
    },
];

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new("edits", "a script never seen, and a call right after an edit");
    for (at, subject) in SUBJECTS.iter().enumerate() {
        let python = venv::make(&setting.root, subject.venv.0, subject.venv.1)?.join("bin/python");
        let hob = private(setting, &[])?;
        let folder = hob.folder(&format!("edits-{at}"))?;
        let mut script = Edited { hob, folder, python, imports: subject.imports, edits: 0 };
        let [after, cold] = script.after_edits(subject.name, setting.rounds(ROUNDS))?;
        let ratio =
            figure.ratio(&format!("{}: after an edit over cold", subject.name), &after, &cold);
        let what = format!("{}: right after an edit, over cold", subject.name);
        figure.target(&what, Want::AtMost(subject.after_edit), ratio.of_medians);
        figure.fact(
            &format!("{}: part in a copy with its installed packages", subject.name),
            script.part_of(&after, "installed-packages")?,
        );
        let [first, plain] = script.first_calls(subject.name, setting.rounds(ROUNDS))?;
        let ratio =
            figure.ratio(&format!("{}: first call over cold", subject.name), &first, &plain);
        let what = format!("{}: the first call of a script never seen, over cold", subject.name);
        figure.target(&what, Want::AtMost(1.0), ratio.of_medians);
        for series in [&after, &cold, &first, &plain] {
            figure.series(series);
        }
        script.hob.stop()?;
    }
    Ok(figure)
}

/// A script over an own module.
struct Edited {
    hob: Hob,
    folder: PathBuf,
    python: PathBuf,
    imports: &'static str,
    edits: usize,
}

impl Edited {
    fn write(&self, name: &str) -> Result<()> {
        let text = format!("import {}\nimport own\nprint(own.VALUE)\n", self.imports);
        Ok(std::fs::write(self.folder.join(name), text)?)
    }

    /// Gives the own module another value, and another size: Python tells what it has compiled apart
    /// by that and the second.
    fn edit(&mut self) -> Result<()> {
        self.edits += 1;
        let text = format!("VALUE = {}\n#{}\n", self.edits, "-".repeat(self.edits % 97));
        Ok(std::fs::write(self.folder.join("own.py"), text)?)
    }

    fn program(&self, name: &str) -> Program {
        let words: Vec<OsString> = vec![self.python.clone().into(), name.into()];
        Program {
            name: name.to_owned(),
            warm: words.clone(),
            cold: words,
            folder: self.folder.clone(),
            fresh: None,
        }
    }

    /// One run with the newest value, or an error: a stale one is a wrong result.
    fn run(
        &self,
        slot: &mut Slot,
        program: &Program,
        hob: bool,
        series: &mut Series,
    ) -> Result<()> {
        let side = if hob { self.hob.warm(program, &[], 0) } else { self.hob.cold(program, 0) };
        let run = side.run(slot)?;
        let said = String::from_utf8_lossy(&run.output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&run.output.stderr).into_owned();
        ensure!(said == format!("{}\n", self.edits), "stale or broken: {said}{errors}");
        series.us.push(run.took.as_secs_f64() * 1e6);
        series.pids.push(run.pid);
        Ok(())
    }

    /// An edit, the call after it, and a plain run; then everything is made ready again.
    fn after_edits(&mut self, name: &str, rounds: usize) -> Result<[Series; 2]> {
        self.edit()?;
        self.write("script.py")?;
        let mut series = both(name, "after an edit");
        let mut slot = Slot::new()?;
        let program = self.program("script.py");
        let mut progress = Progress::new(&format!("{name}: after an edit"));
        // The layer with the installed packages begins after the first edit.
        for round in 0..rounds + 2 {
            progress.at(round, rounds + 2);
            self.ready(&mut slot, &program)?;
            self.edit()?;
            let [after, cold] = &mut series;
            self.run(&mut slot, &program, true, after)?;
            self.run(&mut slot, &program, false, cold)?;
        }
        progress.done();
        for one in &mut series {
            one.us.drain(..2);
            one.pids.drain(..2);
        }
        Ok(series)
    }

    /// Waits until the program's own copies wait, and those of all layers.
    fn ready(&self, slot: &mut Slot, program: &Program) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < READY_MAX {
            let mut unused = both("", "");
            self.run(slot, program, true, &mut unused[0])?;
            std::thread::sleep(POLL);
            let status: Value = serde_json::from_str(&self.hob.ask(&["status", "--json"])?)?;
            let pools = status["pools"].as_array().context("a list of pools")?;
            let own =
                |pool: &Value| pool["program"].as_str().is_some_and(|one| one.ends_with(".py"));
            let is_ready = |pool: &Value| pool["ready"].as_u64() >= Some(1);
            if pools.iter().any(own) && pools.iter().all(is_ready) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn first_calls(&mut self, name: &str, rounds: usize) -> Result<[Series; 2]> {
        let mut series = both(name, "first call");
        let mut slot = Slot::new()?;
        let mut progress = Progress::new(&format!("{name}: first call"));
        for round in 0..rounds {
            progress.at(round, rounds);
            let program = self.program(&format!("first-{round}.py"));
            self.write(&program.name)?;
            // Between the calls of a person.
            std::thread::sleep(POLL * 10);
            let [first, cold] = &mut series;
            self.run(&mut slot, &program, true, first)?;
            self.run(&mut slot, &program, false, cold)?;
        }
        progress.done();
        Ok(series)
    }

    /// Which part of these calls has this reason in its receipt.
    fn part_of(&self, series: &Series, reason: &str) -> Result<f64> {
        let receipts = self.hob.receipts(series.pids.len() * 300 + 50)?;
        let has = |pid: &&u32| {
            receipts.iter().any(|one| one["caller_pid"] == **pid && one["reason"] == reason)
        };
        #[expect(clippy::cast_precision_loss, reason = "some dozens of calls")]
        let part = series.pids.iter().filter(has).count() as f64 / series.pids.len() as f64;
        Ok(part)
    }
}

fn both(name: &str, what: &str) -> [Series; 2] {
    ["hob", "cold"].map(|side| Series {
        name: format!("{name}, {what}, {side}"),
        us: Vec::new(),
        pids: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_names_files_that_are_there() {
        for subject in &SUBJECTS {
            let list = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(subject.venv.1);
            assert!(list.exists(), "{}", subject.name);
        }
    }
}
