//! Tells over JetStream, by its own requests: each offered program has a stream that owns what was
//! told to it, and one consumer that all its hosts pull from.
//!
//! ```text
//!   teller:  hob.tell.NAME ─▶ stream ─▶ its word that it has it
//!   host:    asks for as many as it has room for ─▶ the loop ─▶ done | again, later | dead
//! ```
//! Invariants: a host asks for no more than it may have open; what it has open and does not settle,
//! nor says that it works on, the stream gives to another host.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, Message, RequestErrorKind, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::News;
use hob_core::hosts::tells::{BYTES_MAX, End, MESSAGES_MAX, NotKept, WINDOW};
use hob_daemon::hosts::Inbox;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::{ends, headers};

/// The consumer that the hosts of a program share.
const CONSUMER: &str = "hob";
/// A host that says nothing of a message for so long has lost it.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// How often it says that it works on what it has.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// How long a request for messages stands.
const PULL: Duration = Duration::from_secs(30);
/// For so long a stream knows what it was told, so that it takes nothing twice.
const KNOWN_FOR: Duration = Duration::from_secs(120);
/// How long a host waits before it looks again for a stream that it could not have.
const AGAIN: Duration = Duration::from_secs(30);

/// The subject of a program's tells.
pub(crate) fn subject(program: &str) -> String {
    format!("hob.tell.{program}")
}

fn stream(program: &str) -> String {
    format!("hob-tell-{program}")
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What a host has open of one program, by the addresses that settle it.
#[derive(Default)]
pub(crate) struct Held {
    open: Mutex<BTreeSet<String>>,
    freed: Notify,
}

impl Held {
    fn all(&self) -> BTreeSet<String> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, ack: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(ack.to_owned());
    }

    pub(crate) fn remove(&self, ack: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(ack);
        self.freed.notify_one();
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
        let why =
            "no stream of the server takes it: no host has offered it yet, or JetStream is off";
        return Err(NotKept { why: why.to_owned(), nobody: true, never: false });
    }
    let Ok(value) = serde_json::from_slice::<Value>(&message.payload) else {
        return not("the server's word cannot be read".to_owned());
    };
    match (value["error"]["description"].as_str(), value["seq"].as_u64()) {
        (None, Some(_)) => Ok(()),
        (why, _) => not(hob_core::hosts::words::line(why.unwrap_or("its stream says nothing"))),
    }
}

/// Takes what is told to one program.
pub(crate) struct Task {
    pub(crate) client: Client,
    pub(crate) inbox: Inbox,
    pub(crate) program: String,
    pub(crate) held: Arc<Held>,
}

/// Why a host pulls no more.
enum Over {
    Withdrawn,
    Cut,
    /// The stream or its consumer is not there any more.
    Gone(String),
}

impl Task {
    pub(crate) async fn run(self, mut withdrawn: watch::Receiver<()>) {
        loop {
            let begun = tokio::select! {
                begun = self.begin() => begun,
                _ = withdrawn.changed() => return,
            };
            let why = match begun {
                Err(why) => why,
                Ok(()) => {
                    if !self.inbox.tell(News::Stream { why: None }).await {
                        return;
                    }
                    match self.pull(&mut withdrawn).await {
                        Over::Withdrawn | Over::Cut => return,
                        Over::Gone(why) => why,
                    }
                }
            };
            if !self.inbox.tell(News::Stream { why: Some(why) }).await {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                _ = withdrawn.changed() => return,
            }
        }
    }

    /// Makes the stream and its consumer, where they are not there.
    async fn begin(&self) -> Result<(), String> {
        let (stream, program) = (stream(&self.program), &self.program);
        let config = json!({
            "name": stream,
            "subjects": [subject(program)],
            "retention": "workqueue",
            "storage": "file",
            "discard": "new",
            "max_msgs": MESSAGES_MAX,
            "max_bytes": BYTES_MAX,
            "max_consumers": -1,
            "duplicate_window": nanos(KNOWN_FOR),
            "num_replicas": 1,
        });
        self.make(format!("$JS.API.STREAM.CREATE.{stream}"), &config).await?;
        let config = json!({
            "stream_name": stream,
            "config": {
                "durable_name": CONSUMER,
                "ack_policy": "explicit",
                "ack_wait": nanos(ACK_WAIT),
                "max_deliver": -1,
                "max_ack_pending": 65_536,
                "deliver_policy": "all",
            },
        });
        self.make(format!("$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{CONSUMER}"), &config).await
    }

