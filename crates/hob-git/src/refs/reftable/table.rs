//! One table: a head, blocks of refs, an index where there are many blocks, and a foot.

use gix_hash::Kind;

use super::block::{Block, Found, Reference, number};

/// Levels of an index; each has hundreds of times the blocks of the one below.
const LEVELS_MAX: usize = 8;

/// A table, whose head and foot were checked.
pub(super) struct Table {
    bytes: Vec<u8>,
    hash: Kind,
    head: usize,
    /// Bytes from one block to the next; 0: a block begins where the one before ends.
    stride: usize,
    /// Where the uppermost block of the index is; 0: there is none.
    index: usize,
    /// Where the foot begins.
    end: usize,
}

impl Table {
    /// `None`: it is broken, or of another kind of ids.
    pub(super) fn new(bytes: Vec<u8>, hash: Kind) -> Option<Table> {
        let (head, is_kind) = match bytes.get(..28)? {
            [b'R', b'E', b'F', b'T', 1, ..] => (24, hash == Kind::Sha1),
            [b'R', b'E', b'F', b'T', 2, .., b's', b'h', b'a', b'1'] => (28, hash == Kind::Sha1),
            [b'R', b'E', b'F', b'T', 2, .., b's', b'2', b'5', b'6'] => (28, hash == Kind::Sha256),
            _ => return None,
        };
        // The foot: the head once more, five places, and a sum of it all.
        let end = bytes.len().checked_sub(head + 5 * 8 + 4)?;
        let (foot, sum) = bytes[end..].split_at(head + 5 * 8);
        let is_whole = foot[..head] == bytes[..head]
            && number(sum) == usize::try_from(crc32fast::hash(foot)).ok()?;
        let stride = number(&bytes[5..8]);
        let index = number(&foot[head..head + 8]);
        (is_kind && is_whole && end >= head).then_some(Table {
            bytes,
            hash,
            head,
            stride,
            index,
            end,
        })
    }

    /// What it says of the ref of this name. The outer `None`: it is broken; the inner one: it says
    /// nothing.
    #[expect(clippy::option_option, reason = "broken, nothing, and something are three answers")]
    pub(super) fn find(&self, name: &[u8]) -> Option<Option<Reference<'_>>> {
        let found =
            if self.index == 0 { self.one_by_one(0, b'r', name) } else { self.by_index(name) };
        let Some(Found { is_equal: true, value, mut rest }) = found? else { return Some(None) };
        rest.reference(value, self.hash.len_in_bytes()).map(Some)
    }

    fn block(&self, at: usize) -> Option<Block<'_>> {
        Block::new(self.bytes.get(at..self.end)?, if at == 0 { self.head } else { 0 })
    }

    /// From an index down to a block of refs. An index names the last key of each block.
    #[expect(clippy::option_option, reason = "as in `find`")]
    fn by_index(&self, name: &[u8]) -> Option<Option<Found<'_>>> {
        let mut at = self.index;
        for _ in 0..LEVELS_MAX {
            if self.kind(at) != Some(b'i') {
                return None;
            }
            let Some(mut found) = self.one_by_one(at, b'i', name)? else { return Some(None) };
            at = found.rest.varint()?;
            if self.kind(at) == Some(b'r') {
                return self.block(at)?.seek(name, self.hash.len_in_bytes());
            }
        }
        None
    }

    /// Looks in the blocks of a kind that follow each other from a place: all those of refs, where
    /// there is no index, or the few of the uppermost level of an index.
    #[expect(clippy::option_option, reason = "as in `find`")]
    fn one_by_one(&self, mut at: usize, kind: u8, name: &[u8]) -> Option<Option<Found<'_>>> {
        while self.kind(at) == Some(kind) {
            let block = self.block(at)?;
            if let Some(found) = block.seek(name, self.hash.len_in_bytes())? {
                return Some(Some(found));
            }
            at += self.step(at, block.length);
        }
        Some(None)
    }

    /// The kind of the block that begins here; `None`: none does.
    fn kind(&self, at: usize) -> Option<u8> {
        self.bytes[..self.end].get(if at == 0 { self.head } else { at }).copied()
    }

    /// Bytes from a block to the next one: a block that is shorter than others is filled up with
    /// zeros, unless it is the last one before another kind.
    fn step(&self, at: usize, length: usize) -> usize {
        let is_filled = self.bytes[..self.end].get(at + length).is_none_or(|byte| *byte == 0);
        if self.stride > length && is_filled { self.stride } else { length }
    }
}
