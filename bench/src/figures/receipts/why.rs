//! What `hob why` predicts for the real commands, against what their warm calls take.
//!
//! Each command is warmed, then predicted and measured in turns: calls before each prediction and
//! calls after it, so that both see the machine in the same state. A turn has one ratio, of what
//! is predicted to the median of its calls; a command's distance is that of the median of its
//! turns' ratios from one. Receipts do not enter the prediction.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Setting;
use crate::figures::commands::{LINES, program, shown};
use crate::figures::{private_in, reference};
use crate::hob::{Hob, Program};
use crate::measure::{Order, Rounds, Series, Side, Slot, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;
use crate::venv;

/// Turns, and warm calls before and after each prediction.
const TURNS: usize = 3;
const CALLS: usize = 10;
const GAP: std::time::Duration = std::time::Duration::from_millis(60);
/// How far a prediction may be from what is measured.
const WITHIN: f64 = 0.3;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let venv = venv::make(&setting.root, "venv", "requirements.txt")?;
    let hob = private_in(setting, &venv)?;
    let mut figure = Figure::new("why", "what `hob why` predicts, against measured warm calls");
    let (mut errors, mut sums) = (Vec::new(), Vec::new());
    for line in LINES.into_iter().filter(|line| setting.is_part(line.0)) {
        let program = program(&hob, &venv, line)?;
        let name = shown(line);
        let mut progress = Progress::new(&name);
        let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
        hob.warm_up(&warm, &reference(&cold)?)?;
        let (mut predicted, mut own) = (Vec::new(), Vec::new());
        let (mut measured, mut ratios) = (Vec::new(), Vec::new());
        let turns = setting.rounds(TURNS);
        for turn in 0..turns {
            progress.at(turn, turns);
            let mut us = calls(&warm)?.us;
            let report = report(&hob, &program)?;
            predicted.push(number(&report["warm"]["predicted_us"])?);
            own.push(number(&report["warm"]["parts"]["own_us"])?);
            sums.push(sum_error(&report)?);
            us.extend(calls(&warm)?.us);
            ratios.push(predicted[turn] / stats::median(&us));
            measured.extend(us);
        }
        progress.done();
        let (ratio, measured) = (stats::median(&ratios), stats::median(&measured));
        figure.fact(&format!("{name}: predicted, ms"), stats::median(&predicted) / 1e3);
        figure.fact(&format!("{name}: of that its own work, ms"), stats::median(&own) / 1e3);
        figure.fact(&format!("{name}: measured, ms"), measured / 1e3);
        figure.fact(&format!("{name}: median of the turns' ratios"), ratio);
        errors.push((ratio - 1.0).abs());
    }
    let within = errors.iter().filter(|error| **error <= WITHIN).count();
    ensure!(!errors.is_empty(), "--only names no command of this figure");
    #[expect(clippy::cast_precision_loss, reason = "nine commands")]
    let (within, all) = (within as f64, errors.len() as f64);
    figure.target("commands whose prediction is within 30 %", Want::AtLeast(all), within);
    figure.fact("median distance of a prediction, part", stats::median(&errors));
    figure.fact("largest distance of a prediction, part", stats::quantile(&errors, 1.0));
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
