//! The staleness check: what it costs a call, beside a loop of `statx` in C over the same files,
//! and whether an edit ever escapes it.
//!
//! The check is the daemon's own, asked as the daemon asks it before each call. Edits are made by
//! another thread, and some hundred of them by this process between two whole `hob run`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use hob_daemon::measure::{By, Check, torture};

use super::{private, script};
use crate::Setting;
use crate::measure::{Series, Slot, microseconds};
use crate::progress::Progress;
use crate::report::{Figure, Want};

/// What a program of some size has loaded, and how its files are spread.
const FILES: usize = 1500;
const DIRECTORIES: usize = 150;
/// How often the cost is measured, and how often each of that the watched check is asked: it is
/// too short to be measured alone.
const COST_ROUNDS: usize = 200;
const ASKED: u32 = 100;
/// Edits, and those of them that are made between two whole calls.
const ROUNDS: usize = 100_000;
const CALLS: usize = 300;

const LOOP: &str = include_str!("statx.c");
const MAIN: &str = "import part\nprint(part.VALUE)\n";

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new(
        "stale",
        "the staleness check of a program with 1,500 files (microseconds), and edits under it",
    );
    let hob = private(setting, &[("PYTHONDONTWRITEBYTECODE", "1")])?;
    cost(&hob.folder("cost")?, &mut figure)?;
    let rounds = setting.rounds(ROUNDS);
    edits(&hob.folder("edits")?, rounds, &mut figure)?;
    calls(setting, &hob, rounds.min(CALLS), &mut figure)?;
    hob.stop()?;
    Ok(figure)
}

fn cost(folder: &Path, figure: &mut Figure) -> Result<()> {
    let packages: Vec<PathBuf> =
        (0..DIRECTORIES).map(|at| folder.join(format!("site/p{at}"))).collect();
    let mut files = Vec::with_capacity(FILES);
    for at in 0..FILES {
        let file = packages[at % DIRECTORIES].join(format!("m{at}.py"));
        std::fs::create_dir_all(&packages[at % DIRECTORIES])?;
        std::fs::write(&file, "one")?;
        files.push(file);
    }
    let mut watched = Check::of(&files, &packages, By::Watches)?;
    let mut looking = Check::of(&files, &packages, By::Looks)?;
    let mut statx = Statx::start(folder, &files)?;
    let [mut with, mut without, mut plain] =
        ["with watches", "without watches", "statx in C"].map(|name| Series {
            name: name.to_owned(),
            us: Vec::with_capacity(COST_ROUNDS),
            pids: Vec::new(),
        });
    let mut progress = Progress::new("stale: cost");
    for round in 0..COST_ROUNDS {
        progress.at(round, COST_ROUNDS);
        let begin = Instant::now();
        ensure!(looking.holds(), "taken for changed");
        without.us.push(microseconds(begin.elapsed()));
        plain.us.push(statx.ask()?);
        let begin = Instant::now();
        for _ in 0..ASKED {
            ensure!(watched.holds(), "taken for changed");
        }
        with.us.push(microseconds(begin.elapsed()) / f64::from(ASKED));
    }
    progress.done();
    for series in [&with, &without, &plain] {
        figure.fact(&format!("{}, median (us)", series.name), series.p(0.5));
        figure.fact(&format!("{}, p99 (us)", series.name), series.p(0.99));
    }
    let ratio = figure.ratio("without watches over statx in C", &without, &plain);
    figure.target("a check with watches (us)", Want::AtMost(5.0), with.p(0.5));
    figure.target("without watches over statx in C", Want::AtMost(2.0), ratio.of_medians);
    Ok(())
}

fn edits(folder: &Path, rounds: usize, figure: &mut Figure) -> Result<()> {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros();
    let seed = u64::try_from(seed)?;
    let mut progress = Progress::new(&format!("stale: {rounds} edits, seed {seed}"));
    let told = torture(folder, u64::try_from(rounds)?, seed, |done| {
        progress.at(usize::try_from(done).unwrap_or(rounds), rounds);
    })?;
    progress.done();
    #[expect(clippy::cast_precision_loss, reason = "counts of rounds, and a seed to be read off")]
    let [rounds, stale, alarms] = [told.rounds, told.stale, told.alarms].map(|count| count as f64);
    figure.fact(&format!("edits (seed {seed})"), rounds);
    figure.target("edits that were missed", Want::AtMost(0.0), stale);
    figure.target("false alarms", Want::AtMost(0.0), alarms);
    Ok(())
}

/// Edits a module, or the script itself, between two calls; each must say what the file says.
fn calls(
    setting: &Setting,
    hob: &crate::hob::Hob,
    count: usize,
    figure: &mut Figure,
) -> Result<()> {
    let mut program = script(setting, hob, "main.py", MAIN)?;
    let (part, spare) = (program.folder.join("part.py"), program.folder.join("part.new"));
    program.name = "main.py".to_owned();
    let side = hob.warm(&program, &[], 0);
    let mut slot = Slot::new()?;
    let mut progress = Progress::new("stale: calls");
    let (mut stale, mut pids) = (0, Vec::new());
    for round in 0..count {
        progress.at(round, count);
        let digit = round % 10;
        let text = format!("VALUE = {digit}\n");
        // Several calls to an edit, so that most edits meet a warm program.
        match round % 8 {
            0 => std::fs::write(&part, &text)?,
            4 => {
                std::fs::write(&spare, &text)?;
                std::fs::rename(&spare, &part)?;
            }
            _ => (),
        }
        let want = std::fs::read_to_string(&part)?.replace("VALUE = ", "");
        let ran = side.run(&mut slot)?;
        pids.push(ran.pid);
        if ran.output.stdout != want.as_bytes() {
            stale += 1;
        }
        std::thread::sleep(super::GAP * 2);
    }
    progress.done();
    figure.fact("whole calls, with an edit before every fourth", f64::from(u32::try_from(count)?));
    figure.fact("part of them that was warm", hob.warm_part(&pids)?);
    figure.target("whole calls that were stale", Want::AtMost(0.0), f64::from(stale));
    Ok(())
}

/// The loop in C, compiled here and kept running.
struct Statx {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Statx {
    fn start(folder: &Path, files: &[PathBuf]) -> Result<Statx> {
        let (source, program) = (folder.join("statx.c"), folder.join("statx"));
        std::fs::write(&source, LOOP)?;
        let mut compile = Command::new("cc");
        crate::venv::run(compile.args(["-O2", "-o"]).arg(&program).arg(&source))?;
        let mut list = Vec::new();
        for file in files {
            list.extend_from_slice(file.as_os_str().as_encoded_bytes());
            list.push(0);
        }
        std::fs::write(folder.join("list"), list)?;
        let mut child = Command::new(&program)
            .arg(folder.join("list"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ask = child.stdin.take().context("the pipe was asked for")?;
        let answer = BufReader::new(child.stdout.take().context("the pipe was asked for")?);
        Ok(Statx { child, ask, answer })
    }

    /// The microseconds of one loop.
    fn ask(&mut self) -> Result<f64> {
        self.ask.write_all(b"?")?;
        let mut line = String::new();
        self.answer.read_line(&mut line)?;
        let nanoseconds: f64 = line.trim().parse().context("the loop in C has failed")?;
        Ok(nanoseconds / 1e3)
    }
}

impl Drop for Statx {
    fn drop(&mut self) {
        // It ends by itself with its input; nothing of it is left when that takes too long.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
