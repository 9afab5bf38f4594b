//! A tell that is acknowledged after it is on the disk, 256 in flight: hob's outbox against NATS
//! JetStream that syncs each message (`sync_interval: always`), on the same file system.
//!
//! hob's side is what a user's tell takes: the daemon's socket, trust, the outbox, and the answer
//! when it is synced. Its handler rests in one series, as JetStream has no consumer, and handles
//! all the while in another; what is left when the clock stops is handled before the next. The module by itself, in the
//! measuring process, shows what of it is the outbox.
//!
//! The floor is what the disk gives: the same bytes, 256 messages a write and a sync, by nobody
//! but one thread. No figure of the README's run: it downloads a server of 19 MB.

pub(in crate::figures) mod nats;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use hob_daemon::outbox::{Done, Ids, Message, Outbox, Waiting};
use hob_tests::teller::{Reply, Teller};

use crate::Setting;
use crate::hob::Hob;
use crate::measure::Series;
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 15;
const WINDOW: usize = 256;
const PAYLOAD_BYTES: usize = 256;
/// So many take each side the better part of a second.
const TELLS: usize = 40_000;
const PUBLISHES: usize = 2_560;
const FLOOR_BATCHES: usize = 200;
const SUBJECT: &str = "tells";

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let folder = setting.root.join("target/bench/outbox");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    on_a_disk(&folder)?;
    let server = nats::Server::start(setting, &folder.join("nats"))?;
    let mut client = server.connect()?;
    client.make_stream(SUBJECT)?;
    let mut module = Module::start(&folder.join("state"));
    let mut daemon = Daemon::start(setting)?;
    let payload = [b'x'; PAYLOAD_BYTES];

    let names = [
        "JetStream, sync always",
        "hob tell, nothing handled meanwhile",
        "hob tell, handled meanwhile",
        "hob's outbox, in one process",
        "floor: write and sync",
    ];
    let mut all = names.map(Series::named);
    let mut progress = Progress::new("outbox");
    let rounds = setting.rounds(ROUNDS);
    // The first round of each side fills caches.
    for round in 0..=rounds {
        progress.at(round, rounds);
        let measured = [
            timed(PUBLISHES, || client.storm(SUBJECT, &payload, PUBLISHES, WINDOW))?,
            daemon.at_rest(|daemon| timed(TELLS, || daemon.storm(&payload, TELLS, WINDOW)))?,
            timed(TELLS, || daemon.storm(&payload, TELLS, WINDOW))?,
            timed(TELLS, || module.storm(&payload, TELLS, WINDOW))?,
            timed(FLOOR_BATCHES * WINDOW, || write_and_sync(&folder.join("floor")))?,
        ];
        module.drain()?;
        daemon.drain()?;
        if round > 0 {
            for (series, us) in all.iter_mut().zip(measured) {
                series.us.push(us);
            }
        }
    }
    progress.done();
    drop(module);
    drop(server);
    daemon.hob.stop()?;
    std::fs::remove_dir_all(&folder)?;

    let mut figure = Figure::new(
        "outbox",
        "a tell of 256 bytes, acknowledged after the sync, 256 in flight: time a message",
    );
    for series in &all {
        figure.series(series);
        figure.fact(&format!("{}, a second", series.name), 1e6 / series.p(0.5));
    }
    let [jetstream, hob, handling, module, floor] = &all;
    let ratio = figure.ratio("JetStream over hob", jetstream, hob);
    figure.ratio("JetStream over hob, handled meanwhile", jetstream, handling);
    figure.ratio("JetStream over hob's outbox alone", jetstream, module);
    figure.ratio("hob's outbox alone over the floor", module, floor);
    figure.target("JetStream over hob", Want::AtLeast(20.0), ratio.of_medians);
    Ok(figure)
}

/// Microseconds a message.
fn timed(count: usize, run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    run()?;
    #[expect(clippy::cast_precision_loss, reason = "some thousand messages")]
    let count = count as f64;
    Ok(start.elapsed().as_secs_f64() * 1e6 / count)
}

/// Fails where a sync costs nothing, as in memory.
fn on_a_disk(folder: &Path) -> Result<()> {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(folder)?.f_type;
    let in_memory =
        [TMPFS, RAMFS].iter().any(|known| u64::try_from(kind).is_ok_and(|k| k == *known));
    ensure!(!in_memory, "{} is in memory: nothing is synced there", folder.display());
    Ok(())
}

fn write_and_sync(path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    let batch = [b'x'; WINDOW * PAYLOAD_BYTES];
    for number in 0..FLOOR_BATCHES {
        file.write_all_at(&batch, (number * batch.len()) as u64)?;
        file.sync_data()?;
    }
    file.flush()?;
    Ok(())
}

/// A handler that leaves a byte for each message.
const HANDLER: &str = "\
import os, time

