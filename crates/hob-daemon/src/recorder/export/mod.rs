//! Receipts and their spans in other programs' formats. An export is a pure function from receipts
//! and copies of rings to bytes, and has nothing that these have not.
//!
//! A format is a file here, and a row of [`Format`].

#[cfg(any(test, feature = "measure"))]
pub(crate) mod measured;
mod otlp;
mod perfetto;
mod protobuf;

use hob_core::receipt::Receipt;
use hob_core::receipt::naming::{Naming, distinct};
use serde::Serialize;

use super::format::begun_ns;
use super::spans::{Held, Rings, Span, Spans, What};

/// A foreign format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What `ui.perfetto.dev` opens: a track for each program, a slice for each call and phase.
    Perfetto,
    /// The trace of OTLP/HTTP in JSON: a span for each call, and below it one for each phase.
    Otlp,
}

/// All formats, with their names as they are typed.
const FORMATS: [(&str, Format); 2] = [("perfetto", Format::Perfetto), ("otlp", Format::Otlp)];

impl Format {
    /// The names of all, as they are typed.
    pub const NAMES: [&'static str; 2] = [FORMATS[0].0, FORMATS[1].0];

    /// The format of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Format> {
        FORMATS.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// What to do with the file.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Format::Perfetto => "open it at https://ui.perfetto.dev, which keeps it in the browser",
            Format::Otlp => "post it to a collector's /v1/traces as application/json",
        }
    }

    /// The receipts in this format, in the order given, with what the rings have of them. A receipt
    /// whose moment cannot be read is left out.
    #[must_use]
    pub fn bytes(self, receipts: &[&Receipt], rings: &Rings) -> Vec<u8> {
        let namings: Vec<_> =
            receipts.iter().map(|receipt| Naming::from(&receipt.program)).collect();
        let names = distinct(&namings);
        let calls = receipts.iter().zip(&names).filter_map(|(receipt, name)| {
            Some(Call { receipt, name, begun_ns: begun_ns(receipt)?, spans: rings.of(receipt) })
        });
        let calls: Vec<_> = calls.collect();
        match self {
            Format::Perfetto => perfetto::trace(&calls),
            Format::Otlp => otlp::trace(&calls),
        }
    }
}

/// A call, as all formats have it.
struct Call<'a> {
    receipt: &'a Receipt,
    /// What its program is called among the others.
    name: &'a str,
    begun_ns: u64,
    spans: Spans,
}

/// Lines of a viewer for the spans of one call: one lies within another where it was begun in that,
/// and otherwise nothing overlaps.
#[derive(Default)]
struct Lines {
    /// What is open on each, the innermost last: until when, and its number, if it is the program's.
    open: Vec<Vec<(u64, Option<u8>)>>,
}

impl Lines {
    /// The line on which this is drawn. Spans come in the order of their begins.
    fn line(&mut self, span: &Span) -> usize {
        let (begin, end) = (span.start_us, span.start_us.saturating_add(span.us));
        let (number, parent) = match span.what {
            What::Own { number, parent, .. } => (Some(number), parent),
            What::Waited { .. } | What::Forked { .. } | What::Unknown(_) => (None, None),
        };
        for open in &mut self.open {
            while open.pop_if(|(until, _)| *until <= begin).is_some() {}
        }
        let is_in = |open: &Vec<(u64, Option<u8>)>| {
            let inner = open.last();
            inner.is_some_and(|(until, of)| of.is_some() && *of == parent && end <= *until)
        };
        let empty = || self.open.iter().position(Vec::is_empty);
        let line = self.open.iter().position(is_in).or_else(empty).unwrap_or_else(|| {
            self.open.push(Vec::new());
            self.open.len() - 1
        });
        self.open[line].push((end, number));
        line
    }
}

/// Adds a value as JSON.
fn item(out: &mut Vec<u8>, value: &impl Serialize) {
    // A vector takes every write, and nothing here is what JSON cannot say.
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "{written:?}");
}

fn texts<'a>(call: &Call<'a>) -> Vec<(&'static str, &'a str)> {
    let receipt = call.receipt;
    let mut texts = vec![
        ("spans", call.spans.coverage.code()),
        ("reason", receipt.reason.as_str()),
        ("isolation", receipt.isolation.as_str()),
        ("outcome", receipt.outcome.kind.as_str()),
        ("target", receipt.program.target.as_str()),
    ];
    texts.extend(receipt.trace.as_ref().map(|trace| ("trace", trace.id.as_str())));
    texts.extend(receipt.directory.as_deref().map(|directory| ("directory", directory)));
    texts
}

