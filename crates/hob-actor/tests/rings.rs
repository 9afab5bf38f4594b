//! The rings of links and their doorbell under loom, which tries every order of two sides and every
//! value that each may still see: what was written is read as it was, in order, and nobody sleeps
//! through bytes, or room, that it waits for.
//!
//! The ring's own source is compiled here with loom's atomics in place of std's.

#[path = "../src/link/rings/ring.rs"]
#[expect(dead_code, reason = "what the links need beside")]
mod ring;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, fence};
}

use loom::sync::{Arc, Notify};
use ring::{Reader, Ring, Sleeper, Waker, Writer};
use sync::AtomicU64;

/// One ring, and the status word and bell of either side.
struct Link {
    words: Vec<AtomicU64>,
    reader: (AtomicU64, Notify),
    writer: (AtomicU64, Notify),
}

impl Link {
    fn new(data: usize) -> Link {
        let side = || (AtomicU64::new(0), Notify::new());
        let words = (0..3 + data).map(|_| AtomicU64::new(0)).collect();
        Link { words, reader: side(), writer: side() }
    }

    fn ring(&self) -> Ring<'_> {
        let [published, waits, taken, data @ ..] = &self.words[..] else { panic!("it has them") };
        Ring { published, waits, taken, data }
    }

    /// Writes all, as a link does: when the ring is full, it is rung for.
    fn write(&self, mut writer: Writer, pieces: &[&[u8]]) {
        let (mut waker, mut sleeper) = (Waker::default(), Sleeper::default());
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let count = writer.write(self.ring(), rest).expect("a correct reader");
                rest = &rest[count..];
                Writer::waits(self.ring(), !rest.is_empty());
                if count > 0 && waker.claim_ring(&self.reader.0) {
                    self.reader.1.notify();
                }
                if !rest.is_empty() {
                    sleeper.falls_asleep(&self.writer.0);
                    if writer.room(self.ring()) == Ok(0) {
                        self.writer.1.wait();
                    }
                    sleeper.wakes(&self.writer.0);
                }
            }
        }
    }

    /// Reads so many bytes.
    fn read(&self, count: usize) -> Vec<u8> {
        let (mut reader, mut waker, mut sleeper) =
            (Reader::default(), Waker::default(), Sleeper::default());
        let (mut all, mut buffer) = (Vec::new(), [0; 32]);
        while all.len() < count {
            let came = reader.read(self.ring(), &mut buffer).expect("a correct writer");
            all.extend_from_slice(&buffer[..came]);
            if came > 0 {
                if Reader::is_waited_for(self.ring()) && waker.claim_ring(&self.writer.0) {
                    self.writer.1.notify();
                }
                continue;
            }
            sleeper.falls_asleep(&self.reader.0);
            if !reader.is_waiting(self.ring()) {
                self.reader.1.wait();
            }
            sleeper.wakes(&self.reader.0);
        }
        all
    }
}

/// All orders in which neither side is interrupted more than a few times.
fn model(data: usize, pieces: &'static [&'static [u8]]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let link = Arc::new(Link::new(data));
        let other = Arc::clone(&link);
        let writes = loom::thread::spawn(move || other.write(Writer::default(), pieces));
        let wanted = pieces.concat();
        assert_eq!(link.read(wanted.len()), wanted);
        writes.join().expect("it only writes");
    });
}

#[test]
fn a_reader_is_woken_and_reads_what_was_written() {
    model(2, &[&[1, 2, 3], &[4, 5]]);
}

#[test]
fn a_writer_is_woken_when_there_is_room() {
    model(1, &[&[1, 2, 3, 4, 5, 6, 7], &[8, 9, 10]]);
}

#[test]
fn who_begins_anew_at_the_front_takes_the_reader_along() {
    model(2, &[&[1, 2, 3, 4, 5], &[6, 7, 8, 9], &[10]]);
}
