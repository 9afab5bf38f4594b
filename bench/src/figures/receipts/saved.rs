//! What receipts call saved, against measured cold runs of the same arguments: twenty commands of
//! Python's own library.
//!
//! Each command is warmed, run cold through hob a few times (its measure), then run warm and, without
//! hob, cold, in turns. What was measured is the middle cold run less the middle warm one; what is
//! said is the middle of the warm receipts' `saved_us`.

use std::ffi::OsString;

use anyhow::{Context, Result};

use crate::Setting;
use crate::figures::{GAP, private, reference};
use crate::hob::{Hob, Program};
use crate::measure::{Order, Rounds, Slot, rounds};
use crate::progress::Progress;
use crate::report::{Figure, Want};
use crate::stats;

const ROUNDS: usize = 15;
/// Cold runs through hob, which are what its receipts rest on.
const MEASURES: usize = 5;
/// How far below the measured saving the one that is told may be.
const WITHIN: f64 = 0.2;

/// Modules of which each has a command line or none: a script imports it, and one line is printed.
const MODULES: [&str; 20] = [
    "json",
    "argparse",
    "asyncio",
    "unittest",
    "http.server",
    "urllib.request",
    "xml.dom.minidom",
    "concurrent.futures",
    "multiprocessing",
    "email.message",
    "logging.handlers",
    "decimal",
    "difflib",
    "pdb",
    "doctest",
    "inspect",
    "tarfile",
    "zipfile",
    "imaplib",
    "optparse",
];

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private(setting, &[])?;
    let mut figure = Figure::new("saved", "what receipts call saved, against measured cold runs");
    let (mut within, mut above, mut parts) = (0.0, 0.0, Vec::new());
    for module in MODULES.into_iter().filter(|module| setting.is_part(module)) {
        let (said, measured) = one(setting, &hob, module)?;
        figure.fact(&format!("{module}: said to be saved, ms"), said / 1e3);
        figure.fact(&format!("{module}: measured, ms"), measured / 1e3);
        let part = said / measured;
        within += f64::from(u8::from((1.0 - WITHIN..=1.0).contains(&part)));
        above += f64::from(u8::from(part > 1.0));
        parts.push(part);
    }
    #[expect(clippy::cast_precision_loss, reason = "twenty commands")]
    let all = parts.len() as f64;
    figure.target("commands whose saving is told within 20 %", Want::AtLeast(all), within);
    figure.target("commands of which more is told than was measured", Want::AtMost(0.0), above);
    figure.fact("smallest part of the measured saving", stats::quantile(&parts, 0.0));
    figure.fact("middle part of the measured saving", stats::median(&parts));
    figure.fact("largest part of the measured saving", stats::quantile(&parts, 1.0));
    hob.stop()?;
    Ok(figure)
}

/// What is said to be saved of one command, and what was measured, in microseconds.
fn one(setting: &Setting, hob: &Hob, module: &str) -> Result<(f64, f64)> {
    let program = program(setting, hob, module)?;
    let (warm, cold) = (hob.warm(&program, &[], 0), hob.cold(&program, 0));
    hob.warm_up(&warm, &reference(&cold)?)?;
    let measure = hob.warm(&program, &["--cold"], 0);
    let mut slot = Slot::new()?;
    for _ in 0..MEASURES {
        std::thread::sleep(GAP);
        measure.run(&mut slot)?;
    }
    let how = Rounds { count: setting.rounds(ROUNDS), gap: GAP, order: Order::Same };
    let series = rounds(&[warm, cold], how, &mut Progress::new(module))?;
    let [warm, cold] = series.as_slice() else { anyhow::bail!("two sides give two series") };
    let mut said = Vec::new();
    for receipt in hob.receipts(warm.pids.len() + MEASURES)? {
        let ours = receipt["caller_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        if ours.is_some_and(|pid| warm.pids.contains(&pid)) && receipt["gain"]["cold_runs"] != 0 {
            said.extend(receipt["gain"]["saved_us"].as_f64());
        }
    }
    let measured = stats::median(&cold.us) - stats::median(&warm.us);
    (!said.is_empty()).then_some(()).context("no receipt says what was saved")?;
    Ok((stats::median(&said), measured))
}

/// A script that imports the module, and says so.
fn program(setting: &Setting, hob: &Hob, module: &str) -> Result<Program> {
    let folder = hob.folder("scripts")?;
    let name = format!("{}.py", module.replace('.', "_") + "_user");
    std::fs::write(folder.join(&name), format!("import {module}\nprint(\"{module}\")\n"))?;
    let words: Vec<OsString> = vec![(&name).into(), "argument".into()];
    let mut cold: Vec<OsString> = vec![setting.python.clone().into()];
    cold.extend(words.iter().cloned());
    Ok(Program { name: module.to_owned(), warm: words, cold, folder, fresh: None })
}
