//! `hob ab` by its own standard: how often it calls a command other than itself, and how often it
//! finds what was planted, while neighbours work in bursts; hyperfine in the same turns.
//!
//! A planted command does the same and a little more: a loop that is longer by a share of what the
//! whole process takes in processor time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::{Setting, stats};

/// What makes this program the command that is measured, or a neighbour of it.
pub(crate) const COMMAND: &str = "planted-work";

const TRIALS: usize = 200;
const PLANTED: usize = 100;
/// Processor time of the command, in microseconds.
const TAKES_US: f64 = 2500.0;
/// Runs of each side by hyperfine.
const RUNS: &str = "50";

/// `COUNT` steps of work; or, as `bursts SEED`, work and sleep by turns until it is killed.
pub(crate) fn work(mut words: impl Iterator<Item = String>) -> Result<()> {
    let first = words.next().context("how much")?;
    if first == "bursts" {
        let mut chance: u64 = words.next().context("which seed")?.parse()?;
        loop {
            chance = chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let length = Duration::from_millis(5 + (chance >> 33) % 150);
            if chance >> 63 == 0 {
                std::thread::sleep(length);
                continue;
            }
            let until = Instant::now() + length;
            while Instant::now() < until {
                steps(1000);
            }
        }
    }
    steps(first.parse()?);
    Ok(())
}

fn steps(count: u64) {
    for step in 0..count {
        std::hint::black_box(step);
    }
}

/// Two neighbours, until they go.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn new(own: &Path) -> Result<Neighbours> {
        let start = |seed: &str| Command::new(own).args([COMMAND, "bursts", seed]).spawn();
        Ok(Neighbours(vec![start("20261127")?, start("72116202")?]))
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended is no neighbour any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What is compared: the commands by how much more was planted.
struct Ground<'a> {
    hob: &'a Path,
    own: String,
    /// Where hyperfine writes.
    told: PathBuf,
    /// Steps that take a microsecond.
    steps_a_us: f64,
    /// Steps of the command itself.
    steps: f64,
}

impl Ground<'_> {
    /// Finds how many steps make the command take as long as it is to.
    fn new<'a>(setting: &'a Setting, own: &Path) -> Result<Ground<'a>> {
        let own = own.to_str().context("the bench lies at a path of text")?.to_owned();
        let folder = setting.root.join("target/bench");
        std::fs::create_dir_all(&folder)?;
        let told = folder.join("hyperfine.json");
        let mut ground = Ground { hob: &setting.hob, own, told, steps_a_us: 1.0, steps: 0.0 };
        let many = 20_000_000.0;
        let far = ground.compare(&["--pairs", "20", "--metric", "cpu"], 0.0, many)?;
        let cpu = |side: &str| far[side]["cpu_us"]["median"].as_f64().context("no time");
        let (start, whole) = (cpu("a")?, cpu("b")?);
        ground.steps_a_us = many / (whole - start);
        ground.steps = (TAKES_US - start).max(0.0) * ground.steps_a_us;
        Ok(ground)
    }

    fn command(&self, steps: f64) -> String {
        format!("{} {COMMAND} {steps:.0}", self.own)
    }

    /// Compares two numbers of steps.
    fn compare(&self, options: &[&str], a: f64, b: f64) -> Result<Value> {
        let (a, b) = (self.command(a), self.command(b));
        let mut command = Command::new(self.hob);
        command.args(["ab", "--json"]).args(options).args([&a, &b]).stdin(Stdio::null());
        let done = command.output().context("cannot run hob ab")?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(matches!(done.status.code(), Some(0 | 1 | 3)), "hob ab failed: {said}");
        Ok(serde_json::from_slice(&done.stdout)?)
    }

    /// The steps of a command that takes `share` longer.
    fn planted(&self, share: f64) -> f64 {
        self.steps + share * TAKES_US * self.steps_a_us
    }

    /// The verdict on a command that takes `share` longer, by a metric.
    fn verdict(&self, metric: &str, share: f64) -> Result<String> {
        let found = self.compare(&["--metric", metric], self.steps, self.planted(share))?;
        Ok(found["verdict"].as_str().unwrap_or("none").to_owned())
    }

    /// Whether hyperfine names B the slower one, and is sure of it by its own arithmetic: B's ratio
    /// is further from 1 than what stands behind its sign of plus and minus.
    fn hyperfine(&self, share: f64) -> Result<(bool, bool)> {
        let (a, b) = (self.command(self.steps), self.command(self.planted(share)));
        let mut command = Command::new("hyperfine");
        command.args(["-N", "--style", "none", "--warmup", "2", "--runs", RUNS]);
        command.arg("--export-json").arg(&self.told).args([&a, &b]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        ensure!(command.status().context("cannot run hyperfine")?.success(), "hyperfine failed");
        let told: Value = serde_json::from_slice(&std::fs::read(&self.told)?)?;
        let of = |at: usize, what: &str| told["results"][at][what].as_f64().context("no time");
        let (a, b) = (of(0, "mean")?, of(1, "mean")?);
        let (a_off, b_off) = (of(0, "stddev")?, of(1, "stddev")?);
        let ratio = b.max(a) / b.min(a);
        let error = ratio * ((a_off / a).powi(2) + (b_off / b).powi(2)).sqrt();
        Ok((b > a, ratio - error > 1.0))
    }
}

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let own = std::env::current_exe()?;
    let ground = Ground::new(setting, &own)?;
    let mut figure =
        Figure::new("ab", "hob ab, by its own standard, beside two bursting neighbours");
    price(&ground, &mut figure)?;
    let neighbours = Neighbours::new(&own)?;
    alarms(setting, &ground, &mut figure)?;
    for (share, wanted) in [(0.09, [90.0, 95.0]), (0.05, [0.0, 95.0])] {
        planted(setting, &ground, &mut figure, share, wanted)?;
    }
    drop(neighbours);
    Ok(figure)
}

