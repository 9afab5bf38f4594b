//! Scripts whose imports are their cost: numpy and pandas, alone and with a few rows at work.

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
/// The imports alone, and so little work that they still are nearly all of it when cold. What the
/// second does after its imports cannot be warmed, and is most of a warm call
/// (docs/why/client-path.md).
const SCRIPTS: [(&str, &str); 2] = [
    (
        "imports.py",
        "\
import numpy as np
import pandas as pd

print(np.__version__, pd.__version__)
",
    ),
    (
        "frame.py",
        "\
import numpy as np
import pandas as pd

frame = pd.DataFrame({\"a\": np.arange(6) % 3, \"b\": np.arange(6) / 2})
print(frame.groupby(\"a\").sum().to_csv(), end=\"\")
",
    ),
];

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let venv = venv::make(&setting.root, "venv-pandas", "requirements-pandas.txt")?;
    let hob = private(setting, &[])?;
    let python = venv.join("bin/python").into_os_string();
    let mut figure = Figure::new("pandas", "scripts that import numpy and pandas");
    for (name, text) in SCRIPTS {
        let mut program = script(setting, &hob, name, text)?;
        program.warm = vec![python.clone(), name.into()];
        program.cold = vec![python.clone(), name.into()];
        let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
        hob.warm_up(&warm, &reference(&cold)?)?;
        let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Same };
        let series = rounds(&[warm, cold], how, &mut Progress::new(name))?;
        let [warm, cold] = [&series[0], &series[1]];
        figure.series(warm);
        figure.series(cold);
        let ratio = figure.ratio(&format!("{name}, cold over hob"), cold, warm);
        let what = format!("{name}: cold over hob");
        figure.target(&what, Want::AtLeast(100.0), ratio.of_medians);
        warm_part(&mut figure, &hob, warm)?;
    }
    hob.stop()?;
    Ok(figure)
}
