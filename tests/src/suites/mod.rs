//! Four suites that are made from lists: what a program finds, draws, orders and leaves behind must
//! be that of a run without hob. The lists, and what makes programs of them, are in `bench/worlds`
//! and `bench/orders`.
//!
//! Owns: what the four have in common: the interpreter under test, a call and its receipt, how
//! long a program is called until it is warm.
//!
//! Does not: panic at a difference. A report has all of them.

pub mod ends;
pub mod moments;
pub mod orders;
mod program;
pub mod worlds;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub use program::Spot;
use rustix::pipe::PipeFlags;
use serde_json::Value;

use crate::run::{End, Outcome, Run};
use crate::{World, is_warm, wait};

/// Everywhere: by a module, and at the start of an interpreter, by either way in turns.
pub const EVERYWHERE: [Spot; 3] = [Spot::Import, Spot::Sitecustomize, Spot::Pth];

/// How many hobs are called at once: half of a call is waiting.
const LANES: usize = 2;
/// How many calls may be cold until one is warm, and how many warm ones are made where a program
/// is taught.
const COLD_CALLS_MAX: u32 = 7;
const WARM_CALLS: usize = 3;
/// Between two calls of which the first was cold: time for a zygote.
const GAP: Duration = Duration::from_millis(60);
/// How long a program may take before it counts as one that does not end. None takes a second.
const ENDLESS: Duration = Duration::from_secs(12);
/// How long what a program has started may still write when it has ended.
const OTHERS: Duration = Duration::from_millis(500);
/// How long a receipt may take.
const RECEIPT: Duration = Duration::from_secs(3);
/// What stands on standard input: short enough for a pipe and for a terminal's line.
const INPUT_LINES: usize = 60;

/// Which binary and interpreter, and how much of a suite.
#[derive(Debug, Clone)]
pub struct Under {
    /// The binary under test.
    pub hob: PathBuf,
    /// The interpreter itself, not a version manager's shim.
    pub python: PathBuf,
    /// One of how many questions, things or programs is taken; 1 is all.
    pub every: usize,
    /// Only those whose topic is, or whose text contains, one of these; all if there is none.
    pub only: Vec<String>,
    /// Where questions are asked, and things are made; in turns beside the import.
    pub spots: &'static [Spot],
    /// Decides what is asked together.
    pub seed: u64,
    /// Which part of how many of the programs of `worlds`, from 1 on: a long run can be made in
    /// parts, which together are the whole.
    pub part: (usize, usize),
    /// Only these worlds, beside the one where programs are taught; all if there is none.
    pub worlds: Vec<String>,
}

impl Under {
    /// Those that are taken, in an order that the seed decides; `told` says topic and text.
    fn taken<T>(&self, all: Vec<T>, told: fn(&T) -> (&str, &str)) -> Vec<T> {
        let wanted = |one: &T| {
            let (topic, text) = told(one);
            let is = |only: &String| topic == only || text.contains(only.as_str());
            self.only.is_empty() || self.only.iter().any(is)
        };
        let mut taken: Vec<T> = all.into_iter().filter(wanted).collect();
        assert!(!taken.is_empty(), "nothing is of this kind");
        taken.sort_by_cached_key(|one| hash(told(one).1, self.seed));
        taken.truncate(taken.len().div_ceil(self.every.max(1)));
        taken
    }

    /// Where the batch of this number is asked.
    fn spots(&self, batch: usize) -> Vec<Spot> {
        let start = if batch.is_multiple_of(2) { Spot::Sitecustomize } else { Spot::Pth };
        [Spot::Import, start].into_iter().filter(|spot| self.spots.contains(spot)).collect()
    }

    /// What the generator of `bench/worlds` prints, as JSON.
    fn generated(&self, script: &str, words: &[&str]) -> Value {
        let output = Command::new(&self.python)
            .arg(folder().join(script))
            .args(words)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("the interpreter can be started");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script} {words:?}: {complaint}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// Its version, as its folders are named: `3.11`.
    fn version(&self) -> String {
        let output = Command::new(&self.python)
            .args(["-c", "import sys; print('%d.%d' % sys.version_info[:2], end='')"])
            .output()
            .expect("the interpreter can be started");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `PATH` with this interpreter in front.
    fn path(&self) -> OsString {
        let mut path = self.python.parent().unwrap_or(Path::new("/usr/bin")).as_os_str().to_owned();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        path
    }
}

/// FNV-1a: the same in every run of a seed.
fn hash(text: &str, seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Does it in lanes at once, each of which is told its number and how many there are.
fn in_lanes<T: Send>(lane: impl Fn((usize, usize)) -> T + Sync) -> Vec<T> {
    let lane = &lane;
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..LANES).map(|number| scope.spawn(move || lane((number, LANES)))).collect();
        let ended = all.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(|report| report.expect("a lane does not panic")).collect()
    })
}

