//! `hob check` of 36 endpoints as four kinds of users, at a server of this process: without reports,
//! with three of them, and the same requests by a bare client. And what exports cost.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hob_daemon::measure::{EXPORTS, Exported};

use super::beside;
use super::endpoints::{ANSWER, ENDPOINTS, GAP, JOBS, PROFILES, check, file, serve};
use crate::Setting;
use crate::figures::private;
use crate::hob::Hob;
use crate::measure::{Fresh, Series, Side, Slot, microseconds};
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 100;
/// Calls and spans of an export.
const CALLS: u64 = 1024;
const SPANS: u64 = 16_384;
const EXPORT_ROUNDS: usize = 20;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut figure =
        Figure::new("check", "36 endpoints × 4 profiles on loopback; exports of spans");
    if setting.is_part("endpoints") {
        endpoints(setting, &mut figure)?;
    }
    if setting.is_part("peers") {
        beside::measure(setting, &mut figure)?;
    }
    if setting.is_part("exports") {
        exports(setting, &mut figure);
    }
    if setting.is_part("metrics") {
        super::metrics::measure(setting, &mut figure)?;
    }
    Ok(figure)
}

fn endpoints(setting: &Setting, figure: &mut Figure) -> Result<()> {
    let server = serve()?;
    let hob = private(setting, &[])?;
    let folder = hob.folder("checks")?;
    std::fs::write(folder.join("site.check.toml"), file(server))?;
    let alone = check(&hob, "hob check", &folder, &[]);
    let reports = ["--json", "--report", "r.json", "--report", "r.xml", "--report", "r.html"];
    let reported = check(&hob, "hob check, with JSON, JUnit and HTML", &folder, &reports);
    // Once, so that there is a file of runs: it is emptied before each round. With runs before, what is
    // off by chance is asked 30 times more, and that would be measured.
    let mut slot = Slot::new()?;
    let run = reported.run(&mut slot)?;
    let (good, said) = (run.output.exit, run.output.stdout);
    let said = String::from_utf8_lossy(&said).into_owned();
    let passed = said.matches("\"state\":\"passed\"").count();
    ensure!(passed == ENDPOINTS * PROFILES.len(), "{passed} have passed: {said}");
    let fresh = Some(Fresh { file: runs(&hob)?, content: Vec::new() });
    let sides = [Side { fresh: fresh.clone(), ..alone }, Side { fresh, ..reported }];
    let mut series = [Series::named(&sides[0].name), Series::named(&sides[1].name)];
    let mut bare = Series::named("the same requests by a bare client");
    let (count, mut progress) = (setting.rounds(ROUNDS), Progress::new("checks"));
    for round in 0..count {
        progress.at(round, count);
        std::thread::sleep(GAP);
        bare.us.push(microseconds(ask_all(server)?));
        for (one, side) in series.iter_mut().zip(&sides) {
            std::thread::sleep(GAP);
            let run = side.run(&mut slot)?;
            ensure!(run.output.exit == good, "{} failed: {:?}", side.name, run.output);
            one.us.push(microseconds(run.took));
        }
    }
    progress.done();
    for one in [&bare, &series[0], &series[1]] {
        figure.series(one);
    }
    figure.ratio("hob check over a bare client", &series[0], &bare);
    let ms = series[1].p(0.5) / 1000.0;
    figure.target("hob check with three reports, in ms", Want::AtMost(30.0), ms);
    hob.stop()
}

/// The file of runs that a check has left.
fn runs(hob: &Hob) -> Result<PathBuf> {
    let place = hob.folder("state")?.join("hob/checks");
    let entries = std::fs::read_dir(&place)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths = entries.into_iter().map(|entry| entry.path());
    let path = paths.find(|path| path.extension().is_some_and(|ending| ending == "ndjson"));
    path.with_context(|| format!("no runs are kept in {}", place.display()))
}

/// As many requests, over as many connections, by threads.
fn ask_all(server: SocketAddr) -> Result<Duration> {
    let begun = Instant::now();
    let ask = move || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        let mut bytes = vec![0; ANSWER.len()];
        for number in 0..ENDPOINTS * PROFILES.len() / JOBS {
            let head = format!("GET /api/{number} HTTP/1.1\r\nHost: {server}\r\n\r\n");
            stream.write_all(head.as_bytes())?;
            stream.read_exact(&mut bytes)?;
        }
        Ok(())
    };
    let threads: Vec<_> = (0..JOBS).map(|_| std::thread::spawn(ask)).collect();
    for thread in threads {
        thread.join().ok().context("a client panicked")??;
    }
    Ok(begun.elapsed())
}

/// What each format costs, over calls that have all phases and some spans.
fn exports(setting: &Setting, figure: &mut Figure) {
    let (count, exported) = (setting.rounds(EXPORT_ROUNDS), Exported::new(CALLS, SPANS));
    let mut progress = Progress::new("exports");
    let mut series: Vec<Series> =
        EXPORTS.iter().map(|name| Series::named(&format!("{SPANS} spans to {name}"))).collect();
    for round in 0..count {
        progress.at(round, count);
        for (one, name) in series.iter_mut().zip(EXPORTS) {
            one.us.push(microseconds(exported.export(name)));
        }
    }
    progress.done();
    for (one, name) in series.iter().zip(EXPORTS) {
        figure.series(one);
        #[expect(clippy::cast_precision_loss, reason = "some thousand spans")]
        let us = one.p(0.5) / SPANS as f64;
        figure.fact(&format!("a span to {name}, in µs"), us);
        if name == "perfetto" {
            let ms = one.p(0.5) / 1000.0;
            figure.target("16,384 spans to Perfetto, in ms", Want::AtMost(2.0), ms);
        }
    }
}
