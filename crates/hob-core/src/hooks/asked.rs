//! A set that another process is asked to run, as it is written in a message; and its record as that
//! fits in an answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Bytes, Capture, SetRecord};

/// What is asked of who has a hooks directory: to run it for one target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedSet {
    /// For whom, for people and records.
    #[serde(default)]
    pub target: Bytes,
    /// Variables of its hooks, over those of the process that runs them.
    #[serde(default)]
    pub set: BTreeMap<String, Bytes>,
    /// A hook that takes longer is ended, in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_after_us: Option<u64>,
    /// How long it may take to end then, in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_us: Option<u64>,
    /// A hook that takes longer is marked as slow, in µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_after_us: Option<u64>,
    /// Whether each hook is spawned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spawn: bool,
    /// Suffixes of names that do not run; the usual ones if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Vec<String>>,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnsweredSet {
    /// The name of the format.
    pub schema: String,
    /// What became of it.
    pub set: SetRecord,
}

impl AnsweredSet {
    /// The name of the format: what `hob hooks run --json` prints.
    pub const SCHEMA: &'static str = "hob.hooks/1";

    /// As it is written, of at most so many bytes: where it would be longer, what its hooks wrote
    /// loses its middle.
    #[must_use]
    pub fn within(mut self, bytes_max: usize, write: impl Fn(&AnsweredSet) -> Vec<u8>) -> Vec<u8> {
        let mut each = bytes_max;
        loop {
            let json = write(&self);
            if json.len() <= bytes_max || each == 0 {
                return json;
            }
            each /= 2;
            for hook in &mut self.set.hooks {
                shorten(&mut hook.stdout, each);
                shorten(&mut hook.stderr, each);
            }
        }
    }
}

/// Keeps so many bytes of what was written: its beginning and its end.
fn shorten(capture: &mut Capture, bytes_max: usize) {
    let (head, tail) = (&mut capture.head.0, &mut capture.tail.0);
    if head.len() + tail.len() > bytes_max {
        let half = bytes_max / 2;
        if tail.is_empty() {
            *tail = head.split_off(head.len() - half.min(head.len()));
        } else if tail.len() > half {
            tail.drain(..tail.len() - half);
        }
        head.truncate(half);
        capture.cut = capture.total.saturating_sub((head.len() + tail.len()) as u64);
    }
    // Stamps take more than the bytes that they are of, where those are few.
    if capture.chunks.len() > 1 && capture.chunks.len() * 32 > bytes_max {
        let bytes = capture.chunks.iter().map(|chunk| chunk.bytes).sum();
        capture.chunks.truncate(1);
        capture.chunks[0].bytes = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{Chunk, HookOutcome};

    fn json(answered: &AnsweredSet) -> Vec<u8> {
        serde_json::to_vec(answered).unwrap()
    }

    fn capture(bytes: usize) -> Capture {
        let head: Vec<u8> = (0..bytes).map(|at| b"abcdefgh"[at % 8]).collect();
        let total = bytes as u64;
        let chunks = (0..total).map(|at_ns| Chunk { at_ns, bytes: 1 }).collect();
        Capture { head: Bytes(head), total, chunks, ..Capture::default() }
    }

    #[test]
    fn an_answer_that_is_too_long_loses_the_middle_of_what_was_written() {
        let mut hook = crate::hooks::record::tests::hook(HookOutcome::Ok);
        hook.stdout = capture(4_000);
        let set = SetRecord { hooks: vec![hook], ..crate::hooks::record::tests::set() };
        let answered = AnsweredSet { schema: AnsweredSet::SCHEMA.to_owned(), set };
        let whole = answered.clone().within(1 << 20, json);
        assert_eq!(serde_json::from_slice::<AnsweredSet>(&whole).unwrap(), answered);
        let short = answered.within(3_000, json);
        assert!(short.len() <= 3_000, "{}", short.len());
        let short: AnsweredSet = serde_json::from_slice(&short).unwrap();
        let stdout = &short.set.hooks[0].stdout;
        assert!(stdout.head.0.starts_with(b"abcdefgh") && stdout.tail.0.ends_with(b"abcdefgh"));
        let kept = (stdout.head.0.len() + stdout.tail.0.len()) as u64;
        assert!(kept > 0 && kept + stdout.cut == 4_000 && stdout.total == 4_000);
        assert_eq!(stdout.chunks.iter().map(|chunk| chunk.bytes).sum::<u64>(), 4_000);
    }

    #[test]
    fn what_is_asked_may_be_written_by_hand() {
        let asked: AskedSet =
            serde_json::from_str(r#"{"target":"web-7","set":{"HOST":"web-7"}}"#).unwrap();
        assert_eq!((asked.target.text().as_ref(), asked.spawn), ("web-7", false));
        assert!(serde_json::from_str::<AskedSet>(r#"{"targte":"web-7"}"#).is_err());
    }
}
