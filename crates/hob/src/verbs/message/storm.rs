//! `hob ask --count N --jobs N`: the same question many times, and how long the answers took.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hob_os::start::Start;
use serde_json::json;

use super::reach::Sender;
use super::sender::{Mail, Unanswered};
use super::{Failure, code, out};
use crate::output::out_json;
use crate::say;
use crate::show::units::{self, Micro};
use crate::spread::Spread;

/// The name of the format.
const SCHEMA: &str = "hob.ask/1";
/// Progress is shown from then on, and as often.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// What is wanted besides the message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) count: u64,
    pub(super) jobs: u16,
    pub(super) json: bool,
    pub(super) quiet: bool,
}

/// What the jobs share.
#[derive(Debug, Default)]
struct Shared {
    begun: AtomicU64,
    done: AtomicU64,
}

/// What one job has to tell.
#[derive(Debug, Default)]
struct Tally {
    took_ns: Spread,
    failures: BTreeMap<&'static str, u64>,
    first: Option<Unanswered>,
}

/// Asks, and prints the summary; the exit code of the first failure.
pub(super) fn run(start: &Start, mail: &Mail, wanted: &Wanted) -> Result<u8, Failure> {
    let shared = Shared::default();
    let jobs = u64::from(wanted.jobs).min(wanted.count);
    // All connections before the first question: what is measured is asking.
    let mut senders = Vec::new();
    for _ in 0..jobs {
        senders.push(Sender::connect(start).map_err(Failure::lost)?);
    }
    let begun = Instant::now();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let asking: Vec<_> = senders
            .into_iter()
            .map(|sender| scope.spawn(|| job(sender, mail, (&shared, wanted.count))))
            .collect();
        if !wanted.quiet {
            show_progress(&shared, wanted, || {
                asking.iter().all(std::thread::ScopedJoinHandle::is_finished)
            });
        }
        asking.into_iter().filter_map(|job| job.join().ok()).collect()
    });
    let took = begun.elapsed();
    summarise(tallies, wanted, took)
}

fn job(mut sender: Sender<'_>, mail: &Mail, (shared, count): (&Shared, u64)) -> Tally {
    let mut tally = Tally::default();
    while shared.begun.fetch_add(1, Ordering::Relaxed) < count {
        let begun = Instant::now();
        let reply = sender.send(mail);
        let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match reply {
            Ok(_) => tally.took_ns.add(ns),
            Err(unanswered) => {
                *tally.failures.entry(unanswered.reason.code()).or_default() += 1;
                tally.first.get_or_insert(unanswered);
            }
        }
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    tally
}

/// On a terminal, for who waits longer than a moment.
fn show_progress(shared: &Shared, wanted: &Wanted, over: impl Fn() -> bool) {
    if !say::Stream::Err.is_terminal() {
        return;
    }
    let begun = Instant::now();
    let mut shown = false;
    while !over() {
        let done = shared.done.load(Ordering::Relaxed);
        if begun.elapsed() >= PROGRESS_AFTER {
            say::over(&format!("{done} of {} asked", wanted.count));
            shown = true;
        }
        std::thread::park_timeout(PROGRESS_EVERY.min(PROGRESS_AFTER / 50));
    }
    if shown {
        say::over("");
    }
}

fn summarise(tallies: Vec<Tally>, wanted: &Wanted, took: Duration) -> Result<u8, Failure> {
    let mut took_ns = Spread::default();
    let mut failures: BTreeMap<&str, u64> = BTreeMap::new();
    let mut first = None;
    for tally in tallies {
        took_ns.join(&tally.took_ns);
        for (reason, count) in tally.failures {
            *failures.entry(reason).or_default() += count;
        }
        first = first.or(tally.first);
    }
    let failed: u64 = failures.values().sum();
    let answered = took_ns.count();
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of an ask")]
    let quantile_us = |percent| took_ns.quantile(percent).map(|ns| ns as f64 / 1000.0);
    let (p50, p99) = (quantile_us(50), quantile_us(99));
    let seconds = took.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate has few digits")]
    let rate = if seconds > 0.0 { answered as f64 / seconds } else { 0.0 };
    if wanted.json {
        let line = json!({
            "schema": SCHEMA,
            "answered": answered,
            "failed": failed,
            "failures": failures,
            "jobs": wanted.jobs,
            "seconds": seconds,
            "per_second": rate,
            "p50_us": p50,
            "p99_us": p99,
        });
        out_json(&format!("{line}\n"))?;
    } else {
        let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), micros);
        out(&format!(
            "{answered} answered, {failed} failed   p50 {}   p99 {}   {rate:.0} per second\n",
            time(p50),
            time(p99),
        ))?;
    }
    if let Some(first) = &first
        && !wanted.quiet
    {
        say::line(format!("the first failure: {}: {}", first.reason.code(), first.text).as_bytes());
    }
    Ok(first.map_or(0, |first| code(first.reason)))
}

fn micros(us: f64) -> String {
    if us < 100.0 {
        return format!("{us:.1} µs");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    units::duration(us as u64, Micro::Sign)
}
