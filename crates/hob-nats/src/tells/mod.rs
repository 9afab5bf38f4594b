//! Tells over JetStream, by its own requests: each offered program has a stream that owns what was
//! told to it, and one consumer that all its hosts pull from. One with partitions has another stream,
//! for what was told with a key, with a consumer for each partition.
//!
//! ```text
//!   teller:  hob.tell.NAME or hob.tell.NAME.KEY ─▶ stream ─▶ its word that it has it
//!   host:    asks for as many as it has room for ─▶ the loop ─▶ done | again, later | dead
//! ```
//! | file | does |
//! |---|---|
//! | `mod` | subjects, what a stream says, what a host has open |
//! | `stream` | makes streams and consumers |
//! | `pull` | takes what they give |
//!
//! Invariants: a host asks for no more than it may have open; what it has open and does not settle,
//! nor says that it works on, the stream gives to another host.

mod pull;
mod stream;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Message;
use bytes::Bytes;
use hob_core::hosts::tells::{End, NotKept};
use hob_core::hosts::words;
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) use pull::Task;
pub(crate) use stream::Kind;

/// The subject of a program's tells: with a key it is one word more, and a word for each key.
pub(crate) fn subject(program: &str, key: &[u8]) -> String {
    if key.is_empty() {
        format!("hob.tell.{program}")
    } else {
        format!("hob.tell.{program}.{}", words::subject(key))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What a host has open of one stream: by the addresses that settle it, of which consumer it is.
#[derive(Default)]
pub(crate) struct Held {
    open: Mutex<BTreeMap<String, usize>>,
    freed: Notify,
}

impl Held {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<String> {
        self.open().keys().cloned().collect()
    }

    fn is_empty(&self) -> bool {
        self.open().is_empty()
    }

    /// How many are open of each of so many consumers.
    fn counts(&self, consumers: usize) -> Vec<usize> {
        let mut counts = vec![0; consumers];
        for of in self.open().values() {
            if let Some(count) = counts.get_mut(*of) {
                *count += 1;
            }
        }
        counts
    }

    fn add(&self, ack: &str, consumer: usize) {
        self.open().insert(ack.to_owned(), consumer);
    }

    /// `true`: it was of this stream.
    pub(crate) fn remove(&self, ack: &str) -> bool {
        let was_open = self.open().remove(ack).is_some();
        if was_open {
            self.freed.notify_one();
        }
        was_open
    }
}

/// What settles a message.
pub(crate) fn word(end: End) -> Bytes {
    match end {
        End::Done => Bytes::from_static(b"+ACK"),
        End::Dead => Bytes::from_static(b"+TERM"),
        End::Again { delay_ms } => {
            let delay = json!({ "delay": delay_ms.saturating_mul(1_000_000) });
            Bytes::from(format!("-NAK {delay}"))
        }
    }
}

/// What a stream says to what it was told.
pub(crate) fn kept(message: &Message) -> Result<(), NotKept> {
    let not = |why: String| Err(NotKept { why, nobody: false, never: false });
    if message.status.is_some() {
        return Err(NotKept { why: String::new(), nobody: true, never: false });
    }
    let Ok(value) = serde_json::from_slice::<Value>(&message.payload) else {
        return not("the server's word cannot be read".to_owned());
    };
    match (value["error"]["description"].as_str(), value["seq"].as_u64()) {
        (None, Some(_)) => Ok(()),
        (why, _) => not(words::line(why.unwrap_or("its stream says nothing"))),
    }
}

/// The consumer that has given a message, and how often it was delivered, this time included. An address
/// is `$JS.ACK`, in newer servers a domain and an account, and then the stream, the consumer and this
/// number.
fn delivered(ack: &str) -> Option<(&str, u32)> {
    let words: Vec<&str> = ack.split('.').collect();
    let at = if words.len() > 9 { 5 } else { 3 };
    let is_ack = words.first() == Some(&"$JS") && words.get(1) == Some(&"ACK");
    let (consumer, times) = (*words.get(at)?, words.get(at + 1)?.parse().ok()?);
    is_ack.then_some((consumer, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_who_gave_a_message_and_how_often() {
        let old = "$JS.ACK.hob-tell-p.hob.3.17.20.1700000000000000000.0";
        assert_eq!(delivered(old), Some(("hob", 3)));
        let new = "$JS.ACK._.AbCd.hob-keys-p.7.4.17.20.1700000000000000000.0.x";
        assert_eq!(delivered(new), Some(("7", 4)));
        for none in ["", "mine.1", "$JS.ACK.a.b", "$JS.ACK.a.b.c.1.1.1.0"] {
            assert_eq!(delivered(none), None, "{none}");
        }
    }

    #[test]
    fn a_key_is_one_word_of_a_subject() {
        assert_eq!(subject("p", b""), "hob.tell.p");
        assert_eq!(subject("p", b"customer-17"), "hob.tell.p.customer-17");
        assert_eq!(subject("p", b"a.b *>%\xff"), "hob.tell.p.a%2Eb%20%2A%3E%25%FF");
    }
}
