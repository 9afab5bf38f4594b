//! What lasts: a thousand mounts, idle connections, many requests under each isolation.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Setting;
use crate::hob::Hob;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;

use super::client::{Connections, Load, Page};
use super::server::Server;
use super::{PAGE_WORDS, fact, hob_serve, ours, take_turns, trusted};

const MOUNTS: usize = 1000;
const ROUNDS: usize = 10;
const REQUESTS: usize = 1000;
/// Connections that say nothing.
const IDLE: usize = 10_000;
/// They are to stay.
const IDLE_TERMS: &str = "isolation = \"prefork\"\n[serve]\ntimeouts = { head = \"300s\" }";
/// A server may take so long to have taken them all.
const SETTLE: Duration = Duration::from_secs(5);

/// One mount beside a thousand: the time of a request, and how many processes there are.
pub(super) fn mounts(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let app = ours(setting, "config.ru");
    let site = |name: &'static str, count: usize| {
        let folder = hob.folder(&format!("mounts-{count}"))?;
        std::fs::copy(&app, folder.join("config.ru"))?;
        let mount = |at: usize| {
            format!("[mount.\"/m{at}\"]\nrack = \"config.ru\"\nworkers = {{ min = 1, max = 1 }}\n")
        };
        let toml: String = (0..count).map(mount).collect();
        let mut recipe = trusted(hob, name, &folder, &toml)?;
        recipe.page = Page::new("/m0", PAGE_WORDS);
        Ok::<_, anyhow::Error>((recipe, folder))
    };
    let sites = [site("one mount", 1)?, site("a thousand mounts", MOUNTS)?];
    let mut loads = [Load::default(), Load::default()];
    let mut cpu_us = [0.0, 0.0];
    let mut processes = [0, 0];
    let mut memory = [0.0, 0.0];
    let rounds = setting.rounds(ROUNDS);
    take_turns("http, mounts", rounds, sites.len(), |at| {
        let (recipe, folder) = &sites[at];
        let server = recipe.start(folder, &hob.environment())?;
        server.ask(1, Connections::Kept, 64)?;
        let (load, cpu) = server.ask_timed(1, Connections::Kept, REQUESTS)?;
        loads[at].add(load);
        cpu_us[at] += cpu;
        processes[at] = server.processes();
        memory[at] = server.memory_kib().0;
        Ok(())
    })?;
    for (at, (recipe, _)) in sites.iter().enumerate() {
        let name = recipe.name;
        fact(figure, &format!("{name}: p50 of a request in us"), stats::median(&loads[at].us));
        let cpu = cpu_us[at] / loads[at].us.len() as f64;
        fact(figure, &format!("{name}: processor time a request in us"), cpu);
        fact(figure, &format!("{name}: processes"), processes[at] as f64);
        fact(figure, &format!("{name}: memory of the server alone, KiB"), memory[at]);
    }
    let ratio = stats::median(&loads[1].us) / stats::median(&loads[0].us);
    figure.target("a thousand mounts over one: p50 of a request", Want::AtMost(1.1), ratio);
    let more = processes[1] as f64 - processes[0] as f64;
    figure.target("a thousand mounts over one: more processes", Want::AtMost(0.0), more);
    Ok(())
}

/// What a connection costs that says nothing.
pub(super) fn idle(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).context("descriptors for the connections")?;
    let most = limit.maximum.map_or(IDLE, |most| usize::try_from(most).unwrap_or(IDLE));
    let count = IDLE.min(most.saturating_sub(100));
    let app = ours(setting, "config.ru");
    let server = hob_serve(hob, "hob, idle", "rack", &app, IDLE_TERMS)?
        .start(&hob.folder("idle")?, &hob.environment())?;
    server.ask(4, Connections::Kept, 256)?;
    let (before_kib, before) = (server.memory_kib().0, server.descriptors());
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        open.push(TcpStream::connect(server.address).context("cannot connect")?);
    }
    let begun = Instant::now();
    while server.descriptors() < before + count && begun.elapsed() < SETTLE {
        std::thread::sleep(Duration::from_millis(50));
    }
    let taken = server.descriptors().saturating_sub(before);
    let kib = server.memory_kib().0 - before_kib;
    fact(figure, "idle connections that the server has taken", taken as f64);
    let each = kib / taken.max(1) as f64;
    figure.target("memory of an idle connection, KiB", Want::AtMost(12.0), each);
    // Of those that are there, none is in the way of others. One leaves, since the site has a bound.
    open.truncate(count.saturating_sub(4));
    let beside = server.ask(1, Connections::Closed, 256)?;
    fact(figure, "p50 of a request beside idle connections, in us", stats::median(&beside.us));
    Ok(())
}

/// Memory and descriptors after a tenth of many requests, and after all of them.
pub(super) fn soak(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let app = ours(setting, "config.ru");
    // As many as a minute or two has room for.
    let each = [("prefork", 100_000), ("session", 100_000), ("fork", 20_000), ("spawn", 400)];
    let mut progress = Progress::new("http, soak");
    for (at, (isolation, count)) in each.into_iter().enumerate() {
        progress.at(at, each.len());
        let count = if setting.rounds(10) < 10 { count / 10 } else { count };
        let terms = format!("isolation = \"{isolation}\"\nworkers = 4");
        let mut recipe = hob_serve(hob, "hob, soak", "rack", &app, &terms)?;
        // Any name is one: all of them are of one client.
        recipe.page.head = "Cookie: hob-session=00000000000000000000000000000000\r\n".to_owned();
        let server = recipe.start(&hob.folder("soak")?, &hob.environment())?;
        let seen = |server: &Server| (server.memory_kib(), server.descriptors());
        server.ask(8, Connections::Kept, count / 10)?;
        let (first, first_open) = seen(&server);
        server.ask(8, Connections::Kept, count - count / 10)?;
        let (last, last_open) = seen(&server);
        let name = |what: &str| format!("soak, {isolation}, {count} requests: {what}");
        fact(figure, &name("memory of the server after a tenth, KiB"), first.0);
        figure.target(&name("the same at the end over that"), Want::AtMost(1.1), last.0 / first.0);
        fact(figure, &name("memory of all processes at the end over a tenth"), last.1 / first.1);
        let more = last_open as f64 - first_open as f64;
        figure.target(&name("more descriptors at the end"), Want::AtMost(8.0), more);
    }
    progress.done();
    Ok(())
}
