//! What the client library says too early: that a message is with the server, and that a subscription
//! has ended.

use std::time::Duration;

use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::watch;

/// The longest wait for a message that a connection sends itself.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(2);

/// Ends a subscription: what the server had given to it is in it afterwards, and nothing more comes.
///
/// The library's own ways (`unsubscribe`, `drain`) forget a subscription before the server does, and
/// what comes between is dropped. A server that reads no number behind `UNSUB` ends the subscription
/// at once, and nats-server reads none of more than nine digits. The library waits for so many
/// messages, and keeps it. A server that reads the number goes on giving until the `drain`.
pub(crate) async fn unsubscribe(client: &Client, subscription: &mut Subscriber) {
    if subscription.unsubscribe_after(u64::MAX).await.is_ok() {
        round_trip(client).await;
        // Without a connection there is nothing to end.
        let _ = subscription.drain().await;
    }
}

/// A subscription that ends when it is over, and loses nothing that the server has given by then:
/// otherwise who has sent it would wait.
pub(crate) struct UntilOver {
    client: Client,
    messages: Subscriber,
    /// Nothing is ever sent: it ends when the other end is dropped, or changes. `None`: it has.
    over: Option<watch::Receiver<()>>,
}

impl UntilOver {
    pub(crate) fn new(
        client: &Client,
        messages: Subscriber,
        over: watch::Receiver<()>,
    ) -> UntilOver {
        UntilOver { client: client.clone(), messages, over: Some(over) }
    }

    /// The next message; `None`: there is none any more.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        if let Some(over) = &mut self.over {
            tokio::select! {
                message = self.messages.next() => return message,
                _ = over.changed() => {}
            }
            self.over = None;
            unsubscribe(&self.client, &mut self.messages).await;
        }
        self.messages.next().await
    }
}

/// Sends this connection a message through the server, and waits for it. Then the server has taken
/// what was sent before, and what it had sent by then is here: the library's `flush` only writes.
/// `false`: it did not come in the longest time.
pub(crate) async fn round_trip(client: &Client) -> bool {
    let to = client.new_inbox();
    let back = async {
        let mut back = client.subscribe(to.clone()).await.ok()?;
        client.publish(to.clone(), Bytes::new()).await.ok()?;
        back.next().await
    };
    matches!(tokio::time::timeout(ROUND_TRIP_MAX, back).await, Ok(Some(_)))
}