/// What pairs, digests and looks cost beside the runs themselves.
fn price(ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    let mut over = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let told = ground.compare(&["--pairs", "200"], ground.steps, ground.steps)?;
        let took = begun.elapsed().as_secs_f64() * 1e6;
        let runs = told["runs"].as_array().context("no runs")?;
        let walls: Vec<f64> = runs.iter().filter_map(|run| run["wall_us"].as_f64()).collect();
        // Four more are not measured.
        over.push(took / (walls.iter().sum::<f64>() + 4.0 * stats::median(&walls)));
    }
    let over = stats::median(&over);
    figure.target("whole comparison over its runs, 2.5 ms each", Want::AtMost(1.03), over);
    Ok(())
}

/// A against A.
fn alarms(setting: &Setting, ground: &Ground<'_>, figure: &mut Figure) -> Result<()> {
    let trials = setting.rounds(TRIALS);
    let (mut wall, mut cpu, mut named, mut sure) = (0, 0, 0, 0);
    let mut progress = Progress::new("ab");
    for trial in 0..trials {
        progress.at(trial, trials);
        let differs = |verdict: &str| usize::from(verdict == "slower" || verdict == "faster");
        wall += differs(&ground.verdict("wall", 0.0)?);
        cpu += differs(&ground.verdict("cpu", 0.0)?);
        let (b, is_sure) = ground.hyperfine(0.0)?;
        named += usize::from(b);
        sure += usize::from(is_sure);
    }
    let share = |count| percent(count, trials);
    figure.target("A and A: % called different by wall time", Want::AtMost(8.0), share(wall));
    figure.target("A and A: % called different by processor time", Want::AtMost(8.0), share(cpu));
    figure.fact("A and A: % in which hyperfine names B the slower one", share(named));
    figure.fact("A and A: % in which its ± leaves 1 out", share(sure));
    figure.fact("trials", percent(trials, 100));
    Ok(())
}

/// A and a little more.
fn planted(
    setting: &Setting,
    ground: &Ground<'_>,
    figure: &mut Figure,
    share: f64,
    [wall_wanted, cpu_wanted]: [f64; 2],
) -> Result<()> {
    let name = format!("+{:.0} %", share * 100.0);
    let trials = setting.rounds(PLANTED);
    let (mut wall, mut cpu, mut named, mut sure) = (0, 0, 0, 0);
    let mut progress = Progress::new("ab");
    for trial in 0..trials {
        progress.at(trial, trials);
        wall += usize::from(ground.verdict("wall", share)? == "slower");
        cpu += usize::from(ground.verdict("cpu", share)? == "slower");
        let (b, is_sure) = ground.hyperfine(share)?;
        named += usize::from(b);
        sure += usize::from(b && is_sure);
    }
    let part = |count| percent(count, trials);
    let wall_name = format!("{name}: % found by wall time");
    if wall_wanted > 0.0 {
        figure.target(&wall_name, Want::AtLeast(wall_wanted), part(wall));
    } else {
        figure.fact(&wall_name, part(wall));
    }
    let cpu_name = format!("{name}: % found by processor time");
    figure.target(&cpu_name, Want::AtLeast(cpu_wanted), part(cpu));
    figure.fact(&format!("{name}: % in which hyperfine names B the slower one"), part(named));
    figure.fact(&format!("{name}: % in which its ± leaves 1 out as well"), part(sure));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "some hundred trials")]
fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of as f64
}
