//! Ten thousand calls, eight callers at once: no failure, nothing leaked, memory flat.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::throughput::burst;
use super::{HELLO, private, reference, script};
use crate::Setting;
use crate::measure::{Output, Side};
use crate::progress::Progress;
use crate::report::{Figure, Want};

const CALLS_PER_TENTH: usize = 1000;
const TENTHS: usize = 10;
/// How long the daemon may take to come to rest after the last call.
const REST_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private(setting, &[])?;
    let program = script(setting, &hob, "hello.py", HELLO)?;
    let side = hob.warm(&program, &[], 0);
    let want = reference(&hob.cold(&program, 0))?;
    hob.warm_up(&side, &want)?;
    let daemon = hob.pid()?;
    // The first burst raises the number of copies; what it leaves is what must not grow.
    burst(&side, &want, CALLS_PER_TENTH.min(200))?;
    let before = rest(daemon)?;

    let memory = tenths(&side, &want, daemon, setting)?;
    let after = rest(daemon)?;
    ensure!(hob.pid()? == daemon, "the daemon was replaced during the calls");
    let family = descendants(daemon);
    let mut figure = Figure::new("soak", "10,000 calls, 8 callers at once");
    // A failed or wrong call has ended the measurement above.
    figure.target("failed calls", Want::AtMost(0.0), 0.0);
    figure.fact("calls", count(setting.rounds(CALLS_PER_TENTH) * TENTHS));
    figure.fact("descriptors before", count(before.descriptors));
    figure.fact("descriptors after", count(after.descriptors));
    figure.fact("processes before", count(before.processes));
    figure.fact("processes after", count(after.processes));
    let grown = |now: usize, then: usize| count(now.saturating_sub(then));
    figure.target(
        "leaked descriptors",
        Want::AtMost(0.0),
        grown(after.descriptors, before.descriptors),
    );
    figure.target("leaked processes", Want::AtMost(0.0), grown(after.processes, before.processes));
    for (tenth, kib) in memory.iter().enumerate() {
        figure.fact(&format!("daemon memory after tenth {}, KiB", tenth + 1), *kib);
    }
    figure.target(
        "daemon memory, last tenth over second",
        Want::AtMost(1.05),
        memory[TENTHS - 1] / memory[1],
    );
    hob.stop()?;
    figure.target("processes left after `hob stop`", Want::AtMost(0.0), count(left(&family)));
    Ok(figure)
}

/// The calls; gives the daemon's memory after each tenth of them.
fn tenths(side: &Side, want: &Output, daemon: u32, setting: &Setting) -> Result<Vec<f64>> {
    let mut progress = Progress::new("soak");
    let mut memory = Vec::new();
    for tenth in 0..TENTHS {
        progress.at(tenth, TENTHS);
        burst(side, want, setting.rounds(CALLS_PER_TENTH))?;
        memory.push(own_memory_kib(daemon)?);
    }
    progress.done();
    Ok(memory)
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn count(number: usize) -> f64 {
    number as f64
}

/// What the daemon holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    processes: usize,
}

/// Waits until what the daemon holds has not changed for a second.
fn rest(daemon: u32) -> Result<Held> {
    const STEADY: Duration = Duration::from_secs(1);
    let start = Instant::now();
    let (mut held, mut since) = (held(daemon)?, Instant::now());
    while since.elapsed() < STEADY && start.elapsed() < REST_MAX {
        std::thread::sleep(POLL);
        let now = self::held(daemon)?;
        if now != held {
            (held, since) = (now, Instant::now());
        }
    }
    Ok(held)
}

fn held(daemon: u32) -> Result<Held> {
    let folder = format!("/proc/{daemon}/fd");
    let descriptors = std::fs::read_dir(folder).context("the daemon is gone")?.count();
    Ok(Held { descriptors, processes: descendants(daemon).len() })
}

/// The daemon's own memory: private and its part of what is shared.
fn own_memory_kib(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let number = line.and_then(|rest| rest.split_whitespace().next()).context("no Pss line")?;
    Ok(number.parse()?)
}

/// Every process below this one, zombies too, with its start time: numbers are used again.
fn descendants(root: u32) -> BTreeSet<(u32, u64)> {
    let all: Vec<(u32, u32, u64)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| stat(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut family = BTreeSet::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for &(pid, above, started) in &all {
            if above == parent && family.insert((pid, started)) {
                parents.push(pid);
            }
        }
    }
    family
}

/// A process's number, parent and start time.
fn stat(pid: u32) -> Option<(u32, u32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; what follows its last bracket does not.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((pid, fields.nth(1)?.parse().ok()?, fields.nth(17)?.parse().ok()?))
}

/// How many of a family are still there, after a bounded wait for them to leave.
fn left(family: &BTreeSet<(u32, u64)>) -> usize {
    let there = || {
        family
            .iter()
            .filter(|(pid, _)| {
                Path::new(&format!("/proc/{pid}")).exists()
                    && stat(*pid).is_some_and(|(pid, _, started)| family.contains(&(pid, started)))
            })
            .count()
    };
    let start = Instant::now();
    while there() > 0 && start.elapsed() < REST_MAX {
        std::thread::sleep(POLL);
    }
    there()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_and_is_gone_after_its_end() {
        let mut child = std::process::Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let family = descendants(std::process::id());
        assert!(family.iter().any(|(pid, _)| *pid == child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        let ended: BTreeSet<_> = family.into_iter().filter(|(pid, _)| *pid == child.id()).collect();
        assert_eq!((ended.len(), left(&ended)), (1, 0));
    }
}
