//! The trace of OTLP/HTTP in JSON: ids in hexadecimal, times as strings of nanoseconds since 1970.
//!
//! A program is a resource (`service.name`), a call a span, its phases and hob's own spans are spans
//! below that. Ids are made from the receipt, so that an export of the same receipts has the same ones.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::spans::What;
use super::{Call, numbers, span_texts, texts};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u32 = 1;
/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const OK: u32 = 1;
const ERROR: u32 = 2;

pub(super) fn trace(calls: &[Call]) -> Vec<u8> {
    let mut programs: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for call in calls {
        spans(call, programs.entry(call.name).or_default());
    }
    let resources = programs.into_iter().map(|(name, spans)| {
        json!({
            "resource": { "attributes": [text("service.name", name)] },
            "scopeSpans": [{ "scope": { "name": "hob" }, "spans": spans }],
        })
    });
    json!({ "resourceSpans": resources.collect::<Vec<_>>() }).to_string().into_bytes()
}

/// The spans of one call.
fn spans(call: &Call, spans: &mut Vec<Value>) {
    let (receipt, name) = (call.receipt, call.name);
    let identity = format!("{} {} {}", receipt.at, receipt.call, receipt.caller_pid);
    // A call in its caller's trace lies below its caller's span.
    let (trace, own) = match &receipt.trace {
        Some(trace) => (trace.id.clone(), trace.span.clone()),
        None => (
            hexadecimal(&[digest(&identity, 1), digest(&identity, 2)]),
            hexadecimal(&[digest(&identity, 3)]),
        ),
    };
    let at = |us: u64| call.begun_ns.saturating_add(us.saturating_mul(1000)).to_string();
    let mut attributes: Vec<Value> =
        texts(call).iter().map(|(key, value)| text(&format!("hob.{key}"), value)).collect();
    attributes.extend(numbers(call).into_iter().map(|(key, value)| {
        json!({ "key": format!("hob.{key}"), "value": { "intValue": value.to_string() } })
    }));
    attributes.push(json!({ "key": "hob.warm", "value": { "boolValue": receipt.warm } }));
    let went_well = match receipt.outcome.kind.as_str() {
        "exited" => receipt.outcome.code == Some(0),
        kind => kind == "answered",
    };
    let mut span = json!({
        "traceId": trace, "spanId": own, "name": name, "kind": INTERNAL,
        "startTimeUnixNano": at(0), "endTimeUnixNano": at(receipt.total_us),
        "attributes": attributes,
        "status": { "code": if went_well { OK } else { ERROR } },
    });
    if let Some(parent) = receipt.trace.as_ref().and_then(|trace| trace.parent.as_deref()) {
        span["parentSpanId"] = parent.into();
    }
    spans.push(span);
    for (number, phase) in (4_u64..).zip(&receipt.phases) {
        spans.push(json!({
            "traceId": trace, "spanId": hexadecimal(&[digest(&identity, number)]),
            "parentSpanId": own, "name": phase.name, "kind": INTERNAL,
            "startTimeUnixNano": at(phase.start_us),
            "endTimeUnixNano": at(phase.start_us.saturating_add(phase.us)),
        }));
    }
    let numbered = (4 + receipt.phases.len() as u64..).zip(&call.spans.spans);
    let numbered = numbered.map(|(at, span)| (hexadecimal(&[digest(&identity, at)]), span));
    let numbered: Vec<_> = numbered.collect();
    // A span of the program's own lies in the one that it was begun in; all others in the call.
    let own_spans: BTreeMap<u8, &String> = numbered
        .iter()
        .filter_map(|(id, span)| match span.what {
            What::Own { number, .. } => Some((number, id)),
            What::Waited { .. } | What::Forked { .. } | What::Unknown(_) => None,
        })
        .collect();
    for (id, span) in &numbered {
        let around = match span.what {
            What::Own { parent, .. } => parent.and_then(|parent| own_spans.get(&parent)),
            What::Waited { .. } | What::Forked { .. } | What::Unknown(_) => None,
        };
        let parent = around.map_or(&own, |parent| *parent);
        let attributes = span_texts(span);
        let attributes = attributes.iter().map(|(key, value)| text(&format!("hob.{key}"), value));
        spans.push(json!({
            "traceId": trace, "spanId": id, "parentSpanId": parent, "name": span.what.name(), "kind": INTERNAL,
            "startTimeUnixNano": at(span.start_us),
            "endTimeUnixNano": at(span.start_us.saturating_add(span.us)),
            "attributes": attributes.collect::<Vec<_>>(),
        }));
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// FNV-1a over a text and a number. Never 0, which stands for no id.
fn digest(text: &str, number: u64) -> u64 {
    let bytes = text.bytes().chain(number.to_le_bytes());
    let digest = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    digest.max(1)
}

fn hexadecimal(words: &[u64]) -> String {
    words.iter().map(|word| format!("{word:016x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hob_core::receipt::Receipt;
    use hob_core::receipt::trace::TracePart;

    use super::super::super::format::begun_ns;
    use super::super::super::format::tests::receipt;
    use super::*;

    fn spans(receipts: &[&Receipt]) -> Vec<Value> {
        let calls = receipts.iter().map(|receipt| {
            let (begun_ns, spans) = (begun_ns(receipt).unwrap(), super::super::tests::spans());
            Call { receipt, name: "black", begun_ns, spans }
        });
        let calls: Vec<_> = calls.collect();
        let value: Value = serde_json::from_slice(&trace(&calls)).unwrap();
        let resources = value["resourceSpans"].as_array().unwrap();
        let spans = resources.iter().map(|one| one["scopeSpans"][0]["spans"].as_array().unwrap());
        spans.flatten().cloned().collect()
    }

    #[test]
    fn a_call_is_a_span_with_its_phases_below_and_ids_are_the_same_each_time() {
        let (one, two) = (receipt(1), receipt(2));
        let found = spans(&[&one, &two]);
        assert_eq!(found, spans(&[&one, &two]));
        let ids: BTreeSet<_> = found.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), found.len(), "no id twice");
        let calls: Vec<_> = found.iter().filter(|span| span["parentSpanId"].is_null()).collect();
        assert_eq!(calls.len(), 2);
        let named = |name: &str| found.iter().find(|span| span["name"] == name).unwrap();
        assert_eq!(named("lex")["parentSpanId"], named("parse")["spanId"]);
        assert_eq!(named("parse")["parentSpanId"], calls[0]["spanId"]);
        for span in found.iter().filter(|span| !span["parentSpanId"].is_null()) {
            let parent = found.iter().find(|call| call["spanId"] == span["parentSpanId"]).unwrap();
            assert_eq!(parent["traceId"], span["traceId"]);
            let nano = |of: &Value, key: &str| of[key].as_str().unwrap().parse::<u64>().unwrap();
            assert!(nano(span, "startTimeUnixNano") >= nano(parent, "startTimeUnixNano"));
            assert!(nano(span, "endTimeUnixNano") <= nano(parent, "endTimeUnixNano"));
        }
    }

    #[test]
    fn a_call_in_its_callers_trace_lies_below_its_callers_span() {
        let mut one = receipt(1);
        let text = |text: &str| text.to_owned();
        let trace = TracePart { id: text("4bf9"), parent: Some(text("00f0")), span: text("1234") };
        one.trace = Some(trace);
        let found = spans(&[&one]);
        assert!(found.iter().all(|span| span["traceId"] == "4bf9"));
        assert_eq!(
            (&found[0]["spanId"], &found[0]["parentSpanId"]),
            (&json!("1234"), &json!("00f0"))
        );
        assert_eq!(found[1]["parentSpanId"], "1234");
    }

    #[test]
    fn what_did_not_end_well_is_an_error() {
        let mut failed = receipt(1);
        assert_eq!(spans(&[&failed])[0]["status"]["code"], OK);
        failed.outcome.code = Some(3);
        assert_eq!(spans(&[&failed])[0]["status"]["code"], ERROR);
    }
}
