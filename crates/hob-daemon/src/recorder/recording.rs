//! Recordings: copies of rings, with the receipts of their time, in a file of their own.
//!
//! ```text
//!   {"schema":"hob.recording/1", ...}\n      what it has, and how much of it
//!   first pair | pairs | records             of each ring, as words of eight bytes, little-endian
//!   receipts                                 a line each
//! ```
//! A file is whole only if it has what its head says, and nothing behind. Encoding and decoding are
//! pure; where recordings are kept is for the verbs to say.

use std::collections::VecDeque;

use hob_core::receipt::Receipt;
use hob_os::ring::{Copied, Pair};
use serde::{Deserialize, Serialize};

use super::format;

/// The schema of the head.
pub const SCHEMA: &str = "hob.recording/1";
/// The longest head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The most rings of a recording.
pub const RINGS_MAX: usize = 256;
const WORD: usize = 8;

/// What a recording says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`SCHEMA`].
    pub schema: String,
    /// What it is called; empty: it was made at once, of what there was.
    pub name: String,
    /// When it began and ended: RFC 3339, UTC.
    pub began: String,
    /// The same.
    pub ended: String,
    /// Why it ended: `stopped`, `time`, `met`, `daemon-ended`, `dumped`.
    pub why: String,
    /// Its rings.
    pub rings: Vec<RingHead>,
    /// The bytes of its receipts.
    pub receipts_bytes: u64,
}

/// How much of a ring there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingHead {
    /// The process that wrote it.
    pub process: u32,
    /// Pairs of clocks.
    pub pairs: u64,
    /// Its records.
    pub records: u64,
    /// How many were written to it in all.
    pub written: u64,
    /// How many were overwritten before they were copied.
    pub lost: u64,
    /// How many were dropped again, the oldest, so that the recording stays within its bound.
    pub dropped: u64,
}

/// A recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// What it says of itself.
    pub head: Head,
    /// Its rings, as in the head.
    pub rings: Vec<Copied>,
    /// The receipts of its time, the newest first.
    pub receipts: Vec<Receipt>,
}

/// Why bytes are no recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Something else.
    #[error("it is no recording of hob's")]
    Other,
    /// Another build's.
    #[error("it was written by another build of hob")]
    OtherBuild,
    /// Shorter, or longer, than it says.
    #[error("it was cut short, or is damaged")]
    Truncated,
}

/// A ring of a recording that is being made.
#[derive(Debug, Default)]
pub struct Kept {
    ring: Copied,
    records: VecDeque<[u64; 4]>,
    dropped: u64,
}

impl Kept {
    /// Adds what is new in the ring.
    pub fn add(&mut self, news: Copied) {
        if news.pairs.is_empty() {
            return;
        }
        self.ring.process = news.process;
        self.ring.first = news.first;
        self.ring.written = news.written;
        self.ring.lost += news.lost;
        self.records.extend(news.records);
        let newest = self.ring.pairs.last().map_or(0, |pair| pair.stamp);
        self.ring.pairs.extend(news.pairs.into_iter().filter(|pair| pair.stamp > newest));
    }

    /// How many records it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many were overwritten before they were copied, and how many dropped again.
    #[must_use]
    pub fn gone(&self) -> (u64, u64) {
        (self.ring.lost, self.dropped)
    }

    /// The ring, and how many of its records were dropped.
    #[must_use]
    pub fn copied(&self) -> (Copied, u64) {
        let records = self.records.iter().copied().collect();
        (Copied { records, ..self.ring.clone() }, self.dropped)
    }

    fn drop_oldest(&mut self) {
        self.dropped += u64::from(self.records.pop_front().is_some());
        // Of the pairs the one before the oldest record is needed still.
        let oldest = self.records.front().map_or(0, |record| record[0]);
        if self.ring.pairs.get(1).is_some_and(|pair| pair.stamp <= oldest) {
            self.ring.pairs.remove(0);
        }
    }
}

