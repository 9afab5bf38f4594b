//! A thousand faults of chance, and what a call costs that meets a fault before it is given.
//!
//! The first part is the whole-system tests' own driver (`tests/src/chaos`), with more rounds:
//! faults, hangs, wrong outcomes, leaks, and the seed that repeats them (`HOB_CHAOS_SEED`).
//! The second compares, in interleaved rounds, a plain cold run with a call that has each fault
//! in its way. What is to be reached is cold and 60 ms.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::{HELLO, private, reference, script};
use crate::Setting;
use crate::hob::Hob;
use crate::measure::{Output, Series, Side, Slot};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;

const ROUNDS: usize = 1000;
/// Rounds of the second part: a tenth of the first's.
const TIMED_PART: usize = 25;
const BUDGET_MS: f64 = 60.0;
/// Long enough for any number of rounds that somebody asks for.
const TIME_MAX: Duration = Duration::from_secs(4 * 3600);

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new("chaos", "faults of chance, and the price of a fault");
    let rounds = setting.rounds(ROUNDS);
    if setting.is_part("prices") {
        prices(setting, &mut figure, rounds.div_ceil(TIMED_PART).max(3))?;
    }
    if setting.is_part("faults") {
        faults(setting, &mut figure, rounds)?;
    }
    Ok(figure)
}

