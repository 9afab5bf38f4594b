//! Chrome's trace events of receipts, in JSON: complete events (`X`) in microseconds since 1970.
//!
//! A program is a process. Its calls that overlap stand on lines of their own, since the events of
//! a line must nest; a line is used again when its call has ended. Spans have lines of their own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Call, Lines, free_line, numbers, span_texts, texts};

/// Lines of spans, behind all those of calls that there may be; for each line of calls so many.
const SPANS: usize = 1_000_000;
const SPANS_A_LINE: usize = 1000;

/// A program that has been seen: its number, and when each of its lines of calls is free again, in
/// nanoseconds since 1970.
struct Program {
    number: usize,
    calls: Vec<u64>,
}

pub(super) fn trace(calls: &[Call]) -> Vec<u8> {
    let mut programs: BTreeMap<&str, Program> = BTreeMap::new();
    let mut events = Vec::new();
    for call in calls {
        let known = programs.len() + 1;
        let program = programs.entry(call.name).or_insert_with(|| {
            let named = json!({ "name": call.name });
            events.push(json!({
                "ph": "M", "name": "process_name", "pid": known, "args": named,
            }));
            Program { number: known, calls: Vec::new() }
        });
        let end = at_ns(call, call.receipt.total_us);
        let line = 1 + free_line(&mut program.calls, call.begun_ns, end);
        let how = if call.receipt.warm { "warm" } else { "cold" };
        let event = |line: usize, name: &str, (start_us, us): (u64, u64), notes| {
            #[expect(clippy::cast_precision_loss, reason = "the format counts in doubles")]
            let (at_us, us) = (call.begun_ns as f64 / 1000.0 + start_us as f64, us as f64);
            json!({
                "ph": "X", "name": name, "cat": how, "pid": program.number, "tid": line,
                "ts": at_us, "dur": us, "args": Map::from_iter(notes),
            })
        };
        events.push(event(line, call.name, (0, call.receipt.total_us), notes(call)));
        for phase in &call.receipt.phases {
            events.push(event(line, &phase.name, (phase.start_us, phase.us), Vec::new()));
        }
        let mut lines = Lines::default();
        for span in &call.spans.spans {
            let line = SPANS + line * SPANS_A_LINE + lines.line(span);
            let texts = span_texts(span).into_iter();
            let mut notes: Vec<_> =
                texts.map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
            // Not as `call`, which only a call's own event has.
            notes.push(("of_call".to_owned(), call.receipt.call.into()));
            events.push(event(line, span.what.name(), (span.start_us, span.us), notes));
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string().into_bytes()
}

fn notes(call: &Call) -> Vec<(String, Value)> {
    let texts = texts(call).into_iter().map(|(name, text)| (name, Value::from(text)));
    let numbers = numbers(call).into_iter();
    let numbers = numbers.map(|(name, number)| (name, Value::from(number)));
    texts.chain(numbers).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn at_ns(call: &Call, us: u64) -> u64 {
    call.begun_ns.saturating_add(us.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use hob_core::receipt::Receipt;

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
