//! `hob-actor` beside the libraries that people use today, and between processes beside what raw
//! sockets do in C: every side a program of its own, in interleaved rounds, all checked.
//!
//! Owns: what is compared with what, and what is to be reached. `sides.rs` builds the programs
//! and runs one. Deliberately not part of `make bench`: it compiles five libraries and runs for
//! some minutes, one of them with 7 GiB.

mod sides;

use anyhow::{Result, ensure};

use crate::Setting;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;
use sides::{Built, Side, Told};

/// Rounds of a full run. A round of everything takes about a minute.
const ROUNDS: usize = 5;
/// What the issue names: actors in a ring, and times that a message goes round.
const NODES: u64 = 5000;
const TURNS: u64 = 2000;
/// Processes of a storm, and what each sends.
const CLIENTS: u64 = 100;
const ASKS: u64 = 10_000;
/// Tells take so little time that ten times as many are sent.
const TELLS: u64 = 100_000;
/// What a ring of processes passes on in all.
const HOPS: u64 = 200_000;
/// Processes of the rings by ask.
const ASKED_NODES: [u64; 4] = [2, 5, 20, 200];
/// What actix needs for 10,000,000 open asks, and some air. With less it is measured at a tenth.
const HEAVY_KIB: u64 = 12 << 20;

/// Links by rings in shared memory instead of sockets: the option, and how their rows are named.
const SHARES: &str = "--shared-memory";
const SHARED: &str = ", shared memory";

/// Sides that are compared, and what their numbers are per.
struct Contest {
    name: &'static str,
    unit: &'static str,
    sides: Vec<Side>,
}

/// What the rounds gave for one side: microseconds for one of what it counts.
struct Ran {
    series: Series,
    told: Vec<Told>,
}

/// A part of the figure: what fits in two minutes or so, and is kept when it is done.
type Part = fn(&Built, Sizes, &mut Figure) -> Result<()>;

const PARTS: [(&str, Part); 8] = [
    ("ring_tell", tells_here),
    ("ring_ask", asks_here),
    ("ipc_ring", rings),
    ("ipc_ring_ask", asked_rings),
    ("storm_1", storm_1),
    ("storm_16", storm_16),
    ("storm_tells", storm_tells),
    ("idle", idle),
];

/// How much of everything.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    rounds: usize,
    /// Of each size, to see that everything works: a tenth. Else all.
    divided_by: u64,
}

impl Sizes {
    fn of(self, full: u64) -> u64 {
        full / self.divided_by
    }
}

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let parts: Vec<_> = PARTS.iter().filter(|(name, _)| setting.is_part(name)).collect();
    ensure!(!parts.is_empty(), "the parts are {:?}", PARTS.map(|(name, _)| name));
    let built = sides::build(&setting.root)?;
    let divided_by = if setting.is_quick() { 10 } else { 1 };
    let sizes = Sizes { rounds: setting.rounds(ROUNDS), divided_by };
    let mut all = Figure::new("actors", "hob-actor, its peers, and raw sockets in C");
    for (name, part) in parts {
        let mut figure = Figure::new("actors", &format!("hob-actor, the part {name}"));
        part(&built, sizes, &mut figure)?;
        // A run of minutes that is stopped keeps what it has.
        let path = setting.root.join("target/bench").join(format!("actors-{name}.json"));
        std::fs::write(&path, serde_json::to_vec_pretty(&figure)?)?;
        all.ratios.append(&mut figure.ratios);
        all.targets.append(&mut figure.targets);
        all.facts.append(&mut figure.facts);
    }
    Ok(all)
}

fn tells_here(built: &Built, sizes: Sizes, figure: &mut Figure) -> Result<()> {
    let ran = run(&ring_tells(built, sizes.of(TURNS)), sizes.rounds, figure)?;
    least(figure, "ring_tell: actix over hob-actor", 4.0, &ran[1], &ran[0]);
    figure.target("ring_tell: peak memory (MiB)", Want::AtMost(8.0), ran[0].peak_mib());
    Ok(())
}

