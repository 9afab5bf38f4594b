//! Four suites that are made from lists (`bench/worlds`, `bench/orders`), whose driver is the
//! whole-system tests' own (`tests/src/suites`): what a program finds, draws, orders and leaves
//! behind, cold and through hob.

pub(crate) mod orders;

use anyhow::Result;
use hob_tests::suites::worlds::Told;
use hob_tests::suites::{self, Under};

use crate::Setting;
use crate::progress::Progress;
use crate::report::{Figure, Want};

/// What an import, or the start of the interpreter, finds of its world.
pub(crate) fn worlds(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new("worlds", "what a module keeps of the outside: the same as cold?");
    let mut progress = Progress::new("worlds: programs");
    let report = suites::worlds::run(&under(setting), |told| match told {
        Told::Done(done, all) => progress.at(done, all),
        Told::Different(one) => crate::say(&one.to_string()),
    });
    progress.done();
    figure.fact("questions", count(report.questions));
    figure.fact("asked, in all places and worlds", count(report.asked));
    figure.fact("left out: cold runs differ", count(report.unsteady));
    figure.fact("answered differently in some worlds", count(report.telling));
    figure.fact("calls through hob", count(report.calls));
    figure.fact("of these warm", count(report.warm));
    for (name, world) in &report.worlds {
        figure.fact(&format!("{name}: asked"), count(world.asked));
        figure.fact(&format!("{name}: left out"), count(world.unsteady));
        figure.fact(&format!("{name}: calls"), count(world.calls));
        figure.fact(&format!("{name}: of these warm"), count(world.warm));
        figure.fact(&format!("{name}: different, as the page says"), count(world.known));
        figure.fact(&format!("{name}: different"), count(world.different - world.known));
    }
    for (reason, programs) in &report.cold {
        figure.fact(&format!("programs that stay cold: {reason}"), count(*programs));
    }
    let known = report.different.iter().filter(|one| one.known.is_some()).count();
    figure.fact("different, as docs/fidelity.md says", count(known));
    figure.target("different", Want::AtMost(0.0), count(report.different.len() - known));
    Ok(figure)
}

/// What is of the moment.
pub(crate) fn moments(setting: &Setting) -> Result<Figure> {
    let mut figure = Figure::new("moments", "things of the moment, kept at import: new each call?");
    let mut progress = Progress::new("moments: rounds");
    let report = suites::moments::run(&under(setting), |done, all| progress.at(done, all));
    progress.done();
    for one in &report.repeated {
        crate::say(&one.to_string());
    }
    figure.fact("things", count(report.things));
    figure.fact("in their places, never the same cold", count(report.unique));
    figure.fact("programs that stay cold", count(report.cold.len()));
    let is = |fault| report.repeated.iter().filter(|one| one.fault == fault).count();
    figure.target("repeated", Want::AtMost(0.0), count(is(suites::moments::Fault::Repeats)));
    figure.target(
        "older than the call",
        Want::AtMost(0.0),
        count(is(suites::moments::Fault::Older)),
    );
    Ok(figure)
}

/// What objects do at the end.
pub(crate) fn ends(setting: &Setting) -> Result<Figure> {
    let mut figure =
        Figure::new("ends", "objects that do something when they end: the same as cold?");
    let mut progress = Progress::new("ends: programs");
    let report = suites::ends::run(&under(setting), |told| match told {
        suites::ends::Told::Done(done, all) => progress.at(done, all),
        suites::ends::Told::Different(one) => crate::say(&one.to_string()),
    });
    progress.done();
    figure.fact("programs", count(report.programs));
    figure.fact("in part left out: two cold runs differ", count(report.unsteady));
    figure.fact("calls through hob", count(report.calls));
    figure.fact("of these warm", count(report.warm));
    for (reason, programs) in &report.cold {
        figure.fact(&format!("programs that stay cold: {reason}"), count(*programs));
    }
    figure.target("different", Want::AtMost(0.0), count(report.different.len()));
    Ok(figure)
}

fn under(setting: &Setting) -> Under {
    Under {
        // Programs are run in folders of their own.
        hob: setting.hob.canonicalize().unwrap_or_else(|_| setting.hob.clone()),
        python: setting.python.clone(),
        every: if setting.is_quick() { 10 } else { 1 },
        only: setting.only.iter().cloned().collect(),
        spots: spots(),
        seed: std::env::var("HOB_BENCH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1),
        part: setting.part,
        worlds: setting.worlds.clone(),
    }
}

/// Where it is asked: `HOB_BENCH_SPOT` is `import` or `start`, or else both.
fn spots() -> &'static [suites::Spot] {
    match std::env::var("HOB_BENCH_SPOT").as_deref() {
        Ok("import") => &suites::EVERYWHERE[..1],
        Ok("start") => &suites::EVERYWHERE[1..],
        _ => &suites::EVERYWHERE,
    }
}

#[expect(clippy::cast_precision_loss, reason = "some thousand")]
fn count(number: usize) -> f64 {
    number as f64
}
