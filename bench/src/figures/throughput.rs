//! Eight callers back to back: more calls than copies can wait for. What counts is how many calls
//! a second are done, and that each is right.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{HELLO, private, reference, same_interpreter, script};
use crate::Setting;
use crate::measure::{Output, Series, Side, Slot, microseconds, same};
use crate::progress::Progress;
use crate::report::{Figure, Want};

const BLOCKS: usize = 10;
const CALLS_PER_BLOCK: usize = 240;
pub(crate) const CALLERS: usize = 8;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private(setting, &[])?;
    same_interpreter(setting, &hob)?;
    let program = script(setting, &hob, "hello.py", HELLO)?;
    let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
    let want = reference(&cold)?;
    hob.warm_up(&warm, &want)?;

    let blocks = setting.rounds(BLOCKS);
    let mut progress = Progress::new("throughput");
    let mut series = [&warm, &cold].map(|side| Series {
        name: format!("{}, {CALLERS} callers, per call", side.name),
        us: Vec::new(),
        pids: Vec::new(),
    });
    for block in 0..blocks {
        progress.at(block, blocks);
        for (series, side) in series.iter_mut().zip([&warm, &cold]) {
            let burst = burst(side, &want, CALLS_PER_BLOCK)?;
            #[expect(clippy::cast_precision_loss, reason = "some hundred calls")]
            series.us.push(microseconds(burst.took) / CALLS_PER_BLOCK as f64);
            series.pids.extend(burst.pids);
        }
    }
    progress.done();

    let mut figure = Figure::new("throughput", "the same script, 8 callers at once, back to back");
    let [warm, cold] = &series;
    figure.series(warm);
    figure.series(cold);
    figure.fact("calls per second, hob", 1e6 / warm.p(0.5));
    figure.fact("calls per second, cold", 1e6 / cold.p(0.5));
    figure.fact("part of the receipts that say warm, and exited", hob.warm_part(&warm.pids)?);
    let ratio = figure.ratio("calls per second, hob over cold", cold, warm);
    figure.target("calls per second, hob over cold", Want::AtLeast(2.5), ratio.of_medians);
    hob.stop()?;
    Ok(figure)
}

/// Many calls at once.
#[derive(Debug)]
pub(crate) struct Burst {
    pub(crate) took: Duration,
    pub(crate) pids: Vec<u32>,
}

/// Runs `calls` calls from [`CALLERS`] threads, each back to back; each result must be `want`.
pub(crate) fn burst(side: &Side, want: &Output, calls: usize) -> Result<Burst> {
    let start = Instant::now();
    let mut pids = Vec::with_capacity(calls);
    std::thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = (0..CALLERS)
            .map(|number| {
                let share = calls / CALLERS + usize::from(number < calls % CALLERS);
                scope.spawn(move || -> Result<Vec<u32>> {
                    let mut slot = Slot::new()?;
                    let mut pids = Vec::with_capacity(share);
                    for _ in 0..share {
                        let run = side.run(&mut slot)?;
                        same("cold", want, &side.name, &run.output)?;
                        pids.push(run.pid);
                    }
                    Ok(pids)
                })
            })
            .collect();
        for thread in threads {
            pids.extend(thread.join().ok().context("a caller panicked")??);
        }
        Ok(())
    })?;
    Ok(Burst { took: start.elapsed(), pids })
}