fn numbers(call: &Call) -> Vec<(&'static str, u64)> {
    let receipt = call.receipt;
    let mut numbers = vec![("call", receipt.call), ("caller", receipt.caller_pid.into())];
    numbers.extend(receipt.outcome.code.map(|code| ("code", code.into())));
    numbers.extend(receipt.outcome.signal.map(|signal| ("signal", signal.into())));
    numbers.extend(receipt.gain.map(|gain| ("saved_us", gain.saved_us)));
    numbers.extend((call.spans.dropped > 0).then_some(("spans_dropped", call.spans.dropped)));
    numbers
}

/// What a span says besides its name.
fn span_texts(span: &Span) -> Vec<(&'static str, String)> {
    match &span.what {
        What::Waited { holders, of, then } => {
            let held = |held: &Held| match held {
                Held::Call(call, _) => format!("call {call}"),
                Held::Lane(lane) => format!("lane {lane}"),
                Held::Starting(_) => "a worker that was not ready".to_owned(),
            };
            let holders: Vec<_> = holders.iter().map(held).collect();
            let then: Vec<_> = then.iter().map(|(call, _)| format!("call {call}")).collect();
            let mut texts = vec![("for", holders.join(", ")), ("of", of.to_string())];
            texts.extend((!then.is_empty()).then(|| ("then", then.join(", "))));
            texts
        }
        What::Forked { pid } => vec![("worker", pid.to_string())],
        What::Own { is_open: true, .. } => vec![("ended", "not before the call".to_owned())],
        What::Own { .. } => Vec::new(),
        What::Unknown(kind) => vec![("kind", kind.to_string())],
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::receipt;
    use super::super::spans::Coverage;
    use super::*;

    /// Two spans of a call that overlap, one of its program's that begins when the first has ended, one
    /// within that, and one beside them.
    pub(super) fn spans() -> Spans {
        let waited = What::Waited { holders: vec![Held::Call(7, None)], of: 1, then: Vec::new() };
        let spans = vec![
            Span { what: waited, start_us: 10, us: 40 },
            Span { what: What::Forked { pid: 77 }, start_us: 20, us: 60 },
            Span {
                what: What::Own {
                    name: "parse".to_owned(),
                    number: 0,
                    parent: None,
                    depth: 0,
                    is_open: false,
                },
                start_us: 50,
                us: 30,
            },
            Span {
                what: What::Own {
                    name: "lex".to_owned(),
                    number: 1,
                    parent: Some(0),
                    depth: 1,
                    is_open: true,
                },
                start_us: 50,
                us: 10,
            },
            Span { what: What::Unknown(700), start_us: 50, us: 0 },
        ];
        Spans { coverage: Coverage::Part, spans, dropped: 3 }
    }

    #[test]
    fn a_span_lies_within_the_one_it_was_begun_in_and_beside_all_others() {
        let own = |number, parent, (start_us, end_us): (u64, u64)| {
            let what = What::Own { name: String::new(), number, parent, depth: 0, is_open: false };
            Span { what, start_us, us: end_us - start_us }
        };
        let other = Span { what: What::Forked { pid: 1 }, start_us: 15, us: 5 };
        let spans = [
            (own(0, None, (0, 100)), 0),
            (own(1, Some(0), (0, 50)), 0),
            (own(2, Some(1), (10, 20)), 0),
            // Of another thread, in whose time others of the first one are.
            (own(3, None, (10, 60)), 1),
            (other, 2),
            (own(4, Some(3), (20, 60)), 1),
            // Begun in what has ended by then, or in what ends before it.
            (own(5, Some(1), (55, 56)), 2),
            (own(6, Some(0), (60, 101)), 1),
            (own(7, Some(0), (60, 100)), 0),
        ];
        let mut lines = Lines::default();
        for (span, line) in &spans {
            assert_eq!(lines.line(span), *line, "{span:?}");
        }
    }

    #[test]
    fn what_has_no_time_is_left_out() {
        let mut odd = receipt(1);
        odd.at = "yesterday".to_owned();
        for format in [Format::Perfetto, Format::Otlp] {
            let none = format.bytes(&[], &Rings::default());
            assert_eq!(format.bytes(&[&odd], &Rings::default()), none);
        }
    }
}