/// Drops the oldest records of all until there are at most so many.
pub fn bound(kept: &mut [Kept], most: usize) {
    let mut count: usize = kept.iter().map(Kept::len).sum();
    while count > most {
        let stamp = |ring: &Kept| ring.records.front().map_or(u64::MAX, |record| record[0]);
        if let Some(oldest) = kept.iter_mut().min_by_key(|ring| stamp(ring)) {
            oldest.drop_oldest();
        }
        count -= 1;
    }
}

/// A recording of these rings, each with how many of its records were dropped. `head` needs no
/// rings.
#[must_use]
pub fn of(head: Head, rings: Vec<(Copied, u64)>, receipts: Vec<Receipt>) -> Recording {
    let part = |(copied, dropped): &(Copied, u64)| RingHead {
        process: copied.process,
        pairs: copied.pairs.len() as u64,
        records: copied.records.len() as u64,
        written: copied.written,
        lost: copied.lost,
        dropped: *dropped,
    };
    let head = Head { rings: rings.iter().take(RINGS_MAX).map(part).collect(), ..head };
    let rings = rings.into_iter().take(RINGS_MAX).map(|(copied, _)| copied).collect();
    Recording { head, rings, receipts }
}

impl Recording {
    /// Its bytes. A receipt that is too long for a line is left out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        for receipt in &self.receipts {
            let before = lines.len();
            if format::encode(receipt.clone(), &mut lines).is_err() {
                lines.truncate(before);
            }
        }
        let head = Head { receipts_bytes: lines.len() as u64, ..self.head.clone() };
        let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
        bytes.push(b'\n');
        for ring in &self.rings {
            let pairs = std::iter::once(&ring.first).chain(&ring.pairs);
            let pairs = pairs.flat_map(|pair| [pair.stamp, pair.monotonic_ns, pair.real_ns]);
            let words = pairs.chain(ring.records.iter().flatten().copied());
            words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        }
        bytes.append(&mut lines);
        bytes
    }

    /// What these bytes are. Receipts that this build does not read are left out.
    ///
    /// # Errors
    /// If they are not all of a recording, and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Recording, Unreadable> {
        let end = bytes.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n');
        let (head, mut rest) = bytes.split_at(end.ok_or(Unreadable::Other)?);
        let head = read_head(head)?;
        rest = &rest[1..];
        let mut rings = Vec::new();
        for part in head.rings.iter().take(RINGS_MAX) {
            let pairs = take(&mut rest, part.pairs.saturating_add(1), 3 * WORD)?;
            let (pairs, _) = pairs.as_chunks::<{ 3 * WORD }>();
            let mut pairs = pairs.iter().map(|pair| {
                let [stamp, monotonic_ns, real_ns] = words(pair);
                Pair { stamp, monotonic_ns, real_ns }
            });
            let first = pairs.next().unwrap_or_default();
            let pairs = pairs.collect();
            let records = take(&mut rest, part.records, 4 * WORD)?;
            let records = records.as_chunks::<{ 4 * WORD }>().0.iter().map(|one| words(one));
            let (process, written, lost) = (part.process, part.written, part.lost);
            let records = records.collect();
            rings.push(Copied { process, first, pairs, records, written, lost });
        }
        if rest.len() as u64 != head.receipts_bytes {
            return Err(Unreadable::Truncated);
        }
        let lines = rest.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let receipts = lines.filter_map(|line| format::decode(line).ok()).collect();
        Ok(Recording { head, rings, receipts })
    }

    /// How many notes were overwritten before they were copied, and how many dropped.
    #[must_use]
    pub fn gone(&self) -> (u64, u64) {
        let rings = &self.head.rings;
        (rings.iter().map(|ring| ring.lost).sum(), rings.iter().map(|ring| ring.dropped).sum())
    }
}

/// The head of a recording.
///
/// # Errors
/// If the line is none.
pub fn read_head(line: &[u8]) -> Result<Head, Unreadable> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    let Schema { schema } = serde_json::from_slice(line).map_err(|_| Unreadable::Other)?;
    match schema.split_once('/') {
        Some(("hob.recording", _)) if schema == SCHEMA => {
            serde_json::from_slice(line).map_err(|_| Unreadable::Truncated)
        }
        Some(("hob.recording", _)) => Err(Unreadable::OtherBuild),
        _ => Err(Unreadable::Other),
    }
}

