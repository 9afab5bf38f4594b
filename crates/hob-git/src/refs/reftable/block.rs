//! A block of a table: records in the order of their keys. Each tells its key by what differs from
//! the one before; some tell it whole, and the block ends with the places of these.

use std::cmp::Ordering;

/// The head of a block: its kind, and its length in three bytes.
const HEAD: usize = 4;

/// A block, whose bounds were checked.
pub(super) struct Block<'t> {
    /// `r`: refs; `i`: an index of blocks; others are not read.
    pub(super) kind: u8,
    /// Bytes from its begin to its end.
    pub(super) length: usize,
    /// From its begin to the end of its records.
    records: &'t [u8],
    /// Where the first record is.
    first: usize,
    /// The places of records that tell their key whole, three bytes each, in order.
    whole: &'t [u8],
}

/// The first record whose key is not less than what was looked for.
pub(super) struct Found<'t> {
    /// Whether its key is that one.
    pub(super) is_equal: bool,
    /// The three bits that say what its value is.
    pub(super) value: u8,
    /// From its value on.
    pub(super) rest: Cursor<'t>,
}

impl<'t> Block<'t> {
    /// The block that begins here. `skipped` bytes are before its head: in the first block, those of
    /// the file's head.
    pub(super) fn new(bytes: &'t [u8], skipped: usize) -> Option<Block<'t>> {
        let first = skipped + HEAD;
        let head = bytes.get(skipped..first)?;
        let length = number(&head[1..]);
        let inner = bytes.get(..length)?;
        let (inner, count) = inner.split_at_checked(length.checked_sub(2)?)?;
        let places = 3 * number(count);
        let (records, whole) = inner.split_at_checked(inner.len().checked_sub(places)?)?;
        (records.len() >= first).then_some(Block { kind: head[0], length, records, first, whole })
    }

    /// Looks for a key. The inner `None`: all keys are less.
    #[expect(clippy::option_option, reason = "broken, not here, and here are three answers")]
    pub(super) fn seek(&self, key: &[u8], hash_bytes: usize) -> Option<Option<Found<'t>>> {
        let mut rest = Cursor(self.records.get(self.start(key)?..)?);
        let mut here = Vec::new();
        while !rest.0.is_empty() {
            let value = rest.key(&mut here)?;
            let order = here.as_slice().cmp(key);
            if order != Ordering::Less {
                return Some(Some(Found { is_equal: order == Ordering::Equal, value, rest }));
            }
            if self.kind == b'r' {
                rest.reference(value, hash_bytes)?;
            } else {
                rest.varint()?;
            }
        }
        Some(None)
    }

    /// Where the last record begins that tells its key whole and is not greater than this one.
    fn start(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.whole.len() / 3);
        let mut start = self.first;
        while low < high {
            let middle = usize::midpoint(low, high);
            let place = number(&self.whole[3 * middle..3 * middle + 3]);
            let mut here = Vec::new();
            Cursor(self.records.get(place..)?).key(&mut here)?;
            if here.as_slice() <= key {
                (start, low) = (place, middle + 1);
            } else {
                high = middle;
            }
        }
        Some(start)
    }
}

/// What a record of a ref says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'t> {
    Deleted,
    Id(&'t [u8]),
    Symbolic(&'t [u8]),
}

/// What is left to read.
pub(super) struct Cursor<'t>(&'t [u8]);

impl<'t> Cursor<'t> {
    /// Makes the key before into the next one, and says what its value is.
    fn key(&mut self, key: &mut Vec<u8>) -> Option<u8> {
        let same = self.varint()?;
        let more = self.varint()?;
        if same > key.len() {
            return None;
        }
        key.truncate(same);
        key.extend_from_slice(self.bytes(more >> 3)?);
        u8::try_from(more & 7).ok()
    }

    /// The value of a ref: when it was written, and what it says.
    pub(super) fn reference(&mut self, value: u8, hash_bytes: usize) -> Option<Reference<'t>> {
        self.varint()?;
        match value {
            0 => Some(Reference::Deleted),
            1 => self.bytes(hash_bytes).map(Reference::Id),
            // Of a tag: its own id, and the one of what it is for.
            2 => self.bytes(2 * hash_bytes).map(|both| Reference::Id(&both[..hash_bytes])),
            3 => {
                let length = self.varint()?;
                self.bytes(length).map(Reference::Symbolic)
            }
            _ => None,
        }
    }

    fn bytes(&mut self, length: usize) -> Option<&'t [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number of seven bits a byte, the highest first; each byte but the last adds one.
    pub(super) fn varint(&mut self) -> Option<usize> {
        let mut value = 0usize;
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?;
        }
    }
}

/// A number, the highest byte first.
pub(super) fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |value, byte| (value << 8) | usize::from(*byte))
}
