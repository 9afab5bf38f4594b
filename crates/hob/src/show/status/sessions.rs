//! Sessions as text: a line each.

use serde_json::Value;

use super::super::columns::line;
use super::super::style::{Look, Tone};
use super::super::text::{printable, width};
use super::super::units;

const HEADS: [&str; 7] =
    ["SESSION", "STATE", "MEMORY", "EVALS", "CLIENTS", "UNUSED", "ANSWERED BY"];
/// A name is not made wider than this.
const NAME_COLUMNS_MAX: usize = 24;

/// The sessions of `hob session list --json`; a sentence if there are none.
#[must_use]
pub fn table(answer: &Value, look: &Look) -> String {
    let sessions = answer.get("sessions").and_then(Value::as_array).cloned().unwrap_or_default();
    if sessions.is_empty() {
        return "there are no sessions; `hob session eval CODE` starts one\n".to_owned();
    }
    let rows: Vec<Vec<String>> = sessions.iter().map(|session| cells(session, look)).collect();
    let heads = HEADS.map(str::to_owned);
    let mut widths = HEADS.map(width);
    for row in &rows {
        for (have, text) in widths.iter_mut().zip(row) {
            *have = (*have).max(width(text));
        }
    }
    if let Some(name) = widths.first_mut() {
        *name = (*name).min(NAME_COLUMNS_MAX);
    }
    let is_figure = |column: usize| (2..=5).contains(&column);
    let mut lines = vec![look.paint(Tone::Dim, &line(&heads, &widths, is_figure, look))];
    lines.extend(rows.iter().map(|row| line(row, &widths, is_figure, look)));
    lines.into_iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn cells(session: &Value, look: &Look) -> Vec<String> {
    let text = |key| session.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key| session.get(key).and_then(Value::as_u64).unwrap_or_default();
    let serves = match text("serves") {
        "" => "-",
        "own" => "hob",
        other => other,
    };
    vec![
        printable(text("name"), look.charset),
        text("state").to_owned(),
        units::size(number("memory_kib")),
        number("evals").to_string(),
        number("clients").to_string(),
        units::seconds(number("unused_s")),
        printable(serves, look.charset),
    ]
}