fn take<'a>(rest: &mut &'a [u8], count: u64, size: usize) -> Result<&'a [u8], Unreadable> {
    let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
    let (own, behind) =
        bytes.and_then(|bytes| rest.split_at_checked(bytes)).ok_or(Unreadable::Truncated)?;
    *rest = behind;
    Ok(own)
}

/// The words of so many bytes.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (chunks, _) = bytes.as_chunks::<WORD>();
    std::array::from_fn(|place| u64::from_le_bytes(chunks[place]))
}

#[cfg(test)]
mod tests {
    use super::super::format::tests::receipt;
    use super::*;

    fn pair(stamp: u64) -> Pair {
        Pair { stamp, monotonic_ns: stamp, real_ns: stamp }
    }

    fn news(stamps: std::ops::Range<u64>) -> Copied {
        Copied {
            process: 7,
            first: pair(1),
            pairs: vec![pair(1), pair(stamps.start)],
            records: stamps.clone().map(|stamp| [stamp, 0, 0, 0]).collect(),
            written: stamps.end,
            lost: 2,
        }
    }

    fn recording() -> Recording {
        let head = Head {
            schema: SCHEMA.to_owned(),
            name: "x".to_owned(),
            began: String::new(),
            ended: String::new(),
            why: "stopped".to_owned(),
            rings: Vec::new(),
            receipts_bytes: 0,
        };
        of(head, vec![(news(10..20), 3), (news(30..31), 0)], vec![receipt(1), receipt(2)])
    }

    #[test]
    fn what_is_written_is_read_and_a_byte_less_or_more_is_said() {
        let bytes = recording().encode();
        let read = Recording::decode(&bytes).unwrap();
        assert_eq!((&read.rings, &read.receipts), (&recording().rings, &recording().receipts));
        assert_eq!((read.head.rings[0].dropped, read.gone()), (3, (4, 3)));
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        for length in 0..bytes.len() {
            let why = Recording::decode(&bytes[..length]).unwrap_err();
            let expected = if length <= end { Unreadable::Other } else { Unreadable::Truncated };
            assert_eq!(why, expected, "{length} bytes");
        }
        let more = [bytes.as_slice(), b"x"].concat();
        assert_eq!(Recording::decode(&more), Err(Unreadable::Truncated));
    }

    #[test]
    fn other_files_and_those_of_other_builds_are_said() {
        let text = |text: &str| Recording::decode(text.as_bytes()).unwrap_err();
        assert_eq!(text("hello\n"), Unreadable::Other);
        assert_eq!(text("{\"schema\":\"hob.receipt/1\"}\n"), Unreadable::Other);
        assert_eq!(text("{\"schema\":\"hob.recording/2\"}\n"), Unreadable::OtherBuild);
        let bytes = recording().encode();
        let odd = String::from_utf8_lossy(&bytes).replacen(
            "\"records\":10",
            "\"records\":18446744073709551615",
            1,
        );
        assert_eq!(text(&odd), Unreadable::Truncated);
    }

    #[test]
    fn a_recording_is_bounded_and_drops_the_oldest_of_all_its_rings() {
        let mut kept = [Kept::default(), Kept::default()];
        kept[0].add(news(10..20));
        kept[0].add(news(20..30));
        kept[1].add(news(15..18));
        bound(&mut kept, 12);
        let stamps =
            |kept: &Kept| kept.copied().0.records.iter().map(|it| it[0]).collect::<Vec<_>>();
        assert_eq!((stamps(&kept[0]), stamps(&kept[1])), ((18..30).collect(), Vec::new()));
        assert_eq!((kept[0].gone(), kept[1].gone()), ((4, 8), (2, 3)));
        let pairs: Vec<_> = kept[0].copied().0.pairs.iter().map(|pair| pair.stamp).collect();
        assert_eq!(pairs, [10, 20], "one before the oldest stays");
    }
}