fn asks_here(built: &Built, sizes: Sizes, figure: &mut Figure) -> Result<()> {
    let asks = ring_asks(built, sizes.of(TURNS), figure);
    let ran = run(&asks, sizes.rounds, figure)?;
    least(figure, "ring_ask: actix over hob-actor", 20.0, &ran[2], &ran[0]);
    figure.target("ring_ask: bytes an open ask", Want::AtMost(64.0), ran[0].bytes_each());
    figure.fact("ring_ask: bytes an open ask, actix", ran[2].bytes_each());
    figure.fact("ring_ask: bytes an open ask, tokio", ran[3].bytes_each());
    figure.target("ring_ask by forward: bytes each", Want::AtMost(1.0), ran[1].bytes_each());
    Ok(())
}

fn rings(built: &Built, sizes: Sizes, figure: &mut Figure) -> Result<()> {
    for nodes in [2, 20] {
        let ran = run(&ipc_ring(built, nodes, sizes.of(HOPS)), sizes.rounds, figure)?;
        let name = format!("ipc_ring, {nodes} processes: hob-actor over raw sockets");
        most(figure, &name, 1.4, &ran[0], &ran[1]);
        most(figure, &format!("{name}{SHARED}"), 1.4, &ran[2], &ran[1]);
        gained(figure, &format!("ipc_ring, {nodes} processes"), &ran[0], &ran[2]);
    }
    Ok(())
}

fn asked_rings(built: &Built, sizes: Sizes, figure: &mut Figure) -> Result<()> {
    for nodes in ASKED_NODES {
        let ran = run(&ipc_ring_ask(built, nodes, sizes.of(HOPS)), sizes.rounds, figure)?;
        let name = format!("ipc_ring by ask, {nodes} processes: hob-actor over raw sockets");
        most(figure, &name, 1.6, &ran[0], &ran[1]);
        most(figure, &format!("{name}{SHARED}"), 1.6, &ran[2], &ran[1]);
        let grown = format!("ipc_ring by ask, {nodes} processes: memory grown (KiB each)");
        figure.target(&grown, Want::AtMost(64.0), ran[0].grown_kib() / number(nodes));
    }
    Ok(())
}

fn storm_1(built: &Built, sizes: Sizes, figure: &mut Figure) -> Result<()> {
    let ran = run(&ipc_storm(built, sizes.of(ASKS)), sizes.rounds, figure)?;
    least(figure, "ipc_storm, 1 open: asks a second over tarpc's", 1.8, &ran[1], &ran[0]);
    figure.ratio("ipc_storm, 1 open: asks a second over C's", &ran[2].series, &ran[0].series);
    let name = "ipc_storm, 1 open: asks a second over tarpc's";
    least(figure, &format!("{name}{SHARED}"), 1.8, &ran[1], &ran[3]);
    gained(figure, "ipc_storm, 1 open", &ran[0], &ran[3]);
    Ok(())
}

fn storm_16(built: &Built, sizes: Sizes, figure: &mut Figure) -> Result<()> {
    let ran = run(&ipc_storm_16(built, sizes.of(ASKS)), sizes.rounds, figure)?;
    let name = "ipc_storm, 16 open: asks a second over C's";
    least(figure, name, 0.8, &ran[1], &ran[0]);
    least(figure, &format!("{name}{SHARED}"), 0.8, &ran[1], &ran[2]);
    gained(figure, "ipc_storm, 16 open", &ran[0], &ran[2]);
    Ok(())
}

fn storm_tells(built: &Built, sizes: Sizes, figure: &mut Figure) -> Result<()> {
    let ran = run(&ipc_storm_tells(built, sizes.of(TELLS)), sizes.rounds, figure)?;
    let name = "ipc_storm, tells: tells a second over C's";
    least(figure, name, 0.5, &ran[1], &ran[0]);
    least(figure, &format!("{name}{SHARED}"), 0.5, &ran[1], &ran[2]);
    gained(figure, "ipc_storm, tells", &ran[0], &ran[2]);
    Ok(())
}

fn idle(built: &Built, _: Sizes, figure: &mut Figure) -> Result<()> {
    let name = "an idle worker process (MiB PSS)";
    let idle = sides::idle_kib(built, &[])?;
    figure.target(name, Want::AtMost(3.0), idle / 1024.0);
    let idle = sides::idle_kib(built, &[SHARES])?;
    figure.target(&format!("{name}{SHARED}"), Want::AtMost(3.0), idle / 1024.0);
    Ok(())
}

