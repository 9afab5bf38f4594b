//! Real commands that no one here wrote, in a pinned virtual environment, warm and cold.

pub(crate) mod ruby;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::Setting;
use crate::figures::{arguments, private_in, reference};
use crate::hob::{Hob, Program};
use crate::measure::{Fresh, Order, Rounds, Series, Slot, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;
use crate::venv;

const ROUNDS: usize = 20;
/// Longer than for a hello: bigger programs take longer to have a copy ready again.
const GAP: Duration = Duration::from_millis(60);

/// Name, arguments, and the input file, if the command reads one.
type Line = (&'static str, &'static [&'static str], Option<&'static str>);

pub(crate) const LINES: [Line; 9] = [
    ("black", &["--quiet", "input.py"], Some("input.py")),
    ("yamllint", &["input.yaml"], Some("input.yaml")),
    ("sqlfluff", &["--version"], None),
    ("ansible", &["--version"], None),
    ("mypy", &["--version"], None),
    ("pre-commit", &["--version"], None),
    ("http", &["--version"], None),
    ("pip", &["--version"], None),
    ("pylint", &["--persistent=n", "--score=n", "input.py"], Some("input.py")),
];

/// The same with small files, as a hook would check. They are shown, and count in no target.
const SMALL: [Line; 2] = [
    ("black", &["--quiet", "small.py"], Some("small.py")),
    ("yamllint", &["small.yaml"], Some("small.yaml")),
];

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let venv = venv::make(&setting.root, "venv", "requirements.txt")?;
    let hob = private_in(setting, &venv)?;
    let mut figure =
        Figure::new("commands", "real commands, installed as they are, warm against cold");
    let (mut of_medians, mut parts) = (Vec::new(), Vec::new());
    for line in LINES {
        let (warm, cold) = pair(&hob, &venv, line, setting.rounds(ROUNDS))?;
        let name = shown(line);
        of_medians.push(figure.ratio(&name, &cold, &warm).of_medians);
        parts.push(hob.warm_part(&warm.pids)?);
        figure.series(&warm);
        figure.series(&cold);
        if figure.receipt.is_none() {
            let text = receipt(&hob, &venv, line)?;
            // Where this repository lies is nobody's business.
            let root = setting.root.to_string_lossy();
            figure.receipt = Some(text.replace(&*root, "~/hob"));
        }
    }
    for line in SMALL {
        let (warm, cold) = pair(&hob, &venv, line, setting.rounds(ROUNDS))?;
        figure.ratio(&shown(line), &cold, &warm);
        figure.series(&warm);
        figure.series(&cold);
    }
    figure.target("median of the ratios", Want::AtLeast(30.0), stats::median(&of_medians));
    figure.target("smallest ratio", Want::AtLeast(1.0), stats::quantile(&of_medians, 0.0));
    figure.target(
        "smallest part of a command's receipts that say warm, and exited",
        Want::AtLeast(0.9),
        stats::quantile(&parts, 0.0),
    );
    hob.stop()?;
    Ok(figure)
}

/// What a person would have typed.
pub(crate) fn shown(line: Line) -> String {
    let (name, _, input) = line;
    let what = match input {
        Some("small.py" | "small.yaml") => "SMALL-FILE",
        Some(_) => "FILE",
        None => "--version",
    };
    format!("{name} {what}")
}

/// Measures one command, warm first.
pub(crate) fn pair(hob: &Hob, venv: &Path, line: Line, count: usize) -> Result<(Series, Series)> {
    let program = program(hob, venv, line)?;
    let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
    hob.warm_up(&warm, &reference(&cold)?)?;
    let how = Rounds { count, gap: GAP, order: Order::Same };
    let mut series = rounds(&[warm, cold], how, &mut Progress::new(&shown(line)))?.into_iter();
    match (series.next(), series.next()) {
        (Some(warm), Some(cold)) => Ok((warm, cold)),
        _ => anyhow::bail!("two sides give two series"),
    }
}

/// More warm calls, until one has a whole receipt: that one as a person sees it.
fn receipt(hob: &Hob, venv: &Path, line: Line) -> Result<String> {
    const CALLS_MAX: usize = 10;
    let side = hob.warm(&program(hob, venv, line)?, &[], 0);
    let mut slot = Slot::new()?;
    for _ in 0..CALLS_MAX {
        std::thread::sleep(GAP);
        let run = side.run(&mut slot)?;
        let receipt = hob.receipt_of(run.pid)?;
        if receipt["warm"] == true && receipt["outcome"]["kind"] == "exited" {
            return hob.last();
        }
    }
    anyhow::bail!("none of {CALLS_MAX} warm calls of {} left a whole receipt", side.name)
}

/// The installed command with an input of its own. A command that changes its input gets it fresh
/// before each run, so that each run does the same work.
pub(crate) fn program(hob: &Hob, venv: &Path, line: Line) -> Result<Program> {
    let (name, rest, input) = line;
    let folder = hob.folder(name)?;
    let fresh = input.map(|input| Fresh {
        file: folder.join(input),
        content: match input {
            "input.yaml" => include_bytes!("../../../inputs/input.yaml").to_vec(),
            "small.yaml" => include_bytes!("../../../inputs/small.yaml").to_vec(),
            "small.py" => include_bytes!("../../../inputs/small.py.txt").to_vec(),
            _ => include_bytes!("../../../inputs/input.py.txt").to_vec(),
        },
    });
    if let Some(fresh) = &fresh {
        std::fs::write(&fresh.file, &fresh.content)?;
    }
    // hob is given what a person types; cold is spared the search along PATH.
    let mut warm = vec![name.into()];
    let mut cold = vec![venv.join("bin").join(name).into_os_string()];
    warm.extend(arguments(rest));
    cold.extend(arguments(rest));
    Ok(Program { name: shown(line), warm, cold, folder, fresh })
}
