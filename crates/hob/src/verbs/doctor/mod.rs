//! `hob doctor`: looks for what keeps calls from being warm, and names each fault with its fix.
//!
//! ```text
//!   caller ─┐
//!   daemon ─┼─▶ findings ─▶ text or `hob.doctor/1` ─▶ 0 without a fault, 1 with one
//!   hosts ──┤
//!   outbox ─┤
//!   push ───┤
//!   log ────┤
//!   machine ┤
//!   commands┘
//! ```
//! Invariants: looking leaves nothing behind and starts nothing, no daemon either (whether a
//! directory can be written in is tried with a file that has no name); every finding that is not
//! fine has a fix in one line; a warning never decides the exit code. Each check works where the
//! others fail: without a daemon, without HOME, without a terminal, without `/proc`.

mod caller;
mod commands;
mod daemon;
mod hosts;
mod log;
mod machine;
mod outbox;
mod push;
mod sandbox;

use hob_os::start::Start;
use serde_json::json;

use crate::failure::Failure;
use crate::output::{Format, out, out_json};
use crate::show::style::{Look, Tone};
use crate::show::text::{Align, pad, printable, wrap};

/// The name of the format.
const SCHEMA: &str = "hob.doctor/1";
/// The columns of a level and of a check's name.
const LEVEL_COLUMNS: usize = 9;
const CHECK_COLUMNS: usize = 14;

/// How a finding is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// As it should be.
    Fine,
    /// Something works less well than it could.
    Warning,
    /// Calls run cold, fail, or leave no receipt.
    Fault,
}

impl Level {
    fn code(self) -> &'static str {
        match self {
            Level::Fine => "fine",
            Level::Warning => "warning",
            Level::Fault => "fault",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Level::Fine => Tone::Good,
            Level::Warning => Tone::Watch,
            Level::Fault => Tone::Bad,
        }
    }
}

/// What one look found.
#[derive(Debug)]
struct Finding {
    /// What was looked at, in one word that stays.
    check: &'static str,
    level: Level,
    text: String,
    fix: Option<String>,
}

fn fine(check: &'static str, text: impl Into<String>) -> Finding {
    Finding { check, level: Level::Fine, text: text.into(), fix: None }
}

fn warning(check: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { check, level: Level::Warning, text: text.into(), fix: Some(fix.into()) }
}

fn fault(check: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { check, level: Level::Fault, text: text.into(), fix: Some(fix.into()) }
}

/// Runs the verb; returns the exit code.
pub(crate) fn run(start: &Start, format: Format) -> Result<u8, Failure> {
    // The caller's descriptors first: looking at the rest opens some.
    let mut findings = caller::look(start);
    findings.extend(daemon::look(start));
    findings.extend(hosts::look(start));
    findings.extend(outbox::look(start));
    findings.extend(push::look(start));
    findings.extend(log::look(start));
    findings.extend(machine::look(start));
    findings.extend(commands::look(start));
    if format.json {
        out_json(&(json(&findings) + "\n"))?;
    } else {
        out(&text(&findings))?;
    }
    Ok(u8::from(count(&findings, Level::Fault) > 0))
}

fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}

fn json(findings: &[Finding]) -> String {
    let checks: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check,
                "level": finding.level.code(),
                "text": finding.text,
                "fix": finding.fix,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "faults": count(findings, Level::Fault),
        "warnings": count(findings, Level::Warning),
        "checks": checks,
    })
    .to_string()
}

fn text(findings: &[Finding]) -> String {
    let look = Look::of_stdout();
    let indent = " ".repeat(LEVEL_COLUMNS + CHECK_COLUMNS);
    let columns = look.columns.unwrap_or(usize::MAX);
    let mut shown = String::new();
    for finding in findings {
        let level = look
            .paint(finding.level.tone(), &pad(finding.level.code(), LEVEL_COLUMNS, Align::Left));
        let check = pad(finding.check, CHECK_COLUMNS, Align::Left);
        let said = wrap(&printable(&finding.text, look.charset), &indent, columns, look.charset);
        for (number, line) in said.iter().enumerate() {
            let line = line.get(indent.len()..).unwrap_or(line);
            let before = if number == 0 { format!("{level}{check}") } else { indent.clone() };
            shown += &format!("{before}{line}\n");
        }
        // A fix is there to be copied, so it is never broken.
        if let Some(fix) = &finding.fix {
            shown += &format!("{indent}fix: {}\n", printable(fix, look.charset));
        }
    }
    let (faults, warnings) = (count(findings, Level::Fault), count(findings, Level::Warning));
    shown + &format!("\n{}, {}\n", counted(faults, "fault"), counted(warnings, "warning"))
}

fn counted(count: usize, word: &str) -> String {
    match count {
        0 => format!("no {word}s"),
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}