fn ring_tells(built: &Built, turns: u64) -> Contest {
    let ring =
        |name, turns: u64| Side::peer(built, name, &[("--rounds", turns), ("--nodes", NODES)]);
    Contest {
        name: "ring_tell",
        unit: "ns a hop",
        sides: vec![
            Side::example(built, "ring_tell", &[("--rounds", turns), ("--nodes", NODES)])
                .gives(turns * NODES),
            ring("actix_ring", turns).gives(turns * NODES),
            ring("tokio_ring", turns).gives(turns * NODES),
            ring("xtra_ring", turns).gives(turns * NODES),
            // These take so long that a tenth says as much: a hop costs what it costs.
            ring("ractor_ring", turns / 10).gives(turns / 10 * NODES),
            ring("kameo_ring", turns / 10).gives(turns / 10 * NODES),
        ],
    }
}

fn ring_asks(built: &Built, turns: u64, figure: &mut Figure) -> Contest {
    let roomy = sides::available_kib() >= HEAVY_KIB;
    let heavy = if roomy { turns } else { turns / 10 };
    figure.fact("ring_ask: open asks of actix and tokio", number(heavy * NODES));
    let ring = |name| {
        let options = [("--rounds", heavy), ("--nodes", NODES), ("--ask", 1)];
        Side::peer(built, name, &options).gives(heavy * NODES).once()
    };
    let options = [("--rounds", turns), ("--nodes", NODES)];
    Contest {
        name: "ring_ask",
        unit: "ns an ask",
        sides: vec![
            Side::example(built, "ring_ask", &options).gives(turns * NODES),
            Side::example(built, "ring_ask", &options)
                .with("--forward")
                .with("1")
                .gives(turns * NODES),
            ring("actix_ring"),
            ring("tokio_ring"),
        ],
    }
}

fn ipc_ring(built: &Built, nodes: u64, hops: u64) -> Contest {
    Contest {
        name: if nodes == 2 { "ipc_ring, 2" } else { "ipc_ring, 20" },
        unit: "ns a hop",
        sides: vec![
            Side::example(built, "ipc_ring", &[("--nodes", nodes), ("--rounds", hops / nodes)])
                .gives(hops),
            Side::floor(built, &["ring", &nodes.to_string(), &hops.to_string()]).gives(hops),
            Side::example(built, "ipc_ring", &[("--nodes", nodes), ("--rounds", hops / nodes)])
                .with(SHARES)
                .gives(hops),
        ],
    }
}

/// The same by asks: each node asks the next, and answers when that has. There and back are two hops.
fn ipc_ring_ask(built: &Built, nodes: u64, hops: u64) -> Contest {
    let rounds = (hops / 2 / nodes).max(1);
    let hops = 2 * rounds * nodes;
    let ours = || {
        let options = [("--nodes", nodes), ("--rounds", rounds), ("--ask", 1)];
        Side::example(built, "ipc_ring", &options).gives(hops)
    };
    Contest {
        name: match nodes {
            2 => "ipc_ring by ask, 2",
            5 => "ipc_ring by ask, 5",
            20 => "ipc_ring by ask, 20",
            _ => "ipc_ring by ask, 200",
        },
        unit: "ns a hop",
        sides: vec![
            ours(),
            Side::floor(built, &["ring", &nodes.to_string(), &hops.to_string()]).gives(hops),
            ours().with(SHARES),
        ],
    }
}

/// What the server of a storm adds up: each client sends 0, 1, 2 and so on.
fn sum(messages: u64) -> u64 {
    CLIENTS * (messages * (messages - 1) / 2)
}

fn ipc_storm(built: &Built, asks: u64) -> Contest {
    let options = [("--nodes", CLIENTS), ("--messages", asks)];
    Contest {
        name: "ipc_storm, 1 open",
        unit: "ns an ask",
        sides: vec![
            Side::example(built, "ipc_storm", &options).with("--ask").with("1").gives(sum(asks)),
            Side::peer(built, "tarpc_storm", &options).gives(CLIENTS * asks),
            Side::floor(built, &["storm", &CLIENTS.to_string(), &asks.to_string(), "1"])
                .gives(sum(asks)),
            Side::example(built, "ipc_storm", &options)
                .with("--ask")
                .with("1")
                .with(SHARES)
                .gives(sum(asks)),
        ],
    }
}

