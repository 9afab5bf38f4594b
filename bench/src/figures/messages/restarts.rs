//! Ten thousand asks and tells, by the command and by the library, while the daemon is restarted each
//! 0.3 seconds: none may be refused, lost or doubled. The driver is the whole-system tests' own.

use std::time::Duration;

use anyhow::Result;

use crate::Setting;
use crate::report::{Figure, Want};

const MESSAGES: usize = 10_000;
const EVERY: Duration = Duration::from_millis(300);
/// So many of what is wrong are shown.
const SHOWN: usize = 5;

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let report = hob_tests::restarts::run(&setting.hob, setting.rounds(MESSAGES), EVERY);
    let mut figure = Figure::new("restarts", "asks and tells while the daemon is restarted");
    figure.fact("asks and tells", count(report.sent));
    figure.fact("restarts", count(report.restarts));
    for (what, wrong) in [
        ("refused", &report.refused),
        ("accepted and not handled", &report.lost),
        ("handled twice", &report.doubled),
    ] {
        wrong.iter().take(SHOWN).for_each(|one| crate::say(&format!("{what}: {one}")));
        figure.target(what, Want::AtMost(0.0), count(wrong.len()));
    }
    Ok(figure)
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn count(number: usize) -> f64 {
    number as f64
}
