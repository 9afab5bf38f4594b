//! What `hooks` compares: the programs in C, hob, and the peers, each of which runs every hook of
//! every target once and is checked.
//!
//! Owns: how a side is started and what it gave. Deliberately not here: which sides stand in one
//! contest, and what is to be reached (`contests.rs`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::ground::Ground;
use crate::hob::Hob;
use crate::measure::microseconds;
use crate::progress::Progress;
use crate::venv;

/// The programs in C, compiled here.
#[derive(Debug, Clone)]
pub(super) struct Built {
    floor: PathBuf,
    wide: PathBuf,
    peak: PathBuf,
    python: PathBuf,
    peer: PathBuf,
}

/// One of the things that are compared.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) name: String,
    argv: Vec<OsString>,
    way: Way,
}

/// How a side gets its work and says what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Arguments and results as `plan.h` has them.
    Plan,
    /// `hob hooks run --for-each`, with a report.
    Hob,
    /// One process a target, called from here.
    RunParts,
}

/// What one run of a side gave.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    /// Microseconds a hook, of all the time that it took.
    pub(super) each_us: f64,
    /// Every hook's own microseconds, where the side tells them.
    pub(super) hooks_us: Vec<f64>,
    /// How many hooks hob ran which way, and why not a faster one.
    pub(super) ways: BTreeMap<String, usize>,
}

/// What a program that measures itself says.
#[derive(Debug, Deserialize)]
struct Told {
    hooks: usize,
    elapsed_ns: f64,
}

/// Compiles the programs in C, as their own users would: with optimisation.
pub(super) fn build(root: &Path, target: &Path, python: &Path) -> Result<Built> {
    let source = root.join("bench/hooks");
    std::fs::create_dir_all(target)?;
    let mut progress = Progress::new("hooks: compiling the programs in C");
    for name in ["floor", "wide", "peak"] {
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(target.join(name));
        venv::run(compile.arg(source.join(format!("{name}.c"))))?;
    }
    progress.done();
    Ok(Built {
        floor: target.join("floor"),
        wide: target.join("wide"),
        peak: target.join("peak"),
        python: python.to_path_buf(),
        peer: source.join("python_subprocess.py"),
    })
}

impl Side {
    /// `posix_spawn` and two pipes, one hook after another.
    pub(super) fn floor(built: &Built) -> Side {
        Side::new("C, posix_spawn", vec![built.floor.clone().into()], Way::Plan)
    }

    /// `vfork`, epoll and pidfds, so many targets at once.
    pub(super) fn wide(built: &Built, width: usize) -> Side {
        let argv = vec![built.wide.clone().into(), width.to_string().into()];
        Side::new(&format!("C, vfork, {width} at once"), argv, Way::Plan)
    }

    /// `subprocess.run`.
    pub(super) fn python(built: &Built) -> Side {
        let argv = vec![built.python.clone().into(), "-I".into(), built.peer.clone().into()];
        Side::new("Python subprocess", argv, Way::Plan)
    }

    /// `run-parts`, started once a target.
    pub(super) fn run_parts() -> Side {
        Side::new("run-parts", vec!["run-parts".into()], Way::RunParts)
    }

    /// A program with arguments and results as `plan.h` has them.
    pub(super) fn plan(name: &str, argv: Vec<OsString>) -> Side {
        Side::new(name, argv, Way::Plan)
    }

    /// hob with these options.
    pub(super) fn hob(name: &str, binary: &Path, options: &[&str]) -> Side {
        let mut argv: Vec<OsString> = vec![binary.into(), "hooks".into(), "run".into()];
        argv.extend(options.iter().map(OsString::from));
        Side::new(name, argv, Way::Hob)
    }

    fn new(name: &str, argv: Vec<OsString>, way: Way) -> Side {
        Side { name: name.to_owned(), argv, way }
    }

    /// The same side by another name.
    pub(super) fn called(mut self, name: &str) -> Side {
        name.clone_into(&mut self.name);
        self
    }

    /// The same side, which tells the most memory that it had at the end of its stderr.
    pub(super) fn with_peak(mut self, built: &Built) -> Side {
        self.argv.insert(0, built.peak.clone().into());
        self
    }

    /// Runs every hook of every target, and checks that they ran.
    pub(super) fn run(&self, hob: &Hob, ground: &Ground) -> Result<Ran> {
        Ok(self.run_and_hear(hob, ground)?.0)
    }

