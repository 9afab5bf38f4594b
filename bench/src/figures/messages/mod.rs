//! `hob.ask` of a Python handler, against the same bytes over a bare socket: one process asks both,
//! in interleaved rounds, inside one connection each. Beside it, for scale, the same ask by way of
//! the daemon, as the first of a connection goes.

pub(crate) mod restarts;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::private;
use crate::Setting;
use crate::measure::{Series, Slot, text};
use crate::report::{Figure, Want};

const ROUNDS: usize = 100;
/// Asks of each kind in a round; its median counts.
const ASKS: usize = 200;

const HANDLERS: &str = "\
def echo(payload, message):
    return payload
";
const PROGRAMS: &str = "\
[program.echo]
handler = \"handlers.py:echo\"

[program.relayed]
handler = \"handlers.py:echo\"
queue = 1025
";
const SCRIPT: &str = include_str!("asks.py");

pub(crate) fn measure(setting: &Setting) -> Result<Figure> {
    let hob = private(setting, &[])?;
    let folder = hob.folder("messages")?;
    std::fs::write(folder.join("handlers.py"), HANDLERS)?;
    std::fs::write(folder.join("hob.toml"), PROGRAMS)?;
    std::fs::write(folder.join("asks.py"), SCRIPT)?;
    let within = |name: &str, argv: &[&std::ffi::OsStr]| {
        let mut side = hob.plain(name, argv, None);
        side.folder.clone_from(&folder);
        let run = side.run(&mut Slot::new()?)?;
        let complaint = text(&run.output.stderr);
        ensure!(run.output.exit.ends_with(": 0") && complaint.is_empty(), "{name}: {complaint}");
        // Whole: what `text` shows to people is cut.
        anyhow::Ok(String::from_utf8_lossy(&run.output.stdout).into_owned())
    };
    within("trust", &[setting.hob.as_ref(), "trust".as_ref()])?;
    within("start", &[setting.hob.as_ref(), "start".as_ref()])?;
    let library = setting.root.join("clients/python");
    let (rounds, asks) = (setting.rounds(ROUNDS).to_string(), ASKS.to_string());
    let argv: [&std::ffi::OsStr; 5] = [
        setting.python.as_ref(),
        "asks.py".as_ref(),
        library.as_ref(),
        rounds.as_ref(),
        asks.as_ref(),
    ];
    let said: Value = serde_json::from_str(&within("asks", &argv)?)?;

    let mut figure = Figure::new("messages", "an ask of a Python handler, against a bare socket");
    let mut all = Vec::new();
    for (at, name) in ["bare socket echo", "hob.ask", "hob.ask by the daemon"].iter().enumerate() {
        let us = said[at].as_array().context("three lists of times")?;
        let us = us.iter().filter_map(Value::as_f64).collect();
        all.push(Series { name: (*name).to_owned(), us, pids: Vec::new() });
    }
    all.iter().for_each(|series| figure.series(series));
    let ratio = figure.ratio("hob.ask over the bare echo", &all[1], &all[0]);
    figure.target("hob.ask over the bare echo", Want::AtMost(2.5), ratio.of_medians);
    figure.ratio("by the daemon over the bare echo", &all[2], &all[0]);
    hob.stop()?;
    Ok(figure)
}
