//! What forking ahead brings: copies that wait, against a fork at the time of the call. Two equal
//! scripts, so that each has a pool of its own.

use anyhow::Result;

use super::{GAP, HELLO, private, reference, script, warm_part};
use crate::Setting;
use crate::measure::{Order, Rounds, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};

const ROUNDS: usize = 300;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private(setting, &[])?;
    let waiting = script(setting, &hob, "ahead.py", HELLO)?;
    let asked = script(setting, &hob, "on-demand.py", HELLO)?;
    let want = reference(&hob.cold(&waiting, 0))?;
    let waiting = hob.warm(&waiting, &[], 0);
    let asked = hob.warm(&asked, &["--ahead", "0"], 0);
    for side in [&waiting, &asked] {
        hob.warm_up(side, &want)?;
    }
    let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Same };
    let series = rounds(&[waiting, asked], how, &mut Progress::new("ahead"))?;

    let mut figure = Figure::new("ahead", "forking ahead, against forking when a call comes");
    let [waiting, asked] = [&series[0], &series[1]];
    figure.series(waiting);
    figure.series(asked);
    let ratio = figure.ratio("--ahead 0 over forking ahead", asked, waiting);
    figure.target("--ahead 0 over forking ahead", Want::AtLeast(3.0), ratio.of_medians);
    warm_part(&mut figure, &hob, waiting)?;
    warm_part(&mut figure, &hob, asked)?;
    hob.stop()?;
    Ok(figure)
}
