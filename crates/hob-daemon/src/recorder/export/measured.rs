//! What exports cost, for the bench: calls with all phases and spans of their own, made up.
//!
//! Not part of hob: built for tests and with the feature `measure`.

use std::time::{Duration, Instant};

use hob_core::ids::CallId;
use hob_core::phase::Mark;
use hob_core::receipt::Receipt;
use hob_core::span::{Own, Record};
use hob_os::ring::{Copied, Pair};
use serde_json::json;

use super::super::format::moment;
use super::super::spans::Rings;
use super::Format;

/// When all begins, by the wall clock, in nanoseconds.
const REAL: u64 = 1_764_000_000_000_000_000;
/// Between two calls.
const APART: u64 = 1_000_000;
const PHASES: [&str; 7] = ["connect", "plan", "queue", "give", "main", "settle", "end"];
const PROGRAMS: [&str; 3] = ["black", "yamllint", "hello.py"];

/// The formats whose cost is measured, by their names.
pub const EXPORTS: [&str; 2] = Format::NAMES;

/// Calls with all phases, and their spans, as exports have them.
#[derive(Debug)]
pub struct Exported {
    receipts: Vec<Receipt>,
    rings: Rings,
}

impl Exported {
    /// So many calls, with so many spans together: each call, its phases, and its program's own.
    #[must_use]
    pub fn new(calls: u64, spans: u64) -> Exported {
        let own = (spans / calls).saturating_sub(1 + PHASES.len() as u64);
        let pair = |ns: u64| Pair { stamp: ns, monotonic_ns: ns, real_ns: REAL + ns };
        let (mut receipts, mut records) = (Vec::new(), Vec::new());
        for (number, program) in (1..=calls).zip(PROGRAMS.iter().cycle()) {
            let (call, at) = (CallId(number), number * APART);
            let mut note = |record: Record| {
                let [a, b, c] = record.words();
                records.push([at, a, b, c]);
            };
            note(Record::edge(call, Mark::Received, at));
            for span in 0..u8::try_from(own).unwrap_or(u8::MAX) {
                let (parent, start_ns) = (span.checked_sub(1), at + u64::from(span) * 1000);
                let name = format!("span {span}").into_bytes();
                let own = Own { number: span, parent, start_ns, ns: 1000, is_open: false, name };
                own.records(call).for_each(&mut note);
            }
            receipts.push(receipt(number, program, REAL + at));
        }
        let (written, lost) = (records.len() as u64, 0);
        let (first, pairs) = (pair(0), vec![pair(APART), pair((calls + 1) * APART)]);
        let rings = Rings::recorded(&[Copied { process: 1, first, pairs, records, written, lost }]);
        Exported { receipts, rings }
    }

    /// How long one export takes.
    ///
    /// # Panics
    /// When there is no such format.
    #[must_use]
    pub fn export(&self, name: &str) -> Duration {
        let format = Format::of(name).expect("a format of EXPORTS");
        let receipts: Vec<_> = self.receipts.iter().collect();
        let start = Instant::now();
        let bytes = format.bytes(&receipts, &self.rings);
        let took = start.elapsed();
        assert!(bytes.len() > self.receipts.len(), "an export has all calls");
        took
    }
}

/// A warm call.
fn receipt(number: u64, program: &str, at_ns: u64) -> Receipt {
    let phases = (0_u64..).zip(PHASES);
    let phases = phases.map(|(at, name)| json!({ "name": name, "start_us": at * 50, "us": 50 }));
    let phases: Vec<_> = phases.collect();
    let at = jiff::Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or_default();
    let receipt = json!({
        "schema": hob_core::receipt::SCHEMA, "call": number, "at": moment(at),
        "program": {
            "id": "c0ffee", "name": program, "target": format!("/srv/venv/bin/{program}"),
            "runtime": "exec", "arguments": 2,
        },
        "caller_pid": 4711, "directory": "/srv/app", "warm": true, "reason": "copy-ready",
        "isolation": "fork", "outcome": { "kind": "exited", "code": 0 }, "phases": phases,
        "total_us": 50 * PHASES.len(),
    });
    serde_json::from_value(receipt).unwrap_or_else(|error| panic!("a receipt: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_as_many_spans_as_are_asked_for() {
        let exported = Exported::new(8, 8 * 16);
        let receipts: Vec<_> = exported.receipts.iter().collect();
        let otlp = Format::Otlp.bytes(&receipts, &exported.rings);
        let count = |bytes: &[u8], word: &str| String::from_utf8_lossy(bytes).matches(word).count();
        assert_eq!(count(&otlp, "\"spanId\""), 8 * 16);
        assert!(EXPORTS.iter().all(|name| exported.export(name) > Duration::ZERO));
    }
}
