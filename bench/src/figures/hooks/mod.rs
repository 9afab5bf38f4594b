//! `hob hooks run` beside what people use today, and beside what a program in C does: three tiny
//! `sh` hooks for hundreds of targets, each side checked after each run.
//!
//! Owns: what is compared with what, and what is to be reached. Deliberately not part of
//! `make bench`: it needs Maven, `run-parts` and a C compiler, and runs for some eight minutes.

mod contests;
mod ground;
mod jvm;
mod load;
pub(crate) mod runner;
mod sides;

use anyhow::Result;

use crate::Setting;
use crate::hob::Hob;
use crate::report::{Figure, Want};
use contests::{Contest, at_least, at_most, over_p99};
use ground::Ground;
use sides::{Built, Side};

/// Rounds of a full run.
const ROUNDS: usize = 10;
/// Targets of a round where hob stands beside the floor, as the issue names them.
const TARGETS: usize = 500;
/// And where many sides stand beside each other: the numbers are per hook.
const FEWER: usize = 200;
const FEWER_ROUNDS: usize = 6;
/// Python takes some hundred times as long as a shell.
const PYTHON_TARGETS: usize = 20;
const PYTHON_ROUNDS: usize = 5;
/// One target's hooks after another.
const ONE: &[&str] = &["--jobs", "1"];
const ONE_SPAWNED: &[&str] = &["--jobs", "1", "--isolation", "spawn"];

/// What every part needs.
#[derive(Debug)]
struct Bench<'a> {
    setting: &'a Setting,
    hob: Hob,
    built: Built,
}

/// The parts, in their order, each with the name that `--only` knows it by.
type Part = fn(&Bench, &mut Figure) -> Result<()>;
const PARTS: [(&str, Part); 8] = [
    ("sequential", sequential),
    ("peers", peers),
    ("wide", wide),
    ("busy", busy),
    ("python", python),
    ("resident", runner::measure),
    ("many", load::measure),
    ("jvm", jvm::measure),
];

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let built =
        sides::build(&setting.root, &setting.root.join("target/bench/hooks"), &setting.python)?;
    let bench = Bench { setting, hob: super::private(setting, &[])?, built };
    let mut figure = Figure::new("hooks", "three tiny sh hooks a target; times are per hook");
    for (name, part) in PARTS {
        if setting.is_part(name) {
            let told = figure.targets.len();
            part(&bench, &mut figure)?;
            // A run that is cut short has said, and keeps, what it has measured.
            for target in &figure.targets[told..] {
                crate::say(&target.line());
            }
            crate::keep(setting, "hooks", std::slice::from_ref(&figure))?;
        }
    }
    Ok(figure)
}

impl Bench<'_> {
    /// The workload with so many targets, or a fifth of them to see that everything works.
    fn ground(&self, name: &str, targets: usize) -> Result<Ground> {
        Ground::shell(&self.hob.folder(name)?, self.targets(targets))
    }

    fn targets(&self, full: usize) -> usize {
        if self.setting.is_quick() { full.div_ceil(5) } else { full }
    }

    fn side(&self, name: &str, options: &[&str]) -> Side {
        Side::hob(name, &self.setting.hob, options)
    }
}

/// One hook after another: hob beside the floor.
fn sequential(bench: &Bench, figure: &mut Figure) -> Result<()> {
    let contest = Contest {
        name: "one after another",
        hob: &bench.hob,
        ground: &bench.ground("sequential", TARGETS)?,
        sides: vec![
            Side::floor(&bench.built),
            bench.side("hob, spawned", ONE_SPAWNED),
            bench.side("hob", ONE),
        ],
        rounds: bench.setting.rounds(ROUNDS),
    };
    let rounds = contest.alternately(figure)?;
    for one in &rounds {
        one.tell_hooks(figure);
        one.tell_ways(figure);
    }
    let what = "spawned, alternately: over the C floor";
    at_most(figure, what, 1.05, (&rounds[1], &rounds[0]));
    at_most(figure, "by default, alternately: over the C floor", 0.55, (&rounds[2], &rounds[0]));
    let rounds = contest.in_a_row(figure)?;
    at_most(figure, "spawned, in a row: over the C floor", 1.05, (&rounds[1], &rounds[0]));
    at_most(figure, "by default, in a row: over the C floor", 0.55, (&rounds[2], &rounds[0]));
    Ok(())
}

/// What people use today. Nothing is to be reached; the JVM's ways are in `jvm.rs`.
fn peers(bench: &Bench, figure: &mut Figure) -> Result<()> {
    let contest = Contest {
        name: "peers",
        hob: &bench.hob,
        ground: &bench.ground("peers", FEWER)?,
        sides: vec![
            bench.side("hob, beside peers", ONE),
            Side::run_parts(),
            Side::python(&bench.built),
        ],
        rounds: bench.setting.rounds(FEWER_ROUNDS),
    };
    let rounds = contest.alternately(figure)?;
    for peer in &rounds[1..] {
        contests::over(figure, peer, &rounds[0]);
    }
    Ok(())
}

