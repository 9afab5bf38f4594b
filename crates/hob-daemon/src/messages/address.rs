//! The address of a message that the outbox keeps: words, each with a NUL behind it.

/// The directory and the program of an address.
pub(super) fn destination(address: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = words(address)?;
    Some((words.next()?, words.next()?))
}

/// All of its words.
pub(super) fn words(address: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    Some(address.strip_suffix(b"\0")?.split(|byte| *byte == 0))
}
