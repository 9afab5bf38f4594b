//! The fuzz target without a fuzzer: the committed corpus and the golden frames are replayed, and
//! a bounded number of seeded mutations of them. `make fuzz` searches; this keeps what was found.
#![expect(clippy::unwrap_used, reason = "a test's own preparations may panic")]

use std::path::PathBuf;

#[path = "../../../fuzz/decode.rs"]
mod decode;

/// How many mutated streams are tried: some seconds of work.
const MUTATIONS: usize = 2_000_000;
/// The failing seed is in the message; this one may be set to it.
const SEED: u64 = 0x686f_6200;

fn files(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// SplitMix64: small, seeded, and good enough to choose bytes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

/// One to four small changes: a bit, a byte, an interesting length, a cut, a splice.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.next().to_le_bytes()[0],
            2 if bytes.len() >= at + 4 => {
                let lengths = [0, 1, 0xff, 0x10_0000, 0x10_0001, 0x7fff_ffff, u32::MAX];
                let length = lengths[random.below(lengths.len())];
                bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
            3 => bytes.truncate(at),
            4 => bytes.insert(at, 0),
            _ => {
                let from = random.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
}

#[test]
fn the_corpus_and_the_golden_frames_are_decoded_without_a_panic() {
    let golden = files("runtimes/golden");
    let decoded: usize = golden.iter().map(|(_, bytes)| decode::stream(bytes)).sum();
    assert_eq!(decoded, golden.len(), "each golden file is one frame that is decoded");
    let corpus = files("fuzz/corpus/frames");
    assert!(!corpus.is_empty(), "the corpus is empty");
    for (path, bytes) in &corpus {
        // Shown by the harness when the next line panics.
        println!("{}", path.display());
        decode::stream(bytes);
        decode::as_all(bytes);
    }
}

#[test]
fn mutated_frames_are_decoded_without_a_panic() {
    let mut seeds: Vec<Vec<u8>> =
        files("runtimes/golden").into_iter().map(|(_, bytes)| bytes).collect();
    seeds.extend(files("fuzz/corpus/frames").into_iter().map(|(_, bytes)| bytes));
    let mut random = Random(SEED);
    let mut decoded = 0;
    for _ in 0..MUTATIONS {
        let seed = random.0;
        let mut bytes = seeds[random.below(seeds.len())].clone();
        let other = seeds[random.below(seeds.len())].clone();
        mutate(&mut bytes, &other, &mut random);
        let tried = bytes.clone();
        let result = std::panic::catch_unwind(|| {
            let payload = tried.get(hob_wire::frame::HEADER_LEN..).unwrap_or(&[]);
            // Some kinds take any payload, so that only whole frames tell how wild mutations are.
            decode::as_all(payload);
            decode::stream(&tried)
        });
        match result {
            Ok(count) => decoded += count,
            Err(_) => panic!("seed {seed:#x}: {bytes:?}"),
        }
    }
    assert!(decoded > MUTATIONS / 10, "mutations are too wild: {decoded} frames were accepted");
}