/// Several targets at once: hob beside the C program of the same width.
fn wide(bench: &Bench, figure: &mut Figure) -> Result<()> {
    const WIDTHS: [usize; 4] = [1, 2, 4, 16];
    let mut sides = Vec::new();
    for width in WIDTHS {
        let jobs = width.to_string();
        let options = ["--jobs", &jobs, "--isolation", "spawn"];
        sides.push(Side::wide(&bench.built, width));
        sides.push(bench.side(&format!("hob, {width} at once, spawned"), &options));
        sides.push(bench.side(&format!("hob, {width} at once"), &options[..2]));
    }
    let contest = Contest {
        name: "several at once",
        hob: &bench.hob,
        ground: &bench.ground("wide", TARGETS)?,
        sides,
        rounds: bench.setting.rounds(ROUNDS),
    };
    let rounds = contest.alternately(figure)?;
    for (at, width) in WIDTHS.into_iter().enumerate() {
        let [c, spawned, hob] = [0, 1, 2].map(|side| &rounds[3 * at + side]);
        if width >= 4 {
            let what = format!("--jobs {width}: throughput over the C program's");
            at_least(figure, &what, 1.0, (c, hob));
        } else {
            contests::over(figure, c, hob);
        }
        contests::over(figure, c, spawned);
    }
    let what = "two at once on two cores, both spawned: throughput over one's";
    at_least(figure, what, 1.8, (&rounds[1], &rounds[4]));
    let what = "two at once on two cores, by default: throughput over one's";
    at_least(figure, what, 1.8, (&rounds[2], &rounds[5]));
    contests::over(figure, &rounds[0], &rounds[3]);
    let what = "16 at once, spawned: a hook's time over that with 2 at once";
    at_most(figure, what, 1.1, (&rounds[10], &rounds[4]));
    let what = "16 at once: a hook's time over that with 2 at once";
    at_most(figure, what, 1.1, (&rounds[11], &rounds[5]));
    Ok(())
}

/// A hook's own time with two busy loops beside it, under the ordinary scheduler.
fn busy(bench: &Bench, figure: &mut Figure) -> Result<()> {
    let contest = Contest {
        name: "beside two busy loops",
        hob: &bench.hob,
        ground: &bench.ground("busy", FEWER)?,
        sides: vec![
            Side::floor(&bench.built).called("C, posix_spawn, busy"),
            bench.side("hob, spawned, busy", ONE_SPAWNED),
            bench.side("hob, busy", ONE),
            Side::wide(&bench.built, 4).called("C, vfork, 4 at once, busy"),
            bench.side("hob, 4 at once, busy", &["--jobs", "4"]),
        ],
        rounds: bench.setting.rounds(FEWER_ROUNDS),
    };
    let rounds = load::beside_busy_loops(|| contest.alternately(figure))?;
    rounds.iter().for_each(|one| one.tell_hooks(figure));
    for (what, pair) in [
        ("beside two busy loops, spawned: p99 over the C program's", (&rounds[1], &rounds[0])),
        ("beside two busy loops: p99 over the C program's", (&rounds[2], &rounds[0])),
        ("beside two busy loops, 4 at once: p99 over the C program's", (&rounds[4], &rounds[3])),
    ] {
        over_p99(figure, pair.0, pair.1);
        figure.target(what, Want::AtMost(1.5), pair.0.hooks(0.99) / pair.1.hooks(0.99));
    }
    Ok(())
}

/// Hooks in Python: warm beside spawned.
fn python(bench: &Bench, figure: &mut Figure) -> Result<()> {
    let folder = bench.hob.folder("python")?;
    let targets = bench.targets(PYTHON_TARGETS);
    let ground = Ground::python(&folder, targets, &bench.setting.python)?;
    let contest = Contest {
        name: "hooks in Python",
        hob: &bench.hob,
        ground: &ground,
        sides: vec![
            bench.side("Python hooks, hob", ONE),
            bench.side("Python hooks, hob, spawned", ONE_SPAWNED),
        ],
        rounds: bench.setting.rounds(PYTHON_ROUNDS),
    };
    // Until each of the three is warm: the first runs teach the daemon.
    sides::warm_up(&contest.sides[0], &bench.hob, &ground)?;
    let rounds = contest.alternately(figure)?;
    rounds.iter().for_each(|one| one.tell_ways(figure));
    let what = "three Python hooks: spawned over warm";
    at_least(figure, what, 15.0, (&rounds[1], &rounds[0]));
    bench.hob.stop()
}
