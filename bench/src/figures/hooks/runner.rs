//! hob's runner of hooks in a process with as much memory as one likes: what a hook costs from a small
//! daemon and from one with 1 GiB resident.
//!
//! A program of its own (`hob-bench runner`), with the arguments and results of the programs in C,
//! so that nothing but the ballast differs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hob_hooks::{Event, Isolation, Limits, Runner, Set, Variables};

use super::Bench;
use super::contests::{Contest, at_most};
use super::sides::Side;
use crate::report::Figure;

/// The command that makes this program such a process.
pub(crate) const COMMAND: &str = "runner";
const ROUNDS: usize = 10;
const TARGETS: usize = 100;
const BALLAST_MIB: usize = 1024;

/// Small beside 1 GiB.
pub(super) fn measure(bench: &Bench, figure: &mut Figure) -> Result<()> {
    for (how, what) in [("spawn", "spawned"), ("fastest", "by default")] {
        let side = |name: &str, mib| side(&format!("{name}, {what}"), mib, 1, how);
        let contest = Contest {
            name: "1 GiB resident",
            hob: &bench.hob,
            ground: &bench.ground("resident", TARGETS)?,
            sides: vec![side("runner, small", 0)?, side("runner, 1 GiB", BALLAST_MIB)?],
            rounds: bench.setting.rounds(ROUNDS),
        };
        let rounds = contest.alternately(figure)?;
        let what = format!("1 GiB resident over small, {what}");
        at_most(figure, &what, 1.1, (&rounds[1], &rounds[0]));
    }
    Ok(())
}

/// The runner with so much ballast and so many targets at once.
fn side(name: &str, mib: usize, jobs: usize, isolation: &str) -> Result<Side> {
    let mut argv = vec![std::env::current_exe()?.into_os_string(), COMMAND.into()];
    argv.extend([mib.to_string(), jobs.to_string()].map(OsString::from));
    argv.push(isolation.into());
    Ok(Side::plan(name, argv))
}

/// `runner MIB JOBS spawn|fastest`, and then as `plan.h` has it.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let mut next = || arguments.next().context("runner MIB JOBS HOW TARGETS WORK SAID TIMES HOOK");
    let text = |word: OsString| word.into_string().ok().context("not text");
    let (mib, jobs): (usize, usize) = (text(next()?)?.parse()?, text(next()?)?.parse()?);
    let isolation = match next()?.as_bytes() {
        b"spawn" => Isolation::Spawn,
        b"fastest" => Isolation::Fastest,
        _ => anyhow::bail!("spawn or fastest"),
    };
    let (targets, work, said, times) = (next()?, next()?, next()?, next()?);
    let hook = next()?;
    let directory = Path::new(&hook).parent().context("a hook lies in a directory")?;
    // Touched, page by page; used at the end, so that nobody takes it away.
    let ballast = vec![1_u8; mib << 20];
    let targets = std::fs::read_to_string(targets)?;
    let mut inherited =
        Variables::inherit(std::env::vars_os().map(|(name, value)| entry(&name, &value)));
    inherited.set(b"WORK", work.as_bytes())?;
    let mut runner = Runner::new(Limits { jobs, ..Limits::default() })?;
    let mut uuids = targets.lines();
    let mut ran: BTreeMap<String, (Vec<u8>, Vec<u64>)> = BTreeMap::new();
    let begin = Instant::now();
    let mut source = || {
        let uuid = uuids.next()?;
        let mut variables = inherited.clone();
        variables.set(b"UUID", uuid.as_bytes()).ok()?;
        let directory = directory.as_os_str().as_bytes();
        Some(Set { target: uuid.into(), isolation, ..Set::new(directory, &variables) })
    };
    let mut failed = None;
    runner.run_all(&mut source, &mut |event| {
        if let Event::SetEnded(record) = event {
            if record.outcome.exit_code() != 0 {
                failed = Some(format!("{record:?}"));
            }
            let said = record.hooks.iter().flat_map(|hook| hook.stdout.shown()).collect();
            let took = record.hooks.iter().map(|hook| hook.wall_us * 1000).collect();
            ran.insert(record.target.text().into_owned(), (said, took));
        }
    })?;
    let elapsed = begin.elapsed().as_nanos();
    ensure!(failed.is_none(), "a set failed: {failed:?}");
    let (mut saids, mut tooks, mut hooks) = (Vec::new(), String::new(), 0);
    for uuid in targets.lines() {
        let (said, took) = ran.get(uuid).with_context(|| format!("{uuid} did not run"))?;
        saids.extend(said);
        for one in took {
            tooks.push_str(&format!("{one}\n"));
            hooks += 1;
        }
    }
    std::fs::write(said, saids)?;
    std::fs::write(times, tooks)?;
    ensure!(ballast.iter().step_by(4096).all(|byte| *byte == 1), "the ballast is gone");
    writeln!(std::io::stdout(), "{{\"hooks\":{hooks},\"elapsed_ns\":{elapsed}}}")?;
    Ok(())
}

/// A variable as the kernel has it.
fn entry(name: &OsStr, value: &OsStr) -> std::ffi::CString {
    let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
    std::ffi::CString::new(bytes).unwrap_or_default()
}
