//! The programs that are offered on a connection: one subscription in the queue group of hosts for
//! each. A withdrawn one is unsubscribed first; what has come by then is still asked of the loop.

use std::collections::BTreeMap;

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use hob_core::hosts::reply::Reply;
use hob_core::hosts::{News, Offered};
use hob_daemon::hosts::Inbox;
use hob_wire::message::Reason;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::headers;

/// The queue group: the server gives an ask to one of its members.
const GROUP: &str = "hob";

pub(crate) struct Service {
    client: Client,
    inbox: Inbox,
    host: String,
    running: BTreeMap<Offered, (oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Service {
    pub(crate) fn new(client: Client, inbox: Inbox, host: String) -> Service {
        Service { client, inbox, host, running: BTreeMap::new() }
    }

    /// Offers these, and no others; `None`: the connection is over.
    pub(crate) async fn offer(&mut self, offered: &[Offered]) -> Option<()> {
        let gone: Vec<Offered> =
            self.running.keys().filter(|known| !offered.contains(known)).cloned().collect();
        for each in gone {
            // Its task unsubscribes, and ends when it has told of all that had come.
            self.running.remove(&each);
        }
        for each in offered {
            if self.running.contains_key(each) {
                continue;
            }
            let subject = format!("hob.ask.{}", each.program);
            let questions = self.client.queue_subscribe(subject, GROUP.to_owned()).await.ok()?;
            let (stays, withdrawn) = oneshot::channel();
            let task = Task {
                client: self.client.clone(),
                inbox: self.inbox.clone(),
                by: format!("{}/0", self.host),
                program: each.program.clone(),
            };
            let task = tokio::spawn(task.run(questions, withdrawn));
            self.running.insert(each.clone(), (stays, task));
        }
        Some(())
    }

    /// Offers nothing more, and waits until all that has come is told.
    pub(crate) async fn leave(&mut self) {
        for (_, (stays, task)) in std::mem::take(&mut self.running) {
            drop(stays);
            let _ = task.await;
        }
    }
}

/// Takes the questions to one program.
struct Task {
    client: Client,
    inbox: Inbox,
    by: String,
    program: String,
}

impl Task {
    async fn run(self, mut questions: Subscriber, mut withdrawn: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                message = questions.next() => {
                    let Some(message) = message else { return };
                    self.take(message).await;
                }
                // Nothing is ever sent: it ends when the other end is dropped.
                _ = &mut withdrawn => break,
            }
        }
        if questions.unsubscribe().await.is_ok() {
            while let Some(message) = questions.next().await {
                self.take(message).await;
            }
        }
    }

    async fn take(&self, message: async_nats::Message) {
        let Some(question) = headers::question(message, &self.program) else { return };
        let to = question.reply_to.clone();
        if self.inbox.try_tell(News::Asked(Box::new(question))) {
            return;
        }
        let text = "too much waits for the daemon".to_owned();
        let by = self.by.clone();
        let reply = Reply::Failure { by, spent_us: 0, reason: Reason::Busy, text };
        let (headers, payload) = headers::answer(&reply);
        let _ = self.client.publish_with_headers(to, headers, Bytes::from(payload)).await;
    }
}
