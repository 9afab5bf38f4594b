//! Perfetto's trace of receipts: `TrackEvent`s in protobuf.
//!
//! A program is a process track, a call a track below it with one slice, and the call's phases are
//! slices within that. Calls of one program may run at the same time, and slices of one track must
//! nest, so each call has a track of its own; the tracks of a program share a name, and Perfetto
//! shows those that do not overlap in one line. Spans may overlap phases, and one another: they have
//! tracks of their own in the same way, on which those lie that lie within one another. Times are
//! nanoseconds since 1970.

use std::collections::BTreeMap;

use super::protobuf::Message;
use super::{Call, Lines, numbers, span_texts, texts};

/// The fields of Perfetto's messages that are written here.
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;

    pub(super) const PACKET_TIMESTAMP: u32 = 8;
    pub(super) const PACKET_SEQUENCE: u32 = 10;
    pub(super) const PACKET_TRACK_EVENT: u32 = 11;
    pub(super) const PACKET_TRACK_DESCRIPTOR: u32 = 60;

    pub(super) const TRACK_UUID: u32 = 1;
    pub(super) const TRACK_NAME: u32 = 2;
    pub(super) const TRACK_PROCESS: u32 = 3;
    pub(super) const TRACK_PARENT: u32 = 5;

    pub(super) const PROCESS_PID: u32 = 1;
    pub(super) const PROCESS_NAME: u32 = 6;

    pub(super) const EVENT_NOTE: u32 = 4;
    pub(super) const EVENT_TYPE: u32 = 9;
    pub(super) const EVENT_TRACK: u32 = 11;
    pub(super) const EVENT_CATEGORY: u32 = 22;
    pub(super) const EVENT_NAME: u32 = 23;

    pub(super) const NOTE_NUMBER: u32 = 3;
    pub(super) const NOTE_TEXT: u32 = 6;
    pub(super) const NOTE_NAME: u32 = 10;
}

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
/// One writer wrote it all.
const SEQUENCE: u64 = 1;
/// What the tracks of calls are called, and those of their spans.
const CALLS: &str = "calls";
const SPANS: &str = "spans";

/// The trace.
pub(super) fn trace(calls: &[Call]) -> Vec<u8> {
    let mut out = Trace::default();
    let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
    for call in calls {
        let known = programs.len() as u64 + 1;
        let program = *programs.entry(call.name).or_insert(known);
        if program == known {
            out.program(program, call.name);
        }
        out.call(program, call);
        out.spans(program, call);
    }
    out.bytes
}

#[derive(Default)]
struct Trace {
    bytes: Vec<u8>,
    /// The newest track.
    track: u64,
}

impl Trace {
    /// A program's track. Its number stands in the place of a process number: a program has many.
    fn program(&mut self, program: u64, name: &str) {
        self.packet(None, field::PACKET_TRACK_DESCRIPTOR, |track| {
            track.number(field::TRACK_UUID, of_program(program));
            track.message(field::TRACK_PROCESS, |process| {
                process.number(field::PROCESS_PID, program);
                process.text(field::PROCESS_NAME, name);
            });
        });
    }

    fn call(&mut self, program: u64, call: &Call) {
        let (receipt, uuid) = (call.receipt, self.track(program, CALLS));
        let how = if receipt.warm { "warm" } else { "cold" };
        self.packet(Some(call.begun_ns), field::PACKET_TRACK_EVENT, |begin| {
            slice(begin, SLICE_BEGIN, uuid);
            begin.text(field::EVENT_CATEGORY, how);
            begin.text(field::EVENT_NAME, call.name);
            noted(begin, texts(call));
            for (name, number) in numbers(call) {
                begin.message(field::EVENT_NOTE, |note| {
                    note.text(field::NOTE_NAME, name);
                    note.number(field::NOTE_NUMBER, number);
                });
            }
        });
        for phase in &receipt.phases {
            let start = at_ns(call, phase.start_us);
            self.packet(Some(start), field::PACKET_TRACK_EVENT, |begin| {
                slice(begin, SLICE_BEGIN, uuid);
                begin.text(field::EVENT_NAME, &phase.name);
            });
            self.ends(uuid, at_ns(call, phase.start_us.saturating_add(phase.us)));
        }
        self.ends(uuid, at_ns(call, receipt.total_us));
    }

