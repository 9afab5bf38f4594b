//! Load: two busy loops beside a measurement, and twenty thousand targets.
//!
//! Owns: what must not grow and what must not be left behind.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::Bench;
use crate::progress::Progress;
use crate::report::{Figure, Want};

/// As many as the project's machine has processors.
const LOOPS: usize = 2;
const MANY: usize = 20_000;
/// Memory is flat when it is that of a tenth of them.
const FEW: usize = 2_000;
const FLAT: f64 = 1.1;

/// Runs `measured` while two threads do nothing but count, under the ordinary scheduler.
pub(super) fn beside_busy_loops<T>(measured: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..LOOPS {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // The loops end however the measurement does.
        let _end = End(&ended);
        measured()
    })
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says how much memory a program had, see `peak.c`.
#[derive(Debug, Deserialize)]
struct Peak {
    peak_kib: f64,
}

/// 20,000 targets beside 2,000: hob's memory, its report, and what it leaves behind.
pub(super) fn measure(bench: &Bench, figure: &mut Figure) -> Result<()> {
    let side = bench.side("hob, many targets", &[]).with_peak(&bench.built);
    let before = descriptors()?;
    let mut progress = Progress::new("hooks: 20,000 targets");
    let mut peaks = Vec::new();
    for targets in [bench.targets(FEW), bench.targets(MANY)] {
        let ground = bench.ground("many", targets)?;
        let (ran, last) = side.run_and_hear(&bench.hob, &ground)?;
        let peak: Peak = serde_json::from_str(&last).context("peak said nothing")?;
        figure.fact(&format!("{targets} targets: microseconds a hook"), ran.each_us);
        figure.fact(&format!("{targets} targets: hob's peak memory (KiB)"), peak.peak_kib);
        peaks.push(peak.peak_kib);
        progress.at(peaks.len(), 2);
        // The check has read it: every target's hooks stand in it, with what they said.
        let report = std::fs::metadata(ground.file("report.json"))?.len();
        figure.fact(&format!("{targets} targets: the report (bytes)"), count(report));
        ensure!(report > 0, "the report is empty");
        figure.target(
            &format!("{targets} targets: files left in the hooks' folder"),
            Want::AtMost(0.0),
            count(strangers(&ground.file(""))?),
        );
    }
    progress.done();
    let what = "20,000 targets: peak memory over that of 2,000";
    figure.target(what, Want::AtMost(FLAT), peaks[1] / peaks[0]);
    let left = processes(&bench.hob.folder("many")?)?;
    figure.target("20,000 targets: processes left", Want::AtMost(0.0), count(left));
    let grown = descriptors()?.saturating_sub(before);
    figure.target("20,000 targets: descriptors left", Want::AtMost(0.0), count(grown));
    bench.hob.stop()
}

/// Files beside the workload that no side was told to write.
fn strangers(folder: &Path) -> Result<u64> {
    let known = ["hooks", "targets.ndjson", "targets.txt", "work", "report.json"];
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        count += u64::from(!known.iter().any(|known| name == *known));
    }
    Ok(count)
}

/// Processes whose environment or arguments name this folder.
fn processes(folder: &Path) -> Result<u64> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let mut count = 0;
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        // A process may end while its files are read.
        let names = ["environ", "cmdline"].iter().any(|file| {
            let bytes = std::fs::read(path.join(file)).unwrap_or_default();
            bytes.windows(needle.len()).any(|part| part == needle)
        });
        count += u64::from(names);
    }
    Ok(count)
}

/// Open descriptors of this process, which started hob and holds its pipes.
fn descriptors() -> Result<u64> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count() as u64)
}

#[expect(clippy::cast_precision_loss, reason = "some million")]
fn count(number: u64) -> f64 {
    number as f64
}
