//! Chrome's trace events of receipts, in JSON: complete events (`X`) in microseconds since 1970.
//!
//! A program is a process. Its calls that overlap stand on lines of their own, since the events of
//! a line must nest; a line is used again when its call has ended. Spans have lines of their own.
//! Each event is written at once, as in `otlp`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{Call, Lines, free_line, item, numbers, span_texts, texts};

/// Lines of spans, behind all those of calls that there may be; for each line of calls so many.
const SPANS: usize = 1_000_000;
const SPANS_A_LINE: usize = 1000;

/// A program that has been seen: its number, and when each of its lines of calls is free again, in
/// nanoseconds since 1970.
struct Program {
    number: usize,
    calls: Vec<u64>,
}

/// An event with a begin and an end.
#[derive(Serialize)]
struct Event<'a> {
    ph: &'static str,
    name: &'a str,
    cat: &'static str,
    pid: usize,
    tid: usize,
    ts: f64,
    dur: f64,
    args: Notes<'a>,
}

/// What a program is called.
#[derive(Serialize)]
struct Named<'a> {
    ph: &'static str,
    name: &'static str,
    pid: usize,
    args: Name<'a>,
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

/// An object.
struct Notes<'a>(Vec<(&'static str, Note<'a>)>);

#[derive(Serialize)]
#[serde(untagged)]
enum Note<'a> {
    Text(&'a str),
    Number(u64),
}

impl Serialize for Notes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, note)| (name, note)))
    }
}

pub(super) fn trace(calls: &[Call]) -> Vec<u8> {
    let mut programs: BTreeMap<&str, Program> = BTreeMap::new();
    let mut out = b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[".to_vec();
    for call in calls {
        let known = programs.len() + 1;
        let program = programs.entry(call.name).or_insert_with(|| {
            let args = Name { name: call.name };
            separate(&mut out);
            item(&mut out, &Named { ph: "M", name: "process_name", pid: known, args });
            Program { number: known, calls: Vec::new() }
        });
        events(call, program, &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

/// The events of one call.
fn events(call: &Call, program: &mut Program, out: &mut Vec<u8>) {
    let receipt = call.receipt;
    let end = at_ns(call, receipt.total_us);
    let line = 1 + free_line(&mut program.calls, call.begun_ns, end);
    let own = texts(call).into_iter().map(|(name, text)| (name, Note::Text(text)));
    let numbers = numbers(call).into_iter().map(|(name, number)| (name, Note::Number(number)));
    let notes = Notes(own.chain(numbers).collect());
    let of = (call, program.number);
    event(of, (line, call.name), (0, receipt.total_us), notes, out);
    for phase in &receipt.phases {
        event(of, (line, &phase.name), (phase.start_us, phase.us), Notes(Vec::new()), out);
    }
    let mut lines = Lines::default();
    for span in &call.spans.spans {
        let line = SPANS + line * SPANS_A_LINE + lines.line(span);
        let texts = span_texts(span);
        let notes = texts.iter().map(|(name, text)| (*name, Note::Text(text)));
        // Not as `call`, which only a call's own event has.
        let number = std::iter::once(("of_call", Note::Number(receipt.call)));
        let notes = Notes(notes.chain(number).collect());
        event(of, (line, span.what.name()), (span.start_us, span.us), notes, out);
    }
}

/// One event of a call of this process, on a line.
fn event(
    (call, pid): (&Call, usize),
    (tid, name): (usize, &str),
    (start_us, us): (u64, u64),
    args: Notes<'_>,
    out: &mut Vec<u8>,
) {
    #[expect(clippy::cast_precision_loss, reason = "the format counts in doubles")]
    let (ts, dur) = (call.begun_ns as f64 / 1000.0 + start_us as f64, us as f64);
    let cat = if call.receipt.warm { "warm" } else { "cold" };
    separate(out);
    item(out, &Event { ph: "X", name, cat, pid, tid, ts, dur, args });
}

/// A comma, but before the first.
fn separate(out: &mut Vec<u8>) {
    if out.last() != Some(&b'[') {
        out.push(b',');
    }
}

fn at_ns(call: &Call, us: u64) -> u64 {
    call.begun_ns.saturating_add(us.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use hob_core::receipt::Receipt;
    use serde_json::Value;

    use super::super::super::format::begun_ns;
    use super::super::super::format::tests::receipt;
    use super::super::super::spans::Rings;
    use super::super::Format;
    use super::super::tests::spans;
    use super::*;

    fn events(receipts: &[&Receipt]) -> Vec<Value> {
        read(&Format::Chrome.bytes(receipts, &Rings::default()))
    }

    fn read(trace: &[u8]) -> Vec<Value> {
        let value: Value = serde_json::from_slice(trace).unwrap();
        value["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn calls_at_the_same_time_stand_on_two_lines_and_one_after_the_other_on_one() {
        let mut later = receipt(3);
        later.at = "2037-01-01T00:00:00.000000Z".to_owned();
        let (one, two) = (receipt(1), receipt(2));
        let events = events(&[&one, &two, &later]);
        let calls = events.iter().filter(|event| event["args"]["call"].is_number());
        let lines: Vec<_> = calls.map(|event| event["tid"].as_u64().unwrap()).collect();
        assert_eq!(lines, [1, 2, 1]);
        assert_eq!(events.iter().filter(|event| event["ph"] == "M").count(), 1);
    }

    #[test]
    fn names_of_any_characters_are_escaped() {
        let mut odd = receipt(1);
        odd.program.name = "a\"b\\\n\u{1}</script>".to_owned();
        odd.program.target.clear();
        let events = events(&[&odd]);
        assert_eq!(events[0]["args"]["name"], odd.program.name);
    }

    #[test]
    fn spans_that_overlap_stand_on_lines_of_their_own() {
        let receipt = receipt(1);
        let begun_ns = begun_ns(&receipt).unwrap();
        let call = Call { receipt: &receipt, name: "black", begun_ns, spans: spans() };
        let events = read(&trace(&[call]));
        let spans = events.iter().filter(|event| event["args"]["of_call"] == 1);
        let spans: Vec<_> = spans.map(|event| (event["name"].as_str(), &event["tid"])).collect();
        let first = SPANS + SPANS_A_LINE;
        let [first, second, third] = [first, first + 1, first + 2].map(Value::from);
        let expected = [
            ("waited", &first),
            ("fork", &second),
            ("parse", &first),
            ("lex", &first),
            ("?", &third),
        ];
        assert_eq!(spans, expected.map(|(name, line)| (Some(name), line)));
    }
}
