//! What every frame's decoder promises, whatever the bytes: it does not panic, it reads nothing
//! beyond the frame, what it accepts is encoded to the same bytes again, and it accepts just what
//! the schema describes.
//!
//! Shared by the fuzz target (`fuzz_targets/frames.rs`) and by the replay in hob-wire's tests.

use hob_wire::frame;
use hob_wire::frames::{Frame, SCHEMA, again};
use hob_wire::schema::walk;

/// Reads a stream of frames until it ends or breaks a rule. Gives how many were decoded whole.
pub(crate) fn stream(mut bytes: &[u8]) -> usize {
    let mut decoded = 0;
    while let Ok(Some((header, payload, taken))) = frame::split(bytes) {
        assert_eq!(payload.len(), header.len, "a payload is as long as its header says");
        assert_eq!(taken, frame::HEADER_LEN + header.len, "a frame is a header and a payload");
        let schema = SCHEMA.iter().find(|schema| schema.kind == header.kind);
        decoded += usize::from(schema.is_some_and(|schema| as_frame(schema, payload)));
        bytes = &bytes[taken..];
    }
    decoded
}

/// Decodes a payload as every kind there is. Gives by how many it was accepted.
pub(crate) fn as_all(payload: &[u8]) -> usize {
    SCHEMA.iter().filter(|schema| as_frame(schema, payload)).count()
}

/// Decodes a payload; what was accepted must encode to the same bytes.
fn as_frame(schema: &Frame, payload: &[u8]) -> bool {
    let kind = schema.kind;
    let mut bytes = Vec::new();
    let decoded = again(kind, payload, &mut bytes);
    let described = walk(schema.fields, payload);
    assert_eq!(
        decoded.is_ok(),
        described.is_ok(),
        "{kind:?}: the decoder says {decoded:?}, the schema {described:?}"
    );
    if decoded.is_ok() {
        assert_eq!(bytes, payload, "{kind:?} is not encoded as it was decoded");
    }
    decoded.is_ok()
}
