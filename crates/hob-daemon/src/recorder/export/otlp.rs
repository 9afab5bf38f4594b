//! The trace of OTLP/HTTP in JSON: ids in hexadecimal, times as strings of nanoseconds since 1970.
//!
//! A program is a resource (`service.name`), a call a span, its phases and hob's own spans are spans
//! below that. Ids are made from the receipt, so that an export of the same receipts has the same ones.
//! Each span is written at once: a tree of all of them would take ten times as long.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use super::super::spans::What;
use super::{Call, item, numbers, span_texts, texts};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u32 = 1;
/// `STATUS_CODE_OK` and `STATUS_CODE_ERROR`.
const OK: u32 = 1;
const ERROR: u32 = 2;

/// A span.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span<'a> {
    trace_id: Id<'a>,
    span_id: Id<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<Id<'a>>,
    name: &'a str,
    kind: u32,
    start_time_unix_nano: AsText<u64>,
    end_time_unix_nano: AsText<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<Attribute<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

#[derive(Serialize)]
struct Status {
    code: u32,
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: AsText<Key>,
    value: Value<'a>,
}

#[derive(Serialize)]
enum Value<'a> {
    #[serde(rename = "stringValue")]
    Text(&'a str),
    #[serde(rename = "intValue")]
    Number(AsText<u64>),
    #[serde(rename = "boolValue")]
    Flag(bool),
}

/// An id: its caller's, or one that was made of its receipt.
#[derive(Clone, Copy)]
enum Id<'a> {
    Said(&'a str),
    Trace([u64; 2]),
    Span(u64),
}

/// The name of an attribute.
enum Key {
    Plain(&'static str),
    Ours(&'static str),
}

/// What JSON has as a string.
struct AsText<T>(T);

impl<T: fmt::Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Plain(name) => f.write_str(name),
            Key::Ours(name) => write!(f, "hob.{name}"),
        }
    }
}

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::Said(id) => serializer.serialize_str(id),
            Id::Trace([high, low]) => {
                serializer.collect_str(&format_args!("{high:016x}{low:016x}"))
            }
            Id::Span(id) => serializer.collect_str(&format_args!("{id:016x}")),
        }
    }
}

#[derive(Serialize)]
struct Resource<'a> {
    attributes: [Attribute<'a>; 1],
}

pub(super) fn trace(calls: &[Call]) -> Vec<u8> {
    let mut programs: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for call in calls {
        spans(call, programs.entry(call.name).or_default());
    }
    let mut out = b"{\"resourceSpans\":[".to_vec();
    for (number, (name, mut spans)) in programs.into_iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"{\"resource\":" } else { b",{\"resource\":" });
        let key = AsText(Key::Plain("service.name"));
        let value = Value::Text(name);
        item(&mut out, &Resource { attributes: [Attribute { key, value }] });
        out.extend_from_slice(b",\"scopeSpans\":[{\"scope\":{\"name\":\"hob\"},\"spans\":[");
        out.append(&mut spans);
        out.extend_from_slice(b"]}]}");
    }
    out.extend_from_slice(b"]}");
    out
}

/// The spans of one call, with a comma between two.
fn spans(call: &Call, out: &mut Vec<u8>) {
    let (receipt, name) = (call.receipt, call.name);
    let identity = Identity::of(&format!("{} {} {}", receipt.at, receipt.call, receipt.caller_pid));
    // A call in its caller's trace lies below its caller's span.
    let (trace, own) = match &receipt.trace {
        Some(trace) => (Id::Said(&trace.id), Id::Said(&trace.span)),
        None => (Id::Trace([identity.id(1), identity.id(2)]), Id::Span(identity.id(3))),
    };
    let parent = receipt.trace.as_ref().and_then(|trace| trace.parent.as_deref()).map(Id::Said);
    let at = |us: u64| AsText(call.begun_ns.saturating_add(us.saturating_mul(1000)));
    let span = |id, parent, name, (start_us, us): (u64, u64)| Span {
        trace_id: trace,
        span_id: id,
        parent_span_id: parent,
        name,
        kind: INTERNAL,
        start_time_unix_nano: at(start_us),
        end_time_unix_nano: at(start_us.saturating_add(us)),
        attributes: Vec::new(),
        status: None,
    };
    let mut write = |span: &Span| {
        if !out.is_empty() {
            out.push(b',');
        }
        item(out, span);
    };
    write(&Span {
        attributes: attributes(call),
        status: Some(Status { code: if receipt.outcome.went_well() { OK } else { ERROR } }),
        ..span(own, parent, name, (0, receipt.total_us))
    });
    for (number, phase) in (4_u64..).zip(&receipt.phases) {
        let id = Id::Span(identity.id(number));
        write(&span(id, Some(own), &phase.name, (phase.start_us, phase.us)));
    }
    let numbered = || (4 + receipt.phases.len() as u64..).zip(&call.spans.spans);
    // A span of the program's own lies in the one that it was begun in; all others in the call.
    let own_spans: BTreeMap<u8, u64> = numbered()
        .filter_map(|(at, span)| match span.what {
            What::Own { number, .. } => Some((number, at)),
            What::Waited { .. } | What::Forked { .. } | What::Unknown(_) => None,
        })
        .collect();
    for (at, one) in numbered() {
        let around = match one.what {
            What::Own { parent, .. } => parent.and_then(|parent| own_spans.get(&parent)),
            What::Waited { .. } | What::Forked { .. } | What::Unknown(_) => None,
        };
        let parent = around.map_or(own, |at| Id::Span(identity.id(*at)));
        let (id, texts) = (Id::Span(identity.id(at)), span_texts(one));
        let attributes = texts.iter().map(|(key, text)| ours(key, Value::Text(text)));
        let times = (one.start_us, one.us);
        let attributes = attributes.collect();
        write(&Span { attributes, ..span(id, Some(parent), one.what.name(), times) });
    }
}

/// What is said of a call itself.
fn attributes<'a>(call: &Call<'a>) -> Vec<Attribute<'a>> {
    let texts = texts(call).into_iter().map(|(key, text)| ours(key, Value::Text(text)));
    let numbers = numbers(call).into_iter();
    let numbers = numbers.map(|(key, number)| ours(key, Value::Number(AsText(number))));
    let warm = std::iter::once(ours("warm", Value::Flag(call.receipt.warm)));
    texts.chain(numbers).chain(warm).collect()
}

/// An attribute of ours.
fn ours<'a>(key: &'static str, value: Value<'a>) -> Attribute<'a> {
    Attribute { key: AsText(Key::Ours(key)), value }
}

/// What the ids of a receipt are made of: FNV-1a over a text, and then over a number.
struct Identity(u64);

impl Identity {
    fn of(text: &str) -> Identity {
        Identity(fold(0xcbf2_9ce4_8422_2325, text.as_bytes()))
    }

    /// The id of this number. Never 0, which stands for no id.
    fn id(&self, number: u64) -> u64 {
        fold(self.0, &number.to_le_bytes()).max(1)
    }
}

fn fold(digest: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(digest, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hob_core::receipt::Receipt;
    use hob_core::receipt::trace::TracePart;

    use serde_json::{Value, json};

    use super::super::super::format::begun_ns;
    use super::super::super::format::tests::receipt;
    use super::{Call, ERROR, OK, trace};

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