fn ipc_storm_16(built: &Built, asks: u64) -> Contest {
    let options = [("--nodes", CLIENTS), ("--messages", asks)];
    Contest {
        name: "ipc_storm, 16 open",
        unit: "ns an ask",
        sides: vec![
            Side::example(built, "ipc_storm", &options).with("--ask").with("16").gives(sum(asks)),
            Side::floor(built, &["storm", &CLIENTS.to_string(), &asks.to_string(), "16"])
                .gives(sum(asks)),
            Side::example(built, "ipc_storm", &options)
                .with("--ask")
                .with("16")
                .with(SHARES)
                .gives(sum(asks)),
        ],
    }
}

fn ipc_storm_tells(built: &Built, tells: u64) -> Contest {
    let options = [("--nodes", CLIENTS), ("--messages", tells)];
    Contest {
        name: "ipc_storm, tells",
        unit: "ns a tell",
        sides: vec![
            Side::example(built, "ipc_storm", &options).with("--ask").with("0").gives(sum(tells)),
            Side::floor(built, &["tells", &CLIENTS.to_string(), &tells.to_string()])
                .gives(sum(tells)),
            Side::example(built, "ipc_storm", &options)
                .with("--ask")
                .with("0")
                .with(SHARES)
                .gives(sum(tells)),
        ],
    }
}

/// Runs all sides of a contest in interleaved rounds, and tells the median of each.
fn run(contest: &Contest, rounds: usize, figure: &mut Figure) -> Result<Vec<Ran>> {
    let mut ran: Vec<Ran> = contest
        .sides
        .iter()
        .map(|side| Ran { series: Series::named(&side.name), told: Vec::new() })
        .collect();
    let mut progress = Progress::new(&format!("actors: {}", contest.name));
    for round in 0..rounds {
        for (side, ran) in contest.sides.iter().zip(&mut ran) {
            if side.once && round > 0 {
                continue;
            }
            progress.at(round, rounds);
            let told = side.run()?;
            ensure!(
                told.check.is_none_or(|check| check == side.check),
                "{} says {:?}, which should be {}",
                side.name,
                told.check,
                side.check
            );
            ran.series.us.push(told.us_each());
            ran.told.push(told);
        }
    }
    progress.done();
    for one in &ran {
        let name = format!("{}: {} ({})", contest.name, one.series.name, contest.unit);
        figure.fact(&name, stats::median(&one.series.us) * 1e3);
    }
    Ok(ran)
}

/// A target by the ratio of two sides: above over below is at least `bound`.
fn least(figure: &mut Figure, name: &str, bound: f64, above: &Ran, below: &Ran) {
    let ratio = figure.ratio(name, &above.series, &below.series);
    figure.target(name, Want::AtLeast(bound), ratio.of_medians);
}

/// The same with at most.
fn most(figure: &mut Figure, name: &str, bound: f64, above: &Ran, below: &Ran) {
    let ratio = figure.ratio(name, &above.series, &below.series);
    figure.target(name, Want::AtMost(bound), ratio.of_medians);
}

/// What shared memory makes of it: sockets over it.
fn gained(figure: &mut Figure, name: &str, sockets: &Ran, shared: &Ran) {
    figure.ratio(&format!("{name}: sockets over shared memory"), &sockets.series, &shared.series);
}

impl Ran {
    fn peak_mib(&self) -> f64 {
        let peaks: Vec<f64> = self.told.iter().map(Told::peak_mib).collect();
        stats::median(&peaks)
    }

    /// What the memory of all its processes grew by while chains followed one another.
    fn grown_kib(&self) -> f64 {
        let grown: Vec<f64> = self.told.iter().map(|told| told.grown_kib).collect();
        stats::median(&grown)
    }

    /// Memory at the peak, over what there was before the first message, for each of them.
    fn bytes_each(&self) -> f64 {
        let each: Vec<f64> = self.told.iter().map(Told::bytes_each).collect();
        stats::median(&each)
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most some ten million")]
fn number(count: u64) -> f64 {
    count as f64
}
