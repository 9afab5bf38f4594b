//! What receipts cost a warm call: two daemons, one of which keeps none (`HOB_RECEIPTS=0`).
//! Beside it: whether what receipts and `hob why` say is so.

mod beside;
pub(crate) mod check;
mod endpoints;
mod metrics;
pub(crate) mod saved;
pub(crate) mod spans;
pub(in crate::figures) mod why;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::Setting;
use crate::figures::{GAP, private, reference, script};
use crate::hob::Hob;
use crate::measure::{Order, Output, Rounds, Series, Side, Slot, rounds, same};
use crate::progress::Progress;
use crate::report::{Figure, Want};

/// Two daemons that are the same differ by a part of what receipts may cost, for as long as they
/// live: by where their memory came to lie. So there are several of each kind.
const PAIRS: usize = 5;
/// Of each pair.
const ROUNDS: usize = 240;
/// Says `hello`; with an argument it says whether its caller started it, which is how a call
/// without a receipt is known to be warm.
const SCRIPT: &str = "\
import os
import sys

if len(sys.argv) > 1:
    print(os.getpid(), os.getppid())
else:
    print(\"hello\")
";
const WARMING_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(40);
const WARM_RUNS: usize = 10;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut series: Vec<Series> = Vec::new();
    for pair in 1..=PAIRS {
        for (whole, part) in
            with_and_without(setting, "HOB_RECEIPTS", pair)?.into_iter().enumerate()
        {
            match series.get_mut(whole) {
                Some(whole) => whole.extend(part),
                None => series.push(part),
            }
        }
    }
    let mut figure = Figure::new("receipts", "a warm call with receipts, against one without");
    figure.series(&series[0]);
    figure.series(&series[1]);
    let ratio = figure.ratio("with receipts over without", &series[0], &series[1]);
    figure.target("with receipts over without", Want::AtMost(1.02), ratio.of_medians);
    Ok(figure)
}

/// The rounds of one pair of daemons.
fn with_and_without(setting: &Setting, variable: &str, pair: usize) -> Result<Vec<Series>> {
    let with = private(setting, &[])?;
    let without = private(setting, &[(variable, "0")])?;
    let off = format!("hob, {variable}=0");
    let mut sides = Vec::new();
    for (hob, name) in [(&with, "hob"), (&without, off.as_str())] {
        let mut program = script(setting, hob, "hello.py", SCRIPT)?;
        let want = reference(&hob.cold(&program, 0))?;
        let mut side = hob.warm(&program, &[], 0);
        program.warm.push("tell".into());
        warm_up(hob, &hob.warm(&program, &[], 0), &side, &want)?;
        name.clone_into(&mut side.name);
        sides.push(side);
    }
    let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Turned };
    let name = format!("{variable}, daemons {pair} of {PAIRS}");
    let series = rounds(&sides, how, &mut Progress::new(&name))?;
    let keeps = variable == "HOB_RECEIPTS" && !without.receipts(1)?.is_empty();
    ensure!(!keeps, "the daemon with HOB_RECEIPTS=0 kept a receipt");
    with.stop()?;
    without.stop()?;
    Ok(series)
}

/// Until the program is performed by a process that its caller did not start.
fn warm_up(hob: &Hob, tells: &Side, side: &Side, want: &Output) -> Result<()> {
    let mut slot = Slot::new()?;
    let start = Instant::now();
    loop {
        let run = tells.run(&mut slot)?;
        let said = String::from_utf8_lossy(&run.output.stdout).into_owned();
        let caller = run.pid.to_string();
        if !said.is_empty() && said.split_whitespace().all(|pid| pid != caller) {
            break;
        }
        ensure!(
            start.elapsed() < WARMING_MAX,
            "{} is still cold (daemon {:?})",
            side.name,
            hob.pid()
        );
        std::thread::sleep(PAUSE);
    }
    for _ in 0..WARM_RUNS {
        std::thread::sleep(PAUSE);
        same("cold", want, &side.name, &side.run(&mut slot)?.output)?;
    }
    Ok(())
}
