//! Chrome's trace events of receipts, in JSON: complete events (`X`) in microseconds since 1970.
//!
//! A program is a process. Its calls that overlap stand on lines of their own, since the events of
//! a line must nest; a line is used again when its call has ended.

use std::collections::BTreeMap;

use hob_core::receipt::Receipt;
use hob_core::receipt::naming::{Naming, distinct};
use serde_json::{Map, Value, json};

use super::{begun_ns, numbers, texts};

/// A program that has been seen: its number, and when each of its lines is free again.
struct Program {
    number: usize,
    free_us: Vec<f64>,
}

pub(super) fn trace(receipts: &[&Receipt]) -> Vec<u8> {
    let namings: Vec<_> = receipts.iter().map(|receipt| Naming::from(&receipt.program)).collect();
    let names = distinct(&namings);
    let mut programs: BTreeMap<&str, Program> = BTreeMap::new();
    let mut events = Vec::new();
    for (receipt, name) in receipts.iter().zip(&names) {
        let Some(begun_ns) = begun_ns(receipt) else { continue };
        let known = programs.len() + 1;
        let program =
            programs.entry(name).or_insert_with(|| Program { number: known, free_us: Vec::new() });
        if program.free_us.is_empty() {
            events.push(json!({
                "ph": "M", "name": "process_name", "pid": program.number,
                "args": { "name": name },
            }));
        }
        #[expect(clippy::cast_precision_loss, reason = "the format counts in doubles")]
        let (at_us, took_us) = (begun_ns as f64 / 1000.0, receipt.total_us as f64);
        let line = program.free_us.iter().position(|free| *free <= at_us);
        let line = line.unwrap_or_else(|| {
            program.free_us.push(0.0);
            program.free_us.len() - 1
        });
        program.free_us[line] = at_us + took_us;
        let how = if receipt.warm { "warm" } else { "cold" };
        let event = |name: &str, at_us: f64, us: f64, notes: Map<String, Value>| {
            json!({
                "ph": "X", "name": name, "cat": how, "pid": program.number, "tid": line + 1,
                "ts": at_us, "dur": us, "args": notes,
            })
        };
        events.push(event(name, at_us, took_us, notes(receipt)));
        for phase in &receipt.phases {
            #[expect(clippy::cast_precision_loss, reason = "the format counts in doubles")]
            let (start_us, us) = (phase.start_us as f64, phase.us as f64);
            events.push(event(&phase.name, at_us + start_us, us, Map::new()));
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string().into_bytes()
}

fn notes(receipt: &Receipt) -> Map<String, Value> {
    let texts = texts(receipt).into_iter().map(|(name, text)| (name, Value::from(text)));
    let numbers = numbers(receipt).into_iter().map(|(name, number)| (name, Value::from(number)));
    texts.chain(numbers).map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::format::tests::receipt;
    use super::*;

    fn events(receipts: &[&Receipt]) -> Vec<Value> {
        let value: Value = serde_json::from_slice(&trace(receipts)).unwrap();
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
    fn names_of_any_characters_are_escaped_and_what_has_no_time_is_left_out() {
        let mut odd = receipt(1);
        odd.program.name = "a\"b\\\n\u{1}</script>".to_owned();
        odd.program.target.clear();
        let events = events(&[&odd]);
        assert_eq!(events[0]["args"]["name"], odd.program.name);
        odd.at = "yesterday".to_owned();
        assert_eq!(trace(&[&odd]), br#"{"displayTimeUnit":"ms","traceEvents":[]}"#);
    }
}
