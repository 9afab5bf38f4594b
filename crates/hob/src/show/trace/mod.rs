//! A call's phases as bars, and beneath each what it waited for.

use std::path::PathBuf;

use hob_core::receipt::{PhasePart, Receipt};
use hob_core::span::OWN_MAX;
use hob_daemon::recorder::spans::{Coverage, Held, Span, Spans, What};
use hob_os::ring::Unread;
use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::style::{Figures, Look, Tone};
use super::text::{Align, fit, pad, printable, width, wrap};
use super::units::{self, Micro};
use super::waterfall::{self, columns, drawn, head, joined, with_rows};

/// The columns of names, where no program has named spans, and the most.
const NAMES: usize = 9;
const NAMES_MAX: usize = 28;
/// The most spans of the program's own that are drawn, the first.
const OWN_SHOWN: usize = 64;
/// What stands before the name of a span.
const INDENT: &str = "  ";
/// How deep spans are shown to lie at most.
const DEPTH_SHOWN: usize = 6;
/// The fewest cells of a bar.
const CELLS_MIN: usize = 8;

/// The figure; with rings that could not be read.
#[must_use]
pub fn figure(
    receipt: &Receipt,
    (spans, unread): (&Spans, &[(PathBuf, Unread)]),
    clock: &Clock,
    look: &Look,
) -> String {
    let mut lines = head(receipt, clock, look);
    lines.push(String::new());
    lines.extend(rows(receipt, &spans.spans, look));
    let mut notes: Vec<String> = covered(spans.coverage).map(str::to_owned).into_iter().collect();
    notes.extend(dropped(spans));
    notes.extend(unread.iter().map(|(path, why)| {
        let path = printable(&path.display().to_string(), look.charset);
        format!("not read: {path}: {why}")
    }));
    if !notes.is_empty() {
        lines.push(String::new());
    }
    for note in notes {
        let wrapped = wrap(&note, INDENT, columns(look), look.charset);
        lines.extend(wrapped.iter().map(|line| look.paint(Tone::Dim, line)));
    }
    joined(&lines)
}

/// A receipt, and beneath its phases what the rings have of it.
#[must_use]
pub fn receipt(receipt: &Receipt, spans: &Spans, clock: &Clock, look: &Look) -> String {
    match spans.spans.is_empty() {
        true => waterfall::receipt(receipt, clock, look),
        false => with_rows(receipt, rows(receipt, &spans.spans, look), clock, look),
    }
}

/// What is to be said of what is missing.
fn covered(coverage: Coverage) -> Option<&'static str> {
    match coverage {
        Coverage::Whole => None,
        Coverage::Part => Some(
            "The older spans of this call were overwritten: what is beneath its phases is not all.",
        ),
        Coverage::Overwritten => Some(
            "The spans of this call were overwritten by newer ones: what it waited for is not known.",
        ),
        Coverage::NoRing => Some(
            "No spans are kept of this call: they are those of processes that run, or were killed. \
             What it waited for is not known.",
        ),
    }
}

/// What is to be said of spans that there was no room for.
pub(crate) fn dropped(spans: &Spans) -> Option<String> {
    let dropped = spans.dropped;
    (dropped > 0).then(|| {
        format!("The program made {dropped} more spans than the {OWN_MAX} that a call may have.")
    })
}

/// A row for each phase, and below it one for each span that began in it.
fn rows(receipt: &Receipt, spans: &[Span], look: &Look) -> Vec<String> {
    let ends = receipt.phases.iter().map(|phase| phase.start_us.saturating_add(phase.us));
    let whole_us = ends.max().unwrap_or(0).max(receipt.total_us);
    let time = |us: u64| units::duration(us, look.micro());
    let times = receipt.phases.iter().map(|phase| phase.us).chain(spans.iter().map(|it| it.us));
    let time_columns = times.map(|us| width(&time(us))).max().unwrap_or(0);
    let named = |span: &Span| printable(&indented(span), look.charset);
    let widest = spans.iter().map(|span| width(&named(span))).max().unwrap_or(0);
    let names = widest.clamp(NAMES, NAMES_MAX);
    let before = names + 2 + time_columns + 2;
    let cells = columns(look).saturating_sub(before).max(CELLS_MIN);
    let end = pad(&time(whole_us), cells - 1, Align::Right);
    let mut lines = match look.figures {
        Figures::Drawn => vec![look.paint(Tone::Dim, &format!("{}0{end}", " ".repeat(before)))],
        Figures::Told => Vec::new(),
    };
    let row = |name: &str, us: u64| {
        let name = printable(name, look.charset);
        let name = pad(&fit(&name, names, look.charset), names, Align::Left);
        format!("{name}  {}", pad(&time(us), time_columns, Align::Right))
    };
    let mut own = 0;
    for (number, phase) in receipt.phases.iter().enumerate() {
        lines.push(row(&phase.name, phase.us) + &drawn(phase, whole_us, cells, look));
        let beneath = spans.iter().filter(|span| place(&receipt.phases, span) == number);
        for span in beneath {
            let text = text(span, look.micro());
            let wrapped = wrap(&text, "", cells, look.charset);
            if let What::Own { .. } = span.what {
                own += 1;
                if own > OWN_SHOWN {
                    continue;
                }
                let PhasePart { name, .. } = phase;
                let part = PhasePart { name: name.clone(), start_us: span.start_us, us: span.us };
                lines.push(row(&indented(span), span.us) + &drawn(&part, whole_us, cells, look));
                let indent = " ".repeat(before);
                let notes = wrapped.iter().filter(|_| !text.is_empty());
                lines.extend(notes.map(|note| indent.clone() + &look.paint(Tone::Dim, note)));
                continue;
            }
            for (number, part) in wrapped.iter().enumerate() {
                let first = row(&indented(span), span.us);
                let start = if number == 0 { first } else { " ".repeat(before - 2) };
                lines.push(format!("{start}  {}", look.paint(Tone::Dim, part)));
            }
        }
    }
    if own > OWN_SHOWN {
        let more = own - OWN_SHOWN;
        let text = format!("{INDENT}and {more} more of the program's own: `--json` has them");
        lines.push(look.paint(Tone::Dim, &text));
    }
    lines
}