/// The lists, and what makes programs of them.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/worlds")
}

/// The text on standard input.
fn input() -> String {
    (0..INPUT_LINES).map(|line| format!("line {line:02} of the input\n")).collect()
}

/// A run with that text in a pipe.
fn with_input(run: Run) -> Run {
    run.stdin_filled(input(), PipeFlags::empty())
}

/// A call through hob, or a cold run.
#[derive(Debug, Clone)]
struct Called {
    outcome: Outcome,
    /// The receipt's reason; empty for a cold run.
    reason: String,
    warm: bool,
}

impl Called {
    /// Whether the next call may be warm if this one was not.
    fn passes(&self) -> bool {
        crate::world::is_passing(&self.reason)
    }
}

/// Runs it; one that does not end is killed, and said to have ended so. Some start processes that
/// say something when the program has ended: whether that is before or after its end is told to
/// whoever waits for it is chance.
fn go(run: &Run) -> Outcome {
    let running = run.start();
    let pid = running.pid();
    running.settled_if_within(ENDLESS, OTHERS).unwrap_or_else(|| Outcome {
        pid,
        end: End::Signal(9),
        out: Vec::new(),
        err: b"(it did not end)".to_vec(),
    })
}

/// Calls through hob, and reads the receipt.
fn call(world: &World, run: &Run) -> Called {
    let outcome = go(run);
    let record = wait::look(RECEIPT, || {
        world.records(6).into_iter().rev().find(|record| record["caller_pid"] == outcome.pid)
    });
    let record = record.unwrap_or_default();
    let reason = record["reason"].as_str().unwrap_or("no-receipt").to_owned();
    Called { outcome, reason, warm: is_warm(&record) }
}

/// Calls until so many calls were warm, a call is cold for good, or there were too many; each is
/// told. None wanted is one call.
fn call_until_warm(
    world: &World,
    run: &Run,
    wanted: usize,
    mut tell: impl FnMut(&Called),
) -> Called {
    let mut warm = 0;
    let mut cold = 0u32;
    loop {
        let called = call(world, run);
        tell(&called);
        if called.warm {
            warm += 1;
        } else {
            cold += 1;
        }
        if warm >= wanted || cold >= COLD_CALLS_MAX || !called.warm && !called.passes() {
            return called;
        }
        if !called.warm {
            // sleeps: between two calls, whose receipts are the mark; the longer, the more there
            // were, so that a busy machine gets its time.
            std::thread::sleep(GAP * cold);
        }
    }
}

/// As much of a text as a line holds.
fn short(text: &str) -> String {
    const MOST: usize = 200;
    let text = text.replace('\n', "\\n");
    let head: String = text.chars().take(MOST).collect();
    if head.len() < text.len() { head + " ..." } else { head }
}

/// What differs from run to run, warm or cold: addresses, process numbers, temporary names.
fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((shown, length)) = mask(rest) {
            out.push_str(shown);
            rest = &rest[length..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// What stands for the beginning of this text, and how much of it.
fn mask(text: &str) -> Option<(&'static str, usize)> {
    let while_ = |text: &str, fits: fn(&char) -> bool| text.chars().take_while(fits).count();
    if let Some(rest) = text.strip_prefix("0x") {
        let digits = while_(rest, char::is_ascii_hexdigit);
        return (digits >= 8).then_some(("0x#", 2 + digits));
    }
    for (before, shown) in [("tmp", "tmp#"), ("temporary-", "temporary-#"), ("named-", "named-#")] {
        if let Some(rest) = text.strip_prefix(before) {
            let fits = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_';
            return (while_(rest, fits) == 8).then_some((shown, before.len() + 8));
        }
    }
    for (before, shown) in [("subprocess ", "subprocess #"), ("pid=", "pid=#"), ("pid ", "pid #")] {
        if let Some(rest) = text.strip_prefix(before) {
            let digits = while_(rest, char::is_ascii_digit);
            return (digits > 0).then_some((shown, before.len() + digits));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{go, masked};
    use crate::Run;

    #[test]
    fn what_a_program_has_started_is_heard_to_its_end() {
        let words = ["/bin/sh", "-c", "(sleep 0.1; echo late) & echo now"].map(Into::into);
        let run = Run::new(words.to_vec(), std::path::Path::new("/"), Vec::new());
        assert_eq!(go(&run).text(), "now\nlate\n");
    }

    #[test]
    fn what_no_two_runs_have_alike_is_masked_and_nothing_else() {
        assert_eq!(masked("<a at 0x7f001122aabb> 0x7f"), "<a at 0x#> 0x7f");
        assert_eq!(masked("'/tmp/tmpab12_x9z' /tmp/tmpa"), "'/tmp/tmp#' /tmp/tmpa");
        assert_eq!(masked("subprocess 4711 is still running"), "subprocess # is still running");
        assert_eq!(masked("pid=12, pid ; é"), "pid=#, pid ; é");
    }
}