HERE = os.path.dirname(__file__)
OUT = os.open(os.path.join(HERE, \"handled\"), os.O_WRONLY | os.O_APPEND)


def handle(payload, message):
    while os.path.exists(os.path.join(HERE, \"rest\")):
        time.sleep(0.01)
    os.write(OUT, b\".\")
";
const CONFIG: &str = "[program.tells]\nhandler = \"tells.py:handle\"\nworkers = 1\n";
/// How long what was told may take to be handled.
const DRAIN_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// A private daemon, and a connection that tells.
struct Daemon {
    hob: Hob,
    teller: Teller,
    handled: PathBuf,
    told: u64,
}

impl Daemon {
    fn start(setting: &Setting) -> Result<Daemon> {
        let hob = crate::figures::private(setting, &[])?;
        let folder = hob.folder("project")?;
        std::fs::write(folder.join("tells.py"), HANDLER)?;
        std::fs::write(folder.join("hob.toml"), CONFIG)?;
        let handled = folder.join("handled");
        std::fs::write(&handled, "")?;
        on_a_disk(&folder)?;
        let folder_name = folder.to_str().context("a name of text")?;
        hob.ask(&["trust", folder_name])?;
        hob.ask(&["start"])?;
        let environment: Vec<Vec<u8>> = hob.variables();
        let variables = environment.iter().map(Vec::as_slice);
        let teller = Teller::connect(&hob.directory(), &folder, variables)?;
        Ok(Daemon { hob, teller, handled, told: 0 })
    }

    fn storm(&mut self, payload: &[u8], count: usize, window: usize) -> Result<()> {
        let (mut sent, mut accepted) = (0, 0);
        while accepted < count {
            while sent < count && sent - accepted < window {
                self.told += 1;
                self.teller.tell(self.told, SUBJECT, payload)?;
                sent += 1;
            }
            self.teller.flush()?;
            // One at least, and all that have come with it.
            loop {
                match self.teller.reply()?.context("the daemon has left")? {
                    Reply::Accepted(..) => accepted += 1,
                    other @ (Reply::Answered(..) | Reply::Failed(..)) => {
                        bail!("a tell was refused: {other:?}")
                    }
                }
                if !self.teller.has_reply() || accepted == count {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs it while the handler rests, and waits until all of it is handled.
    fn at_rest(&mut self, run: impl FnOnce(&mut Daemon) -> Result<f64>) -> Result<f64> {
        let rest = self.handled.with_file_name("rest");
        std::fs::write(&rest, "")?;
        let measured = run(self);
        std::fs::remove_file(&rest)?;
        self.drain()?;
        measured
    }

    /// Waits until everything that was told is handled.
    fn drain(&self) -> Result<()> {
        let start = Instant::now();
        while std::fs::metadata(&self.handled)?.len() < self.told {
            ensure!(start.elapsed() < DRAIN_MAX, "the handler does not come to an end");
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// The daemon's outbox without the daemon.
struct Module {
    outbox: Outbox,
    told: Receiver<Vec<Done>>,
    ids: Ids,
    kept: Vec<Waiting>,
}

impl Module {
    fn start(state_dir: &Path) -> Module {
        let (tell, told) = channel();
        let notify = Box::new(move |done| _ = tell.send(done));
        let outbox = Outbox::start(Some(state_dir), notify);
        Module { outbox, told, ids: Ids::new(1), kept: Vec::new() }
    }

    fn storm(&mut self, payload: &[u8], count: usize, window: usize) -> Result<()> {
        let program: Arc<[u8]> = Arc::from(*b"greeter");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let created_ms = u64::try_from(now.as_millis())?;
        let (mut sent, mut accepted) = (0, 0);
        while accepted < count {
            while sent < count && sent - accepted < window {
                let message = Message {
                    id: self.ids.next(created_ms),
                    program: Arc::clone(&program),
                    key: None,
                    content_type: Vec::new(),
                    payload: payload.to_vec().into(),
                    created_ms,
                };
                self.kept.push(message.waiting());
                self.outbox.accept(message)?;
                sent += 1;
            }
            for done in self.told.recv().context("the outbox has ended")? {
                if matches!(done, Done::Accepted(_)) {
                    accepted += 1;
                } else {
                    ensure!(matches!(done, Done::Opened { .. }), "the outbox says {done:?}");
                }
            }
        }
        Ok(())
    }

    /// Finishes what was told, and waits until that is on the disk.
    fn drain(&mut self) -> Result<()> {
        for message in self.kept.drain(..) {
            self.outbox.finished(&message);
        }
        self.outbox.list_dead(0)?;
        loop {
            for done in self.told.recv().context("the outbox has ended")? {
                if matches!(done, Done::Listed(..)) {
                    return Ok(());
                }
            }
        }
    }
}
