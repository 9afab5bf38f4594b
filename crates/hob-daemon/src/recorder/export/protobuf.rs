//! As much of the protobuf wire format as exports write: varints, and fields with a length.
//!
//! A message within another is written in its place. How long it is comes before it and is known
//! behind it, so that its length has always four bytes: more than it needs is allowed.

/// The bytes of a length: seven bits each.
const LENGTH_BYTES: usize = 4;

/// A message that is being written, at the end of these bytes.
#[derive(Debug)]
pub(super) struct Message<'a>(&'a mut Vec<u8>);

impl<'a> Message<'a> {
    /// What is not in another message.
    pub(super) fn outermost(bytes: &'a mut Vec<u8>) -> Message<'a> {
        Message(bytes)
    }

    /// Adds a number.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// Adds a text; an empty one too.
    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Adds a message, shorter than 256 MiB.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message<'_>)) {
        self.varint(u64::from(field) << 3 | 2);
        let begin = self.0.len() + LENGTH_BYTES;
        self.0.extend_from_slice(&[0; LENGTH_BYTES]);
        write(&mut Message(self.0));
        let length = self.0.len() - begin;
        let bytes = &mut self.0[begin - LENGTH_BYTES..begin];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let more = if at + 1 < LENGTH_BYTES { 0x80 } else { 0 };
            *byte = (length >> (7 * at)).to_le_bytes()[0] & 0x7f | more;
        }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Message::outermost(&mut bytes));
        bytes
    }

    #[test]
    fn numbers_and_texts_are_as_the_format_has_them() {
        assert_eq!(written(|it| it.number(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|it| it.text(2, "testing")), b"\x12\x07testing");
        let outer = written(|it| it.message(3, |inner| inner.number(1, 150)));
        assert_eq!(outer, [0x1a, 0x83, 0x80, 0x80, 0x00, 0x08, 0x96, 0x01]);
        let long = written(|it| it.message(3, |inner| inner.text(1, &"x".repeat(300))));
        // 303 bytes, as seven bits and two.
        assert_eq!(long[..5], [0x1a, 0xaf, 0x82, 0x80, 0x00]);
        assert_eq!(written(|it| it.number(60, u64::MAX)).len(), 2 + 10);
    }
}
