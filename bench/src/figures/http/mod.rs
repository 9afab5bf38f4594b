//! `hob serve` beside servers that others wrote: one app for all of Rack, one for all of Python, each
//! served by two workers where a server has them. Static files beside a file server, files of repositories beside git, WebSockets, and what
//! lasts: many mounts, idle connections, many requests.
//!
//! In each round every server is started, asked in bursts (with a pause between, as from people) and
//! then without a pause, a connection for each request and then on kept ones, and ended; the next round begins with another. Processor time is that of
//! the server's processes, ended ones too; on a shared machine it moves least.

mod blobs;
mod client;
mod files;
mod lasting;
mod python;
mod rack;
mod server;
mod sockets;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Setting;
use crate::hob::Hob;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Fact, Figure};
use crate::stats;
use crate::venv;

use super::private;
use client::{Connections, Load};
use server::{Recipe, Server};

/// Requests at one time.
const WIDTHS: [usize; 3] = [1, 16, 64];
const ROUNDS: usize = 10;
/// Bursts of each width in a round: about a hundred requests.
const BURST_REQUESTS: usize = 96;
/// Requests without a pause in a round, for each width.
const STREAM_REQUESTS: usize = 512;
/// Between two bursts: long enough that what is made ahead is there again.
const GAP: Duration = Duration::from_millis(12);
/// What the page of every app has.
const PAGE_WORDS: &[u8] = b"<li>row 19</li>";

/// What was measured of a server at one width.
#[derive(Debug, Default)]
struct Measured {
    bursts: Load,
    stream: Load,
    cpu_us: f64,
    /// The same as the stream on connections that are kept, where the server keeps them.
    kept: Load,
    kept_cpu_us: f64,
}

impl Measured {
    fn p50(&self) -> f64 {
        stats::median(&self.bursts.us)
    }

    fn p99(&self) -> f64 {
        stats::quantile(&self.bursts.us, 0.99)
    }

    fn cpu(&self) -> f64 {
        self.cpu_us / self.stream.us.len() as f64
    }

    fn kept_cpu(&self) -> f64 {
        self.kept_cpu_us / self.kept.us.len() as f64
    }
}

/// A server with what was measured of it, by width.
#[derive(Debug)]
struct Side {
    recipe: Recipe,
    measured: Vec<Measured>,
    memory_kib: (f64, f64),
}

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private(setting, &[])?;
    let mut figure = Figure::new("http", "hob serve beside servers that others wrote");
    type Part = fn(&Setting, &Hob, &mut Figure) -> Result<()>;
    let parts: [(&str, Part); 10] = [
        ("fork", rack::fork),
        ("prefork", rack::prefork),
        ("foolsgold", rack::example),
        ("python", python::python),
        ("static", files::files),
        ("blobs", blobs::blobs),
        ("websockets", sockets::sockets),
        ("mounts", lasting::mounts),
        ("idle", lasting::idle),
        ("soak", lasting::soak),
    ];
    for (name, part) in parts {
        if setting.is_part(name) {
            part(setting, &hob, &mut figure)?;
        }
    }
    hob.stop()?;
    Ok(figure)
}

/// Measures these in turn; what is not installed is said and left out.
fn sides(setting: &Setting, hob: &Hob, name: &str, recipes: &[Recipe]) -> Result<Vec<Side>> {
    let mut sides: Vec<Side> = Vec::new();
    for recipe in recipes {
        if !recipe.is_there() {
            crate::say(&format!(
                "{}: not installed : apt-get install {}",
                recipe.name, recipe.package
            ));
            continue;
        }
        let measured = WIDTHS.iter().map(|_| Measured::default()).collect();
        sides.push(Side { recipe: recipe.clone(), measured, memory_kib: (0.0, 0.0) });
    }
    let rounds = setting.rounds(ROUNDS);
    let folder = hob.folder("http")?;
    take_turns(name, rounds, sides.len(), |at| {
        let side = &mut sides[at];
        let server = side.recipe.start(&folder, &hob.environment())?;
        side.ask(&server).with_context(|| format!("asking {}", side.recipe.name))?;
        side.memory_kib = server.memory_kib();
        Ok(())
    })?;
    Ok(sides)
}