    /// One that is there with other settings is taken as it is.
    async fn make(&self, subject: String, config: &Value) -> Result<(), String> {
        let payload = Bytes::from(config.to_string());
        let answer = match self.client.request(subject, payload).await {
            Ok(answer) => answer,
            Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                return Err("JetStream is off".to_owned());
            }
            Err(error) => return Err(format!("JetStream: {error}")),
        };
        let value: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
        let error = &value["error"];
        // A stream, and a consumer, of this name.
        let is_there = matches!(error["err_code"].as_u64(), Some(10058 | 10105 | 10148 | 10013));
        match error["description"].as_str() {
            Some(why) if !is_there => {
                Err(format!("JetStream: {}", hob_core::hosts::words::line(why)))
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn pull(&self, withdrawn: &mut watch::Receiver<()>) -> Over {
        let to = self.client.new_inbox();
        let Ok(mut messages) = self.client.subscribe(to.clone()).await else { return Over::Cut };
        let next = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{CONSUMER}", stream(&self.program));
        let mut progress = tokio::time::interval(PROGRESS_EVERY);
        progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut wanted = 0;
        loop {
            let open = self.held.all();
            if wanted == 0 && open.len() < WINDOW {
                wanted = WINDOW - open.len();
                let ask = json!({ "batch": wanted, "expires": nanos(PULL) }).to_string();
                let sent = self.client.publish_with_reply(next.clone(), to.clone(), ask.into());
                if sent.await.is_err() {
                    return Over::Cut;
                }
            }
            tokio::select! {
                message = messages.next() => {
                    let Some(message) = message else { return Over::Cut };
                    match message.status.map(|status| status.as_u16()) {
                        None => {
                            wanted = wanted.saturating_sub(1);
                            if !self.deliver(message).await {
                                return Over::Cut;
                            }
                        }
                        Some(404 | 408) => wanted = 0,
                        Some(100) => {}
                        Some(_) => {
                            let why = message.description.as_deref().unwrap_or("its stream is gone");
                            return Over::Gone(format!(
                                "JetStream: {}",
                                hob_core::hosts::words::line(why)
                            ));
                        }
                    }
                }
                () = self.held.freed.notified(), if wanted == 0 => {}
                _ = progress.tick(), if !open.is_empty() => {
                    for ack in self.held.all() {
                        let _ = self.client.publish(ack, Bytes::from_static(b"+WPI")).await;
                    }
                }
                _ = withdrawn.changed() => {
                    self.rest(messages).await;
                    return Over::Withdrawn;
                }
            }
        }
    }

    /// What had come before this host took no more.
    async fn rest(&self, mut messages: Subscriber) {
        ends::unsubscribe(&self.client, &mut messages).await;
        while let Some(message) = messages.next().await {
            if message.status.is_none() && !self.deliver(message).await {
                return;
            }
        }
    }

    /// Gives one to the loop; `false`: that has ended.
    async fn deliver(&self, message: Message) -> bool {
        let Some(ack) = message.reply.as_ref().map(ToString::to_string) else { return true };
        let Some(delivered) = delivered(&ack) else { return true };
        self.held.add(&ack);
        let told = headers::told(message, (&self.program, ack, delivered));
        self.inbox.tell(News::Told(Box::new(told))).await
    }
}

/// How often a message was delivered, this time included. An address is `$JS.ACK`, in newer servers a
/// domain and an account, and then the stream, the consumer and this number.
fn delivered(ack: &str) -> Option<u32> {
    let words: Vec<&str> = ack.split('.').collect();
    let at = if words.len() > 9 { 6 } else { 4 };
    (words.first() == Some(&"$JS") && words.get(1) == Some(&"ACK"))
        .then(|| words.get(at)?.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_often_a_message_was_delivered() {
        let old = "$JS.ACK.hob-tell-p.hob.3.17.20.1700000000000000000.0";
        assert_eq!(delivered(old), Some(3));
        let new = "$JS.ACK._.AbCd.hob-tell-p.hob.4.17.20.1700000000000000000.0.x";
        assert_eq!(delivered(new), Some(4));
        for none in ["", "mine.1", "$JS.ACK.a.b", "$JS.ACK.a.b.c.1.1.1.0"] {
            assert_eq!(delivered(none), None, "{none}");
        }
    }
}
