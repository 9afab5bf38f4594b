//! Programs of other hosts over NATS, beside bare async-nats of the same bytes: asks, claimed asks,
//! asks of a program of this host, a program that no host has, and tells beside a bare publish that
//! the stream acknowledges.
//!
//! Two hobs of this machine stand for two hosts; the server, and what is bare, is the same for all.
//! The bare side's answer is one line of Rust. hob's is a handler in Python, and for `native` one in
//! Rust too; `of this host` says what these take. No figure of the README's run: it downloads a server of 19 MB.

mod bare;
pub(crate) mod hooks;
mod processor;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hob_tests::teller::{Reply, Teller};
use processor::Parts;
use serde_json::Value;

use crate::Setting;
use crate::figures::outbox::nats::Server;
use crate::hob::Hob;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;

const ROUNDS: usize = 15;
const PAYLOAD_BYTES: usize = 256;
/// One after the other.
const SINGLE: usize = 300;
/// In flight, and how many of them.
const WINDOW: usize = 256;
const MANY: usize = 4096;
/// In flight of a program of this host.
const LOCAL_WINDOW: usize = 64;
const TELLS: usize = 2560;
const READY_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// A copy of this program that is called so is a worker of hob's.
const NATIVE: &str = "echo-native";
const HANDLER: &str = "def echo(payload, message):\n    return payload\n";
const PROGRAMS: &str = "\
[program.plain]
handler = \"echo.py:echo\"
workers = 2
offered = true
version = \"1.0.0\"

[program.native]
runtime = \"native\"
handler = \"echo-native\"
workers = 2
offered = true
version = \"1.0.0\"

[program.claimed]
handler = \"echo.py:echo\"
workers = 2
offered = true
claimed = true
version = \"1.0.0\"
";

/// What is measured, in this order.
const SIDES: [&str; 17] = [
    "bare",
    "hob",
    "hob, claimed",
    "hob, of this host",
    "hob, native",
    "hob, native, of this host",
    "bare, no host",
    "hob, no host",
    "bare, 256 in flight",
    "hob, 256 in flight",
    "hob of this host, 256 in flight",
    "hob, native, 256 in flight",
    "hob, native, of this host, 256 in flight",
    "hob of this host, 64 in flight",
    "hob, native, of this host, 64 in flight",
    "bare publish to a stream, 256 in flight",
    "hob tell, until the stream has it",
];

/// Whether this process is to answer messages.
pub(crate) fn is_worker() -> bool {
    let own = std::env::args_os().next().unwrap_or_default();
    std::path::Path::new(&own).file_name().is_some_and(|name| name == NATIVE)
}

/// Answers with what was asked.
pub(crate) fn work() -> Result<()> {
    Ok(hob_worker::serve(|message| message.payload().to_vec())?)
}

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let folder = setting.root.join("target/bench/hosts");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let server = Server::start(setting, &folder)?;
    let mut stream = server.connect()?;
    stream.make_stream("bare-tells")?;
    let bare = bare::Bare::start(server.port())?;
    let web = Host::start(setting, "web", server.port(), Some(PROGRAMS))?;
    let desk = Host::start(setting, "desk", server.port(), None)?;
    let (mut here, mut there) = (web.teller()?, desk.teller()?);
    let payload = [b'x'; PAYLOAD_BYTES];
    for program in ["plain", "native", "claimed"] {
        desk.until(|| Ok(matches!(one(&mut there, program, &payload), Ok(()))))?;
    }
    let mut all = SIDES.map(Series::named);
    let mut processor = SIDES.map(Series::named);
    let parts = Parts::new(vec![server.pid(), web.pid()?, desk.pid()?]);
    let mut progress = Progress::new("hosts");
    let rounds = setting.rounds(ROUNDS);
    for round in 0..=rounds {
        progress.at(round, rounds);
        let measured = [
            parts.single(|| bare.ask(&payload))?,
            parts.single(|| one(&mut there, "plain", &payload))?,
            parts.single(|| one(&mut there, "claimed", &payload))?,
            parts.single(|| one(&mut here, "plain", &payload))?,
            parts.single(|| one(&mut there, "native", &payload))?,
            parts.single(|| one(&mut here, "native", &payload))?,
            parts.single(|| bare.ask_nobody(&payload))?,
            parts.single(|| nobody(&mut there, &payload))?,
            parts.timed(MANY, || bare.storm(&payload, MANY, WINDOW))?,
            parts.timed(MANY, || many(&mut there, "plain", &payload, WINDOW))?,
            parts.timed(MANY, || many(&mut here, "plain", &payload, WINDOW))?,
            parts.timed(MANY, || many(&mut there, "native", &payload, WINDOW))?,
            parts.timed(MANY, || many(&mut here, "native", &payload, WINDOW))?,
            parts.timed(MANY, || many(&mut here, "plain", &payload, LOCAL_WINDOW))?,
            parts.timed(MANY, || many(&mut here, "native", &payload, LOCAL_WINDOW))?,
            parts.timed(TELLS, || stream.storm("bare-tells", &payload, TELLS, WINDOW))?,
            parts.timed(TELLS, || tells(&desk, &mut there, &payload))?,
        ];
        if round > 0 {
            for (at, took) in measured.into_iter().enumerate() {
                all[at].us.push(took.wall_us);
                processor[at].us.push(took.processor_us);
            }
        }
    }
    progress.done();
    for host in [&web, &desk] {
        host.hob.stop()?;
    }
    drop(server);
    std::fs::remove_dir_all(&folder)?;
    Ok(figure(&all, &processor))
}