/// Has each of `count` servers its turn in each of `rounds`; another one begins in each round.
fn take_turns(
    name: &str,
    rounds: usize,
    count: usize,
    mut turn: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut progress = Progress::new(name);
    for round in 0..rounds {
        progress.at(round, rounds);
        for at in 0..count {
            turn((at + round) % count)?;
        }
    }
    progress.done();
    Ok(())
}

impl Side {
    fn ask(&mut self, server: &Server) -> Result<()> {
        // What a server does for its first requests is not what is compared.
        server.ask(4, Connections::Closed, 64)?;
        for (width, measured) in WIDTHS.into_iter().zip(&mut self.measured) {
            for _ in 0..BURST_REQUESTS.div_ceil(width) {
                std::thread::sleep(GAP);
                measured.bursts.add(server.ask(width, Connections::Closed, width)?);
            }
            let (load, cpu_us) = server.ask_timed(width, Connections::Closed, STREAM_REQUESTS)?;
            measured.stream.add(load);
            measured.cpu_us += cpu_us;
            let (load, cpu_us) = server.ask_timed(width, Connections::Kept, STREAM_REQUESTS)?;
            measured.kept.add(load);
            measured.kept_cpu_us += cpu_us;
        }
        Ok(())
    }
}

fn told(figure: &mut Figure, sides: &[Side]) {
    for (at, width) in WIDTHS.iter().enumerate() {
        for side in sides {
            let (name, measured) = (side.recipe.name, &side.measured[at]);
            let bursts = format!("{name}, bursts of {width}");
            let us = measured.bursts.us.clone();
            figure.series(&Series { name: bursts, us, pids: Vec::new() });
            fact(
                figure,
                &format!("{name}: requests a second, {width} at a time"),
                measured.stream.throughput(),
            );
            fact(
                figure,
                &format!("{name}: processor time a request in us, {width} at a time"),
                measured.cpu(),
            );
            let kept = format!("{name}: on kept connections, {width} at a time");
            fact(figure, &format!("{kept}: requests a second"), measured.kept.throughput());
            fact(figure, &format!("{kept}: p50 in us"), stats::median(&measured.kept.us));
            fact(figure, &format!("{kept}: processor time a request in us"), measured.kept_cpu());
        }
    }
    for side in sides {
        fact(
            figure,
            &format!("{}: memory of all its processes, KiB", side.recipe.name),
            side.memory_kib.1,
        );
    }
}

fn fact(figure: &mut Figure, name: &str, value: f64) {
    figure.facts.push(Fact { name: name.to_owned(), value: (value * 1000.0).round() / 1000.0 });
}

fn named<'a>(sides: &'a [Side], name: &str) -> Option<&'a Side> {
    sides.iter().find(|side| side.recipe.name == name)
}

/// A file of the bench's own.
fn ours(setting: &Setting, name: &str) -> String {
    setting.root.join("bench/http").join(name).display().to_string()
}

/// A trusted site of one mount.
fn hob_serve(
    hob: &Hob,
    name: &'static str,
    interface: &str,
    app: &str,
    terms: &str,
) -> Result<Recipe> {
    let folder = hob.folder(&format!("site-{}", name.replace([' ', ','], "")))?;
    let file = app.split_once(':').map_or(app, |(file, _callable)| file);
    let local = Path::new(file).file_name().context("the app has a name")?;
    std::fs::copy(file, folder.join(local))?;
    let target = app.replacen(file, &local.to_string_lossy(), 1);
    let toml = format!("[mount.\"/\"]\n{interface} = \"{target}\"\n{terms}\n");
    trusted(hob, name, &folder, &toml)
}

/// The site that a folder's `hob.toml` says.
fn trusted(hob: &Hob, name: &'static str, folder: &Path, toml: &str) -> Result<Recipe> {
    let config = folder.join("hob.toml");
    std::fs::write(&config, toml)?;
    let mut trust = Command::new(hob.binary());
    let environment = hob.environment();
    trust.arg("trust").arg(&config).env_clear();
    venv::run(trust.envs(environment.iter().map(|(name, value)| (name, value))))?;
    let words: [OsString; 6] = [
        hob.binary().as_os_str().to_owned(),
        "serve".into(),
        "--config".into(),
        config.into_os_string(),
        "--listen".into(),
        "127.0.0.1:PORT".into(),
    ];
    let mut recipe = Recipe::new(name, "", &[]);
    recipe.words = words.to_vec();
    Ok(recipe)
}