    /// The same, with the last line of stderr as [`Side::with_peak`] needs it.
    pub(super) fn run_and_hear(&self, hob: &Hob, ground: &Ground) -> Result<(Ran, String)> {
        ground.clear()?;
        let (said, ran, last) = match self.way {
            Way::Plan => self.by_plan(hob, ground)?,
            Way::Hob => self.by_hob(hob, ground)?,
            Way::RunParts => self.by_run_parts(hob, ground)?,
        };
        ground.check(&self.name, &said)?;
        Ok((ran, last))
    }

    fn by_plan(&self, hob: &Hob, ground: &Ground) -> Result<(Vec<u8>, Ran, String)> {
        let (said, times) = (ground.file("said"), ground.file("times"));
        let mut command = self.command(hob);
        command.args([ground.lines(), ground.work(), said.clone(), times.clone()]);
        command.args(&ground.hooks);
        let (_, stdout, last) = self.finish(command)?;
        let told: Told = serde_json::from_str(stdout.lines().last().unwrap_or_default())?;
        ensure!(told.hooks == ground.runs(), "{} ran {} hooks", self.name, told.hooks);
        let hooks_us = std::fs::read_to_string(times)?
            .lines()
            .map(|line| Ok(line.parse::<f64>()? / 1e3))
            .collect::<Result<_>>()?;
        let ran = Ran {
            each_us: told.elapsed_ns / 1e3 / number(told.hooks),
            hooks_us,
            ways: BTreeMap::new(),
        };
        Ok((std::fs::read(said)?, ran, last))
    }

    fn by_hob(&self, hob: &Hob, ground: &Ground) -> Result<(Vec<u8>, Ran, String)> {
        let report = ground.file("report.json");
        let mut work = OsString::from("WORK=");
        work.push(ground.work());
        let mut command = self.command(hob);
        command.arg("--for-each").arg(ground.targets()).arg("--set").arg(work);
        command.arg("--report").arg(&report).arg(ground.directory());
        let (us, _, last) = self.finish(command)?;
        let report = Report::read(&report)?;
        let said: String = report.hooks().map(|hook| hook.stdout.head.as_str()).collect();
        let hooks_us: Vec<f64> = report.hooks().map(|hook| hook.wall_us).collect();
        ensure!(hooks_us.len() == ground.runs(), "{} ran {} hooks", self.name, hooks_us.len());
        let ran = Ran { each_us: us / number(ground.runs()), hooks_us, ways: report.ways() };
        Ok((said.into_bytes(), ran, last))
    }

    fn by_run_parts(&self, hob: &Hob, ground: &Ground) -> Result<(Vec<u8>, Ran, String)> {
        let mut said = Vec::new();
        let begin = Instant::now();
        for uuid in &ground.uuids {
            let mut command = self.command(hob);
            command.arg(ground.directory()).env("WORK", ground.work()).env("UUID", uuid);
            let output = command.output().context("cannot start run-parts")?;
            ensure!(output.status.success() && output.stderr.is_empty(), "run-parts failed");
            said.extend(output.stdout);
        }
        let us = microseconds(begin.elapsed());
        let ran = Ran {
            each_us: us / number(ground.runs()),
            hooks_us: Vec::new(),
            ways: BTreeMap::new(),
        };
        Ok((said, ran, String::new()))
    }

    /// The program with its first arguments, in the environment that all sides have.
    fn command(&self, hob: &Hob) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).stdin(Stdio::null());
        hob.place(&mut command);
        command
    }

    /// The microseconds of the whole process, its stdout, and the last line of its stderr.
    fn finish(&self, mut command: Command) -> Result<(f64, String, String)> {
        let begin = Instant::now();
        let output = command.output().with_context(|| format!("cannot start {}", self.name))?;
        let us = microseconds(begin.elapsed());
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} ended with {}:\n{stderr}", self.name, output.status);
        let last = stderr.lines().last().unwrap_or_default().to_owned();
        Ok((us, String::from_utf8(output.stdout)?, last))
    }
}

/// Runs the side until all its hooks are warm, by the report.
pub(super) fn warm_up(side: &Side, hob: &Hob, ground: &Ground) -> Result<()> {
    let mut reason = String::new();
    for _ in 0..WARMING_RUNS_MAX {
        side.run(hob, ground)?;
        let report = Report::read(&ground.file("report.json"))?;
        let cold = report.hooks().find(|hook| hook.way != WARM);
        let Some(cold) = cold else { return Ok(()) };
        reason = format!("{} ({})", cold.way, cold.reason.clone().unwrap_or_default());
    }
    anyhow::bail!("{} is still {reason} after {WARMING_RUNS_MAX} runs", side.name)
}

