//! From the JVM: hob's client beside NuProcess and `ProcessBuilder`, each from Scala's `Future`
//! and from ZIO (`bench/jvm`).
//!
//! Every way is a JVM of its own that stands ready for the whole contest and is told a round at a
//! time, so that rounds are interleaved and nobody's start counts.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::Bench;
use super::contests::{Rounds, over};
use super::ground::Ground;
use super::sides::{Ran, number};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::{stats, venv};

const ROUNDS: usize = 10;
/// A round's calls: ten rounds are twice as many as the issue names.
const TARGETS: usize = 100;
const WARM_UP: usize = 200;

/// ZIO, NuProcess, way, and what people read.
const WAYS: [[&str; 4]; 8] = [
    ["21", "new", "future-hob", "hob's client, Future"],
    ["21", "new", "zio-hob", "hob's client, ZIO 2.1"],
    ["rc", "old", "future-nuprocess", "NuProcess 1.2.5, Future"],
    ["21", "new", "future-nuprocess", "NuProcess newest, Future"],
    ["rc", "old", "zio-nuprocess", "NuProcess 1.2.5, ZIO 2.0.0-RC5"],
    ["21", "old", "zio-nuprocess", "NuProcess 1.2.5, ZIO 2.1"],
    ["21", "new", "zio-nuprocess", "NuProcess newest, ZIO 2.1"],
    ["21", "new", "builder", "Java ProcessBuilder"],
];
/// Where hob's two ways stand, and NuProcess's.
const HOB: [usize; 2] = [0, 1];
const NUPROCESS: std::ops::Range<usize> = 2..7;

/// One round, as `bench/jvm` says it.
#[derive(Debug, Deserialize)]
struct Told {
    ran: usize,
    failed: usize,
    bytes: usize,
    targets: usize,
    ns: Vec<f64>,
}

/// A JVM that waits for its next round.
struct Jvm {
    name: &'static str,
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

pub(super) fn measure(bench: &Bench, figure: &mut Figure) -> Result<()> {
    let folder = bench.setting.root.join("bench/jvm");
    let mut progress = Progress::new("hooks: building the JVM's ways");
    venv::run(&mut Command::new(folder.join("build")))?;
    progress.done();
    let ground = bench.ground("jvm", 1)?;
    ground.clear()?;
    let mut progress = Progress::new("hooks: starting and warming the JVMs");
    let mut jvms = Vec::new();
    for (at, way) in WAYS.iter().enumerate() {
        progress.at(at, WAYS.len());
        jvms.push(Jvm::start(bench, &folder, &ground, *way)?);
    }
    progress.done();
    let mut rounds: Vec<Rounds> = jvms.iter().map(|jvm| Rounds::named(jvm.name)).collect();
    let count = bench.setting.rounds(ROUNDS);
    let mut progress = Progress::new("hooks: from the JVM");
    for round in 0..count {
        for (at, jvm) in jvms.iter_mut().enumerate() {
            progress.at(round * WAYS.len() + at, count * WAYS.len());
            ground.clear()?;
            rounds[at].take(&jvm.round(&ground, bench.targets(TARGETS))?);
        }
    }
    progress.done();
    drop(jvms);
    for one in &rounds {
        figure.series(&one.series);
    }
    tell(figure, &rounds);
    bench.hob.stop()
}

fn tell(figure: &mut Figure, rounds: &[Rounds]) {
    let median = |at: usize| stats::median(&rounds[at].series.us);
    let fastest = NUPROCESS.min_by(|a, b| median(*a).total_cmp(&median(*b)));
    let Some(fastest) = fastest else { return };
    for at in HOB {
        let ratio = over(figure, &rounds[fastest], &rounds[at]);
        let what = format!("{}: the fastest NuProcess way over it", WAYS[at][3]);
        figure.target(&what, Want::AtLeast(1.6), ratio);
    }
    let ratio = over(figure, &rounds[HOB[0]], &rounds[HOB[1]]);
    let apart = (ratio.max(1.0 / ratio) - 1.0) * 100.0;
    figure.target("hob's client: Future and ZIO apart (%)", Want::AtMost(5.0), apart);
    let builder = &rounds[WAYS.len() - 1];
    over(figure, builder, &rounds[HOB[0]]);
}

impl Jvm {
    fn start(
        bench: &Bench,
        folder: &Path,
        ground: &Ground,
        [zio, nuprocess, way, name]: [&'static str; 4],
    ) -> Result<Jvm> {
        let mut command = Command::new(folder.join("run"));
        command.args([zio, nuprocess, way, "--commands", "--warmup", &WARM_UP.to_string()]);
        command.arg("--hooks").arg(ground.directory());
        command.arg("--set").arg(format!("WORK={}", ground.work().display()));
        bench.hob.place(&mut command);
        command.env("HOB_BIN", bench.setting.hob.canonicalize()?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start bench/jvm/run")?;
        let ask = child.stdin.take().context("the pipe was asked for")?;
        let answer = BufReader::new(child.stdout.take().context("the pipe was asked for")?);
        let mut jvm = Jvm { name, child, ask, answer };
        let ready: Value = serde_json::from_str(&jvm.line()?)?;
        ensure!(ready["ready"] == Value::Bool(true), "{name} said {ready}");
        Ok(jvm)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        ensure!(!line.is_empty(), "{} has ended", self.name);
        Ok(line)
    }

    fn round(&mut self, ground: &Ground, targets: usize) -> Result<Ran> {
        writeln!(self.ask, "{targets}")?;
        let told: Told = serde_json::from_str(&self.line()?)?;
        let hooks = ground.hooks.len();
        let bytes = Ground::says(&ground.uuids[0]).len() * targets;
        let good = told.targets == targets && told.ran == targets * hooks && told.bytes == bytes;
        ensure!(good && told.failed == 0, "{} ran something else: {told:?}", self.name);
        let made = std::fs::read_dir(ground.work())?.count();
        ensure!(made == targets, "{}: {made} directories instead of {targets}", self.name);
        let all: f64 = told.ns.iter().sum();
        let each_us = all / 1e3 / number(targets * hooks);
        Ok(Ran { each_us, hooks_us: Vec::new(), ways: BTreeMap::new() })
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // Between two rounds it holds nothing; nobody waits for its own end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
