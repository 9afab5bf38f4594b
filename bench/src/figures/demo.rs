//! What `make demo` shows: three real commands, cold and warm in the same rounds, and a receipt.

use std::fmt::Write;

use anyhow::Result;

use super::commands::{LINES, pair, shown};
use super::private_in;
use crate::Setting;
use crate::stats::median;
use crate::venv;

const ROUNDS: usize = 9;
const SHOWN: [&str; 3] = ["black", "yamllint", "http"];

/// Runs it; gives the text to print.
pub(crate) fn run(setting: &Setting) -> Result<String> {
    let venv = venv::make(&setting.root, "venv-demo", "requirements-demo.txt")?;
    let hob = private_in(setting, &venv)?;
    let rounds = setting.rounds(ROUNDS);
    let mut out = format!(
        "\nThree commands from PyPI, each run {rounds} times without hob and through `hob run`,\n\
         in turns. Every run gave the same output both ways. Medians of the whole process:\n\n\
         {:24} {:>12} {:>12} {:>10}\n",
        "", "without hob", "hob run", "faster"
    );
    for line in LINES.into_iter().filter(|line| SHOWN.contains(&line.0)) {
        let (warm, cold) = pair(&hob, &venv, line, rounds)?;
        let (warm_ms, cold_ms) = (median(&warm.us) / 1e3, median(&cold.us) / 1e3);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:24} {cold_ms:>9.1} ms {warm_ms:>9.2} ms {:>8.1} x",
            shown(line),
            cold_ms / warm_ms
        );
    }
    let _ = write!(out, "\nThe receipt of the last call (`hob last`):\n\n{}", hob.last()?);
    hob.stop()?;
    let _ = write!(
        out,
        "\nThe daemon has left, and nothing stays behind. Yours: target/hob run PROGRAM"
    );
    Ok(out)
}
