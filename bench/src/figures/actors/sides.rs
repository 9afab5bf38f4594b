//! The programs that `actors` compares: built here, run once a round, each ending with one line
//! of JSON.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::progress::Progress;
use crate::venv;

/// Where the programs lie.
#[derive(Debug)]
pub(super) struct Built {
    examples: PathBuf,
    peers: PathBuf,
    floor: PathBuf,
}

/// One of the things that are compared.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) name: String,
    argv: Vec<OsString>,
    /// What it must say.
    pub(super) check: u64,
    /// It takes so long, or so much memory, that it is run in the first round only.
    pub(super) once: bool,
}

/// What a side says at its end.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    hops: f64,
    elapsed_ns: f64,
    /// Examples that check their result themselves say none.
    pub(super) check: Option<u64>,
    /// The most memory it had, and how much of that before the first message. 0 where it does
    /// not matter.
    #[serde(default)]
    peak_rss_bytes: f64,
    #[serde(default)]
    before_rss_bytes: f64,
    /// What the memory of all its processes grew by.
    #[serde(default)]
    pub(super) grown_kib: f64,
    /// Or what that makes for each of them.
    bytes_per_open_ask: Option<f64>,
}

impl Told {
    pub(super) fn us_each(&self) -> f64 {
        self.elapsed_ns / 1e3 / self.hops
    }

    pub(super) fn peak_mib(&self) -> f64 {
        self.peak_rss_bytes / f64::from(1 << 20)
    }

    pub(super) fn bytes_each(&self) -> f64 {
        let grown = self.peak_rss_bytes - self.before_rss_bytes;
        self.bytes_per_open_ask.unwrap_or(grown / self.hops)
    }
}

/// Compiles everything, as its own users would: with full optimisation.
pub(super) fn build(root: &Path) -> Result<Built> {
    let target = root.join("target/bench/actors");
    let floor = target.join("floor");
    std::fs::create_dir_all(&target)?;
    let mut progress = Progress::new("actors: compiling the examples, the peers and the floors");
    let source = root.join("bench/actors/floor.c");
    venv::run(Command::new("cc").args(["-O2", "-o"]).arg(&floor).arg(source))?;
    let cargo = || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(["build", "--locked", "--quiet", "--release", "--target-dir"]).arg(&target);
        command.current_dir(root);
        command
    };
    venv::run(cargo().args(["--package", "hob-actor", "--examples"]))?;
    venv::run(cargo().args(["--bins", "--manifest-path", "bench/actors/Cargo.toml"]))?;
    progress.done();
    Ok(Built { examples: target.join("release/examples"), peers: target.join("release"), floor })
}

impl Side {
    fn new(name: &str, program: &Path, options: &[(&str, u64)]) -> Side {
        let mut argv = vec![program.as_os_str().to_owned()];
        for (option, value) in options {
            argv.extend([(*option).into(), value.to_string().into()]);
        }
        Side { name: name.to_owned(), argv, check: 0, once: false }
    }

    /// An example of `hob-actor`.
    pub(super) fn example(built: &Built, name: &str, options: &[(&str, u64)]) -> Side {
        Side::new("hob-actor", &built.examples.join(name), options)
    }

    /// A program of `bench/actors`, named after its library.
    pub(super) fn peer(built: &Built, name: &str, options: &[(&str, u64)]) -> Side {
        let library = name.split_once('_').map_or(name, |(library, _)| library);
        Side::new(library, &built.peers.join(name), options)
    }

    /// The program in C.
    pub(super) fn floor(built: &Built, arguments: &[&str]) -> Side {
        let mut side = Side::new("sockets in C", &built.floor, &[]);
        side.argv.extend(arguments.iter().map(OsString::from));
        side
    }

    pub(super) fn with(mut self, argument: &str) -> Side {
        self.argv.push(argument.into());
        if argument.starts_with("--") && argument != "--ask" {
            self.name = format!("{}, {}", self.name, argument.trim_start_matches('-'));
        }
        self
    }

    pub(super) fn gives(mut self, check: u64) -> Side {
        self.check = check;
        self
    }

    pub(super) fn once(mut self) -> Side {
        self.once = true;
        self
    }

    /// Runs the program; it measures itself, from when everything stands.
    pub(super) fn run(&self) -> Result<Told> {
        let (program, arguments) = self.argv.split_first().context("a side has a program")?;
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "{:?} ended with {}:\n{text}{}",
            self.argv,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str(line).with_context(|| format!("{:?} said: {line}", self.argv))
    }
}

/// What the system could give to new processes.
pub(super) fn available_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let value = line.and_then(|line| line.trim().strip_suffix(" kB"));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// The proportional memory of an idle worker process, as `ipc_storm` tells it: it starts its
/// workers, reads how much they have before the first message, and says the largest.
pub(super) fn idle_kib(built: &Built, more: &[&str]) -> Result<f64> {
    #[derive(Deserialize)]
    struct Idle {
        idle_pss_kib: f64,
    }
    let program = built.examples.join("ipc_storm");
    let output = Command::new(&program)
        .args(["--nodes", "4", "--messages", "0", "--ask", "1"])
        .args(more)
        .stdin(Stdio::null())
        .output()?;
    ensure!(output.status.success(), "{} failed", program.display());
    let text = String::from_utf8_lossy(&output.stdout);
    let idle: Idle = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    Ok(idle.idle_pss_kib)
}