    /// The spans of a call, each on the first of its tracks on which it lies within the others.
    fn spans(&mut self, program: u64, call: &Call) {
        let number = call.receipt.call.to_string();
        let mut lines = Lines::default();
        // The tracks, and when what is open on each ends.
        let mut tracks: Vec<(u64, Vec<u64>)> = Vec::new();
        for span in &call.spans.spans {
            let (start, end) = (span.start_us, span.start_us.saturating_add(span.us));
            let line = lines.line(span);
            if line == tracks.len() {
                tracks.push((self.track(program, SPANS), Vec::new()));
            }
            let (uuid, open) = &mut tracks[line];
            while let Some(end) = open.pop_if(|end| *end <= start) {
                self.ends(*uuid, at_ns(call, end));
            }
            open.push(end);
            self.packet(Some(at_ns(call, start)), field::PACKET_TRACK_EVENT, |begin| {
                slice(begin, SLICE_BEGIN, *uuid);
                begin.text(field::EVENT_NAME, span.what.name());
                noted(begin, [("call", &number)]);
                noted(begin, span_texts(span));
            });
        }
        for (uuid, open) in tracks {
            open.into_iter().rev().for_each(|end| self.ends(uuid, at_ns(call, end)));
        }
    }

    /// The innermost slice of a track ends.
    fn ends(&mut self, track: u64, at_ns: u64) {
        self.packet(Some(at_ns), field::PACKET_TRACK_EVENT, |end| slice(end, SLICE_END, track));
    }

    /// A new track of a program's.
    fn track(&mut self, program: u64, name: &str) -> u64 {
        self.track += 1;
        let uuid = self.track;
        self.packet(None, field::PACKET_TRACK_DESCRIPTOR, |track| {
            track.number(field::TRACK_UUID, uuid);
            track.text(field::TRACK_NAME, name);
            track.number(field::TRACK_PARENT, of_program(program));
        });
        uuid
    }

    fn packet(&mut self, at_ns: Option<u64>, kind: u32, write: impl FnOnce(&mut Message<'_>)) {
        Message::outermost(&mut self.bytes).message(field::TRACE_PACKET, |packet| {
            if let Some(at_ns) = at_ns {
                packet.number(field::PACKET_TIMESTAMP, at_ns);
            }
            packet.number(field::PACKET_SEQUENCE, SEQUENCE);
            packet.message(kind, write);
        });
    }
}

fn slice(event: &mut Message<'_>, kind: u64, track: u64) {
    event.number(field::EVENT_TYPE, kind);
    event.number(field::EVENT_TRACK, track);
}

fn noted<T: AsRef<str>>(
    event: &mut Message<'_>,
    texts: impl IntoIterator<Item = (&'static str, T)>,
) {
    for (name, text) in texts {
        event.message(field::EVENT_NOTE, |note| {
            note.text(field::NOTE_NAME, name);
            note.text(field::NOTE_TEXT, text.as_ref());
        });
    }
}

fn at_ns(call: &Call, us: u64) -> u64 {
    call.begun_ns.saturating_add(us.saturating_mul(1000))
}

/// The track of a program: beyond those of calls.
fn of_program(program: u64) -> u64 {
    (1 << 40) + program
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

    fn trace(receipts: &[&Receipt]) -> Vec<u8> {
        Format::Perfetto.bytes(receipts, &Rings::default())
    }

    /// A field of a message that was read: its number, and its varint or its bytes.
    #[derive(Debug, Clone, PartialEq)]
    enum Read {
        Number(u32, u64),
        Bytes(u32, Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }

    fn fields(mut bytes: &[u8]) -> Vec<Read> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = u32::try_from(key >> 3).unwrap();
            fields.push(match key & 7 {
                0 => Read::Number(field, varint(&mut bytes)),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    let (own, rest) = bytes.split_at(length);
                    bytes = rest;
                    Read::Bytes(field, own.to_vec())
                }
                kind => panic!("wire type {kind}"),
            });
        }
        fields
    }

