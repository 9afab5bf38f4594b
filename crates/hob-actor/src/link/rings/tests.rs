//! A ring in ordinary memory: what goes in comes out, and nothing that a peer stores does more than
//! end its link. Also for Miri.

use super::ring::{Impossible, Reader, Ring, Writer};
use crate::sync::AtomicU64;

use std::sync::atomic::Ordering;

/// Bytes of the ring.
const LEN: usize = 64;

struct Words(Vec<AtomicU64>);

impl Words {
    fn new() -> Words {
        Words((0..3 + LEN / 8).map(|_| AtomicU64::new(0)).collect())
    }

    fn ring(&self) -> Ring<'_> {
        let [published, waits, taken, data @ ..] = &self.0[..] else { unreachable!("it has them") };
        Ring { published, waits, taken, data }
    }
}

/// Numbers that look random, the same each time.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    }
}

/// What the stream has there: 251 is a prime, so no piece repeats itself in the ring.
fn byte_at(at: usize) -> u8 {
    u8::try_from(at % 251).unwrap()
}

/// Writes and reads pieces of any length, and says how many bytes went through.
fn stream(words: &Words, (mut writer, mut reader): (Writer, Reader), seed: u64) -> usize {
    let mut number = numbers(seed);
    let (mut sent, mut came, mut buffer) = (0, 0, [0; LEN + 9]);
    for _ in 0..if cfg!(miri) { 60 } else { 20_000 } {
        let piece: Vec<u8> = (sent..sent + number(LEN + 9)).map(byte_at).collect();
        sent += writer.write(words.ring(), &piece).unwrap();
        assert!(sent - came <= LEN, "what was not read is not overwritten");
        assert_eq!(reader.is_waiting(words.ring()), sent > came);
        let into = number(LEN + 9);
        let count = reader.read(words.ring(), &mut buffer[..into]).unwrap();
        assert_eq!(count, into.min(sent - came), "as much as there is");
        for byte in &buffer[..count] {
            assert_eq!(*byte, byte_at(came));
            came += 1;
        }
    }
    sent
}

#[test]
fn what_is_written_in_pieces_of_any_length_is_read_in_order() {
    for seed in 0..if cfg!(miri) { 3 } else { 50 } {
        let words = Words::new();
        assert!(stream(&words, (Writer::default(), Reader::default()), seed) > 10 * LEN);
    }
}

#[test]
fn positions_that_overflow_are_positions_like_others() {
    for before in (0..70).step_by(if cfg!(miri) { 23 } else { 1 }) {
        let words = Words::new();
        let at = 0u32.wrapping_sub(before);
        words.ring().published.store(u64::from(at) << 32 | u64::from(at), Ordering::Relaxed);
        words.ring().taken.store(u64::from(at), Ordering::Relaxed);
        stream(&words, (Writer::at(at), Reader::at(at)), u64::from(before));
    }
}

#[test]
fn who_is_read_at_once_stays_at_the_front() {
    let words = Words::new();
    let (mut writer, mut reader, mut buffer) = (Writer::default(), Reader::default(), [0; LEN]);
    for round in 0..100 {
        assert_eq!(writer.write(words.ring(), &[round; 11]), Ok(11));
        assert_eq!(reader.read(words.ring(), &mut buffer), Ok(11));
        assert_eq!(buffer[..11], [round; 11]);
    }
    let touched = words.ring().data.iter().filter(|word| word.load(Ordering::Relaxed) != 0);
    assert_eq!(touched.count(), 2);
}

#[test]
fn a_full_ring_takes_nothing_and_has_room_for_what_was_read() {
    let words = Words::new();
    let (mut writer, mut reader) = (Writer::default(), Reader::default());
    assert_eq!(writer.write(words.ring(), &[1; 2 * LEN]), Ok(LEN));
    assert_eq!((writer.write(words.ring(), &[1]), writer.room(words.ring())), (Ok(0), Ok(0)));
    // Words that are read in part are still the reader's.
    assert_eq!(reader.read(words.ring(), &mut [0; 13]), Ok(13));
    assert_eq!(writer.write(words.ring(), &[2; LEN]), Ok(8));
    let mut rest = [0; LEN];
    assert_eq!(reader.read(words.ring(), &mut rest), Ok(LEN - 5));
    assert_eq!(rest[..LEN - 5], [[1; LEN - 13].as_slice(), &[2; 8]].concat());
}

#[test]
fn no_position_that_a_peer_stores_leads_anywhere_else() {
    let halves =
        [0, 1, 7, 8, 63, 64, 65, 128, 1 << 31, u64::from(u32::MAX), u64::from(u32::MAX) - 63];
    for (start, end) in halves.iter().flat_map(|a| halves.map(|b| (*a, b))) {
        let words = Words::new();
        words.ring().published.store(start << 32 | end, Ordering::Relaxed);
        let mut reader = Reader::default();
        // Some number of bytes that are there, or none that could be.
        match reader.read(words.ring(), &mut [0; 2 * LEN]) {
            Ok(count) => assert!(count <= LEN),
            Err(Impossible) => assert!(end > LEN as u64, "{start} {end}"),
        }
    }
    for taken in halves {
        let words = Words::new();
        let mut writer = Writer::default();
        assert_eq!(writer.write(words.ring(), &[1; 13]), Ok(13));
        words.ring().taken.store(taken, Ordering::Relaxed);
        let room = writer.room(words.ring());
        assert_eq!(room.is_ok(), taken <= 13, "{taken}");
        assert_eq!(writer.write(words.ring(), &[1]).is_ok(), taken <= 13);
    }
}
