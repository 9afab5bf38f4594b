//! From the JVM: hob's client beside NuProcess and `ProcessBuilder`, each from Scala's `Future`
//! and from ZIO (`bench/jvm`).
//!
//! Every way is a JVM of its own that stands ready for the whole contest and is told a round at a
//! time, so that rounds are interleaved and nobody's start counts. Every other round goes through
//! the ways backwards, for what runs after whom is no matter of chance. hob's two ways, of which a
//! few per cent are to be told, take turns within each round, ten targets at a time.
//!
//! NuProcess asks every 250 ms whether a process has ended that it did not see end, and so stands
//! still in many targets. To be fair to it, it is compared by the targets in which it did not: a
//! round's time is the median of those. What all of its targets took on average is told beside it.

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
/// A round's calls: ten rounds are as many as the issue names.
const TARGETS: usize = 50;
/// Into how many parts hob's ways divide theirs.
const PARTS: usize = 5;
/// After how many milliseconds a round begins no further target: a way that stands still has fewer.
const ROUND_MS: u64 = 1500;
/// How long each way is warmed, by time and from sixteen threads: what waits is warmed as well.
const WARM_UP_MS: u64 = 4000;
/// A target that took so long stood still in it.
const STALL_NS: f64 = 200e6;

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

/// One way's rounds: by the median of a round's targets, and by their mean.
struct Taken {
    median: Rounds,
    mean: Rounds,
    targets: usize,
    stalled: usize,
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
    let mut taken: Vec<Taken> = jvms.iter().map(|jvm| Taken::named(jvm.name)).collect();
    let count = bench.setting.rounds(ROUNDS);
    let mut progress = Progress::new("hooks: from the JVM");
    let mut parts = HOB.map(|at| Rounds::named(&format!("{}, by tens", WAYS[at][3])));
    for round in 0..count {
        progress.at(round, count);
        let mut ns = vec![Vec::new(); jvms.len()];
        for (at, targets) in turns(round, bench.targets(TARGETS)) {
            ground.clear()?;
            let some = jvms[at].round(&ground, targets)?;
            if let Some(part) = HOB.iter().position(|hob| *hob == at) {
                parts[part].take(&each(stats::median(&some), ground.hooks.len()));
            }
            ns[at].extend(some);
        }
        for (taken, ns) in taken.iter_mut().zip(&ns) {
            taken.take(ns, ground.hooks.len());
        }
    }
    progress.done();
    drop(jvms);
    for one in &taken {
        figure.series(&one.median.series);
        figure.series(&one.mean.series);
        let name = &one.median.series.name;
        figure.fact(&format!("{name}: targets"), number(one.targets));
        figure.fact(&format!("{name}: targets that stood still for 200 ms"), number(one.stalled));
    }
    parts.iter().for_each(|one| figure.series(&one.series));
    tell(figure, &taken, &parts);
    bench.hob.stop()
}

/// Who runs how many targets in a round, in this order.
fn turns(round: usize, targets: usize) -> Vec<(usize, usize)> {
    let mut turns = Vec::new();
    for part in 0..PARTS {
        let [one, other] = HOB;
        let pair = if (round + part).is_multiple_of(2) { [one, other] } else { [other, one] };
        turns.extend(pair.map(|at| (at, targets.div_ceil(PARTS))));
    }
    turns.extend((0..WAYS.len()).filter(|at| !HOB.contains(at)).map(|at| (at, targets)));
    if !round.is_multiple_of(2) {
        turns.reverse();
    }
    turns
}

fn each(ns: f64, hooks: usize) -> Ran {
    let each_us = ns / 1e3 / number(hooks);
    Ran { each_us, hooks_us: Vec::new(), ways: BTreeMap::new() }
}

fn tell(figure: &mut Figure, taken: &[Taken], parts: &[Rounds; 2]) {
    let median = |at: usize| stats::median(&taken[at].median.series.us);
    let fastest = NUPROCESS.min_by(|a, b| median(*a).total_cmp(&median(*b)));
    let Some(fastest) = fastest else { return };
    for at in HOB {
        let ratio = over(figure, &taken[fastest].median, &taken[at].median);
        let what =
            format!("{}: the fastest NuProcess way, without its stalls, over it", WAYS[at][3]);
        figure.target(&what, Want::AtLeast(1.6), ratio);
        over(figure, &taken[fastest].mean, &taken[at].mean);
    }
    over(figure, &taken[HOB[0]].median, &taken[HOB[1]].median);
    let ratio = over(figure, &parts[0], &parts[1]);
    let apart = (ratio.max(1.0 / ratio) - 1.0) * 100.0;
    figure.target("hob's client: Future and ZIO apart (%)", Want::AtMost(5.0), apart);
    let builder = &taken[WAYS.len() - 1];
    over(figure, &builder.median, &taken[HOB[0]].median);
}

impl Taken {
    fn named(name: &str) -> Taken {
        let mean = Rounds::named(&format!("{name}, mean of all targets"));
        Taken { median: Rounds::named(name), mean, targets: 0, stalled: 0 }
    }

    fn take(&mut self, ns: &[f64], hooks: usize) {
        let smooth: Vec<f64> = ns.iter().copied().filter(|ns| *ns < STALL_NS).collect();
        self.targets += ns.len();
        self.stalled += ns.len() - smooth.len();
        // A round that stood still in all of them is worth no more than its best.
        let median =
            if smooth.is_empty() { stats::quantile(ns, 0.0) } else { stats::median(&smooth) };
        let mean = ns.iter().sum::<f64>() / number(ns.len());
        self.median.take(&each(median, hooks));
        self.mean.take(&each(mean, hooks));
    }
}

impl Jvm {
    fn start(
        bench: &Bench,
        folder: &Path,
        ground: &Ground,
        [zio, nuprocess, way, name]: [&'static str; 4],
    ) -> Result<Jvm> {
        let mut command = Command::new(folder.join("run"));
        command.args([zio, nuprocess, way, "--commands", "--warmup-ms", &WARM_UP_MS.to_string()]);
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

    /// The nanoseconds of each target of a round.
    fn round(&mut self, ground: &Ground, targets: usize) -> Result<Vec<f64>> {
        writeln!(self.ask, "{targets} {ROUND_MS}")?;
        let told: Told = serde_json::from_str(&self.line()?)?;
        let (hooks, ran) = (ground.hooks.len(), told.targets);
        let bytes = Ground::says(&ground.uuids[0]).len() * ran;
        let good = ran > 0 && ran == told.ns.len() && told.ran == ran * hooks;
        let good = good && told.bytes == bytes && told.failed == 0;
        ensure!(good, "{} ran something else: {told:?}", self.name);
        let made = std::fs::read_dir(ground.work())?.count();
        ensure!(made == ran, "{}: {made} directories instead of {ran}", self.name);
        Ok(told.ns)
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // Between two rounds it holds nothing; nobody waits for its own end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