    fn number(fields: &[Read], wanted: u32) -> Option<u64> {
        fields.iter().find_map(|read| match read {
            Read::Number(field, value) => (*field == wanted).then_some(*value),
            Read::Bytes(..) => None,
        })
    }

    fn bytes(fields: &[Read], wanted: u32) -> Option<Vec<u8>> {
        fields.iter().find_map(|read| match read {
            Read::Bytes(field, value) => (*field == wanted).then(|| value.clone()),
            Read::Number(..) => None,
        })
    }

    /// The slices of each track: name, begin and end, as a reader of the format nests them.
    fn slices(trace: &[u8]) -> BTreeMap<u64, Vec<(String, u64, u64)>> {
        let mut open: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
        let mut done: BTreeMap<u64, Vec<(String, u64, u64)>> = BTreeMap::new();
        for packet in fields(trace) {
            let Read::Bytes(field::TRACE_PACKET, packet) = packet else { panic!("{packet:?}") };
            let packet = fields(&packet);
            let Some(event) = bytes(&packet, field::PACKET_TRACK_EVENT) else { continue };
            let event = fields(&event);
            let at = number(&packet, field::PACKET_TIMESTAMP).unwrap();
            let track = number(&event, field::EVENT_TRACK).unwrap();
            let stack = open.entry(track).or_default();
            if number(&event, field::EVENT_TYPE) == Some(SLICE_BEGIN) {
                let name = bytes(&event, field::EVENT_NAME).unwrap();
                stack.push((String::from_utf8(name).unwrap(), at));
            } else {
                let (name, begun) = stack.pop().expect("an end has a beginning");
                done.entry(track).or_default().push((name, begun, at));
            }
        }
        assert!(open.values().all(Vec::is_empty), "every slice ends: {open:?}");
        done
    }

    #[test]
    fn a_call_is_a_slice_with_its_phases_within() {
        let slices = slices(&trace(&[&receipt(7)]));
        let begun = 1_795_297_084_120_337_000;
        let expected = [
            ("connect".to_owned(), begun, begun + 62_000),
            ("main".to_owned(), begun + 62_000, begun + 512_000),
            ("black".to_owned(), begun, begun + 512_000),
        ];
        assert_eq!(slices.values().collect::<Vec<_>>(), [&expected]);
    }

    #[test]
    fn calls_at_the_same_time_have_tracks_of_their_own_and_one_process() {
        let calls = [receipt(1), receipt(2), receipt(3)];
        let trace = trace(&calls.iter().collect::<Vec<_>>());
        assert_eq!(slices(&trace).len(), 3);
        let processes = fields(&trace).into_iter().filter(|packet| {
            let Read::Bytes(_, packet) = packet else { return false };
            let track = bytes(&fields(packet), field::PACKET_TRACK_DESCRIPTOR);
            track.is_some_and(|track| bytes(&fields(&track), field::TRACK_PROCESS).is_some())
        });
        assert_eq!(processes.count(), 1);
    }

    #[test]
    fn spans_that_overlap_have_tracks_of_their_own_and_others_share_one() {
        let receipt = receipt(7);
        let begun_ns = begun_ns(&receipt).unwrap();
        let call = Call { receipt: &receipt, name: "black", begun_ns, spans: spans() };
        let found: Vec<_> = slices(&super::trace(&[call])).into_values().collect();
        let at = |us: u64| begun_ns + us * 1000;
        let own = |name: &str, end| (name.to_owned(), at(50), at(end));
        let waited = ("waited".to_owned(), at(10), at(50));
        let first = vec![waited, own("lex", 60), own("parse", 80)];
        let second = vec![("fork".to_owned(), at(20), at(80))];
        assert_eq!(found[1..], [first, second, vec![own("?", 50)]]);
        assert_eq!(found[0].last().unwrap().0, "black");
    }
}
