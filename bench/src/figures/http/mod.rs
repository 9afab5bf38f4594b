//! `hob serve` beside servers that others wrote: one app for all of Rack, one for all of Python, each
//! served by two workers where a server has them.
//!
//! In each round every server is started, asked in bursts (with a pause between, as from people) and
//! then without a pause, a connection for each request and then on kept ones, and ended; the next round begins with another. Processor time is that of
//! the server's processes, ended ones too; on a shared machine it moves least.

mod client;
mod server;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Setting;
use crate::hob::Hob;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Fact, Figure, Want};
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
const WORDS: &[u8] = b"<li>row 19</li>";

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
    if setting.is_part("fork") {
        fork(setting, &hob, &mut figure)?;
    }
    if setting.is_part("prefork") {
        prefork(setting, &hob, &mut figure)?;
    }
    if setting.is_part("python") {
        python(setting, &hob, &mut figure)?;
    }
    hob.stop()?;
    Ok(figure)
}

/// A fresh copy for each request, beside the plain way to that, and beside Thin, which has none.
fn fork(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let config = ours(setting, "config.ru");
    let plain = ours(setting, "forking.rb");
    let recipes = [
        hob_serve(hob, "hob, fork", "rack", &config, "isolation = \"fork\"\nworkers = 4")?,
        Recipe::new("a plain fork", "ruby-rack", &["ruby", &plain, &config, "PORT"]),
        thin("thin", &config, &[]),
        thin("thin, threaded", &config, &["--threaded", "--threadpool-size", "16"]),
    ];
    let sides = sides(setting, hob, "http, fork", &recipes)?;
    told(figure, &sides);
    let [hob, plain] = [&sides[0], &sides[1]];
    for (at, width) in WIDTHS.iter().enumerate().skip(1) {
        let ratio = hob.measured[at].stream.throughput() / plain.measured[at].stream.throughput();
        let name = format!("fork: throughput over a plain fork, at {width}");
        figure.target(&name, Want::AtLeast(1.8), ratio);
    }
    if let Some(thin) = named(&sides, "thin, threaded") {
        let ratio = |at: usize| hob.measured[at].p50() / thin.measured[at].p50();
        figure.target("fork: p50 over Thin threaded, at 1", Want::AtMost(2.0), ratio(0));
        for (at, width) in WIDTHS.iter().enumerate().skip(1) {
            fact(figure, &format!("fork: p50 over Thin threaded, at {width}"), ratio(at));
        }
    }
    Ok(())
}

/// Workers that go on.
fn prefork(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let config = ours(setting, "config.ru");
    let unicorn = ours(setting, "unicorn.rb");
    let mut puma = Recipe::new(
        "puma 2x5",
        "puma",
        &["puma", "-q", "-e", "production", "-w", "2", "-t", "5:5", "-b", "tcp://127.0.0.1:PORT"],
    );
    puma.words.push(config.clone().into());
    let terms = "isolation = \"prefork\"\nworkers = { min = 2, max = 2 }";
    let unicorn_words = ["unicorn", "-E", "none", "-c", &unicorn, "-l", "127.0.0.1:PORT", &config];
    let recipes = [
        hob_serve(hob, "hob, prefork", "rack", &config, terms)?,
        puma,
        Recipe::new("unicorn 2", "unicorn", &unicorn_words),
        thin("thin", &config, &[]),
    ];
    let sides = sides(setting, hob, "http, prefork", &recipes)?;
    told(figure, &sides);
    let hob = &sides[0];
    let wide = WIDTHS.len() - 1;
    if let Some(puma) = named(&sides, "puma 2x5") {
        let (ours, theirs) = (&hob.measured[wide], &puma.measured[wide]);
        let cpu = hob.measured[1].cpu() / puma.measured[1].cpu();
        figure.target("prefork: processor time over puma's, at 16", Want::AtMost(0.7), cpu);
        let cpu = hob.measured[1].kept_cpu() / puma.measured[1].kept_cpu();
        fact(figure, "prefork: processor time over puma's, at 16, connections kept", cpu);
        let ratio = ours.stream.throughput() / theirs.stream.throughput();
        figure.target("prefork: throughput over puma's, at 64", Want::AtLeast(1.3), ratio);
        let p99 = ours.p99() / theirs.p99();
        figure.target("prefork: p99 over puma's, at 64", Want::AtMost(0.8), p99);
    }
    for name in ["unicorn 2", "thin"] {
        if let Some(other) = named(&sides, name) {
            let ratio =
                hob.measured[wide].stream.throughput() / other.measured[wide].stream.throughput();
            let name = format!("prefork: throughput over {name}, at 64");
            figure.target(&name, Want::AtLeast(1.0), ratio);
        }
    }
    fact(figure, "prefork: memory of the server alone, KiB", hob.memory_kib.0);
    figure.target("prefork: the server alone, MiB", Want::AtMost(12.0), hob.memory_kib.0 / 1024.0);
    Ok(())
}

