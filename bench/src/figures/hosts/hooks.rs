//! Hooks for 2,000 targets on one, two and four hosts, whose hook waits for 20 ms, as one does that
//! works on another machine: how near two and four come to half and a quarter of the time.
//!
//! All hosts are this machine, so that what costs processor time is shared by them; the waits are not.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Host;
use crate::Setting;
use crate::figures::outbox::nats::Server;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 5;
const TARGETS: usize = 2000;
const HOSTS: [usize; 3] = [1, 2, 4];
const HOOK: &str = "#!/bin/sh\nexec sleep 0.02\n";
const PROGRAM: &str = "\
[program.waits]
hooks = \"waits.d\"
set = [\"TARGET\"]
workers = 2
offered = true
version = \"1.0.0\"
";

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let folder = setting.root.join("target/bench/hosts-hooks");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let server = Server::start(setting, &folder)?;
    let project = folder.join("project");
    let hooks = project.join("waits.d");
    std::fs::create_dir_all(&hooks)?;
    std::fs::write(hooks.join("10-wait"), HOOK)?;
    std::fs::set_permissions(hooks.join("10-wait"), std::fs::Permissions::from_mode(0o755))?;
    std::fs::write(project.join("hob.toml"), PROGRAM)?;
    let targets = folder.join("targets.txt");
    std::fs::write(&targets, (0..TARGETS).map(|at| format!("t{at}\n")).collect::<String>())?;
    let most = HOSTS.into_iter().max().unwrap_or(1);
    let mut webs = Vec::new();
    for number in 1..=most {
        let web = Host::start(setting, &format!("web-{number}"), server.port(), None)?;
        web.hob.ask(&["trust", project.to_str().context("a name of text")?])?;
        webs.push(web);
    }
    let desk = Host::start(setting, "desk", server.port(), None)?;
    desk.until(|| {
        let hosts: Value = serde_json::from_str(&desk.hob.ask(&["hosts", "--json"])?)?;
        Ok(hosts["programs"].as_array().is_some_and(|programs| programs.len() == most))
    })?;
    // Each has its workers afterwards.
    run(&desk, &hooks, &targets, most)?;
    let mut all = HOSTS.map(|count| Series::named(&format!("on {count}")));
    let mut progress = Progress::new("hooks on hosts");
    let rounds = setting.rounds(ROUNDS);
    for round in 0..rounds {
        progress.at(round, rounds);
        for (series, count) in all.iter_mut().zip(HOSTS) {
            series.us.push(run(&desk, &hooks, &targets, count)?);
        }
    }
    progress.done();
    for host in webs.iter().chain([&desk]) {
        host.hob.stop()?;
    }
    drop(server);
    std::fs::remove_dir_all(&folder)?;
    let mut figure =
        Figure::new("hosts-hooks", "hooks for 2,000 targets on hosts, each waits 20 ms: all of it");
    all.iter().for_each(|series| figure.series(series));
    let [one, two, four] = &all;
    for (name, series, times) in [("1 host over 2", two, 2.0), ("1 host over 4", four, 4.0)] {
        let ratio = figure.ratio(name, one, series);
        figure.target(name, Want::AtLeast(0.9 * times), ratio.of_medians);
    }
    Ok(figure)
}

/// Runs for all targets on the first so many hosts; µs.
fn run(desk: &Host, hooks: &Path, targets: &Path, count: usize) -> Result<f64> {
    let mut words = vec!["hooks".to_owned(), "run".to_owned()];
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a name of text");
    words.extend([text(hooks)?, "--for-each".to_owned(), text(targets)?, "--json".to_owned()]);
    words.extend((1..=count).flat_map(|number| ["--hosts".to_owned(), format!("web-{number}")]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let start = Instant::now();
    let said = desk.hob.ask(&words)?;
    let us = start.elapsed().as_secs_f64() * 1e6;
    let summary: Value = serde_json::from_str(&said)?;
    ensure!(summary["outcomes"]["ok"] == TARGETS, "not all are ok: {summary}");
    let jobs = summary["sittings"][0]["jobs"].as_u64();
    ensure!(jobs == Some(2 * count as u64), "not on {count} hosts: {summary}");
    Ok(us)
}
