//! The streams of a program's tells, and their consumers: made where they are not there, taken as they
//! are where they are.

use std::time::Duration;

use async_nats::{Client, RequestErrorKind};
use bytes::Bytes;
use hob_core::hosts::tells::{BYTES_MAX, MESSAGES_MAX, PARTITIONS_MAX, WINDOW};
use hob_core::hosts::words;
use serde_json::{Value, json};

use super::nanos;

/// The consumer of what was told without a key.
const CONSUMER: &str = "hob";
/// A host that says nothing of a message for so long has lost it.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// A host that asks for nothing more of a partition for so long has it no longer.
const PIN_FOR: Duration = Duration::from_secs(21);
/// The one group of those who ask for messages of a partition.
pub(super) const GROUP: &str = "hob";
/// For so long a stream knows what it was told, so that it takes nothing twice.
const KNOWN_FOR: Duration = Duration::from_secs(120);
/// There is a stream of this name with other settings.
const STREAM_IS_OTHER: u64 = 10058;
/// There is a consumer of this name, perhaps with other settings.
const CONSUMER_IS_THERE: [u64; 3] = [10013, 10105, 10148];

/// Which of a program's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What was told without a key.
    Unordered,
    /// What was told with one.
    ByKey {
        /// Into so many parts, where the stream is not there yet.
        partitions: u32,
    },
}

/// A stream that is there, and its consumers.
pub(super) struct Made {
    pub(super) consumers: Vec<String>,
    /// How many messages of a consumer a host has open at most, those included that it asks for.
    pub(super) window: usize,
    /// One host has a consumer for as long as it goes on asking.
    pub(super) is_pinned: bool,
    /// What of it is not as this host's `hob.toml` has it.
    pub(super) differs: Option<String>,
}

impl Kind {
    /// The stream's name.
    pub(super) fn stream(self, program: &str) -> String {
        match self {
            Kind::Unordered => format!("hob-tell-{program}"),
            Kind::ByKey { .. } => format!("hob-keys-{program}"),
        }
    }

    /// Makes the stream and its consumers, where they are not there.
    pub(super) async fn make(self, client: &Client, program: &str) -> Result<Made, String> {
        let stream = self.stream(program);
        let mut config = json!({
            "name": stream,
            "subjects": [format!("hob.tell.{program}")],
            "retention": "workqueue",
            "storage": "file",
            "discard": "new",
            "max_msgs": MESSAGES_MAX,
            "max_bytes": BYTES_MAX,
            "max_consumers": -1,
            "duplicate_window": nanos(KNOWN_FOR),
            "num_replicas": 1,
        });
        if let Kind::ByKey { partitions } = self {
            let keys = format!("hob.tell.{program}.*");
            config["subjects"] = json!([keys]);
            // The server finds the partition, so that who tells need not know how many there are.
            let part = format!("hob.tell.{program}.{{{{partition({partitions},1)}}}}");
            config["subject_transform"] = json!({ "src": keys, "dest": part });
        }
        let answer = request(client, format!("$JS.API.STREAM.CREATE.{stream}"), &config).await?;
        let is_other = answer["error"]["err_code"] == STREAM_IS_OTHER;
        if let Some(why) = fault(&answer).filter(|_| !is_other) {
            return Err(why);
        }
        let Kind::ByKey { partitions: wanted } = self else {
            make_consumer(client, &stream, CONSUMER, &json!({ "max_ack_pending": 65_536 })).await?;
            let consumers = vec![CONSUMER.to_owned()];
            return Ok(Made { consumers, window: WINDOW, is_pinned: false, differs: None });
        };
        let partitions = if is_other { partitions_of(client, &stream).await? } else { wanted };
        // With another number a key may be of another partition than what was told with it before.
        let differs = (wanted != partitions).then(|| {
            format!(
                "{stream} has {partitions} partitions, hob.toml says {wanted}: delete the stream \
                 when it is empty"
            )
        });
        let consumers: Vec<String> = (0..partitions).map(|part| part.to_string()).collect();
        for part in &consumers {
            // One at a time, whichever host has it: so none passes the one before. That a host keeps its
            // partitions is for what its program has in memory; a server before 2.11 knows nothing of it.
            let of = json!({
                "filter_subject": format!("hob.tell.{program}.{part}"),
                "max_ack_pending": 1,
                "priority_policy": "pinned_client",
                "priority_groups": [GROUP],
                "priority_timeout": nanos(PIN_FOR),
            });
            make_consumer(client, &stream, part, &of).await?;
        }
        // One is asked for while another is open, so that the partition stays here, however long it takes.
        Ok(Made { consumers, window: 2, is_pinned: true, differs })
    }
}

/// How many partitions a stream has that somebody has made.
async fn partitions_of(client: &Client, stream: &str) -> Result<u32, String> {
    let answer = request(client, format!("$JS.API.STREAM.INFO.{stream}"), &json!({})).await?;
    if let Some(why) = fault(&answer) {
        return Err(why);
    }
    let dest = answer["config"]["subject_transform"]["dest"].as_str().unwrap_or_default();
    let count = dest.rsplit_once("{{partition(").and_then(|(_, rest)| rest.split_once(','));
    let count = count.and_then(|(count, _)| count.trim().parse().ok());
    count
        .filter(|count| (1..=PARTITIONS_MAX).contains(count))
        .ok_or_else(|| format!("JetStream: {stream} is there, and has no partitions of hob's"))
}

async fn make_consumer(
    client: &Client,
    stream: &str,
    name: &str,
    more: &Value,
) -> Result<(), String> {
    let mut config = json!({
        "durable_name": name,
        "ack_policy": "explicit",
        "ack_wait": nanos(ACK_WAIT),
        "max_deliver": -1,
        "deliver_policy": "all",
    });
    if let (Some(config), Some(more)) = (config.as_object_mut(), more.as_object()) {
        config.extend(more.clone());
    }
    let subject = format!("$JS.API.CONSUMER.DURABLE.CREATE.{stream}.{name}");
    let asked = json!({ "stream_name": stream, "config": config });
    let answer = request(client, subject, &asked).await?;
    let code = answer["error"]["err_code"].as_u64();
    match fault(&answer) {
        Some(why) if !code.is_some_and(|code| CONSUMER_IS_THERE.contains(&code)) => Err(why),
        Some(_) | None => Ok(()),
    }
}

/// What an answer says that is wrong.
fn fault(answer: &Value) -> Option<String> {
    let why = answer["error"]["description"].as_str()?;
    Some(format!("JetStream: {}", words::line(why)))
}

async fn request(client: &Client, subject: String, asked: &Value) -> Result<Value, String> {
    match client.request(subject, Bytes::from(asked.to_string())).await {
        Ok(answer) => Ok(serde_json::from_slice(&answer.payload).unwrap_or_default()),
        Err(error) if error.kind() == RequestErrorKind::NoResponders => {
            Err("JetStream is off".to_owned())
        }
        Err(error) => Err(format!("JetStream: {error}")),
    }
}