fn figure(all: &[Series; 17], processor: &[Series; 17]) -> Figure {
    let mut figure =
        Figure::new("hosts", "256 bytes to another host and back, over NATS: time a message");
    all.iter().for_each(|series| figure.series(series));
    for series in processor {
        let name = format!("processor time a message, us: {}", series.name);
        figure.fact(&name, stats::median(&series.us));
    }
    let [bare, hob, claimed, local, native, native_local, rest @ ..] = all;
    let [bare_none, none, bare_many, many, local_many, rest @ ..] = rest;
    let [native_many, native_local_many, _, _, publish, tell] = rest;
    let mut ratio = |name: &str, above, below, want| {
        let ratio = figure.ratio(name, above, below);
        if let Some(want) = want {
            figure.target(name, want, ratio.of_medians);
        }
    };
    ratio("hob over bare, 1 in flight", hob, bare, Some(Want::AtMost(1.1)));
    ratio("claimed over bare", claimed, bare, Some(Want::AtMost(2.2)));
    ratio("hob over hob of this host, 1 in flight", hob, local, None);
    ratio("native: hob over bare, 1 in flight", native, bare, Some(Want::AtMost(1.5)));
    ratio("native: hob over hob of this host, 1 in flight", native, native_local, None);
    ratio("no host: hob over bare", none, bare_none, Some(Want::AtMost(2.0)));
    ratio("bare over hob, 256 in flight", bare_many, many, Some(Want::AtLeast(0.9)));
    ratio("hob of this host over hob, 256 in flight", local_many, many, None);
    let half = Some(Want::AtLeast(0.5));
    ratio("native: bare over hob, 256 in flight", bare_many, native_many, half);
    ratio("native: of this host over hob, 256 in flight", native_local_many, native_many, None);
    ratio("publish over tell, 256 in flight", publish, tell, Some(Want::AtLeast(0.8)));
    figure.target(
        "native: of this host, p50 in us",
        Want::AtMost(40.0),
        stats::median(&native_local.us),
    );
    figure
}

/// What a message took.
struct Took {
    wall_us: f64,
    processor_us: f64,
}

impl Parts {
    /// One after the other: the median of their times.
    fn single(&self, mut run: impl FnMut() -> Result<()>) -> Result<Took> {
        let mut all = Vec::with_capacity(SINGLE);
        let took = self.timed(SINGLE, || {
            for _ in 0..SINGLE {
                let start = Instant::now();
                run()?;
                all.push(start.elapsed().as_secs_f64() * 1e6);
            }
            Ok(())
        })?;
        Ok(Took { wall_us: stats::median(&all), ..took })
    }

    /// So many at once: the mean.
    fn timed(&self, count: usize, run: impl FnOnce() -> Result<()>) -> Result<Took> {
        let (before, start) = (self.used_us(), Instant::now());
        run()?;
        #[expect(clippy::cast_precision_loss, reason = "some thousand messages")]
        let count = count as f64;
        let wall_us = start.elapsed().as_secs_f64() * 1e6 / count;
        Ok(Took { wall_us, processor_us: (self.used_us() - before) / count })
    }
}