/// A span's name, as deep as it lies.
fn indented(span: &Span) -> String {
    let depth = if let What::Own { depth, .. } = span.what { depth.into() } else { 0 };
    format!("{}{}", INDENT.repeat(1 + depth.min(DEPTH_SHOWN)), span.what.name())
}

/// The phase in which a span began: the last one that did not begin after it. What came before all
/// is the first one's.
pub(crate) fn place(phases: &[PhasePart], span: &Span) -> usize {
    let begun = phases.iter().filter(|phase| phase.start_us <= span.start_us).count();
    // A phase that took no time has nothing beneath it, where the next one began with it.
    begun.saturating_sub(1)
}

/// What a span says besides its name.
pub(crate) fn text(span: &Span, micro: Micro) -> String {
    match &span.what {
        What::Waited { holders, of, then } => waited((holders, *of), then, micro),
        What::Forked { pid: 0 } => "a worker was forked for it".to_owned(),
        What::Forked { pid } => format!("worker {pid} was forked for it"),
        What::Own { is_open: true, .. } => "not ended before the call".to_owned(),
        What::Own { .. } => String::new(),
        What::Unknown(number) => format!("kind {number}, which another build of hob notes"),
    }
}

/// For whom a call waited.
fn waited((holders, of): (&[Held], u64), then: &[(u64, u64)], micro: Micro) -> String {
    let one = |held: &Held| match held {
        Held::Call(call, Some(us)) => {
            format!("call {call} ({})", units::duration(*us, micro))
        }
        Held::Call(call, None) => format!("call {call} (all the while)"),
        Held::Lane(lane) => format!("a sender with a worker of its own (lane {lane})"),
        Held::Starting(_) => "a worker that was not ready".to_owned(),
    };
    let named: Vec<_> = holders.iter().map(one).collect();
    let more = of.saturating_sub(holders.len() as u64);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let then: String = then
        .iter()
        .map(|(call, us)| format!(", then call {call} ({})", units::duration(*us, micro)))
        .collect();
    format!("for {}{more}{then}", named.join(", "))
}

/// The same for a program: an object, and a line end.
#[must_use]
pub fn json(receipt: &Receipt, spans: &Spans) -> String {
    let parts: Vec<Value> = spans.spans.iter().map(|span| part(receipt, span)).collect();
    let value = json!({
        "schema": "hob.trace/1", "call": receipt.call, "coverage": spans.coverage.code(),
        "spans": parts, "dropped": spans.dropped, "receipt": receipt,
    });
    format!("{value}\n")
}

fn part(receipt: &Receipt, span: &Span) -> Value {
    let phase = receipt.phases.get(place(&receipt.phases, span));
    let mut part = Map::new();
    part.insert("name".to_owned(), span.what.name().into());
    part.insert("phase".to_owned(), phase.map(|phase| phase.name.clone()).into());
    part.insert("start_us".to_owned(), span.start_us.into());
    part.insert("us".to_owned(), span.us.into());
    match &span.what {
        What::Waited { holders, of, then } => {
            let held = |held: &Held| match held {
                Held::Call(call, us) => json!({ "call": call, "us": us.unwrap_or(span.us) }),
                Held::Lane(lane) => json!({ "lane": lane }),
                Held::Starting(worker) => json!({ "starting": worker }),
            };
            part.insert("for".to_owned(), holders.iter().map(held).collect());
            part.insert("of".to_owned(), (*of).into());
            let then = then.iter().map(|(call, us)| json!({ "call": call, "us": us }));
            part.insert("then".to_owned(), then.collect());
        }
        What::Forked { pid } => _ = part.insert("pid".to_owned(), (*pid).into()),
        What::Own { number, parent, depth, is_open, .. } => {
            part.insert("own".to_owned(), (*number).into());
            part.insert("parent".to_owned(), (*parent).into());
            part.insert("depth".to_owned(), (*depth).into());
            part.insert("open".to_owned(), (*is_open).into());
        }
        What::Unknown(kind) => _ = part.insert("kind".to_owned(), (*kind).into()),
    }
    Value::Object(part)
}
