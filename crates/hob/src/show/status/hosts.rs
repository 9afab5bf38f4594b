//! The programs that hosts offer, as text: this host in a line, then a line each.

use serde_json::Value;

use super::super::columns::line;
use super::super::style::{Look, Tone};
use super::super::text::{printable, width};

const HEADS: [&str; 9] =
    ["HOST", "PROGRAM", "VERSION", "READY", "BUSY", "QUEUED", "ASKED", "FAILED", "DEAD"];
/// A name is not made wider than this.
const NAME_COLUMNS_MAX: usize = 24;

/// What `hob hosts --json` has.
#[must_use]
pub fn table(answer: &Value, look: &Look) -> String {
    let this = &answer["this"];
    if this.is_null() {
        return "other hosts are not asked: config.toml names no server ([nats]), or did not when the daemon began (`hob restart`)\n".to_owned();
    }
    let text = |value: &Value| printable(value.as_str().unwrap_or_default(), look.charset);
    let (host, server) = (text(&this["host"]), text(&this["server"]));
    let mut lines = vec![match (this["connected"] == true, this["why"].as_str()) {
        (true, _) => format!("{host} is connected to {server}"),
        (false, None) => format!("{host} is not connected to {server} yet"),
        (false, Some(_)) => format!("not connected: {}", text(&this["why"])),
    }];
    if this["connected"] == true && this["why"].is_string() {
        lines.push(look.paint(Tone::Watch, &text(&this["why"])));
    }
    let programs = answer["programs"].as_array().cloned().unwrap_or_default();
    if programs.is_empty() {
        if this["connected"] == true {
            lines.push("no host offers a program".to_owned());
        }
    } else {
        let rows: Vec<Vec<String>> = programs.iter().map(|each| cells(each, look)).collect();
        let heads = HEADS.map(str::to_owned);
        let mut widths = HEADS.map(width);
        for row in &rows {
            for (have, text) in widths.iter_mut().zip(row) {
                *have = (*have).max(width(text).min(NAME_COLUMNS_MAX));
            }
        }
        let is_figure = |column: usize| column >= 3;
        lines.push(look.paint(Tone::Dim, &line(&heads, &widths, is_figure, look)));
        lines.extend(rows.iter().map(|row| line(row, &widths, is_figure, look)));
    }
    lines.into_iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn cells(program: &Value, look: &Look) -> Vec<String> {
    let text = |key: &str| printable(program[key].as_str().unwrap_or_default(), look.charset);
    let number = |key: &str| program[key].as_u64().unwrap_or_default().to_string();
    let mut all = vec![text("host"), text("program"), text("version")];
    all.extend(["ready", "busy", "queued", "asked", "failed", "dead"].map(number));
    all
}