/// How often hooks may run before they must be warm, and the way of a hook that is.
const WARMING_RUNS_MAX: usize = 20;
const WARM: &str = "warm";

/// As much of `hob.hooks-report/1` as is looked at.
#[derive(Debug, Deserialize)]
struct Report {
    targets: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    line: usize,
    set: SetPart,
}

#[derive(Debug, Deserialize)]
struct SetPart {
    hooks: Vec<HookPart>,
}

#[derive(Debug, Deserialize)]
struct HookPart {
    wall_us: f64,
    way: String,
    reason: Option<String>,
    stdout: StreamPart,
}

#[derive(Debug, Deserialize)]
struct StreamPart {
    head: String,
}

impl Report {
    /// In the order of the targets, not in that in which they ended.
    fn read(path: &Path) -> Result<Report> {
        let mut report: Report = serde_json::from_slice(&std::fs::read(path)?)?;
        report.targets.sort_by_key(|row| row.line);
        Ok(report)
    }

    fn hooks(&self) -> impl Iterator<Item = &HookPart> {
        self.targets.iter().flat_map(|row| &row.set.hooks)
    }

    /// How many hooks went each way.
    fn ways(&self) -> BTreeMap<String, usize> {
        let mut ways = BTreeMap::new();
        for hook in self.hooks() {
            let why = hook.reason.iter().map(|reason| format!(", {reason}"));
            *ways.entry(hook.way.clone() + &why.collect::<String>()).or_default() += 1;
        }
        ways
    }
}

#[expect(clippy::cast_precision_loss, reason = "some ten thousand")]
pub(super) fn number(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A folder, the programs, and an environment; `true` stands for hob, which is not run.
    fn ready(name: &str) -> (Hob, Built, Ground) {
        let hob = Hob::new(Path::new("/bin/true"), Path::new("/usr/bin"), &[]).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let target = hob.folder("built").unwrap();
        let built =
            build(root, &target, &venv::interpreter(Path::new("python3")).unwrap()).unwrap();
        let ground = Ground::shell(&hob.folder(name).unwrap(), 5).unwrap();
        (hob, built, ground)
    }

    #[test]
    fn the_programs_in_c_and_the_peers_run_every_hook_and_say_how_long_it_took() {
        let (hob, built, ground) = ready("all");
        let in_c = [Side::floor(&built), Side::wide(&built, 1), Side::wide(&built, 4)];
        for side in in_c.into_iter().chain([Side::python(&built)]) {
            let ran = side.run(&hob, &ground).unwrap();
            assert_eq!(ran.hooks_us.len(), 15, "{}", side.name);
            assert!(ran.hooks_us.iter().all(|us| *us > 0.0) && ran.each_us > 0.0);
        }
        let ran = Side::floor(&built).run(&hob, &ground).unwrap();
        let sum: f64 = ran.hooks_us.iter().sum();
        assert!(sum <= ran.each_us * 15.0, "one after another: {sum} us in {}", ran.each_us * 15.0);
        assert!(Side::run_parts().run(&hob, &ground).is_ok());
    }

    #[test]
    fn a_hook_that_fails_ends_the_measurement() {
        let (hob, built, ground) = ready("failing");
        std::fs::write(&ground.hooks[2], "#!/bin/sh\nexit 3\n").unwrap();
        for side in [Side::floor(&built), Side::wide(&built, 2), Side::run_parts()] {
            assert!(side.run(&hob, &ground).is_err(), "{}", side.name);
        }
    }

    #[test]
    fn a_side_that_claims_hooks_without_running_them_ends_the_measurement() {
        let (hob, _, ground) = ready("idle");
        let claim = "echo '{\"hooks\":15,\"elapsed_ns\":1}'; : >$3; seq 15 >$4";
        let argv = ["/bin/sh", "-c", claim, "sh"].map(OsString::from).to_vec();
        let error = Side::new("liar", argv, Way::Plan).run(&hob, &ground).unwrap_err().to_string();
        assert!(error.contains("its hooks did not run"), "{error}");
    }

    #[test]
    fn the_peak_is_that_of_the_program() {
        let (hob, built, _) = ready("peak");
        let touch = "b = b'x' * (64 << 20)";
        let argv = [built.python.clone().into(), "-c".into(), OsString::from(touch)].to_vec();
        let side = Side::new("64 MiB", argv, Way::Plan).with_peak(&built);
        let (_, _, last) = side.finish(side.command(&hob)).unwrap();
        let told: Value = serde_json::from_str(&last).unwrap();
        let peak = told["peak_kib"].as_u64().unwrap();
        assert!((64 << 10..512 << 10).contains(&peak), "{last}");
    }
}
