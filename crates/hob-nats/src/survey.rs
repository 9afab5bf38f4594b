//! What all hosts say: asked at one time, until nothing more comes.

use std::time::Duration;

use async_nats::{Client, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::{SEEN_MAX, Seen};

use crate::micro;

/// Services that have said nothing for so long say nothing more; and how long all of them have.
const QUIET: Duration = Duration::from_millis(300);
const SURVEY_WAIT: Duration = Duration::from_secs(2);

/// How all services do.
pub(crate) async fn survey(client: &Client) -> Vec<Seen> {
    let mut seen = Vec::new();
    ask_all(client, "$SRV.STATS", |message| {
        seen.extend(micro::seen(&message.payload));
        seen.len() < SEEN_MAX
    })
    .await;
    seen.sort();
    seen
}

/// Asks all who hear a subject, until nothing more comes or enough has.
pub(crate) async fn ask_all(
    client: &Client,
    subject: impl async_nats::subject::ToSubject,
    mut take: impl FnMut(Message) -> bool,
) {
    let to = client.new_inbox();
    let Ok(mut replies) = client.subscribe(to.clone()).await else { return };
    if client.publish_with_reply(subject, to, Bytes::new()).await.is_err() {
        return;
    }
    let end = tokio::time::Instant::now() + SURVEY_WAIT;
    while let Ok(Some(message)) = tokio::time::timeout(QUIET, replies.next()).await {
        let is_over = message.status.is_some() || tokio::time::Instant::now() > end;
        if is_over || !take(message) {
            return;
        }
    }
}
