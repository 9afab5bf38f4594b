//! One file per figure; figures of what hob says of itself lie in `receipts`. `bench/README.md` lists what each is for.

pub(crate) mod ab;
pub(crate) mod actors;
mod ahead;
pub(crate) mod chaos;
pub(crate) mod commands;
pub(crate) mod edits;
pub(crate) mod hello;
pub(crate) mod hooks;
pub(crate) mod hosts;
pub(crate) mod http;
pub(crate) mod jvm;
pub(crate) mod messages;
pub(crate) mod outbox;
pub(crate) mod pandas;
pub(crate) mod places;
pub(crate) mod receipts;
pub(crate) mod same;
mod soak;
pub(crate) mod stale;
pub(crate) mod suites;
pub(crate) mod throughput;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::Setting;
use crate::hob::{Hob, Program};
use crate::measure::{Output, Series, Side, Slot};
use crate::report::{Figure, Want};

/// Measures one figure.
pub(crate) type Measure = fn(&Setting) -> Result<Figure>;

/// Every figure, in the order of the README.
pub(crate) const ALL: [(&str, Measure); 9] = [
    ("hello", hello::measure),
    ("throughput", throughput::measure),
    ("commands", commands::measure),
    ("pandas", pandas::measure),
    ("ahead", ahead::measure),
    ("soak", soak::measure),
    ("receipts", receipts::measure),
    ("why", receipts::why::measure),
    ("messages", messages::measure),
];

/// Between two runs: long enough that a copy is forked and paid for again, as between the calls
/// of a person or a hook.
const GAP: Duration = Duration::from_millis(12);
/// Which part of the measured calls must have been warm for a figure to mean anything.
const WARM_PART: f64 = 0.99;

/// The smallest script.
const HELLO: &str = "print(\"hello\")\n";

/// A private hob whose `python3` is the real interpreter.
fn private(setting: &Setting, more: &[(&str, &str)]) -> Result<Hob> {
    let bin = setting.python.parent().unwrap_or(Path::new("/usr/bin"));
    Hob::new(&setting.hob, bin, more)
}

/// A private hob whose commands are those of a virtual environment.
fn private_in(setting: &Setting, venv: &Path) -> Result<Hob> {
    Hob::new(&setting.hob, &venv.join("bin"), &[])
}

/// A script `name` with this text, run as `hob run name` and as `python name`.
fn script(setting: &Setting, hob: &Hob, name: &str, text: &str) -> Result<Program> {
    let folder = hob.folder("scripts")?;
    std::fs::write(folder.join(name), text)?;
    Ok(Program {
        name: name.to_owned(),
        warm: vec![name.into()],
        cold: vec![setting.python.clone().into(), name.into()],
        folder,
        fresh: None,
    })
}

/// What the cold side gives, after a first run that filled its caches.
fn reference(cold: &Side) -> Result<Output> {
    let mut slot = Slot::new()?;
    cold.run(&mut slot)?;
    Ok(cold.run(&mut slot)?.output)
}

/// Fails unless hob and the cold side use the same interpreter: else nothing is comparable.
fn same_interpreter(setting: &Setting, hob: &Hob) -> Result<()> {
    let text = "import os, sys\nprint(os.path.realpath(sys.executable))\n";
    let program = script(setting, hob, "which.py", text)?;
    let mut slot = Slot::new()?;
    let warm = hob.warm(&program, &[], 0).run(&mut slot)?.output;
    let cold = hob.cold(&program, 0).run(&mut slot)?.output;
    ensure!(
        warm.stdout == cold.stdout,
        "hob runs {}, cold is {}",
        String::from_utf8_lossy(&warm.stdout).trim(),
        String::from_utf8_lossy(&cold.stdout).trim()
    );
    Ok(())
}

/// Adds which part of a side's calls was warm and whole, as a target.
fn warm_part(figure: &mut Figure, hob: &Hob, series: &Series) -> Result<()> {
    let part = hob.warm_part(&series.pids)?;
    figure.target(
        &format!("{}: receipts that say warm, and exited", series.name),
        Want::AtLeast(WARM_PART),
        part,
    );
    Ok(())
}

/// Shorthand for arguments.
fn arguments(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
}