fn one(teller: &mut Teller, program: &str, payload: &[u8]) -> Result<()> {
    teller.ask(0, program, payload)?;
    teller.flush()?;
    match teller.reply()?.context("the daemon has left")? {
        Reply::Answered(0, answer) if answer == payload => Ok(()),
        other @ (Reply::Answered(..) | Reply::Accepted(..) | Reply::Failed(..)) => {
            bail!("{program}: {other:?}")
        }
    }
}

fn nobody(teller: &mut Teller, payload: &[u8]) -> Result<()> {
    teller.ask(0, "nobody", payload)?;
    teller.flush()?;
    match teller.reply()?.context("the daemon has left")? {
        Reply::Failed(0, "no-host", _) => Ok(()),
        other @ (Reply::Answered(..) | Reply::Accepted(..) | Reply::Failed(..)) => {
            bail!("nobody: {other:?}")
        }
    }
}

/// Sends so many, at most `window` of them on their way, and takes the word that each is done.
fn windowed(
    teller: &mut Teller,
    count: usize,
    window: usize,
    mut send: impl FnMut(&mut Teller, u64) -> Result<()>,
    is_done: impl Fn(&Reply) -> bool,
) -> Result<()> {
    let (mut sent, mut done) = (0, 0);
    while done < count {
        while sent < count && sent - done < window {
            sent += 1;
            send(teller, sent as u64)?;
        }
        teller.flush()?;
        loop {
            let reply = teller.reply()?.context("the daemon has left")?;
            ensure!(is_done(&reply), "not as it should be: {reply:?}");
            done += 1;
            if !teller.has_reply() || done == count {
                break;
            }
        }
    }
    Ok(())
}

fn many(teller: &mut Teller, program: &str, payload: &[u8], window: usize) -> Result<()> {
    let send = |teller: &mut Teller, id| Ok(teller.ask(id, program, payload)?);
    windowed(teller, MANY, window, send, |reply| matches!(reply, Reply::Answered(..)))
}

/// Tells, and waits until the outbox is empty: the stream has all.
fn tells(desk: &Host, teller: &mut Teller, payload: &[u8]) -> Result<()> {
    let send = |teller: &mut Teller, id| Ok(teller.tell(id, "plain", payload)?);
    windowed(teller, TELLS, WINDOW, send, |reply| matches!(reply, Reply::Accepted(..)))?;
    desk.until(|| Ok(desk.status()?["messages"]["waiting"] == 0))
}

struct Host {
    hob: Hob,
    folder: std::path::PathBuf,
}

impl Host {
    fn start(setting: &Setting, name: &str, port: u16, programs: Option<&str>) -> Result<Host> {
        let hob = crate::figures::private(setting, &[])?;
        let config = hob.folder("config/hob")?;
        let text = format!("[nats]\nurl = \"nats://127.0.0.1:{port}\"\nhost = \"{name}\"\n");
        std::fs::write(config.join("config.toml"), text)?;
        let folder = hob.folder("project")?;
        if let Some(programs) = programs {
            std::fs::write(folder.join("echo.py"), HANDLER)?;
            std::fs::copy(std::env::current_exe()?, folder.join(NATIVE))?;
            std::fs::write(folder.join("hob.toml"), programs)?;
            hob.ask(&["trust", folder.to_str().context("a name of text")?])?;
        }
        hob.ask(&["start"])?;
        let host = Host { hob, folder };
        host.until(|| Ok(host.status()?["hosts"]["connected"] == true))?;
        Ok(host)
    }

    fn teller(&self) -> Result<Teller> {
        let environment = self.hob.variables();
        let variables = environment.iter().map(Vec::as_slice);
        Ok(Teller::connect(&self.hob.directory(), &self.folder, variables)?)
    }

    /// Its daemon's process.
    fn pid(&self) -> Result<u32> {
        let pid = self.status()?["pid"].as_u64().context("a daemon has a process")?;
        Ok(u32::try_from(pid)?)
    }

    fn status(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.hob.ask(&["status", "--json"])?)?)
    }

    fn until(&self, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        while !is_so()? {
            ensure!(start.elapsed() < READY_MAX, "{} waits in vain", self.folder.display());
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}