/// One page by WSGI and by ASGI.
fn python(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let env = venv::make(&setting.root, "http", "requirements-http.txt")?;
    let app = ours(setting, "app.py");
    let terms = "isolation = \"prefork\"\nworkers = { min = 2, max = 2 }";
    let bound = "127.0.0.1:PORT";
    let of = |name: &'static str, words: &[&str]| {
        let mut recipe = Recipe::new(name, "", words);
        recipe.words[0] = env.join("bin").join(words[0]).into_os_string();
        recipe
    };
    let folder = setting.root.join("bench/http").display().to_string();
    let granian = ["granian", "--no-ws", "--workers", "2", "--host", "127.0.0.1", "--port", "PORT"];
    let with = |interface: &str, target: &str| {
        let mut words: Vec<&str> = granian.to_vec();
        let interface = ["--interface", interface, "--working-dir", &folder, target];
        words.extend(interface);
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (by_wsgi, by_asgi) = (with("wsgi", "app:app"), with("asgi", "app:asgi"));
    let granian =
        |name, all: &[String]| of(name, &all.iter().map(String::as_str).collect::<Vec<_>>());
    // Its processes are ended by SIGTERM only with `die-on-term`.
    let uwsgi = "uwsgi --master --die-on-term --disable-logging --processes 2 --module app:app";
    let mut uwsgi: Vec<&str> = uwsgi.split(' ').collect();
    uwsgi.extend(["--http-socket", bound, "--chdir", &folder]);
    let uwsgi = of("uwsgi 2", &uwsgi);
    let wsgi = [
        hob_serve(hob, "hob, WSGI", "wsgi", &format!("{app}:app"), terms)?,
        of("gunicorn 2", &["gunicorn", "-w", "2", "-b", bound, "--chdir", &folder, "app:app"]),
        uwsgi,
        granian("granian 2, WSGI", &by_wsgi),
    ];
    let asgi = [
        hob_serve(hob, "hob, ASGI", "asgi", &format!("{app}:asgi"), terms)?,
        of(
            "uvicorn 2",
            &[
                "uvicorn",
                "--workers",
                "2",
                "--port",
                "PORT",
                "--no-access-log",
                "--app-dir",
                &folder,
                "app:asgi",
            ],
        ),
        granian("granian 2, ASGI", &by_asgi),
    ];
    for (interface, recipes) in [("WSGI", wsgi.to_vec()), ("ASGI", asgi.to_vec())] {
        let sides = sides(setting, hob, &format!("http, {interface}"), &recipes)?;
        told(figure, &sides);
        let best = |of: fn(&Measured) -> f64| {
            let others = sides[1..].iter().map(|side| of(&side.measured[WIDTHS.len() - 1]));
            others.fold(0.0, f64::max)
        };
        let throughput = |measured: &Measured| measured.stream.throughput();
        let ratio = throughput(&sides[0].measured[WIDTHS.len() - 1]) / best(throughput);
        let name = format!("{interface}: throughput over the best other, at 64");
        figure.target(&name, Want::AtLeast(1.0), ratio);
    }
    Ok(())
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
    let mut progress = Progress::new(name);
    let folder = hob.folder("http")?;
    for round in 0..rounds {
        progress.at(round, rounds);
        for at in 0..sides.len() {
            // Another one begins in each round.
            let turn = (at + round) % sides.len();
            let side = &mut sides[turn];
            let server = side.recipe.start(&folder, &hob.environment(), WORDS)?;
            side.ask(&server).with_context(|| format!("asking {}", side.recipe.name))?;
            side.memory_kib = server.memory_kib();
        }
    }
    progress.done();
    Ok(sides)
}

impl Side {
    fn ask(&mut self, server: &Server) -> Result<()> {
        // What a server does for its first requests is not what is compared.
        client::load(server.address, (4, Connections::Closed), 64, WORDS)?;
        for (width, measured) in WIDTHS.into_iter().zip(&mut self.measured) {
            for _ in 0..BURST_REQUESTS.div_ceil(width) {
                std::thread::sleep(GAP);
                let each = (width, Connections::Closed);
                measured.bursts.add(client::load(server.address, each, width, WORDS)?);
            }
            let stream = |connections| {
                let before = server.cpu_us();
                let each = (width, connections);
                let load = client::load(server.address, each, STREAM_REQUESTS, WORDS)?;
                Ok::<_, anyhow::Error>((load, server.cpu_us() - before))
            };
            let (load, cpu_us) = stream(Connections::Closed)?;
            measured.stream.add(load);
            measured.cpu_us += cpu_us;
            let (load, cpu_us) = stream(Connections::Kept)?;
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

fn thin(name: &'static str, config: &str, more: &[&str]) -> Recipe {
    let words =
        ["thin", "start", "-q", "-e", "production", "-a", "127.0.0.1", "-p", "PORT", "-R", config];
    let mut recipe = Recipe::new(name, "thin", &words);
    recipe.words.extend(more.iter().map(OsString::from));
    recipe
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
    let config = folder.join("hob.toml");
    std::fs::write(&config, format!("[mount.\"/\"]\n{interface} = \"{target}\"\n{terms}\n"))?;
    let mut trust = Command::new(hob.binary());
    let environment = hob.environment();
    trust.arg("trust").arg(&config).env_clear();
    venv::run(trust.envs(environment.iter().map(|(name, value)| (name, value))))?;
    let words = [
        hob.binary().as_os_str().to_owned(),
        "serve".into(),
        "--config".into(),
        config.into_os_string(),
        "--listen".into(),
        "127.0.0.1:PORT".into(),
    ];
    Ok(Recipe { name, package: "", words: words.to_vec() })
}