fn faults(setting: &Setting, figure: &mut Figure, rounds: usize) -> Result<()> {
    let seed = std::env::var("HOB_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut progress = Progress::new("chaos: faults");
    let tell = |done| progress.at(done, rounds);
    let report = hob_tests::chaos::run(&setting.hob, seed.unwrap_or(1), rounds, TIME_MAX, tell);
    progress.done();
    crate::say(&report.to_string());
    figure.fact("seed", count(usize::try_from(report.seed)?));
    figure.fact("faults", count(report.rounds));
    figure.fact("calls lost with one line and 125", count(report.lost));
    figure.fact("programs that were killed", count(report.killed));
    figure.fact("calls held by a stopped daemon", count(report.held));
    figure.target("hangs", Want::AtMost(0.0), count(report.hangs));
    figure.target("wrong outcomes", Want::AtMost(0.0), count(report.wrong));
    figure.target("leaks", Want::AtMost(0.0), count(report.leaks));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn count(number: usize) -> f64 {
    number as f64
}

/// What is in a call's way before it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    NoDaemon,
    DeadSocket,
    StoppedDaemon,
    SilentListener,
    FullListener,
    NoSocket,
    OpenDirectory,
}

const OBSTACLES: [(Obstacle, &str); 7] = [
    (Obstacle::NoDaemon, "no daemon"),
    (Obstacle::DeadSocket, "dead socket"),
    (Obstacle::StoppedDaemon, "stopped daemon"),
    (Obstacle::SilentListener, "listener that says nothing"),
    (Obstacle::FullListener, "listener whose queue is full"),
    (Obstacle::NoSocket, "removed socket, daemon alive"),
    (Obstacle::OpenDirectory, "directory that others may enter"),
];

/// The times of a cold run and of a call for each obstacle, each call made once a round.
fn prices(setting: &Setting, figure: &mut Figure, rounds: usize) -> Result<()> {
    let hob = private(setting, &[])?;
    let program = script(setting, &hob, "hello.py", HELLO)?;
    let (cold, warm) = (hob.cold(&program, 0), hob.warm(&program, &[], 0));
    let want = reference(&cold)?;
    let mut slot = Slot::new()?;
    let mut plain = Series::named("plain cold run");
    let mut series: Vec<Series> = OBSTACLES.iter().map(|(_, name)| Series::named(name)).collect();
    let mut progress = Progress::new("chaos: prices");
    for round in 0..rounds {
        progress.at(round, rounds);
        for (one, (obstacle, _)) in series.iter_mut().zip(OBSTACLES) {
            // Cold just before: a slow minute hits both.
            keep(&mut plain, &cold, &want, &mut slot)?;
            let place = Place::put(obstacle, &hob, &warm, &mut slot)?;
            keep(one, &warm, &want, &mut slot)?;
            place.clear(&hob)?;
        }
    }
    progress.done();
    let cold_ms = stats::median(&plain.us) / 1e3;
    figure.series(&plain);
    for one in &series {
        figure.series(one);
        let over_ms = stats::median(&one.us) / 1e3 - cold_ms;
        let what = format!("{}: median over cold, ms", one.name);
        figure.target(&what, Want::AtMost(BUDGET_MS), over_ms);
    }
    hob.stop()
}

fn keep(series: &mut Series, side: &Side, want: &Output, slot: &mut Slot) -> Result<()> {
    let ran = side.run(slot)?;
    ensure!(ran.output.stdout == want.stdout, "{}: {:?}", series.name, ran.output);
    ensure!(ran.output.exit == want.exit, "{}: {:?}", series.name, ran.output);
    series.us.push(ran.took.as_secs_f64() * 1e6);
    series.pids.push(ran.pid);
    Ok(())
}

/// An obstacle that stands.
#[derive(Debug)]
struct Place {
    obstacle: Obstacle,
    daemon: Option<u32>,
    /// Whoever listens in the daemon's place, and connections that fill its queue.
    held: Vec<rustix::fd::OwnedFd>,
}

impl Place {
    fn put(obstacle: Obstacle, hob: &Hob, warm: &Side, slot: &mut Slot) -> Result<Place> {
        let mut place = Place { obstacle, daemon: None, held: Vec::new() };
        let socket = hob.directory().join("socket");
        match obstacle {
            Obstacle::NoDaemon => hob.stop()?,
            Obstacle::DeadSocket => {
                let daemon = running(hob, warm, slot)?;
                signal(daemon, Signal::KILL);
                gone(daemon)?;
            }
            Obstacle::StoppedDaemon => {
                let daemon = running(hob, warm, slot)?;
                signal(daemon, Signal::STOP);
                place.daemon = Some(daemon);
            }
            Obstacle::SilentListener | Obstacle::FullListener => {
                hob.stop()?;
                std::fs::create_dir_all(hob.directory())?;
                mode(&hob.directory(), 0o700)?;
                let backlog = if obstacle == Obstacle::FullListener { 0 } else { 16 };
                place.held.push(listen(&socket, backlog)?);
                if obstacle == Obstacle::FullListener {
                    place.held.push(connect(&socket)?);
                }
            }
            Obstacle::NoSocket => {
                place.daemon = Some(running(hob, warm, slot)?);
                std::fs::remove_file(&socket)?;
            }
            Obstacle::OpenDirectory => {
                place.daemon = Some(running(hob, warm, slot)?);
                mode(&hob.directory(), 0o755)?;
            }
        }
        Ok(place)
    }

    fn clear(self, hob: &Hob) -> Result<()> {
        drop(self.held);
        match self.obstacle {
            Obstacle::NoDaemon | Obstacle::DeadSocket => {}
            Obstacle::StoppedDaemon => {
                self.daemon.into_iter().for_each(|pid| signal(pid, Signal::CONT))
            }
            Obstacle::SilentListener | Obstacle::FullListener => {
                std::fs::remove_file(hob.directory().join("socket"))?;
            }
            Obstacle::NoSocket => {
                let daemon = self.daemon.context("it was running")?;
                signal(daemon, Signal::TERM);
                gone(daemon)?;
            }
            Obstacle::OpenDirectory => mode(&hob.directory(), 0o700)?,
        }
        Ok(())
    }
}

/// A daemon that runs, started by a call if need be.
fn running(hob: &Hob, warm: &Side, slot: &mut Slot) -> Result<u32> {
    for _ in 0..50 {
        if let Ok(pid) = hob.pid() {
            return Ok(pid);
        }
        warm.run(slot)?;
    }
    hob.pid()
}

fn gone(pid: u32) -> Result<()> {
    for _ in 0..2000 {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    anyhow::bail!("process {pid} does not end")
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // One that is gone already needs none.
        let _ = kill_process(pid, signal);
    }
}

fn mode(path: &Path, bits: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits))?)
}

fn listen(path: &PathBuf, backlog: i32) -> Result<rustix::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(socket)
}

fn connect(path: &Path) -> Result<rustix::fd::OwnedFd> {
    Ok(std::os::unix::net::UnixStream::connect(path)?.into())
}
