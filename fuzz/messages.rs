//! Reads bytes as a stream of messages of bencode, in two ways that must agree.

use hob_wire::bencode::{Message, Scanner};

/// How many messages are at the beginning of these bytes. Whatever the bytes, nothing panics; and
/// where a message ends does not depend on how its bytes came.
pub(crate) fn stream(bytes: &[u8]) -> usize {
    let (mut rest, mut count) = (bytes, 0);
    loop {
        let whole = Scanner::default().end(rest);
        assert_eq!(piece_by_piece(rest), whole, "in pieces and whole");
        let Ok(Some(end)) = whole else { return count };
        let (message, behind) = rest.split_at(end);
        if let Ok(read) = Message::read(message) {
            for (key, _) in read.pairs() {
                if let Ok(key) = core::str::from_utf8(key) {
                    let _ = (read.text(key), read.says(key, "done"));
                }
            }
        }
        (rest, count) = (behind, count + 1);
    }
}

/// The same of a scanner that is shown ever more: at some lengths, and in the end all.
fn piece_by_piece(bytes: &[u8]) -> Result<Option<usize>, hob_wire::bencode::Fault> {
    let mut scanner = Scanner::default();
    let step = bytes.len() / 7 + 1;
    for shown in (step..bytes.len()).step_by(step) {
        match scanner.end(bytes.get(..shown).unwrap_or_default())? {
            None => {}
            found => return Ok(found),
        }
    }
    scanner.end(bytes)
}
