//! A script whose imports are its cost: numpy and pandas, then a few rows.

use std::time::Duration;

use anyhow::Result;

use super::{private, reference, script, warm_part};
use crate::Setting;
use crate::measure::{Order, Rounds, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::venv;

const ROUNDS: usize = 40;
const GAP: Duration = Duration::from_millis(100);
const SCRIPT: &str = "\
import numpy as np
import pandas as pd

frame = pd.DataFrame({\"a\": np.arange(6) % 3, \"b\": np.arange(6) / 2})
print(frame.groupby(\"a\").sum().to_csv(), end=\"\")
";

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let venv = venv::make(&setting.root, "venv-pandas", "requirements-pandas.txt")?;
    let hob = private(setting, &[])?;
    let python = venv.join("bin/python").into_os_string();
    let mut program = script(setting, &hob, "frame.py", SCRIPT)?;
    program.warm = vec![python.clone(), "frame.py".into()];
    program.cold = vec![python, "frame.py".into()];
    let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
    hob.warm_up(&warm, &reference(&cold)?)?;
    let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Same };
    let series = rounds(&[warm, cold], how, &mut Progress::new("pandas"))?;

    let mut figure = Figure::new("pandas", "a script that imports numpy and pandas");
    let [warm, cold] = [&series[0], &series[1]];
    figure.series(warm);
    figure.series(cold);
    let ratio = figure.ratio("cold over hob", cold, warm);
    figure.target("cold over hob", Want::AtLeast(100.0), ratio.of_medians);
    warm_part(&mut figure, &hob, warm)?;
    hob.stop()?;
    Ok(figure)
}
