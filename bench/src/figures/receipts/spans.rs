//! What notes of spans cost: one of them, a warm call with and without the ring, and reading it.

use anyhow::Result;
use hob_daemon::measure;

use super::{GAP, PAIRS, SCRIPT, with_and_without};
use crate::Setting;
use crate::figures::{private, reference, script};
use crate::measure::{Order, Rounds, Series, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};

/// Notes that are timed together.
const NOTES: u32 = 100_000;
/// Calls whose notes are counted.
const CALLS: usize = 20;
const ROUNDS: usize = 100;
/// A small warm call, in nanoseconds.
const SMALL_CALL_NS: f64 = 100_000.0;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new("spans", "notes of spans: one, those of a call, reading them");
    let hob = private(setting, &[])?;
    let ns = measure::note_ns(&hob.folder("ring")?, NOTES);
    figure.target("a note, in ns", Want::AtMost(30.0), ns);

    let program = script(setting, &hob, "hello.py", SCRIPT)?;
    let side = hob.warm(&program, &[], 0);
    hob.warm_up(&side, &reference(&hob.cold(&program, 0))?)?;
    let before = measure::notes(&hob.directory());
    let how = Rounds { count: CALLS, gap: GAP, order: Order::Same };
    rounds(&[side], how, &mut Progress::new("notes of a call"))?;
    #[expect(clippy::cast_precision_loss, reason = "a count of notes is small")]
    let notes = (measure::notes(&hob.directory()) - before) as f64 / CALLS as f64;
    figure.fact("notes of a warm call, with those of the copy made after it", notes);
    figure.target(
        "their share of a call of 100 µs",
        Want::AtMost(0.01),
        notes * ns / SMALL_CALL_NS,
    );

    let binary = hob.binary().to_owned();
    let trace = hob.plain("hob trace", &[binary.as_os_str(), "trace".as_ref()], None);
    let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Same };
    let traced = rounds(&[trace], how, &mut Progress::new("hob trace"))?;
    figure.series(&traced[0]);
    figure.target("hob trace, in ms", Want::AtMost(20.0), traced[0].p(0.5) / 1000.0);
    hob.stop()?;

    let mut series: Vec<Series> = Vec::new();
    for pair in 1..=PAIRS {
        for (whole, part) in with_and_without(setting, "HOB_RING", pair)?.into_iter().enumerate() {
            match series.get_mut(whole) {
                Some(whole) => whole.extend(part),
                None => series.push(part),
            }
        }
    }
    series.iter().for_each(|one| figure.series(one));
    let ratio = figure.ratio("a warm call with the ring over without", &series[0], &series[1]);
    figure.target("a warm call with the ring over without", Want::AtMost(1.01), ratio.of_medians);
    Ok(figure)
}
