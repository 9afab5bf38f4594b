//! The fuzz target of bencode without a fuzzer: its corpus, a bounded number of seeded mutations of it,
//! and messages that are made and read again.
#![expect(clippy::unwrap_used, reason = "a test's own preparations may panic")]

use hob_wire::bencode::{Item, Message, Scanner, message};
use proptest::prelude::*;

#[path = "../../../fuzz/messages.rs"]
mod messages;

/// The corpus by name: what begins with `fault-` was found by the fuzzer and is no message.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/bencode");
    let files = std::fs::read_dir(folder).unwrap();
    let named = |file: std::fs::DirEntry| {
        (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap())
    };
    let all: Vec<_> = files.map(|file| named(file.unwrap())).collect();
    assert!(all.len() > 3, "the corpus is there");
    all
}

#[test]
fn each_of_the_corpus_is_one_message_or_a_fault() {
    for (name, bytes) in corpus() {
        let expected = usize::from(!name.starts_with("fault-"));
        assert_eq!(messages::stream(&bytes), expected, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a few changed bytes, a cut and a copied piece do to a message, nothing panics, and where
    /// it ends does not depend on how it came.
    #[test]
    fn changed_messages_are_read_without_a_panic(
        chosen in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        again in any::<bool>(),
    ) {
        let all = corpus();
        let mut bytes = all[chosen.index(all.len())].1.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if again {
            let piece = bytes[cut.index(bytes.len())..].to_vec();
            bytes.extend(piece);
        }
        messages::stream(&bytes);
    }

    /// A message that is made is found whole behind another one, and is read as it was made.
    #[test]
    fn what_is_made_is_read(
        texts in prop::collection::btree_map("[a-z]{1,8}", prop::collection::vec(any::<u8>(), 0..40), 0..8),
        number in any::<i64>(),
        list in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..5),
    ) {
        let list: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
        let mut pairs: Vec<(&str, Item<'_>)> =
            texts.iter().map(|(key, text)| (key.as_str(), Item::Text(text))).collect();
        pairs.push(("N", Item::Number(number)));
        pairs.push(("L", Item::Texts(&list)));
        let bytes = message(&pairs);
        prop_assert_eq!(Scanner::default().end(&bytes), Ok(Some(bytes.len())));
        let read = Message::read(&bytes).unwrap();
        for (key, text) in &texts {
            prop_assert_eq!(read.text(key), Some(text.as_slice()));
        }
        let number = format!("i{number}e");
        prop_assert_eq!(read.raw("N"), Some(number.as_bytes()));
        for one in list.iter().filter_map(|one| core::str::from_utf8(one).ok()) {
            prop_assert!(read.says("L", one));
        }
    }
}
