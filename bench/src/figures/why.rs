//! What `hob why` predicts for the real commands, against what their warm calls take.
//!
//! Each command is warmed, then predicted and measured in turns, so that both see the machine in
//! the same state. Receipts do not enter the prediction.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::commands::{LINES, program, shown};
use super::{private_in, reference};
use crate::Setting;
use crate::hob::{Hob, Program};
use crate::measure::{Order, Rounds, Series, Side, Slot, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;
use crate::venv;

/// Turns, and warm calls in each.
const TURNS: usize = 3;
const CALLS: usize = 8;
const GAP: std::time::Duration = std::time::Duration::from_millis(60);
/// How far a prediction may be from what is measured.
const WITHIN: f64 = 0.3;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let venv = venv::make(&setting.root, "venv", "requirements.txt")?;
    let hob = private_in(setting, &venv)?;
    let mut figure = Figure::new("why", "what `hob why` predicts, against measured warm calls");
    let (mut errors, mut sums) = (Vec::new(), Vec::new());
    for line in LINES {
        let program = program(&hob, &venv, line)?;
        let name = shown(line);
        let mut progress = Progress::new(&name);
        let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
        hob.warm_up(&warm, &reference(&cold)?)?;
        let (mut predicted, mut own, mut measured) = (Vec::new(), Vec::new(), Vec::new());
        let turns = setting.rounds(TURNS);
        for turn in 0..turns {
            progress.at(turn, turns);
            let report = report(&hob, &program)?;
            predicted.push(number(&report["warm"]["predicted_us"])?);
            own.push(number(&report["warm"]["parts"]["own_us"])?);
            sums.push(sum_error(&report)?);
            measured.extend(calls(&warm)?.us);
        }
        progress.done();
        let (predicted, measured) = (stats::median(&predicted), stats::median(&measured));
        figure.fact(&format!("{name}: predicted, ms"), predicted / 1e3);
        figure.fact(&format!("{name}: of that its own work, ms"), stats::median(&own) / 1e3);
        figure.fact(&format!("{name}: measured, ms"), measured / 1e3);
        errors.push((predicted - measured).abs() / measured);
    }
    let within = errors.iter().filter(|error| **error <= WITHIN).count();
    #[expect(clippy::cast_precision_loss, reason = "nine commands")]
    let (within, all) = (within as f64, LINES.len() as f64);
    figure.target("commands whose prediction is within 30 %", Want::AtLeast(all), within);
    figure.fact("median distance of a prediction, part", stats::median(&errors));
    figure.target(
        "largest distance of the phases' sum from the wall time, part",
        Want::AtMost(0.03),
        stats::quantile(&sums, 1.0),
    );
    hob.stop()?;
    Ok(figure)
}

/// Some warm calls.
fn calls(warm: &Side) -> Result<Series> {
    let how = Rounds { count: CALLS, gap: GAP, order: Order::Same };
    let series = rounds(std::slice::from_ref(warm), how, &mut Progress::new(&warm.name))?;
    series.into_iter().next().context("one side gives one series")
}

/// One report, made in the same environment as the calls. Where the program changes its input,
/// it is put back before each execution; receipts are kept out of sight.
fn report(hob: &Hob, program: &Program) -> Result<Value> {
    let mut side = hob.warm(program, &[], 0);
    let mut argv = vec![side.argv[0].clone(), "why".into(), "--json".into()];
    if let Some(fresh) = &program.fresh {
        let kept = fresh.file.with_extension("kept");
        std::fs::write(&kept, &fresh.content)?;
        let command = format!("cp '{}' '{}'", kept.display(), fresh.file.display());
        argv.extend(["--prepare".into(), command.into()]);
    }
    argv.extend(program.warm.iter().cloned());
    side.argv = argv;
    let output = side.run(&mut Slot::new()?)?.output;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.stderr.is_empty(), "`hob why` of {} says: {error}", program.name);
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn sum_error(report: &Value) -> Result<f64> {
    let phases = report["phases"].as_array().context("a report has phases")?;
    let mut sum = 0.0;
    for phase in phases {
        sum += number(&phase["us"])?;
    }
    let wall = number(&report["wall_us"])?;
    Ok((sum - wall).abs() / wall)
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("a number was expected: {value}"))
}
